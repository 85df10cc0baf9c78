"""The inner loops of queries: which views of parts match, their sums, and the views of visits.

They are compiled: kernel.c says how, and hatch_build.py makes the library. They run without the
interpreter's lock. Where there is no library, numpy does the same.
"""

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from itertools import chain
from pathlib import Path
from threading import Lock, local
from typing import Any, Final, Protocol, Self, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.build import GENERATED
from medamad.query.quantiles import GroupedDurations, Quartiles
from medamad.storage.segments.counters import SUMS, keys_of, sums_of
from medamad.storage.segments.format import Integers, MappedColumn

_FEW: Final = 4
"""Comparing with a few codes is faster than looking each of them up."""
_SMALL_CODES: Final = 1 << 16
"""Codes below this are looked up without a comparison."""
_BUCKETS: Final = 64
"""The BUCKETS of kernel.c."""
_SLOTS: Final = 6
"""The most buckets that the three quartiles of a group are in."""
_MOST_GROUPS: Final = 1 << 17
"""For more groups, counting the durations in buckets would take too much memory."""
_SPARSE: Final = 4
_ANY_SIZE: Final = 1 << 32
"""No part has more views."""
_OBJECTS_BYTES: Final = 1_000
"""What the views of a part take besides their columns."""
_WORTH_HALVING: Final = 1 << 19
"""For fewer views, another thread would begin too late to help."""
_LINE: Final = 8
"""The 64-bit numbers of a `sums` in kernel.c."""


def _address_of(column: NDArray[Any]) -> int:
    """Return where a column is in memory. Raises ValueError if its numbers are not in a row."""
    if isinstance(column, MappedColumn) and hasattr(column, "address"):
        return column.address
    if not column.flags.c_contiguous:
        raise ValueError("the numbers of a column must follow each other")
    address: int = column.__array_interface__["data"][0]
    return address


@frozen(eq=False)
class CodeTable:
    """Which codes match: `mask[code]`. Greater codes do not."""

    mask: NDArray[np.bool_]
    _few: tuple[int, ...] | None = field(init=False)
    """The matching codes, None if there are more than a few."""
    _entries: NDArray[np.bool_] = field(init=False)
    """The mask with zeros after it."""
    described: list[int] = field(init=False)
    """The `filter` of kernel.c."""

    @_few.default
    def _find_few(self) -> tuple[int, ...] | None:
        codes = np.flatnonzero(self.mask)
        return tuple(codes.tolist()) if len(codes) <= _FEW else None

    @_entries.default
    def _pad(self) -> NDArray[np.bool_]:
        entries = np.zeros(max(len(self.mask), _SMALL_CODES) + 1, np.bool_)
        entries[: len(self.mask)] = self.mask
        return entries

    def matches(self, codes: Integers) -> NDArray[np.bool_]:
        """Return which codes match."""
        if self._few is None:
            return self._entries.take(codes, mode="clip")
        return _equal_to_any(codes, self._few)

    @described.default
    def _describe(self) -> list[int]:
        few = () if self._few is None else self._few
        count = -1 if self._few is None else len(few)
        padding = (0,) * (_FEW - len(few))
        return [_address_of(self._entries), len(self._entries) - 1, count, *few, *padding]


