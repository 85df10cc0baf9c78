"""How a command ends before it is done: in order, so that nothing half done stays."""

from collections.abc import Iterator
from contextlib import contextmanager
from signal import SIG_DFL, SIG_IGN, SIGHUP, SIGINT, SIGTERM, getsignal, signal
from types import FrameType
from typing import Final, NoReturn

_ENDING: Final = (SIGINT, SIGTERM, SIGHUP)


@contextmanager
def ended_in_order() -> Iterator[None]:
    """Have SIGTERM and SIGHUP end the work within as Ctrl-C does, by KeyboardInterrupt.

    A terminal that goes sends several, so the first one counts. What whoever runs us has us ignore,
    as nohup does, goes on being ignored.
    """
    before = {number: getsignal(number) for number in _ENDING}

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        end_no_more()
        raise KeyboardInterrupt

    for number, handler in before.items():
        if handler is SIG_DFL:
            signal(number, end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal(number, handler)


def end_no_more() -> None:
    """Let nothing end the work that `ended_in_order` holds any more: the rest of it is short."""
    for number in _ENDING:
        signal(number, SIG_IGN)
