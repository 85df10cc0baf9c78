"""What goes on at a website now: the pages that are open, and lists of the last half hour."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from attrs import evolve

from medamad.query.period import Period
from medamad.query.reader import Reader
from medamad.query.reports import ROW_REPORTS
from medamad.query.request import NO_GAPS, Query, Result
from medamad.query.rows import Row

LISTED_MS: Final = 30 * 60_000
MAX_LISTED: Final = 10
"""The number of rows of each list."""

Live: TypeAlias = dict[str, int | list[Row]]

_BY_VIEWS: Final = Query(is_brief=True, with_views=True, order="pageviews", limit=MAX_LISTED)
_BY_VISITS: Final = Query(is_brief=True, with_visits=True, order="visits", limit=MAX_LISTED)
_LISTS: Final[Mapping[str, tuple[str, Query]]] = MappingProxyType(
    {
        "pages": ("pages", _BY_VIEWS),
        "sources": ("referrers", _BY_VISITS),
        "countries": ("countries", _BY_VISITS),
        "events": ("property_values", Query(limit=MAX_LISTED)),
    }
)
"""The report of each list in `reports.ROW_REPORTS`, and what it is asked."""


def live(reader: Reader, *, now_ms: int, keeps_visits: bool) -> Result[Live]:
    """Return the number of open pages, and the first rows of each list of the last 30 minutes.

    Pages have their views, and those with most are first; sources and countries have the visits
    that began, or without `keeps_visits` the views; events are listed by property name and value.
    """
    period = Period(now_ms - LISTED_MS, now_ms)
    content: Live = {"visitors": reader.open_pages(now_ms)}
    gaps = NO_GAPS
    for name, (report, wanted) in _LISTS.items():
        query = _BY_VIEWS if wanted.with_visits and not keeps_visits else wanted
        rows = ROW_REPORTS[report](reader, evolve(query, period=period))
        content[name] = rows.content
        gaps |= rows.gaps
    return Result(content, gaps)
