"""The write-ahead log: number hits and append their records, one transaction for each batch."""

import struct
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from functools import partial
from operator import attrgetter
from typing import Final, Protocol

from attrs import define, evolve, field

from medamad.domain.dimensions import MAX_VISIT_OFFSET, VIEW_DIMENSIONS, ViewFlag
from medamad.domain.hits import (
    NUMBERS_OF_HITS,
    Event,
    Hit,
    Properties,
    Unload,
    View,
    Visitor,
)
from medamad.storage.dictionary.encode import Dictionary, Encoder
from medamad.storage.environment.environment import Databases, Txn
from medamad.storage.environment.meta import entries, read_number, write_number
from medamad.storage.passed_hits import is_received
from medamad.storage.segments.corrections import Corrected, Correction, write_correction
from medamad.storage.wal.beacons import BeaconIndex, UnmatchedBeacons, ViewLocation
from medamad.storage.wal.named_visitors import NamedVisitors
from medamad.storage.wal.records import Record, RecordKind, Row, Rows, records_of, rows_of, view_row
from medamad.storage.wal.seen_visitors import SeenBatch, SeenVisitors
from medamad.storage.wal.visits import LiveVisits, VisitBatch

SEQUENCE: Final = b"sequence"
_WEBSITE: Final = struct.Struct(">I")
_texts_of = attrgetter(*(dimension.attribute for dimension in VIEW_DIMENSIONS))
_flags_of = attrgetter(*(flag.attribute for flag in ViewFlag))
_NUMBER_NAMES: Final = tuple(number.attribute for number in NUMBERS_OF_HITS)


class Outcome(Enum):
    """What became of a hit."""

    STORED = "stored"
    REPEATED = "repeated"
    """A page load whose beacon was stored before, or an event that another collector sent twice."""
    NO_VIEW = "no view"
    """An unload whose view is unknown, kept for 60 seconds in case the view arrives; or whose view
    is of another website than the page. Or an event that needs its view, which is unknown."""
    NO_WEBSITE = "no website"
    """The website was deleted while the hit waited."""


class StoredHits(Protocol):
    """What a batch needs to know of the hits that were stored before it."""

    def duration_ms(self, website: int, view: int) -> int:
        """Return the longest known duration of a view in the memtable, else 0."""

    def is_flushed(self, website: int, sequence: int) -> bool:
        """Return whether a view or event is in a segment, so that records cannot change it."""

    def correction(self, website: int, kind: Corrected, sequence: int) -> int:
        """Return the value of a correction of a flushed hit, 0 for none."""


def wal_records(txn: Txn, databases: Databases, website: int) -> Iterator[Record]:
    """Read a website's records as they are stored, in order of their sequence numbers."""
    return entries(txn, databases.wal, _WEBSITE.pack(website))


@define(eq=False)
class WriteAheadLog:
    """The records of all websites, and the numbering of hits. Used by the writer thread alone."""

    databases: Databases
    dictionary: Dictionary
    beacons: BeaconIndex
    unmatched: UnmatchedBeacons
    named: NamedVisitors
    visits: LiveVisits = field(factory=LiveVisits)
    seen: SeenVisitors = field(factory=SeenVisitors)
    logs_corrections: bool = False
    """Whether there are also rows of what corrects flushed hits, for who follows the log."""
    _sequence: int = 0
    """The last number handed out. Grows even when a transaction fails: none is used twice."""

    def load(self, txn: Txn) -> None:
        """Read the last sequence number."""
        self._sequence = read_number(txn, self.databases.meta, SEQUENCE)

    def skip_to(self, sequence: int) -> None:
        """Continue the numbering after a number that was found in use."""
        self._sequence = max(self._sequence, sequence)

    def write(
        self,
        txn: Txn,
        hits: Sequence[Hit],
        has_website: Callable[[int], bool],
        stored: StoredHits,
    ) -> "WriteBatch":
        """Write hits in order. Call the batch's `remember` once they are committed."""
        now_ms = hits[0].time_ms
        encoder = self.dictionary.encoder(txn, now_ms)
        visits, seen = self.visits.batch(), self.seen.batch(now_ms)
        batch = WriteBatch(self, txn, has_website, stored, encoder, visits, seen)
        for hit in hits:
            batch.add(hit)
        batch.write_records()
        self.write_sequence(txn)
        return batch

    @property
    def last_sequence(self) -> int:
        """The last number handed out."""
        return self._sequence

    def next_sequence(self) -> int:
        """Return a number that no record of this store has or will have."""
        self._sequence += 1
        return self._sequence

    def next_follows(self, view: int) -> bool:
        """Return whether the next number is the one after a view's."""
        return self._sequence == view

    def reserve(self, count: int) -> int:
        """Return the first of so many consecutive numbers."""
        first = self._sequence + 1
        self._sequence += count
        return first

    def write_sequence(self, txn: Txn) -> None:
        """Store the last number handed out."""
        write_number(txn, self.databases.meta, SEQUENCE, self._sequence)


