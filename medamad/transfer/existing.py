"""What a website already has of the hits to import, and what an earlier file already had.

Where a file does not name its hits they are told by what they say: of those that say the same as
many count as the file has that has most of them. So logs of several servers all come in. Time on
page is said later than the view is: the longest counts, in whatever order the files are.
"""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension
from medamad.storage.import_batches import ImportBatch, Origins
from medamad.storage.segments.format import SegmentHeader
from medamad.storage.segments.parts import (
    ViewColumns,
)
from medamad.storage.segments.snapshot import Snapshot
from medamad.transfer.rows import MAX_MS, EventRow, Row, ViewRow, said_by

_DATE_MS: Final = 86_400_000
_TOLD: Final = (Dimension.PATH, Dimension.REFERRER, Dimension.BROWSER, Dimension.OS)
"""What tells views of the same time apart."""

Said: TypeAlias = tuple[str, ...]
said_of: Final = attrgetter(*(dimension.attribute for dimension in _TOLD))
"""Gives what tells a view from others of its time."""


@frozen(eq=False)
class Known:
    """Which hits a website has: ascending numbers of this store, of its views and its events.

    `counted` are times, first and last, in Unix milliseconds, of which all has been counted: a hit
    of another program is known by nothing but its time. Of the last of them that are in `ends` the
    views have been counted that stand there: a log may be cut in the midst of a second.
    `summed` are the days of which sums remain,
    by the dates of UTC that they reach into: of their hits it is only known between which numbers
    and times they were.
    """

    origins: Origins
    views: NDArray[np.uint64]
    events: NDArray[np.uint64]
    counted: Sequence[tuple[int, int]] = ()
    ends: Mapping[int, Counter[Said]] = field(factory=dict)
    summed: Mapping[int, Sequence[SegmentHeader]] = field(factory=dict)

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        origins: Origins,
        batches: Sequence[ImportBatch],
        ranges: Sequence[tuple[str, int, int]],
        *,
        overlapping: bool = False,
    ) -> "Known":
        """Find what a website has of the stores that hits are to be imported from.

        `batches` are those that are whole.
        With `overlapping`, hits are taken for unknown that are known by their time alone.
        """
        stores = {store for store, _, _ in ranges}
        spans = _spans(snapshot, batches)
        views, events = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
        if origins.store in stores or any(span.store in stores for span in origins.spans):
            for part in snapshot.leaves():
                found = snapshot.read(
                    part,
                    lambda part: (
                        part.sequence.copy(),
                        np.concatenate([part.own.event, part.loose.event]).astype(np.uint64),
                    ),
                )
                if found is not None:
                    views.append(found[0])
                    events.append(found[1])
            events += [loose.event.astype(np.uint64) for loose in snapshot.events]
        return cls(
            origins,
            np.unique(np.concatenate(views)),
            np.unique(np.concatenate(events)),
            () if overlapping else _counted(spans),
            {} if overlapping else _ends(snapshot, spans),
            {}
            if overlapping
            else _by_date([segment.header for segment in snapshot.rollup_segments]),
        )

    def is_counted(self, row: ViewRow | EventRow) -> bool:
        """Return whether a hit is of a time that was counted."""
        if not row.store:
            cut = row.time_ms if isinstance(row, ViewRow) and row.time_ms in self.ends else None
            return any(first <= row.time_ms <= last != cut for first, last in self.counted)
        days = self.summed.get(row.time_ms // _DATE_MS, ())
        return bool(days) and any(
            _has(day, row.time_ms, place, is_own=is_own)
            for place, is_own in self._places(row.store, row.number)
            for day in days
        )

    def number_of(self, store: str, number: int, *, is_view: bool) -> int:
        """Return the number that a hit of a store has here; 0 if it is not there."""
        known = self.views if is_view else self.events
        if not len(known) or not store:
            return 0
        for place, _ in self._places(store, number):
            at = int(np.searchsorted(known, np.uint64(place)))
            if at < len(known) and int(known[at]) == place:
                return place
        return 0

    def _places(self, store: str, number: int) -> Iterator[tuple[int, bool]]:
        """Return the numbers that a hit may have here, and whether it was counted here then."""
        for span in self.origins.spans:
            if span.store == store and (place := span.place(number)):
                yield place, False
        if store == self.origins.store:
            yield number, True


def _spans(snapshot: Snapshot, batches: Sequence[ImportBatch]) -> dict[int, tuple[int, int]]:
    """Return the first and the last time of each batch, 0 for what was counted here.

    Of what was imported they are known for good, also of days of which there are only sums.
    """
    spans = snapshot.batch_spans()
    for batch in batches:
        if batch.number in spans:
            first, last = spans[batch.number]
            spans[batch.number] = max(first, batch.first_ms), min(last, batch.last_ms)
    return spans


def _counted(spans: Mapping[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the times of earlier imports, and all since the first hit that was counted here."""
    return [(first, last if batch else MAX_MS) for batch, (first, last) in spans.items()]


def _ends(snapshot: Snapshot, spans: Mapping[int, tuple[int, int]]) -> dict[int, Counter[Said]]:
    """Return the time at which an earlier import ends, and what its views of that time say."""
    ends = {batch: last for batch, (_, last) in spans.items() if batch}
    times = set(ends.values())

    def at_end(part: ViewColumns) -> tuple[int, list[NDArray[np.unsignedinteger[Any]]]]:
        end = ends.get(part.batch, -1)
        chosen = part.time_ms == end
        return end, [part.codes(dimension)[chosen].copy() for dimension in _TOLD]

    found: dict[int, Counter[Said]] = {}
    for part in snapshot.leaves():
        seen = snapshot.read(part, at_end) if part.time_bounds[1] in times else None
        if seen is not None and len(seen[1][0]):
            texts = [
                map(snapshot.texts(dimension).__getitem__, codes.tolist())
                for dimension, codes in zip(_TOLD, seen[1], strict=True)
            ]
            found.setdefault(seen[0], Counter()).update(zip(*texts, strict=True))
    return found


def _by_date(summed: Sequence[SegmentHeader]) -> dict[int, list[SegmentHeader]]:
    found: dict[int, list[SegmentHeader]] = {}
    for head in summed:
        assert head.day is not None  # noqa: S101 - it is the sums of a day
        first_ms, last_ms = head.day.span
        for date in range(first_ms // _DATE_MS, last_ms // _DATE_MS + 1):
            found.setdefault(date, []).append(head)
    return found


def _has(head: SegmentHeader, time_ms: int, place: int, *, is_own: bool) -> bool:
    """Return whether a hit lies between those of a day."""
    assert head.day is not None  # noqa: S101 - it is the sums of a day
    first_ms, last_ms = head.day.span
    is_of_it = first_ms <= time_ms <= last_ms and head.first <= place <= head.last
    return is_of_it and is_own == (head.batch == 0)


_NOTHING: Final = np.zeros(0, np.int64)


def _int64s() -> "array[int]":
    return array("q")


def _uint32s() -> "array[int]":
    return array("I")


@define(eq=False)
class Repeats:
    """Hits that are noted while files are read, and told of when they are read again.

    In memory alone: 24 bytes for each, of what it says a hash that no other process could make.
    """

    hits: int = 0
    """How many come again, when all is decided."""
    is_decided: bool = False
    _said: "array[int]" = field(factory=_int64s)
    _files: "array[int]" = field(factory=_uint32s)
    _durations_ms: "array[int]" = field(factory=_uint32s)
    _numbers: "array[int]" = field(factory=_int64s)
    _is_again: bytes = b""
    """Of the hits, by their numbers, as far as any come again."""
    _instead: tuple[NDArray[np.int64], NDArray[np.int64]] = (_NOTHING, _NOTHING)
    """The numbers of those that come again, ascending, and of those that count."""

    def is_again(self, file: int, row: Row) -> bool:
        """Return whether a hit comes again, of which it is a row of the file of that place.

        Never, as long as not all are noted. The rows of an event follow each other: the first
        stands for it.
        """
        if self.is_decided:
            return row.number < len(self._is_again) and bool(self._is_again[row.number])
        if not self._numbers or self._numbers[-1] != row.number:
            self._said.append(hash((row.identity, *said_by(row))))
            self._files.append(file)
            self._durations_ms.append(row.duration_ms if isinstance(row, ViewRow) else 0)
            self._numbers.append(row.number)
        return False

    def decide(self) -> None:
        """Decide which come again, when all are noted."""
        said = np.frombuffer(self._said, np.int64)
        order = np.argsort(said, kind="stable")
        begins = _begins(said[order])
        order = order[~(begins & np.append(begins[1:], [True])[: len(begins)])]
        files = np.frombuffer(self._files, np.uint32)
        shortness = ~np.frombuffer(self._durations_ms, np.uint32)
        order = order[np.lexsort((shortness[order], files[order], said[order]))]
        said, files, shortness = said[order], files[order], shortness[order]
        numbers = np.frombuffer(self._numbers, np.int64)[order]
        places = np.arange(len(order))
        # How many of the same file are before it that say the same.
        before = places - _last(places, _begins(said) | _begins(files))
        alike = np.lexsort((shortness, before, said))
        counts = _begins(said[alike]) | _begins(before[alike])
        again, first = numbers[alike][~counts], numbers[alike[_last(places, counts)]][~counts]
        self.hits = len(again)
        if self.hits:
            is_again = np.zeros(int(again.max()) + 1, np.uint8)
            is_again[again] = 1
            self._is_again = is_again.tobytes()
            ascending = np.argsort(again)
            self._instead = again[ascending], first[ascending]
        self._said, self._numbers = _int64s(), _int64s()
        self._files, self._durations_ms = _uint32s(), _uint32s()
        self.is_decided = True

    def counting(self, number: int) -> int:
        """Return the number of a hit, or where it comes again, of the one that counts."""
        again, first = self._instead
        at = int(np.searchsorted(again, number))
        return int(first[at]) if at < len(again) and int(again[at]) == number else number


def _begins(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are others than those before."""
    return np.append([True], values[1:] != values[:-1])[: len(values)]


def _last(places: NDArray[np.int64], chosen: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return of each place the last that is chosen, of it and those before."""
    return np.maximum.accumulate(np.where(chosen, places, 0))
