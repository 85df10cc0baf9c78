"""Request parameters and bodies, decoded into typed values with errors that name the field."""

import json
import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec
from attrs import frozen
from msgspec.inspect import DataclassType, LiteralType, StructType, Type, UnionType, type_info

from medamad.domain.errors import BadRequest
from medamad.web.server.parser import RequestHeaders

T = TypeVar("T")

MAX_PARAMETERS: Final = 256

_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_INTEGER: Final = re.compile(r"-?[0-9]{1,18}\Z")


def percent_decode(text: bytes, field: str) -> str:
    """Undo the percent-encoding of a text (RFC 3986 section 2.1).

    Raises BadRequest naming `field` for an invalid escape, or if the result is not UTF-8.
    """
    if b"%" in text:
        text = _unescaped(text, field)
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest(f"{field}: not valid UTF-8") from None


def _unescaped(text: bytes, field: str) -> bytes:
    """Return the decoded bytes of a text with escapes, much faster than urllib."""
    escaped = text.replace(b"\\", b"\\\\").replace(b"%", b"\\x")
    try:
        return escaped.decode("unicode_escape").encode("latin-1")
    except UnicodeDecodeError:
        raise BadRequest(f"{field}: an invalid percent-escape") from None


@frozen
class QueryParameters:
    """The decoded parameters of a query string, in order. The last of a repeated one counts."""

    pairs: tuple[tuple[str, str], ...] = ()

    def text(self, name: str) -> str | None:
        """Return the text of a parameter, or None."""
        for key, value in reversed(self.pairs):
            if key == name:
                return value
        return None

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return a parameter that is true, false, 1 or 0, in upper or lower case."""
        text = self.text(name)
        if text is None:
            return default
        try:
            return _BOOLEANS[text.lower()]
        except KeyError:
            raise BadRequest(f"{name}: expected true, false, 1 or 0") from None

    def integer(self, name: str, least: int, greatest: int) -> int | None:
        """Return a whole number from `least` to `greatest`, or None."""
        text = self.text(name)
        if text is None:
            return None
        if not _INTEGER.match(text) or not least <= int(text) <= greatest:
            raise BadRequest(f"{name}: expected a whole number from {least} to {greatest}")
        return int(text)

    def choice(self, name: str, choices: Iterable[str]) -> str | None:
        """Return a parameter that is one of some words, or None."""
        text = self.text(name)
        if text is not None and text not in (words := tuple(choices)):
            raise BadRequest(f"{name}: expected one of {', '.join(words)}")
        return text

    def json(self, name: str, decoder: msgspec.json.Decoder[T]) -> T:
        """Return a required parameter in JSON, decoded."""
        text = self.text(name)
        if text is None:
            raise BadRequest(f"{name}: required, a JSON object")
        return _decoded(text.encode(), decoder, name)


def parse_query_string(text: bytes) -> QueryParameters:
    """Decode the query string of a URL, where `+` is a space.

    Raises BadRequest naming the parameter that is badly encoded or contains a NUL, and for too many
    parameters, which are counted before any is decoded.
    """
    if text.count(b"&") >= MAX_PARAMETERS:
        raise BadRequest(f"query: expected at most {MAX_PARAMETERS} parameters")
    pairs = []
    for part in text.split(b"&"):
        if part:
            raw_name, _, raw_value = part.partition(b"=")
            name = _without_nul(percent_decode(raw_name.replace(b"+", b" "), "query"), "query")
            field = name or "query"
            value = _without_nul(percent_decode(raw_value.replace(b"+", b" "), field), field)
            pairs.append((name, value))
    return QueryParameters(tuple(pairs))


def _without_nul(text: str, field: str) -> str:
    if "\0" in text:
        raise BadRequest(f"{field}: expected text without NUL")
    return text


_JSON_TYPE: Final = re.compile(rb"\s*application/(?:[\w.-]+\+)?json\s*(?:;.*)?\Z", re.IGNORECASE)
_LOCATED: Final = re.compile(
    r"^(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<where>.*)`)?$", re.DOTALL
)
_HALF_A_PAIR: Final = re.compile("[\ud800-\udfff]")
_MISMATCH: Final = re.compile(
    r"Expected `(?P<wanted>[^`]*)`(?: (?P<bound>[<>]=) (?P<limit>\S+))?(?:, got `(?P<got>[^`]*)`)?"
)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>[^`]*)`")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)

_WORDS: Final = MappingProxyType(
    {
        "array": "a list",
        "bool": "true or false",
        "float": "a number",
        "int": "a whole number",
        "null": "null",
        "object": "an object",
        "str": "text",
    }
)
"""The names of the decoder's types in messages."""
_BOUNDS: Final = MappingProxyType({">=": "of at least", "<=": "of at most"})


