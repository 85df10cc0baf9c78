"""A request for statistics, and its cancellation."""

from collections.abc import Iterable
from typing import Final

from attrs import define, frozen

from medamad.query.filters import PROPERTY_FIELDS, Filter
from medamad.query.period import ALWAYS, Period

MAX_ROWS: Final = 5_000
"""The number of rows of a result if no limit is given."""


@frozen
class Query:
    """A period, filters that must all hold, and the page of rows to return.

    `limit` is 1 to MAX_ROWS. `is_brief` asks for fewer columns, and `with_blanks` for None instead
    of 0 where a figure is unknown.
    """

    period: Period = ALWAYS
    filters: tuple[Filter, ...] = ()
    is_brief: bool = False
    limit: int | None = None
    offset: int = 0
    with_blanks: bool = False

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
