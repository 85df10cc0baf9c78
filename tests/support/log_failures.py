"""The failures that are logged while a test runs."""

import gc

from attrs import define, field
from twisted.logger import LogEvent, formatEvent
from twisted.python.failure import Failure


@define(eq=False)
class LoggedFailures:
    """The failures that were logged and not yet taken."""

    _failures: list[tuple[Failure, str]] = field(factory=list)

    def __call__(self, event: LogEvent) -> None:
        failure = event.get("log_failure")
        if isinstance(failure, Failure):
            self._failures.append((failure, formatEvent(event)))

    def take(self, *kinds: type[BaseException]) -> list[BaseException]:
        """Return the failures of some kinds, expected by the test, and forget them."""
        # Of the last generations but one: what tests before have left is of no interest.
        gc.collect(1)
        taken = [failure for failure, _ in self._failures if failure.check(*kinds)]
        self._failures = [entry for entry in self._failures if not entry[0].check(*kinds)]
        return [failure.value for failure in taken]

    def texts(self) -> list[str]:
        """Return what was logged, traceback and all."""
        return [f"{text}\n{failure.getTraceback()}" for failure, text in self._failures]
