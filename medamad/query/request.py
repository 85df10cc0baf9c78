"""A request for statistics, and whether its client still waits."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import define, evolve, frozen

from medamad.query.filters import PROPERTY_FIELDS, Condition
from medamad.query.period import ALWAYS, Period
from medamad.storage.segments.parts import (
    Part,
)
from medamad.storage.segments.snapshot import Snapshot

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
        """Return the conditions on any of some fields."""
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


class NobodyWaits(Exception):
    """A question was given up because whoever asked it has gone."""


@define(eq=False)
class Wanted:
    """Tells a question in its thread, at each part and when it checks, whether to go on."""

    is_wanted: bool = True

    def watched(self, snapshot: Snapshot) -> Snapshot:
        """Return a snapshot that raises NobodyWaits once the answer is no longer wanted."""
        return evolve(snapshot, parts=_WatchedParts(snapshot.parts, self), check=self.check)

    def check(self) -> None:
        """Raise NobodyWaits if the answer is no longer wanted."""
        if not self.is_wanted:
            raise NobodyWaits


@frozen(eq=False)
class _WatchedParts:
    _parts: Any
    _wanted: Wanted

    def __iter__(self) -> Iterator[Part]:
        for part in self._parts:
            self._wanted.check()
            yield part
