"""How many connections a port takes in a turn of the reactor."""

from collections.abc import Callable
from typing import Final

from twisted.internet import tcp

ACCEPTED_AT_ONCE: Final = 16


def accept_few(port: tcp.Port) -> None:
    """Have one of Twisted's ports take ACCEPTED_AT_ONCE at most.

    By itself it takes twenty more in each turn than in the one before, for as long as more come,
    and whoever only connects could have a turn take as long as they like.
    """
    accept: Callable[[], None] = port.doRead

    def accept_some() -> None:
        port.numberAccepts = min(port.numberAccepts, ACCEPTED_AT_ONCE)
        accept()

    port.doRead = accept_some  # type: ignore[method-assign] # what the reactor calls
