"""The open connections of a site: how many there are, from which networks, which one gives way."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from itertools import chain, islice
from math import inf
from typing import Final, Generic, Protocol, TypeVar

from attrs import define, field

SETTLED_SECONDS: Final = 1.0
"""How long a connection waits until it is the first to give way: over one that has just been
opened, or answered, a request may be on its way. As long a client has to receive something."""
SLOW_SECONDS: Final = 0.5
"""How long a request is on its way until it is slow to come."""
LOOKED_AT: Final = 100
"""How many connections over which requests come are looked at for one that does not wait for its
turn: where all of these do, none is slow."""


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
    paused: dict[C, float] = field(factory=dict)
    """Since when a long answer over them waits for its client, the longest first."""
    arriving: dict[C, float] = field(factory=dict)
    """Since when a request comes over them, the earliest first."""


@define(eq=False)
class Connections(Generic[C]):
    """The open connections: which wait for a request, over which one comes, which are answered.

    No call goes through all of them.
    """

    _seconds: Callable[[], float]
    _all: dict[C, None] = field(factory=dict)
    _waiting: dict[C, float] = field(factory=dict)
    _paused: dict[C, float] = field(factory=dict)
    """Of all networks, as each has them."""
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

    def pauses(self, connection: C) -> None:
        """Count a connection as one over which a long answer waits for its client."""
        key = _key(connection)
        network = self._networks.get(key)
        if network is not None and connection in network.all:
            self._stops(connection, key, network)
            self._paused[connection] = network.paused[connection] = self._seconds()

    def remove(self, connection: C) -> None:
        """Forget a connection, if it is known."""
        self.answers(connection)
        self._all.pop(connection, None)
        network = self._networks.get(_key(connection))
        if network is not None:
            network.all.pop(connection, None)
            if not network.all:
                del self._networks[_key(connection)]

    def giving_way_within(self, network: bytes) -> C | None:
        """Give the one that gives way to a newcomer of a network where that has as many as it may.

        It is one of its own, as `giving_way` has it of all. None if none does.
        """
        own = self._networks.get(network) or _Network()
        return self._first(own.waiting, own.arriving.items(), own.paused)

    def giving_way(self, newcomer: bytes | None) -> C | None:
        """Give the one that gives way to a newcomer, by its network; None if none does.

        It is the one that waits longest. Where none has for SETTLED_SECONDS, it is the one that has
        made no headway for longest: because its request is slow to come, the earliest of the
        network that has most requests coming, or of the newcomer's own where that has as many; or
        because its client receives nothing. Of those that wait or are not received, a network with
        more requests coming than connections wait has only its own go. So whoever is slow, or comes
        again at once, does not close what others have just opened.
        """
        own = self._networks.get(newcomer) or _Network()
        arriving = len(own.arriving)
        is_many = arriving > len(self._waiting)
        return self._first(
            own.waiting if is_many else self._waiting,
            chain(self._arriving(arriving), own.arriving.items()),
            own.paused if is_many else self._paused,
        )

    def _first(
        self,
        waiting: Mapping[C, float],
        arriving: Iterable[tuple[C, float]],
        paused: Mapping[C, float],
    ) -> C | None:
        """Give the one of these that goes first. Each comes with since when, the earliest first."""
        now = self._seconds()
        looked_at = islice(arriving, LOOKED_AT)
        nobody: tuple[None, float] = (None, inf)
        waits, waits_since = next(iter(waiting.items()), nobody)
        slow, slow_since = next((each for each in looked_at if not each[0].waits_for_turn), nobody)
        deaf, deaf_since = next(iter(paused.items()), nobody)
        if now - waits_since >= SETTLED_SECONDS:
            return waits
        if now - slow_since >= SLOW_SECONDS or now - deaf_since >= SETTLED_SECONDS:
            return slow if slow_since <= deaf_since else deaf
        return (waits if waits_since <= deaf_since else deaf) or slow

    def _arriving(self, more_than: int) -> Iterator[tuple[C, float]]:
        """Give those over which a request comes, of networks that have more than so many.

        The earliest of each network first, and those of networks that have most.
        """
        for arriving in sorted(self._with_arriving, reverse=True):
            if arriving <= more_than:
                return
            for network in self._with_arriving[arriving]:
                yield from self._networks[network].arriving.items()

    def _stops(self, connection: C, key: Hashable, network: _Network[C]) -> None:
        """Count a connection as none that waits or is paused, or over which a request comes."""
        for those in (self._waiting, network.waiting, self._paused, network.paused):
            those.pop(connection, None)
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
