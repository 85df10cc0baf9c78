"""The exported tables and their columns, and parsing a record of one into a row."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from enum import Enum, IntEnum, auto
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final, TypeAlias, get_type_hints

import numpy as np
from attrs import frozen

from medamad.domain.dimensions import (
    OTHER,
    VIEW_DIMENSIONS,
    Dimension,
    Since,
    ViewFlag,
    ViewNumber,
    WidthClass,
    major_version,
)
from medamad.domain.errors import BadRequest
from medamad.domain.hits import NUMBERS_OF_HITS, StoredView
from medamad.domain.instants import parse_instant
from medamad.query import rows
from medamad.query.rows import Naming
from medamad.transfer.rows import FUTURE_TIME, MAX_MS, NUL, EventRow, HitRow, RejectedRow, ViewRow


class ColumnKind(Enum):
    """The type of a column. In any of them, None stands for an unknown value."""

    TEXT = auto()
    INTEGER = auto()
    """At least 0."""
    FRACTION = auto()
    """At least 0; a share is at most 1."""
    BOOLEAN = auto()
    TIMESTAMP = auto()
    """Unix milliseconds; written as instants in UTC."""


@frozen
class ExportColumn:
    """A column."""

    name: str
    kind: ColumnKind = ColumnKind.TEXT


@frozen(eq=False, slots=False)
class Table:
    """A table, with its columns in order."""

    name: str
    columns: tuple[ExportColumn, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(column.name for column in self.columns)


ColumnValues: TypeAlias = Sequence[Sequence[object]]
"""Some rows of a table: a sequence of values for each column, all of the same length."""


DISPLAY_NAMES: Final[Mapping[Dimension, tuple[str, Naming]]] = MappingProxyType(
    {
        Dimension.REFERRER: ("source", rows.source),
        Dimension.COUNTRY: ("country_name", rows.country),
        Dimension.LOCALE: ("language", rows.language),
    }
)
"""The columns with display names of the texts of a dimension, which imports ignore."""


_TYPE_OF: Final = MappingProxyType(get_type_hints(StoredView))
_NAMES_OF_NUMBERS: Final[Mapping[ViewNumber, Mapping[int, str]]] = MappingProxyType(
    {
        number: {member: member.name.lower() for member in kind if member}
        for number in NUMBERS_OF_HITS
        if issubclass(kind := _TYPE_OF[number.attribute], IntEnum)
    }
)
"""The texts of the numbers that have one. That of 0 is unknown."""


def number_cells(number: ViewNumber, stored: Sequence[int]) -> list[int | str | None]:
    """Return the cells of a column of numbers; None for those that are unknown."""
    names = _NAMES_OF_NUMBERS.get(number)
    return [each or None for each in stored] if names is None else [*map(names.get, stored)]


def _dimension_columns() -> Iterator[ExportColumn]:
    for dimension in VIEW_DIMENSIONS:
        yield ExportColumn(dimension.attribute)
        if dimension in DISPLAY_NAMES:
            name, _ = DISPLAY_NAMES[dimension]
            yield ExportColumn(name)


VIEWS_TABLE: Final = Table(
    "views",
    (
        ExportColumn("store"),
        ExportColumn("view", ColumnKind.INTEGER),
        ExportColumn("visit", ColumnKind.INTEGER),
        ExportColumn("time", ColumnKind.TIMESTAMP),
        *_dimension_columns(),
        *(ExportColumn(flag.attribute, ColumnKind.BOOLEAN) for flag in ViewFlag),
        *(
            ExportColumn(
                number.attribute,
                ColumnKind.TEXT if number in _NAMES_OF_NUMBERS else ColumnKind.INTEGER,
            )
            for number in NUMBERS_OF_HITS
        ),
        ExportColumn("duration_ms", ColumnKind.INTEGER),
    ),
)
"""`store` and `view` together identify a view, even when it is moved to another store.

