"""Connections whose client takes one piece of an answer after the other, or none any more."""

from collections.abc import Iterable
from typing import Final

from support.web.client import Connection
from support.web.daemon_in_memory import Server

HEAD_BYTES: Final = 1_000
"""More than the head of an answer, and than what stands around a piece."""


def slow(server: Server, peer: str = "203.0.113.9") -> Connection:
    """Return a connection of which the transport is full after each piece."""
    connection = Connection(server.site, peer)
    wire = connection.wire
    write = type(wire).write

    def full(data: bytes) -> None:
        write(wire, data)
        if len(data) > HEAD_BYTES and wire.producer is not None:
            wire.producer.pauseProducing()

    wire.write = full
    return connection


def leave(server: Server, connections: Iterable[Connection], *, goes: bool) -> None:
    """Close connections that receive nothing more, as clients or timeouts would."""
    for connection in connections:
        if not goes:
            for _ in range(2):
                server.reactor.advance(server.site.settings.receive_seconds + 1)
                server.site.sweep()
            assert connection.wire.aborted
        connection.close()
