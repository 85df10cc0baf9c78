"""Limits on connections and unsent responses."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from enum import Enum, auto
from typing import Final, Generic, Protocol, TypeVar

from attrs import define, field

from medamad.domain.errors import TooMany, Unavailable


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


class Connection(Hashable, Protocol):
    """A connection."""

    network: bytes | None
    """The network that it counts for; None if it has no limit."""


C = TypeVar("C", bound=Connection)


@define
class _Group(Generic[C]):
    """All connections, or those of a network."""

    open: dict[C, None] = field(factory=dict)
    waiting: OrderedDict[C, None] = field(factory=OrderedDict)
    """Those that wait for their client, the longest first."""

    def longest_waiting(self) -> C | None:
        return next(iter(self.waiting), None)


@define
class Connections(Generic[C]):
    """The open connections by network, and which of them is closed for a new one.

    It is the one that has waited longest for its client: for a request, or the rest of one, or
    until the client has received something. While a response is being made, a connection stays.
    No method except iteration goes through all of them.
    """

    _all: _Group[C] = field(factory=_Group)
    _networks: dict[bytes, _Group[C]] = field(factory=dict)

    def __len__(self) -> int:
        return len(self._all.open)

    def __iter__(self) -> Iterator[C]:
        """Return each; connections may be closed during the iteration."""
        return iter(list(self._all.open))

    def of(self, network: bytes) -> int:
        """Return how many connections a network has."""
        group = self._networks.get(network)
        return 0 if group is None else len(group.open)

    def add(self, connection: C) -> None:
        """Count a new connection, which waits for its client."""
        if connection.network is not None:
            self._networks.setdefault(connection.network, _Group())
        for group in self._groups(connection):
            group.open[connection] = None
        self.enter(connection, ConnectionState.IDLE)

    def enter(self, connection: C, state: ConnectionState) -> None:
        """Record the state of a connection, if it is known."""
        if connection not in self._all.open:
            return
        for group in self._groups(connection):
            group.waiting.pop(connection, None)
            if state is not ConnectionState.RESPONDING:
                group.waiting[connection] = None

    def remove(self, connection: C) -> None:
        """Remove a connection, if it is known."""
        if connection not in self._all.open:
            return
        for group in self._groups(connection):
            del group.open[connection]
            group.waiting.pop(connection, None)
        if connection.network is not None and not self._networks[connection.network].open:
            del self._networks[connection.network]

    def to_evict(self) -> C | None:
        """Return the connection to close for a new one; None if none may be."""
        return self._all.longest_waiting()

    def to_evict_within(self, network: bytes) -> C | None:
        """Return the connection to close for a new one of a network that is at its limit."""
        return self._networks[network].longest_waiting()

    def _groups(self, connection: C) -> tuple[_Group[C], ...]:
        network = connection.network
        return (self._all,) if network is None else (self._all, self._networks[network])


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
