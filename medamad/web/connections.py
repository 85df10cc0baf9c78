"""The open connections of a site: how many there are, from which networks, which one gives way."""

from collections.abc import Iterator
from itertools import islice
from typing import Final, Generic, Protocol, TypeVar

from attrs import define, field

_LOOKED_AT: Final = 64
"""Among how many connections, the longest untouched first, an idle one is looked for."""


class Connection(Protocol):
    """A connection."""

    network: bytes | None
    """What it is counted under, None where there is no bound."""
    idle: bool
    """Whether it only waits for a request."""


C = TypeVar("C", bound=Connection)


@define(eq=False)
class Connections(Generic[C]):
    """Connections in the order in which each last began to wait for a request."""

    _all: dict[C, None] = field(factory=dict)
    _by_network: dict[bytes, dict[C, None]] = field(factory=dict)

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[C]:
        """Give each; connections may be closed meanwhile."""
        return iter(list(self._all))

    def of(self, network: bytes) -> int:
        """Tell how many there are of a network."""
        return len(self._by_network.get(network, ()))

    def add(self, connection: C) -> None:
        """Count a connection, or count it as the latest that began to wait."""
        self.remove(connection)
        self._all[connection] = None
        if connection.network is not None:
            self._by_network.setdefault(connection.network, {})[connection] = None

    def remove(self, connection: C) -> None:
        """Forget a connection, if it is known."""
        self._all.pop(connection, None)
        if connection.network is not None:
            siblings = self._by_network.get(connection.network, {})
            siblings.pop(connection, None)
            if not siblings:
                self._by_network.pop(connection.network, None)

    def one_to_close(self, network: bytes | None = None) -> C | None:
        """Give one that has waited long, of one network or of all; None if all are at work."""
        among = self._all if network is None else self._by_network.get(network, {})
        return next((one for one in islice(among, _LOOKED_AT) if one.idle), None)
