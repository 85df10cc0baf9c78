"""What the readers of an import share: the target website, numbering, and indexes of the hits.

The indexes are filled in a first pass over the files and used in the next, so that the result does
not depend on the order of the files or of their rows. They live in memory only, and hold hashes
that no other process can reproduce.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from enum import IntEnum, StrEnum
from itertools import count
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.errors import BadRequest
from medamad.domain.zones import day_at
from medamad.ingest.page import Page, page_of, referrer_of
from medamad.ingest.pipeline import Rules
from medamad.ingest.website_rules import NO_RULES, WebsiteRules
from medamad.lookup.robots import is_listed
from medamad.storage.import_batches import Origins
from medamad.storage.request_totals import merge_counts
from medamad.transfer.rows import MAX_MS, EventRow, HitRow, ViewRow, row_content


@frozen
class ImportTarget:
    """The website that files are imported into, and the operator's rules for what counts."""

    hostname: str = ""
    rules: Rules = field(factory=Rules)
    latest_ms: int = MAX_MS
    """The latest time that is accepted."""
    own: WebsiteRules = NO_RULES
    """The website's settings: imports heed what is never stored of addresses, and `hosting`; those
    of access logs, which have all requests, also heed what does not count."""
    others: Mapping[str, WebsiteRules] = MappingProxyType({})
    """The settings of all websites by hostname: pages of each may be referrers."""

    def is_ahead(self, time_ms: int) -> bool:
        """Return whether a time is too far in the future."""
        return time_ms > self.latest_ms

    def page(self, host: str, path: str, query: str = "") -> Page | None:
        """Return what is stored of the page at a path, or None if that is not a valid address.

        An empty host stands for the website's own.
        """
        url = self.url(host, path, query)
        try:
            return self.own.stored(page_of(url), url)
        except BadRequest:
            return None

    def url(self, host: str, path: str, query: str = "") -> str:
        """Return the URL of a path; an empty host stands for the website's own."""
        slash = "" if path.startswith("/") else "/"
        return f"http://{host or self.hostname or 'localhost'}{slash}{path}?{query}"

    def referrer(self, url: str, host: str) -> str | None:
        """Return a referrer in its stored form, or None if it is spam."""
        referrer = referrer_of(url, (self.hostname, host))
        if referrer.partition("/")[0] in self.rules.spam:
            return None
        # A referrer has no leading `www.`.
        host = referrer.partition("/")[0]
        if other := self.others.get(host) or self.others.get(f"www.{host}"):
            referrer = other.as_referrer(referrer, url)
        return self.own.referrer(referrer)


class SkipReason(StrEnum):
    """Why a row of another program's file does not count as a view or an event."""

    PROGRAMS = "programs"
    HOSTING = "hosting"
    """It comes from the network of a hosting provider."""
    BLOCKED = "blocked"
    SPAM = "spam"
    EXCLUDED = "excluded"
    """Of a page that the website's settings exclude."""
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


VISIT_TIMEOUT_MS: Final = 30 * 60_000
"""The longest gap within a visit, unless the program that counted it says which views it has."""

_FIRST_OF_DAY: Final = 1
_FIRST_OF_PAGE: Final = 2
_EMPTY: Final = np.zeros(0, np.int64)


def _int64s() -> "array[int]":
    return array("q")


def _uint32s() -> "array[int]":
    return array("I")


def _flags() -> "array[int]":
    return array("b")


class Verdict(IntEnum):
    """What becomes of a hit of the files."""

    COUNTS = 0
    REPEATED = 1
    """An equal one counts."""
    CONFLICTS = 2
    """An earlier one has its number and other values."""
    EXISTS = 3
    """The website has it already."""


@frozen(eq=False)
class _Hits:
    """The hits of one store and kind, in the order in which they were read."""

    numbers: "array[int]" = field(factory=_int64s)
    contents: "array[int]" = field(factory=_int64s)
    files: "array[int]" = field(factory=_uint32s)
    durations_ms: "array[int]" = field(factory=_uint32s)
    places: "array[int]" = field(factory=_uint32s)


