"""The inner loops of queries, compiled: kernel.c has them, hatch_build.py makes the library.

They run without the interpreter's lock.
"""

import ctypes
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from threading import Lock
from typing import Any, Final, Literal, Self, TypeVar

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.build import load_kernel
from medamad.query.embedded.loops import (
    Batch,
    Batches,
    CodeTable,
    GoalsInVisits,
    Groups,
    OwnEvents,
    PartViews,
    RowMask,
    ViewsInVisits,
    VisitsToSum,
    address_of,
    fields_of,
    pack,
)
from medamad.query.embedded.quantiles import WINDOWS, NearDurations
from medamad.query.sums import Quartiles
from medamad.storage.segments.counters import SUMS
from medamad.storage.segments.format import Integers

T = TypeVar("T", PartViews, OwnEvents, ViewsInVisits, VisitsToSum, GoalsInVisits)
_BUCKETS: Final = 64
"""The BUCKETS of kernel.c."""
_SLOTS: Final = 6
"""The most buckets that the three quartiles of a group are in."""
_MOST_GROUPS: Final = 1 << 17
"""Counting the durations of more groups in buckets at once would take too much memory."""
_SPARSE: Final = 4
_WORTH_HALVING: Final = 1 << 19
"""For fewer views, another thread would begin too late to help."""
_LINE: Final = 8
"""The 64-bit numbers of a `sums` in kernel.c."""


@define(eq=False)
class _Helper:
    """Threads, one fewer than processors, each of which takes half of a query's work if it is idle.

    They run compiled loops alone, which do not hold the interpreter's lock.
    """

    _idle: int = field(factory=lambda: len(os.sched_getaffinity(0)) - 1)
    _lock: Lock = field(factory=Lock)
    _threads: ThreadPoolExecutor | None = None

    def do_halves(self, do: Callable[[int, Sequence[T]], None], batch: Sequence[T]) -> None:
        """Call `do` with 0 and with 1, each with half of a batch, the same for the same batch."""
        if sum(map(len, batch)) < _WORTH_HALVING:
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


class _Array:
    """An argument of a loop: an array or bytes, which are passed as an address, or None."""

    @staticmethod
    def from_param(array: NDArray[Any] | bytes | None) -> object:
        """Return what ctypes passes."""
        address = address_of(array) if isinstance(array, np.ndarray) else array
        return ctypes.c_void_p.from_param(address)


