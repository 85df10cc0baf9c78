"""The cells of our own files: each checked, and turned into what a row has of it."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final

from medamad.model.dimensions import PROPERTY_SEPARATOR, VIEW_DIMENSIONS
from medamad.model.errors import BadRequest
from medamad.moves.rows import AHEAD, MAX_MS, EventRow, Refused, Row, ViewRow
from medamad.stats.period import parse_instant

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
    """Give what makes rows of records that have these columns; None in them is not known.

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
    """Give a path its slash, but for that of a store of ours: that is as it is for good."""
    if isinstance(row, ViewRow) and not row.store and not row.path.startswith("/"):
        row.path = f"/{row.path}"
    return row


IS_TEXT: Final = frozenset(
    name for cells in (_VIEW, _EVENT) for name, (_, read) in cells.items() if read in (_text, _name)
)
"""The columns of which an empty cell is an empty text."""
