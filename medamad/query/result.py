"""What a report returns: its content, and the days for which that is incomplete."""

from collections.abc import Iterable
from enum import Enum
from typing import Final, Generic, TypeAlias, TypeVar

from attrs import field, frozen

T = TypeVar("T")


class Gap(Enum):
    """What a result lacks for a day of which only a rollup is left."""

    FIGURES = "figures"
    """Everything: the day is left out."""
    INTERVAL = "interval"
    """Its share in a series by interval."""
    DURATIONS = "durations"
    """Durations: medians, quartiles and totals leave the day out."""
    BOUNCES = "bounces"
    """Bounces: bounce rates leave the day out."""


DayGap: TypeAlias = tuple[Gap, int]
"""A gap, and the day that it is of as the number of days since 1970-01-01."""


def _frozen_set(gaps: Iterable[DayGap]) -> frozenset[DayGap]:
    return frozenset(gaps)


@frozen
class Gaps:
    """All gaps of a result."""

    _gaps: frozenset[DayGap] = field(default=frozenset(), converter=_frozen_set)

    def days(self, gap: Gap) -> list[int]:
        """Return the days that have a gap, ascending, except for those that are left out anyway."""
        left_out = (
            set()
            if gap is Gap.FIGURES
            else {day for each, day in self._gaps if each is Gap.FIGURES}
        )
        return sorted({day for each, day in self._gaps if each is gap} - left_out)

    def __or__(self, other: "Gaps") -> "Gaps":
        return Gaps(self._gaps | other._gaps)

    def __bool__(self) -> bool:
        return bool(self._gaps)


NO_GAPS: Final = Gaps()


@frozen(eq=False)
class Result(Generic[T]):
    """The content of a report, which is encoded as it is, and its gaps."""

    content: T
    gaps: Gaps
