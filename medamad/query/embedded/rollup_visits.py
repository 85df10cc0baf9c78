"""What rollups know of the selected visits that began on days whose views are gone.

The visits of a day can be filtered by one dimension, as far as it is known how many different
visits match; else the day is a gap.
"""

from collections.abc import Iterator

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.buckets import Buckets
from medamad.query.embedded.scan import Selection
from medamad.query.embedded.visit_sums import add_up
from medamad.query.filters import Mask
from medamad.query.request import DayGap, Gap, Gaps
from medamad.query.sums import VisitSums
from medamad.storage.segments.counters import Counters, merge
from medamad.storage.segments.parts import DayVisits, Rollup
from medamad.storage.segments.visit_counters import (
    EXITS,
    FIRST,
    LATER,
    OF_GROUP,
    OUTSIDE,
    VISIT_SUMS,
    VISITS,
)

_ALL_GROUPS = (FIRST, LATER, OUTSIDE)
_NOTHING = Counters(np.zeros(0, np.uint32), (np.zeros(0, np.int64),) * VISIT_SUMS)


def with_rollups(
    sums: VisitSums, selection: Selection, buckets: Buckets | None
) -> tuple[VisitSums, Gaps]:
    """Return the sums of visits by bucket, or of all, with those of rollups, and the gaps.

    A day in several buckets is a gap.
    """
    gaps: set[DayGap] = set()
    found = [sums]
    for day in _selected_days(selection, gaps):
        ends = np.array(day.span, np.int64)
        first, last = (0, 0) if buckets is None else buckets.of(ends).tolist()
        if first == last:
            found.append(VisitSums(np.array([first]), day.sums[:, np.newaxis]))
        else:
            gaps.add((Gap.INTERVAL, day.number))
    return add_up(found) if len(found) > 1 else sums, selection.gaps_without_visits | Gaps(gaps)


@frozen(eq=False)
class RollupVisits:
    """The selected visits of rollups by the codes of a dimension, and how many there are in all.

    They are added to the sums of other visits.
    """

    counters: Counters
    visits: int
    gaps: Gaps

    def of_first_views(self, others: VisitSums) -> VisitSums:
        """Return sums, and those of the visits whose first view has the code."""
        return self._added(others, _group(self.counters, FIRST))

    def of_any_views(self, others: VisitSums) -> VisitSums:
        """Return sums, and those of the visits that have a view with the code."""
        return self._added(others, _added(self.counters, _ALL_GROUPS))

    def of_last_views(self, others: VisitSums) -> VisitSums:
        """Return sums, and the number of the visits whose last view has the code."""
        sums = np.zeros((OF_GROUP, len(self.counters)), np.int64)
        sums[VISITS] = self.counters.sums[EXITS]
        return self._added(others, sums)

    def _added(self, others: VisitSums, sums: NDArray[np.int64]) -> VisitSums:
        if not len(self.counters):
            return others
        return add_up([others, VisitSums(self.counters.codes.astype(np.int64), sums)])


def visits_by_code(selection: Selection, dimension: Dimension) -> RollupVisits:
    """Return the selected visits of rollups by a dimension, which may be the one filtered by.

    By pages, visits count for each one that they saw.
    """
    is_by_page = dimension is Dimension.PATH
    return _by_code(selection, dimension, with_pages=is_by_page, filtered=True)


def visits_by_beginning(selection: Selection, dimension: Dimension) -> RollupVisits:
    """Return the selected visits of rollups by what their first view has in a dimension.

    Of days of which only some visits are selected, those by first page are unknown.
    """
    return _by_code(selection, dimension, filtered=dimension is not Dimension.PATH)


def visits_by_end(selection: Selection, *, with_pages: bool) -> RollupVisits:
    """Return the selected visits of rollups by their last page, and by others if they are needed.

    Days of which only some visits are selected are gaps.
    """
    return _by_code(selection, Dimension.PATH, with_pages=with_pages, with_exits=True)


def _by_code(
    selection: Selection,
    dimension: Dimension,
    *,
    with_pages: bool = False,
    with_exits: bool = False,
    filtered: bool = False,
) -> RollupVisits:
    gaps: set[DayGap] = set()
    found, visits = [_NOTHING], 0
    for day in _selected_days(selection, gaps):
        is_known = (
            (filtered or day.dimension is None)
            and (day.visits.has_pages or not with_pages)
            and (day.visits.has_exits or not with_exits)
        )
        counters = day.counters(dimension) if is_known else None
        if counters is None:
            gaps.add((Gap.VISITS, day.number))
        else:
            found.append(counters)
            visits += int(day.sums[VISITS])
    return RollupVisits(merge(found), visits, selection.gaps_without_visits | Gaps(gaps))


