"""The statistic of properties: events by the names, or the values, that they carry."""

from collections.abc import Iterator, Sequence

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, split_property
from medamad.lookup.referrers import Sources
from medamad.query.filter_codes import (
    dimension_filters,
    passes_without_view,
    property_filter,
    texts_from,
)
from medamad.query.filters import Passing
from medamad.query.period import Period
from medamad.query.request import Question
from medamad.query.rows import Columns, Row, fractions, page, records
from medamad.query.scan import ViewFilter, leaves, places
from medamad.storage.segments.parts import (
    NO_EVENTS,
    DayRollup,
    EventCounts,
    EventRows,
    Events,
    EventSums,
    MergedSegment,
    Part,
    ViewColumns,
)
from medamad.storage.segments.snapshot import Missing, Snapshot


def report(snapshot: Snapshot, question: Question, sources: Sources) -> list[Row]:
    """Return a row for every property name or, with a filter on it, every name and value.

    Name (and value), the events that carry it and their share of those that carry any: most
    events first. An event counts by its own time; the filters on views look at its view.
    """
    by_value = bool(question.conditions_on(("prop_name",)))
    labels = _Labels.of(snapshot, question, by_value=by_value)
    counting = _Counting(labels)
    views = _EventFilter(
        snapshot,
        ViewFilter(dimension_filters(snapshot, question, sources)),
        passes_without_view(question),
    )
    loose = list(snapshot.events)
    for part in snapshot.parts:
        loose += _count(part, question.period, views, counting)
    for day in snapshot.days:
        if not _count_day(day, question.period, views, counting):
            snapshot.missed.note(Missing.FIGURES, day)
    counting.add(views.loose(loose, question.period, labels.matching), None, is_plain=False)
    counts, total = counting.result()
    numbers, shown = page(
        np.flatnonzero(counts), (counts,), labels.texts.__getitem__, question.rows
    )
    columns: Columns = {"name": [split_property(text)[0] for text in shown]}
    if by_value:
        columns["value"] = [split_property(text)[1] for text in shown]
    events = counts[numbers]
    shares = fractions(events, np.array(total))
    return records({**columns, "events": events, "events_percentage": shares})


def _count(
    part: Part, period: Period, views: "_EventFilter", counting: "_Counting"
) -> Iterator[Events]:
    """Count the events of a part, by its counters where that gives the same.

    Gives the loose ones that are still to be counted.
    """
    bounds = part.event_time_bounds
    if bounds[0] > bounds[1] or period.is_outside(*bounds):
        return
    if views.selection.is_open and period.contains(*bounds):
        counts = part.event_counts()
        if counts is not None and counting.add_counts(counts):
            return
    if isinstance(part, MergedSegment):
        for member in part.members:
            yield from _count(member, period, views, counting)
    else:
        is_plain = part.event_counts() is not None
        counting.add(part.own, views.own(part, period), is_plain=is_plain)
        yield part.loose


def _count_day(
    day: DayRollup, period: Period, views: "_EventFilter", counting: "_Counting"
) -> bool:
    """Count the events of a summed day; returns whether it can be told which of them count."""
    bounds = day.event_time_bounds
    if bounds[0] > bounds[1] or period.is_outside(*bounds):
        return True
    sums, matching = day.event_sums(), counting.labels.matching
    if matching is not None and not matching.take(sums.codes).any():
        return True
    return views.selection.is_open and period.contains(*bounds) and counting.add_event_sums(sums)


@frozen(eq=False)
class _Labels:
    """What the rows are counted by: names, or a property's whole text, which sorts by name first.

    They are the first `size` of `texts`; `by_value` tells which of the two. `of_code` gives the
    number of the label of each property; `matching` tells which properties match, None for all;
    `is_one_name` whether those that match have one name.
    """

    texts: Sequence[str]
    of_code: NDArray[np.int64]
    size: int
    matching: Passing | None
    is_one_name: bool
    by_value: bool

    @classmethod
    def of(cls, snapshot: Snapshot, question: Question, *, by_value: bool) -> "_Labels":
        names = _names(snapshot)
        size = len(names.of_code)
        matching = property_filter(snapshot, question)[:size]
        matched = names.of_code[np.flatnonzero(matching)]
        return cls(
            texts=snapshot.texts(Dimension.PROPERTY) if by_value else names.texts,
            of_code=np.arange(size) if by_value else names.of_code,
            size=size if by_value else len(names.texts),
            matching=matching if question.names_property else None,
            is_one_name=len(matched) > 0 and bool(matched.min() == matched.max()),
            by_value=by_value,
        )


@frozen(eq=False)
class _Names:
    """The names of properties, and by a property's code which one is its own."""

    texts: Sequence[str] = ()
    of_code: NDArray[np.int64] = field(factory=lambda: np.zeros(0, np.int64))


def _names(snapshot: Snapshot) -> _Names:
    """Return the names of all properties, reading those only that were not read before."""
    known: _Names = snapshot.memo.pop(_Names, _Names())
    numbers = {name: number for number, name in enumerate(known.texts)}
    pieces = [known.of_code]
    for texts in texts_from(snapshot, Dimension.PROPERTY, len(known.of_code)):
        found = (numbers.setdefault(split_property(text)[0], len(numbers)) for text in texts)
        pieces.append(np.fromiter(found, np.int64, len(texts)))
    if len(pieces) > 1:
        known = _Names(tuple(numbers), np.concatenate(pieces))
    snapshot.memo[_Names] = known
    return known


