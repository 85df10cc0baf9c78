"""An import of daily figures: both passes over files whose rows are whole days.

The first pass collects the rows of all tables as columns. The second combines what the tables have
on each day, and gathers the days that the website has nothing of yet into chunks.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import tzinfo
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, evolve, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.errors import BadRequest
from medamad.domain.zones import day_at, start_of_day
from medamad.storage.import_content import Counted, DayCounts
from medamad.storage.segments import visit_counters
from medamad.storage.segments.counters import (
    BOUNCES,
    DURATION_MS,
    PAGE_VISITORS,
    SLOT_MS,
    SUMS,
    TIMED_VISITORS,
    VIEWS,
    VISITORS,
)
from medamad.storage.segments.snapshot import Snapshot
from medamad.transfer.import_rows import MAX_CHUNK_ROWS, MAX_CHUNK_TEXT
from medamad.transfer.import_survey import ImportFile, Survey
from medamad.transfer.registry import DAY_SOURCES
from medamad.transfer.rows import NUL, DayRow, DayTable, RejectedRow

_STEP_ROWS: Final = 1_000

_NAMES: Final = (
    *("views", "visitors", "page_visitors", "visits", "bounces", "time_s"),
    *("visit_views", "visit_s", "page_visits", "exits"),
)
_FIGURES: Final = len(_NAMES)
_VIEWS, _VISITORS, _PAGE_VISITORS, _VISITS, _BOUNCES, _TIME_S = range(6)
_VISIT_VIEWS, _VISIT_S, _PAGE_VISITS, _EXITS = range(6, _FIGURES)
_TOTAL_CODE: Final = np.zeros(1, np.uint32)

_Figures: TypeAlias = NDArray[np.int64]
"""Shape (_FIGURES, n), in the order of _NAMES."""
_DimensionOrTotal: TypeAlias = Dimension | None
"""None stands for the total of all views."""
_Coded: TypeAlias = tuple[NDArray[np.unsignedinteger[Any]], _Figures]
"""Codes, and the figures of each."""


_figures_of: Final = attrgetter(*_NAMES)
"""Returns the figures of a DayRow."""


@frozen(eq=False)
class _Part:
    """What a table has of a day by one dimension, and what it knows of visits."""

    dimension: _DimensionOrTotal
    coded: _Coded
    visits: Counted | None


@define(eq=False)
class _TableColumns:
    """The rows of a table."""

    table: DayTable
    day: "array[int]" = field(factory=lambda: array("i"), init=False)
    codes: "list[array[int]]" = field(init=False)
    figures: "list[array[int]]" = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.codes = [array("I") for _ in self.table.dimensions]
        self.figures = [array("I") for _ in range(_FIGURES)]


@frozen(eq=False)
class ImportDay:
    """The figures of one day from all tables, ready to be stored, and their totals."""

    day: int
    counts: Sequence[DayCounts]
    views: int
    visitors: int
    events: int
    rows: int
    """How many rows the figures come from."""


@define(eq=False)
class DayTables:
    """The rows of all tables."""

    _tables: dict[DayTable, _TableColumns] = field(factory=dict)
    """A table may be known twice: as files with different columns have it."""
    _codes: dict[Dimension, dict[str, int]] = field(factory=dict)
    _files: dict[tuple[str, int], str] = field(factory=dict)
    """Which file each day of each table comes from."""

    def add(self, row: DayRow, file: str) -> str | None:
        """Add a row of a file.

        If another file has the same day of the same table, return its name and drop the row.
        """
        table = row.table
        first_file = self._files.setdefault((table.name, row.day), file)
        if first_file != file:
            return first_file
        columns = self._tables.get(table)
        if columns is None:
            columns = self._tables[table] = _TableColumns(table)
        columns.day.append(row.day)
        for dimension, codes, text in zip(table.dimensions, columns.codes, row.texts, strict=True):
            by_text = self._codes.setdefault(dimension, {})
            codes.append(by_text.setdefault(text, len(by_text)))
        for column, figure in zip(columns.figures, _figures_of(row), strict=True):
            column.append(figure)
        return None

    @property
    def lacks_total(self) -> bool:
        """Whether there are figures about views, but no table with the total of each day."""
        tables = list(self._tables)
        return any(Dimension.PROPERTY not in table.dimensions for table in tables) and not any(
            table.is_total for table in tables
        )

    def by_day(self, zone: tzinfo) -> Iterator[ImportDay]:
        """Yield each day, in order, with the figures of all tables."""
        tables = [_SortedTable.of(columns) for columns in self._tables.values()]
        texts = {dimension: list(by_text) for dimension, by_text in self._codes.items()}
        for day in sorted({day for _, day in self._files}):
            span = (start_of_day(zone, day) * 1000, start_of_day(zone, day + 1) * 1000 - 1)
            parts = [part for table in tables for part in table.of_day(day)]
            sums_by = _combine(parts)
            counts = [
                DayCounts(
                    day,
                    span,
                    dimension,
                    [""]
                    if dimension is None
                    else [texts[dimension][code] for code in codes.tolist()],
                    sums,
                    counted,
                )
                for counted, by_dimension in ((Counted.VIEWS, sums_by), *_combine_visits(parts))
                for dimension, (codes, sums) in by_dimension.items()
            ]
            yield ImportDay(
                day=day,
                counts=counts,
                views=_total(sums_by, None, VIEWS),
                visitors=_total(sums_by, None, VISITORS),
                events=_total(sums_by, Dimension.PROPERTY, VIEWS),
                rows=sum(table.rows_of(day) for table in tables),
            )


@frozen(eq=False)
class _SortedTable:
    """The rows of a table, with an index in the order of their days."""

    table: DayTable
    codes: list[NDArray[np.uint32]]
    figures: list[NDArray[np.uint32]]
    order: NDArray[np.intp]
    days: NDArray[np.int32]

    @classmethod
    def of(cls, columns: _TableColumns) -> "_SortedTable":
        days = np.frombuffer(columns.day, np.int32)
        order = np.argsort(days, kind="stable")
        return cls(
            columns.table,
            [np.frombuffer(codes, np.uint32) for codes in columns.codes],
            [np.frombuffer(column, np.uint32) for column in columns.figures],
            order,
            days[order],
        )

    def of_day(self, day: int) -> Iterator[_Part]:
        """Yield the rows of a day for each dimension, and their sum if the table has totals."""
        begin, end = self._bounds(day)
        if begin == end:
            return
        places = self.order[begin:end]
        figures = np.stack([column[places] for column in self.figures]).astype(np.int64)
        if self.table.is_total:
            total = figures.sum(axis=1, keepdims=True)
            yield _Part(None, (_TOTAL_CODE, total), self.table.visits)
        for dimension, codes in zip(self.table.dimensions, self.codes, strict=True):
            yield _Part(dimension, (codes[places], figures), self.table.visits)

    def rows_of(self, day: int) -> int:
        """Return the number of rows of a day."""
        begin, end = self._bounds(day)
        return end - begin

    def _bounds(self, day: int) -> tuple[int, int]:
        begin, end = np.searchsorted(self.days, np.array((day, day + 1), np.int32)).tolist()
        return begin, end


def _combine(parts: Iterable[_Part]) -> dict[_DimensionOrTotal, _Coded]:
    """Return the sums of each dimension, in the order VIEWS to DURATION_MS.

    A dimension without any views is left out, and so is such a total: visitors belong to views.
    """
    combined = {}
    for dimension, (codes, figures) in _add_up_by_dimension(parts).items():
        has_views = figures[_VIEWS] > 0
        if has_views.any():
            sums = _sums(figures, is_page=dimension is Dimension.PATH)
            combined[dimension] = codes[has_views], sums[:, has_views]
    if None in combined and Dimension.PATH in combined:
        page_visitors = combined[Dimension.PATH][1][PAGE_VISITORS]
        combined[None][1][PAGE_VISITORS] = page_visitors.sum()
    return combined


def _combine_visits(
    parts: Sequence[_Part],
) -> Iterator[tuple[Counted, dict[_DimensionOrTotal, _Coded]]]:
    """Yield the sums of visits of each dimension, in the order of `segments.visit_counters`.

    Nothing is known of them without the total, and of pages nothing without the first ones.
    """
    found = {
        kind: _add_up_by_dimension(part for part in parts if part.visits is kind)
        for kind in (Counted.VISITS, Counted.PAGES, Counted.EXITS)
    }
    begun = found[Counted.VISITS]
    if None not in begun:
        return
    yield Counted.VISITS, {dimension: _visit_sums(coded) for dimension, coded in begun.items()}
    if Dimension.PATH not in begun:
        return
    codes, figures = begun[Dimension.PATH]
    first = dict(zip(codes.tolist(), figures[_VISITS].tolist(), strict=True))
    for kind, row, figure in (
        (Counted.PAGES, visit_counters.LATER + visit_counters.VISITS, _PAGE_VISITS),
        (Counted.EXITS, visit_counters.EXITS, _EXITS),
    ):
        if Dimension.PATH not in found[kind]:
            continue
        codes, figures = found[kind][Dimension.PATH]
        sums = np.zeros((visit_counters.VISIT_SUMS, len(codes)), np.int64)
        sums[row] = figures[figure]
        if kind is Counted.PAGES:
            of_first = np.array([first.get(code, 0) for code in codes.tolist()], np.int64)
            sums[row] = np.maximum(sums[row] - of_first, 0)
        yield kind, {Dimension.PATH: (codes, sums)}


def _visit_sums(coded: _Coded) -> _Coded:
    """Return a rollup's sums of visits by their first views."""
    codes, figures = coded
    sums = np.zeros((visit_counters.VISIT_SUMS, len(codes)), np.int64)
    sums[visit_counters.FIRST + visit_counters.VISITS] = figures[_VISITS]
    sums[visit_counters.FIRST + visit_counters.VIEWS] = figures[_VISIT_VIEWS]
    sums[visit_counters.FIRST + visit_counters.BOUNCES] = np.minimum(
        figures[_BOUNCES], figures[_VISITS]
    )
    sums[visit_counters.FIRST + visit_counters.DURATION_MS] = figures[_VISIT_S] * 1000
    return codes, sums


