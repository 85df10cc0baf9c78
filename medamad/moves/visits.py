"""What a file of another program is read for, and who was seen in it: never stored."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from datetime import UTC, datetime
from itertools import count
from typing import Final

from attrs import define, field, frozen

from medamad.collect.pages import Page, page_of
from medamad.collect.referrers import referrer_of
from medamad.collect.rules import Rules
from medamad.model.errors import BadRequest
from medamad.moves.rows import MAX_MS

_DAYS: Final = 8
"""How many days of log lines are kept in mind: they come nearly in order."""


@frozen
class Into:
    """The website that a file goes into, and the operator's rules of what counts."""

    hostname: str = ""
    rules: Rules = field(factory=Rules)
    latest_ms: int = MAX_MS
    """The last time of which anything is taken in."""

    def is_ahead(self, time_ms: int) -> bool:
        """Tell whether a time lies too far in the future."""
        return time_ms > self.latest_ms

    def page(self, host: str, path: str, query: str = "") -> Page | None:
        """Give the page at a path of a host, "" for the website's own; None where it is none."""
        try:
            return page_of(f"http://{host or self.hostname or 'localhost'}{path}?{query}")
        except BadRequest:
            return None

    def referrer(self, url: str, host: str) -> str | None:
        """Give a referrer as it is kept, None for one that is spam."""
        referrer = referrer_of(url, {self.hostname, host})
        return None if referrer.partition("/")[0] in self.rules.spam else referrer


@define(eq=False)
class Visits:
    """Who was seen on which day, in memory alone, as hashes that no other process could make."""

    rules: Rules
    _days: OrderedDict[int, set[int]] = field(factory=OrderedDict)
    _seen: set[int] = field(factory=set)
    _numbers: Iterator[int] = field(factory=lambda: count(1))

    def number(self) -> int:
        """Give a number for a view or an event; each once in all files of an import."""
        return next(self._numbers)

    def is_new(self, identity: Hashable) -> bool:
        """Tell whether something is seen for the first time: exports of one program overlap."""
        size = len(self._seen)
        self._seen.add(hash(identity))
        return len(self._seen) > size

    def first_in_any_order(self, time_ms: int, visitor: Hashable, path: str) -> tuple[bool, bool]:
        """Tell the same as `first` of views that come in no order: no day is forgotten."""
        day = self._day(time_ms)
        return self.is_new((day, visitor)), self.is_new((day, visitor, path))

    def first(self, time_ms: int, visitor: Hashable, path: str) -> tuple[bool, bool]:
        """Tell whether a view is the visitor's first of the day, and first of its page."""
        day = self._day(time_ms)
        seen = self._days.setdefault(day, set())
        self._days.move_to_end(day)
        if len(self._days) > _DAYS:
            self._days.popitem(last=False)
        of_day, of_page = hash((day, visitor)), hash((day, visitor, path))
        found = of_day not in seen, of_page not in seen
        seen.update((of_day, of_page))
        return found

    def _day(self, time_ms: int) -> int:
        return datetime.fromtimestamp(time_ms / 1000, UTC).astimezone(self.rules.zone).toordinal()
