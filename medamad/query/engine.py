"""What the daemon asks of an engine, of any website."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeVar

from medamad.domain.websites import Website
from medamad.domain.zones import DAY_MS
from medamad.lookup.referrers import Sources
from medamad.query.period import Period
from medamad.query.request import Cancellation, Query

if TYPE_CHECKING:
    from medamad.query.reader import Reader  # the daemon starts without

T = TypeVar("T")


class Engine(Protocol):
    """Answers statistics, in any thread."""

    def read(
        self,
        website: Website,
        sources: Sources,
        cancellation: Cancellation,
        report: "Callable[[Reader], T]",
        *,
        leaves_out: bool = True,
    ) -> T:
        """Call `report` with a reader of a website, and return what it returns.

        Without `leaves_out`, exclusions do not apply.

        Raises Unavailable if the engine cannot answer at the moment.
        """

    def load(self, cancellation: Cancellation) -> None:
        """Load what the first statistics would have to wait for. May be called in any thread."""

    def visitors_last_day(self, website: Website, now_ms: int) -> int:
        """Count the visitors of the last 24 hours. Raises Unavailable."""
        last_day = Query(Period(now_ms - DAY_MS, now_ms))
        return self.read(
            website,
            Sources({}),
            Cancellation(),
            lambda reader: int(reader.select(last_day).series(None).tally.day_visitors[0]),
        )
