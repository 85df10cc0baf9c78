"""Write hits to the write-ahead log, one transaction for each batch."""

import struct
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from operator import attrgetter
from typing import Final, Protocol

from attrs import define, evolve, field

from medamad.domain.dimensions import VIEW_DIMENSIONS
from medamad.domain.hits import Event, Hit, Leaving, Properties, View, Visitor
from medamad.storage.dictionary.encode import Coding, Dictionary
from medamad.storage.environment.environment import Databases, Txn
from medamad.storage.environment.last_numbers import read_number, write_number
from medamad.storage.segments.corrections import Corrected, Correction, write_correction
from medamad.storage.wal.dedup import BeaconIndex, UnmatchedBeacons, ViewLocation
from medamad.storage.wal.records import (
    Record,
    binding_record,
    journal_key,
    leaving_record,
    property_record,
    view_record,
)

SEQUENCE: Final = b"sequence"
_MAX_NUMBER: Final = 65_535
_WEBSITE: Final = struct.Struct(">I")
_texts_of = attrgetter(*(dimension.attribute for dimension in VIEW_DIMENSIONS))


class Outcome(Enum):
    """What became of a hit."""

    STORED = "stored"
    REPEATED = "repeated"
    """A load whose beacon was stored before."""
    NO_VIEW = "no view"
    """A leaving whose view is not known, kept for 60 seconds in case the view comes; or is of
    another website than the page that was left."""
    NO_WEBSITE = "no website"
    """The website was deleted while the hit waited."""


class Known(Protocol):
    """What is known of the hits that were stored before."""

    def duration_ms(self, website: int, view: int) -> int:
        """Return how long a view that is not flushed was seen, as far as is known, else 0."""

    def is_flushed(self, website: int, sequence: int) -> bool:
        """Return whether a segment has the view or event with that number: no record can change it."""

    def correction(self, website: int, kind: Corrected, sequence: int) -> int:
        """Return what is known to be corrected of a flushed hit, 0 for nothing."""


def journal_records(txn: Txn, databases: Databases, website: int) -> Iterator[Record]:
    """Read a website's records in order of time, as they are stored."""
    end = _WEBSITE.pack(website + 1)
    with txn.cursor(db=databases.wal) as cursor:
        if cursor.set_range(_WEBSITE.pack(website)):
            for record in cursor:
                if record[0] >= end:
                    return
                yield record


@define(eq=False)
class Journal:
    """Used by the writer thread alone."""

    databases: Databases
    names: Dictionary
    beacons: BeaconIndex
    early: UnmatchedBeacons
    _sequence: int = 0
    """The last number given out. Grows even when a transaction fails, so none is used twice."""

    def load(self, txn: Txn) -> None:
        """Read where the numbering goes on."""
        self._sequence = read_number(txn, self.databases.meta, SEQUENCE)
        self.beacons.load(txn)

    def has_used(self, sequence: int) -> None:
        """Go on with the numbering beyond a number that was found in use."""
        self._sequence = max(self._sequence, sequence)

    def write(
        self,
        txn: Txn,
        hits: Sequence[Hit],
        has_website: Callable[[int], bool],
        known: Known,
    ) -> "WriteBatch":
        """Write hits in order. The batch's `committed` is to be called once they are on disk."""
        coding = self.names.coding(txn, hits[0].time_ms)
        batch = WriteBatch(self, txn, has_website, known, coding)
        for hit in hits:
            batch.add(hit)
        self.keep_sequence(txn)
        return batch

    def next_sequence(self) -> int:
        """Return a number that no record of this store has or will have."""
        return self.reserve(1)

    def reserve(self, numbers: int) -> int:
        """Return the first of so many numbers in a row."""
        first = self._sequence + 1
        self._sequence += numbers
        return first

    def keep_sequence(self, txn: Txn) -> None:
        """Store where the numbering goes on."""
        write_number(txn, self.databases.meta, SEQUENCE, self._sequence)


