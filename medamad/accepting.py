"""How a port takes connections: few in a turn of the reactor, and none by its address."""

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


def keep_addresses_out_of_the_log(port: tcp.Port) -> None:
    """Have what Twisted logs of a connection, such as a fault, be logged without who it is from."""
    connect: Callable[..., tcp.Server] = port.transport

    def connect_nameless(*arguments: object) -> tcp.Server:
        connection = connect(*arguments)
        connection.logstr = type(connection.protocol).__name__
        return connection

    port.transport = connect_nameless  # type: ignore[assignment] # what the port calls
