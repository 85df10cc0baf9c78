"""The queries that are compared: every statistic over all time, over a month, and filtered."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode

from attrs import evolve, frozen
from plan import DAY_MS

Filter: TypeAlias = tuple[str, str, str]
"""A field, an operator and a value."""

ALL_TIME: Final = "all time"
MONTH: Final = "last 30 days"
FILTERS: Final[dict[str, tuple[Filter, ...]]] = {
    "one browser": (("browser", "eq", "Firefox"),),
    "one page": (("path", "eq", "/journal/frost"),),
    "path contains": (("path", "contains", "soil"),),
    "a property": (("prop_name", "eq", "author"),),
    "a property's value": (("prop_name", "eq", "topic"), ("prop_value", "eq", "frost")),
}

DIMENSIONS: Final = (
    "referrers",
    "sources",
    "mediums",
    "campaigns",
    "browsers",
    "os",
    "devices",
    "countries",
    "languages",
)
_OTHER_NAMES: Final = {"grouped": "referrers by address", "locale": "languages by locale"}


@frozen
class Query:
    """A query for a statistic of the website. `case` names its period or filters."""

    statistic: str
    case: str = ALL_TIME
    summary: bool = False
    grouped: bool = True
    locale: bool = False
    by_day: bool = False
    previous: bool = False
    start_ms: int | None = None
    end_ms: int | None = None
    filters: tuple[Filter, ...] = ()
    limit: int | None = None

    @property
    def name(self) -> str:
        """Its name in tables."""
        parts = [self.statistic]
        if not self.grouped or self.locale:
            parts = [_OTHER_NAMES["locale" if self.locale else "grouped"]]
        parts += ["by day"] * self.by_day + ["with previous"] * self.previous
        parts += ["short"] * self.summary
        parts += [f"first {self.limit}"] if self.limit else []
        return ", ".join([*parts, self.case])

    @property
    def path_and_query(self) -> str:
        """The path below the website's, with the query string."""
        parameters = {f"{field}[{operator}]": value for field, operator, value in self.filters}
        flags = {
            "summary": self.summary,
            "grouped": self.grouped,
            "locale": self.locale,
            "previous": self.previous,
        }
        defaults = {"grouped": True}
        for flag, value in flags.items():
            if value is not defaults.get(flag, False):
                parameters[flag] = "true" if value else "false"
        if self.by_day:
            parameters["interval"] = "day"
        for bound, moment_ms in (("start", self.start_ms), ("end", self.end_ms)):
            if moment_ms is not None:
                moment = datetime.fromtimestamp(moment_ms // 1000, UTC)
                text = moment.strftime("%Y-%m-%dT%H:%M:%S")
                parameters[bound] = f"{text}.{moment_ms % 1000:03}Z"
        if self.limit is not None:
            parameters["limit"] = str(self.limit)
        return f"{self.statistic}?{urlencode(parameters)}"


def _statistics() -> Iterator[Query]:
    for short in (True, False):
        for statistic in ("pages", "time", *DIMENSIONS):
            yield Query(statistic, summary=short)
        yield Query("referrers", summary=short, grouped=False)
        yield Query("languages", summary=short, locale=True)
        yield Query("pages", summary=short, limit=10)
        yield Query("time", summary=short, limit=10)
    yield Query("summary")
    yield Query("properties")


def queries(since_ms: int, until_ms: int) -> Iterator[Query]:
    """Yield every query for a website whose views are in since_ms ≤ time < until_ms."""
    whole = Query("summary", start_ms=since_ms, end_ms=until_ms - 1, by_day=True)
    # Its bounds are inside segments and quarter-hour slots.
    month = _period(until_ms - 30 * DAY_MS + 4_321_987, until_ms, MONTH)
    yield evolve(whole, previous=True, case="90 days")
    yield evolve(whole, previous=True, **month)
    for query in _statistics():
        yield query
        yield evolve(query, **month)
    for case, filters in FILTERS.items():
        yield evolve(whole, previous=True, case=case, filters=filters)
        for query in _statistics():
            if query.limit is None:
                yield evolve(query, case=case, filters=filters)


def dashboards(until_ms: int) -> Iterator[list[Query]]:
    """Yield the queries of loading the dashboard, without a filter and with each."""
    for case, filters in {"": (), **FILTERS}.items():
        name = f"{MONTH}, {case}" if case else MONTH
        yield [evolve(query, case=name, filters=filters) for query in dashboard(until_ms)]


def dashboard(until_ms: int) -> list[Query]:
    """Return the fourteen queries of loading the dashboard for thirty days."""
    asked = [
        Query("summary", by_day=True, previous=True),
        *(Query(statistic) for statistic in ("pages", "time", *DIMENSIONS)),
        Query("referrers", grouped=False),
        Query("properties"),
    ]
    month = _period(until_ms - 30 * DAY_MS, until_ms, MONTH)
    return [
        evolve(query, **month, limit=None if query.statistic == "summary" else 10)
        for query in asked
    ]


def _period(start_ms: int, until_ms: int, case: str) -> dict[str, Any]:
    return {"start_ms": start_ms, "end_ms": until_ms - 1, "case": case}
