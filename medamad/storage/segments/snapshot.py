"""What a query sees of a website: one immutable snapshot."""

from collections.abc import Callable, Iterable, MutableMapping, Sequence
from enum import Enum
from typing import Any

from attrs import field, frozen

from medamad.storage.segments.parts import DayRollup, Events, Part, Texts, no_texts


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


EMPTY = Snapshot(parts=(), events=(), texts=no_texts)
