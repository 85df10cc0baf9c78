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
    INTEGER = auto()
    """From 0."""
    FRACTION = auto()
    """From 0 to 1."""
    BOOLEAN = auto()
    TIMESTAMP = auto()
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
        Column("view", Kind.INTEGER),
        Column("time", Kind.TIMESTAMP),
        *_of_dimensions(),
        Column("first_today", Kind.BOOLEAN),
        Column("first_of_page", Kind.BOOLEAN),
        Column("number_today", Kind.INTEGER),
        Column("width_px", Kind.INTEGER),
        Column("duration_ms", Kind.INTEGER),
    ),
)
"""`store` and `view` together name a view for good, wherever it is moved."""

EVENTS: Final = Table(
    "events",
    (
        Column("store"),
        Column("event", Kind.INTEGER),
        Column("view", Kind.INTEGER),
        Column("time", Kind.TIMESTAMP),
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
        Column("visitors", Kind.INTEGER),
        Column("visitors_percentage", Kind.FRACTION),
        Column("pageviews", Kind.INTEGER),
        Column("pageviews_percentage", Kind.FRACTION),
        Column("bounce_percentage", Kind.FRACTION),
        Column("duration", Kind.INTEGER),
        Column("duration_percentage", Kind.FRACTION),
        Column("duration_lower_quartile", Kind.INTEGER),
        Column("duration_upper_quartile", Kind.INTEGER),
        Column("events", Kind.INTEGER),
        Column("events_percentage", Kind.FRACTION),
    ),
)
"""The rows of all reports, one after the other; a cell is empty where a report has no such figure.
"""

TABLES: Final = MappingProxyType({table.name: table for table in (VIEWS, EVENTS, STATISTICS)})
