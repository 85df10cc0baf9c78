"""The statistics by one dimension: referrers, campaigns, browsers, countries and the like."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from attrs import frozen

from medamad.domain.dimensions import Dimension
from medamad.lookup.referrers import Sources
from medamad.query import rows
from medamad.query.aggregate import Tally, figures_of_time, tally_by
from medamad.query.request import Question
from medamad.query.rows import Columns, Naming, Row, fractions, page, records
from medamad.query.scan import select
from medamad.storage.segments.snapshot import Snapshot


@frozen
class Column:
    """What is counted: the rows' name of it, the dimension, and what its texts are called."""

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
"""Those that can be counted in one way only, by the names of their reports."""


def report(snapshot: Snapshot, question: Question, sources: Sources, column: Column) -> list[Row]:
    """Return a row for every name in a column: most visitors, then most views, first.

    Name, visitors and their share; unless a summary is asked for, the bounce rate and the total
    time too.
    """
    selection = select(snapshot, question, sources)
    tally = tally_by(selection, column.dimension, timed=not question.summary)
    snapshot.check()
    names = snapshot.texts(column.dimension)
    if column.naming is not rows.as_stored:
        tally, names = _by_name(tally, names, column.naming, sources)
    views, visitors = tally.views, tally.visitors(of_page=question.names_page)
    numbers, named = page(
        np.flatnonzero(views), (visitors, views), names.__getitem__, question.rows
    )
    shares = fractions(visitors[numbers], visitors.sum())
    short: Columns = {
        column.name: named,
        "visitors": visitors[numbers],
        "visitors_percentage": shares,
    }
    if question.summary:
        return records(short)
    shown = Tally(tally.sums[:, numbers])
    return records({**short, **figures_of_time(shown, shown.duration_ms, question)})


def _by_name(
    tally: Tally, texts: Sequence[str], name_of: Naming, sources: Sources
) -> tuple[Tally, list[str]]:
    """Add up what shares a name, and give those names by their new numbers."""
    codes = np.flatnonzero(tally.views)
    numbers: dict[str, int] = {}
    found = (
        numbers.setdefault(name_of(texts[code], sources), len(numbers)) for code in codes.tolist()
    )
    groups = np.fromiter(found, np.intp, len(codes))
    return Tally(tally.sums[:, codes]).grouped(groups, len(numbers)), list(numbers)
