"""Read a whole store and report what is wrong with it. Writes nothing.

Besides verifying checksums, it encodes each segment again from its views, so that its counters are
compared with a recount. It compares the counters of a rollup with each other, and each text with
its code, and looks for data that belongs to no website or segment.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
from attrs import define, field
from msgspec.structs import replace
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.storage.accounts import ACCOUNT
from medamad.storage.compaction.purge import PER_WEBSITE
from medamad.storage.dictionary.decode import PropertyNameNumbers
from medamad.storage.dictionary.keys import code_key, decode_entry
from medamad.storage.dictionary.limits import read_count_mark
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Database, Environment, Txn
from medamad.storage.environment.meta import (
    FORMAT,
    INDEXED_BEACONS,
    PROGRAM,
    STORE_ID,
    TRUSTED_TIME,
    entries,
    is_verified,
    read_number,
)
from medamad.storage.errors import Damaged, DamagedSegment
from medamad.storage.followed_logs import damaged_positions
from medamad.storage.grants import GRANT_KINDS
from medamad.storage.import_batches import LAST_BATCH, read_batches
from medamad.storage.segments.build import (
    EncodedSegment,
    content_of,
    encode_merged,
    encode_segment,
    merged_header,
)
from medamad.storage.segments.corrections import read_corrections
from medamad.storage.segments.counters import decode_counters
from medamad.storage.segments.format import (
    Segment,
    SegmentHeader,
    decode_column,
    decode_header,
    header_key,
    number_of,
)
from medamad.storage.segments.parts import (
    Part,
)
from medamad.storage.segments.read import OpenMergedSegment, OpenSegment, open_part
from medamad.storage.segments.rollup import disagreements, encode_rollup, open_rollup
from medamad.storage.wal.beacons import SECRET
from medamad.storage.wal.records import RecordKind, describe_record, read_watermark, sound_rows
from medamad.storage.website_values import WEBSITE_KINDS
from medamad.storage.websites import read_websites, tombstones

_NUMBER: Final = struct.Struct(">I")
_SEGMENT_KEY_SIZE: Final = 16
_NEVER_COUNTED: Final = 1 << 62
_ANY_DTYPE: Final = np.uint64

_Names = Mapping[Dimension, NDArray[np.bool_]]
"""Which codes of each dimension have a text."""


@define(eq=False)
class StoreCheck:
    """A check of a store in one transaction. The figures are of what has been read so far."""

    _environment: Environment
    _txn: Txn
    websites: int = 0
    views: int = 0
    segments: int = 0
    _days: set[tuple[int, int]] = field(factory=set)
    _greatest_sequence: int = 0
    _greatest_segment: int = 0
    _greatest_batch: int = 0
    _names_of: PropertyNameNumbers = field(init=False)

    @property
    def days(self) -> int:
        """How many days have a rollup, counted for each website."""
        return len(self._days)

    def findings(self) -> Iterator[str]:
        """Return what is wrong with the store, one finding at a time."""
        numbers: list[int] = []
        for found in read_websites(self._txn, self._environment.databases):
            if isinstance(found, str):
                yield found
            else:
                numbers.append(found.number)
                self.websites += 1
        yield from self._account()
        for number in numbers:
            yield from self._website(number)
        yield from self._left_over({_NUMBER.pack(number) for number in numbers})
        yield from self._numbering(max(numbers, default=0))

    # The whole store

    def _account(self) -> Iterator[str]:
        for kind in (ACCOUNT, *GRANT_KINDS, *WEBSITE_KINDS):
            yield from kind.findings(self._txn, self._environment.databases)
        yield from damaged_positions(self._txn, self._environment.databases)
        for strange in self._environment.unknown_names(self._txn):
            yield f"meta: {strange!r}: unknown name"
        for database in ("logins", "beacons", "visitors", "robots"):
            for key, value in self._items(database):
                if not is_verified(key, value):
                    yield f"{database} {key.hex()[:16]}: its checksum does not match"
        for name in (SECRET, STORE_ID, PROGRAM, TRUSTED_TIME, INDEXED_BEACONS):
            stored = self._txn.get(name, db=self._environment.databases.meta)
            if stored is not None and not is_verified(name, stored):
                yield f"{name.decode()}: its checksum does not match"

    def _numbering(self, greatest_website: int) -> Iterator[str]:
        for name, least in (
            (b"sequence", self._greatest_sequence),
            (b"last-segment", self._greatest_segment),
            (LAST_BATCH, self._greatest_batch),
            (b"last-website", greatest_website),
        ):
            stored = self._txn.get(name, db=self._environment.databases.meta)
            if stored is not None and not is_verified(name, stored):
                yield f"{name.decode()}: its checksum does not match"
                continue
            number = read_number(self._txn, self._environment.databases.meta, name)
            if number < least:
                yield f"{name.decode()}: {number}, and {least} is in use"

    def _left_over(self, registered: set[bytes]) -> Iterator[str]:
        """Return what belongs to no website, unless it is being purged."""
        meta = self._environment.databases.meta
        deleted = {_NUMBER.pack(number) for number in tombstones(self._txn, meta)}
        for key in deleted & registered:
            yield f"website {_NUMBER.unpack(key)[0]}: it is registered and has a tombstone"
        for name in PER_WEBSITE:
            count = 0
            for key, _ in self._items(name):
                count += key[:4] not in registered and key[:4] not in deleted
            if count:
                yield f"{name}: {count} entries belong to no website"

    # One website

    def _website(self, number: int) -> Iterator[str]:
        databases = self._environment.databases
        self._names_of = PropertyNameNumbers(WriterAccess(self._txn), databases, number)
        names: dict[Dimension, NDArray[np.bool_]] = {}
        for dimension in Dimension:
            texts: list[str | None] = []
            yield from self._names(number, dimension, texts)
            names[dimension] = np.array([text is not None for text in texts], np.bool_)
        yield from self._codes(number)
        headers: dict[int, SegmentHeader] = {}
        for key, value in self._items("headers", _NUMBER.pack(number)):
            if key == header_key(number, 0):
                continue
            try:
                headers[number_of(key)] = decode_header(key, value)
            except (Damaged, struct.error) as error:
                yield f"website {number}, header {key[4:].hex()}: {error}"
        yield from self._batches(number, headers)
        sound: dict[int, Part] = {}
        for each in sorted(headers, key=lambda each: _level(headers, each)):
            found = list(self._segment(number, each, headers, sound, names))
            yield from found
        yield from self._leftovers(number, headers)
        yield from self._wal(number, names)
        for correction in read_corrections(self._txn, databases.corrections, number):
            if isinstance(correction, str):
                yield f"website {number}, {correction}: its checksum does not match"

    def _batches(self, website: int, headers: Mapping[int, SegmentHeader]) -> Iterator[str]:
        known = set()
        for found in read_batches(self._txn, self._environment.databases, website):
            if isinstance(found, str):
                yield found
            else:
                known.add(found.number)
        self._greatest_batch = max(self._greatest_batch, *known, 0)
        for number, header in headers.items():
            if header.import_batch and header.import_batch not in known:
                place = f"website {website}, segment {number}"
                yield f"{place}: its import batch {header.import_batch} is missing"

    def _names(self, website: int, dimension: Dimension, texts: list[str | None]) -> Iterator[str]:
        """Compare each text with its code, and append it to `texts`; None where a code has none."""
        codes = self._environment.databases.codes
        try:
            read_count_mark(self._txn, self._environment.databases, (website, dimension))
        except Damaged as error:
            yield f"website {website}, count mark of {dimension.attribute}: {error}"
        for key, value in self._items("dictionary", struct.pack(">IB", website, dimension)):
            place = f"website {website}, {dimension.attribute} {key[5:].hex()}"
            try:
                code, text = decode_entry(key, value)
            except Damaged as error:
                yield f"{place}: {error}"
                continue
            if self._txn.get(code_key((website, dimension), text), db=codes) != key[5:]:
                yield f"{place}: its text is not what was written"
                continue
            texts.extend([None] * (code - len(texts)))
            texts.append(text)

    def _codes(self, website: int) -> Iterator[str]:
        names = self._environment.databases.dictionary
        for key, value in self._items("codes", _NUMBER.pack(website)):
            name = self._txn.get(key[:5] + value, db=names)
            if name is None:
                yield f"website {website}, code {key.hex()}: it has no text"

    def _wal(self, website: int, names: _Names) -> Iterator[str]:
        rows, damaged = sound_rows(self._items("wal", _NUMBER.pack(website)))
        for key in damaged:
            yield f"{describe_record(key)}: a damaged record"
        try:
            watermark = read_watermark(self._txn, self._environment, website)
        except Damaged as error:
            yield f"website {website}, watermark: {error}"
            watermark = 0
        for found in rows.values():
            self._greatest_sequence = max(
                self._greatest_sequence, watermark, int(found["sequence"][-1])
            )
        views = rows.get(RecordKind.VIEW)
        if views is not None:
            self.views += int(np.count_nonzero(views["sequence"] > watermark))
            for place, dimension in enumerate(VIEW_DIMENSIONS):
                codes = views["codes"][:, place]
                yield from _unnamed(f"website {website}, write-ahead log", dimension, codes, names)
        properties = rows.get(RecordKind.PROPERTY)
        if properties is not None:
            codes = properties["property"]
            yield from _unnamed(
                f"website {website}, write-ahead log", Dimension.PROPERTY, codes, names
            )

    # One segment

    def _segment(
        self,
        website: int,
        number: int,
        headers: Mapping[int, SegmentHeader],
        sound: dict[int, Part],
        names: _Names,
    ) -> Iterator[str]:
        """Compare a segment with itself encoded again; if they agree, add it to `sound`."""
        header = headers[number]
        place = f"website {website}, segment {number}"
        self._greatest_segment = max(self._greatest_segment, number)
        self._greatest_sequence = max(self._greatest_sequence, header.last_sequence)
        stored: dict[tuple[bool, int], bytes] = {}
        segment = Segment(website, number, header)
        unsound = list(self._values(segment, stored))
        yield from unsound
        if header.day is not None:
            if not unsound:
                yield from self._day(segment, stored, names)
            return
        missing = [member for member in header.members if member not in headers]
        for member in missing:
            yield f"{place}: its member {member} is missing"
        members = [sound[member] for member in header.members if member in sound]
        if unsound or len(members) < len(header.members):
            return
        part = open_part(
            Segment(website, number, header, tuple(_segment_of(part) for part in members)),
            None,
            WriterAccess(self._txn),
            self._environment.databases,
        )
        found = list(self._remade(part, members, stored, names))
        yield from found
        if not found:
            sound[number] = part
        if not header.members:
            self.segments += 1
            self.views += header.views

    def _values(self, segment: Segment, stored: dict[tuple[bool, int], bytes]) -> Iterator[str]:
        """Verify the checksums of the values of a segment, and put them into `stored`."""
        place = f"website {segment.website}, segment {segment.number}"
        for is_counters, name in ((False, "segments"), (True, "counters")):
            for key, value in self._items(name, segment.key):
                kind = key[-1]
                try:
                    if is_counters:
                        decode_counters(key, memoryview(value), check=True)
                    else:
                        decode_column(key, memoryview(value), _ANY_DTYPE, check=True)
                except Damaged as error:
                    yield f"{place}, {'counter' if is_counters else 'column'} {kind}: {error}"
                stored[is_counters, kind] = value

    def _day(
        self, segment: Segment, stored: Mapping[tuple[bool, int], bytes], names: _Names
    ) -> Iterator[str]:
        """Return where the counters of a rollup do not agree with each other."""
        place = f"website {segment.website}, segment {segment.number}"
        try:
            rollup = open_rollup(
                segment, WriterAccess(self._txn), self._environment.databases
            ).loaded()
            again = encode_rollup(rollup, segment.key)
            puts = {(is_counters, kind): value for is_counters, kind, value in again.puts}
            found = list(disagreements(rollup))
        except DamagedSegment as error:
            yield str(error)
            return
        except (ValueError, IndexError, OverflowError) as error:
            yield f"{place}: it cannot be read: {error}"
            return
        if again.header != segment.header:
            yield f"{place}, header: it does not agree with its counters"
        for is_counters, kind in sorted(stored.keys() - puts.keys()):
            what = "counter" if is_counters else "column"
            yield f"{place}, {what} {kind}: no header names it"
        for finding in found:
            yield f"{place}: {finding}"
        by_visits = {} if rollup.visits is None else rollup.visits.by_dimension
        for dimension, counters in chain(rollup.by_dimension.items(), by_visits.items()):
            yield from _unnamed(place, dimension, counters.codes, names)
        yield from _unnamed(place, Dimension.PROPERTY, rollup.events.codes, names)
        if segment.header.day is not None:
            self._days.add((segment.website, segment.header.day.number))

    def _remade(
        self,
        part: Part,
        members: Sequence[Part],
        stored: Mapping[tuple[bool, int], bytes],
        names: _Names,
    ) -> Iterator[str]:
        segment = _segment_of(part)
        place = f"website {segment.website}, segment {segment.number}"
        try:
            again = self._again(part, members, segment)
            puts = {(is_counters, kind): value for is_counters, kind, value in again.puts}
        except DamagedSegment as error:
            yield str(error)
            return
        except (ValueError, IndexError, OverflowError) as error:
            yield f"{place}: it cannot be recounted: {error}"
            return
        header, kinds = segment.header, {*puts, *stored}
        if self._environment.format < FORMAT:
            # What else it has is of its format alone, or a migration has not yet named it.
            header, kinds = replace(header, had_columns_of_visits=False), {*puts}
        if again.header != header:
            yield f"{place}, header: it does not agree with its views"
        for is_counters, kind in sorted(kinds):
            if puts.get((is_counters, kind)) != stored.get((is_counters, kind)):
                what = "counter" if is_counters else "column"
                yield f"{place}, {what} {kind}: it does not agree with its views"
        if isinstance(part, OpenSegment):
            for dimension in VIEW_DIMENSIONS:
                yield from _unnamed(place, dimension, part.codes(dimension), names)
            for events in (part.own, part.loose):
                yield from _unnamed(place, Dimension.PROPERTY, events.property, names)

    def _again(self, part: Part, members: Sequence[Part], segment: Segment) -> EncodedSegment:
        if isinstance(part, OpenSegment):
            counted_from = 0 if segment.header.has_counters else _NEVER_COUNTED
            content = content_of([part])
            return encode_segment(
                content,
                segment.key,
                self._names_of,
                counted_from=counted_from,
                with_visits=segment.header.has_visits,
            )
        opened = [
            member for member in members if isinstance(member, OpenSegment | OpenMergedSegment)
        ]
        header = merged_header(
            [(member.segment.number, member.segment.header) for member in opened]
        )
        return EncodedSegment(header, encode_merged(opened, header, segment.key))

    def _leftovers(self, website: int, headers: Mapping[int, SegmentHeader]) -> Iterator[str]:
        """Return what is left of segments that have no header, unless they are being purged."""
        known = {Segment(website, number, header).key for number, header in headers.items()}
        known |= {key for key, _ in self._items("purge_queue", _NUMBER.pack(website))}
        for name in ("segments", "counters"):
            prefixes = {
                key[:_SEGMENT_KEY_SIZE] for key, _ in self._items(name, _NUMBER.pack(website))
            }
            for prefix in sorted(prefixes - known):
                yield f"website {website}, {name} {prefix.hex()}: they belong to no segment"

    def _items(self, name: str, prefix: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        database: Database | None = getattr(self._environment.databases, name)
        return iter(()) if database is None else entries(self._txn, database, prefix)


def _unnamed(place: str, dimension: Dimension, codes: NDArray[Any], names: _Names) -> Iterator[str]:
    """Return whether codes are in use that have no text, as a finding."""
    known = names[dimension]
    used = np.unique(codes)
    count = int(np.count_nonzero(used >= len(known)))
    count += int(np.count_nonzero(~known[used[used < len(known)]]))
    if count:
        yield f"{place}: {count} codes of {dimension.attribute} have no sound text"


def _segment_of(part: Part) -> Segment:
    assert isinstance(part, OpenSegment | OpenMergedSegment)  # noqa: S101 - no chunk is a member
    return part.segment


def _level(headers: Mapping[int, SegmentHeader], number: int) -> int:
    members: Iterable[int] = headers[number].members
    return max((1 + _level(headers, each) for each in members if each in headers), default=0)