@define(eq=False)
class HitIndex:
    """Decides which hits of the files count: each identity once.

    A hit is identified by its store and its number there. One without a number is identified by its
    content, and by how many with the same content and no shorter time on page are in its file. So
    of equal ones, as many count as the file with the most of them has: the logs of several servers
    are imported completely, and overlapping ones only once. Of hits with the same identity, the one
    with the longest time on page counts, in any order of the files. Needs 28 bytes for each hit.
    """

    left_out: int = 0
    """How many hits with a number are repeated; known once the index is finished."""
    conflicts: int = 0
    _hits: dict[tuple[str, type[HitRow], bool], _Hits] = field(factory=lambda: defaultdict(_Hits))
    """By store, kind, and whether their numbers identify them."""
    _verdicts: bytearray = field(factory=bytearray)
    """By the place of a hit among all of the files."""
    _originals: tuple[NDArray[np.int64], NDArray[np.int64]] = (_EMPTY, _EMPTY)
    """The assigned numbers of repeated hits, ascending, and of the hits that count instead."""

    def record(self, place: int, file: int, row: HitRow, *, is_numbered: bool) -> None:
        """Record a row of the file at this position; those of an event come one after another."""
        hits = self._hits[row.store, type(row), is_numbered]
        content = hash((row.identity, *row_content(row)))
        if hits.places and hits.places[-1] == place:
            hits.contents[-1] ^= content
            return
        hits.numbers.append(row.number)
        hits.contents.append(content)
        hits.files.append(file)
        hits.durations_ms.append(row.duration_ms if isinstance(row, ViewRow) else 0)
        hits.places.append(place)

    def verdict(self, place: int) -> Verdict | int:
        """Return what becomes of a hit, once the index is finished."""
        return self._verdicts[place] if place < len(self._verdicts) else Verdict.COUNTS

    def finish(self) -> None:
        """Decide which hits count, once all are recorded."""
        last = max((hits.places[-1] for hits in self._hits.values()), default=0)
        self._verdicts = bytearray(last + 1)
        originals = [(_EMPTY, _EMPTY)]
        for (store, kind, is_numbered), hits in self._hits.items():
            repeated, conflicts, counting = _repeated(hits, is_numbered=is_numbered)
            places = np.frombuffer(hits.places, np.uint32)[repeated]
            verdicts = np.where(conflicts, Verdict.CONFLICTS, Verdict.REPEATED)
            np.frombuffer(self._verdicts, np.uint8)[places] = verdicts
            if is_numbered:
                self.conflicts += int(conflicts.sum())
                self.left_out += int((~conflicts).sum())
                self._reject_assigned(hits, self._hits.get((store, kind, False)))
            else:
                numbers = np.frombuffer(hits.numbers, np.int64)
                originals.append((numbers[repeated], numbers[counting]))
        duplicates, counting = (np.concatenate(each) for each in zip(*originals, strict=True))
        ascending = np.argsort(duplicates)
        self._originals = duplicates[ascending], counting[ascending]
        self._hits = {
            key: _Hits(numbers=hits.numbers, places=hits.places)
            for key, hits in self._hits.items()
            if key[0]
        }

    def _reject_assigned(self, hits: _Hits, without: _Hits | None) -> None:
        """Reject the hits whose number was assigned to one without a number."""
        if without is not None:
            is_assigned = np.isin(
                np.frombuffer(hits.numbers, "q"), np.frombuffer(without.numbers, "q")
            )
            self.conflicts += self._mark(hits, is_assigned, Verdict.CONFLICTS)

    def find_existing(self, origins: Origins, numbers: Mapping[type, NDArray[np.int64]]) -> None:
        """Find the hits that the website has already, given their numbers in this store by kind."""
        for (store, kind, _), hits in self._hits.items():
            of_files = np.frombuffer(hits.numbers, np.int64)
            exists = np.zeros(len(of_files), np.bool_)
            for here, _ in origins.places(store, of_files):
                exists |= np.isin(here, numbers[kind])
            self._mark(hits, exists, Verdict.EXISTS)

    def find_in_other(self, store: str, numbers: Mapping[type, NDArray[np.int64]]) -> None:
        """Find the hits that the website has already, given their numbers in another store."""
        for (its_store, kind, _), hits in self._hits.items():
            if its_store == store:
                exists = np.isin(np.frombuffer(hits.numbers, np.int64), numbers[kind])
                self._mark(hits, exists, Verdict.EXISTS)

    def _mark(self, hits: _Hits, chosen: NDArray[np.bool_], verdict: Verdict) -> int:
        """Change the verdict on those of the chosen hits that count; return how many these are."""
        verdicts = np.frombuffer(self._verdicts, np.uint8)
        places = np.frombuffer(hits.places, np.uint32)[chosen]
        places = places[verdicts[places] == Verdict.COUNTS]
        verdicts[places] = verdict
        return len(places)

    @property
    def repeated(self) -> NDArray[np.int64]:
        """The assigned numbers of repeated hits, ascending, once the index is finished."""
        return self._originals[0]

    def original_of(self, number: int) -> int:
        """Return the assigned number of the hit that counts: this one, or one that it repeats."""
        repeated, originals = self._originals
        at = int(np.searchsorted(repeated, number))
        is_repeated = at < len(repeated) and int(repeated[at]) == number
        return int(originals[at]) if is_repeated else number


