"""The thread that writes the log: where its reader stands still, nobody else waits for that."""

import os
import select
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Final

from attrs import define, field

MOST_CHARACTERS: Final = 4 << 20
END_SECONDS: Final = 1.0
"""How long the end may wait for what is still to be written."""


@define(eq=False)
class LogThread:
    """Writes what any thread gives it, in order; what there is no room for it counts and tells.

    It goes past Python's own stream: a thread that stands still in a write of that holds its lock,
    and the interpreter could not end.
    """

    _descriptor: int
    _encoding: str
    _most: int = MOST_CHARACTERS
    """From how many characters that wait on nothing further is taken."""
    _changed: Condition = field(factory=Condition, init=False)
    """Of all that follows, but for what only the thread has. A signal may come while it is held."""
    _waiting: deque[str | int] = field(factory=deque, init=False)
    """Texts; in the place of those that were not taken, how many they were."""
    _characters: int = field(default=0, init=False)
    _is_ending: bool = field(default=False, init=False)
    _has_ended: bool = field(default=False, init=False)
    _lost: int = field(default=0, init=False)
    """How many texts are missing at this place of the log."""
    _rest: bytes = field(default=b"", init=False)
    """What is still to be written of a text that was begun."""
    _told_lost: Callable[[int], str] = field(init=False)
    _thread: Thread = field(init=False)

    def start(self, told_lost: Callable[[int], str]) -> None:
        """Begin to write; `told_lost` gives a text that tells how many are missing."""
        self._told_lost = told_lost
        self._thread = Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Have a text written."""
        with self._changed:
            if self._has_ended:
                self._put(text)
            elif self._characters < self._most:
                self._waiting.append(text)
                self._characters += len(text)
            elif isinstance(self._waiting[-1], int):
                self._waiting[-1] += 1
            else:
                self._waiting.append(1)
            self._changed.notify()

    def end(self, within_s: float = END_SECONDS) -> None:
        """Wait until all is written, but not for long. What comes later is written at once."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(within_s)

    def _run(self) -> None:
        while (item := self._next()) is not None:
            self._put(item)

    def _next(self) -> str | int | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_ending)
            if not self._waiting:
                self._has_ended = True
                return None
            item = self._waiting.popleft()
            if isinstance(item, str):
                self._characters -= len(item)
            return item

    def _put(self, item: str | int) -> None:
        text, missing = (item, 0) if isinstance(item, str) else ("", item)
        self._lost += missing
        try:
            if self._lost:
                self._write(self._told_lost(self._lost))
                self._lost = 0
            self._write(text)
        except OSError:
            # As on a full disk: it is told of once something can be written again.
            self._lost += bool(text)

    def _write(self, text: str) -> None:
        """Write a text, after what was begun before; of one that is begun the rest comes later.

        Raises OSError where nothing of it can be written.
        """
        self._go_on()
        whole = self._rest = text.encode(self._encoding, "backslashreplace")
        try:
            self._go_on()
        except OSError:
            if self._rest == whole:
                self._rest = b""
                raise

    def _go_on(self) -> None:
        while self._rest:
            try:
                written = os.write(self._descriptor, self._rest)
            except BlockingIOError:
                # Another process that has it as well may have had it wait for nobody.
                writable = select.poll()
                writable.register(self._descriptor, select.POLLOUT)
                writable.poll()
            else:
                self._rest = self._rest[written:]
