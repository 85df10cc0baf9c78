"""Admission: which connections stay open, whose work is done next, how much may be unread."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from itertools import chain, islice
from typing import Final, Generic, Protocol, TypeVar

from attrs import define, field

from medamad.domain.errors import TooMany, Unavailable

SETTLED_SECONDS: Final = 1.0
"""How long a connection waits until it is the first to give way: over one that has just been
opened, or answered, a request may be on its way. As long a client has to receive something."""
SLOW_SECONDS: Final = 0.5
"""How long a request is on its way until it is slow to come."""
FEW: Final = 5
"""How many connections of a network, or that wait, are looked at for one that may give way."""
MOST_NETWORKS: Final = 100
"""In how many networks one is looked for over which a request is slow to come."""


class Connection(Hashable, Protocol):
    """A connection."""

    network: bytes | None
    """What it is counted under, None where there is no bound: it stands for itself."""

    @property
    def waits_for_turn(self) -> bool:
        """Whether something has come over it that is to be taken: it gives way to nobody."""

    @property
    def is_sending(self) -> bool:
        """Whether its client has not received all yet."""


C = TypeVar("C", bound=Connection)


@define(eq=False)
class _Group(Generic[C]):
    """The connections of a network, or all."""

    all: dict[C, None] = field(factory=dict)
    waiting: dict[C, float] = field(factory=dict)
    """Since when they wait for a request, the longest waiting first."""
    paused: dict[C, float] = field(factory=dict)
    """Since when a long answer over them waits for its client, the longest first."""
    arriving: dict[C, float] = field(factory=dict)
    """Since when a request comes over them, the earliest first."""

    def idle(self) -> tuple[float, C] | None:
        """Return the one that waits longest of those whose client has received all."""
        few = islice(self.waiting.items(), FEW)
        return next(((since, one) for one, since in few if not one.is_sending), None)

    def deaf(self) -> tuple[float, C] | None:
        """Return the one whose client has received nothing for longest."""
        return _earliest(
            next(((since, one) for one, since in self.paused.items()), None),
            next(
                (
                    (since, one)
                    for one, since in islice(self.waiting.items(), FEW)
                    if one.is_sending
                ),
                None,
            ),
        )

    def slow(self, before: float) -> tuple[float, C] | None:
        """Return one over which a request has been slow to come since before a moment."""
        for one, since in islice(self.arriving.items(), FEW):
            if since > before:
                return None
            if not one.waits_for_turn:
                return since, one
        return None


@define(eq=False)
class Connections(Generic[C]):
    """The open connections: which wait for a request, over which one comes, which are answered.

    No call goes through all of them.
    """

    _seconds: Callable[[], float]
    _every: _Group[C] = field(factory=_Group)
    _networks: dict[Hashable, _Group[C]] = field(factory=dict)
    _with_arriving: dict[int, dict[Hashable, None]] = field(factory=dict)
    """The networks that have so many of those over which a request comes."""

    def __len__(self) -> int:
        return len(self._every.all)

    def __iter__(self) -> Iterator[C]:
        """Return each; connections may be closed meanwhile."""
        return iter(list(self._every.all))

    def of(self, network: bytes) -> int:
        """Return how many there are of a network."""
        found = self._networks.get(network)
        return 0 if found is None else len(found.all)

    def waits(self, connection: C) -> None:
        """Count a connection as the latest that began to wait for a request."""
        key = _key(connection)
        network = self._networks.get(key)
        if network is None:
            network = self._networks[key] = _Group()
        self._every.all[connection] = network.all[connection] = None
        self._stops(connection, key, network)
        self._every.waiting[connection] = network.waiting[connection] = self._seconds()

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
            self._every.paused[connection] = network.paused[connection] = self._seconds()

    def remove(self, connection: C) -> None:
        """Forget a connection, if it is known."""
        self.answers(connection)
        self._every.all.pop(connection, None)
        network = self._networks.get(_key(connection))
        if network is not None:
            network.all.pop(connection, None)
            if not network.all:
                del self._networks[_key(connection)]

    def giving_way(self, newcomer: bytes | None) -> C | None:
        """Return the one that gives way to a newcomer, by its network; None if none does.

        It is the one that has waited longest for a request, if for SETTLED_SECONDS. Else it is the
        one that has made no headway for longest: because a request has been slow to come for
        SLOW_SECONDS, the earliest of the network that has most requests coming; or because its
        client has received nothing for SETTLED_SECONDS. Where there is none of these either, it is
        one that has waited for less, but none of others' where the newcomer's network has more
        requests coming than connections wait: whoever comes again at once does not close what
        others have just opened.
        """
        own = self._networks.get(newcomer) or _Group()
        arriving = len(own.arriving)
        larger = islice(self._with_more(arriving), MOST_NETWORKS)
        fresh = own if arriving > len(self._every.waiting) else self._every
        return self._first(self._every, chain(larger, (own,)), fresh)

    def giving_way_within(self, network: bytes) -> C | None:
        """Return the one that gives way to a newcomer of a network where that has as many as it may.

        It is one of its own, as `giving_way` has it of all; None if none does.
        """
        own = self._networks.get(network) or _Group()
        return self._first(own, (own,), own)

    def _first(self, those: _Group[C], networks: Iterable[_Group[C]], fresh: _Group[C]) -> C | None:
        """Return the one that goes first of `those`; where none is past its time, one of `fresh`.

        Over a connection of `networks` a request may be slow to come.
        """
        now = self._seconds()
        idle, deaf = those.idle(), those.deaf()
        if idle is not None and now - idle[0] >= SETTLED_SECONDS:
            return idle[1]
        if deaf is not None and now - deaf[0] < SETTLED_SECONDS:
            deaf = None
        found = (network.slow(now - SLOW_SECONDS) for network in networks)
        slow = next((each for each in found if each is not None), None)
        first = _earliest(slow, deaf) or _earliest(fresh.idle(), fresh.deaf())
        return None if first is None else first[1]

    def _with_more(self, arriving: int) -> Iterator[_Group[C]]:
        """Return the networks over whose connections more requests come, those with most first."""
        for count in sorted(self._with_arriving, reverse=True):
            if count <= arriving:
                return
            yield from (self._networks[network] for network in self._with_arriving[count])

    def _stops(self, connection: C, key: Hashable, network: _Group[C]) -> None:
        """Count a connection as none that waits or is paused, or over which a request comes."""
        for group in (self._every, network):
            group.waiting.pop(connection, None)
            group.paused.pop(connection, None)
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


def _earliest(*found: tuple[float, C] | None) -> tuple[float, C] | None:
    """Return that which has been so for longest, the first of those that have been for as long."""
    return min((each for each in found if each is not None), key=lambda each: each[0], default=None)


TAKEN_AT_ONCE: Final = 16
"""How many requests are taken in a turn of the reactor, of all connections together: whoever comes
in the next one waits for these at most, and for one of each other network that has more."""
HANDSHAKES_AT_ONCE: Final = 2
"""How many handshakes of TLS go on beside them: signing by a long key takes milliseconds."""


class Waiting(Hashable, Protocol):
    """A connection with more than was taken of it."""

    @property
    def sender(self) -> bytes | None:
        """The network that sends, the same while it waits; None where it stands for itself."""

    def take_next(self) -> None:
        """Take the next request."""


W = TypeVar("W", bound=Waiting)


@define(eq=False)
class Turns(Generic[W]):
    """The connections that wait, by network: of each in the order in which they come on."""

    _call_later: Callable[..., object]
    _at_once: int = TAKEN_AT_ONCE
    _waiting: dict[Hashable, dict[W, None]] = field(factory=dict)
    """The network whose turn it is comes first."""
    _taking: dict[W, None] = field(factory=dict)
    _taken: int = 0
    _is_due: bool = False

    def takes_more(self) -> bool:
        """Return whether a request may be taken as it comes, and count it.

        They are counted on through turns in which few come, so that usually nothing is to be done.
        """
        if self._taken >= self._at_once:
            return False
        self._taken += 1
        if self._taken == self._at_once:
            self._wait()
        return True

    def add(self, connection: W) -> None:
        """Have a connection take its next request in a later turn of the reactor."""
        self._waiting.setdefault(_turn_key(connection), {})[connection] = None
        self._wait()

    def remove(self, connection: W) -> None:
        """Forget a connection, if it is known."""
        self._taking.pop(connection, None)
        key = _turn_key(connection)
        if key in self._waiting:
            self._waiting[key].pop(connection, None)
            if not self._waiting[key]:
                del self._waiting[key]

    def take(self) -> None:
        """Let one of each network take a request, and again, up to as many as are taken at once."""
        self._is_due = False
        while self._waiting and len(self._taking) < self._at_once:
            self._taking[self._next()] = None
        self._taken = len(self._taking)
        try:
            while self._taking:
                connection = next(iter(self._taking))
                del self._taking[connection]
                connection.take_next()
        finally:
            if self._taking or self._taken == self._at_once:
                self._wait()

    def _next(self) -> W:
        """Take one off those who wait; its network comes last then."""
        key = next(iter(self._waiting))
        of_network = self._waiting.pop(key)
        connection = next(iter(of_network))
        del of_network[connection]
        if of_network:
            self._waiting[key] = of_network
        return connection

    def _wait(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._call_later(0, self.take)


def _turn_key(connection: Waiting) -> Hashable:
    return connection if connection.sender is None else connection.sender


MOST_BYTES: Final = 64 << 20
"""How long all of them together may be, of guests and of all others. One alone may be longer."""
MOST_OF_A_NETWORK: Final = 32 << 20
"""How long those may be that one network receives, so that a slow reader does not take all. One
alone may be longer."""
_RETRY_AFTER_S: Final = 10


@define
class Unread:
    """Long answers from when they are made until they are sent, by the network that receives."""

    _bytes: Counter[bytes] = field(factory=Counter)

    def hold(self, network: bytes, length: int) -> Callable[[], None]:
        """Count an answer of so many bytes; gives what is to be called when it has been sent.

        Raises TooMany, Unavailable.
        """
        if network in self._bytes and self._bytes[network] + length > MOST_OF_A_NETWORK:
            raise TooMany(
                "too many long answers at once wait to be received there",
                retry_after=_RETRY_AFTER_S,
            )
        if self._bytes and self._bytes.total() + length > MOST_BYTES:
            raise Unavailable(
                "too many long answers at once wait to be received", retry_after=_RETRY_AFTER_S
            )
        held = Counter({network: length})
        self._bytes += held

        def sent() -> None:
            # A network that receives none any more is kept no longer.
            self._bytes -= held

        return sent