@frozen(eq=False)
class Loops:
    """The loops of kernel.c."""

    _library: ctypes.CDLL
    _helper: _Helper = field(factory=_Helper)

    @classmethod
    def load(cls) -> Self:
        """Load the library. Raises OSError."""
        library = load_kernel()
        array, number = _Array, ctypes.c_int64
        parts: tuple[Any, ...] = (array, number)
        of_groups = (*parts, array, number)
        for loop, returned, *taken in (
            (library.medamad_match, None, array, array, number, number, array),
            (library.medamad_rows, number, array, number, array),
            (library.medamad_gather, number, *parts, array, array, array),
            (library.medamad_tally, None, *parts, number, array),
            (library.medamad_sums, None, array, number, array),
            (library.medamad_first_rows, None, array, number, array, number, array),
            (library.medamad_begins_with, None, array, array, number, array),
            (library.medamad_visits_at, None, array, number, *(array,) * 3),
            (library.medamad_mask_visits, None, array, number, array, array),
            (library.medamad_sum_visits, None, *parts, number, number, array),
            (library.medamad_count_goals, None, *parts, number, *(array,) * 3),
            (library.medamad_count_beside, None, *parts, number, number, *(array,) * 3),
            (library.medamad_mark_views, None, array, number, array, array, number),
            (library.medamad_count_events, None, *parts, array, number, array),
            (library.medamad_count_durations, None, *of_groups, array),
            (library.medamad_plan, number, array, number, array, array),
            (library.medamad_collect_durations, None, *of_groups, *(array,) * 4, number),
            (library.medamad_quartiles, None, array, number, *(array,) * 5),
            (library.medamad_find_near, number, *of_groups, array, number, array, array),
            (library.medamad_near_quartiles, number, array, array, number, array, array),
        ):
            loop.restype, loop.argtypes = returned, taken
        return cls(library)

    def _add_up(
        self,
        loop: Callable[..., None],
        batches: Iterable[Sequence[T]],
        shape: tuple[int, ...],
        *given: Any,
    ) -> NDArray[np.int64]:
        """Return the total of what a loop adds up of parts, in the place that it is given last."""
        sums = np.zeros((2, *shape), np.int64)

        def add(half: int, parts: Sequence[T]) -> None:
            loop(_packed(parts), len(parts), *given, sums[half])

        for batch in batches:
            self._helper.do_halves(add, batch)
        total: NDArray[np.int64] = sums.sum(axis=0)
        return total

    def match(self, columns: Sequence[Integers], tables: Sequence[CodeTable]) -> RowMask:
        """Return the rows of a part in which each of some columns has a code that its table has."""
        packed = pack(*fields_of(*columns))
        mask = RowMask.of_none(len(columns[0]))
        filters = _packed(tables)
        self._library.medamad_match(packed, filters, len(tables), mask.size, mask.bits)
        return mask

    def rows(self, mask: RowMask) -> NDArray[np.intp]:
        """Return the rows of a mask, which is faster than `mask.rows` for few of them."""
        rows = np.empty(mask.count, np.intp)
        self._library.medamad_rows(mask.bits, mask.size, rows)
        return rows

    def gather(self, batch: Batch) -> Batch:
        """Return copies of the columns of views, in no order.

        Their durations must be known. Without flags, the copies have none.
        """
        gathered = [PartViews(0, 0)] * 2
        same = batch[0].numbers if batch else None
        if any(each.numbers is not same for each in batch) or same is None or any(same.strides):
            same = None

        def copy(half: int, batch: Batch) -> None:
            # Memory that is not written to is not taken.
            size = sum(map(len, batch))
            numbers, duration_ms = np.empty((2, size), np.uint32)
            flags = np.empty(size, np.uint8)
            to = (numbers if same is None else None, flags, duration_ms)
            count = self._library.medamad_gather(_packed(batch), len(batch), *to)
            if count < size // _SPARSE:
                # Memory comes in large pages, of which little may be used.
                numbers, flags = numbers[:count].copy(), flags[:count].copy()
                duration_ms = duration_ms[:count].copy()
            columns = (numbers if same is None else same, flags, duration_ms)
            gathered[half] = PartViews(0, count, None, *columns)

        self._helper.do_halves(copy, batch)
        return gathered

    def tally(self, batches: Iterable[Batch], size: int) -> NDArray[np.int64]:
        """Return the sums of views by their numbers 0 to size - 1.

        Shape (SUMS, size), in the order of medamad.storage.segments.counters. Views with other
        numbers do not count. Either all of a batch have durations, or none.
        """
        # One more takes the views with other numbers. No number of 32 bits overflows: they count
        # views.
        shape = ((size + 1) * _LINE,)
        by_number = self._add_up(self._library.medamad_tally, batches, shape, size)
        sums = np.empty((SUMS, size), np.int64)
        self._library.medamad_sums(by_number, size, sums)
        return sums

    def first_rows(self, offsets: Integers, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """Return the row of the first view of the visit of each of some views.

        That is `offset - 1` rows before it; an offset of 0 is unknown. The row is -1 if it is
        unknown or before the part, and for rows that the part does not have.
        """
        first_rows = np.empty(len(rows), np.intp)
        packed = pack(*fields_of(offsets))
        self._library.medamad_first_rows(packed, len(offsets), rows, len(rows), first_rows)
        return first_rows

    def begins_with(self, offsets: Integers, views: PartViews) -> RowMask:
        """Return the rows in which visits of a part begin that have any of some views."""
        mask, packed = RowMask.of_none(len(offsets)), pack(*fields_of(offsets))
        self._library.medamad_begins_with(views.packed, packed, mask.size, mask.bits)
        return mask

    def visits_at(
        self, offsets: Integers, chosen: RowMask
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the visits of a part that begin in the rows of a mask, as all of these do.

        Their places among all that begin there, and the rows of their first views, both ascending.
        """
        index, begins = np.empty((2, chosen.count), np.intp)
        packed = pack(*fields_of(offsets))
        self._library.medamad_visits_at(packed, chosen.size, chosen.bits, index, begins)
        return index, begins

    def mask_visits(self, offsets: Integers, chosen: RowMask) -> RowMask:
        """Return which views of a part belong to the visits that begin in the rows of a mask."""
        mask, packed = RowMask.of_none(len(offsets)), pack(*fields_of(offsets))
        self._library.medamad_mask_visits(packed, mask.size, chosen.bits, mask.bits)
        return mask

    def sum_visits(self, parts: Sequence[VisitsToSum], added: int, size: int) -> NDArray[np.int64]:
        """Return the sums of visits by their codes: 1 for each, and its numbers in `added` columns.

        Shape (size, 1 + added). Visits with other codes do not count.
        """
        shape = (size + 1, 1 + added)
        return self._add_up(self._library.medamad_sum_visits, [parts], shape, added, size)[:-1]

    def count_goals(
        self, parts: Sequence[GoalsInVisits], goals: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how often visits reached each goal, and how many visits did, shape (goals,).

        If the order counts, only those did that have reached all goals before it.
        """
        size = max(map(len, parts), default=0)

        def count(*given: Any) -> None:
            steps, moments = np.empty(size, np.uint32), np.empty(2 * size, np.int64)
            self._library.medamad_count_goals(*given[:-1], steps, moments, given[-1])

        conversions, visits = self._add_up(count, [parts], (2, goals), goals)
        return conversions, visits

    def count_beside(
        self, parts: Sequence[ViewsInVisits], step: Literal[1, -1], size: int
    ) -> NDArray[np.int64]:
        """Count the codes of the views that come after others in their visits.

        With a step of -1, before them. Shape (size + 1,): the last count is that of views after
        which there is none.
        """
        words = max(map(len, parts), default=0) // 64 + 1

        def count(*given: Any) -> None:
            begun, ranks = np.empty((2, words), np.int64)
            self._library.medamad_count_beside(*given[:-1], begun, ranks, given[-1])

        return self._add_up(count, [parts], (size + 1,), step, size)

    def mark_views(
        self, properties: Integers, rows: Integers, table: CodeTable, mask: RowMask
    ) -> None:
        """Add the rows of views that have an event with a matching property to a mask."""
        packed = pack(*fields_of(properties, rows))
        size = len(properties)
        self._library.medamad_mark_views(packed, size, table.packed, mask.bits, mask.size)

    def count_events(
        self, parts: Sequence[OwnEvents], table: CodeTable, size: int
    ) -> tuple[NDArray[np.int64], int]:
        """Count rows of events with matching properties, of views that match, by their property.

        Return the counts of the properties 0 to size - 1, with one more for greater ones, and how
        many events they belong to.
        """
        loop = self._library.medamad_count_events
        counts = self._add_up(loop, [parts], (size + 2,), table.packed, size)
        return counts[:-1], int(counts[-1])

    def quartiles(self, batches: Batches, groups: Groups) -> Quartiles:
        """Return the quartiles of the durations of views, by group."""
        found = [
            self._quartiles(batches, groups.some(first, _MOST_GROUPS))
            for first in range(0, max(groups.count, 1), _MOST_GROUPS)
        ]
        columns = zip(*((each.counts, each.low_ms, each.high_ms) for each in found), strict=True)
        return Quartiles(*(np.concatenate(pieces, axis=-1) for pieces in columns))

    def _quartiles(self, batches: Batches, groups: Groups) -> Quartiles:
        """Return the same of few enough groups.

        They are counted in a few dozen buckets of each group, and only those are collected that are
        in the bucket of a quartile.
        """
        library, last = self._library, len(groups.of) - 1
        # By halves, as the helper divides the batches.
        counts_of_halves = np.zeros((2, (groups.count + 1) * _BUCKETS), np.uint32)

        def count(half: int, batch: Batch) -> None:
            library.medamad_count_durations(
                _packed(batch), len(batch), groups.of, last, counts_of_halves[half]
            )

        for batch in batches():
            self._helper.do_halves(count, batch)
        counts = counts_of_halves.sum(axis=0, dtype=np.uint32)
        slots = np.zeros(len(counts), np.uint32)
        begins = np.zeros(groups.count * _SLOTS + 1, np.int64)
        end = library.medamad_plan(counts, groups.count, slots, begins)
        is_wanted = np.packbits(slots != 0, bitorder="little").view("<u8")
        wanted = is_wanted.take(groups.of)
        durations = np.empty(end, np.uint32)
        # In each bucket, the durations of one half come before those of the other.
        places = np.stack([begins, begins])
        used = np.flatnonzero(slots)
        places[1, slots[used]] += counts_of_halves[0, used]

        def collect(half: int, batch: Batch) -> None:
            to = (wanted, slots, places[half], durations, end)
            library.medamad_collect_durations(_packed(batch), len(batch), groups.of, last, *to)

        for batch in batches():
            self._helper.do_halves(collect, batch)
        low_ms, high_ms = np.zeros((2, 3, groups.count), np.int64)
        library.medamad_quartiles(counts, groups.count, slots, begins, durations, low_ms, high_ms)
        known = counts.reshape(-1, _BUCKETS)[: groups.count, 1:].sum(axis=1, dtype=np.int64)
        return Quartiles(known, low_ms, high_ms)

    def find_near(
        self,
        batches: Iterable[Batch],
        groups: Groups,
        windows: NDArray[np.uint32],
    ) -> NearDurations:
        """Return the durations of views, as far as they are in some windows."""
        # With an empty fourth window, and empty ones for the group of none.
        of_groups = np.zeros((groups.count + 1, 2, WINDOWS + 1), np.uint32)
        of_groups[:, 0] = 1
        of_groups[:-1, :, :WINDOWS] = windows
        counts = np.zeros((2, groups.count + 1, WINDOWS + 1), np.uint32)
        pieces: list[NDArray[np.uint64]] = []

        def find(half: int, batch: Batch) -> None:
            # Memory that is not written to is not taken.
            found = np.empty(sum(map(len, batch)) * WINDOWS, np.uint64)
            to = (of_groups, groups.count, counts[half], found)
            count = self._library.medamad_find_near(
                _packed(batch), len(batch), groups.of, len(groups.of) - 1, *to
            )
            pieces.append(found[:count].copy())

        for batch in batches:
            self._helper.do_halves(find, batch)
        return NearDurations.of(windows, counts[0, :-1] + counts[1, :-1], pieces)

    def near_quartiles(self, some: NearDurations, others: NearDurations) -> Quartiles | None:
        """Return the quartiles of the durations that two were found among, with the same windows.

        None if one of them is in none of its windows.
        """
        size = len(some.counts)
        packed = [
            pack(*map(address_of, (each.duration_ms, each.begins, each.ends, each.counts)))
            for each in (some, others)
        ]
        low_ms, high_ms = np.zeros((2, WINDOWS, size), np.int64)
        if not self._library.medamad_near_quartiles(*packed, size, low_ms, high_ms):
            return None
        known = some.counts[:, WINDOWS].astype(np.int64) + others.counts[:, WINDOWS]
        return Quartiles(known, low_ms, high_ms)


def _packed(each: Iterable[T | CodeTable]) -> bytes:
    return b"".join([one.packed for one in each])


LOOPS: Final = Loops.load()