_Places: TypeAlias = NDArray[np.intp]


def _repeated(hits: _Hits, *, is_numbered: bool) -> tuple[_Places, NDArray[np.bool_], _Places]:
    """Return which hits are repeated, whether they conflict, and which ones count instead."""
    contents = np.frombuffer(hits.contents, np.int64)
    keys = np.frombuffer(hits.numbers, np.int64) if is_numbered else contents
    order = np.argsort(keys, kind="stable")
    starts = _starts(keys[order])
    is_single = starts & np.append(starts[1:], [True])[: len(starts)]
    order = order[~is_single]
    keys, contents = keys[order], contents[order]
    files = np.frombuffer(hits.files, np.uint32)[order]
    shortness = ~np.frombuffer(hits.durations_ms, np.uint32)[order]
    conflicts = contents != contents[_last_chosen(_starts(keys))]
    occurrence = np.zeros(len(order), np.intp)
    if not is_numbered:
        # The nth occurrence in one file matches the nth occurrence in another.
        by_file = np.lexsort((shortness, files, keys))
        starts = _starts(keys[by_file]) | _starts(files[by_file])
        occurrence[by_file] = np.arange(len(order)) - _last_chosen(starts)
    matching = np.lexsort((shortness, conflicts, occurrence, keys))
    counts = _starts(keys[matching]) | _starts(occurrence[matching])
    order, conflicts = order[matching], conflicts[matching]
    return order[~counts], conflicts[~counts], order[_last_chosen(counts)][~counts]


