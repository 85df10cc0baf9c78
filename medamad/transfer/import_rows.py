"""The second pass of an import of views and events: the hits that the website does not have yet.

The rows of the files are gathered into chunks, which the store accepts one at a time.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import (
    MAX_VISIT_OFFSET,
    VIEW_DIMENSIONS,
    Dimension,
    ViewFlag,
    ViewNumber,
    property_text,
)
from medamad.domain.errors import BadRequest
from medamad.domain.hits import NUMBERS_OF_HITS
from medamad.domain.zones import DAY_MS
from medamad.storage.import_batches import ImportBatch, Origins, Span
from medamad.storage.imports import ImportedHits
from medamad.storage.segments.build import Content
from medamad.storage.segments.format import (
    SegmentHeader,
    timed_flags,
)
from medamad.storage.segments.parts import EventRows, ViewColumns, enclosing_bounds
from medamad.storage.segments.snapshot import Snapshot
from medamad.transfer.import_context import ReadContext, Verdict
from medamad.transfer.import_survey import ImportFile, Survey, number_rows
from medamad.transfer.rows import MAX_MS, EventRow, HitRow, RejectedRow, ViewRow, texts_of

MAX_CHUNK_ROWS: Final = 8_192
MAX_CHUNK_TEXT: Final = 1 << 19
"""Characters of all texts of a chunk."""
COMPARED: Final = (Dimension.PATH, Dimension.REFERRER, Dimension.BROWSER, Dimension.OS)
"""The dimensions that distinguish views of the same time."""

ComparedTexts: TypeAlias = tuple[str, ...]
compared_texts: Final = attrgetter(*(dimension.attribute for dimension in COMPARED))
"""Returns the texts that distinguish a view from others of the same time."""


NumbersOfStores: TypeAlias = Mapping[str, tuple[NDArray[np.int64], NDArray[np.int64]]]
"""The numbers that the views and the events of other stores have there, by store."""


@frozen(eq=False)
class HitsElsewhere:
    """The hits of a website that are in a cluster, where most are in no store any more.

    `views` and `events` are numbers in this store, in any order; `spans` the times of the first and
    the last hit of each import batch, in Unix milliseconds, and as 0 of what was counted here.
    """

    views: NDArray[np.int64]
    events: NDArray[np.int64]
    spans: Mapping[int, tuple[int, int]]
    last_views: Mapping[int, Counter[ComparedTexts]]
    """Of the imports in `spans`, the views at the last time of each, by this time."""
    others: NumbersOfStores = field(factory=dict)
    """What the other collectors have stored."""


NOTHING_ELSEWHERE: Final = HitsElsewhere(np.zeros(0, np.int64), np.zeros(0, np.int64), {}, {})


@frozen(eq=False)
class ExistingHits:
    """The hits that a website already has, as far as it takes to recognize them.

    `views` and `events` are ascending numbers in this store, which `HitIndex.find_existing` finds.
    `others` are the numbers in other stores, of hits that are not in this one.

    Hits of another program have no number to recognize them by. They count as existing if they fall
    within `covered`: pairs of first and last times, in Unix milliseconds. An access log may break
    off in the middle of a second, so at the last time of an earlier import only the views in
    `last_views` count as existing.

    `rollups` are the days of which only a rollup is left, by each UTC date that they overlap. Of
    their hits, only the ranges of numbers and times are known.
    """

    origins: Origins
    views: NDArray[np.int64]
    events: NDArray[np.int64]
    covered: Sequence[tuple[int, int]] = ()
    last_views: Mapping[int, Counter[ComparedTexts]] = field(factory=dict)
    rollups: Mapping[int, Sequence[SegmentHeader]] = field(factory=dict)
    others: NumbersOfStores = field(factory=dict)

    @classmethod
    def of(
        cls,
        snapshot: Snapshot,
        origins: Origins,
        batches: Sequence[ImportBatch],
        ranges: Sequence[tuple[str, int, int]],
        *,
        overlapping: bool = False,
        elsewhere: HitsElsewhere = NOTHING_ELSEWHERE,
    ) -> "ExistingHits":
        """Return the existing hits of the stores in `ranges`. `batches` are the finished imports.

        With `overlapping`, hits that only their time could identify are not considered existing.
        """
        stores = {store for store, _, _ in ranges}
        views, events = [elsewhere.views], [elsewhere.events]
        if origins.store in stores or any(span.store in stores for span in origins.spans):
            for part in snapshot.leaves():
                numbers = snapshot.read_leaf(
                    part,
                    lambda part: (
                        part.sequence.astype(np.int64),
                        np.concatenate([part.own.event, part.loose.event]).astype(np.int64),
                    ),
                )
                if numbers is not None:
                    views.append(numbers[0])
                    events.append(numbers[1])
            events += [loose.event.astype(np.int64) for loose in snapshot.events]
        time_spans = {} if overlapping else _time_spans(snapshot, batches, elsewhere.spans)
        last_views = _last_views(
            snapshot, {batch: time_spans[batch] for batch in time_spans.keys() - elsewhere.spans}
        )
        for time_ms, texts in ({} if overlapping else elsewhere.last_views).items():
            last_views.setdefault(time_ms, Counter()).update(texts)
        rollups = [] if overlapping else [rollup.header for rollup in snapshot.rollup_segments]
        return cls(
            origins,
            np.unique(np.concatenate(views)),
            np.unique(np.concatenate(events)),
            _covered(time_spans),
            last_views,
            _by_utc_day(rollups),
            elsewhere.others,
        )

    def covers(self, row: HitRow) -> bool:
        """Return whether a hit falls into a time, or a rollup, that includes it already.

        Of the last views of an earlier import, each stands for one row of the files.
        """
        if not row.store:
            last_views = self.last_views.get(row.time_ms) if isinstance(row, ViewRow) else None
            end = None if last_views is None else row.time_ms
            if any(first <= row.time_ms <= last != end for first, last in self.covered):
                return True
            if last_views is None:
                return False
            texts = compared_texts(row)
            last_views[texts] -= 1
            return last_views[texts] >= 0
        rollups = self.rollups.get(row.time_ms // DAY_MS, ())
        return bool(rollups) and any(
            _rollup_includes(rollup, row.time_ms, number, is_own=is_own)
            for number, is_own in self.origins.places(row.store, row.number)
            for rollup in rollups
        )

    def is_own_view(self, store: str, number: int) -> bool:
        """Return whether a view of a store was counted here and is still there."""
        return store == self.origins.store and _is_in(self.views, number)


def _is_in(ascending: NDArray[np.int64], number: int) -> bool:
    at = int(np.searchsorted(ascending, number))
    return at < len(ascending) and int(ascending[at]) == number


def _time_spans(
    snapshot: Snapshot,
    batches: Sequence[ImportBatch],
    elsewhere: Mapping[int, tuple[int, int]],
) -> dict[int, tuple[int, int]]:
    """Return the first and last time of each import batch, and as 0 of what was counted here.

    A batch records its own times, which hold even where only rollups are left.
    """
    spans = snapshot.batch_spans()
    for number, span in elsewhere.items():
        spans[number] = enclosing_bounds([spans.get(number, span), span])
    for batch in batches:
        if batch.number in spans:
            first, last = spans[batch.number]
            spans[batch.number] = max(first, batch.first_ms), min(last, batch.last_ms)
    return spans


def _covered(time_spans: Mapping[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the times of earlier imports, and all time since the first hit counted here."""
    return [(first, last if batch else MAX_MS) for batch, (first, last) in time_spans.items()]


