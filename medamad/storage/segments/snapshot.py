"""What a question sees of a website: one immutable snapshot, made of parts.

A part is a run of views as columns: a chunk of the memtable in memory, or a flushed segment.
Sixteen segments may come as a group, which answers by counters what would else be asked of each. A
question is put to each part in turn and adds the answers up. Of days whose views are gone there are
sums, which answer what they can; what they cannot is noted.

What a part lends, arrays and counters alike, may be borrowed from the file: it is valid for the
question alone. Nothing of it may be written to, or kept for an answer.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from enum import Enum
from typing import Any, Protocol, TypeAlias

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.storage.segments.counters import Counters
from medamad.storage.segments.format import SortedDurations

Codes: TypeAlias = NDArray[np.unsignedinteger[Any]]
"""Codes come in the narrowest type that holds them: widen them before reckoning with them."""

NO_TIME: tuple[int, int] = (1 << 62, -1)
"""Least and greatest time of nothing."""


def joint(bounds: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the bounds of times that lie within any of some bounds."""
    least, greatest = NO_TIME
    for low, high in bounds:
        least, greatest = min(least, low), max(greatest, high)
    return least, greatest


class Events(Protocol):
    """The properties of events, as columns: one row for each property of each event.

    Shape (m,) each. Rows of one event share `event`, ascend by it, and have the same view.
    """

    @property
    def event(self) -> NDArray[np.unsignedinteger[Any]]:
        """The number of the event."""

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """When it was, Unix milliseconds."""

    @property
    def view(self) -> NDArray[np.unsignedinteger[Any]]:
        """The place of its view in the part (`Views.own`), or else its sequence number.

        The number is 0 for an event of no view.
        """

    @property
    def property(self) -> Codes:
        """Codes of Dimension.PROPERTY."""

    def __len__(self) -> int:
        """Return m."""


@frozen(eq=False)
class EventRows:
    """Events in memory."""

    event: NDArray[np.unsignedinteger[Any]]
    time_ms: NDArray[np.int64]
    view: NDArray[np.unsignedinteger[Any]]
    property: Codes

    def __len__(self) -> int:
        return len(self.event)


NO_EVENTS = EventRows(
    np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.uint32)
)


@frozen(eq=False)
class EventCounts:
    """How many events carry each property: `codes` of Dimension.PROPERTY, `events`, shape (k,).

    `total` is how many events there are. None of them carries a name twice.
    """

    codes: Codes
    events: NDArray[np.integer[Any]]
    total: int


class Countable(Protocol):
    """What a part, a group and the sums of a day have in common."""

    @property
    @abstractmethod
    def time_bounds(self) -> tuple[int, int]:
        """The earliest and the latest time of a view, Unix milliseconds; NO_TIME without any."""

    @property
    @abstractmethod
    def event_time_bounds(self) -> tuple[int, int]:
        """The same of its events, own and loose."""

    @property
    @abstractmethod
    def sequence_bounds(self) -> tuple[int, int]:
        """The least and the greatest sequence number of a view; (0, 0) without any."""

    @abstractmethod
    def counters(self, dimension: Dimension) -> Counters | None:
        """Return the sums of its views by the codes of a dimension; None if nobody counted them."""

    @abstractmethod
    def event_counts(self) -> EventCounts | None:
        """Return the counts of its events, own and loose; None if they have to be scanned."""


class Views(Countable, Protocol):
    """A part: n views as columns of equal length, in the order of their sequence numbers.

    None of the arrays may be written to.
    """

    @property
    def batch(self) -> int:
        """The batch that all of it was imported with, 0 for none."""

    @property
    def ascends(self) -> bool:
        """Whether the times ascend: not where the clock was set back."""

    @property
    def time_ms(self) -> NDArray[np.int64]:
        """Shape (n,): Unix milliseconds."""

    @property
    def sequence(self) -> NDArray[np.uint64]:
        """Shape (n,), strictly ascending: the number by which events name their view."""

    @property
    def flags(self) -> NDArray[np.uint8]:
        """Shape (n,): see medamad.storage.segments.format."""

    @property
    def duration_ms(self) -> NDArray[np.unsignedinteger[Any]]:
        """Shape (n,): milliseconds on the page; 0 where the view is not timed."""

    @property
    def number_today(self) -> NDArray[np.unsignedinteger[Any]]:
        """Shape (n,): the visitor's how-manieth view of the day; 0 where unknown."""

    @property
    def width_px(self) -> NDArray[np.unsignedinteger[Any]]:
        """Shape (n,): width of the window; 0 where unknown."""

    @property
    def own(self) -> Events:
        """The events of views of this part: `view` are places in it."""

    @property
    def loose(self) -> Events:
        """The events of views elsewhere, or of none: `view` are sequence numbers."""

    def slots(self) -> Counters | None:
        """Return the sums of its views by slots of SLOT_MS; None if they have to be scanned."""

    def codes(self, dimension: Dimension) -> Codes:
        """Shape (n,): the code of each view's text in one of VIEW_DIMENSIONS."""

    def __len__(self) -> int:
        """Return n."""


