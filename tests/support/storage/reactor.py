"""A reactor for a store that records the result of each change."""

from collections.abc import Callable
from typing import Any

from attrs import define, field
from twisted.internet import reactor


@define(eq=False)
class RecordingReactor:
    """A reactor for a store; records each change's result, in order, before it is delivered."""

    results: list[Any] = field(factory=list)
    on_result: Callable[[Any], None] = lambda _: None
    """Called with each result once it has been delivered."""

    def callFromThread(self, call: Callable[..., Any], /, *args: object) -> None:
        reactor.callFromThread(self._deliver, call, *args)

    def _deliver(self, call: Callable[..., Any], *args: Any) -> None:
        result = args[-1] if args else None
        self.results.append(result)
        call(*args)
        self.on_result(result)
