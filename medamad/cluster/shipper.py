"""The shipper: follows the log of a collector, and sends what is new to ClickHouse.

It runs in a thread of its own. The log says which views and events are new or have changed, and the
store what they are now: sending something again sends the same, or what it has become. Rows are
identified by collector and number, so that nothing is there twice, however often it is sent.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field, frozen
from msgspec.structs import replace
from numpy.typing import NDArray
from twisted.logger import Logger

from medamad.clickhouse.client import Client, Unavailable
from medamad.clickhouse.tables import (
    EVENTS,
    TEXTS,
    VIEWS,
    Layout,
    NumberTaken,
    check_tables,
    claim_number,
    day_of,
    insert,
)
from medamad.cluster.block import Block, Known, Numbers, events_of
from medamad.cluster.settling import touch
from medamad.domain.errors import NotFound
from medamad.storage.environment.environment import Txn
from medamad.storage.segments.format import Segment
from medamad.storage.segments.parts import EventColumns, distinct
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.spool import Marks, Spool
from medamad.storage.store import Store
from medamad.storage.wal.records import (
    RecordKind,
    Rows,
    count_rows,
    records_between,
    sequence_of,
    sound_rows,
)

MOST_NUMBERS: Final = 20_000
"""How many numbers of the log a block covers."""
_LOOKED_AT: Final = 50
"""In how many records of each website it is looked for when the first was stored."""
BOUND_WITHIN_S: Final = 65.0
"""How long an event waits for its page load: a little longer than the store lets it."""
_QUORUM_MS: Final = 10_000
"""How long an insert waits for the other replicas."""
_WITHOUT_QUORUM: Final = frozenset((0, 285, 286, 319))
"""Errors after which an insert may succeed without a quorum: no answer, too few replicas, and
that it is unknown of an earlier insert, or of this one, where it arrived."""
_SETTINGS: Final = {
    # A block that a server has seen is not safe only because of that.
    "insert_deduplicate": 0,
    # Hits of a small website may be of many months.
    "max_partitions_per_insert_block": 0,
}
_NONE: Final[Numbers] = np.zeros(0, np.uint64)
_GREATEST: Final = (1 << 63) - 1
_ReadFrom: TypeAlias = Callable[[Callable[[Snapshot], Any]], Any]
"""Calls a function with a snapshot and returns its result; None if the website was deleted."""

_log: Final = Logger()


class CannotSend(Exception):
    """The cluster is not for this store as it is configured. `str(error)` is for the operator."""


class Stopped(Exception):
    """The store is about to be closed."""


@frozen(kw_only=True)
class Progress:
    """How far a step has come."""

    marks: Marks
    left: int = 0
    """How many numbers are left, which not all are those of rows."""
    lacking: str = ""
    """Why too few replicas have what was sent, "" if enough have."""
    rows: int = 0
    """How many rows of views and events were sent."""


@frozen(kw_only=True)
class Backlog:
    """Rows of the log that the cluster does not have as it should.

    Events that wait for their page load are not among them.
    """

    waiting: int
    """How many have not been sent."""
    since_ms: int | None
    """When the first of these was stored, None if there is none."""
    unsafe: int
    """How many were sent, but not to enough replicas."""


@frozen
class Loaded:
    """What has been sent of a website of what was stored before there was a cluster."""

    website: int
    up_to: int
    """Its hits with numbers up to this one are in the cluster."""
    rows: int
    """How many rows of views and events the last block had."""


@frozen
class _Held:
    """An event whose page load may still arrive."""

    website: int
    until: float


@define(eq=False)
class _Piece:
    """What the log has up to a number."""

    high: int
    block: Block
    logged: Counter[int] = field(factory=Counter)
    """How many rows the log has of each website."""
    arrived_ms: int = 0
    """When the last of it was stored, 0 if unknown."""
    events: set[int] = field(factory=set)
    """The events in the block."""
    held: dict[int, _Held] = field(factory=dict)
    """Events that are not in the block yet."""


@define(eq=False, kw_only=True)
class Shipper:
    """One thread at a time may use it; `stop` is for any."""

    store: Store
    spool: Spool
    client: Client
    layout: Layout
    collector: int
    quorum: int = 1
    """How many replicas must have a row before it may go from here."""
    now_ms: Callable[[], int]
    seconds: Callable[[], float] = time.monotonic
    _known: Known = field(init=False)
    _waiting: Counter[int] = field(factory=Counter, init=False)
    """By website, how many rows of the log up to `_counted` are not sent."""
    _unsafe: Counter[int] = field(factory=Counter, init=False)
    _counted: int | None = field(default=None, init=False)
    _held: dict[int, _Held] = field(factory=dict, init=False)
    _sent: int = field(init=False)
    """What is up to this number is sent, apart from what is held."""
    _safe: int = field(init=False)
    _safe_ms: int = field(init=False)
    _has_begun: bool = field(default=False, init=False)
    _reading: Lock = field(factory=Lock, init=False)
    """Held while the store is read."""
    _is_stopped: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._known = Known(self.collector)
        marks = self.spool.marks
        self._sent, self._safe, self._safe_ms = marks.sent, marks.safe, marks.safe_ms

    def stop(self) -> None:
        """Let nothing be read of the store from now on. What is being sent may still arrive."""
        with self._reading:
            self._is_stopped = True

    def step(self) -> Progress:
        """Send what is next in the log, and some of what is not safe again.

        Raises ClickHouseError and CannotSend, after which it can be called again, and Stopped.
        """
        # Before anything that may fail.
        with self._counting():
            pass
        self._begin()
        lacking, rows = "", 0
        if self._safe < self._sent:
            piece = self._complete(partial(self._read, self._safe, self._sent))
            lacking = self._send_safely(piece.block)
            if not lacking:
                self._is_safe(piece)
            rows = piece.block.rows
        read_ms, stored = self.now_ms(), self.spool.stored_up_to
        if self._sent < stored or self._held:
            piece = self._complete(partial(self._read, self._sent, stored))
            is_safe = self._safe == self._sent and not lacking
            if is_safe:
                lacking = self._send_safely(piece.block)
            if lacking or not is_safe:
                self._send(piece.block, _SETTINGS)
            self._is_sent(piece)
            if is_safe and not lacking:
                self._is_safe(piece)
            else:
                self._is_unsafe(piece)
            rows += piece.block.rows
        if self._safe == stored:
            self._safe_ms = read_ms
        return Progress(
            marks=self._marks(),
            left=stored - self._sent,
            lacking=lacking,
            rows=rows,
        )

    def backlog(self) -> Backlog:
        """Return what the cluster does not have, whether or not it answers. Raises Stopped."""
        with self._counting() as txn:
            websites = self._websites()
            waiting = sum(self._waiting[website] for website in websites)
            return Backlog(
                waiting=waiting,
                since_ms=self._first_stored_ms(txn) if waiting else None,
                unsafe=sum(self._unsafe[website] for website in websites),
            )

    def resend(self, since_ms: int) -> Iterator[int]:
        """Send all views and events since a time; return the number of rows of each block.

        Some may not have been sent before, some may be in the cluster. Raises what `step` does.
        """
        self._begin()
        self._known.texts.clear()
        for website in self._websites():
            with self._reading:
                self._check_not_stopped()
                found = self._read_website(website, lambda at: _numbers_since(at, since_ms))
            views, events = found or (_NONE, _NONE)
            for begin in range(0, max(len(views), len(events)), MOST_NUMBERS):
                end = begin + MOST_NUMBERS
                yield self._send_again(website, views[begin:end], events[begin:end])

    def load(self) -> Iterator[Loaded]:
        """Send what was stored before there was a cluster, in order of its numbers.

        Each block is to be stored in the marks, so that a later call goes on from there. What is
        sent twice has the same keys. Raises what `step` does.
        """
        self._begin()
        self._known.texts.clear()
        marks = self.spool.marks
        for website in self._websites():
            bounds = marks.loaded.get(website, 0), marks.since
            read_from = partial(self._read_website, website)
            for up_to, rows in self._send_between(website, bounds, read_from):
                yield Loaded(website, up_to, rows)

    def send_import(self, website: int, segments: Sequence[Segment]) -> Iterator[int]:
        """Send the segments of an import batch; return the number of rows of each block.

        Raises what `step` does, and DamagedSegment.
        """
        self._begin()
        read_from = partial(self.store.partitions.read_segments, website, segments)
        for _, rows in self._send_between(website, (0, _GREATEST), read_from):
            yield rows

    def _send_between(
        self, website: int, bounds: tuple[int, int], read_from: _ReadFrom
    ) -> Iterator[tuple[int, int]]:
        """Send the views and events after one number and up to another, in their order.

        Returns the last number of each block, and how many rows it has.
        """
        after, up_to = bounds
        while True:
            with self._reading:
                self._check_not_stopped()
                found = read_from(partial(_numbers_between, bounds=(after, up_to)))
            views, events = found or (_NONE, _NONE)
            if not len(views) and not len(events):
                return
            rows = self._send_again(website, views, events, read_from)
            after = int(max(numbers[-1] for numbers in (views, events) if len(numbers)))
            yield after, rows

    def _send_again(
        self,
        website: int,
        views: Numbers,
        events: Numbers,
        read_from: _ReadFrom | None = None,
    ) -> int:
        """Send views and events to enough replicas; return how many rows these are."""

        def read() -> _Piece:
            piece = _Piece(0, Block(self._known))
            self._add(piece, website, views, events, read_from)
            return piece

        piece = self._complete(read)
        if lacking := self._send_safely(piece.block):
            raise Unavailable(lacking)
        return piece.block.rows

    # The beginning

    def _begin(self) -> None:
        """Find out whether the cluster is ready for this store, and where to go on."""
        with self._reading:
            self._check_not_stopped()
        if self._has_begun:
            return
        check_tables(self.client, self.layout)
        self._check_number(self.spool.marks.collector)
        self._claim_tables()
        self._has_begun = True

    def _check_number(self, before: int) -> None:
        """Raise CannotSend if the store has been another collector: all would be there twice."""
        if before not in (0, self.collector):
            raise CannotSend(
                f"cluster.collector: this store has sent its hits as collector {before},"
                f" and cannot go on as {self.collector}"
            )

    def _claim_tables(self) -> None:
        """Make sure that no other store sends under this number. Raises CannotSend."""
        with self._reading:
            self._check_not_stopped()
            with self.store.environment.reading() as txn:
                own = self.store.environment.store_id(txn)
            first = self.store.role(self.collector).epoch.cluster
        try:
            claim_number(self.client, self.collector, own, first)
        except NumberTaken as error:
            raise CannotSend(str(error)) from error

    # Reading

    def _check_not_stopped(self) -> None:
        if self._is_stopped:
            raise Stopped

    def _websites(self) -> list[int]:
        return [website.number for website in self.store.websites.all()]

    def _complete(self, read: Callable[[], _Piece]) -> _Piece:
        """Return what is read of the store, with what the cluster alone has."""
        while True:
            with self._reading:
                self._check_not_stopped()
                piece = read()
            if piece.block.is_complete:
                return piece
            self._known.look_up(self.client, piece.block)

    def _read(self, low: int, limit: int) -> _Piece:
        """Read what the log has after a number, up to `limit` at most."""
        with self.store.environment.reading() as txn:
            high, by_website, logged = self._log_between(txn, low, limit)
        piece = _Piece(high, Block(self._known), logged)
        for website, rows in by_website.items():
            views = _numbers_in(rows, {RecordKind.VIEW: "sequence", RecordKind.DURATION: "view"})
            events = _numbers_in(rows, {RecordKind.PROPERTY: "event", RecordKind.BINDING: "event"})
            piece.arrived_ms = max(piece.arrived_ms, _arrived_ms(rows))
            self._add(piece, website, views, events)
        now = self.seconds()
        due: dict[int, list[int]] = {}
        for event, held in self._held.items():
            if held.until <= now and event not in piece.events:
                due.setdefault(held.website, []).append(event)
        for website, of_website in due.items():
            self.spool.unbound.difference_update(of_website)
            self._add(piece, website, _NONE, np.array(sorted(of_website), np.uint64))
            piece.events.update(of_website)
        return piece

    def _log_between(
        self, txn: Txn, low: int, limit: int
    ) -> tuple[int, dict[int, Mapping[RecordKind, Rows]], Counter[int]]:
        """Return up to which number the log was read, and the rows of each website.

        Also how many rows these are, with those that are damaged.
        """
        databases, websites = self.store.environment.databases, self._websites()
        high = min(limit, low + MOST_NUMBERS)
        found: dict[int, Mapping[RecordKind, Rows]] = {}
        logged: Counter[int] = Counter()
        for website in websites:
            records = list(records_between(txn, databases, website, (low, high)))
            if records:
                found[website], damaged = sound_rows(records)
                logged[website] = sum(count_rows(value) for _, value in records)
                if damaged:
                    _log.error("damaged records ({count}) are not sent", count=len(damaged))
        if not found and high < limit:
            # Imports take millions of numbers at once.
            following = (
                sequence_of(key)
                for website in websites
                for key, _ in islice(records_between(txn, databases, website, (high, limit)), 1)
            )
            high = min(following, default=limit + 1) - 1
        return high, found, logged

    @contextmanager
    def _counting(self) -> Iterator[Txn]:
        """Read the log, of which all is counted that waits. Raises Stopped."""
        with self._reading:
            self._check_not_stopped()
            with self.store.environment.reading() as txn:
                if self._counted is None:
                    self._counted = self._sent
                    self._unsafe = self._count(txn, self._safe, self._sent)
                stored = self.spool.stored_up_to
                self._waiting += self._count(txn, self._counted, stored)
                self._counted = stored
                yield txn

    def _count(self, txn: Txn, low: int, high: int) -> Counter[int]:
        """Return how many rows the log has after a number and up to another, by website."""
        databases = self.store.environment.databases
        if low >= high:
            return Counter()
        return Counter(
            {
                website: sum(
                    count_rows(value)
                    for _, value in records_between(txn, databases, website, (low, high))
                )
                for website in self._websites()
            }
        )

    def _first_stored_ms(self, txn: Txn) -> int | None:
        """Return when the first row that is not sent was stored, as far as the log says it."""
        databases, bounds = self.store.environment.databases, (self._sent, self.spool.stored_up_to)
        times = []
        for website in self._websites():
            records = islice(records_between(txn, databases, website, bounds), _LOOKED_AT)
            if stored_ms := _stored_ms(sound_rows(records)[0]):
                times.append(stored_ms)
        return min(times, default=None)

    def _add(
        self,
        piece: _Piece,
        website: int,
        views: Numbers,
        events: Numbers,
        read_from: _ReadFrom | None = None,
    ) -> None:
        """Add views and events of a website to a piece, apart from events that have to wait."""

        def add(snapshot: Snapshot) -> None:
            piece.block.add_views(website, snapshot, views)
            properties = events_of(snapshot, events)
            waiting = [
                event
                for event in np.unique(properties.event[properties.view == 0]).tolist()
                if event in self.spool.unbound
            ]
            until = self.seconds() + BOUND_WITHIN_S
            piece.held |= {event: _Held(website, until) for event in waiting}
            if waiting:
                properties = properties.select(~np.isin(properties.event, waiting))
            if len(properties):
                piece.block.add_events(website, snapshot, properties)
                piece.events.update(properties.event.tolist())

        (read_from or partial(self._read_website, website))(add)

    def _read_website(self, website: int, read: Callable[[Snapshot], Any]) -> Any:
        """Return what `read` returns; None if the website has been deleted."""
        try:
            return self.store.partitions.read(website, read)
        except NotFound:
            return None

    # Sending

    def _send_safely(self, block: Block) -> str:
        """Send a block to enough replicas; return why they were too few, "" if not."""
        if self.quorum <= 1:
            self._send(block, _SETTINGS)
            self._known.add(block)
            return ""
        quorum = {"insert_quorum": self.quorum, "insert_quorum_timeout": _QUORUM_MS}
        try:
            self._send(block, {**_SETTINGS, **quorum})
        except Unavailable as error:
            if error.code not in _WITHOUT_QUORUM:
                raise
            return str(error)
        self._known.add(block)
        return ""

    def _send(self, block: Block, settings: Mapping[str, int]) -> None:
        if block.new_texts:
            # Before the rows that use them.
            insert(self.client, TEXTS, block.texts(), **settings)
        days, today = block.days, day_of(self.now_ms())
        touch(self.client, days, today, **settings)
        if block.views:
            insert(self.client, VIEWS, block.columns(VIEWS), **settings)
        if block.events:
            insert(self.client, EVENTS, block.columns(EVENTS), **settings)
        touch(self.client, days, today, **settings)

    def _is_sent(self, piece: _Piece) -> None:
        self._sent = piece.high
        for event in piece.events:
            self._held.pop(event, None)
        self.spool.unbound.difference_update(piece.events)
        self._held |= {event: held for event, held in piece.held.items() if event not in self._held}

        if self._counted is None or piece.high >= self._counted:
            self._counted = piece.high
            self._waiting.clear()
        else:
            self._waiting -= piece.logged

    def _is_unsafe(self, piece: _Piece) -> None:
        self._unsafe += piece.logged
        # One that was held is from before what is sent.
        before = min(piece.events, default=self._safe + 1) - 1
        if before < self._safe:
            with self._counting() as txn:
                self._unsafe += self._count(txn, before, self._safe)
            self._safe = before

    def _is_safe(self, piece: _Piece) -> None:
        self._safe = max(self._safe, piece.high)
        self._unsafe -= piece.logged
        if self._safe == self._sent:
            self._unsafe.clear()
        self._safe_ms = max(self._safe_ms, piece.arrived_ms)

    def _marks(self) -> Marks:
        # What is held is only in the log.
        most = min(self._held, default=self._sent + 1) - 1
        return replace(
            self.spool.marks,
            collector=self.collector,
            sent=min(self._sent, most),
            safe=min(self._safe, most),
            safe_ms=self._safe_ms,
        )


def _numbers_in(rows: Mapping[RecordKind, Rows], names: Mapping[RecordKind, str]) -> Numbers:
    """Return numbers in rows of some kinds, by the name of the field, ascending."""
    found = [rows[kind][name] for kind, name in names.items() if kind in rows]
    return np.unique(np.concatenate(found)) if found else _NONE


_ARRIVALS: Final = {RecordKind.VIEW: "arrived_ms", RecordKind.DURATION: "time_ms"}


def _arrived_ms(rows: Mapping[RecordKind, Rows]) -> int:
    """Return when the last of some rows was stored, 0 if they do not say."""
    times = _numbers_in(rows, _ARRIVALS)
    return int(times[-1]) if len(times) else 0


def _stored_ms(rows: Mapping[RecordKind, Rows]) -> int:
    """Return when the first of some rows was stored, 0 if there are none.

    If all of them are of events, it is when the first of these happened.
    """
    times = _numbers_in(rows, _ARRIVALS)
    if not len(times):
        times = _numbers_in(rows, {RecordKind.PROPERTY: "time_ms", RecordKind.BINDING: "time_ms"})
    return int(times[0]) if len(times) else 0


def _numbers_since(snapshot: Snapshot, since_ms: int) -> tuple[Numbers, Numbers]:
    """Return the numbers of the views and of the events since a time, ascending."""
    views, events = [_NONE], [_NONE]
    for leaf in snapshot.leaves():
        views.append(leaf.sequence[leaf.time_ms >= since_ms].copy())
        events += [_events_since(each, since_ms) for each in (leaf.own, leaf.loose)]
    events += [_events_since(piece, since_ms) for piece in snapshot.events]
    return np.unique(np.concatenate(views)), np.unique(np.concatenate(events))


def _numbers_between(snapshot: Snapshot, bounds: tuple[int, int]) -> tuple[Numbers, Numbers]:
    """Return the numbers of the next views and events after one number and up to another.

    There are MOST_NUMBERS at most, ascending.
    """
    after, up_to = bounds
    views = [_next_of(chunk.sequence, bounds) for chunk in snapshot.chunks]
    events = [_next_of(piece.event, bounds) for piece in snapshot.events]
    for segment in sorted(snapshot.leaf_segments(), key=lambda each: each.header.first_sequence):
        first = segment.header.first_sequence
        if segment.header.last_sequence <= after:
            continue
        found = np.concatenate([_NONE, *views, *events])
        if first > up_to or np.count_nonzero(found < first) >= MOST_NUMBERS:
            break
        for leaf in snapshot.with_segments([segment]).leaves():
            views.append(_next_of(leaf.sequence, bounds))
            events += [_next_of(each.event, bounds) for each in (leaf.own, leaf.loose)]
    hits = distinct(np.concatenate([_NONE, *views, *events]))[:MOST_NUMBERS]
    last = hits[-1] if len(hits) else np.uint64(after)
    of_views, of_events = (distinct(np.concatenate([_NONE, *pieces])) for pieces in (views, events))
    return of_views[of_views <= last], of_events[of_events <= last]


def _next_of(numbers: NDArray[np.unsignedinteger[Any]], bounds: tuple[int, int]) -> Numbers:
    """Return the next numbers of some, ascending, after one number and up to another."""
    after, up_to = bounds
    begin, end = np.searchsorted(numbers, np.array((after + 1, up_to + 1), np.uint64))
    return distinct(numbers[begin:end])[:MOST_NUMBERS].astype(np.uint64)


def _events_since(events: EventColumns, since_ms: int) -> Numbers:
    return events.event[events.time_ms >= since_ms].astype(np.uint64)