def _last_views(
    snapshot: Snapshot, time_spans: Mapping[int, tuple[int, int]]
) -> dict[int, Counter[ComparedTexts]]:
    """Return the views at the last time of each earlier import."""
    last_ms = {batch: last for batch, (_, last) in time_spans.items() if batch}
    times = set(last_ms.values())

    def read_last(part: ViewColumns) -> tuple[int, list[NDArray[np.unsignedinteger[Any]]]]:
        time_ms = last_ms.get(part.import_batch, -1)
        chosen = part.time_ms == time_ms
        return time_ms, [part.codes(dimension)[chosen].copy() for dimension in COMPARED]

    views: dict[int, Counter[ComparedTexts]] = {}
    for part in snapshot.leaves():
        found = snapshot.read_leaf(part, read_last) if part.time_bounds[1] in times else None
        if found is not None and len(found[1][0]):
            texts = [
                map(snapshot.texts(dimension).__getitem__, codes.tolist())
                for dimension, codes in zip(COMPARED, found[1], strict=True)
            ]
            views.setdefault(found[0], Counter()).update(zip(*texts, strict=True))
    return views


def _by_utc_day(rollups: Sequence[SegmentHeader]) -> dict[int, list[SegmentHeader]]:
    by_day: dict[int, list[SegmentHeader]] = {}
    for header in rollups:
        assert header.day is not None  # noqa: S101 - it is the header of a rollup
        first_ms, last_ms = header.day.span
        for day in range(first_ms // DAY_MS, last_ms // DAY_MS + 1):
            by_day.setdefault(day, []).append(header)
    return by_day


def _rollup_includes(header: SegmentHeader, time_ms: int, number: int, *, is_own: bool) -> bool:
    """Return whether a hit is within the ranges of a rollup."""
    assert header.day is not None  # noqa: S101 - it is the header of a rollup
    first_ms, last_ms = header.day.span
    is_in_range = (
        first_ms <= time_ms <= last_ms and header.first_sequence <= number <= header.last_sequence
    )
    return is_in_range and is_own == (header.import_batch == 0)


@define(eq=False)
class RowGatherer:
    """Gathers new hits into chunks, and counts those that are left out."""

    _existing: ExistingHits
    _survey: Survey
    _spans: Sequence[Span]
    """Which numbers in this store the hits of each store get."""
    _before_ms: int = 0
    """Retention will remove the hits from before."""
    views: int = 0
    visitors: int = 0
    events: int = 0
    first_ms: int = MAX_MS
    last_ms: int = -1
    """The times of the first and the last hit that was taken."""
    past_views: int = 0
    past_events: int = 0
    """How many hits retention will remove."""
    left_out: int = 0
    """Views and events that the website has already, or that the files repeat."""
    covered: int = 0
    """How many of them were left out only because of their time."""
    rows: int = 0
    """How many rows were read."""
    _view_rows: list[ViewRow] = field(factory=list)
    _view_numbers: list[int] = field(factory=list)
    _visits: list[int] = field(factory=list)
    """For each view, the number that the first view of its visit has in this store; 0 for none."""
    _event_rows: list[tuple[int, int, int, str]] = field(factory=list)
    """Number, time, number of the view, property."""
    _characters: int = 0
    _event_ms: int = 0
    _takes_event: bool = False

    def __attrs_post_init__(self) -> None:
        existing, hits = self._existing, self._survey.index.hits
        hits.find_existing(existing.origins, {ViewRow: existing.views, EventRow: existing.events})
        for store, (views, events) in existing.others.items():
            hits.find_in_other(store, {ViewRow: views, EventRow: events})
        self.left_out = hits.left_out

    def gather(self, files: Sequence[ImportFile]) -> Iterator[ImportedHits | None]:
        """Read the files; yield a chunk, or None if there is none yet, after every step.

        Raises BadRequest if a file has changed since the survey.
        """
        context, hit = ReadContext(self._survey.index), 0
        for place, (file, row) in enumerate(number_rows(files, context), 1):
            self.rows = context.rows
            if isinstance(row, RejectedRow):
                continue
            starts_hit, hit = context.hits != hit, context.hits
            if starts_hit and self._is_full():
                yield self._take_chunk()
            if self._survey.index.hits.verdict(hit) == Verdict.EXISTS:
                self.left_out += starts_hit
            elif isinstance(row, ViewRow):
                self._add_view(row, has_visit=file.target.rules.has_visits)
            else:
                self._add_event(row, starts_hit=starts_hit)
            if place % MAX_CHUNK_ROWS == 0:
                yield None
        self.rows = context.rows
        yield self._take_chunk() if self._view_rows or self._event_rows else None

    def _is_full(self) -> bool:
        rows = max(len(self._view_rows), len(self._event_rows))
        return rows >= MAX_CHUNK_ROWS or self._characters >= MAX_CHUNK_TEXT

    def _take_chunk(self) -> ImportedHits:
        chunk = build_chunk(self._view_numbers, self._visits, self._view_rows, self._event_rows)
        self._view_rows, self._view_numbers, self._visits, self._event_rows = [], [], [], []
        self._characters = 0
        return chunk

    def _add_view(self, row: ViewRow, *, has_visit: bool) -> None:
        if self._leave_out(row):
            return
        self._include_time(row.time_ms)
        self.views += 1
        self.past_views += row.time_ms < self._before_ms
        self.visitors += row.first_today
        self._characters += sum(map(len, texts_of(row)))
        self._view_rows.append(row)
        self._view_numbers.append(self._local_number(row.store, row.number))
        self._visits.append(self._viewed(row.store, row.visit) if has_visit else 0)

    def _add_event(self, row: EventRow, *, starts_hit: bool) -> None:
        if starts_hit:
            self._event_ms = row.time_ms
            self._takes_event = not self._leave_out(row)
            if self._takes_event:
                self._include_time(row.time_ms)
                self.events += 1
                self.past_events += row.time_ms < self._before_ms
        if not self._takes_event:
            return
        view = self._viewed(row.store, row.view)
        text = property_text(row.name, row.value)
        self._characters += len(text)
        number = self._local_number(row.store, row.number)
        self._event_rows.append((number, self._event_ms, view, text))

    def _viewed(self, store: str, view: int) -> int:
        """Return the number in this store of a view that a row refers to; 0 for none."""
        if not view or self._existing.is_own_view(store, view):
            return view
        return self._local_number(store, view)

    def _leave_out(self, row: HitRow) -> bool:
        """Return whether the time of a hit was counted already, and count the hit if so."""
        is_covered = self._existing.covers(row)
        self.covered += is_covered
        self.left_out += is_covered
        return is_covered

    def _include_time(self, time_ms: int) -> None:
        self.first_ms, self.last_ms = min(self.first_ms, time_ms), max(self.last_ms, time_ms)

    def _local_number(self, store: str, number: int) -> int:
        """Return the number that a hit gets in this store. Raises BadRequest if it has none."""
        for span in self._spans:
            if span.store == store and (place := span.place(number)):
                return place
        raise BadRequest("a file changed while it was being read; import it again")


def build_chunk(
    numbers: Sequence[int],
    visits: Sequence[int],
    views: Sequence[ViewRow],
    events: Sequence[tuple[int, int, int, str]],
) -> ImportedHits:
    """Return views, with their numbers in this store, and properties of events as a chunk.

    `visits` has for each view the number of the first view of its visit, 0 for none. An event is a
    tuple of its number, its time, the number of its view, and the property.
    """
    order = np.argsort(np.array(numbers, np.uint64), kind="stable")
    rows = [views[place] for place in order.tolist()]
    codes, texts = _encode([texts_of(row) for row in rows])
    duration_ms = np.array([row.duration_ms for row in rows], np.uint32)
    flags = np.zeros(len(rows), np.uint8)
    for flag in ViewFlag:
        flags |= np.uint8(flag) * np.array([getattr(row, flag.attribute) for row in rows], np.uint8)
    properties: dict[str, int] = {}
    columns: Any = list(zip(*events, strict=True)) or [[], [], [], []]
    property_codes = [properties.setdefault(text, len(properties)) for text in columns[3]]
    by_event = np.argsort(np.array(columns[0], np.uint64), kind="stable")
    content = Content(
        time_ms=np.array([row.time_ms for row in rows], np.int64),
        sequence=np.array(numbers, np.uint64)[order],
        flags=timed_flags(flags, duration_ms),
        duration_ms=duration_ms,
        numbers={
            ViewNumber.VISIT_OFFSET: _visit_offsets(numbers, visits)[order],
            **{
                number: np.array(
                    [getattr(row, number.attribute) for row in rows], f"u{number.bytes}"
                )
                for number in NUMBERS_OF_HITS
            },
        },
        codes=codes,
        events=EventRows(
            event=np.array(columns[0], np.uint64)[by_event],
            time_ms=np.array(columns[1], np.int64)[by_event],
            view=np.array(columns[2], np.uint64)[by_event],
            property=np.array(property_codes, np.uint32)[by_event],
        ),
    )
    return ImportedHits(content, {**texts, Dimension.PROPERTY: list(properties)})


def _visit_offsets(numbers: Sequence[int], visits: Sequence[int]) -> NDArray[np.uint32]:
    """Return the VISIT_OFFSET of views, 0 where that of a visit is later or too far away."""
    offsets = np.array(numbers, np.int64) - np.array(visits, np.int64) + 1
    is_known = (np.array(visits) > 0) & (offsets > 0) & (offsets <= MAX_VISIT_OFFSET)
    return np.where(is_known, offsets, 0).astype(np.uint32)


def _encode(
    rows: Sequence[Sequence[str]],
) -> tuple[dict[Dimension, NDArray[np.uint32]], dict[Dimension, list[str]]]:
    """Return the codes of each dimension's texts, and the texts by code."""
    codes, texts = {}, {}
    for place, dimension in enumerate(VIEW_DIMENSIONS):
        numbers: dict[str, int] = {}
        column = [numbers.setdefault(row[place], len(numbers)) for row in rows]
        codes[dimension] = np.array(column, np.uint32)
        texts[dimension] = list(numbers)
    return codes, texts