@frozen(eq=False)
class _SelectedDay:
    """The selected visits of a day: their sums, shape (OF_GROUP,), and the groups they are in.

    `matches` has which codes of `dimension` select them; without one, all visits are selected.
    """

    number: int
    span: tuple[int, int]
    visits: DayVisits
    sums: NDArray[np.int64]
    dimension: Dimension | None = None
    matches: Mask | None = None
    groups: tuple[int, ...] = _ALL_GROUPS

    def counters(self, dimension: Dimension) -> Counters | None:
        """Return the sums by a dimension, or None if they are unknown."""
        counters = self.visits.counters(dimension)
        if self.matches is None or counters is None:
            return counters
        # Visits that saw a page saw others, too; those that match by a later view have another row.
        if dimension is not self.dimension or dimension is Dimension.PATH:
            return None
        others = (counters.sums[group + VISITS] for group in self.groups[1:])
        if any(visits[self.matches].any() for visits in others):
            return None
        sums = [row[self.matches] for row in counters.sums]
        if OUTSIDE not in self.groups:
            sums[OUTSIDE : OUTSIDE + OF_GROUP] = [np.zeros_like(sums[0])] * OF_GROUP
        return Counters(counters.codes[self.matches], tuple(sums))


def _selected_days(selection: Selection, gaps: set[DayGap]) -> Iterator[_SelectedDay]:
    """Return the days with selected visits. Where those are unknown, add a gap."""
    for rollup in selection.rollups_in_period():
        day = _select(selection, rollup)
        if day is None:
            gaps.add((Gap.VISITS, rollup.day))
        elif day.sums.any():
            yield day


def _select(selection: Selection, rollup: Rollup) -> _SelectedDay | None:
    """Return the selected visits of a day, or None if they are unknown."""
    visits, span = rollup.visits, rollup.time_bounds
    if visits is None:
        return None
    everything = _SelectedDay(rollup.day, span, visits, _group(visits.overall(), FIRST).sum(axis=1))
    filters = [
        (dimension, mask, _matches(visits, dimension, mask))
        for dimension, mask in selection.filter.codes.items()
    ]
    if any(matches is not None and not matches.any() for *_, matches in filters):
        return evolve(everything, sums=np.zeros_like(everything.sums))
    if not everything.sums.any():
        return everything
    if selection.filter.is_by_view or not selection.period.contains(*span):
        return None
    masks = [
        (dimension, mask)
        for dimension, mask, matches in filters
        if matches is None or not matches.all()
    ]
    if all(_matches_all(rollup, dimension, mask) for dimension, mask in masks):
        # The first view of each visit is one of the day.
        return everything
    return _select_by(selection, rollup, visits, *masks[0]) if len(masks) == 1 else None


def _matches(visits: DayVisits, dimension: Dimension, mask: Mask) -> Mask | None:
    """Return which of the codes that the visits have match, or None if these are unknown."""
    counters = visits.counters(dimension)
    if counters is None or (dimension is Dimension.PATH and not visits.has_pages):
        return None
    return mask.take(counters.codes)


def _matches_all(rollup: Rollup, dimension: Dimension, mask: Mask) -> bool:
    """Return whether all views of a day match."""
    counters = rollup.counters(dimension)
    return counters is not None and bool(mask.take(counters.codes).all())


def _select_by(
    selection: Selection, rollup: Rollup, visits: DayVisits, dimension: Dimension, mask: Mask
) -> _SelectedDay | None:
    """Return the visits of a day that have a view with a matching code of a dimension."""
    counters, span, period = visits.counters(dimension), rollup.time_bounds, selection.period
    # Of the pages of imported visits, the first alone has all sums.
    if counters is None or (dimension is Dimension.PATH and not rollup.has_durations):
        return None
    matches = mask.take(counters.codes)
    is_one_code = int(matches.sum()) == 1
    groups: tuple[int, ...] = _ALL_GROUPS
    least_ms, greatest_ms = visits.time_bounds
    is_outside_selected = bool(counters.sums[OUTSIDE + VISITS][matches].any())
    if is_outside_selected and not period.contains(least_ms, greatest_ms):
        # Which of the views on other days are in the period is unknown, unless none is.
        others = ((least_ms, span[0] - 1), (span[1] + 1, greatest_ms))
        if not is_one_code or not all(
            low_ms > high_ms or period.is_outside(low_ms, high_ms) for low_ms, high_ms in others
        ):
            return None
        groups = (FIRST, LATER)
    if not is_one_code and any(counters.sums[each + VISITS][matches].any() for each in groups[1:]):
        # How many visits have several of the codes is unknown.
        return None
    sums = _added(counters, groups)[:, matches].sum(axis=1)
    return _SelectedDay(rollup.day, span, visits, sums, dimension, matches, groups)


def _group(counters: Counters, group: int) -> NDArray[np.int64]:
    return np.stack(counters.sums[group : group + OF_GROUP]).astype(np.int64)


def _added(counters: Counters, groups: tuple[int, ...]) -> NDArray[np.int64]:
    added: NDArray[np.int64] = np.sum([_group(counters, group) for group in groups], axis=0)
    return added
