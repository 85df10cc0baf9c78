"""A reactor for a store that tells what becomes of each change."""

from collections.abc import Callable
from typing import Any

from attrs import define, field
from twisted.internet import reactor


@define(eq=False)
class Listening:
    """A reactor to a store that tells what each change gave, in order, before anyone else hears."""

    results: list[Any] = field(factory=list)
    heard: Callable[[Any], None] = lambda _: None
    """Called once the result has been taken."""

    def callFromThread(self, call: Callable[..., Any], /, *args: object) -> None:
        reactor.callFromThread(self._deliver, call, *args)

    def _deliver(self, call: Callable[..., Any], *args: Any) -> None:
        result = args[-1] if args else None
        self.results.append(result)
        call(*args)
        self.heard(result)
