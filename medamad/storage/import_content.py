"""The content of an import as columns: views with dictionary codes, and rollups of whole days."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Final

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, split_property
from medamad.domain.errors import NotFound
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.environment.environment import Txn
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.segments.build import Content
from medamad.storage.segments.counters import SUMS, VIEWS, Counters, merge
from medamad.storage.segments.format import PAGE_VISITOR, VISITOR, timed_flags
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.parts import (
    EventRows,
    EventSums,
)
from medamad.storage.segments.rollup import NO_EVENT_SUMS, DaySums

Numbers = NDArray[np.integer[Any]]


@frozen(eq=False)
class Bulk:
    """Views in order of time, as columns of length n, and the properties of events, of length m.

    Texts come as codes of the caller's own: `codes[dimension]` are indices into
    `texts[dimension]`. A dimension that is left out is "" everywhere. The texts of PROPERTY are
    those of `property_text`.
    """

    time_ms: NDArray[np.int64]
    """Unix milliseconds, ascending."""
    first_today: NDArray[np.bool_]
    first_of_page: NDArray[np.bool_]
    duration_ms: NDArray[np.uint32]
    """0 where it is not known."""
    number_today: NDArray[np.uint16]
    width_px: NDArray[np.uint16]
    codes: Mapping[Dimension, Numbers]
    texts: Mapping[Dimension, Sequence[str]]
    event: NDArray[np.int64]
    """Ascending numbers of the events; all rows of one event have the same."""
    event_time_ms: NDArray[np.int64]
    event_view: NDArray[np.int64]
    """The place of the event's view, -1 for none."""
    property: Numbers
    """Index into `texts[Dimension.PROPERTY]`."""

    def __len__(self) -> int:
        return len(self.time_ms)

    def time_bounds(self) -> tuple[int, int]:
        """Return the earliest and the latest time of its views and events; there has to be one."""
        times_ms = np.concatenate((self.time_ms, self.event_time_ms))
        return int(times_ms.min()), int(times_ms.max())

    def cut(self, first: int, most: int) -> list[int]:
        """Return the lengths of pieces: the first as given, the others of `most` views, or less."""
        ends = [*range(min(first, len(self)), len(self), most), len(self)]
        return np.diff(ends, prepend=0).tolist() or [0]

    def sequence_numbers(self) -> int:
        """Return how many sequence numbers its views and events need."""
        return len(self) + len(np.unique(self.event))

    def used_texts(self) -> Iterator[tuple[Dimension, list[str]]]:
        """Return the texts of each dimension, those of dimensions left out too."""
        for dimension in VIEW_DIMENSIONS:
            yield dimension, list(self.texts[dimension]) if dimension in self.codes else [""]
        yield Dimension.PROPERTY, list(self.texts.get(Dimension.PROPERTY, ()))


def contents_of(
    bulk: Bulk, first: int, codes: Mapping[Dimension, Numbers], sizes: Sequence[int]
) -> Iterator[Content]:
    """Cut into contents of so many views each.

    `first` is the first of the sequence numbers that the views get, and the events after them;
    `codes[dimension]` gives the store's code of each of the bulk's.
    """
    size = len(bulk)
    sequence = first + np.arange(size, dtype=np.uint64)
    flags = bulk.first_today * VISITOR | bulk.first_of_page * PAGE_VISITOR
    flags = timed_flags(flags, bulk.duration_ms)
    event = np.cumsum(np.diff(bulk.event, prepend=bulk.event[:1]) > 0)
    events = EventRows(
        event=(first + size + event).astype(np.uint64),
        time_ms=bulk.event_time_ms,
        view=np.where(bulk.event_view >= 0, first + bulk.event_view, 0).astype(np.uint64),
        property=codes[Dimension.PROPERTY].take(bulk.property).astype(np.uint32),
    )
    # An event goes where its view is; one without, to the first.
    ends = np.cumsum(sizes)
    content_of_row = np.searchsorted(ends, np.maximum(bulk.event_view, 0), side="right")
    content_of_row = np.minimum(content_of_row, len(sizes) - 1)
    for number, (end, length) in enumerate(zip(ends.tolist(), sizes, strict=True)):
        span = slice(end - length, end)
        here = np.flatnonzero(content_of_row == number)
        yield Content(
            time_ms=bulk.time_ms[span],
            sequence=sequence[span],
            flags=flags[span],
            duration_ms=bulk.duration_ms[span],
            number_today=bulk.number_today[span],
            width_px=bulk.width_px[span],
            codes={
                dimension: (
                    codes[dimension].take(bulk.codes[dimension][span])
                    if dimension in bulk.codes
                    else np.full(len(sequence[span]), codes[dimension][0])
                ).astype(np.uint32)
                for dimension in VIEW_DIMENSIONS
            },
            events=EventRows(
                events.event[here], events.time_ms[here], events.view[here], events.property[here]
            ),
        )


_NOTHING = Counters(np.zeros(0, np.uint32), (np.zeros(0, np.uint32),) * SUMS)