def _starts(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values differ from the one before them."""
    return np.append([True], values[1:] != values[:-1])[: len(values)]


def _last_chosen(chosen: NDArray[np.bool_]) -> _Places:
    """Return for each place the last chosen place up to and including it."""
    return np.maximum.accumulate(np.where(chosen, np.arange(len(chosen)), 0))


class ViewPlace(NamedTuple):
    """The place of a view among those of its visitor."""

    first_today: bool = False
    first_of_page: bool = False
    visit: int = 0
    """The number by time of the first view of its visit; 0 if unknown."""


@define(eq=False)
class VisitorIndex:
    """Finds which views are a visitor's first of the day and of a page, and the visit of each.

    By the times of the views. Needs 41 bytes for each.
    """

    zone: tzinfo
    """The zone whose days count."""
    has_agents: bool = True
    """Whether access logs record User-Agents; False once it turns out that none does."""
    is_finished: bool = False
    hits: HitIndex = field(factory=HitIndex)
    _visitors: "array[int]" = field(factory=_int64s)
    _pages: "array[int]" = field(factory=_int64s)
    _times_ms: "array[int]" = field(factory=_int64s)
    _numbers: "array[int]" = field(factory=_int64s)
    _visit_keys: "array[int]" = field(factory=_int64s)
    _is_whole_visit: "array[int]" = field(factory=_flags)
    """Whether the key of a view is that of its visit, rather than of its visitor."""
    _flags: bytes = b""
    """The flags of each view, by its number."""
    _visits: NDArray[np.int64] = _EMPTY
    """The number by time of the first view of each view's visit, by its number; 0 if unknown."""
    _places: NDArray[np.int64] = _EMPTY
    """The number of each view by time, by the number it was read with."""
    _needs_views: bool = False
    """Whether the view that an event belongs to has to be found."""
    _by_page: tuple[NDArray[np.int64], ...] = (_EMPTY, _EMPTY, _EMPTY)
    """The hashes of visitors' pages, ascending, and the times and numbers of their views."""

    def record(
        self, number: int, time_ms: int, visitor: Hashable, path: str, visit: Hashable = None
    ) -> None:
        """Record a view. Numbers are positive and ascend.

        `visit` names its visit; with None, that follows from the times of the visitor's views.
        """
        day = self._day(time_ms)
        self._visitors.append(hash((day, visitor)))
        self._pages.append(hash((day, visitor, path)))
        self._times_ms.append(time_ms)
        self._numbers.append(number)
        self._visit_keys.append(hash(visitor if visit is None else (visitor, visit)))
        self._is_whole_visit.append(visit is not None)

    def finish(self) -> None:
        """Decide which views come first and what the visits are, once all views are recorded.

        Of views at the same time, the one that was read first counts as the first.
        """
        times, numbers = np.frombuffer(self._times_ms, "q"), np.frombuffer(self._numbers, "q")
        flags = np.zeros(int(numbers[-1]) + 1 if len(numbers) else 0, np.uint8)
        for flag, hashes in ((_FIRST_OF_DAY, self._visitors), (_FIRST_OF_PAGE, self._pages)):
            keys = np.frombuffer(hashes, "q")
            order = np.lexsort((times, keys))
            ordered = keys[order]
            flags[numbers[order[_starts(ordered)]]] |= flag
            if flag == _FIRST_OF_PAGE and self._needs_views:
                self._by_page = ordered, times[order], numbers[order]
        self._flags = flags.tobytes()
        self._visitors, self._pages = _int64s(), _int64s()
        self.hits.finish()
        self._places = np.arange(len(flags))
        self._places[numbers[np.argsort(times, kind="stable")]] = numbers
        self._visits = np.zeros(len(flags), np.int64)
        self._find_visits(times, numbers)
        self._times_ms, self._numbers = _int64s(), _int64s()
        self._is_whole_visit = _flags()
        self.is_finished = True

    def _find_visits(self, times: NDArray[np.int64], numbers: NDArray[np.int64]) -> None:
        """Find the visits of all views but duplicates. What is not needed any more is freed."""
        keys = np.frombuffer(self._visit_keys, "q")
        is_whole = np.frombuffer(self._is_whole_visit, np.bool_)
        order = np.lexsort((times, keys))
        if len(self.hits.repeated):
            order = order[~np.isin(numbers[order], self.hits.repeated)]
        begins = _starts(keys[order])
        del keys
        self._visit_keys = _int64s()
        begins[1:] |= (np.diff(times[order]) > VISIT_TIMEOUT_MS) & ~is_whole[order[1:]]
        ordered = numbers[order]
        del order
        first_views = self._places[ordered[begins]]
        if len(first_views):
            self._visits[ordered] = first_views[np.cumsum(begins, dtype=np.int32) - 1]

    def first_flags(self, number: int) -> tuple[bool, bool]:
        """Return whether a view is its visitor's first of the day, and first of its page."""
        flags = self._flags[number] if number < len(self._flags) else 0
        return bool(flags & _FIRST_OF_DAY), bool(flags & _FIRST_OF_PAGE)

    def visit_of(self, number: int) -> int:
        """Return the number of the first view of a view's visit, by time; 0 if it is unknown."""
        return int(self._visits[number]) if number < len(self._visits) else 0

    def number_by_time(self, number: int) -> int:
        """Return the number that a recorded view gets instead of the one it was read with.

        These numbers ascend with the times of the views, as those of the views of a visit must.
        """
        return int(self._places[number]) if number < len(self._places) else number

    def last_view_before(self, time_ms: int, visitor: Hashable, path: str) -> int:
        """Return the number by time of a visitor's last view of a page up to a time; 0 for none.

        The view is one that counts, from the same day or the day before. Always 0 during the first
        pass.
        """
        self._needs_views = True
        if not self.is_finished:
            return 0
        pages, times, numbers = self._by_page
        day = self._day(time_ms)
        for page in (hash((day, visitor, path)), hash((day - 1, visitor, path))):
            first, end = np.searchsorted(pages, page), np.searchsorted(pages, page, "right")
            at = first + np.searchsorted(times[first:end], time_ms, "right")
            if at > first:
                return self.number_by_time(self.hits.original_of(int(numbers[at - 1])))
        return 0

    def _day(self, time_ms: int) -> int:
        return datetime.fromtimestamp(time_ms / 1000, UTC).astimezone(self.zone).toordinal()


@define(eq=False)
class ReadContext:
    """The state that the readers of all files of an import share during one pass.

    The first pass fills the index; once that is finished, later passes read from it.
    """

    index: VisitorIndex
    skipped: Counter[SkipReason] = field(factory=Counter)
    had_agents: set[bool] = field(factory=set)
    """Whether logged requests had a User-Agent, for lines in a format that has one."""
    robots: dict[int, dict[str, dict[str, int]]] = field(factory=dict)
    """The pages that robots read, by day, name and path."""
    rows: int = 0
    """How many rows were read so far, including repeated ones."""
    hits: int = 0
    """How many views and events."""
    website: str = ""
    """The website that another program's rows name; "" until one does."""
    _event: tuple[int, str, int] | None = None
    """The file, the store and the number of the event whose rows are being read."""
    _seen: set[int] = field(factory=set)
    _numbers: Iterator[int] = field(factory=lambda: count(1))

    def next_number(self) -> int:
        """Return a number for a view or an event that no other hit of this pass has."""
        return next(self._numbers)

    def count_hit(self, file: int, row: HitRow) -> None:
        """Count a hit with its first row; the rows of an event are adjacent."""
        event = (file, row.store, row.number) if isinstance(row, EventRow) else None
        self.hits += event is None or event != self._event
        self._event = event

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

    def count_robot(self, time_ms: int, name: str, path: str) -> None:
        """Count a page that a robot read, in the first pass."""
        if not self.index.is_finished:
            of_day = self.robots.setdefault(day_at(self.index.zone, time_ms // 1000), {})
            merge_counts(of_day, {name: {path: 1}}, is_listed=is_listed)

    def place_of(
        self, number: int, time_ms: int, visitor: Hashable, path: str, visit: Hashable = None
    ) -> ViewPlace:
        """Return the place of a view among its visitor's; see `VisitorIndex.record`.

        Nothing is known during the first pass, which only records the view.
        """
        if not self.index.is_finished:
            self.index.record(number, time_ms, visitor, path, visit)
        return ViewPlace(*self.index.first_flags(number), self.index.visit_of(number))
