"""How far a command's work has come: one line on a terminal, written over and over."""

import time
from collections.abc import Callable
from typing import Final, TextIO

from attrs import define

_EVERY_S: Final = 0.2
_ERASE: Final = "\x1b[K"


@define(eq=False)
class Telling:
    """Tells only where somebody looks on: nothing of it goes into a file or a pipe."""

    _what: str
    _stream: TextIO
    _now: Callable[[], float] = time.monotonic
    _told_at: float = float("-inf")
    _last: str = ""

    def tell(self, done: int, total: int) -> None:
        """Tell how much is done of how much, once in a while."""
        share = f" ({100 * done // total} %)" if total else ""
        self._last = f"{self._what}: {done:,} of {total:,}{share}"
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
