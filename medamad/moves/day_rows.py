"""Rows of tables in which another program has added up its days."""

from collections.abc import Callable, Iterator
from datetime import date
from typing import BinaryIO, Final, TypeAlias

import msgspec
from attrs import frozen

from medamad.model.dimensions import Dimension
from medamad.moves.rows import Refused
from medamad.moves.visits import Into

MOST: Final = (1 << 32) - 1
"""The greatest figure of a row."""
MEASURES: Final = 6
_EPOCH: Final = date(1970, 1, 1).toordinal()
_DATE_LENGTH: Final = len("2026-01-31")


@frozen
class DayTable:
    """A table: by what its rows count, and whether they are what a day has in all."""

    name: str
    dimensions: tuple[Dimension, ...] = ()
    is_total: bool = False


class DayRow(msgspec.Struct):
    """A row. The texts are of the table's dimensions, in the form in which they are stored.

    Of bounces it is known among how many `visits` they were: 0 where it is not. `time_s` is how
    long all of the views were together.
    """

    table: DayTable
    day: int
    """The local date, as the number of days since 1970-01-01."""
    texts: tuple[str, ...] = ()
    views: int = 0
    """Events, where the rows count by property."""
    visitors: int = 0
    page_visitors: int = 0
    visits: int = 0
    bounces: int = 0
    time_s: int = 0
    line: int = 0
    place: str = ""
    """What the line is of: a file within the file."""


DayReader: TypeAlias = Callable[[BinaryIO, Into], Iterator[DayRow | Refused]]


def day_of(text: str) -> int:
    """Read a date such as 2026-01-31. Raises ValueError."""
    day = date.fromisoformat(text).toordinal() - _EPOCH
    if day < 0 or len(text) != _DATE_LENGTH:
        raise ValueError(text)
    return day


def date_of(day: int) -> str:
    """Write the date of a day."""
    return date.fromordinal(day + _EPOCH).isoformat()
