"""The thread that writes the log, so that no other waits for a reader that has stopped reading.

Why not QueueHandler and QueueListener of the standard library: they carry records of `logging`,
while the log lines here come from Twisted's; a full queue drops each record with a traceback on
standard error, which is the very stream that is stuck, and counts no losses; its bound is a number
of records, not of bytes; and `QueueListener.stop` joins its thread without a timeout, through a
stream whose lock a stuck write holds, so the daemon could not exit.
"""

import os
import select
from collections import deque
from collections.abc import Callable
from threading import Condition, Thread
from typing import Final

from attrs import define, field

MOST_CHARACTERS: Final = 4 << 20
END_S: Final = 1.0
"""How long the end waits for texts that are still queued."""


@define(eq=False)
class LogThread:
    """Writes texts of any thread in order. Texts beyond the bound are counted and reported.

    It writes to the file descriptor: a thread that is stuck in a write of Python's own stream holds
    the stream's lock, and the interpreter could not exit.
    """

    _descriptor: int
    _encoding: str
    _most: int = MOST_CHARACTERS
    """The most characters that may wait; beyond, texts are dropped."""
    _changed: Condition = field(factory=Condition, init=False)
    """Guards the fields below that the thread shares. Reentrant: a signal handler may log."""
    _waiting: deque[str | int] = field(factory=deque, init=False)
    """Texts, and numbers of texts dropped at that place."""
    _characters: int = field(default=0, init=False)
    _is_ending: bool = field(default=False, init=False)
    _has_ended: bool = field(default=False, init=False)
    _lost: int = field(default=0, init=False)
    """How many texts are missing at this place of the log."""
    _rest: bytes = field(default=b"", init=False)
    """The rest of a text that was partly written."""
    _format_lost: Callable[[int], str] = field(init=False)
    _thread: Thread = field(init=False)

    def start(self, format_lost: Callable[[int], str]) -> None:
        """Start the thread; `format_lost` returns the text that reports how many are missing."""
        self._format_lost = format_lost
        self._thread = Thread(target=self._run, name="log", daemon=True)
        self._thread.start()

    def write(self, text: str) -> None:
        """Queue a text."""
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

    def end(self, within_s: float = END_S) -> None:
        """Wait a limited time until all is written. Later texts are written directly."""
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
                self._write(self._format_lost(self._lost))
                self._lost = 0
            self._write(text)
        except OSError:
            # A full disk, for example: reported once writing works again.
            self._lost += bool(text)

    def _write(self, text: str) -> None:
        """Write the rest of the text before, then a text; keep the rest of a partial write.

        Raises OSError if nothing of it can be written.
        """
        self._write_rest()
        whole = self._rest = text.encode(self._encoding, "backslashreplace")
        try:
            self._write_rest()
        except OSError:
            if self._rest == whole:
                self._rest = b""
                raise

    def _write_rest(self) -> None:
        while self._rest:
            try:
                written = os.write(self._descriptor, self._rest)
            except BlockingIOError:
                # Another process with the same descriptor may have made it non-blocking.
                writable = select.poll()
                writable.register(self._descriptor, select.POLLOUT)
                writable.poll()
            else:
                self._rest = self._rest[written:]
