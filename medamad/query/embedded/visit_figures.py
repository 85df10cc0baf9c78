"""The figures of the selected visits by bucket, by dimension, and by the pages at their ends."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from hashlib import blake2b
from typing import Literal

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.query.buckets import Buckets
from medamad.query.embedded.goals import GoalSearch
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import ViewsInVisits
from medamad.query.embedded.rollup_visits import (
    RollupVisits,
    visits_by_code,
    with_rollups,
)
from medamad.query.embedded.scan import Selection, divide
from medamad.query.embedded.visit_groups import of_whole_visits, visits_in_groups
from medamad.query.embedded.visit_sums import (
    Amounts,
    Beginnings,
    BegunWith,
    FirstViews,
    Kind,
    LastPages,
    ReachedGoal,
    SeenPages,
    Totals,
    add_up,
    split_keys,
    sum_visits,
)
from medamad.query.embedded.visits import PartVisits, all_visits
from medamad.query.filters import Mask, text_mask
from medamad.query.period import Period
from medamad.query.request import Gaps
from medamad.query.sums import (
    VISITS,
    AmountCounts,
    GroupedVisits,
    VisitGrouping,
    VisitSums,
    WhichView,
)
from medamad.storage.segments.counters import SLOT_MS
from medamad.storage.segments.parts import Numbers


def visits_by_bucket(selection: Selection, buckets: Buckets | None) -> tuple[VisitSums, Gaps]:
    """Return the sums of the selected visits by the bucket in which they began, or of all.

    The period of the selection has to be that of the buckets.
    """
    slot_ms = _slot_ms(selection.period, buckets)
    # Times are slow to read. Without a filter, the sums by time are cached.
    is_untimed = buckets is None and not selection.filter.matches_all_included
    (found,) = sum_visits(selection, [Totals() if is_untimed else Beginnings(slot_ms)])
    if buckets is None:
        return with_rollups(found.total(), selection, buckets)
    return with_rollups(_by_bucket(found, slot_ms, selection.period, buckets), selection, buckets)


def count_reached(
    selection: Selection,
    buckets: Buckets | None,
    search: GoalSearch,
) -> NDArray[np.int64]:
    """Return the number of selected visits, and for each goal of those that reached it.

    By the bucket in which they began, or of all: shape (1 + goals, n), or (1 + goals, 1).
    """
    if selection.filter.matches_all_included:
        period, slot_ms = selection.period, _slot_ms(selection.period, buckets)
        count = Totals(VISITS) if buckets is None else Beginnings(slot_ms, VISITS)
        kinds: list[Kind] = [count, *(ReachedGoal(goal, count) for goal in search.goals)]
        found = sum_visits(selection, kinds)
        if buckets is None:
            return np.stack([sums.dense(1).visits for sums in found])
        return np.stack([_by_bucket(sums, slot_ms, period, buckets).visits for sums in found])
    groups = visits_in_groups(selection)
    if buckets is None:
        parts = [search.in_visits(each) for each in groups]
        visits = sum(int(np.bitwise_count(each.chosen.bits).sum()) for each in parts)
        return np.array([visits, *LOOPS.count_goals(parts, len(search.goals))[1]])[:, np.newaxis]
    counts = no_counts(search, buckets)
    for each in groups:
        add_counts(each, search.have_reached(each), selection.period, buckets, counts)
    return counts


def no_counts(search: GoalSearch, buckets: Buckets | None) -> NDArray[np.int64]:
    """Return what `count_reached` does of no visits."""
    size = 1 if buckets is None else len(buckets.dates)
    return np.zeros((1 + len(search.goals), size), np.int64)


def add_counts(
    visits: PartVisits,
    reached: Iterable[Mask],
    period: Period,
    buckets: Buckets | None,
    counts: NDArray[np.int64],
) -> None:
    """Add those of some visits that began in a period to `counts`, as `count_reached` has them.

    `reached` has which of them reached each goal.
    """
    masks = [np.ones(len(visits), np.bool_), *reached]
    is_inside = period.contains(*visits.part.time_bounds)
    if buckets is None and is_inside:
        counts[:, 0] += list(map(np.count_nonzero, masks))
        return
    begins_ms = visits.part.time_ms[visits.begins]
    is_begun = period.mask(begins_ms)
    if buckets is None:
        counts[:, 0] += [np.count_nonzero(mask & is_begun) for mask in masks]
        return
    places = buckets.of(begins_ms)
    counts += [np.bincount(places[mask & is_begun], minlength=counts.shape[1]) for mask in masks]


def _slot_ms(period: Period, buckets: Buckets | None) -> int:
    """Return the length of slots of which each is in one bucket."""
    if buckets is None or buckets.are_aligned(SLOT_MS, *_bounds(period)):
        return SLOT_MS
    return 1


def _by_bucket(sums: VisitSums, slot_ms: int, period: Period, buckets: Buckets) -> VisitSums:
    begins_ms = np.clip(sums.codes * slot_ms, *_bounds(period))
    return sums.grouped(buckets.of(begins_ms), len(buckets.dates))


def _bounds(period: Period) -> tuple[int, int]:
    # As those of buckets are.
    assert period.start_ms is not None  # noqa: S101
    assert period.end_ms is not None  # noqa: S101
    return period.start_ms, period.end_ms


def group_visits(
    selection: Selection, groupings: Sequence[VisitGrouping], *, include_rollups: bool
) -> GroupedVisits:
    """Return the selected visits in each of some groupings.

    Without `include_rollups`, or if one is of some visits only, days of which only rollups are left
    are gaps.
    """
    found = sum_visits(selection, list(map(_kind_of, groupings)))
    total = int(found[0].visits.sum())
    if not include_rollups or any(each.among or each.reached for each in groupings):
        return GroupedVisits(found, total, selection.visit_gaps)
    gaps, days = selection.gaps_without_visits, dict[Dimension, RollupVisits]()
    if any(True for _ in selection.rollups_in_period()):
        for dimension in {each.dimension for each in groupings}:
            which = {each.which for each in groupings if each.dimension is dimension}
            days[dimension] = visits_by_code(selection, dimension, which)
            gaps |= days[dimension].gaps
        total += days[groupings[0].dimension].visits
        found = [
            days[each.dimension].added_to(sums, each.which)
            for each, sums in zip(groupings, found, strict=True)
        ]
    return GroupedVisits(found, total, gaps)


def amounts_by_first_view(
    selection: Selection, goal: Goal, groupings: Sequence[VisitGrouping]
) -> tuple[list[AmountCounts], Gaps]:
    """Return the amounts in the conversions of the selected visits, in each of some groupings.

    Days of which only rollups are left are gaps.
    """
    kinds = [_among(each, Amounts(goal, each.dimension)) for each in groupings]
    found = [
        AmountCounts(*split_keys(sums.codes), sums.visits) for sums in sum_visits(selection, kinds)
    ]
    return found, selection.visit_gaps


def _kind_of(grouping: VisitGrouping) -> Kind:
    kind: Kind = FirstViews(grouping.dimension, grouping.up_to)
    if grouping.which is not WhichView.FIRST:
        kind = SeenPages() if grouping.which is WhichView.ANY else LastPages()
    if grouping.reached is not None:
        kind = ReachedGoal(grouping.reached, kind)
    return _among(grouping, kind)


def _among(grouping: VisitGrouping, kind: Kind) -> Kind:
    return kind if grouping.among is None else BegunWith(*grouping.among, kind)


def pages_beside(selection: Selection, path: str, step: Literal[1, -1]) -> NDArray[np.int64]:
    """Return how many views of each path came next after selected views of a page, shape (n + 1,).

    With a step of -1, came before. The last number is that of the views of the page that ended, or
    began, their visit. Views whose visit is unknown do not count.
    """
    snapshot = selection.snapshot
    size = len(snapshot.texts(Dimension.PATH))
    # A page that was vacuumed and seen again has several codes until its texts are read again.
    is_page = text_mask(
        snapshot.texts,
        Dimension.PATH,
        (pages_beside, path),
        lambda piece: np.array([text == path for text in piece], np.bool_),
        selection.cancellation,
    )

    filter_ = selection.filter
    # Texts that are newer than a filter's mask have no views.
    others = filter_.codes.get(Dimension.PATH, np.ones(len(is_page), np.bool_))
    codes = {**filter_.codes, Dimension.PATH: is_page[: len(others)] & others}
    key = None if filter_.key is None else (filter_.key, pages_beside, path)
    of_page = evolve(selection, filter=evolve(filter_, codes=codes, key=key, tables={}))
    pieces = [
        piece
        for among, left_out in of_whole_visits(of_page)
        for piece in cached_beside(among, left_out, step)
    ]
    return np.roll(add_up(pieces).dense(size + 1).visits, -1)


def cached_beside(
    selection: Selection, left_out: Numbers, step: Literal[1, -1]
) -> Iterator[VisitSums]:
    """Return the numbers of `count_beside` in pieces, of which that of merged segments is cached.

    Of other segments, too many visits go on.
    """
    filter_, snapshot = selection.filter, selection.snapshot
    covered, others = divide(snapshot, selection.period)
    merged = covered.with_segments(segment for segment in covered.segments if segment.members)
    if merged.segments and filter_.key is not None and not filter_.is_by_view:
        apart = (segment for segment in covered.segments if not segment.members)
        snapshot = evolve(others, segments=(*others.segments, *apart))
        last = max(segment.header.sequence_bounds[1] for segment in merged.segments)
        visits = left_out[: left_out.searchsorted(last + 1)]
        digest = blake2b(visits.tobytes(), digest_size=16).digest()
        which = (filter_.key, step, digest, filter_.state_of(merged.segments))
        of_merged = evolve(selection, snapshot=merged)
        yield merged.cached(which, partial(count_beside, of_merged, left_out, step))
    yield count_beside(evolve(selection, snapshot=snapshot), left_out, step)


def count_beside(selection: Selection, left_out: Numbers, step: Literal[1, -1]) -> VisitSums:
    """Return how many views come next after selected ones, or before, by their path's code + 1.

    The number under 0 is that of the selected views without such a view. Visits of some numbers,
    ascending, are left out.
    """
    parts = []
    for candidates in selection.all_candidates():
        part = candidates.part
        visits = all_visits(selection.snapshot, part, left_out)
        columns, paths = visits.columns, part.codes(Dimension.PATH)
        views = candidates.views()
        of_part = ViewsInVisits(views, columns.offsets, columns.spans, paths, visits.chosen)
        parts.append(of_part)
    size = len(selection.snapshot.texts(Dimension.PATH))
    counts = np.roll(LOOPS.count_beside(parts, step, size), 1)
    codes = np.flatnonzero(counts)
    return VisitSums(codes, counts[np.newaxis, codes])
