"""Requests that were sent ahead: the connections that have some take turns."""

from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from attrs import define, field

TAKEN_AT_ONCE: Final = 16
"""How many requests sent ahead are taken in a turn of the reactor, of all connections together:
others wait for these at most before theirs are looked at."""


class Ahead(Protocol):
    """A connection with more than was taken of it."""

    def take_next(self) -> None:
        """Take the next request."""


C = TypeVar("C", bound=Ahead)


@define(eq=False)
class Turns(Generic[C]):
    """The connections that have sent requests ahead, in the order in which they come on."""

    _call_later: Callable[..., object]
    _waiting: dict[C, None] = field(factory=dict)
    _is_due: bool = False

    def add(self, connection: C) -> None:
        """Have a connection take its next request in a later turn of the reactor."""
        self._waiting[connection] = None
        self._wait()

    def remove(self, connection: C) -> None:
        """Forget a connection, if it is known."""
        self._waiting.pop(connection, None)

    def take(self) -> None:
        """Let those who have waited longest take a request each."""
        self._is_due = False
        try:
            for _ in range(min(TAKEN_AT_ONCE, len(self._waiting))):
                connection = next(iter(self._waiting))
                del self._waiting[connection]
                connection.take_next()
        finally:
            if self._waiting:
                self._wait()

    def _wait(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._call_later(0, self.take)
