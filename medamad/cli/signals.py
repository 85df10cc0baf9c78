"""How a command ends on a signal: in order, leaving nothing half done.

Apart from the other shared code, so that a short command does not import the daemon.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIG_DFL, SIG_IGN, SIGHUP, SIGINT, SIGTERM, getsignal, signal
from types import FrameType
from typing import Final, NoReturn

_ENDING: Final = (SIGINT, SIGTERM, SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """Make SIGTERM and SIGHUP raise KeyboardInterrupt, as Ctrl-C does.

    A terminal that closes sends several signals; only the first counts. Signals that were ignored
    before, as under nohup, stay ignored.
    """
    before = {number: getsignal(number) for number in _ENDING}

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        ignore_interrupts()
        raise KeyboardInterrupt

    for number, handler in before.items():
        if handler is SIG_DFL:
            signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal(number, handler)


def ignore_interrupts() -> None:
    """Ignore the signals of `interruptible` from now on: the remaining work is short."""
    for number in _ENDING:
        signal(number, SIG_IGN)
