"""What a file of another program is read for, what it leaves out, and who was seen in it."""

from collections import Counter
from collections.abc import Hashable, Iterator
from enum import StrEnum
from itertools import count

from attrs import define, field, frozen

from medamad.collect.pages import Page, page_of
from medamad.collect.referrers import referrer_of
from medamad.collect.rules import Rules
from medamad.model.errors import BadRequest
from medamad.moves.noted import Noted
from medamad.moves.rows import MAX_MS


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
        slash = "" if path.startswith("/") else "/"
        try:
            return page_of(f"http://{host or self.hostname or 'localhost'}{slash}{path}?{query}")
        except BadRequest:
            return None

    def referrer(self, url: str, host: str) -> str | None:
        """Give a referrer as it is kept, None for one that is spam."""
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
        """Give a number for a view or an event; each once in all files of an import."""
        return next(self._numbers)

    def is_new(self, identity: Hashable) -> bool:
        """Tell whether something is seen for the first time: exports of one program overlap."""
        size = len(self._seen)
        self._seen.add(hash(identity))
        return len(self._seen) > size

    def agent_of(self, user_agent: str | None) -> str | None:
        """Give the User-Agent of a request, None where the logs tell of none: "" is one of theirs.

        They do not where no request has one, which is known when all files were looked through.
        """
        if user_agent is not None:
            self.had_agents.add(bool(user_agent))
        return user_agent if user_agent or self.noted.has_agents else None

    def leave_out(self, why: LeftOut) -> None:
        """Count what is left out."""
        self.left_out[why] += 1

    def firsts(self, number: int, time_ms: int, visitor: Hashable, path: str) -> tuple[bool, bool]:
        """Tell whether a view is the visitor's first of the day, and first of its page.

        Neither, as long as not all is noted.
        """
        if not self.noted.is_decided:
            self.noted.note(number, time_ms, visitor, path)
        return self.noted.firsts(number)
