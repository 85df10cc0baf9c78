"""The reports by one dimension: referrers, campaigns, browsers, countries and the like."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from attrs import frozen

from medamad.domain.dimensions import Dimension
from medamad.lookup.referrers import Sources
from medamad.query import rows
from medamad.query.aggregate import Tally, bounces_and_durations, tally
from medamad.query.request import Cancellation, Query
from medamad.query.result import Result
from medamad.query.rows import Columns, Naming, Row, fractions, make_rows, page_of_rows
from medamad.query.scan import select
from medamad.storage.segments.snapshot import Snapshot


@frozen
class Column:
    """What views are counted by: the name of the column, its dimension, the names of its texts."""

    name: str
    dimension: Dimension
    naming: Naming = rows.as_stored


SOURCES_OF_REFERRERS: Final = Column("referrer", Dimension.REFERRER, rows.source)
REFERRERS: Final = Column("referrer", Dimension.REFERRER)
SOURCES: Final = Column("source", Dimension.UTM_SOURCE)
MEDIUMS: Final = Column("medium", Dimension.UTM_MEDIUM)
CAMPAIGNS: Final = Column("campaign", Dimension.UTM_CAMPAIGN)
TERMS: Final = Column("term", Dimension.UTM_TERM)
CONTENTS: Final = Column("content", Dimension.UTM_CONTENT)
BROWSERS: Final = Column("browser", Dimension.BROWSER)
SYSTEMS: Final = Column("os", Dimension.OS)
DEVICES: Final = Column("device", Dimension.DEVICE)
COUNTRIES: Final = Column("country", Dimension.COUNTRY, rows.country)
LANGUAGES: Final = Column("language", Dimension.LOCALE, rows.language)
LOCALES: Final = Column("language", Dimension.LOCALE, rows.locale)

BY_REPORT: Final = MappingProxyType(
    {
        "sources": SOURCES,
        "mediums": MEDIUMS,
        "campaigns": CAMPAIGNS,
        "terms": TERMS,
        "contents": CONTENTS,
        "browsers": BROWSERS,
        "os": SYSTEMS,
        "devices": DEVICES,
        "countries": COUNTRIES,
    }
)
"""The columns of reports that have only one, by the name of the report."""


def report(
    snapshot: Snapshot,
    query: Query,
    sources: Sources,
    cancellation: Cancellation,
    *,
    column: Column,
) -> Result[list[Row]]:
    """Return a row for each name in a column: most visitors first, then most views.

    Name, visitors and their share; unless a summary is asked for, also the bounce rate and the
    total time.
    """
    selection = select(snapshot, query, sources, cancellation)
    sums = tally(selection, column.dimension, with_durations=not query.is_brief)
    cancellation.check()
    names = snapshot.texts(column.dimension)
    if column.naming is not rows.as_stored:
        sums, names = _by_name(sums, names, column.naming, sources)
    views, visitors = sums.views, sums.visitors(of_page=query.has_path_filter)
    numbers, shown = page_of_rows(
        np.flatnonzero(views), (visitors, views), names.__getitem__, query.row_slice
    )
    columns: Columns = {
        column.name: shown,
        "visitors": visitors[numbers],
        "visitors_percentage": fractions(visitors[numbers], visitors.sum()),
    }
    if not query.is_brief:
        shown_rows = sums.take(numbers)
        columns |= bounces_and_durations(shown_rows, shown_rows.duration_ms, query)
    return Result(make_rows(columns), sums.gaps)


def _by_name(
    sums: Tally, texts: Sequence[str], name_of: Naming, sources: Sources
) -> tuple[Tally, list[str]]:
    """Return the sums by name instead of by code, and the names."""
    codes = np.flatnonzero(sums.views)
    numbers: dict[str, int] = {}
    groups = np.fromiter(
        (
            numbers.setdefault(name_of(texts[code], sources), len(numbers))
            for code in codes.tolist()
        ),
        np.intp,
        len(codes),
    )
    return sums.take(codes).grouped(groups, len(numbers)), list(numbers)
