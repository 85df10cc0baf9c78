"""How a command tells of its work: how far it has come, and how much it is."""

import os
import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

from attrs import define

from medamad.log_lines import complain, warn

_EVERY_S: Final = 0.2
_ERASE: Final = "\x1b[K"
_KIB: Final = 1024
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def tell_error(told: str) -> None:
    """Say on standard error why a command does not do what it should."""
    complain(told, sys.stderr, os.environ)


def tell_warning(told: str) -> None:
    """Say on standard error what is amiss while a command does what it should."""
    warn(told, sys.stderr, os.environ)


@define(eq=False)
class Telling:
    """Tells only where somebody looks on: nothing of it goes into a file or a pipe."""

    _what: str
    _stream: TextIO
    _now: Callable[[], float] = time.monotonic
    _told_at: float = float("-inf")
    _last: str = ""

    def tell(self, done: int, total: int = 0) -> None:
        """Tell how much is done, and of how much if that is known, once in a while."""
        share = f" of {total:,} ({100 * done // total} %)" if total else ""
        self._last = f"{self._what}: {done:,}{share}"
        now = self._now()
        if self._stream.isatty() and now - self._told_at >= _EVERY_S:
            self._told_at = now
            self._stream.write(f"\r{self._last}{_ERASE}")
            self._stream.flush()

    def end(self) -> None:
        """Tell the last of it, and leave the line."""
        if self._stream.isatty():
            self._stream.write(f"\r{self._last}{_ERASE}\n")
            self._stream.flush()


def told_bytes(count: float) -> str:
    """Give a number of bytes in the unit that reads best."""
    for unit in _UNITS:
        if count < _KIB or unit == _UNITS[-1]:
            break
        count /= _KIB
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


@define(eq=False)
class Phases:
    """The same for work in several parts, each of which has a line of its own."""

    _stream: TextIO
    _what: str = ""
    _telling: Telling | None = None

    def tell(self, what: str, done: int, total: int) -> None:
        """Tell how much is done of a part of the work."""
        if self._telling is None or what != self._what:
            self.end()
            self._what, self._telling = what, Telling(what, self._stream)
        self._telling.tell(done, total)

    def end(self) -> None:
        """Tell the last of it, and leave the line."""
        if self._telling is not None:
            self._telling.end()
