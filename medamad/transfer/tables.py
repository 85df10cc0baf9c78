"""The exported tables: their columns, and how each cell is written and checked."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import field, frozen

from medamad.domain.dimensions import PROPERTY_SEPARATOR, VIEW_DIMENSIONS
from medamad.domain.errors import BadRequest
from medamad.query.period import parse_instant
from medamad.transfer.rows import AHEAD, MAX_MS, EventRow, Refused, Row, ViewRow


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


def written(times_ms: Sequence[int]) -> list[str]:
    """Return Unix milliseconds in words: `2026-11-21T12:00:00.123Z`."""
    moments = np.asarray(times_ms, np.int64).astype("datetime64[ms]")
    found: list[str] = np.datetime_as_string(moments, unit="ms", timezone="UTC").tolist()
    return found


MAX_TEXT: Final = 4_096
_MAX_NUMBER: Final = (1 << 63) - 1
_MAX_DURATION_MS: Final = 86_400_000
_MAX_SMALL: Final = 65_535
_BOOLEANS: Final = MappingProxyType({"true": True, "1": True, "false": False, "0": False})

Read = Callable[[Any], Any]
"""Reads a cell: a text, or what JSON or Parquet makes of it. Raises ValueError."""


def _text(cell: Any) -> str:
    if not isinstance(cell, str):
        raise ValueError("expected a text")  # noqa: TRY004 - whatever is wrong, it is refused
    if len(cell) > MAX_TEXT:
        raise ValueError(f"expected at most {MAX_TEXT} characters")
    if not cell.isascii():
        try:
            cell.encode()
        except UnicodeEncodeError:
            raise ValueError("expected text without half a surrogate pair") from None
    return cell


def _name(cell: Any) -> str:
    name = _text(cell)
    if PROPERTY_SEPARATOR in name:
        raise ValueError("expected text without NUL")
    return name


def _integer(most: int) -> Read:
    def read(cell: Any) -> int:
        if isinstance(cell, str) and cell.isascii() and cell.isdigit() and len(cell) < 20:  # noqa: PLR2004 - digits of 64 bits
            cell = int(cell)
        if isinstance(cell, bool) or not isinstance(cell, int) or not 0 <= cell <= most:
            raise ValueError(f"expected a whole number from 0 to {most}")
        return cell

    return read


def _boolean(cell: Any) -> bool:
    if isinstance(cell, bool):
        return cell
    if isinstance(cell, str) and cell.lower() in _BOOLEANS:
        return _BOOLEANS[cell.lower()]
    raise ValueError("expected true or false")


def _time(cell: Any) -> int:
    if isinstance(cell, datetime) and cell.tzinfo is not None:
        found = round(cell.timestamp() * 1000)
    elif isinstance(cell, str):
        try:
            found = parse_instant(cell, "time").first_ms
        except BadRequest as error:
            raise ValueError(str(error).partition(": ")[2]) from None
    else:
        raise ValueError("expected a time")
    if not 0 <= found <= MAX_MS:
        raise ValueError("expected a time of the years 1970 to 9999")
    return found


_OF_BOTH: Final = {"store": ("store", _text), "time": ("time_ms", _time)}
_VIEW: Final[Mapping[str, tuple[str, Read]]] = MappingProxyType(
    {
        **_OF_BOTH,
        "view": ("number", _integer(_MAX_NUMBER)),
        **{dimension.attribute: (dimension.attribute, _text) for dimension in VIEW_DIMENSIONS},
        "first_today": ("first_today", _boolean),
        "first_of_page": ("first_of_page", _boolean),
        "number_today": ("number_today", _integer(_MAX_SMALL)),
        "width_px": ("width_px", _integer(_MAX_SMALL)),
        "duration_ms": ("duration_ms", _integer(_MAX_DURATION_MS)),
    }
)
_EVENT: Final[Mapping[str, tuple[str, Read]]] = MappingProxyType(
    {
        **_OF_BOTH,
        "event": ("number", _integer(_MAX_NUMBER)),
        "view": ("view", _integer(_MAX_NUMBER)),
        "name": ("name", _name),
        "value": ("value", _text),
    }
)


def row_maker(
    columns: Iterable[str], latest_ms: int = MAX_MS
) -> Callable[[int, Mapping[str, Any]], Row | Refused]:
    """Return what makes rows of records that have these columns; None in them is not known.

    Raises BadRequest naming the column that is missing. Columns of other names are passed over.
    """
    there = set(columns)
    made: type[ViewRow | EventRow]
    needed: tuple[str, ...]
    if "name" in there and "path" not in there:
        made, cells, needed = EventRow, _EVENT, ("time", "name", "value")
    else:
        made, cells, needed = ViewRow, _VIEW, ("time", "path")
    for name in needed:
        if name not in there:
            raise BadRequest(f"{name}: there is no such column")
    known = [(name, *cells[name]) for name in cells if name in there]

    def make(line: int, record: Mapping[str, Any]) -> Row | Refused:
        values: dict[str, Any] = {}
        for name, attribute, read in known:
            cell = record.get(name)
            if cell is None:
                if name in needed:
                    return Refused(line, name, "it is missing")
                continue
            try:
                values[attribute] = read(cell)
            except ValueError as error:
                return Refused(line, name, str(error))
        if values["time_ms"] > latest_ms:
            return Refused(line, "time", AHEAD)
        return _rooted(made(line=line, **values))

    return make


def _rooted(row: ViewRow | EventRow) -> ViewRow | EventRow:
    """Return a path its slash, but for that of a store of ours: that is as it is for good."""
    if isinstance(row, ViewRow) and not row.store and not row.path.startswith("/"):
        row.path = f"/{row.path}"
    return row


IS_TEXT: Final = frozenset(
    name for cells in (_VIEW, _EVENT) for name, (_, read) in cells.items() if read in (_text, _name)
)
"""The columns of which an empty cell is an empty text."""
