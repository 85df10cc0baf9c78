"""The tables that are exported: their columns, whatever format they are written in."""

from collections.abc import Sequence
from enum import Enum, auto
from types import MappingProxyType
from typing import Final, TypeAlias

from attrs import field, frozen

from medamad.model.dimensions import VIEW_DIMENSIONS


class Kind(Enum):
    """What a column holds. None stands in any of them for what is not known."""

    TEXT = auto()
    WHOLE = auto()
    """Whole numbers from 0."""
    SHARE = auto()
    """Fractions from 0 to 1."""
    YES = auto()
    TIME = auto()
    """Unix milliseconds; written as instants of UTC."""


@frozen
class Column:
    """A column. One that is `derived` says in words what another says: no import looks at it."""

    name: str
    kind: Kind = Kind.TEXT
    derived: bool = False


@frozen(eq=False)
class Table:
    """A table: what it is called, and its columns in order."""

    name: str
    columns: tuple[Column, ...]
    names: tuple[str, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(column.name for column in self.columns))


Rows: TypeAlias = Sequence[Sequence[object]]
"""Some rows of a table, as one sequence of values for each column, all of one length."""


def _of_dimensions() -> tuple[Column, ...]:
    derived = {
        "referrer": Column("source", derived=True),
        "country": Column("country_name", derived=True),
        "locale": Column("language", derived=True),
    }
    found = []
    for dimension in VIEW_DIMENSIONS:
        found.append(Column(dimension.attribute))
        if dimension.attribute in derived:
            found.append(derived[dimension.attribute])
    return tuple(found)


VIEWS: Final = Table(
    "views",
    (
        Column("store"),
        Column("view", Kind.WHOLE),
        Column("time", Kind.TIME),
        *_of_dimensions(),
        Column("first_today", Kind.YES),
        Column("first_of_page", Kind.YES),
        Column("number_today", Kind.WHOLE),
        Column("width_px", Kind.WHOLE),
        Column("duration_ms", Kind.WHOLE),
    ),
)
"""`store` and `view` together name a view for good, wherever it is moved."""

EVENTS: Final = Table(
    "events",
    (
        Column("store"),
        Column("event", Kind.WHOLE),
        Column("view", Kind.WHOLE),
        Column("time", Kind.TIME),
        Column("name"),
        Column("value"),
    ),
)
"""A row for each property of each event. `view` is empty for an event of no view."""

STATISTICS: Final = Table(
    "statistics",
    (
        Column("report"),
        Column("date"),
        Column("name"),
        Column("value"),
        Column("visitors", Kind.WHOLE),
        Column("visitors_percentage", Kind.SHARE),
        Column("pageviews", Kind.WHOLE),
        Column("pageviews_percentage", Kind.SHARE),
        Column("bounce_percentage", Kind.SHARE),
        Column("duration", Kind.WHOLE),
        Column("duration_percentage", Kind.SHARE),
        Column("duration_lower_quartile", Kind.WHOLE),
        Column("duration_upper_quartile", Kind.WHOLE),
        Column("events", Kind.WHOLE),
        Column("events_percentage", Kind.SHARE),
    ),
)
"""The rows of all reports, one after the other; a cell is empty where a report has no such figure.
"""

TABLES: Final = MappingProxyType({table.name: table for table in (VIEWS, EVENTS, STATISTICS)})