def lookup(codes: Integers, matching_codes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which codes match, none of which may be beyond the matching ones."""
    few = np.flatnonzero(matching_codes)
    return matching_codes.take(codes) if len(few) > _FEW else _equal_to_any(codes, few.tolist())


def _equal_to_any(codes: Integers, few: Iterable[int]) -> NDArray[np.bool_]:
    mask = np.zeros(len(codes), np.bool_)
    greatest = np.iinfo(codes.dtype).max
    for code in few:
        if code <= greatest:
            mask |= codes == codes.dtype.type(code)
    return mask


ONES: Final = CodeTable(np.array([False, True]))
"""Matches the ones of a mask that stands in the place of codes."""


NO_COLUMN: Final = np.zeros(0, np.uint8)


@define(eq=False)
class PartViews:
    """Views of a part: the rows from `begin` to before `end` that match every filter.

    `matching` has the column that each filter looks at, None where all views match. `numbers` are
    what the views are added up by, with their flags and durations. All are columns of the part.
    `same_number` makes such a column.
    """

    begin: int
    end: int
    matching: Sequence[NDArray[Any] | None]
    numbers: Integers = NO_COLUMN
    flags: NDArray[np.uint8] = NO_COLUMN
    duration_ms: Integers | None = None
    _described: Sequence[int] | None = field(default=None, init=False)

    def size_bytes(self) -> int:
        """Return about the memory that they take, but for columns in the mapped file."""
        columns = (self.numbers, self.flags, self.duration_ms, *self.matching)
        return _OBJECTS_BYTES + sum(
            column.nbytes
            for column in columns
            if column is not None and type(column) is not MappedColumn and any(column.strides)
        )

    @property
    def described(self) -> Sequence[int]:
        """The `views` of kernel.c."""
        if self._described is not None:
            return self._described
        described = [self.begin, self.end]
        if self.numbers.strides == (0,):
            described += (_address_of(self.numbers[:1]), 0)
        else:
            described += (_address_of(self.numbers), self.numbers.itemsize)
        for column in (self.flags, self.duration_ms, *self.matching):
            described += (0, 0) if column is None else (_address_of(column), column.itemsize)
        # Assigned as a whole: other threads may do the same.
        self._described = described
        return described


def same_number(number: int) -> NDArray[np.uint32]:
    """Return a column for any part that has the same number for each view."""
    return np.broadcast_to(np.array(number, np.uint32), (_ANY_SIZE,))


@frozen(eq=False)
class Groups:
    """Groups 0 to count - 1 of numbers: `of[number]`, or the last one of `of` for greater numbers.

    The group `count` stands for none.
    """

    of: NDArray[np.uint32]
    count: int


PartRows: TypeAlias = NDArray[np.intp] | slice
"""Rows of a part."""


@frozen(eq=False)
class PlacedViews:
    """Views of visits, shape (n,): their rows in a part, and the place of the visit of each.

    `duration_ms` is a column of the part; `is_late` has a bit for each of its rows, the lowest of a
    byte first: whether the view has an event that happened after it. None counts for zeros.
    """

    rows: NDArray[np.intp]
    visits: NDArray[np.int32]
    duration_ms: Integers | None
    is_late: NDArray[np.uint8] | None


@frozen(eq=False)
class SumsOfVisits:
    """By the place of a visit: its views, their durations, and whether there are late events."""

    views: NDArray[np.int64]
    duration_ms: NDArray[np.int64]
    has_late: NDArray[np.bool_]

    @classmethod
    def of(cls, size: int) -> Self:
        """Return the sums of visits without views."""
        views, duration_ms = np.zeros((2, size), np.int64)
        return cls(views, duration_ms, np.zeros(size, np.bool_))


Batch: TypeAlias = Sequence[PartViews]
"""Views of some parts."""
Batches: TypeAlias = Callable[[], Iterable[Batch]]
"""Returns the same batches each time."""


@frozen(eq=False)
class CountedDurations:
    """Batches, and what `Loops.count_durations` has returned of them."""

    batches: Batches
    counts: NDArray[np.uint32]


class Loops(Protocol):
    """The loops, compiled or not."""

    def views_of_visits(
        self, offsets: Integers, place_of: NDArray[np.int32]
    ) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Return the rows of the n views whose visit has a place, ascending, and these places.

        A visit's first view is `offset - 1` rows before each of its views; an offset of 0 is
        unknown. `place_of`, shape (n + 1,), has the place of the visit that each view begins, -1
        for none and at the end.
        """

    def first_rows(self, offsets: Integers, rows: PartRows) -> NDArray[np.intp]:
        """Return the row of the first view of the visit of each of some views.

        It is -1 if it is unknown or before the part, and for rows that the part does not have.
        """

    def begin_visits(
        self, offsets: Integers, rows: PartRows, left_out: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Return where the visits of some views begin, ascending, but for some rows.

        And `place_of` for `views_of_visits`: the visits are numbered in this order.
        """

    def sum_visits(self, views: PlacedViews, sums: SumsOfVisits) -> None:
        """Add views to the sums of the visits that they belong to."""

    def distinct_pairs(
        self, visits: NDArray[np.int32], numbers: NDArray[np.uint32]
    ) -> NDArray[np.intp]:
        """Return the indices of the first of each of the different pairs, ascending."""

    def add_by_code(
        self,
        codes: NDArray[Any],
        columns: Sequence[NDArray[Any]],
        least: int,
        sums: NDArray[np.int64],
    ) -> None:
        """Add rows to the sums of their codes: 1, and what each column has.

        `sums`, shape (k + 1, 1 + columns), has those of the codes from `least` on, and may be used
        for anything in its last row.
        """

    def select(self, views: PartViews, tables: Sequence[CodeTable]) -> NDArray[np.intp]:
        """Return the rows of the views that match, ascending."""

    def gather(self, batch: Batch, tables: Sequence[CodeTable]) -> Batch:
        """Return copies of the columns of the views that match, in no order.

        Their durations must be known. Without flags, the copies have none.
        """

    def tally(
        self, batches: Iterable[Batch], tables: Sequence[CodeTable], size: int
    ) -> NDArray[np.int64]:
        """Return the sums of the views that match, by their numbers 0 to size - 1.

        Shape (SUMS, size), in the order of medamad.storage.segments.counters. Views with other
        numbers do not count. Either all of a batch have durations, or none.
        """

    def mark_views(
        self, properties: Integers, rows: Integers, table: CodeTable, mask: NDArray[np.bool_]
    ) -> None:
        """Set the mask of the rows of views that have an event with a matching property."""

    def count_durations(
        self, batches: Batches, tables: Sequence[CodeTable], groups: Groups
    ) -> NDArray[np.uint32] | None:
        """Count the durations of the views that match, as far as it helps to find quartiles.

        Shape (2, groups + 1, b): a row for each group, and one for none. None if it does not help.
        """

    def quartiles(
        self,
        batches: Batches,
        tables: Sequence[CodeTable],
        groups: Groups,
        counted: CountedDurations | None = None,
    ) -> Quartiles:
        """Return the quartiles of the durations of the views that match, by group.

        They include those of other batches, which were counted.
        """


@frozen(eq=False)
class NumpyLoops:
    """The loops in numpy."""

    def views_of_visits(
        self, offsets: Integers, place_of: NDArray[np.int32]
    ) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Return the rows of the views whose visit has a place, ascending, and these places."""
        rows = np.arange(len(offsets))
        first_rows = rows + 1 - offsets.astype(np.int64)
        first_rows[(first_rows < 0) | (first_rows > rows)] = -1
        places = place_of.take(first_rows, mode="wrap")
        rows = np.flatnonzero(places >= 0)
        return rows, places[rows]

    def first_rows(self, offsets: Integers, rows: PartRows) -> NDArray[np.intp]:
        """Return the row of the first view of the visit of each of some views."""
        if isinstance(rows, slice):
            rows = np.arange(len(offsets))[rows]
        is_here = (rows >= 0) & (rows < len(offsets))
        first_rows: NDArray[np.intp] = rows + 1
        first_rows[is_here] -= offsets[rows[is_here]].astype(np.intp)
        first_rows[~is_here | (first_rows < 0) | (first_rows > rows)] = -1
        return first_rows

    def begin_visits(
        self, offsets: Integers, rows: PartRows, left_out: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Return where the visits of some views begin, and their numbers in this order."""
        # The last place is that of -1.
        is_begin = np.zeros(len(offsets) + 1, np.bool_)
        is_begin[self.first_rows(offsets, rows)] = True
        is_begin[-1] = False
        is_begin[left_out] = False
        begins = np.flatnonzero(is_begin)
        return begins, place_table(begins, len(offsets))

    def sum_visits(self, views: PlacedViews, sums: SumsOfVisits) -> None:
        """Add views to the sums of the visits that they belong to."""
        np.add.at(sums.views, views.visits, 1)
        if views.duration_ms is not None:
            added = views.duration_ms[views.rows].astype(np.int64)
            np.add.at(sums.duration_ms, views.visits, added)
        if views.is_late is not None:
            is_late = np.unpackbits(views.is_late, bitorder="little").astype(np.bool_)
            sums.has_late[views.visits[is_late[views.rows]]] = True

    def distinct_pairs(
        self, visits: NDArray[np.int32], numbers: NDArray[np.uint32]
    ) -> NDArray[np.intp]:
        """Return the indices of the first of each of the different pairs, ascending."""
        pairs = visits.astype(np.int64) << 32 | numbers
        return np.sort(np.unique(pairs, return_index=True)[1])

    def add_by_code(
        self,
        codes: NDArray[Any],
        columns: Sequence[NDArray[Any]],
        least: int,
        sums: NDArray[np.int64],
    ) -> None:
        """Add rows to the sums of their codes: 1, and what each column has."""
        places = codes.astype(np.int64) - least
        size = len(sums) - 1
        places[(places < 0) | (places > size)] = size
        sums[:, 0] += np.bincount(places, minlength=size + 1)
        for place, column in enumerate(columns, start=1):
            # Weights are floats, which are exact for these sums.
            sums[:, place] += np.bincount(places, column, size + 1).astype(np.int64)

    def select(self, views: PartViews, tables: Sequence[CodeTable]) -> NDArray[np.intp]:
        """Return the rows of the views that match, ascending."""
        mask = np.ones(views.end - views.begin, np.bool_)
        for column, table in zip(views.matching, tables, strict=True):
            if column is not None:
                some = column[views.begin : views.end]
                mask &= some if some.dtype == np.bool_ else table.matches(some)
        rows = np.flatnonzero(mask)
        rows += views.begin
        return rows

    def gather(self, batch: Batch, tables: Sequence[CodeTable]) -> Batch:
        """Return copies of the columns of the views that match."""
        gathered = []
        for views in batch:
            rows = self.select(views, tables)
            flags = views.flags.take(rows) if len(views.flags) else NO_COLUMN
            columns = (views.numbers[rows], flags, _durations(views).take(rows))
            gathered.append(PartViews(0, len(rows), [], *columns))
        return gathered

    def tally(
        self, batches: Iterable[Batch], tables: Sequence[CodeTable], size: int
    ) -> NDArray[np.int64]:
        """Return the sums of the views that match, by their numbers 0 to size - 1."""
        sums = np.zeros((SUMS, size), np.int64)
        for batch in batches:
            keys: list[Integers] = [np.zeros(0, np.uint16)]
            duration_ms: list[Integers] = []
            for views in batch:
                rows = self.select(views, tables)
                numbers = views.numbers[rows]
                is_out = numbers >= size
                if is_out.any():
                    rows, numbers = rows[~is_out], numbers[~is_out]
                keys.append(keys_of(numbers, views.flags.take(rows)))
                if views.duration_ms is not None:
                    duration_ms.append(views.duration_ms.take(rows))
            timed = np.concatenate(duration_ms) if duration_ms else None
            sums += sums_of(np.concatenate(keys), timed, size)
        return sums

    def mark_views(
        self, properties: Integers, rows: Integers, table: CodeTable, mask: NDArray[np.bool_]
    ) -> None:
        """Set the mask of the rows of views that have an event with a matching property."""
        mask[rows.compress(table.matches(properties))] = True

    def count_durations(
        self, _batches: Batches, _tables: Sequence[CodeTable], _groups: Groups
    ) -> None:
        """Return None: all durations are sorted."""

    def quartiles(
        self,
        batches: Batches,
        tables: Sequence[CodeTable],
        groups: Groups,
        counted: CountedDurations | None = None,
    ) -> Quartiles:
        """Return the quartiles of the durations of the views that match, by group."""
        if counted is not None:
            raise ValueError("these loops count no durations")
        durations = GroupedDurations(groups.count + 1)
        for views in chain.from_iterable(batches()):
            rows = self.select(views, tables)
            of_rows = groups.of.take(views.numbers[rows], mode="clip")
            durations.add(of_rows, _durations(views).take(rows))
        found = durations.quartiles()
        return Quartiles(
            *(column[..., : groups.count] for column in (found.counts, found.low_ms, found.high_ms))
        )


@define(eq=False)
class _Helper:
    """Threads, one fewer than processors, each of which takes half of a query's work if it is idle.

    They run compiled loops alone, which do not hold the interpreter's lock.
    """

    _idle: int = field(factory=lambda: len(os.sched_getaffinity(0)) - 1)
    _lock: Lock = field(factory=Lock)
    _threads: ThreadPoolExecutor | None = None

    def do_halves(self, do: Callable[[int, Batch], None], batch: Batch) -> None:
        """Call `do` with 0 and with 1, each with half of a batch, the same for the same batch."""
        if sum(views.end - views.begin for views in batch) < _WORTH_HALVING:
            do(0, batch)
            return
        with self._lock:
            has_helper = self._idle > 0
            self._idle -= has_helper
            if has_helper and self._threads is None:
                self._threads = ThreadPoolExecutor(self._idle + 1, "query-half")
        if not has_helper or self._threads is None:
            do(0, batch[::2])
            do(1, batch[1::2])
            return
        other = self._threads.submit(do, 1, batch[1::2])
        try:
            do(0, batch[::2])
        finally:
            wait([other])
            with self._lock:
                self._idle += 1
        other.result()


@frozen(eq=False)
class CompiledLoops:
    """The loops of kernel.c."""

    _library: ctypes.CDLL
    _helper: _Helper = field(factory=_Helper)
    _scratch: local = field(factory=local)
    """Each thread's place for the rows of a part, which is too large to be allocated each time."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load the library. Raises OSError."""
        library = ctypes.CDLL(str(path))
        address, number = ctypes.c_void_p, ctypes.c_int64
        library.medamad_select.argtypes = (address, address, number, address)
        library.medamad_select.restype = number
        parts = (address, number, address, number)
        library.medamad_tally.argtypes = (*parts, address, number)
        library.medamad_tally.restype = None
        library.medamad_gather.argtypes = (*parts, address, address, address)
        library.medamad_gather.restype = number
        library.medamad_views_of_visits.argtypes = (address, number, number, *(address,) * 3)
        library.medamad_views_of_visits.restype = number
        of_rows = (address, number, number, address, number, number)
        library.medamad_first_rows.argtypes = (*of_rows, address)
        library.medamad_first_rows.restype = None
        begun = (address, number, address, address)
        library.medamad_begin_visits.argtypes = (*of_rows, *begun)
        library.medamad_begin_visits.restype = number
        library.medamad_sum_visits.argtypes = (address, address, number, *(address,) * 5)
        library.medamad_sum_visits.restype = None
        pairs = (address, address, number)
        library.medamad_distinct_pairs.argtypes = (*pairs, address, number, address)
        library.medamad_distinct_pairs.restype = number
        library.medamad_add_by_code.argtypes = (address, *(number,) * 4, address)
        library.medamad_add_by_code.restype = None
        library.medamad_sums.argtypes = (address, number, address)
        library.medamad_sums.restype = None
        views = (*parts, address, number)
        library.medamad_count_durations.argtypes = (*views, address)
        library.medamad_count_durations.restype = None
        library.medamad_mark_views.argtypes = (address, number, address, address, number)
        library.medamad_mark_views.restype = None
        library.medamad_plan.argtypes = (address, number, address, address)
        library.medamad_plan.restype = number
        library.medamad_collect_durations.argtypes = (*views, *(address,) * 4, number)
        library.medamad_collect_durations.restype = None
        library.medamad_quartiles.argtypes = (address, number, *(address,) * 5)
        library.medamad_quartiles.restype = None
        return cls(library)

    def select(self, views: PartViews, tables: Sequence[CodeTable]) -> NDArray[np.intp]:
        """Return the rows of the views that match, ascending."""
        described, filters = _described([views]), _described(tables)
        rows = self._rows(views.end - views.begin)
        count = self._library.medamad_select(
            _address_of(described), _address_of(filters), len(tables), _address_of(rows)
        )
        return rows[:count].copy()

    def gather(self, batch: Batch, tables: Sequence[CodeTable]) -> Batch:
        """Return copies of the columns of the views that match."""
        filters = _described(tables)
        gathered = [PartViews(0, 0, [])] * 2
        first = batch[0].numbers if batch else NO_COLUMN
        is_one_number = first.strides == (0,) and all(each.numbers is first for each in batch)

        def copy(half: int, batch: Batch) -> None:
            parts = _described(batch)
            # Memory that is not written to is not taken.
            size = sum(views.end - views.begin for views in batch)
            numbers = first if is_one_number else np.empty(size, np.uint32)
            duration_ms, flags = np.empty(size, np.uint32), np.empty(size, np.uint8)
            count = self._library.medamad_gather(
                _address_of(parts),
                len(batch),
                _address_of(filters),
                len(tables),
                0 if is_one_number else _address_of(numbers),
                _address_of(flags),
                _address_of(duration_ms),
            )
            if count < size // _SPARSE:
                # Memory comes in large pages, of which little may be used.
                numbers = first if is_one_number else numbers[:count].copy()
                flags, duration_ms = flags[:count].copy(), duration_ms[:count].copy()
            gathered[half] = PartViews(0, count, [], numbers, flags, duration_ms)

        self._helper.do_halves(copy, batch)
        return gathered

    def tally(
        self, batches: Iterable[Batch], tables: Sequence[CodeTable], size: int
    ) -> NDArray[np.int64]:
        """Return the sums of the views that match, by their numbers 0 to size - 1."""
        filters = _described(tables)
        # One more takes the views with other numbers.
        by_number = np.zeros((2, (size + 1) * _LINE), np.int64)

        def add(half: int, batch: Batch) -> None:
            parts = _described(batch)
            self._library.medamad_tally(
                _address_of(parts),
                len(batch),
                _address_of(filters),
                len(tables),
                _address_of(by_number[half]),
                size,
            )

        for batch in batches:
            self._helper.do_halves(add, batch)
        # No number of 32 bits in them overflows: they count views.
        total = by_number.sum(axis=0)
        sums = np.empty(SUMS * size, np.int64)
        self._library.medamad_sums(_address_of(total), size, _address_of(sums))
        return sums.reshape(SUMS, size)

    def views_of_visits(
        self, offsets: Integers, place_of: NDArray[np.int32]
    ) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Return the rows of the views whose visit has a place, ascending, and these places."""
        rows, places = self._rows(len(offsets)), np.empty(len(offsets), np.int32)
        count = self._library.medamad_views_of_visits(
            _address_of(offsets),
            offsets.itemsize,
            len(offsets),
            _address_of(place_of),
            _address_of(rows),
            _address_of(places),
        )
        return rows[:count].copy(), places[:count].copy()

    def first_rows(self, offsets: Integers, rows: PartRows) -> NDArray[np.intp]:
        """Return the row of the first view of the visit of each of some views."""
        begin, count, address = _rows_of_part(rows, len(offsets))
        first_rows = np.empty(count, np.intp)
        self._library.medamad_first_rows(
            _address_of(offsets),
            offsets.itemsize,
            len(offsets),
            address,
            begin,
            count,
            _address_of(first_rows),
        )
        return first_rows

    def begin_visits(
        self, offsets: Integers, rows: PartRows, left_out: NDArray[np.intp]
    ) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Return where the visits of some views begin, and their numbers in this order."""
        size = len(offsets)
        begins, place_of = self._rows(size), np.empty(size + 1, np.int32)
        begin, count, address = _rows_of_part(rows, size)
        visits = self._library.medamad_begin_visits(
            _address_of(offsets),
            offsets.itemsize,
            size,
            address,
            begin,
            count,
            _address_of(left_out),
            len(left_out),
            _address_of(place_of),
            _address_of(begins),
        )
        return begins[:visits].copy(), place_of

    def sum_visits(self, views: PlacedViews, sums: SumsOfVisits) -> None:
        """Add views to the sums of the visits that they belong to."""
        duration_ms, is_late = views.duration_ms, views.is_late
        column = (0, 0)
        if duration_ms is not None:
            column = (_address_of(duration_ms), duration_ms.itemsize)
        described = np.array(column, np.int64)
        self._library.medamad_sum_visits(
            _address_of(views.rows),
            _address_of(views.visits),
            len(views.rows),
            _address_of(described),
            0 if is_late is None else _address_of(is_late),
            _address_of(sums.views),
            _address_of(sums.duration_ms),
            _address_of(sums.has_late),
        )

    def distinct_pairs(
        self, visits: NDArray[np.int32], numbers: NDArray[np.uint32]
    ) -> NDArray[np.intp]:
        """Return the indices of the first of each of the different pairs, ascending."""
        size = len(visits)
        # Half of it at least stays empty, so that searches are short.
        bits = max((2 * size).bit_length(), 1)
        known, found = np.zeros(1 << bits, np.uint32), np.empty(size, np.intp)
        count = self._library.medamad_distinct_pairs(
            _address_of(visits),
            _address_of(numbers),
            size,
            _address_of(known),
            bits,
            _address_of(found),
        )
        return found[:count]

    def add_by_code(
        self,
        codes: NDArray[Any],
        columns: Sequence[NDArray[Any]],
        least: int,
        sums: NDArray[np.int64],
    ) -> None:
        """Add rows to the sums of their codes: 1, and what each column has."""
        described = np.array(
            [(_address_of(column), column.itemsize) for column in (codes, *columns)], np.int64
        )
        self._library.medamad_add_by_code(
            _address_of(described),
            len(described),
            len(codes),
            least,
            len(sums) - 1,
            _address_of(sums),
        )

    def _rows(self, size: int) -> NDArray[np.intp]:
        rows: NDArray[np.intp] | None = getattr(self._scratch, "rows", None)
        if rows is None or len(rows) < size:
            rows = self._scratch.rows = np.empty(size, np.intp)
        return rows

    def mark_views(
        self, properties: Integers, rows: Integers, table: CodeTable, mask: NDArray[np.bool_]
    ) -> None:
        """Set the mask of the rows of views that have an event with a matching property."""
        columns = [(_address_of(each), each.itemsize) for each in (properties, rows)]
        described, filters = np.array(columns, np.int64).reshape(-1), _described([table])
        self._library.medamad_mark_views(
            _address_of(described),
            len(properties),
            _address_of(filters),
            _address_of(mask),
            len(mask),
        )

    def count_durations(
        self, batches: Batches, tables: Sequence[CodeTable], groups: Groups
    ) -> NDArray[np.uint32]:
        """Count the durations of the views that match in a few dozen buckets of each group.

        By halves, as the helper divides the batches.
        """
        filters = _described(tables)
        counts = np.zeros((2, groups.count + 1, _BUCKETS), np.uint32)

        def count(half: int, batch: Batch) -> None:
            parts = _described(batch)
            self._library.medamad_count_durations(
                _address_of(parts),
                len(batch),
                _address_of(filters),
                len(tables),
                _address_of(groups.of),
                len(groups.of) - 1,
                _address_of(counts[half].reshape(-1)),
            )

        for batch in batches():
            self._helper.do_halves(count, batch)
        return counts

    def quartiles(
        self,
        batches: Batches,
        tables: Sequence[CodeTable],
        groups: Groups,
        counted: CountedDurations | None = None,
    ) -> Quartiles:
        """Return the quartiles of the durations of the views that match, by group.

        Only those durations are collected that are in the bucket of a quartile.
        """
        if groups.count > _MOST_GROUPS and counted is None:
            return NumpyLoops().quartiles(batches, tables, groups)
        library, filters = self._library, _described(tables)
        counts_of_halves = self.count_durations(batches, tables, groups)
        if counted is not None:
            counts_of_halves += counted.counts
        counts_of_halves = counts_of_halves.reshape(2, -1)
        counts = counts_of_halves.sum(axis=0, dtype=np.uint32)
        slots = np.zeros(len(counts), np.uint32)
        begins = np.zeros(groups.count * _SLOTS + 1, np.int64)
        end = library.medamad_plan(
            _address_of(counts), groups.count, _address_of(slots), _address_of(begins)
        )
        is_wanted = np.packbits(slots != 0, bitorder="little").view("<u8")
        wanted = is_wanted.take(groups.of)
        durations = np.empty(end, np.uint32)
        # In each bucket, the durations of one half come before those of the other.
        places = np.stack([begins, begins])
        used = np.flatnonzero(slots)
        places[1, slots[used]] += counts_of_halves[0, used]

        def collect(half: int, batch: Batch) -> None:
            parts = _described(batch)
            library.medamad_collect_durations(
                _address_of(parts),
                len(batch),
                _address_of(filters),
                len(tables),
                _address_of(groups.of),
                len(groups.of) - 1,
                _address_of(wanted),
                _address_of(slots),
                _address_of(places[half]),
                _address_of(durations),
                end,
            )

        for batch in chain(() if counted is None else counted.batches(), batches()):
            self._helper.do_halves(collect, batch)
        low_ms, high_ms = np.zeros((2, 3 * groups.count), np.int64)
        library.medamad_quartiles(
            _address_of(counts),
            groups.count,
            _address_of(slots),
            _address_of(begins),
            _address_of(durations),
            _address_of(low_ms),
            _address_of(high_ms),
        )
        known = counts.reshape(-1, _BUCKETS)[: groups.count, 1:].sum(axis=1, dtype=np.int64)
        shape = (3, groups.count)
        return Quartiles(known, low_ms.reshape(shape), high_ms.reshape(shape))


def place_table(begins: NDArray[np.intp], size: int) -> NDArray[np.int32]:
    """Return `place_of` for `Loops.views_of_visits`, of visits that begin in some of n rows."""
    table = np.full(size + 1, -1, np.int32)
    table[begins] = np.arange(len(begins), dtype=np.int32)
    return table


def _rows_of_part(rows: PartRows, size: int) -> tuple[int, int, int]:
    """Return the first of rows and their number, if they are a slice, and the address if not."""
    if isinstance(rows, slice):
        begin, end, _ = rows.indices(size)
        return begin, max(end - begin, 0), 0
    return 0, len(rows), _address_of(rows)


def _durations(views: PartViews) -> Integers:
    return NO_COLUMN if views.duration_ms is None else views.duration_ms


def _described(each: Iterable[PartViews | CodeTable]) -> NDArray[np.int64]:
    return np.array(list(chain.from_iterable(one.described for one in each)), np.int64)


def load_loops(path: Path = GENERATED / "kernel.so") -> Loops:
    """Return the compiled loops, or those in numpy if there is no library for this machine."""
    if sys.byteorder == "little":
        try:
            return CompiledLoops.load(path)
        except (OSError, AttributeError):  # absent, or of earlier sources
            pass
    return NumpyLoops()


LOOPS: Final = load_loops()