`visit` is the number of the first view of its visit; it is empty if the visit is unknown.
"""

EVENTS_TABLE: Final = Table(
    "events",
    (
        ExportColumn("store"),
        ExportColumn("event", ColumnKind.INTEGER),
        ExportColumn("view", ColumnKind.INTEGER),
        ExportColumn("time", ColumnKind.TIMESTAMP),
        ExportColumn("name"),
        ExportColumn("value"),
    ),
)
"""A row for each property of each event. `view` is empty if the event belongs to none."""

STATISTICS_TABLE: Final = Table(
    "statistics",
    (
        ExportColumn("report"),
        ExportColumn("date"),
        ExportColumn("name"),
        ExportColumn("value"),
        ExportColumn("visitors", ColumnKind.INTEGER),
        ExportColumn("visitors_percentage", ColumnKind.FRACTION),
        ExportColumn("pageviews", ColumnKind.INTEGER),
        ExportColumn("pageviews_percentage", ColumnKind.FRACTION),
        ExportColumn("bounce_percentage", ColumnKind.FRACTION),
        ExportColumn("duration", ColumnKind.INTEGER),
        ExportColumn("duration_percentage", ColumnKind.FRACTION),
        ExportColumn("duration_lower_quartile", ColumnKind.INTEGER),
        ExportColumn("duration_upper_quartile", ColumnKind.INTEGER),
        ExportColumn("visits", ColumnKind.INTEGER),
        ExportColumn("visits_percentage", ColumnKind.FRACTION),
        ExportColumn("views_per_visit", ColumnKind.FRACTION),
        ExportColumn("visit_bounce_percentage", ColumnKind.FRACTION),
        ExportColumn("visit_duration", ColumnKind.INTEGER),
        ExportColumn("exit_percentage", ColumnKind.FRACTION),
        ExportColumn("events", ColumnKind.INTEGER),
        ExportColumn("events_percentage", ColumnKind.FRACTION),
    ),
)
"""The rows of all reports in turn; a cell is empty if its report has no such figure."""

TABLES: Final = MappingProxyType(
    {table.name: table for table in (VIEWS_TABLE, EVENTS_TABLE, STATISTICS_TABLE)}
)


def format_times(times_ms: Sequence[int]) -> list[str]:
    """Return Unix milliseconds as text such as `2026-11-21T12:00:00.123Z`."""
    times = np.asarray(times_ms, np.int64).astype("datetime64[ms]")
    texts: list[str] = np.datetime_as_string(times, unit="ms", timezone="UTC").tolist()
    return texts


MAX_TEXT: Final = 4_096
_MAX_NUMBER: Final = (1 << 63) - 1
_MAX_DURATION_MS: Final = 86_400_000
_MAX_WIDTH_PX: Final = 65_535
_SINCE: Final = frozenset((*Since, "", OTHER))
"""The limit on new values may have replaced a text."""
_BOOLEANS: Final = MappingProxyType({"true": True, "1": True, "false": False, "0": False})

ParseCell: TypeAlias = Callable[[Any], Any]
"""Returns the value of a cell: text, or a value from JSON or Parquet. Raises ValueError."""


def _text(cell: Any) -> str:
    if not isinstance(cell, str):
        raise ValueError("expected text")  # noqa: TRY004 - rejects the row, like any other value
    if len(cell) > MAX_TEXT:
        raise ValueError(f"expected at most {MAX_TEXT} characters")
    if "\0" in cell:
        raise ValueError(NUL)
    if not cell.isascii():
        try:
            cell.encode()
        except UnicodeEncodeError:
            raise ValueError("expected text without unpaired surrogates") from None
    return cell


def _integer(maximum: int) -> ParseCell:
    def parse(cell: Any) -> int:
        if isinstance(cell, str) and cell.isascii() and cell.isdigit() and len(cell) < 20:  # noqa: PLR2004 - digits of 64 bits
            cell = int(cell)
        if isinstance(cell, bool) or not isinstance(cell, int) or not 0 <= cell <= maximum:
            raise ValueError(f"expected a whole number from 0 to {maximum}")
        return cell

    return parse


def _version(cell: Any) -> str:
    return major_version(_text(cell))


_width_px: Final = _integer(_MAX_WIDTH_PX)


def _width(cell: Any) -> WidthClass:
    """Return the class of an exact width, which only files of earlier builds have."""
    return WidthClass.of(_width_px(cell))


def _number(number: ViewNumber) -> ParseCell:
    names = _NAMES_OF_NUMBERS.get(number)
    if names is None:
        return _integer((1 << 8 * number.bytes) - 1)
    member_of = {name: member for member, name in names.items()}

    def parse(cell: Any) -> int:
        if not isinstance(cell, str) or cell not in member_of:
            raise ValueError(f"expected one of {', '.join(member_of)}")
        return member_of[cell]

    return parse


def _since(cell: Any) -> str:
    if not isinstance(cell, str) or cell not in _SINCE:
        raise ValueError(f"expected one of {', '.join(Since)}")
    return cell


def _boolean(cell: Any) -> bool:
    if isinstance(cell, bool):
        return cell
    if isinstance(cell, str) and cell.lower() in _BOOLEANS:
        return _BOOLEANS[cell.lower()]
    raise ValueError("expected true or false")


def _time(cell: Any) -> int:
    if isinstance(cell, datetime) and cell.tzinfo is not None:
        time_ms = round(cell.timestamp() * 1000)
    elif isinstance(cell, str):
        try:
            time_ms = parse_instant(cell, "time").first_ms
        except BadRequest as error:
            raise ValueError(str(error).partition(": ")[2]) from None
    else:
        raise ValueError("expected a time")
    if not 0 <= time_ms <= MAX_MS:
        raise ValueError("expected a time of the years 1970 to 9999")
    return time_ms


_SHARED: Final = {"store": ("store", _text), "time": ("time_ms", _time)}
_VIEW: Final[Mapping[str, tuple[str, ParseCell]]] = MappingProxyType(
    {
        **_SHARED,
        "view": ("number", _integer(_MAX_NUMBER)),
        "visit": ("visit", _integer(_MAX_NUMBER)),
        **{dimension.attribute: (dimension.attribute, _text) for dimension in VIEW_DIMENSIONS},
        "browser_version": ("browser_version", _version),
        "os_version": ("os_version", _version),
        "since": ("since", _since),
        **{flag.attribute: (flag.attribute, _boolean) for flag in ViewFlag},
        "width_px": ("width_class", _width),
        **{number.attribute: (number.attribute, _number(number)) for number in NUMBERS_OF_HITS},
        "duration_ms": ("duration_ms", _integer(_MAX_DURATION_MS)),
    }
)
_EVENT: Final[Mapping[str, tuple[str, ParseCell]]] = MappingProxyType(
    {
        **_SHARED,
        "event": ("number", _integer(_MAX_NUMBER)),
        "view": ("view", _integer(_MAX_NUMBER)),
        "name": ("name", _text),
        "value": ("value", _text),
    }
)


def row_parser(
    columns: Iterable[str], latest_ms: int = MAX_MS
) -> Callable[[int, Mapping[str, Any]], HitRow | RejectedRow]:
    """Return a function that parses a record, with these columns, into a row.

    It takes a line number and the record, in which None stands for an unknown value. Columns with
    other names are ignored. Raises BadRequest with the name of a required column that is missing.
    """
    existing = set(columns)
    row_type: type[HitRow]
    required: tuple[str, ...]
    if "name" in existing and "path" not in existing:
        row_type, parsers, required = EventRow, _EVENT, ("time", "name", "value")
    else:
        row_type, parsers, required = ViewRow, _VIEW, ("time", "path")
    for name in required:
        if name not in existing:
            raise BadRequest(f"{name}: the file has no such column")
    used = [(name, *parsers[name]) for name in parsers if name in existing]

    def parse(line: int, record: Mapping[str, Any]) -> HitRow | RejectedRow:
        values: dict[str, Any] = {}
        for name, attribute, parse_cell in used:
            cell = record.get(name)
            if cell is None:
                if name in required:
                    return RejectedRow(line, name, "missing")
                continue
            try:
                values[attribute] = parse_cell(cell)
            except ValueError as error:
                return RejectedRow(line, name, str(error))
        if values["time_ms"] > latest_ms:
            return RejectedRow(line, "time", FUTURE_TIME)
        return _with_slash(row_type(line=line, **values))

    return parse


def _with_slash(row: HitRow) -> HitRow:
    """Return a view whose path starts with a slash; one from a store of ours stays unchanged."""
    if isinstance(row, ViewRow) and not row.store and not row.path.startswith("/"):
        row.path = f"/{row.path}"
    return row


TEXT_COLUMNS: Final = frozenset(
    name
    for parsers in (_VIEW, _EVENT)
    for name, (_, parse) in parsers.items()
    if parse in {_text, _version}
)
"""The columns in which an empty cell is an empty text."""
