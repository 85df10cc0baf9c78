"""The inner loops of queries in numpy, for machines without the library of kernel.c."""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Literal

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.query.embedded.loops import (
    NO_COLUMN,
    Batch,
    Batches,
    ChosenVisits,
    CodeTable,
    CountedViews,
    GoalsInVisits,
    Groups,
    OwnEvents,
    PartRows,
    PartViews,
    RowMask,
    ViewsInVisits,
    VisitsToSum,
)
from medamad.query.embedded.quantiles import WINDOWS, GroupedDurations, NearDurations
from medamad.query.sums import Quartiles
from medamad.storage.segments.counters import SUMS, keys_of, sums_of
from medamad.storage.segments.format import Integers


@frozen(eq=False)
class NumpyLoops:
    """The loops in numpy."""

    def first_rows(self, offsets: Integers, rows: PartRows) -> NDArray[np.intp]:
        """Return the row of the first view of the visit of each of some views."""
        if isinstance(rows, slice):
            rows = np.arange(len(offsets))[rows]
        is_here = (rows >= 0) & (rows < len(offsets))
        first_rows: NDArray[np.intp] = rows + 1
        first_rows[is_here] -= offsets[rows[is_here]].astype(np.intp)
        first_rows[~is_here | (first_rows < 0) | (first_rows > rows)] = -1
        return first_rows

    def begins_with(
        self, offsets: Integers, views: PartViews, tables: Sequence[CodeTable]
    ) -> RowMask:
        """Return the rows in which visits of a part begin that have any of the matching views."""
        # The last place is that of -1.
        is_chosen = np.zeros(len(offsets) + 1, np.bool_)
        is_chosen[self.first_rows(offsets, self.select(views, tables))] = True
        return RowMask.packed(is_chosen[:-1] & (offsets == 1))

    def visits_at(self, offsets: Integers, chosen: RowMask) -> ChosenVisits:
        """Return the visits of a part that begin in the rows of a mask."""
        begins = np.flatnonzero(offsets == 1)
        index = np.flatnonzero(chosen.of(begins))
        return ChosenVisits(index, begins[index])

    def mask_visits(self, offsets: Integers, chosen: RowMask) -> RowMask:
        """Return which views of a part belong to the visits that begin in the rows of a mask."""
        is_begin = np.append(chosen.unpacked(), False)
        return RowMask.packed(is_begin[self.first_rows(offsets, slice(None))])

    def sum_visits(self, parts: Sequence[VisitsToSum], added: int, size: int) -> NDArray[np.int64]:
        """Return the sums of visits by their codes."""
        sums = np.zeros((size + 1, 1 + added), np.int64)
        for part in parts:
            chosen = self.visits_at(part.offsets, part.chosen)
            rows = chosen.begins
            if part.spans is not None:
                rows = rows + part.spans[chosen.index].astype(np.intp)
            columns = [column[chosen.index] for column in part.added]
            self.add_by_code(part.codes[rows], columns, 0, sums)
        return sums[:-1]

    def count_views(self, parts: Sequence[CountedViews], size: int) -> NDArray[np.int64]:
        """Count views by their codes, but for repeats."""
        counts = np.zeros(size + 1, np.int64)
        for part in parts:
            mask = part.mask.unpacked()
            mask[part.repeats] = False
            codes = np.minimum(part.codes[mask].astype(np.intp), size)
            counts += np.bincount(codes, minlength=size + 1)
        return counts[:-1]

    def count_goals(
        self, parts: Sequence[GoalsInVisits], goals: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return how often visits reached each goal, and how many visits did."""
        conversions, visits = np.zeros((2, goals), np.int64)
        for part in parts:
            never = np.iinfo(np.int64).max
            # The last place is that of -1.
            is_chosen = np.append(part.chosen.unpacked(), False)
            earliest = np.zeros(len(part) + 1, np.int64)
            for goal, rows in enumerate(part.rows):
                first_rows = self.first_rows(part.offsets, rows.astype(np.intp))
                are_theirs = is_chosen[first_rows]
                first_rows = first_rows[are_theirs]
                conversions[goal] += len(first_rows)
                if part.moments is None:
                    visits[goal] += len(np.unique(first_rows))
                    continue
                moments = part.moments[goal][are_theirs]
                is_next = moments >= earliest[first_rows]
                following = np.full(len(part) + 1, never)
                np.minimum.at(following, first_rows[is_next], moments[is_next])
                earliest = following
                visits[goal] += np.count_nonzero(earliest != never)
        return conversions, visits

    def count_beside(
        self,
        parts: Sequence[ViewsInVisits],
        tables: Sequence[CodeTable],
        step: Literal[1, -1],
        size: int,
    ) -> NDArray[np.int64]:
        """Count the codes of the views that come after matching ones in their visits, or before."""
        counts = np.zeros(size + 1, np.int64)
        for part in parts:
            rows = self.select(part.views, tables)
            chosen = self.begins_with(part.offsets, part.views, tables)
            mask = self.mask_visits(part.offsets, chosen.within(part.chosen)).unpacked()
            of_visits = np.flatnonzero(mask)
            places = self.first_rows(part.offsets, of_visits)
            # The views of each visit follow each other.
            order = np.lexsort((of_visits, places))[::step]
            of_visits, places = of_visits[order], places[order]
            asked = np.flatnonzero(np.isin(of_visits, rows))
            are_last = np.append(places[1:] != places[:-1], np.ones(min(len(places), 1), np.bool_))
            are_last = are_last[asked]
            beside = part.codes[of_visits[asked[~are_last] + 1]].astype(np.intp)
            counts += np.bincount(np.minimum(beside, size), minlength=size + 1)
            counts[size] += np.count_nonzero(are_last)
        return counts

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
        mask = np.ones(len(views), np.bool_)
        for column, table in zip(views.matching, tables, strict=True):
            if isinstance(column, RowMask):
                mask &= column.unpacked()[views.begin : views.end]
            elif column is not None:
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

    def match(self, views: PartViews, tables: Sequence[CodeTable]) -> RowMask:
        """Return which of the views of a part match."""
        return RowMask.of_none(views.end).with_rows(self.select(views, tables))

    def mark_views(
        self, properties: Integers, rows: Integers, table: CodeTable, mask: RowMask
    ) -> None:
        """Add the rows of views that have an event with a matching property to a mask."""
        marked = rows.compress(table.matches(properties)).astype(np.intp)
        mask.bits[:] = mask.with_rows(marked[marked < mask.size]).bits

    def count_events(
        self, parts: Sequence[OwnEvents], table: CodeTable, size: int
    ) -> tuple[NDArray[np.int64], int]:
        """Count rows of events with matching properties, of views that match, by their property."""
        counts, total = np.zeros(size + 1, np.int64), 0
        for events in parts:
            mask = table.matches(events.properties)
            mask &= np.append(events.matching.unpacked(), False).take(events.views, mode="clip")
            found = np.minimum(events.properties[mask].astype(np.intp), size)
            counts += np.bincount(found, minlength=size + 1)
            numbers = np.cumsum(events.begins.unpacked())[mask]
            total += int(np.count_nonzero(np.diff(numbers, prepend=-1)))
        return counts, total

    def quartiles(self, batches: Batches, tables: Sequence[CodeTable], groups: Groups) -> Quartiles:
        """Return the quartiles of the durations of the views that match, by group."""
        durations = GroupedDurations(groups.count + 1)
        for views in chain.from_iterable(batches()):
            rows = self.select(views, tables)
            of_rows = groups.of.take(views.numbers[rows], mode="clip")
            durations.add(of_rows, _durations(views).take(rows))
        found = durations.quartiles()
        return Quartiles(
            *(column[..., : groups.count] for column in (found.counts, found.low_ms, found.high_ms))
        )

    def find_near(
        self,
        batches: Iterable[Batch],
        tables: Sequence[CodeTable],
        groups: Groups,
        windows: NDArray[np.uint32],
    ) -> NearDurations:
        """Return the durations of the views that match, as far as they are in some windows."""
        counts = np.zeros((groups.count, WINDOWS + 1), np.uint32)
        keys = []
        for views in chain.from_iterable(batches):
            rows = self.select(views, tables)
            of_rows = groups.of.take(views.numbers[rows], mode="clip").astype(np.intp)
            duration_ms = _durations(views).take(rows)
            counted = np.flatnonzero((duration_ms > 0) & (of_rows < groups.count))
            of_rows, duration_ms = of_rows[counted], duration_ms[counted].astype(np.uint64)
            counts[:, WINDOWS] += _occurrences(of_rows, groups.count)
            for window in range(WINDOWS):
                least, greatest = windows[of_rows, :, window].T
                counts[:, window] += _occurrences(of_rows[duration_ms < least], groups.count)
                is_in = (duration_ms >= least) & (duration_ms <= greatest)
                numbers = (of_rows[is_in] * WINDOWS + window).astype(np.uint64)
                keys.append(numbers << np.uint64(32) | duration_ms[is_in])
        return NearDurations.of(windows, counts, keys)

    def near_quartiles(self, some: NearDurations, others: NearDurations) -> Quartiles | None:
        """Return the quartiles of all durations of groups."""
        counts = some.counts + others.counts
        both = NearDurations.of(some.windows, counts, [some.keys(), others.keys()])
        known = counts[:, WINDOWS].astype(np.int64)
        # Shape (3, n) each.
        places = np.maximum(known - 1, 0) * np.arange(1, WINDOWS + 1)[:, np.newaxis]
        low, high = (each - counts[:, :WINDOWS].T for each in (places // 4, (places + 3) // 4))
        sizes = both.ends.astype(np.int64) - both.begins
        if np.any(((low < 0) | (high >= sizes.T)) & (known > 0)):
            return None
        begins = both.begins.T
        duration_ms = np.append(both.duration_ms, np.uint32(0)).astype(np.int64)
        low_ms, high_ms = (
            duration_ms.take(np.where(known, begins + each, -1)) for each in (low, high)
        )
        return Quartiles(known, low_ms, high_ms)


def _occurrences(groups: NDArray[np.intp], count: int) -> NDArray[np.uint32]:
    return np.bincount(groups, minlength=count).astype(np.uint32)


def _durations(views: PartViews) -> Integers:
    return NO_COLUMN if views.duration_ms is None else views.duration_ms
