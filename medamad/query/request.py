"""A request for statistics, its cancellation, and its result."""

from collections.abc import Iterable
from enum import Enum
from typing import Final, Generic, TypeAlias, TypeVar

from attrs import define, evolve, field, frozen

from medamad.domain.goals import Goal
from medamad.query.period import ALWAYS, Period

T = TypeVar("T")

MAX_ROWS: Final = 5_000
"""The number of rows of a result if no limit is given."""

ORDERS: Final = ("visitors", "pageviews", "visits")
"""The figures by which rows of a dimension can be ordered. The first is the default."""

PROPERTY_FIELDS: Final = ("prop_name", "prop_value")
"""The fields of a property that can be filtered by."""


@frozen
class Filter:
    """One filter, on a field of `filters.FIELDS` with an operator of `filters.OPERATORS`.

    `values` has one value, or those of a list. A filter on the visits that reached a goal has the
    field `filters.GOAL_FIELD`, the id of the goal as its value, and the goal itself.
    """

    field: str
    operator: str
    values: tuple[str, ...]
    goal: Goal | None = None


@frozen
class Query:
    """A period, filters that must all hold, and the page of rows to return.

    `limit` is 1 to MAX_ROWS. `is_brief` asks for fewer columns, and `with_blanks` for None instead
    of 0 where a figure is unknown. Rows of a dimension are ordered by `order`, one of ORDERS, and
    have their views if `with_views`, their visits if `with_visits`, and the visits that reached a
    goal if `conversions` is one. With `with_total`, times on pages include their totals.
    """

    period: Period = ALWAYS
    filters: tuple[Filter, ...] = ()
    is_brief: bool = False
    limit: int | None = None
    offset: int = 0
    with_blanks: bool = False
    with_views: bool = False
    with_visits: bool = False
    with_total: bool = False
    conversions: Goal | None = None
    order: str = ORDERS[0]

    def filters_on(self, fields: Iterable[str]) -> list[Filter]:
        """Return the filters on any of some fields."""
        names = frozenset(fields)
        return [filter_ for filter_ in self.filters if filter_.field in names]

    @property
    def has_path_filter(self) -> bool:
        """Whether there is a filter on `path`, so that visitors are those of the page."""
        return bool(self.filters_on(("path",)))

    @property
    def has_property_filter(self) -> bool:
        """Whether there is a filter on a property."""
        return bool(self.filters_on(PROPERTY_FIELDS))

    @property
    def goals(self) -> tuple[Goal, ...]:
        """The goals that a visit must have reached for its views to be let through."""
        return tuple(each.goal for each in self.filters if each.goal is not None)

    @property
    def without_goals(self) -> "Query":
        """The query without filters on goals."""
        return evolve(self, filters=tuple(each for each in self.filters if each.goal is None))

    @property
    def row_slice(self) -> slice:
        """The slice of the ordered rows to return."""
        return slice(self.offset, self.offset + (self.limit or MAX_ROWS))


class Cancelled(Exception):
    """Nobody waits for the result of a query any more."""


@define(eq=False)
class Cancellation:
    """Lets one thread end a query that runs in another. A query checks it at each part it reads."""

    _is_cancelled: bool = False

    def cancel(self) -> None:
        """End the query at its next check."""
        self._is_cancelled = True

    def check(self) -> None:
        """Raise Cancelled if the query has been cancelled."""
        if self._is_cancelled:
            raise Cancelled


class Gap(Enum):
    """What a result lacks for a day of which only a rollup is left, or which has damaged data."""

    FIGURES = "figures"
    """Everything: the day is left out."""
    INTERVAL = "interval"
    """Its share in a series by interval."""
    DURATIONS = "durations"
    """Durations: medians, quartiles and totals leave the day out."""
    BOUNCES = "bounces"
    """Bounces: bounce rates leave the day out."""
    VISITS = "visits"
    """Visits: the rollup of the day does not know them, or its views belong to none."""
    DAMAGED = "damaged"
    """Damaged data: there are other views of the day, or none."""
    EXCLUSIONS = "exclusions"
    """Exclusions: the rollup of the day has what they leave out."""


DayGap: TypeAlias = tuple[Gap, int]
"""A gap, and the day that it is of as the number of days since 1970-01-01."""


def _frozen_set(gaps: Iterable[DayGap]) -> frozenset[DayGap]:
    return frozenset(gaps)


@frozen
class Gaps:
    """All gaps of a result."""

    _gaps: frozenset[DayGap] = field(default=frozenset(), converter=_frozen_set)

    def days(self, *gaps: Gap) -> list[int]:
        """Return the days that have any of some gaps, ascending.

        Days that are left out anyway have no others, but for damage.
        """
        left_out = {day for gap, day in self._gaps if gap is Gap.FIGURES}
        remain = (Gap.FIGURES, Gap.DAMAGED)
        found = (each for each in self._gaps if each[0] in remain or each[1] not in left_out)
        return sorted({day for gap, day in found if gap in gaps})

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
