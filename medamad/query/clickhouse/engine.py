"""The engine over ClickHouse, for the daemon."""

from collections.abc import Callable
from typing import TypeVar

from attrs import field, frozen

from medamad.clickhouse.client import Client
from medamad.domain.websites import Website
from medamad.domain.zones import DAY_MS
from medamad.lookup.referrers import Sources
from medamad.query.clickhouse.reader import ClickHouseReader
from medamad.query.clickhouse.texts import TextsOfWebsites
from medamad.query.engine import Engine
from medamad.query.period import Period
from medamad.query.reader import Reader
from medamad.query.request import Cancellation, Query

T = TypeVar("T")


@frozen(eq=False)
class ClickHouseEngine(Engine):
    """Answers from a cluster."""

    client: Client
    _texts: TextsOfWebsites = field(init=False)

    @_texts.default
    def _keep_texts(self) -> TextsOfWebsites:
        return TextsOfWebsites(self.client)

    def reader(
        self, website: int, sources: Sources, cancellation: Cancellation
    ) -> ClickHouseReader:
        """Return the reader of a website, by its number, for one request."""
        texts = self._texts.of(website, cancellation.check)
        return ClickHouseReader(self.client, website, sources, cancellation, texts)

    def read(
        self,
        website: Website,
        sources: Sources,
        cancellation: Cancellation,
        report: Callable[[Reader], T],
    ) -> T:
        """Call `report` with a reader of a website, and return what it returns.

        Raises Unavailable while too few servers answer.
        """
        return report(self.reader(website.number, sources, cancellation))

    def visitors_last_day(self, website: Website, now_ms: int) -> int:
        """Count the visitors of the last 24 hours."""
        reader = self.reader(website.number, Sources({}), Cancellation())
        selected = reader.select(Query(Period(now_ms - DAY_MS, now_ms)))
        return int(selected.total().tally.day_visitors[0])