class MergedSegment(Countable):
    """Parts that can be counted as one: whole, it always has counters."""

    @property
    @abstractmethod
    def batch(self) -> int:
        """As of a part: those of several batches are not counted as one."""

    @property
    @abstractmethod
    def members(self) -> Iterable["Views | MergedSegment"]:
        """The parts, or smaller groups, one after the other."""

    @abstractmethod
    def slots(self) -> Counters | None:
        """As of a part."""

    @abstractmethod
    def durations(self) -> SortedDurations | None:
        """Return the known durations of all views, in ms; None if its members have to be asked."""


Part: TypeAlias = Views | MergedSegment


@frozen(eq=False)
class EventSums:
    """How many events carry each property, and how many each name.

    `codes` of Dimension.PROPERTY ascend, `events` are those that carry each, shape (k,). `names`
    are codes as well, one of a property of each name, `events_of_names` those that carry it,
    shape (m,). `total` is how many events there are; `is_plain` says that none of them carries a
    name twice.
    """

    codes: NDArray[np.integer[Any]]
    events: NDArray[np.integer[Any]]
    names: NDArray[np.integer[Any]]
    events_of_names: NDArray[np.integer[Any]]
    total: int
    is_plain: bool


@frozen(eq=False)
class PathDurations:
    """The known durations of views, path by path.

    `codes` of Dimension.PATH ascend; `counts` tells how many durations each has, shape (k,).
    `duration_ms` has those of the first, ascending, then those of the second, and so on.
    """

    codes: NDArray[np.integer[Any]]
    counts: NDArray[np.integer[Any]]
    duration_ms: NDArray[np.uint32]


class DayRollup(Countable):
    """What remains of views and events of one day: how they add up, one dimension at a time.

    No time but the day's own is known of them: the bounds are its first and last millisecond.
    """

    @property
    @abstractmethod
    def day(self) -> int:
        """The local date, as the number of days since 1970-01-01."""

    @property
    @abstractmethod
    def has_durations(self) -> bool:
        """Whether single durations are known: if not, sums of durations and bounces may not be."""

    @abstractmethod
    def overall(self) -> Counters:
        """Return the sums of all views, as those of the code 0."""

    @abstractmethod
    def path_durations(self) -> PathDurations | None:
        """Return the known durations; None where these are known in all at most."""

    @abstractmethod
    def event_sums(self) -> EventSums:
        """Return the counts of the events."""

    def event_counts(self) -> EventCounts | None:
        """Return the counts of its events; None if one carries a name twice."""
        sums = self.event_sums()
        if not sums.is_plain:
            return None
        return EventCounts(sums.codes, sums.events, sums.total)  # type: ignore[arg-type]


class Missing(Enum):
    """What an answer is without, of a day of which there are sums alone."""

    FIGURES = "figures"
    """Everything: the day is left out."""
    INTERVAL = "interval"
    """The parts of a series."""
    DURATIONS = "durations"
    """How long views were: medians, quartiles and totals are without the day."""
    BOUNCES = "bounces"
    """Who stayed only for a moment: bounce rates are without the day."""


@frozen(eq=False)
class Missed:
    """What an answer turned out to be without: days, as their numbers."""

    _days: dict[Missing, set[int]] = field(factory=lambda: {each: set() for each in Missing})

    def note(self, missing: Missing, sums: DayRollup) -> None:
        """Note that a day could not answer."""
        self.note_day(missing, sums.day)

    def note_day(self, missing: Missing, day: int) -> None:
        """Note the same of a day by its number."""
        self._days[missing].add(day)

    def join(self, other: "Missed") -> None:
        """Note what another answer is without too."""
        for missing, days in self._days.items():
            days.update(other.days(missing))

    def days(self, missing: Missing) -> list[int]:
        """Return the days that an answer is without, ascending; but for those left out altogether."""
        left_out = self._days[Missing.FIGURES] if missing is not Missing.FIGURES else set()
        return sorted(self._days[missing] - left_out)

    @property
    def is_nothing(self) -> bool:
        """Whether the answer is whole."""
        return not any(self._days.values())


def _go_on() -> None:
    """Nobody asks whether an answer is still waited for."""


class Texts(Protocol):
    """The texts behind the codes of a website: `texts(dimension)[code]`."""

    def __call__(self, dimension: Dimension, /) -> Sequence[str]:
        """Return the texts of a dimension, at least up to the greatest code of the snapshot."""


@frozen(eq=False)
class Snapshot:
    """All that one question sees of one website. Never changes while the question runs.

    `parts` and `days` may be gone through again and again. `events` are those that no part has,
    all loose. `memo` is the website's: what questions know of its texts, which only ever become
    more. `missed` is the question's: what it finds out that its answer is without. `check` raises
    when nobody waits for the answer any more; what takes long calls it now and then.
    """

    parts: Iterable[Part]
    events: Sequence[Events]
    texts: Texts
    memo: MutableMapping[Any, Any] = field(factory=dict)
    days: Iterable[DayRollup] = ()
    missed: Missed = field(factory=Missed)
    check: Callable[[], None] = _go_on


def no_texts(_dimension: Dimension, /) -> Sequence[str]:
    """Texts of a website that has no hit."""
    return ()


EMPTY = Snapshot(parts=(), events=(), texts=no_texts)