@define(eq=False)
class WriteBatch:
    """The hits of one transaction: what became of each, and their records by website."""

    _journal: Journal
    _txn: Txn
    _has_website: Callable[[int], bool]
    _known: Known
    _coding: Coding
    outcomes: list[Outcome] = field(factory=list)
    records: dict[int, list[Record]] = field(factory=dict)
    corrections: dict[int, dict[tuple[Corrected, int], int]] = field(factory=dict)
    """What the hits tell of flushed ones: value by kind and sequence number, by website."""
    _fresh: dict[bytes, ViewLocation] = field(factory=dict)
    _durations: dict[int, int] = field(factory=dict)
    """How long views that are not flushed were seen, as this batch tells, by sequence number."""

    def add(self, hit: Hit) -> None:
        """Write one hit."""
        match hit:
            case View():
                outcome = self._view(hit)
            case Leaving():
                outcome = self._leaving(hit)
            case Event():
                outcome = self._event(hit)
        self.outcomes.append(outcome)

    def committed(self) -> None:
        """Let the next batch know what this one stored."""
        self._coding.adopt()
        for digest, place in self._fresh.items():
            self._journal.beacons.remember(digest, place)
            self._journal.early.forget(digest)

    def _view(self, view: View) -> Outcome:
        if not self._has_website(view.website):
            return Outcome.NO_WEBSITE
        digest = self._journal.beacons.digest(view.beacon)
        if self._find(digest, view.time_ms) is not None:
            return Outcome.REPEATED
        if view.visitor is not None:
            view = self._of_visitor(view, view.visitor)
        happened_ms = view.happened_ms or view.time_ms
        code = self._coding.code
        codes = [
            code(view.website, dimension, text)
            for dimension, text in zip(VIEW_DIMENSIONS, _texts_of(view), strict=True)
        ]
        sequence = self._journal.next_sequence()
        place = ViewLocation(view.website, view.time_ms, sequence)
        self._put(
            view.website,
            view_record(
                journal_key(view.website, happened_ms, sequence),
                first_today=view.first_today,
                first_of_page=view.first_of_page,
                number_today=view.number_today,
                width_px=view.width_px,
                codes=codes,
            ),
        )
        self._journal.beacons.write(self._txn, digest, place)
        self._fresh[digest] = place
        if view.properties:
            self._properties(view.website, happened_ms, sequence, view.properties)
        self._catch_up(digest, place)
        return Outcome.STORED

    def _of_visitor(self, view: View, visitor: Visitor) -> View:
        """Return whether a view is the first of its visitor that day, and of its page."""
        number = self._count(view, visitor)
        return evolve(
            view,
            first_today=number == 1,
            first_of_page=self._count(view, visitor, view.path) == 1,
            number_today=min(number, _MAX_NUMBER),
        )

    def _count(self, view: View, visitor: Visitor, *page: str) -> int:
        """Count a view for its visitor, as far as the last 24 hours tell.

        The count stands among the beacons, under a hash that no beacon has: none contains NUL.
        """
        beacons = self._journal.beacons
        name = "\0".join((str(view.website), str(visitor.day), visitor.name, *page))
        digest = beacons.digest(name)
        before = self._find(digest, view.time_ms)
        count = 1 if before is None else before.sequence + 1
        place = ViewLocation(view.website, view.time_ms, count)
        beacons.write(self._txn, digest, place)
        self._fresh[digest] = place
        return count

    def _catch_up(self, digest: bytes, place: ViewLocation) -> None:
        """Write what came before the view."""
        early = self._journal.early
        duration_ms = early.duration_ms(digest, place.website, place.time_ms)
        if duration_ms:
            self._last(place, place.time_ms, duration_ms)
        for event in early.events(digest, place.website, place.time_ms):
            if self._known.is_flushed(place.website, event):
                self._correct(place.website, Corrected.VIEW, event, place.sequence)
                continue
            key = journal_key(place.website, place.time_ms, self._journal.next_sequence())
            self._put(place.website, binding_record(key, event, place.sequence))

    def _leaving(self, leaving: Leaving) -> Outcome:
        digest = self._journal.beacons.digest(leaving.beacon)
        place = self._find(digest, leaving.time_ms)
        if place is None:
            self._journal.early.leave(
                digest, leaving.time_ms, leaving.duration_ms, leaving.websites
            )
            return Outcome.NO_VIEW
        if leaving.websites is not None and place.website not in leaving.websites:
            return Outcome.NO_VIEW
        self._last(place, leaving.time_ms, leaving.duration_ms)
        return Outcome.STORED

    def _last(self, place: ViewLocation, time_ms: int, duration_ms: int) -> None:
        """Write how long a view was seen, if that is longer than is known."""
        website, view = place.website, place.sequence
        if self._known.is_flushed(website, view):
            self._correct(website, Corrected.DURATION, view, duration_ms)
            return
        known_ms = self._durations.get(view) or self._known.duration_ms(website, view)
        if duration_ms <= known_ms:
            return
        self._durations[view] = duration_ms
        key = journal_key(website, time_ms, self._journal.next_sequence())
        self._put(website, leaving_record(key, view, duration_ms))

    def _event(self, event: Event) -> Outcome:
        if not self._has_website(event.website):
            return Outcome.NO_WEBSITE
        place = digest = None
        if event.beacon:
            digest = self._journal.beacons.digest(event.beacon)
            place = self._find(digest, event.time_ms)
        view = place.sequence if place is not None and place.website == event.website else 0
        happened_ms = event.happened_ms or event.time_ms
        number = self._properties(event.website, happened_ms, view, event.properties)
        if digest is not None and place is None:
            self._journal.early.happen(digest, event.time_ms, event.website, number)
        return Outcome.STORED

    def _properties(self, website: int, time_ms: int, view: int, properties: Properties) -> int:
        """Write an event; returns its number, which is that of its first record."""
        event = 0
        for code in self._coding.property_codes(website, properties):
            sequence = self._journal.next_sequence()
            event = event or sequence
            key = journal_key(website, time_ms, sequence)
            self._put(website, property_record(key, event, view, code))
        return event

    def _find(self, digest: bytes, now_ms: int) -> ViewLocation | None:
        place = self._fresh.get(digest)
        if place is None:
            place = self._journal.beacons.find(self._txn, digest, now_ms)
            if place is not None and not self._has_website(place.website):
                return None
        return place

    def _correct(self, website: int, kind: Corrected, sequence: int, value: int) -> None:
        """Write what is known of a flushed hit; the greatest value counts."""
        known = self.corrections.setdefault(website, {})
        before = known.get((kind, sequence), self._known.correction(website, kind, sequence))
        if value > before:
            known[kind, sequence] = value
            correction = Correction(kind, sequence, value)
            database = self._journal.databases.corrections
            write_correction(self._txn, database, website, correction)

    def _put(self, website: int, record: Record) -> None:
        self._txn.put(*record, db=self._journal.databases.wal, overwrite=False)
        self.records.setdefault(website, []).append(record)