def _add_up_by_dimension(parts: Iterable[_Part]) -> dict[_DimensionOrTotal, _Coded]:
    by_dimension: dict[_DimensionOrTotal, list[_Coded]] = {}
    for part in parts:
        by_dimension.setdefault(part.dimension, []).append(part.coded)
    return {dimension: _add_up(pieces) for dimension, pieces in by_dimension.items()}


def _add_up(parts: Sequence[_Coded]) -> _Coded:
    codes, places = np.unique(np.concatenate([codes for codes, _ in parts]), return_inverse=True)
    totals = np.zeros((_FIGURES, len(codes)), np.int64)
    figures = np.concatenate([figures for _, figures in parts], axis=1)
    for total, figure in zip(totals, figures, strict=True):
        np.add.at(total, places, figure)
    return codes, totals


def _sums(figures: _Figures, *, is_page: bool) -> NDArray[np.int64]:
    """Return a rollup's sums of figures.

    Bounces are out of visits, of which a visitor may have several on a day. Visits therefore take
    the place of timed visitors, so that the bounce rate is right for any number of days. Where rows
    do not count by page, every visitor counts as the visitor of at least one page.
    """
    visitors, page_visitors, visits = figures[_VISITORS], figures[_PAGE_VISITORS], figures[_VISITS]
    sums = np.zeros((SUMS, figures.shape[1]), np.int64)
    sums[VIEWS] = figures[_VIEWS]
    sums[VISITORS] = visitors
    sums[PAGE_VISITORS] = (
        page_visitors if is_page else np.where(page_visitors > 0, page_visitors, visitors)
    )
    sums[TIMED_VISITORS] = visits
    sums[BOUNCES] = np.minimum(figures[_BOUNCES], visits)
    sums[DURATION_MS] = figures[_TIME_S] * 1000
    return sums


