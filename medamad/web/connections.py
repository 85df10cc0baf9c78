"""The open connections of a site: how many there are, from which networks, which one gives way."""

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

from attrs import define, field


class Connection(Protocol):
    """A connection."""

    network: bytes | None
    """What it is counted under, None where there is no bound."""


C = TypeVar("C", bound=Connection)


@define(eq=False)
class _Group(Generic[C]):
    """Some connections, and those of them that wait for a request, the longest waiting first."""

    all: dict[C, None] = field(factory=dict)
    waiting: dict[C, None] = field(factory=dict)


@define(eq=False)
class Connections(Generic[C]):
    """The open connections, and which of them wait for a request."""

    _all: _Group[C] = field(factory=_Group)
    _by_network: dict[bytes, _Group[C]] = field(factory=dict)

    def __len__(self) -> int:
        return len(self._all.all)

    def __iter__(self) -> Iterator[C]:
        """Give each; connections may be closed meanwhile."""
        return iter(list(self._all.all))

    def of(self, network: bytes) -> int:
        """Tell how many there are of a network."""
        group = self._by_network.get(network)
        return 0 if group is None else len(group.all)

    def waits(self, connection: C) -> None:
        """Count a connection as the latest that began to wait for a request."""
        if connection.network is not None:
            self._by_network.setdefault(connection.network, _Group())
        for group in self._groups_of(connection):
            group.all[connection] = None
            group.waiting.pop(connection, None)
            group.waiting[connection] = None

    def works(self, connection: C) -> None:
        """Count a connection as one that has begun a request."""
        for group in self._groups_of(connection):
            group.waiting.pop(connection, None)

    def remove(self, connection: C) -> None:
        """Forget a connection, if it is known."""
        for group in self._groups_of(connection):
            group.all.pop(connection, None)
            group.waiting.pop(connection, None)
        if connection.network is not None and not self.of(connection.network):
            self._by_network.pop(connection.network, None)

    def one_to_close(self, network: bytes | None = None) -> C | None:
        """Give the one that waits longest, of a network or of all; None if all are at work."""
        group = self._all if network is None else self._by_network.get(network)
        return None if group is None else next(iter(group.waiting), None)

    def _groups_of(self, connection: C) -> Iterator[_Group[C]]:
        yield self._all
        if connection.network in self._by_network:
            yield self._by_network[connection.network]
