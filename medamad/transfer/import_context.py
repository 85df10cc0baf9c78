"""What the readers of an import share: the target website, numbering, and what was skipped."""

from collections import Counter
from collections.abc import Hashable, Iterator
from enum import StrEnum
from itertools import count

from attrs import define, field, frozen

from medamad.domain.errors import BadRequest
from medamad.ingest.page import Page, page_of, referrer_of
from medamad.ingest.pipeline import Rules
from medamad.transfer.import_index import VisitorIndex
from medamad.transfer.rows import MAX_MS


@frozen
class ImportTarget:
    """The website that files are imported into, and the operator's rules for what counts."""

    hostname: str = ""
    rules: Rules = field(factory=Rules)
    latest_ms: int = MAX_MS
    """The latest time that is accepted."""

    def is_ahead(self, time_ms: int) -> bool:
        """Return whether a time is too far in the future."""
        return time_ms > self.latest_ms

    def page(self, host: str, path: str, query: str = "") -> Page | None:
        """Return the page at a path, or None if that is not a valid address.

        An empty host stands for the website's own.
        """
        slash = "" if path.startswith("/") else "/"
        try:
            return page_of(f"http://{host or self.hostname or 'localhost'}{slash}{path}?{query}")
        except BadRequest:
            return None

    def referrer(self, url: str, host: str) -> str | None:
        """Return a referrer in its stored form, or None if it is spam."""
        referrer = referrer_of(url, {self.hostname, host})
        return None if referrer.partition("/")[0] in self.rules.spam else referrer


class SkipReason(StrEnum):
    """Why a row of another program's file does not count as a view or an event."""

    PROGRAMS = "programs"
    BLOCKED = "blocked"
    SPAM = "spam"
    OTHER_HOSTS = "other_hosts"
    NO_PAGE = "no_page"
    """Its address is not valid."""
    NO_VIEW = "no_view"
    """It is neither a page view nor an event."""
    REPEATED = "repeated"
    LONG = "long"
    """A log line that is too long."""
    CUT = "cut"
    """The last line of a log, which is incomplete."""


@define(eq=False)
class ReadContext:
    """The state that the readers of all files of an import share during one pass.

    The first pass fills the index; once that is finished, later passes read from it.
    """

    index: VisitorIndex
    skipped: Counter[SkipReason] = field(factory=Counter)
    had_agents: set[bool] = field(factory=set)
    """Whether logged requests had a User-Agent, of those lines that have room for one."""
    rows: int = 0
    """How many rows were read so far, including duplicates."""
    website: str = ""
    """The website that another program's rows name; "" until one does."""
    _seen: set[int] = field(factory=set)
    _numbers: Iterator[int] = field(factory=lambda: count(1))

    def next_number(self) -> int:
        """Return a number for a view or an event that no other hit of this pass has."""
        return next(self._numbers)

    def is_new(self, identity: Hashable) -> bool:
        """Return whether this identity is seen for the first time: exports may overlap."""
        size = len(self._seen)
        self._seen.add(hash(identity))
        return len(self._seen) > size

    def agent_of(self, user_agent: str | None) -> str | None:
        """Return the User-Agent of a request, or None if the logs do not record any.

        "" means that the client sent none. Logs in which every request has none were written
        without User-Agents; that is known after the first pass.
        """
        if user_agent is not None:
            self.had_agents.add(bool(user_agent))
        return user_agent if user_agent or self.index.has_agents else None

    def skip(self, reason: SkipReason) -> None:
        """Count a row that is skipped."""
        self.skipped[reason] += 1

    def first_flags(
        self, number: int, time_ms: int, visitor: Hashable, path: str
    ) -> tuple[bool, bool]:
        """Return whether a view is its visitor's first of the day, and first of its page.

        Both are False during the first pass, which only records the view.
        """
        if not self.index.is_finished:
            self.index.record(number, time_ms, visitor, path)
        return self.index.first_flags(number)
