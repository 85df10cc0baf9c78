"""What is asked about a website, common to all statistics."""

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from medamad.stats.filters import PROPERTY_FIELDS, Condition
from medamad.stats.period import ALWAYS, Period

MAX_ROWS: Final = 5_000
"""Rows of an answer where no limit is given."""


@frozen
class Question:
    """A period, filters that must all hold, and the page of rows to give.

    `limit` is 1 to MAX_ROWS, `offset` 0 to MAX_ROWS; `summary` asks for the short rows, and
    `with_blanks` for None in place of 0 where a figure is not known.
    """

    period: Period = ALWAYS
    conditions: tuple[Condition, ...] = ()
    summary: bool = False
    limit: int | None = None
    offset: int = 0
    with_blanks: bool = False

    def conditions_on(self, fields: Iterable[str]) -> list[Condition]:
        """Give the conditions on any of some fields."""
        wanted = frozenset(fields)
        return [condition for condition in self.conditions if condition.field in wanted]

    @property
    def names_page(self) -> bool:
        """Whether there is a filter on `path`, so that visitors are those of the page."""
        return bool(self.conditions_on(("path",)))

    @property
    def names_property(self) -> bool:
        """Whether there is a filter on a property."""
        return bool(self.conditions_on(PROPERTY_FIELDS))

    @property
    def rows(self) -> slice:
        """The stretch of the ordered rows that is to be given."""
        return slice(self.offset, self.offset + (self.limit or MAX_ROWS))
