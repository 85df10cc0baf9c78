"""What of a page's address is never stored: tokens, identifiers and email addresses."""

import re
from collections.abc import Iterable, Sequence
from typing import Final, Self

from attrs import frozen

from medamad.domain.dimensions import MAX_PROPERTY_VALUE
from medamad.domain.paths import cut_path, decoded_path, stored_path

PLACEHOLDER: Final = "…"
"""What stands for what is not stored."""
SEGMENT: Final = "*"
"""What stands for any one segment of a path in a pattern; the segment is replaced."""
REST: Final = "**"
"""What stands for all further segments at the end of a pattern; they are replaced by one."""

_UUID: Final = re.compile(r"[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}", re.IGNORECASE)
_UUID_LENGTH: Final = 36
_LEAST_DIGITS: Final = 16
_HEXADECIMAL: Final = re.compile(
    rf"(?<![0-9a-z])[\da-f]{{{_LEAST_DIGITS},}}+(?![0-9a-z])", re.ASCII | re.IGNORECASE
)
_WORD: Final = re.compile(r"[^/?&=;,:\s]+")
"""What may be an email address. A single pattern for these would take quadratic time."""
_LAST_WORD: Final = re.compile(r"[^/?&=;,:\s]+\Z")
_PATH_PROPERTIES: Final = frozenset({"404"})
_ADDRESS_PROPERTIES: Final = frozenset({"download", "outbound"})
"""The properties in which the tracker reports a path, or a host with a path."""


@frozen
class Redaction:
    """What is replaced by PLACEHOLDER in the paths of a website's pages.

    `patterns` have the segments of paths, casefolded.
    """

    patterns: tuple[tuple[str, ...], ...] = ()
    uuids: bool = False
    hexadecimal: bool = False
    emails: bool = False

    @classmethod
    def of(cls, patterns: Iterable[str], *, uuids: bool, hexadecimal: bool, emails: bool) -> Self:
        """Return the redaction by patterns such as `/reset/*`."""
        segments = (tuple(map(_comparable, filter(None, each.split("/")))) for each in patterns)
        return cls(tuple(filter(None, segments)), uuids, hexadecimal, emails)

    @property
    def is_of_texts(self) -> bool:
        """Whether anything is replaced wherever it occurs."""
        return self.uuids or self.hexadecimal or self.emails

    def path(self, path: str, *, is_cut: bool = False) -> str:
        """Return a path, which is decoded already, without what is never stored.

        With `is_cut`, it may be the beginning of a longer one.
        """
        return self.text(self._without_segments(path, is_cut=is_cut), is_cut=is_cut)

    def url_path(self, path: str, *, is_cut: bool = False) -> str:
        """Return the path of a URL, percent-encoded as it is there, in the form that is stored.

        The segments of a URL end before it is decoded (RFC 3986, section 2.4): a token may have an
        encoded slash.
        """
        path = decoded_path(self._without_segments(path, is_cut=is_cut))
        return cut_path(self.path(path, is_cut=is_cut))

    def text(self, text: str, *, is_cut: bool = False) -> str:
        """Return any text, such as another website's address, without what is never stored.

        With `is_cut`, it may be the beginning of a longer one: its last word may then be that of
        what would be replaced, and is.
        """
        if is_cut and self.is_of_texts:
            text = _LAST_WORD.sub(PLACEHOLDER, text)
        if self.uuids and len(text) >= _UUID_LENGTH:
            text = _UUID.sub(PLACEHOLDER, text)
        if self.hexadecimal and len(text) >= _LEAST_DIGITS:
            text = _HEXADECIMAL.sub(_without_number, text)
        if self.emails and ("@" in text or "%40" in text):
            text = _WORD.sub(_without_email, text)
        return text

    def properties(self, properties: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        """Return the properties of an event; those that the tracker makes of addresses change."""
        if not properties:
            return ()
        return tuple([(name, self._property(name, value)) for name, value in properties])

    def _property(self, name: str, value: str) -> str:
        is_cut = len(value) >= MAX_PROPERTY_VALUE
        if name in _PATH_PROPERTIES:
            return self.path_as_sent(value, is_cut=is_cut)
        if name in _ADDRESS_PROPERTIES:
            host, slash, path = value.partition("/")
            return host + self.path_as_sent(slash + path, is_cut=is_cut)
        return value

    def path_as_sent(self, path: str, *, is_cut: bool = False) -> str:
        """Return the path of a URL; one that nothing is replaced in stays percent-encoded."""
        stored = self.url_path(path, is_cut=is_cut)
        return path if stored == stored_path(path) else stored

    def _without_segments(self, path: str, *, is_cut: bool) -> str:
        """Return a path, percent-encoded or not, without the segments that patterns name."""
        if not self.patterns:
            return path
        segments = path.split("/")
        for pattern in self.patterns:
            _replace(segments, pattern, is_cut=is_cut)
        return "/".join(segments)


def _comparable(segment: str) -> str:
    return decoded_path(segment).casefold()


def _replace(segments: list[str], pattern: tuple[str, ...], *, is_cut: bool) -> None:
    """Replace those of a path's segments that a pattern names, if the path begins like it.

    If the path is cut, what is missing may be like it, too.
    """
    # Servers ignore empty segments, as in `//reset//token`.
    places = [place for place, segment in enumerate(segments) if segment]
    is_open = pattern[-1] == REST
    fixed = pattern[:-1] if is_open else pattern
    if len(places) < len(fixed) + is_open and not is_cut:
        return
    for place, wanted in zip(places, fixed, strict=False):
        found = _comparable(segments[place])
        may_go_on = is_cut and place == places[-1] and wanted.startswith(found)
        if wanted not in (SEGMENT, found) and not may_go_on:
            return
    for place, wanted in zip(places, fixed, strict=False):
        if wanted == SEGMENT:
            segments[place] = PLACEHOLDER
    if is_open and len(places) > len(fixed):
        segments[places[len(fixed)] :] = [PLACEHOLDER]


def _without_number(match: re.Match[str]) -> str:
    """Replace a hexadecimal number; letters alone may be a word."""
    return PLACEHOLDER if any(map(str.isdecimal, match[0])) else match[0]


def _without_email(match: re.Match[str]) -> str:
    word = match[0]
    name, at, host = word.replace("%40", "@").rpartition("@")
    return PLACEHOLDER if at and name and "." in host else word
