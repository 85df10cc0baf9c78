"""The parameters of a query and the path of an address, decoded strictly."""

import re
from collections.abc import Iterable
from typing import Final

from attrs import frozen

from medamad.model.errors import BadRequest

MOST_PARAMETERS: Final = 256

_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}\Z")


def decode(text: bytes, field: str) -> str:
    """Undo the percent-encoding of a text (RFC 3986 section 2.1).

    Raises BadRequest naming `field` for an invalid escape or when UTF-8 does not come out.
    """
    if b"%" in text:
        text = _unescaped(text, field)
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest(f"{field}: not valid UTF-8") from None


def _unescaped(text: bytes, field: str) -> bytes:
    """Give the bytes that a text with escapes stands for: much sooner than urllib does."""
    escaped = text.replace(b"\\", b"\\\\").replace(b"%", b"\\x")
    try:
        return escaped.decode("unicode_escape").encode("latin-1")
    except UnicodeDecodeError:
        raise BadRequest(f"{field}: an invalid percent-escape") from None


@frozen
class Query:
    """The decoded parameters of a query, in order. Of a repeated one the last counts."""

    pairs: tuple[tuple[str, str], ...] = ()

    def text(self, name: str) -> str | None:
        """Give a parameter's text, None where there is none."""
        for key, value in reversed(self.pairs):
            if key == name:
                return value
        return None

    def boolean(self, name: str, *, default: bool) -> bool:
        """Give a parameter that is true, false, 1 or 0, in any case."""
        text = self.text(name)
        if text is None:
            return default
        try:
            return _BOOLEANS[text.lower()]
        except KeyError:
            raise BadRequest(f"{name}: expected true, false, 1 or 0") from None

    def integer(self, name: str, least: int, greatest: int) -> int | None:
        """Give a whole number within bounds, None where there is none."""
        text = self.text(name)
        if text is None:
            return None
        if not _INTEGER.match(text) or not least <= int(text) <= greatest:
            raise BadRequest(f"{name}: expected a whole number from {least} to {greatest}")
        return int(text)

    def choice(self, name: str, choices: Iterable[str]) -> str | None:
        """Give one of some words, None where there is none."""
        text = self.text(name)
        if text is not None and text not in (known := tuple(choices)):
            raise BadRequest(f"{name}: expected one of {', '.join(known)}")
        return text


def query_of(text: bytes) -> Query:
    """Decode the part of an address behind the question mark; a raw `+` is a space.

    Raises BadRequest naming the parameter that is badly encoded or holds a NUL, and when there are
    too many: these are counted before any is decoded.
    """
    if text.count(b"&") >= MOST_PARAMETERS:
        raise BadRequest(f"query: expected at most {MOST_PARAMETERS} parameters")
    pairs = []
    for part in text.split(b"&"):
        if part:
            raw_name, _, raw_value = part.partition(b"=")
            name = _without_nul(decode(raw_name.replace(b"+", b" "), "query"), "query")
            field = name or "query"
            value = _without_nul(decode(raw_value.replace(b"+", b" "), field), field)
            pairs.append((name, value))
    return Query(tuple(pairs))


def _without_nul(text: str, field: str) -> str:
    if "\0" in text:
        raise BadRequest(f"{field}: expected text without NUL")
    return text
