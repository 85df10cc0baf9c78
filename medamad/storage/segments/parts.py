"""The parts that a query reads: views and events as columns, counters, rollups of days.

A part is a run of views as columns: a chunk of the memtable, or a segment. Segments that compaction
has merged form one part with common counters. A query reads one part after the other and adds the
results up. A day whose views have been deleted leaves a rollup, which answers what it can.

Arrays and counters may be borrowed from the database file. They are valid until the query ends, and
must not be written to.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Final, Protocol, TypeAlias

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewNumber
from medamad.storage.segments.counters import Counters

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Codes have the narrowest type that holds them: widen them before doing arithmetic."""

VIEW_DTYPES: Final[Mapping[str, np.dtype[Any]]] = {
    "time_ms": np.dtype("<i8"),
    "sequence": np.dtype("<u8"),
    "flags": np.dtype("u1"),
    "duration_ms": np.dtype("<u4"),
    **{number.attribute: np.dtype(f"<u{number.bytes}") for number in ViewNumber},
}
"""The columns of views in memory, by name, but for the codes of their texts."""
EVENT_DTYPES: Final[Mapping[str, np.dtype[Any]]] = {
    "event": np.dtype("<u8"),
    "time_ms": np.dtype("<i8"),
    "view": np.dtype("<u8"),
    "property": np.dtype("<u4"),
}
"""The columns of events in memory, by name."""

NO_TIME: tuple[int, int] = (1 << 62, -1)
"""The time bounds of nothing."""


def enclosing_bounds(bounds: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the least and the greatest of several bounds."""
    least, greatest = NO_TIME
    for low, high in bounds:
        least, greatest = min(least, low), max(greatest, high)
    return least, greatest


Numbers: TypeAlias = NDArray[np.int64]
"""Numbers of visits, or sequence numbers of views."""
NO_NUMBERS: Final[Numbers] = np.zeros(0, np.int64)


def distinct(numbers: NDArray[Any]) -> NDArray[Any]:
    """Return the different numbers of some in ascending order, which they mostly are in."""
    if not np.all(numbers[1:] >= numbers[:-1]):
        numbers = np.sort(numbers, kind="stable")
    is_first = np.ones(len(numbers), np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=is_first[1:])
    return numbers if is_first.all() else numbers[is_first]


def joined_numbers(pieces: Iterable[Numbers]) -> Numbers:
    """Return the different numbers of pieces, ascending."""
    return distinct(np.concatenate([NO_NUMBERS, *pieces]))


def outer_bounds(numbers: Numbers) -> tuple[int, int]:
    """Return the first and the last of some numbers, ascending, (1, 0) without any."""
    return (int(numbers[0]), int(numbers[-1])) if len(numbers) else (1, 0)


class EventColumns(Protocol):
    """The properties of events as columns of shape (m,), a row for each property of an event.

    Rows are in ascending order of `event`. The rows of an event have the same view.
    """

    @property
    def event(self) -> NDArray[np.unsignedinteger[Any]]:
        """The number of the event."""

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """The time of the event, Unix milliseconds."""

    @property
    def view(self) -> NDArray[np.unsignedinteger[Any]]:
        """The event's view.

        In `ViewColumns.own` this is the index of the view in the part. Elsewhere it is the view's
        sequence number, or 0 if the event has no view.
        """

    @property
    def property(self) -> Codes:
        """Codes of Dimension.PROPERTY."""

    def __len__(self) -> int:
        """Return m."""


def are_late(
    event: NDArray[np.integer[Any]],
    time_ms: NDArray[np.int64],
    view: NDArray[np.integer[Any]],
    view_time_ms: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return which events are later than the loads of their views; shapes (m,).

    `view` has the sequence numbers of the views. The properties that a page states as it loads are
    an event with the number after the view's. An event sent as a hit of its own has another number,
    and is later whatever its time, which servers state in whole seconds. Stores of earlier builds
    may have such events with that number, too: of these, the time decides.
    """
    late: NDArray[np.bool_] = event.astype(np.int64) != view.astype(np.int64) + 1
    late |= time_ms > view_time_ms
    return late


@frozen(eq=False)
class EventRows:
    """Events in memory."""

    event: NDArray[np.unsignedinteger[Any]]
    time_ms: NDArray[np.int64]
    view: NDArray[np.unsignedinteger[Any]]
    property: Codes
    nbytes: int = field(init=False)
    """The memory that they take."""

    @nbytes.default
    def _add_up(self) -> int:
        return sum(each.nbytes for each in (self.event, self.time_ms, self.view, self.property))

    @cached_property
    def views(self) -> Numbers:
        """The sequence numbers of their views, ascending. Not for `ViewColumns.own`."""
        return views_of(self)

    def __len__(self) -> int:
        return len(self.event)


NO_EVENTS = EventRows(
    np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint32)
)


def joined(pieces: Iterable[EventColumns]) -> EventRows:
    """Return copies of events that are not of one part's own views, one piece after the other."""
    found = [NO_EVENTS, *pieces]
    return EventRows(
        event=np.concatenate([piece.event for piece in found]),
        time_ms=np.concatenate([piece.time_ms for piece in found]),
        view=np.concatenate([piece.view for piece in found]),
        property=np.concatenate([piece.property for piece in found]),
    )