@define(eq=False)
class WriteBatch:
    """The hits of one transaction: the outcome of each, and their rows by website."""

    _wal: WriteAheadLog
    _txn: Txn
    _has_website: Callable[[int], bool]
    _stored: StoredHits
    _encoder: Encoder
    _visits: VisitBatch
    _seen: SeenBatch
    outcomes: list[Outcome] = field(factory=list)
    rows: dict[int, dict[RecordKind, Rows]] = field(factory=dict)
    """By website and kind, once the records are written."""
    corrections: dict[int, dict[tuple[Corrected, int], int]] = field(factory=dict)
    """Corrections of flushed hits: by website, the value by kind and sequence number."""
    unbound: list[int] = field(factory=list)
    """The numbers of the events whose page load may still arrive."""
    _locations: dict[bytes, ViewLocation] = field(factory=dict)
    """What this batch adds to the beacon index, by digest."""
    _durations: dict[int, int] = field(factory=dict)
    """The durations that this batch has of unflushed views, by sequence number."""
    _added: dict[tuple[int, RecordKind], list[Row]] = field(factory=dict)
    _indexed: list[bytes] = field(factory=list)
    """The digests of the earlier beacons that this transaction puts into the index on disk."""

    def add(self, hit: Hit) -> None:
        """Write one hit."""
        self._encoder.network = b"" if isinstance(hit, Unload) else hit.network
        match hit:
            case View():
                outcome = self._add_view(hit)
            case Unload():
                outcome = self._add_unload(hit)
            case Event():
                outcome = self._add_event(hit)
        self.outcomes.append(outcome)

    def write_records(self) -> None:
        """Write the records of the rows that were added, and earlier beacons if there are many."""
        for (website, kind), rows in self._added.items():
            for key, value in records_of(website, kind, rows):
                self._txn.put(key, value, db=self._wal.databases.wal, overwrite=False)
            self.rows.setdefault(website, {})[kind] = rows_of(kind, rows)
        self._indexed = self._wal.beacons.write_surplus(self._txn, len(self._locations))

    def remember(self) -> None:
        """Take what was committed into memory, for the batches that follow."""
        self._encoder.committed()
        self._visits.remember()
        self._seen.remember()
        beacons = self._wal.beacons
        beacons.mark_indexed(self._indexed)
        beacons.remember_logged(self._locations)
        self._wal.unmatched.drop(self._locations)

    def _add_view(self, view: View) -> Outcome:
        if not self._has_website(view.website):
            return Outcome.NO_WEBSITE
        digest = self._wal.beacons.digest(view.beacon)
        if self._find(digest, view.time_ms) is not None:
            return Outcome.REPEATED
        sequence = self._wal.next_sequence()
        # Before the flags are known, since `first_today` would end a visit at midnight.
        visit = self._visits.assign(view, sequence)
        if view.visitor is not None:
            view = self._with_visitor_flags(view, view.visitor)
        happened_ms = view.happened_ms or view.time_ms
        codes = self._encoder.view_codes(view.website, _texts_of(view))
        location = ViewLocation(view.website, view.time_ms, sequence, visit)
        numbers = [getattr(view, name) for name in _NUMBER_NAMES]
        numbers.append(_visit_offset(sequence, visit))
        arrival = (sequence, happened_ms, digest, view.time_ms)
        self._put(
            view.website,
            RecordKind.VIEW,
            view_row(arrival, _flags_of(view), numbers, codes),
        )
        self._locations[digest] = location
        if view.properties:
            self._put_event(view.website, happened_ms, sequence, view.properties)
        self._match_earlier(digest, location)
        return Outcome.STORED

    def _with_visitor_flags(self, view: View, visitor: Visitor) -> View:
        """Return a view with its flags: the visitor's first of the day, and of the page."""
        is_first = (
            partial(self._wal.named.is_first, self._txn, visitor, view.website)
            if visitor.is_stored
            else partial(self._seen.is_first, visitor, view.website)
        )
        return evolve(view, first_today=is_first(), first_of_page=is_first(view.path))

    def _match_earlier(self, digest: bytes, location: ViewLocation) -> None:
        """Write what arrived before the view that it belongs to."""
        unmatched = self._wal.unmatched
        if digest not in unmatched:
            return
        website, time_ms, view = location.website, location.time_ms, location.sequence
        duration_ms = unmatched.duration_ms(digest, website, time_ms)
        if duration_ms:
            self._put_duration(location, time_ms, duration_ms)
        for event in unmatched.events(digest, website, time_ms):
            is_flushed = self._stored.is_flushed(website, event)
            if is_flushed and not self._correct(website, Corrected.VIEW, event, view):
                continue
            row = (self._wal.next_sequence(), time_ms, event, view)
            self._put(website, RecordKind.BINDING, row)

    def _add_unload(self, unload: Unload) -> Outcome:
        digest = self._wal.beacons.digest(unload.beacon)
        location = self._find(digest, unload.time_ms)
        if location is None:
            self._wal.unmatched.add_unload(
                digest, unload.time_ms, unload.duration_ms, unload.websites
            )
            return Outcome.NO_VIEW
        if unload.websites is not None and location.website not in unload.websites:
            return Outcome.NO_VIEW
        self._visits.keep_alive(location.visit, unload.time_ms, unload.time_ms)
        self._put_duration(location, unload.time_ms, unload.duration_ms)
        return Outcome.STORED

    def _put_duration(self, location: ViewLocation, time_ms: int, duration_ms: int) -> None:
        """Write the duration of a view if it is the longest so far."""
        website, view = location.website, location.sequence
        if self._stored.is_flushed(website, view):
            if not self._correct(website, Corrected.DURATION, view, duration_ms):
                return
        else:
            longest_ms = self._durations.get(view) or self._stored.duration_ms(website, view)
            if duration_ms <= longest_ms:
                return
            self._durations[view] = duration_ms
        row = (self._wal.next_sequence(), time_ms, view, duration_ms)
        self._put(website, RecordKind.DURATION, row)

    def _add_event(self, event: Event) -> Outcome:
        if not self._has_website(event.website):
            return Outcome.NO_WEBSITE
        location = digest = None
        if event.beacon:
            digest = self._wal.beacons.digest(event.beacon)
            location = self._find(digest, event.time_ms)
        if location is None and event.needs_view:
            return Outcome.NO_VIEW
        if event.passed_id and self._is_received(event):
            return Outcome.REPEATED
        view = 0
        if location is not None and location.website == event.website:
            view = location.sequence
        happened_ms = event.happened_ms or event.time_ms
        if location is not None and view:
            self._visits.keep_alive(location.visit, happened_ms, event.time_ms)
        if view and self._wal.next_follows(view):
            # The number after a view's is that of the properties with which it loads.
            self._wal.next_sequence()
        number = self._put_event(event.website, happened_ms, view, event.properties)
        if digest is not None and location is None:
            self._wal.unmatched.add_event(digest, event.time_ms, event.website, number)
            self.unbound.append(number)
        return Outcome.STORED

    def _is_received(self, event: Event) -> bool:
        databases = self._wal.databases
        return is_received(self._txn, databases, event.passed_id, event.time_ms)

    def _put_event(self, website: int, time_ms: int, view: int, properties: Properties) -> int:
        """Write an event; return its number, which is that of its first row."""
        event = 0
        for code in self._encoder.property_codes(website, properties):
            sequence = self._wal.next_sequence()
            event = event or sequence
            self._put(website, RecordKind.PROPERTY, (sequence, time_ms, event, view, code))
        return event

    def _find(self, digest: bytes, now_ms: int) -> ViewLocation | None:
        location = self._locations.get(digest)
        if location is None:
            location = self._wal.beacons.find(self._txn, digest, now_ms)
            if location is not None and not self._has_website(location.website):
                return None
        return location

    def _correct(self, website: int, kind: Corrected, sequence: int, value: int) -> bool:
        """Write a correction of a flushed hit, if its value is the greatest so far.

        Returns whether it was written and is to be logged, too.
        """
        corrections = self.corrections.setdefault(website, {})
        stored = self._stored.correction(website, kind, sequence)
        if value > corrections.get((kind, sequence), stored):
            corrections[kind, sequence] = value
            correction = Correction(kind, sequence, value)
            database = self._wal.databases.corrections
            write_correction(self._txn, database, website, correction)
            return self._wal.logs_corrections
        return False

    def _put(self, website: int, kind: RecordKind, row: Row) -> None:
        self._added.setdefault((website, kind), []).append(row)


def _visit_offset(sequence: int, visit: int) -> int:
    """Return the VISIT_OFFSET of a view: 0 without a visit, or where that began too long ago."""
    offset = sequence - visit + 1
    return offset if visit and offset <= MAX_VISIT_OFFSET else 0
