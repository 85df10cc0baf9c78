"""Rows of whole days that another program has aggregated, held as columns."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date, tzinfo
from typing import Any, BinaryIO, Final, TypeAlias

import msgspec
import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.zones import start_of_day
from medamad.storage.import_content import DayCounts
from medamad.storage.segments.counters import (
    BOUNCES,
    DURATION_MS,
    PAGE_VISITORS,
    SUMS,
    TIMED_VISITORS,
    VIEWS,
    VISITORS,
)
from medamad.transfer.rows import Refused
from medamad.transfer.visitors import Into

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


_VIEWS, _VISITORS, _PAGE_VISITORS, _VISITS, _BOUNCES, _TIME_S = range(MEASURES)
_OF_ALL: Final = np.zeros(1, np.uint32)

_Figures: TypeAlias = NDArray[np.int64]
"""Shape (MEASURES, n), in the order of a DayRow."""
_By: TypeAlias = Dimension | None
"""By what rows count; None for the total."""
_Part: TypeAlias = tuple[NDArray[np.unsignedinteger[Any]], _Figures]
"""Codes, and the figures of each."""


@define(eq=False)
class _Rows:
    """The rows of a table."""

    table: DayTable
    day: "array[int]" = field(factory=lambda: array("i"), init=False)
    codes: "list[array[int]]" = field(init=False)
    figures: "list[array[int]]" = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.codes = [array("I") for _ in self.table.dimensions]
        self.figures = [array("I") for _ in range(MEASURES)]


@frozen(eq=False)
class Day:
    """All that is known of a day, ready to be stored; and how much that is."""

    day: int
    counts: Sequence[DayCounts]
    views: int
    visitors: int
    events: int
    rows: int
    """How many rows it is of."""


@define(eq=False)
class Days:
    """The rows of all tables."""

    _tables: dict[str, _Rows] = field(factory=dict)
    _codes: dict[Dimension, dict[str, int]] = field(factory=dict)
    _places: dict[tuple[str, int], str] = field(factory=dict)
    """Which file each day of each table is from."""

    def add(self, row: DayRow, place: str) -> str | None:
        """Keep a row of a file; gives the other file that has the same day of its table, if any."""
        table = row.table
        before = self._places.setdefault((table.name, row.day), place)
        if before != place:
            return before
        rows = self._tables.get(table.name)
        if rows is None:
            rows = self._tables[table.name] = _Rows(table)
        rows.day.append(row.day)
        for dimension, codes, text in zip(table.dimensions, rows.codes, row.texts, strict=True):
            known = self._codes.setdefault(dimension, {})
            codes.append(known.setdefault(text, len(known)))
        figures = (row.views, row.visitors, row.page_visitors, row.visits, row.bounces, row.time_s)
        for column, figure in zip(rows.figures, figures, strict=True):
            column.append(figure)
        return None

    @property
    def lacks_total(self) -> bool:
        """Whether there are figures of views, but none of what a day has in all."""
        tables = [rows.table for rows in self._tables.values()]
        return any(Dimension.PROPERTY not in table.dimensions for table in tables) and not any(
            table.is_total for table in tables
        )

    def in_order(self, zone: tzinfo) -> Iterator[Day]:
        """Give each day with what all tables say of it."""
        tables = [_Ordered.of(rows) for rows in self._tables.values()]
        texts = {dimension: list(known) for dimension, known in self._codes.items()}
        for day in sorted({day for _, day in self._places}):
            span = (start_of_day(zone, day) * 1000, start_of_day(zone, day + 1) * 1000 - 1)
            found = _by_dimension(part for table in tables for part in table.of_day(day))
            counts = [
                DayCounts(
                    day,
                    span,
                    dimension,
                    [""] if dimension is None else _texts(texts[dimension], codes),
                    sums,
                )
                for dimension, (codes, sums) in found.items()
            ]
            yield Day(
                day=day,
                counts=counts,
                views=_total(found, None, VIEWS),
                visitors=_total(found, None, VISITORS),
                events=_total(found, Dimension.PROPERTY, VIEWS),
                rows=sum(table.rows_of(day) for table in tables),
            )


@frozen(eq=False)
class _Ordered:
    """The rows of a table in the order of their days."""

    table: DayTable
    codes: list[NDArray[np.uint32]]
    figures: list[NDArray[np.uint32]]
    order: NDArray[np.intp]
    days: NDArray[np.int32]

    @classmethod
    def of(cls, rows: _Rows) -> "_Ordered":
        days = np.frombuffer(rows.day, np.int32)
        order = np.argsort(days, kind="stable")
        return cls(
            rows.table,
            [np.frombuffer(codes, np.uint32) for codes in rows.codes],
            [np.frombuffer(column, np.uint32) for column in rows.figures],
            order,
            days[order],
        )

    def of_day(self, day: int) -> Iterator[tuple[_By, _Part]]:
        """Give its rows of a day, by each dimension and in all."""
        begin, end = self._bounds(day)
        if begin == end:
            return
        places = self.order[begin:end]
        figures = np.stack([column[places] for column in self.figures]).astype(np.int64)
        if self.table.is_total:
            yield None, (_OF_ALL, figures.sum(axis=1, keepdims=True))
        for dimension, codes in zip(self.table.dimensions, self.codes, strict=True):
            yield dimension, (codes[places], figures)

    def rows_of(self, day: int) -> int:
        """Return how many rows it has of a day."""
        begin, end = self._bounds(day)
        return end - begin

    def _bounds(self, day: int) -> tuple[int, int]:
        begin, end = np.searchsorted(self.days, np.array((day, day + 1), np.int32)).tolist()
        return begin, end


def _by_dimension(parts: Iterable[tuple[_By, _Part]]) -> dict[_By, _Part]:
    """Add up what is of one dimension, as sums in the order VIEWS to DURATION_MS.

    A dimension of which no row has views is not known, nor is the total: visitors are of views.
    """
    gathered: dict[_By, list[_Part]] = {}
    for dimension, part in parts:
        gathered.setdefault(dimension, []).append(part)
    found = {}
    for dimension, of_one in gathered.items():
        codes, figures = _added_up(of_one)
        seen = figures[_VIEWS] > 0
        if seen.any():
            sums = _sums(figures, is_page=dimension is Dimension.PATH)
            found[dimension] = codes[seen], sums[:, seen]
    if None in found and Dimension.PATH in found:
        found[None][1][PAGE_VISITORS] = found[Dimension.PATH][1][PAGE_VISITORS].sum()
    return found


def _added_up(parts: Sequence[_Part]) -> _Part:
    codes, places = np.unique(np.concatenate([codes for codes, _ in parts]), return_inverse=True)
    figures = np.zeros((MEASURES, len(codes)), np.int64)
    for row, added in zip(
        figures, np.concatenate([part[1] for part in parts], axis=1), strict=True
    ):
        np.add.at(row, places, added)
    return codes, figures


def _sums(figures: _Figures, *, is_page: bool) -> NDArray[np.int64]:
    """Return sums of figures.

    Bounces are of visits, and a visitor may have had several on a day. So visits stand for the
    timed visitors: the share of bounces is theirs, of one day and of many, also where the days are
    small. Of what is no page, visitors count for views of a page at least once.
    """
    visitors, of_page, visits = figures[_VISITORS], figures[_PAGE_VISITORS], figures[_VISITS]
    sums = np.zeros((SUMS, figures.shape[1]), np.int64)
    sums[VIEWS] = figures[_VIEWS]
    sums[VISITORS] = visitors
    sums[PAGE_VISITORS] = of_page if is_page else np.where(of_page > 0, of_page, visitors)
    sums[TIMED_VISITORS] = visits
    sums[BOUNCES] = np.minimum(figures[_BOUNCES], visits)
    sums[DURATION_MS] = figures[_TIME_S] * 1000
    return sums


def _total(found: dict[_By, _Part], dimension: _By, row: int) -> int:
    return int(found[dimension][1][row].sum()) if dimension in found else 0


def _texts(known: Sequence[str], codes: NDArray[Any]) -> list[str]:
    return [known[code] for code in codes.tolist()]