def _total(sums_by: dict[_DimensionOrTotal, _Coded], dimension: _DimensionOrTotal, row: int) -> int:
    return int(sums_by[dimension][1][row].sum()) if dimension in sums_by else 0


@define
class DaySurvey(Survey):
    """What files of daily figures contain."""

    days: DayTables = field(factory=DayTables)

    def add_day_row(self, file: ImportFile, row: DayRow | RejectedRow) -> None:
        """Count a row and keep its figures."""
        self.rows += 1
        if isinstance(row, RejectedRow):
            self.reject(file, row)
            return
        for dimension, text in zip(row.table.dimensions, row.texts, strict=True):
            if text.count("\0") > (dimension is Dimension.PROPERTY):
                self.reject(file, RejectedRow(row.line, dimension.attribute, NUL))
                return
        name = f"{file.path}: {row.member}" if row.member else str(file.path)
        other_file = self.days.add(row, name)
        if other_file is not None:
            field = f"{row.member}: date" if row.member else "date"
            self.reject(file, RejectedRow(row.line, field, f"{other_file} has the same day"))


def are_day_files(files: Sequence[ImportFile]) -> bool:
    """Return whether files have daily figures. Raises BadRequest if they cannot be combined."""
    sources = sorted({import_file.source for import_file in files})
    if not DAY_SOURCES.keys() & sources:
        return False
    if len(sources) > 1:
        raise BadRequest(f"FILE: expected files from one source, got {' and '.join(sources)}")
    return True


