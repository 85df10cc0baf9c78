"""The open connections of a site: how many there are, from which networks, which one gives way."""

from collections.abc import Callable, Hashable, Iterator
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from attrs import define, field

SETTLED_SECONDS: Final = 1.0
"""How long a connection waits until it is the first to give way: over one that has just been
opened, or answered, a request may be on its way."""


class Connection(Hashable, Protocol):
    """A connection."""

    network: bytes | None
    """What it is counted under, None where there is no bound: it stands for itself."""

    @property
    def waits_for_turn(self) -> bool:
        """Whether something has come over it that is to be taken: it gives way to nobody."""


C = TypeVar("C", bound=Connection)


@define(eq=False)
class _Network(Generic[C]):
    """The connections of a network."""

    all: dict[C, None] = field(factory=dict)
    waiting: dict[C, float] = field(factory=dict)
    """Since when they wait for a request, the longest waiting first."""
    arriving: dict[C, float] = field(factory=dict)
    """Since when one comes over them, the earliest first."""

    def slow(self) -> Iterator[tuple[C, float]]:
        """Give those over which a request is slow to come, the earliest first."""
        return ((one, since) for one, since in self.arriving.items() if not one.waits_for_turn)


@define(eq=False)
class Connections(Generic[C]):
    """The open connections: which wait for a request, over which one comes, which are answered.

    No call goes through all of them, but for those that wait for their turns.
    """

    _seconds: Callable[[], float]
    _all: dict[C, None] = field(factory=dict)
    _waiting: dict[C, float] = field(factory=dict)
    """Since when they wait for a request, the longest waiting first."""
    _networks: dict[Hashable, _Network[C]] = field(factory=dict)
    _with_arriving: dict[int, dict[Hashable, None]] = field(factory=dict)
    """The networks that have so many of those over which a request comes."""

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[C]:
        """Give each; connections may be closed meanwhile."""
        return iter(list(self._all))

    def of(self, network: bytes) -> int:
        """Tell how many there are of a network."""
        found = self._networks.get(network)
        return 0 if found is None else len(found.all)

    def waits(self, connection: C) -> None:
        """Count a connection as the latest that began to wait for a request."""
        key = _key(connection)
        network = self._networks.get(key)
        if network is None:
            network = self._networks[key] = _Network()
        self._all[connection] = network.all[connection] = None
        self._stops(connection, key, network)
        self._waiting[connection] = network.waiting[connection] = self._seconds()

    def works(self, connection: C) -> None:
        """Count a connection as one over which a request comes, the latest unless it was one."""
        key = _key(connection)
        network = self._networks.get(key)
        if network is None or connection not in network.all or connection in network.arriving:
            return
        self._stops(connection, key, network)
        network.arriving[connection] = self._seconds()
        self._rank(key, len(network.arriving) - 1, len(network.arriving))

    def answers(self, connection: C) -> None:
        """Count a connection as one whose request has come, and is being answered."""
        key = _key(connection)
        network = self._networks.get(key)
        if network is not None:
            self._stops(connection, key, network)

    def remove(self, connection: C) -> None:
        """Forget a connection, if it is known."""
        self.answers(connection)
        self._all.pop(connection, None)
        network = self._networks.get(_key(connection))
        if network is not None:
            network.all.pop(connection, None)
            if not network.all:
                del self._networks[_key(connection)]

    def longest_waiting(self, network: bytes) -> C | None:
        """Give the one of a network that waits longest; None if none waits."""
        found = self._networks.get(network)
        return None if found is None else next(iter(found.waiting), None)

    def giving_way(self, newcomer: bytes | None) -> C | None:
        """Give the one that gives way to a newcomer, by its network; None if none does.

        It is the one that waits longest, unless that is not long yet, and no longer than a request
        is slow to come: then that one, the earliest of the network that has most of these, or of
        the newcomer's own where that has as many. Of those that wait, a network with more requests
        still to come than there are has only its own go. So whoever is slow, or comes again at
        once, does not close what others have just opened.
        """
        own = self._networks.get(newcomer) or _Network()
        arriving = len(own.arriving)
        waiting = self._waiting if arriving <= len(self._waiting) else own.waiting
        waits, waits_since = next(iter(waiting.items()), (None, inf))
        slow, slow_since = next(self._slow(arriving), None) or next(own.slow(), (None, inf))
        is_settled = waits_since <= self._seconds() - SETTLED_SECONDS
        return waits if is_settled or waits_since < slow_since else slow

    def _slow(self, more_than: int) -> Iterator[tuple[C, float]]:
        """Give those over which a request is slow to come, of networks that have more than so many.

        The earliest of each network first, and those of networks that have most.
        """
        for arriving in sorted(self._with_arriving, reverse=True):
            if arriving <= more_than:
                return
            for network in self._with_arriving[arriving]:
                yield from self._networks[network].slow()

    def _stops(self, connection: C, key: Hashable, network: _Network[C]) -> None:
        """Count a connection neither as one that waits nor as one over which a request comes."""
        self._waiting.pop(connection, None)
        network.waiting.pop(connection, None)
        if connection in network.arriving:
            del network.arriving[connection]
            self._rank(key, len(network.arriving) + 1, len(network.arriving))

    def _rank(self, network: Hashable, before: int, after: int) -> None:
        """Note that a network has one more, or one less, over which a request comes."""
        if before:
            del self._with_arriving[before][network]
            if not self._with_arriving[before]:
                del self._with_arriving[before]
        if after:
            self._with_arriving.setdefault(after, {})[network] = None


def _key(connection: Connection) -> Hashable:
    return connection if connection.network is None else connection.network
