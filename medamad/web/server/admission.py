"""Admission: which connections stay open, what is done in a reactor turn, how much is unsent."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from enum import Enum, auto
from itertools import chain, islice
from typing import Final, Generic, Protocol, TypeVar

from attrs import define, field

from medamad.domain.errors import TooMany, Unavailable
from medamad.domain.fair_queue import FairQueue


class ConnectionState(Enum):
    """What a connection is doing."""

    HANDSHAKE = auto()
    """TLS is being negotiated."""
    IDLE = auto()
    """No request has begun."""
    READING = auto()
    """A request is arriving, or what has arrived is scheduled for a later reactor turn."""
    RESPONDING = auto()
    """A request has arrived completely and its response is being made."""
    PAUSED = auto()
    """A long response waits until the client has received what was sent."""
    REFUSED = auto()
    """An error was sent instead of a response; what still arrives is dropped."""
    CLOSING = auto()
    """No further request is read; the connection closes once all is sent."""
    CLOSED = auto()


MIN_IDLE_S: Final = 1.0
"""How long a connection must have been idle to be evicted first; on one that was just opened or
answered, a request may be under way. A client gets the same time to receive something."""
SLOW_S: Final = 0.5
"""How long a request has been arriving when it counts as slow."""
MAX_EXAMINED: Final = 5
"""How many connections of a network, or of all idle ones, are examined for eviction."""
MAX_NETWORKS_EXAMINED: Final = 100
"""In how many networks a slow request is looked for."""


class Connection(Hashable, Protocol):
    """A connection."""

    network: bytes | None
    """The network that it counts for; None if it has no limit and counts for itself."""

    @property
    def is_pending(self) -> bool:
        """Whether it waits for us, not for its client, and so is not evicted."""

    @property
    def is_sending(self) -> bool:
        """Whether its client has not received everything yet."""


C = TypeVar("C", bound=Connection)


@define
class _Group(Generic[C]):
    """The connections of a network, or all. Each dict has since when, the longest first."""

    all: dict[C, None] = field(factory=dict)
    idle: dict[C, float] = field(factory=dict)
    paused: dict[C, float] = field(factory=dict)
    reading: dict[C, float] = field(factory=dict)

    def longest_idle(self) -> tuple[float, C] | None:
        """Return the longest idle connection whose client has received everything."""
        return next(((since, one) for one, since in self._idle() if not one.is_sending), None)

    def longest_stalled(self) -> tuple[float, C] | None:
        """Return the connection whose client has received nothing for longest."""
        return _earliest(
            next(((since, one) for one, since in self.paused.items()), None),
            next(((since, one) for one, since in self._idle() if one.is_sending), None),
        )

    def slowest(self, before: float) -> tuple[float, C] | None:
        """Return a connection over which a request has been arriving since before a moment."""
        for one, since in islice(self.reading.items(), MAX_EXAMINED):
            if since > before:
                return None
            if not one.is_pending:
                return since, one
        return None

    def _idle(self) -> Iterator[tuple[C, float]]:
        return islice(self.idle.items(), MAX_EXAMINED)


@define
class Connections(Generic[C]):
    """The open connections by state and network, and which of them is evicted for a new one.

    No method except iteration goes through all of them.
    """

    _seconds: Callable[[], float]
    _every: _Group[C] = field(factory=_Group)
    _networks: dict[Hashable, _Group[C]] = field(factory=dict)
    _by_reading: dict[int, dict[Hashable, None]] = field(factory=dict)
    """The networks by how many requests are arriving from them."""

    def __len__(self) -> int:
        return len(self._every.all)

    def __iter__(self) -> Iterator[C]:
        """Return each; connections may be closed during the iteration."""
        return iter(list(self._every.all))

    def of(self, network: bytes) -> int:
        """Return how many connections a network has."""
        group = self._networks.get(network)
        return 0 if group is None else len(group.all)

    def add(self, connection: C) -> None:
        """Count a new connection, which is idle."""
        network = self._networks.setdefault(_key(connection), _Group())
        self._every.all[connection] = network.all[connection] = None
        self.enter(connection, ConnectionState.IDLE)

    def enter(self, connection: C, state: ConnectionState) -> None:
        """Record the state of a connection. One that was already reading keeps its earlier time."""
        key = _key(connection)
        network = self._networks.get(key)
        if network is None or connection not in network.all:
            return
        if state is ConnectionState.READING and connection in network.reading:
            return
        self._leave(connection, key, network)
        if state is ConnectionState.READING:
            network.reading[connection] = self._seconds()
            self._rank(key, len(network.reading) - 1, len(network.reading))
        elif state is ConnectionState.PAUSED:
            self._every.paused[connection] = network.paused[connection] = self._seconds()
        elif state is not ConnectionState.RESPONDING:
            self._every.idle[connection] = network.idle[connection] = self._seconds()

    def remove(self, connection: C) -> None:
        """Remove a connection, if it is known."""
        key = _key(connection)
        network = self._networks.get(key)
        if network is None or connection not in network.all:
            return
        self._leave(connection, key, network)
        del self._every.all[connection], network.all[connection]
        if not network.all:
            del self._networks[key]

    def to_evict(self, newcomer: bytes | None) -> C | None:
        """Return the connection to evict for one of the network `newcomer`; None if none may be.

        It is the longest idle one, if for MIN_IDLE_S. Otherwise it is the one that has made no
        progress for longest: because a request has been arriving for SLOW_S, the earliest of
        the network from which most requests are arriving; or because its client has received
        nothing for MIN_IDLE_S. If there is none either, it is one idle for less; but only one
        of the newcomer's own network where more requests are arriving from that than connections
        are idle, so that reconnecting at once does not close what others have just opened.
        """
        own = self._networks.get(newcomer) or _Group()
        reading = len(own.reading)
        larger = islice(self._with_more_reading(reading), MAX_NETWORKS_EXAMINED)
        fallback = own if reading > len(self._every.idle) else self._every
        return self._first(self._every, chain(larger, (own,)), fallback)

    def to_evict_within(self, network: bytes) -> C | None:
        """Return the connection to evict for another of a network that is at its limit.

        It is one of that network, chosen as by `to_evict`; None if none may be evicted.
        """
        own = self._networks.get(network) or _Group()
        return self._first(own, (own,), own)

    def _first(
        self, group: _Group[C], networks: Iterable[_Group[C]], fallback: _Group[C]
    ) -> C | None:
        """Return the first to evict of `group`; one of `fallback` if none is past its time.

        Slow requests are looked for in `networks`.
        """
        now = self._seconds()
        idle, stalled = group.longest_idle(), group.longest_stalled()
        if idle is not None and now - idle[0] >= MIN_IDLE_S:
            return idle[1]
        if stalled is not None and now - stalled[0] < MIN_IDLE_S:
            stalled = None
        candidates = (network.slowest(now - SLOW_S) for network in networks)
        slow = next((candidate for candidate in candidates if candidate is not None), None)
        first = _earliest(slow, stalled) or _earliest(
            fallback.longest_idle(), fallback.longest_stalled()
        )
        return None if first is None else first[1]

    def _with_more_reading(self, reading: int) -> Iterator[_Group[C]]:
        """Return the networks from which more requests are arriving, those with most first."""
        for count in sorted(self._by_reading, reverse=True):
            if count <= reading:
                return
            yield from (self._networks[network] for network in self._by_reading[count])

    def _leave(self, connection: C, key: Hashable, network: _Group[C]) -> None:
        """Remove a connection from what its state has put it in."""
        if connection in network.idle:
            del self._every.idle[connection], network.idle[connection]
        elif connection in network.paused:
            del self._every.paused[connection], network.paused[connection]
        elif connection in network.reading:
            del network.reading[connection]
            self._rank(key, len(network.reading) + 1, len(network.reading))

    def _rank(self, network: Hashable, before: int, after: int) -> None:
        """Record how many requests are arriving from a network, after a change by one."""
        if before:
            del self._by_reading[before][network]
            if not self._by_reading[before]:
                del self._by_reading[before]
        if after:
            self._by_reading.setdefault(after, {})[network] = None


def _key(connection: Connection) -> Hashable:
    return connection if connection.network is None else connection.network


def _earliest(*candidates: tuple[float, C] | None) -> tuple[float, C] | None:
    """Return the candidate with the smallest time, the first of equal ones; None if none is."""
    some = (candidate for candidate in candidates if candidate is not None)
    return min(some, key=lambda candidate: candidate[0], default=None)


REQUESTS_PER_TURN: Final = 16
"""How many requests are parsed in a reactor turn, of all connections together. A client's first
request in the next turn waits for these at most, and for one of each other network with more."""
HITS_PER_TURN: Final = 128
"""How many hits that arrive whole are taken beside them: each takes a fraction of their time."""
HANDSHAKES_PER_TURN: Final = 2
"""How many TLS handshakes continue beside them: signing with a long key takes milliseconds."""


class Scheduled(Hashable, Protocol):
    """A connection over which more has arrived than was processed."""

    @property
    def sender_network(self) -> bytes | None:
        """The network of the client; None if the connection counts for itself."""

    def run_turn(self) -> None:
        """Process the next request, or part of one."""


S = TypeVar("S", bound=Scheduled)


@define(eq=False)
class TurnScheduler(Generic[S]):
    """Bounds the work done in a reactor turn; networks alternate, and so do their connections."""

    _call_later: Callable[..., object]
    _per_turn: int = REQUESTS_PER_TURN
    _waiting: FairQueue[S] = field(factory=FairQueue)
    """By network."""
    _running: dict[S, None] = field(factory=dict)
    _started: int = 0
    _is_due: bool = False

    def try_start(self) -> bool:
        """Return whether work may be done at once, and count it.

        While there is little work it is counted across turns, so that usually no call is scheduled.
        """
        if self._started >= self._per_turn:
            return False
        self._started += 1
        if self._started * 2 >= self._per_turn:
            # Earlier turns have counted too: the next one begins with all that may be done.
            self._call_run()
        return True

    def add(self, connection: S) -> None:
        """Call a connection's `run_turn` in a later reactor turn, once."""
        network = connection.sender_network
        self._waiting.add(connection if network is None else network, connection)
        self._call_run()

    def remove(self, connection: S) -> None:
        """Remove a connection, if it is scheduled."""
        self._running.pop(connection, None)
        self._waiting.remove(connection)

    def run(self) -> None:
        """Do one reactor turn's work."""
        self._is_due = False
        while self._waiting and len(self._running) < self._per_turn:
            self._running[self._waiting.pop()] = None
        self._started = len(self._running)
        try:
            while self._running:
                connection = next(iter(self._running))
                del self._running[connection]
                connection.run_turn()
        finally:
            if self._running or self._started == self._per_turn:
                self._call_run()

    def _call_run(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._call_later(0, self.run)


MAX_UNSENT_BYTES: Final = 64 << 20
"""The maximum size of all unsent responses, to guests or to all others. One alone may be
larger."""
MAX_UNSENT_PER_NETWORK: Final = 32 << 20
"""The maximum size of those to one network, so that a slow reader does not take all. One alone may
be larger."""
_RETRY_AFTER_S: Final = 10


@define
class UnsentResponses:
    """Counts long responses from when they are made until they are sent, by network."""

    _bytes: Counter[bytes] = field(factory=Counter)

    def hold(self, network: bytes, length: int) -> Callable[[], None]:
        """Count a response. Return a function to call when it has been sent.

        Raises TooMany, Unavailable.
        """
        if network in self._bytes and self._bytes[network] + length > MAX_UNSENT_PER_NETWORK:
            raise TooMany(
                "too many long responses at once wait to be received there",
                retry_after=_RETRY_AFTER_S,
            )
        if self._bytes and self._bytes.total() + length > MAX_UNSENT_BYTES:
            raise Unavailable(
                "too many long responses at once wait to be received", retry_after=_RETRY_AFTER_S
            )
        held = Counter({network: length})
        self._bytes += held

        def sent() -> None:
            # Subtraction drops a network that has nothing left.
            self._bytes -= held

        return sent