def survey_days(files: Sequence[ImportFile]) -> Iterator[DaySurvey]:
    """Read the files, yielding the survey so far after every step; the last one is complete."""
    survey = DaySurvey()
    for file in files:
        for row in file.day_rows():
            survey.add_day_row(file, row)
            if survey.rows % _STEP_ROWS == 0:
                yield survey
    if survey.days.lacks_total:
        total = DAY_SOURCES[files[0].source].total
        raise BadRequest(f"{total}: missing; this table has the totals of each day")
    yield survey


def existing_days(snapshot: Snapshot, zone: tzinfo) -> set[int]:
    """Return the local days of which a website has views, events or rollups."""
    slots = [np.zeros(0, np.int64), *(loose.time_ms // SLOT_MS for loose in snapshot.events)]
    for part in snapshot.leaves():
        part_slots = snapshot.read_leaf(
            part,
            lambda part: np.unique(
                np.concatenate([part.time_ms, part.own.time_ms, part.loose.time_ms]) // SLOT_MS
            ),
        )
        if part_slots is not None:
            slots.append(part_slots)
    slot_s = SLOT_MS // 1000
    starts_s = (np.unique(np.concatenate(slots)) * slot_s).tolist()
    # In historical zones, a day may start in the middle of a slot.
    bounds_s = [(start, start + slot_s - 1) for start in starts_s]
    for segment in snapshot.rollup_segments:
        if segment.header.day is not None:
            first_ms, last_ms = segment.header.day.span
            bounds_s.append((first_ms // 1000, last_ms // 1000))
    return {day_at(zone, second) for bounds in bounds_s for second in bounds}


@define(eq=False)
class DayGatherer:
    """Gathers new days into chunks, and counts those that are left out."""

    _tables: DayTables
    _zone: tzinfo
    _today: int
    """The first day that is not over yet."""
    _existing: AbstractSet[int]
    _before_ms: int = 0
    """Retention will remove the days that begin before."""
    days: int = 0
    views: int = 0
    visitors: int = 0
    events: int = 0
    first: int = 0
    last: int = 0
    """The first and the last day that was taken."""
    past_days: int = 0
    """Days that retention will remove."""
    days_existing: int = 0
    """Days of which the website already has something."""
    days_not_over: int = 0
    days_without_views: int = 0
    """Days without events and without known views."""
    rows: int = 0
    """How many rows were processed."""

    def gather(self) -> Iterator[list[DayCounts] | None]:
        """Process one day at each step; yield a chunk, or None if there is none yet."""
        chunk: list[DayCounts] = []
        rows = characters = 0
        for day in self._tables.by_day(self._zone):
            self.rows += day.rows
            if self._takes(day):
                for counts in _split(day.counts):
                    length = sum(map(len, counts.texts))
                    if chunk and (
                        rows + len(counts.texts) > MAX_CHUNK_ROWS
                        or characters + length > MAX_CHUNK_TEXT
                    ):
                        yield chunk
                        chunk, rows, characters = [], 0, 0
                    chunk.append(counts)
                    rows, characters = rows + len(counts.texts), characters + length
            yield None
        if chunk:
            yield chunk

    def _takes(self, day: ImportDay) -> bool:
        """Return whether a day is imported, and count it or the reason why not."""
        if day.day >= self._today:
            self.days_not_over += 1
        elif day.day in self._existing:
            self.days_existing += 1
        elif not day.views and not day.events:
            self.days_without_views += 1
        else:
            self.first = self.first if self.days else day.day
            self.last = day.day
            self.days += 1
            self.past_days += day.counts[0].span[0] < self._before_ms
            self.views += day.views
            self.visitors += day.visitors
            self.events += day.events
            return True
        return False


def _split(day_counts: Sequence[DayCounts]) -> Iterator[DayCounts]:
    """Yield counts, split where they are too large for one chunk."""
    for counts in day_counts:
        begin = characters = 0
        for place, text in enumerate(counts.texts):
            if place - begin == MAX_CHUNK_ROWS or characters + len(text) > MAX_CHUNK_TEXT:
                yield _slice(counts, begin, place)
                begin, characters = place, 0
            characters += len(text)
        yield _slice(counts, begin, len(counts.texts))


def _slice(counts: DayCounts, begin: int, end: int) -> DayCounts:
    return evolve(counts, texts=counts.texts[begin:end], sums=counts.sums[:, begin:end])
