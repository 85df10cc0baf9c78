"""What is done in a turn of the reactor: so much, and the rest in later ones, fair to networks."""

from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

from attrs import define, field

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


C = TypeVar("C", bound=Waiting)


@define(eq=False)
class Turns(Generic[C]):
    """The connections that wait, by network: of each in the order in which they come on."""

    _call_later: Callable[..., object]
    _at_once: int = TAKEN_AT_ONCE
    _waiting: dict[Hashable, dict[C, None]] = field(factory=dict)
    """The network whose turn it is comes first."""
    _taking: dict[C, None] = field(factory=dict)
    _taken: int = 0
    _is_due: bool = False

    def takes_more(self) -> bool:
        """Tell whether a request may be taken as it comes, and count it.

        They are counted on through turns in which few come, so that usually nothing is to be done.
        """
        if self._taken >= self._at_once:
            return False
        self._taken += 1
        if self._taken == self._at_once:
            self._wait()
        return True

    def add(self, connection: C) -> None:
        """Have a connection take its next request in a later turn of the reactor."""
        self._waiting.setdefault(_key(connection), {})[connection] = None
        self._wait()

    def remove(self, connection: C) -> None:
        """Forget a connection, if it is known."""
        self._taking.pop(connection, None)
        key = _key(connection)
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

    def _next(self) -> C:
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


def _key(connection: Waiting) -> Hashable:
    return connection if connection.sender is None else connection.sender
