"""Which views of each part a query selects: filters as codes, the period as times."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import numpy as np
from attrs import Factory, evolve, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.lookup.referrers import Sources
from medamad.query.filter_codes import dimension_filters, property_filter
from medamad.query.filters import Passing
from medamad.query.period import ALWAYS, Period
from medamad.query.request import Question
from medamad.storage.segments.parts import (
    Codes,
    DayRollup,
    Events,
    MergedSegment,
    Part,
    ViewColumns,
)
from medamad.storage.segments.snapshot import Missed, Missing, Snapshot

T = TypeVar("T")

_FEW: Final = 4


@frozen(eq=False)
class Chosen:
    """The chosen views of one part, as columns of equal length.

    `index` are their places in the part, None for every one of them.
    """

    part: ViewColumns
    index: NDArray[np.intp] | slice | None = None

    def of(self, column: NDArray[Any]) -> NDArray[Any]:
        """Return these views' values out of those of all views of the part."""
        if self.index is None:
            return column
        return (
            column[self.index]
            if isinstance(self.index, slice)
            else column.take(self.index, mode="clip")
        )

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """Unix milliseconds."""
        return self.of(self.part.time_ms)

    @property
    def flags(self) -> NDArray[np.uint8]:
        """See medamad.storage.segments.format."""
        return self.of(self.part.flags)

    @property
    def duration_ms(self) -> NDArray[np.unsignedinteger[Any]]:
        """Milliseconds on the page; 0 where the view is not timed."""
        return self.of(self.part.duration_ms)

    def codes(self, dimension: Dimension) -> Codes:
        """Codes of the views' texts in one of VIEW_DIMENSIONS, of any unsigned dtype."""
        return self.of(self.part.codes(dimension))


@frozen(eq=False)
class Carriers:
    """The views that carry a property which matches.

    `matching` tells by code which properties match; `loose`, ascending, are the sequence numbers
    of views that are named by loose events.
    """

    matching: Passing
    loose: NDArray[np.uint64]

    def may_be_in(self, part: Part | DayRollup) -> bool:
        """Return whether a part, or a day, may have one; without looking at its views."""
        counts = part.event_counts()
        if counts is None or self.matching.take(counts.codes).any():
            return True
        low, high = np.searchsorted(self.loose, np.array(part.sequence_bounds, np.uint64))
        return bool(
            low < high or (low < len(self.loose) and self.loose[low] in part.sequence_bounds)
        )

    def mask(self, part: ViewColumns) -> Passing:
        """Return which views of a part carry one, shape (n,)."""
        mask = np.zeros(len(part), np.bool_)
        own = part.own
        if len(own):
            mask[own.view.compress(self.matching.take(own.property))] = True
        mask[places(part, self.loose)[1]] = True
        return mask


@frozen(eq=False)
class ViewFilter:
    """The filters of a question as what they let pass.

    `passing` holds, for each dimension that is filtered, which codes pass; `carriers` those views
    that have a matching property, None without such a filter.
    """

    passing: Mapping[Dimension, Passing]
    carriers: Carriers | None = None

    @property
    def is_open(self) -> bool:
        """Whether every view passes."""
        return not self.passing and self.carriers is None

    def without(self, dimension: Dimension) -> "ViewFilter":
        """Return the filter as it is apart from one dimension."""
        return evolve(
            self, passing={key: codes for key, codes in self.passing.items() if key != dimension}
        )

    def mask(self, part: ViewColumns, window: slice = slice(None)) -> Passing | None:
        """Return which views of a part, or of a stretch of it, pass; None when there is no filter."""
        mask: Passing | None = None
        for dimension, codes_passing in self.passing.items():
            passed = _passes(part.codes(dimension)[window], codes_passing)
            mask = passed if mask is None else mask & passed
        if self.carriers is not None:
            carrying = self.carriers.mask(part)[window]
            mask = carrying if mask is None else mask & carrying
        return mask

    def choose(
        self, parts: Iterable[Part], period: Period, whole: Callable[[Part], T | None]
    ) -> Iterator[Chosen | T]:
        """See Selection.choose."""
        for part in parts:
            least_ms, greatest_ms = part.time_bounds
            if least_ms > greatest_ms or period.is_outside(least_ms, greatest_ms):
                continue
            left = self.left_by(part)
            if left is None:
                continue
            if left.is_open and period.contains(least_ms, greatest_ms):
                answer = whole(part)
                if answer is not None:
                    yield answer
                    continue
            if isinstance(part, MergedSegment):
                yield from left.choose(part.members, period, whole)
            else:
                yield from left.views_of(part, period)

    def left_by(self, part: Part | DayRollup) -> "ViewFilter | None":
        """Return what is left to be looked at view by view; None where no view can pass."""
        if self.carriers is not None and not self.carriers.may_be_in(part):
            return None
        left: ViewFilter = self
        for dimension, codes_passing in self.passing.items():
            counters = part.counters(dimension)
            if counters is not None:
                passed = codes_passing.take(counters.codes)
                if not passed.any():
                    return None
                if passed.all():
                    left = left.without(dimension)
        return left

    def views_of(self, part: ViewColumns, period: Period) -> Iterator[Chosen]:
        """Return the views of a part that pass and lie in a period, if there are any."""
        least_ms, greatest_ms = part.time_bounds
        if period.contains(least_ms, greatest_ms):
            window, mask = slice(0, len(part)), None
        elif part.ascends:
            window, mask = period.stretch(part.time_ms), None
        else:
            window, mask = slice(0, len(part)), period.mask(part.time_ms)
        passed = self.mask(part, window)
        if mask is not None and passed is not None:
            mask &= passed
        elif passed is not None:
            mask = passed
        if mask is not None:
            index = np.flatnonzero(mask)
            index += window.start
            if len(index):
                yield Chosen(part, index)
        elif window.stop - window.start == len(part):
            yield Chosen(part)
        elif window.stop > window.start:
            yield Chosen(part, window)


