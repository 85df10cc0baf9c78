"""What rollups know of the selected visits that began on days whose views are gone.

The visits of a day can be filtered by one dimension, as far as it is known how many different
visits match; else the day is a gap.
"""

from collections.abc import Callable, Collection, Iterator

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.query.buckets import Buckets
from medamad.query.embedded.scan import Selection
from medamad.query.embedded.visit_sums import add_up
from medamad.query.filters import Mask
from medamad.query.period import Period
from medamad.query.request import DayGap, Gap, Gaps
from medamad.query.sums import VisitSums, WhichView
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

_ALL_GROUPS: tuple[int, ...] = (FIRST, LATER, OUTSIDE)
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
        ends = np.array(day.rollup.time_bounds, np.int64)
        first, last = (0, 0) if buckets is None else buckets.of(ends).tolist()
        if first == last:
            found.append(VisitSums(np.array([first]), day.sums[:, np.newaxis]))
        else:
            gaps.add((Gap.INTERVAL, day.rollup.day))
    return add_up(found) if len(found) > 1 else sums, selection.gaps_without_visits | Gaps(gaps)


@frozen(eq=False)
class RollupVisits:
    """The selected visits of rollups by the codes of a dimension, and how many there are in all.

    They are added to the sums of other visits.
    """

    counters: Counters
    visits: int
    gaps: Gaps

    def added_to(self, others: VisitSums, which: WhichView) -> VisitSums:
        """Return sums, and those of the visits whose views of a kind have the code."""
        if not len(self.counters):
            return others
        if which is WhichView.LAST:
            sums = np.zeros((OF_GROUP, len(self.counters)), np.int64)
            sums[VISITS] = self.counters.sums[EXITS]
        else:
            groups = (FIRST,) if which is WhichView.FIRST else _ALL_GROUPS
            sums = _sums_of(self.counters, groups)
        return add_up([others, VisitSums(self.counters.codes.astype(np.int64), sums)])


def visits_by_code(
    selection: Selection, dimension: Dimension, which: Collection[WhichView]
) -> RollupVisits:
    """Return the selected visits of rollups by a dimension, which may be the one filtered by.

    Days are gaps of which it is unknown which pages visits saw or ended on, if `which` has these.
    Of days of which only some visits are selected, those by page are unknown.
    """
    gaps: set[DayGap] = set()
    found, visits = [_NOTHING], 0
    for day in _selected_days(selection, gaps):
        is_known = (day.visits.has_pages or WhichView.ANY not in which) and (
            day.visits.has_exits or WhichView.LAST not in which
        )
        counters = day.counters(dimension) if is_known else None
        if counters is None:
            gaps.add((Gap.VISITS, day.rollup.day))
        else:
            found.append(counters)
            visits += int(day.sums[VISITS])
    return RollupVisits(merge(found), visits, selection.gaps_without_visits | Gaps(gaps))


@frozen(eq=False)
class _SelectedDay:
    """The selected visits of a day, and their sums, shape (OF_GROUP,).

    `counters` returns their sums by a dimension, or None if they are unknown.
    """

    rollup: Rollup
    visits: DayVisits
    sums: NDArray[np.int64]
    counters: Callable[[Dimension], Counters | None]


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
    visits = rollup.visits
    if visits is None:
        return None
    sums = _sums_of(visits.overall(), (FIRST,)).sum(axis=1)
    everything = _SelectedDay(rollup, visits, sums, visits.counters)
    masks = []
    for dimension, mask in selection.filter.codes.items():
        counters = visits.counters(dimension)
        if counters is not None and (dimension is not Dimension.PATH or visits.has_pages):
            matches = mask.take(counters.codes)
            if not matches.any():
                return evolve(everything, sums=np.zeros_like(sums))
            if matches.all():
                continue
        masks.append((dimension, mask))
    if not sums.any():
        return everything
    if selection.filter.is_by_view or not selection.period.contains(*rollup.time_bounds):
        return None
    if all(_matches_all(rollup, dimension, mask) for dimension, mask in masks):
        # The first view of each visit is one of the day.
        return everything
    return _select_by(selection.period, everything, *masks[0]) if len(masks) == 1 else None


def _matches_all(rollup: Rollup, dimension: Dimension, mask: Mask) -> bool:
    """Return whether all views of a day match."""
    counters = rollup.counters(dimension)
    return counters is not None and bool(mask.take(counters.codes).all())


def _select_by(
    period: Period, day: _SelectedDay, dimension: Dimension, mask: Mask
) -> _SelectedDay | None:
    """Return those visits of a day that have a view with a matching code of a dimension."""
    counters = day.counters(dimension)
    # Of the pages of imported visits, the first alone has all sums.
    if counters is None or (dimension is Dimension.PATH and not day.rollup.has_durations):
        return None
    selected = counters.take(mask.take(counters.codes))
    groups = _ALL_GROUPS
    least_ms, greatest_ms = day.visits.time_bounds
    if selected.sums[OUTSIDE + VISITS].any() and not period.contains(least_ms, greatest_ms):
        # Which of the views on other days are in the period is unknown, unless none is.
        first_ms, last_ms = day.rollup.time_bounds
        others = ((least_ms, first_ms - 1), (last_ms + 1, greatest_ms))
        if len(selected) > 1 or not all(
            low_ms > high_ms or period.is_outside(low_ms, high_ms) for low_ms, high_ms in others
        ):
            return None
        groups = (FIRST, LATER)
    match_later = any(selected.sums[group + VISITS].any() for group in groups[1:])
    if match_later and len(selected) > 1:
        # How many visits have several of the codes is unknown.
        return None
    # Visits that saw a page saw others, too; those that match by a later view have another row.
    is_known = dimension is not Dimension.PATH and not match_later
    sums = _sums_of(selected, groups).sum(axis=1)
    return evolve(day, sums=sums, counters=({dimension: selected} if is_known else {}).get)


def _sums_of(counters: Counters, groups: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the sums of groups of visits by code, shape (OF_GROUP, k)."""
    of_groups = [np.stack(counters.sums[group : group + OF_GROUP]) for group in groups]
    sums: NDArray[np.int64] = np.sum([each.astype(np.int64) for each in of_groups], axis=0)
    return sums
