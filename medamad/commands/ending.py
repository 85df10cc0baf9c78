"""How a command ends before it is done: in order, so that nothing half done stays."""

from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIG_DFL, SIG_IGN, SIGHUP, SIGTERM, getsignal, signal
from types import FrameType
from typing import Final, NoReturn

_ENDING: Final = (SIGTERM, SIGHUP)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the work within as Ctrl-C does, by KeyboardInterrupt.

    A terminal that goes sends several, so the first one counts. What whoever runs us has us ignore,
    as nohup does, goes on being ignored.
    """
    taken = [number for number in _ENDING if getsignal(number) is SIG_DFL]

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        for number in taken:
            signal(number, SIG_IGN)
        raise KeyboardInterrupt

    for number in taken:
        signal(number, end)
    try:
        yield
    finally:
        for number in taken:
            signal(number, SIG_DFL)