@define(eq=False)
class _Counting:
    """Events by label, and all of them."""

    labels: _Labels
    _by_code: NDArray[np.int64] = field(init=False)
    _by_label: NDArray[np.int64] = field(init=False)
    _total: int = 0

    def __attrs_post_init__(self) -> None:
        self._by_code = np.zeros(len(self.labels.of_code), np.int64)
        self._by_label = np.zeros(self.labels.size, np.int64)

    def add_counts(self, counts: EventCounts) -> bool:
        """Add up counters; returns False, and adds nothing, where they do not tell enough."""
        matching = self.labels.matching
        if matching is None or matching.take(counts.codes).all():
            self._by_code[counts.codes] += counts.events
            self._total += counts.total
            return True
        if not self.labels.is_one_name:
            # How many events carry one of several names is not known.
            return not matching.take(counts.codes).any()
        matched = np.flatnonzero(matching.take(counts.codes))
        events = counts.events[matched].astype(np.int64)
        self._by_code[counts.codes[matched]] += events
        self._total += int(events.sum())
        return True

    def add_event_sums(self, sums: EventSums) -> bool:
        """Add up what a day had; returns False, and adds nothing, where it does not tell enough."""
        matching = self.labels.matching
        if matching is None or matching.take(sums.codes).all():
            if self.labels.by_value:
                self._by_code[sums.codes] += sums.events
            else:
                self._by_label[self.labels.of_code[sums.names]] += sums.events_of_names
            self._total += sums.total
            return True
        if sums.is_plain:
            counts = EventCounts(sums.codes, sums.events, sums.total)  # type: ignore[arg-type]
            return self.add_counts(counts)
        (matched,) = np.nonzero(matching.take(sums.codes))
        if len(matched) > 1:
            # Whether an event carries several of them is not known.
            return False
        self._by_code[sums.codes[matched]] += sums.events[matched]
        self._total += int(sums.events[matched].sum())
        return True

    def add(self, events: Events, mask: Passing | None, *, is_plain: bool) -> None:
        """Add events row by row, those of a mask, all rows of an event together.

        `is_plain` says that none of them carries a name twice.
        """
        if not len(events):
            return
        codes, matching = events.property, self.labels.matching
        if matching is not None:
            matched = matching.take(codes)
            mask = matched if mask is None else mask & matched
        event = events.event
        if mask is not None:
            codes, event = codes.compress(mask), event.compress(mask)
        if not len(codes):
            return
        begins = event[1:] != event[:-1]
        self._total += int(np.count_nonzero(begins)) + 1
        if is_plain:
            self._by_code += np.bincount(codes, minlength=len(self._by_code))
            return
        size = len(self._by_label)
        number = np.zeros(len(event), np.int64)
        np.cumsum(begins, out=number[1:])
        # An event may carry a label twice, as the value that stands for those past a bound.
        carried = number * size + self.labels.of_code[codes]
        carried.sort()
        once = np.flatnonzero(np.diff(carried, prepend=-1))
        self._by_label += np.bincount(carried[once] % size, minlength=size)

    def result(self) -> tuple[NDArray[np.int64], int]:
        """Return the events with each label, and those with any."""
        counts = self._by_label.copy()
        np.add.at(counts, self.labels.of_code, self._by_code)
        return counts, self._total


@frozen(eq=False)
class _EventFilter:
    """Which events count: by their time and by their view; `without_view` for those of none."""

    snapshot: Snapshot
    selection: ViewFilter
    without_view: bool

    def own(self, part: ViewColumns, period: Period) -> Passing | None:
        """Return which events of views of a part count, row by row; None for all."""
        events = part.own
        mask = None
        if len(events) and not period.contains(*part.event_time_bounds):
            mask = period.mask(events.time_ms)
        views = self.selection.mask(part) if len(events) else None
        if views is not None:
            passed = views.take(events.view)
            mask = passed if mask is None else mask & passed
        return mask

    def loose(self, pieces: Sequence[Events], period: Period, matching: Passing | None) -> Events:
        """Return the events that count, of those that name their view by its number."""
        events: Events = EventRows(
            event=np.concatenate([NO_EVENTS.event, *(piece.event for piece in pieces)]),
            time_ms=np.concatenate([NO_EVENTS.time_ms, *(piece.time_ms for piece in pieces)]),
            view=np.concatenate([NO_EVENTS.view, *(piece.view for piece in pieces)]),
            property=np.concatenate([NO_EVENTS.property, *(piece.property for piece in pieces)]),
        )
        mask = period.mask(events.time_ms)
        if matching is not None:
            mask &= matching.take(events.property)
        events = _some(events, mask)
        if self.selection.is_open or not len(events):
            return events
        passed = np.full(len(events), self.without_view)
        is_found = np.zeros(len(events), np.bool_)
        for part in leaves(self.snapshot.parts):
            of_part, place = places(part, events.view)
            is_found[of_part] = True
            if len(of_part) and (views := self.selection.mask(part)) is not None:
                passed[of_part] = views[place]
        for day in self.snapshot.days:
            low, high = day.sequence_bounds
            is_gone = ~is_found & (events.view >= max(low, 1)) & (events.view <= high)
            if is_gone.any():
                # What its view was is not known any more.
                passed[is_gone] = False
                self.snapshot.missed.note(Missing.FIGURES, day)
        return _some(events, passed)


def _some(events: Events, mask: NDArray[np.bool_]) -> Events:
    if mask.all():
        return events
    event, view, code = (column[mask] for column in (events.event, events.view, events.property))
    return EventRows(event, events.time_ms[mask], view, code)