@frozen(eq=False)
class EventCounts:
    """How many events have each property: `codes` of Dimension.PROPERTY and `events`, shape (k,).

    `total` is the number of events. None of them has a property name twice.
    """

    codes: NDArray[np.integer[Any]]
    events: NDArray[np.integer[Any]]
    total: int

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self.codes.nbytes + self.events.nbytes


class VisitColumns(Protocol):
    """The visits that begin in a part, with what the part has of them, as columns of shape (n,).

    They are in the order of their first views. One that has views or events in other parts, too, is
    not described in full: `medamad.query.embedded.visit_groups` gathers the views of those.
    """

    @property
    def offsets(self) -> NDArray[np.unsignedinteger[Any]]:
        """Of each view of the part, how many rows before it its visit's first view is, plus 1.

        It is 0 if the part does not have that, or the visit is unknown.
        """

    @property
    def visit_offset(self) -> NDArray[np.unsignedinteger[Any]]:
        """The VISIT_OFFSET of each view of which `offsets` has a 0."""

    @property
    def begins(self) -> NDArray[np.intp]:
        """The rows of the first views, ascending."""

    @property
    def spans(self) -> NDArray[np.integer[Any]]:
        """How many rows the last view of each is after the first."""

    @property
    def views(self) -> NDArray[np.integer[Any]]:
        """How many views each has."""

    @property
    def duration_ms(self) -> NDArray[np.integer[Any]]:
        """The total of their known durations."""

    @property
    def has_event(self) -> NDArray[np.bool_]:
        """Whether any event is later than the load of its view; see `are_late`."""

    @property
    def repeats(self) -> NDArray[np.integer[Any]]:
        """The rows of the views of a page that the same visit saw before, ascending, shape (m,)."""

    @property
    def elsewhere(self) -> NDArray[np.int64]:
        """The numbers of the visits of other views, which begin in other parts, ascending."""


class HasCounters(Protocol):
    """What segments, merged segments, memtable chunks and rollups have in common."""

    @property
    @abstractmethod
    def time_bounds(self) -> tuple[int, int]:
        """The earliest and the latest time of a view, Unix milliseconds, or NO_TIME."""

    @property
    @abstractmethod
    def event_time_bounds(self) -> tuple[int, int]:
        """The earliest and the latest time of an event, own and loose, or NO_TIME."""

    @property
    @abstractmethod
    def sequence_bounds(self) -> tuple[int, int]:
        """The least and the greatest sequence number of a view, or (0, 0)."""

    @abstractmethod
    def counters(self, dimension: Dimension) -> Counters | None:
        """Return the sums of the views by the codes of a dimension, or None to scan for them."""

    @abstractmethod
    def event_counts(self) -> EventCounts | None:
        """Return the counts of the events, own and loose, or None to scan for them."""


class ViewColumns(HasCounters, Protocol):
    """A part: n views as columns, in the order of their sequence numbers."""

    @property
    def import_batch(self) -> int:
        """The number of the import batch that all of it came with, or 0."""

    @property
    def first_visit(self) -> int:
        """The least number of a visit that any of its views belongs to, or 0."""

    @property
    def ascends(self) -> bool:
        """Whether the times ascend. They do not if the clock was set back."""

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """Shape (n,): Unix milliseconds."""

    @property
    def sequence(self) -> NDArray[np.uint64]:
        """Shape (n,), strictly ascending: the numbers by which events refer to views."""

    @property
    def flags(self) -> NDArray[np.uint8]:
        """Shape (n,): the flags that medamad.storage.segments.format defines."""

    @property
    def duration_ms(self) -> NDArray[np.unsignedinteger[Any]]:
        """Shape (n,): milliseconds on the page, 0 if unknown."""

    @property
    def own(self) -> EventColumns:
        """The events of this part's views. Their `view` is an index into this part."""

    @property
    def loose(self) -> EventColumns:
        """The events of other views, or of none. Their `view` is a sequence number, or 0."""

    def views_with_late_events(
        self, among: NDArray[np.bool_] | None = None
    ) -> NDArray[np.integer[Any]]:
        """Return the index of the view of each own event that is later than the view's load.

        Of the views that `among` marks, or of all. See `are_late`.
        """

    def visits(self) -> VisitColumns:
        """Return the visits that begin in the part."""

    def slots(self) -> Counters | None:
        """Return the sums of the views by slots of SLOT_MS, or None to scan for them."""

    def codes(self, dimension: Dimension) -> Codes:
        """Return the code of each view's text in one of VIEW_DIMENSIONS, shape (n,)."""

    def numbers(self, number: ViewNumber) -> NDArray[np.unsignedinteger[Any]]:
        """Return one of the numbers of each view, shape (n,)."""

    def __len__(self) -> int:
        """Return n."""


