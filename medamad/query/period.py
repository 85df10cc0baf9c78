"""The period of a query: start and end, the preceding period."""

from datetime import UTC, date, datetime, tzinfo
from typing import Final, Self

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.errors import BadRequest
from medamad.domain.instants import parse_instant

_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


@frozen
class Period:
    """The period start_ms ≤ time ≤ end_ms in Unix milliseconds; None is no bound.

    `zone` is the UTC offset with which the start was written.
    """

    start_ms: int | None = None
    end_ms: int | None = None
    zone: tzinfo = UTC

    def is_outside(self, least_ms: int, greatest_ms: int) -> bool:
        """Return whether no time from `least_ms` to `greatest_ms` is in the period."""
        return (
            (self.start_ms is not None and greatest_ms < self.start_ms)
            or (self.end_ms is not None and least_ms > self.end_ms)
            or self.is_empty
        )

    @property
    def is_empty(self) -> bool:
        """Whether it ends before it starts."""
        start_ms, end_ms = self.start_ms, self.end_ms
        return start_ms is not None and end_ms is not None and start_ms > end_ms

    def contains(self, least_ms: int, greatest_ms: int) -> bool:
        """Return whether every time from `least_ms` to `greatest_ms` is in the period."""
        return (self.start_ms is None or least_ms >= self.start_ms) and (
            self.end_ms is None or greatest_ms <= self.end_ms
        )

    def days_of(self, least_ms: int, greatest_ms: int) -> range:
        """Return the local dates, as days since 1970-01-01, of two times and between them.

        Only those in the period.
        """
        first_ms = least_ms if self.start_ms is None else max(least_ms, self.start_ms)
        last_ms = greatest_ms if self.end_ms is None else min(greatest_ms, self.end_ms)
        if first_ms > last_ms:
            return range(0)
        first, last = (
            datetime.fromtimestamp(ms / 1000, self.zone).toordinal() - _EPOCH_DAY
            for ms in (first_ms, last_ms)
        )
        return range(first, last + 1)

    def slice_of(self, ascending_ms: NDArray[np.int64]) -> slice:
        """Return the slice of some ascending times that are in the period."""
        begin, end = 0, len(ascending_ms)
        if self.start_ms is not None:
            begin = int(np.searchsorted(ascending_ms, np.int64(self.start_ms)))
        if self.end_ms is not None:
            end = int(np.searchsorted(ascending_ms, np.int64(self.end_ms), side="right"))
        return slice(begin, max(begin, end))

    def mask(self, time_ms: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which times are in the period, shape (n,)."""
        mask = np.ones(len(time_ms), np.bool_)
        if self.start_ms is not None:
            mask &= time_ms >= self.start_ms
        if self.end_ms is not None:
            mask &= time_ms <= self.end_ms
        return mask


@frozen
class Span(Period):
    """A period with both bounds."""

    start_ms: int
    end_ms: int
    zone: tzinfo = UTC

    @classmethod
    def of(cls, period: Period, names: tuple[str, str]) -> Self:
        """Return a period. Raises BadRequest naming the bound that it lacks."""
        start_ms, end_ms = period.start_ms, period.end_ms
        if start_ms is None or end_ms is None:
            missing = names[0] if start_ms is None else names[1]
            raise BadRequest(f"{missing}: required, as two periods are compared")
        return cls(start_ms, end_ms, period.zone)

    @property
    def length_ms(self) -> int:
        """How many milliseconds it has."""
        return self.end_ms - self.start_ms + 1


ALWAYS: Final = Period()
"""The period without bounds."""
BOUNDS: Final = ("start", "end")
"""The parameters of a period."""


def parse_period(start: str | None, end: str | None, names: tuple[str, str] = BOUNDS) -> Period:
    """Return the period between two instants, which are parameters of some names.

    Raises BadRequest if malformed or the wrong way round.
    """
    first = None if start is None else parse_instant(start, names[0])
    last = None if end is None else parse_instant(end, names[1])
    if first and last:
        # An end in whole seconds includes that second.
        begun = (first.second, "" if last.whole_second else first.fraction)
        if begun > (last.second, last.fraction):
            raise BadRequest(f"{names[0]}: expected a date-time that is not after {names[1]}")
    return Period(
        start_ms=first.first_ms if first else None,
        end_ms=last.last_ms if last else None,
        zone=first.zone if first else UTC,
    )


def previous_period(period: Period) -> Period:
    """Return the period of the same length just before one.

    Raises BadRequest without both bounds.
    """
    if period.start_ms is None or period.end_ms is None:
        raise BadRequest("previous: expected start and end to be given as well")
    length_ms = period.end_ms - period.start_ms + 1
    return Period(period.start_ms - length_ms, period.start_ms - 1, period.zone)