@frozen(eq=False)
class DayCounts:
    """What is known of a day by the texts of one dimension; several of one add up.

    `span` is the first and the last millisecond of the day. Without a dimension it is of all
    views, and the one text is "". `sums` are in the order VIEWS to DURATION_MS, shape
    (SUMS, number of texts); for Dimension.PROPERTY the first of them are the events that carry it.
    """

    day: int
    span: tuple[int, int]
    dimension: Dimension | None
    texts: Sequence[str]
    sums: NDArray[np.int64]


def texts_by_dimension(counts: Iterable[DayCounts]) -> dict[Dimension, list[str]]:
    """Return the texts of each dimension once, in the order in which they come."""
    found: dict[Dimension, dict[str, None]] = {}
    for each in counts:
        if each.dimension is not None:
            found.setdefault(each.dimension, {}).update(dict.fromkeys(each.texts))
    return {dimension: list(texts) for dimension, texts in found.items()}


@frozen(eq=False)
class CodedDay:
    """All that is known of a day, and the codes of its texts."""

    counts: Sequence[DayCounts]
    codes: Mapping[Dimension, Mapping[str, int]]
    batch: int

    @property
    def span(self) -> tuple[int, int]:
        """Its first and last millisecond."""
        return self.counts[0].span

    def sums(self) -> DaySums:
        """Add it up. It takes a while: for the writer's thread."""
        found: dict[Dimension | None, list[Counters]] = {}
        for each in self.counts:
            coded = np.array([self._code(each.dimension, text) for text in each.texts], np.uint32)
            found.setdefault(each.dimension, []).append(Counters(coded, tuple(each.sums)))
        # Merging puts the codes in order too.
        sums = {dimension: merge(parts) for dimension, parts in found.items()}
        return DaySums(
            day=self.counts[0].day,
            span=self.span,
            total=sums.get(None, _NOTHING),
            by_dimension={
                dimension: sums[dimension] for dimension in VIEW_DIMENSIONS if dimension in sums
            },
            durations=None,
            events=self._events(sums.get(Dimension.PROPERTY)),
            batch=self.batch,
        )

    def _code(self, dimension: Dimension | None, text: str) -> int:
        return 0 if dimension is None else self.codes[dimension][text]

    def _events(self, counters: Counters | None) -> EventSums:
        """Count by name too. An event carries one property."""
        if counters is None:
            return NO_EVENT_SUMS
        text_of = {
            self._code(each.dimension, text): text
            for each in self.counts
            if each.dimension is Dimension.PROPERTY
            for text in each.texts
        }
        first: dict[str, int] = {}
        events_of: dict[int, int] = {}
        events = counters.sums[VIEWS]
        for code, number in zip(counters.codes.tolist(), events.tolist(), strict=True):
            named = first.setdefault(split_property(text_of[code])[0], code)
            events_of[named] = events_of.get(named, 0) + number
        return EventSums(
            codes=counters.codes,
            events=events,
            names=np.array(list(events_of), np.uint32),
            events_of_names=np.array(list(events_of.values()), np.int64),
            total=int(events.sum()),
            is_plain=True,
        )


def days_of(
    counts: Iterable[DayCounts], codes: Mapping[Dimension, Mapping[str, int]], batch: int
) -> list[CodedDay]:
    """Part what is known by days, which follow each other."""
    return [
        CodedDay(list(of_day), codes, batch) for _, of_day in groupby(counts, lambda each: each.day)
    ]


Codes = dict[Dimension, NDArray[np.integer[Any]]]

_STEP_NAMES: Final = 1_000


@frozen(eq=False)
class TextCoding:
    """Works in short steps of the writer. Nothing may tidy names away meanwhile."""

    _submit: Submit
    _names: Dictionary
    has_website: Callable[[int], bool]
    _check_room: Callable[[Txn], None]

    async def codes(
        self, partition: Partition, texts: Iterable[tuple[Dimension, Sequence[str]]], time_ms: int
    ) -> Codes:
        """Return the store's codes of the texts of some dimensions, in their order.

        Raises NotFound when the website is deleted, Unavailable where hits would be refused.
        """
        codes: Codes = {}
        for dimension, known in texts:
            pieces = [
                await self._submit(
                    partial(
                        self._code_some, partition, dimension, known[at : at + _STEP_NAMES], time_ms
                    )
                )
                for at in range(0, len(known), _STEP_NAMES)
            ]
            codes[dimension] = np.array([code for piece in pieces for code in piece], np.uint32)
        return codes

    def _code_some(
        self,
        partition: Partition,
        dimension: Dimension,
        texts: Sequence[str],
        time_ms: int,
        txn: Transaction,
    ) -> list[int]:
        if partition.is_deleted or not self.has_website(partition.website):
            raise NotFound("hostname: the website has been deleted")
        self._check_room(txn.lmdb)
        coding = self._names.coding(txn.lmdb, time_ms)
        txn.after_commit(coding.adopt)
        return [coding.any_code(partition.website, dimension, text) for text in texts]
