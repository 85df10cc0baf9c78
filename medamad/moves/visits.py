"""What a foreign file is read for, and who was seen in it: never stored, gone with the import."""

from collections import OrderedDict
from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Final

from attrs import define, field, frozen

from medamad.collect.rules import Rules

_DAYS: Final = 8
"""How many days are kept in mind: lines of servers come nearly in order."""


@frozen
class Into:
    """The website that a file goes into, and the operator's rules of what counts."""

    hostname: str = ""
    rules: Rules = field(factory=Rules)


@define(eq=False)
class Visits:
    """Who was seen on which day, in memory alone, as hashes that no other process could make."""

    rules: Rules
    _days: OrderedDict[int, set[int]] = field(factory=OrderedDict)

    def first(self, time_ms: int, visitor: Hashable, path: str) -> tuple[bool, bool]:
        """Tell whether a view is the visitor's first of the day, and first of its page."""
        day = datetime.fromtimestamp(time_ms / 1000, UTC).astimezone(self.rules.zone).toordinal()
        seen = self._days.setdefault(day, set())
        self._days.move_to_end(day)
        if len(self._days) > _DAYS:
            self._days.popitem(last=False)
        of_day, of_page = hash((day, visitor)), hash((day, visitor, path))
        found = of_day not in seen, of_page not in seen
        seen.update((of_day, of_page))
        return found