def check_type(headers: RequestHeaders, body: bytes) -> None:
    """Raise BadRequest if there is a body whose Content-Type is not JSON."""
    if not body:
        return
    types = headers.values(b"Content-Type")
    if len(types) != 1 or not _JSON_TYPE.match(types[0]):
        raise BadRequest("Content-Type: expected application/json")


def read_body(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode a required body, or raise BadRequest naming the field that is wrong."""
    if not body:
        raise BadRequest("body: expected a JSON object, got nothing")
    return _decoded(body, decoder, "body")


def _decoded(sent: bytes, decoder: msgspec.json.Decoder[T], whole: str) -> T:
    """Decode JSON. Raises BadRequest naming the field, or `whole` if it is about none."""
    try:
        return decoder.decode(sent.decode("utf-8"))
    except msgspec.ValidationError as error:
        raise BadRequest(_problem(str(error), whole, decoder.type)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadRequest(_unreadable(sent, whole)) from None


def _unreadable(text: bytes, whole: str) -> str:
    """Return why a text is not valid JSON.

    Many encoders let half a surrogate pair through, so its field is named.
    """
    try:
        sent = json.loads(text)
    except (ValueError, RecursionError):
        sent = None
    if isinstance(sent, dict):
        for name, value in sent.items():
            if _HALF_A_PAIR.search(json.dumps(value, ensure_ascii=False)):
                return f"{name}: expected text without half a surrogate pair"
    return f"{whole}: expected valid JSON in UTF-8"


def _problem(text: str, whole: str, type_: Any) -> str:
    """Return the message for an error of the decoder of a type, the field first."""
    located = _LOCATED.match(text)
    what, where = (located["what"], located["where"]) if located else (text, None)
    missing = _MISSING.match(what)
    if missing:
        where = f"{where}.{missing['name']}" if where else missing["name"]
        return f"{where}: required"
    unknown = _UNKNOWN.fullmatch(what)
    if unknown:
        return f"{unknown['name']}: no such member{f' of {where}' if where else ''}"
    mismatch = _MISMATCH.fullmatch(what)
    if mismatch is None:
        choices = _choices(type_info(type_), where.split(".") if where else [])
        expected = f"one of {', '.join(choices)}" if choices else "another value"
        return f"{where or whole}: expected {expected}"
    wanted = " or ".join(map(_in_words, mismatch["wanted"].split(" | ")))
    if mismatch["bound"]:
        wanted += f" {_BOUNDS[mismatch['bound']]} {mismatch['limit']}"
    got = f", got {_in_words(mismatch['got'])}" if mismatch["got"] else ""
    return f"{where or whole}: expected {wanted}{got}"


def _choices(type_: Type, names: list[str]) -> list[str]:
    """Return the words that a member may be, by the names that lead to it; none for any other."""
    match type_:
        case UnionType():
            return [word for each in type_.types for word in _choices(each, names)]
        case LiteralType() if not names:
            return list(map(str, type_.values))
        case StructType() | DataclassType() if names:
            name, *further = names
            found = (each.type for each in type_.fields if each.encode_name == name)
            return [word for each in found for word in _choices(each, further)]
        case _:
            return []


def _in_words(type_: str) -> str:
    return _WORDS.get(type_, "another value")
