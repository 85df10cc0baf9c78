"""The path of a page as it is stored, and patterns of paths."""

import re
from collections.abc import Iterable
from typing import Final, Self

from attrs import frozen

MAX_PATH: Final = 2_048
"""Characters of a path that are stored."""

_ESCAPED: Final = re.compile(
    r"""(?:%[0-7][\da-f]
    | %(?:c[2-9a-f] | d[\da-f]) %[89ab][\da-f]
    | %(?:e0%[ab] | ed%[89] | e[1-9a-cef]%[89ab])[\da-f] %[89ab][\da-f]
    | %(?:f0%[9ab] | f[1-3]%[89ab] | f4%8)[\da-f] (?:%[89ab][\da-f]){2})++""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
"""Percent-escapes of UTF-8 (RFC 3629, section 4)."""
_MOST_RUNS: Final = MAX_PATH // 2 + 1
"""The most runs of escapes, with a character between them, in MAX_PATH characters."""
_SLASHES: Final = re.compile("//+")


def stored_path(path: str) -> str:
    """Return the path of a URL as it is stored; "/" for none."""
    decoded = _ESCAPED.sub(_decoded, path, _MOST_RUNS) if "%" in path else path
    return cut_path(decoded)


def cut_path(decoded: str) -> str:
    """Return a path, which is decoded already, as it is stored."""
    return decoded[:MAX_PATH].rstrip("/") or "/"


def decoded_path(path: str) -> str:
    """Return all of a URL's path, decoded as far as that yields UTF-8."""
    return _ESCAPED.sub(_decoded, path) if "%" in path else path


def without_empty_segments(path: str) -> str:
    """Return a path without the segments that servers ignore, as in `//reset//token`."""
    return _SLASHES.sub("/", path) if "//" in path else path


def _decoded(escapes: re.Match[str]) -> str:
    return bytes.fromhex(escapes[0].replace("%", "")).decode("utf-8")


WILDCARD: Final = "*"
"""What stands for any run of characters in a pattern, also for none."""
_ASTERISK: Final = "%2A"
"""What stands for WILDCARD itself in a pattern."""


def stored_pattern(pattern: str) -> str:
    """Return a pattern as it is stored: like a path, but with _ASTERISK as it is."""
    escaped = re.sub(_ASTERISK, _ASTERISK.replace("%", "%25"), pattern, flags=re.IGNORECASE)
    return stored_path(escaped)


@frozen
class PathPattern:
    """A path in which WILDCARD and _ASTERISK may occur.

    It compares stored paths exactly, also in upper case.

    The pieces between wildcards are searched for in order, each at its first place: that finds a
    match where there is one, and never goes back.
    """

    _start: str
    _between: tuple[str, ...]
    _end: str | None
    """What follows the last wildcard, None if there is no wildcard."""

    @classmethod
    def of(cls, pattern: str) -> Self:
        """Return the pattern that a stored text describes."""
        pieces = pattern.split(WILDCARD)
        start, *rest = (piece.replace(_ASTERISK, WILDCARD) for piece in pieces)
        if not rest:
            return cls(start, (), None)
        return cls(start, tuple(filter(None, rest[:-1])), rest[-1])

    def matches(self, path: str) -> bool:
        """Return whether a stored path matches."""
        if self._end is None:
            return path == self._start
        place, end = len(self._start), len(path) - len(self._end)
        if end < place or not (path.startswith(self._start) and path.endswith(self._end)):
            return False
        for piece in self._between:
            found = path.find(piece, place, end)
            if found < 0:
                return False
            place = found + len(piece)
        return True

    def matching(self, paths: Iterable[str]) -> list[bool]:
        """Return which of many stored paths match, faster than one by one."""
        start, end = self._start, self._end
        if end is None:
            return [path == start for path in paths]
        if self._between:
            return [path.startswith(start) and self.matches(path) for path in paths]
        least = len(start) + len(end)
        return [
            path.startswith(start) and path.endswith(end) and len(path) >= least for path in paths
        ]