@frozen(eq=False)
class Elsewhere:
    """What a part has of visits that begin in others, ascending.

    `visits` has the numbers of those that its views belong to, and `views` the sequence numbers of
    the views elsewhere that its events belong to.
    """

    visits: Numbers
    views: Numbers

    @classmethod
    def of(cls, parts: Iterable["Elsewhere"]) -> "Elsewhere":
        """Return what any of some parts has."""
        found = list(parts)
        return cls(
            joined_numbers(each.visits for each in found),
            joined_numbers(each.views for each in found),
        )

    @classmethod
    def of_views(cls, part: ViewColumns) -> "Elsewhere":
        """Return what a part that is not merged has."""
        visits = part.visits().elsewhere if part.first_visit else NO_NUMBERS
        return cls(visits, views_of(part.loose))

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self.visits.nbytes + self.views.nbytes


def views_of(loose: EventColumns) -> Numbers:
    """Return the numbers of the views of loose events, ascending."""
    views = distinct(loose.view.astype(np.int64))
    return views[views > 0]


class MergedSegment(HasCounters):
    """Several parts with common counters. A merged segment always has counters."""

    @property
    @abstractmethod
    def import_batch(self) -> int:
        """The number of the import batch that all of it came with, or 0."""

    @property
    @abstractmethod
    def first_visit(self) -> int:
        """The least number of a visit that any of its views belongs to, or 0."""

    @property
    @abstractmethod
    def members(self) -> Iterable["ViewColumns | MergedSegment"]:
        """The parts that it consists of, some of which may be merged segments themselves."""

    @abstractmethod
    def slots(self) -> Counters | None:
        """Return the sums of the views by slots of SLOT_MS, or None to read the members."""

    @abstractmethod
    def elsewhere(self) -> Elsewhere:
        """Return what the members have of visits that begin in none of them."""


Part: TypeAlias = ViewColumns | MergedSegment


@frozen(eq=False)
class EventSums:
    """How many events of a day have each property, and how many have each property name.

    `codes` of Dimension.PROPERTY ascend; `events` counts the events with each, shape (k,). `names`
    has one code of a property for each name, and `events_of_names` counts the events with that
    name, shape (m,). `total` is the number of events. `has_distinct_names` is true if no event has
    a name twice.
    """

    codes: NDArray[np.integer[Any]]
    events: NDArray[np.integer[Any]]
    names: NDArray[np.integer[Any]]
    events_of_names: NDArray[np.integer[Any]]
    total: int
    has_distinct_names: bool


@frozen(eq=False)
class PathDurations:
    """The known durations of views by path.

    `codes` of Dimension.PATH ascend; `counts` has the number of durations of each, shape (k,).
    `duration_ms` has the durations of the first path in ascending order, then those of the second,
    and so on.
    """

    codes: NDArray[np.integer[Any]]
    counts: NDArray[np.integer[Any]]
    duration_ms: NDArray[np.uint32]


class DayVisits(Protocol):
    """What a rollup knows of the visits that began on its day, with all of their views.

    The sums are in the order of medamad.storage.segments.visit_counters.
    """

    @property
    def time_bounds(self) -> tuple[int, int]:
        """The earliest and the latest time of a view of theirs, or NO_TIME."""

    @property
    def has_pages(self) -> bool:
        """Whether it is known which pages they saw besides the first."""

    @property
    def has_exits(self) -> bool:
        """Whether it is known which pages they ended on."""

    def overall(self) -> Counters:
        """Return the sums of all of them, under the code 0."""

    def counters(self, dimension: Dimension) -> Counters | None:
        """Return the sums by the codes of a dimension, or None if they are unknown."""


class Rollup(HasCounters):
    """The sums of a day whose views and events have been deleted, one dimension at a time.

    The time bounds are the first and the last millisecond of the day.
    """

    @property
    @abstractmethod
    def day(self) -> int:
        """The local date, as the number of days since 1970-01-01."""

    @property
    @abstractmethod
    def rules(self) -> tuple[int, ...]:
        """The rules by which the hits of the day were divided among rollups."""

    @property
    @abstractmethod
    def left_out_by(self) -> tuple[int, ...]:
        """Those of the rules that leave out all of it; the others leave out nothing of it."""

    @property
    @abstractmethod
    def going_on(self) -> Numbers:
        """The visits of which views remained, and the views of which events remained, ascending.

        None of them if there were no rules.
        """

    @property
    @abstractmethod
    def has_durations(self) -> bool:
        """Whether single durations are known. If not, their sums and bounces may be unknown too."""

    @property
    @abstractmethod
    def visits(self) -> DayVisits | None:
        """What is known of the visits that began on the day, or None if they are unknown."""

    @abstractmethod
    def overall(self) -> Counters:
        """Return the sums of all views, under the code 0."""

    @abstractmethod
    def path_durations(self) -> PathDurations | None:
        """Return the known durations, or None if they are not known one by one."""

    @abstractmethod
    def event_sums(self) -> EventSums:
        """Return the counts of the events by property and by property name."""

    def event_counts(self) -> EventCounts | None:
        """Return the counts of the events, or None if an event has a name twice."""
        sums = self.event_sums()
        if not sums.has_distinct_names:
            return None
        return EventCounts(sums.codes, sums.events, sums.total)
