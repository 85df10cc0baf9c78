"""Who was seen in a file: which views are a visitor's first, decided by their time."""

from array import array
from collections import Counter
from collections.abc import Hashable, Iterator
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from itertools import count
from typing import Final

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.errors import BadRequest
from medamad.ingest.page import Page, page_of, referrer_of
from medamad.ingest.pipeline import Rules
from medamad.transfer.existing import Repeats
from medamad.transfer.rows import MAX_MS

_OF_DAY: Final = 1
_OF_PAGE: Final = 2
_NOTHING: Final = np.zeros(0, np.int64)


def _int64s() -> "array[int]":
    return array("q")


@define(eq=False)
class Noted:
    """Views that are noted while files are read, and told of when they are read again.

    So it does not matter in which order the files, and the views in them, come. In memory alone:
    32 bytes for each view, as hashes that no other process could make.
    """

    zone: tzinfo
    """Whose days count."""
    has_agents: bool = True
    """Whether logs tell of User-Agents, as they do unless it turns out that none has any."""
    is_decided: bool = False
    repeats: Repeats = field(factory=Repeats)
    """Which of them, and of events, come again."""
    _visitors: "array[int]" = field(factory=_int64s)
    _pages: "array[int]" = field(factory=_int64s)
    _times_ms: "array[int]" = field(factory=_int64s)
    _numbers: "array[int]" = field(factory=_int64s)
    _flags: bytes = b""
    """Of the views, by their numbers."""
    _has_events: bool = False
    _ordered: tuple[NDArray[np.int64], ...] = (_NOTHING, _NOTHING, _NOTHING)
    """Pages of visitors, ascending, and times and numbers of their views."""

    def note(self, number: int, time_ms: int, visitor: Hashable, path: str) -> None:
        """Take note of a view. Numbers are more than 0, and ascend."""
        day = self._day(time_ms)
        self._visitors.append(hash((day, visitor)))
        self._pages.append(hash((day, visitor, path)))
        self._times_ms.append(time_ms)
        self._numbers.append(number)

    def decide(self) -> None:
        """Decide which are first, when all are noted. Of the same time it is the one read first."""
        times, numbers = np.frombuffer(self._times_ms, "q"), np.frombuffer(self._numbers, "q")
        flags = np.zeros(int(numbers[-1]) + 1 if len(numbers) else 0, np.uint8)
        for flag, noted in ((_OF_DAY, self._visitors), (_OF_PAGE, self._pages)):
            whose = np.frombuffer(noted, "q")
            order = np.lexsort((times, whose))
            ordered = whose[order]
            is_first = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(order)]
            flags[numbers[order[is_first]]] |= flag
            if flag == _OF_PAGE and self._has_events:
                self._ordered = ordered, times[order], numbers[order]
        self._flags = flags.tobytes()
        self._visitors, self._pages = _int64s(), _int64s()
        self._times_ms, self._numbers = _int64s(), _int64s()
        self.repeats.decide()
        self.is_decided = True

    def firsts(self, number: int) -> tuple[bool, bool]:
        """Return whether a view is its visitor's first of the day, and first of its page."""
        flags = self._flags[number] if number < len(self._flags) else 0
        return bool(flags & _OF_DAY), bool(flags & _OF_PAGE)

    def view_before(self, time_ms: int, visitor: Hashable, path: str) -> int:
        """Return the number of the visitor's last view of a page at a time, 0 for none.

        One that counts, of the same day or of the day before. Always 0 as long as nothing is
        decided.
        """
        self._has_events = True
        if not self.is_decided:
            return 0
        pages, times, numbers = self._ordered
        day = self._day(time_ms)
        for page in (hash((day, visitor, path)), hash((day - 1, visitor, path))):
            first, end = np.searchsorted(pages, page), np.searchsorted(pages, page, "right")
            at = first + np.searchsorted(times[first:end], time_ms, "right")
            if at > first:
                return self.repeats.counting(int(numbers[at - 1]))
        return 0

    def _day(self, time_ms: int) -> int:
        return datetime.fromtimestamp(time_ms / 1000, UTC).astimezone(self.zone).toordinal()


@frozen
class Into:
    """The website that a file goes into, and the operator's rules of what counts."""

    hostname: str = ""
    rules: Rules = field(factory=Rules)
    latest_ms: int = MAX_MS
    """The last time of which anything is taken in."""

    def is_ahead(self, time_ms: int) -> bool:
        """Return whether a time lies too far in the future."""
        return time_ms > self.latest_ms

    def page(self, host: str, path: str, query: str = "") -> Page | None:
        """Return the page at a path of a host, "" for the website's own; None where it is none."""
        slash = "" if path.startswith("/") else "/"
        try:
            return page_of(f"http://{host or self.hostname or 'localhost'}{slash}{path}?{query}")
        except BadRequest:
            return None

    def referrer(self, url: str, host: str) -> str | None:
        """Return a referrer as it is kept, None for one that is spam."""
        referrer = referrer_of(url, {self.hostname, host})
        return None if referrer.partition("/")[0] in self.rules.spam else referrer


class LeftOut(StrEnum):
    """Why something of another program's file is no view that counts."""

    PROGRAMS = "programs"
    BLOCKED = "blocked"
    SPAM = "spam"
    OTHER_HOSTS = "other_hosts"
    NO_PAGE = "no_page"
    """Its address is none."""
    NO_VIEW = "no_view"
    """It is something else than a view of a page, or an event."""
    REPEATED = "repeated"
    LONG = "long"
    """A line of a log that is too long to be read."""
    CUT = "cut"
    """The last line of a log, which is not whole, or not yet."""


@define(eq=False)
class Visits:
    """What all files of an import have in common while they are read, once or again."""

    noted: Noted
    left_out: Counter[LeftOut] = field(factory=Counter)
    had_agents: set[bool] = field(factory=set)
    """Whether requests of logs had a User-Agent, of those for which a log has a place for it."""
    rows: int = 0
    """How many there were so far, with those that come again."""
    website: str = ""
    """What a program that has several calls the one that all rows are of; "" until one is told."""
    _seen: set[int] = field(factory=set)
    _numbers: Iterator[int] = field(factory=lambda: count(1))

    def number(self) -> int:
        """Return a number for a view or an event; each once in all files of an import."""
        return next(self._numbers)

    def is_new(self, identity: Hashable) -> bool:
        """Return whether something is seen for the first time: exports of one program overlap."""
        size = len(self._seen)
        self._seen.add(hash(identity))
        return len(self._seen) > size

    def agent_of(self, user_agent: str | None) -> str | None:
        """Return the User-Agent of a request, None where the logs tell of none: "" is one of theirs.

        They do not where no request has one, which is known when all files were looked through.
        """
        if user_agent is not None:
            self.had_agents.add(bool(user_agent))
        return user_agent if user_agent or self.noted.has_agents else None

    def leave_out(self, why: LeftOut) -> None:
        """Count what is left out."""
        self.left_out[why] += 1

    def firsts(self, number: int, time_ms: int, visitor: Hashable, path: str) -> tuple[bool, bool]:
        """Return whether a view is the visitor's first of the day, and first of its page.

        Neither, as long as not all is noted.
        """
        if not self.noted.is_decided:
            self.noted.note(number, time_ms, visitor, path)
        return self.noted.firsts(number)