@frozen(eq=False)
class Selection:
    """The views that a question is about: those of all parts that pass and lie in a period.

    So, too, the days of which there are sums; what these cannot answer is `missed`.
    """

    parts: Iterable[Part]
    period: Period
    filter: ViewFilter
    days: Iterable[DayRollup] = ()
    missed: Missed = Factory(Missed)
    missing: Missing = Missing.FIGURES
    """What the answer is without where a day cannot answer."""

    def choose(self, whole: Callable[[Part], T | None]) -> Iterator[Chosen | T]:
        """Return the views of each part that has any.

        Where all views of a part are chosen, `whole` may give an answer in their place; if it
        gives None, they come one part at a time.
        """
        return self.filter.choose(self.parts, self.period, whole)

    def views(self) -> Iterator[Chosen]:
        """Return the views of each part that has any."""
        return self.choose(_nothing)

    def summed(self, known: Callable[[DayRollup], T | None]) -> Iterator[T]:
        """Return what is known of each day that is chosen whole.

        Days that are cut by the period, or of whose views only some may pass, or of which nothing
        is known, are noted as missing.
        """
        for day in self.days:
            least_ms, greatest_ms = day.time_bounds
            if least_ms > greatest_ms or self.period.is_outside(least_ms, greatest_ms):
                continue
            left = self.filter.left_by(day)
            if left is None:
                continue
            answer = None
            if left.is_open and self.period.contains(least_ms, greatest_ms):
                answer = known(day)
            if answer is None:
                self.missed.note(self.missing, day)
            else:
                yield answer

    def during(self, period: Period) -> "Selection":
        """Return the same of another period."""
        return evolve(self, period=period)

    def without(self, dimension: Dimension) -> "Selection":
        """Return the same without the filter on a dimension."""
        return evolve(self, filter=self.filter.without(dimension))


def _nothing(_part: Part) -> None:
    """Return no answer for a part."""


def select(snapshot: Snapshot, question: Question, sources: Sources) -> Selection:
    """Return the views that a question is about."""
    return Selection(
        snapshot.parts,
        question.period,
        view_filter(snapshot, question, sources),
        snapshot.days,
        snapshot.missed,
    )


def _passes(codes: Codes, passing: Passing) -> Passing:
    """Return which codes pass. To compare with a few is faster than to look each up."""
    wanted = np.flatnonzero(passing)
    if len(wanted) > _FEW:
        return passing.take(codes)
    mask = np.zeros(len(codes), np.bool_)
    greatest = np.iinfo(codes.dtype).max
    for code in wanted.tolist():
        if code <= greatest:
            mask |= codes == codes.dtype.type(code)
    return mask


def places(
    part: ViewColumns, sequences: NDArray[np.uint64]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Find views by their sequence numbers.

    Gives the indices into `sequences` of those that the part holds, and their places in it.
    """
    low, high = part.sequence_bounds
    near = np.flatnonzero((sequences >= low) & (sequences <= high)) if len(part) else ()
    if not len(near):
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    wanted, known = sequences[near], part.sequence
    found = np.searchsorted(known, wanted)
    there = known[found] == wanted
    return near[there], found[there]


def view_filter(snapshot: Snapshot, question: Question, sources: Sources) -> ViewFilter:
    """Return all filters of a question, as far as they choose among views."""
    codes_passing = dimension_filters(snapshot, question, sources)
    if not question.names_property:
        return ViewFilter(codes_passing)
    matching = property_filter(snapshot, question)
    views = [
        events.view[matching.take(events.property)].astype(np.uint64)
        for events in loose_events(snapshot, ALWAYS)
        if len(events)
    ]
    loose = np.unique(np.concatenate(views)) if views else np.zeros(0, np.uint64)
    return ViewFilter(codes_passing, Carriers(matching, loose[loose > 0]))


def loose_events(snapshot: Snapshot, period: Period) -> Iterator[Events]:
    """Return the loose events of all parts that may have some in a period, and the others."""
    for part in leaves(snapshot.parts):
        bounds = part.event_time_bounds
        if bounds[0] <= bounds[1] and not period.is_outside(*bounds):
            yield part.loose
    yield from snapshot.events


def leaves(parts: Iterable[Part]) -> Iterator[ViewColumns]:
    """Return the parts, and those in groups, one after the other."""
    for part in parts:
        if isinstance(part, MergedSegment):
            yield from leaves(part.members)
        else:
            yield part
