"""Past views and events as columns, imported at once, and what is to be there then."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray
from support.storage.contents import Row, in_order
from support.storage.hits import DAY_MS, NOW_MS

from medamad.domain.dimensions import (
    VIEW_DIMENSIONS,
    Dimension,
    Since,
    ViewNumber,
    WidthClass,
    property_text,
    split_property,
)
from medamad.domain.websites import Website
from medamad.storage.import_batches import ImportBatch
from medamad.storage.import_content import TextEncoder
from medamad.storage.imports import ImportedHits
from medamad.storage.segments.build import Content
from medamad.storage.segments.format import PAGE_VISITOR, VISITOR, timed_flags
from medamad.storage.segments.parts import EventRows
from medamad.storage.store import Store

Numbers = NDArray[np.integer[Any]]
_digests = count()


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
    width_class: NDArray[np.uint8]
    visit_offset: NDArray[np.uint32]
    """1 plus how many views earlier the visit of each view began; 0 for none."""
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

    def cut(self, most: int) -> list[int]:
        """Return the lengths of pieces of `most` views, the last of which may be shorter."""
        ends = [*range(most, len(self), most), len(self)]
        return np.diff(ends, prepend=0).tolist()

    def sequence_numbers(self) -> int:
        """Return how many sequence numbers its views and events need."""
        return len(self) + len(np.unique(self.event))

    def used_texts(self) -> Iterator[tuple[Dimension, list[str]]]:
        """Return the texts of each dimension, those of dimensions left out too."""
        for dimension in VIEW_DIMENSIONS:
            yield dimension, list(self.texts[dimension]) if dimension in self.codes else [""]
        yield Dimension.PROPERTY, list(self.texts.get(Dimension.PROPERTY, ()))


def contents_of(bulk: Bulk, first: int, sizes: Sequence[int]) -> Iterator[Content]:
    """Cut into contents of so many views each, with the bulk's own codes.

    `first` is the first of the sequence numbers that the views get, and the events after them.
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
        property=bulk.property.astype(np.uint32),
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
            numbers={number: getattr(bulk, number.attribute)[span] for number in ViewNumber},
            codes={
                dimension: (
                    bulk.codes[dimension][span].astype(np.uint32)
                    if dimension in bulk.codes
                    else np.zeros(len(sequence[span]), np.uint32)
                )
                for dimension in VIEW_DIMENSIONS
            },
            events=EventRows(
                events.event[here], events.time_ms[here], events.view[here], events.property[here]
            ),
        )


async def begin(store: Store, website: Website, numbers: int) -> ImportBatch:
    """Begin an import of so many views and events at most."""
    batches = store.imports.batches(website)
    return await store.imports.begin(
        website,
        source="bulk",
        digest=f"bulk {next(_digests)}",
        ranges=[("", 1, max(numbers, 1))],
        newest=max((batch.number for batch in batches), default=0),
        now=NOW_MS // 1000,
    )


async def add(store: Store, batch: ImportBatch, bulk: Bulk, first: int) -> int:
    """Import a bulk, one segment after the other; return the next free sequence number."""
    most = store.compactor.planner.sizes.chunk_views
    for content in contents_of(bulk, first, bulk.cut(most)):
        await store.imports.load(batch, [_narrowed(bulk, content)])
    return first + bulk.sequence_numbers()


async def load(store: Store, website: Website, bulk: Bulk) -> None:
    """Import a bulk as a batch of its own."""
    batch = await begin(store, website, bulk.sequence_numbers())
    await add(store, batch, bulk, batch.spans[0].at)
    await store.imports.finish(batch)


async def code_texts(
    store: Store, website: Website, texts: Mapping[Dimension, Sequence[str]], time_ms: int
) -> None:
    """Give codes to texts that nothing uses, as an import that fails does."""
    coding = TextEncoder(
        store.writer.submit, store.dictionary, store.websites.has_number, store.free_space.check
    )
    partition = store.partitions.get_or_create(website.number)
    await coding.codes(partition, texts.items(), time_ms)


LEFT_OUT = (Dimension.UTM_TERM, Dimension.UTM_CONTENT, Dimension.BROWSER_VERSION)
VALUES = ("", "one", "two", "straße", "four")


def made(seed: int, views_made: int, events: int, first_ms: int = NOW_MS - 9 * DAY_MS) -> Bulk:
    """Make up a bulk: one path for each view, and events of some of them."""
    rng = np.random.default_rng(seed)
    texts: dict[Dimension, list[str]] = {
        dimension: list(VALUES) for dimension in VIEW_DIMENSIONS if dimension not in LEFT_OUT
    }
    texts[Dimension.PATH] = [f"/bulk-{seed}/{number}" for number in range(views_made)]
    texts[Dimension.SINCE] = ["", *Since][: len(VALUES)]
    texts[Dimension.PROPERTY] = [
        property_text(name, value) for name in ("plan", "n") for value in ("a", "b", "c")
    ]
    codes = {
        dimension: rng.integers(0, len(VALUES), views_made)
        for dimension in texts
        if dimension not in (Dimension.PATH, Dimension.PROPERTY)
    }
    codes[Dimension.PATH] = rng.permutation(views_made)
    rows = np.sort(np.concatenate([np.arange(events), rng.integers(0, max(events, 1), events)]))
    rows = rows[:events] if not events else rows
    event_view = rng.integers(-1, views_made, max(events, 1))
    time_ms = np.sort(rng.integers(first_ms, first_ms + DAY_MS, views_made))
    event_ms = first_ms + rng.integers(0, DAY_MS, max(events, 1))
    return Bulk(
        time_ms=time_ms,
        first_today=rng.random(views_made) < 0.5,
        first_of_page=rng.random(views_made) < 0.5,
        duration_ms=rng.choice(np.array([0, 1, 5_000, 5_001, 86_400_000], np.uint32), views_made),
        width_class=rng.integers(0, len(WidthClass), views_made).astype(np.uint8),
        visit_offset=visits_in_turn(rng.random(views_made) < 0.4),
        codes=codes,
        texts=texts,
        event=rows * 3 + 5,
        event_time_ms=event_ms[rows],
        event_view=event_view[rows],
        # A property comes once in an event.
        property=np.arange(len(rows)) % 6,
    )


def visits_in_turn(begins: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return the `visit_offset` of views of one visit after the other, the first of none."""
    places = np.arange(len(begins))
    first = np.maximum.accumulate(np.where(begins, places, -1))
    return np.where(first >= 0, places - first + 1, 0).astype(np.uint32)


def imported(bulk: Bulk, first: int) -> ImportedHits:
    """Return what a bulk is as a part of a batch."""
    (content,) = contents_of(bulk, first, [len(bulk)])
    return ImportedHits(content, dict(bulk.used_texts()))


def _narrowed(bulk: Bulk, content: Content) -> ImportedHits:
    """Return a content with those texts alone that it has."""
    texts = {dimension: np.array(known, object) for dimension, known in bulk.used_texts()}
    narrow: dict[Dimension, Sequence[str]] = {}
    codes: dict[Dimension, NDArray[Any]] = {}
    for dimension, of_views in {
        **content.codes,
        Dimension.PROPERTY: content.events.property,
    }.items():
        used, codes[dimension] = np.unique(of_views, return_inverse=True)
        narrow[dimension] = texts[dimension][used].tolist()
    events = evolve(content.events, property=codes.pop(Dimension.PROPERTY))
    return ImportedHits(evolve(content, codes=codes, events=events), narrow)


def expected(bulk: Bulk) -> tuple[list[Row], list[Row]]:
    found = []
    for place in range(len(bulk)):
        row: Row = {
            "time_ms": int(bulk.time_ms[place]),
            "p": bool(bulk.first_today[place]),
            "q": bool(bulk.first_of_page[place]),
            "hosting": False,
            "duration_ms": int(bulk.duration_ms[place]),
            "width_class": int(bulk.width_class[place]),
            "visit_offset": int(bulk.visit_offset[place]),
        }
        for dimension in VIEW_DIMENSIONS:
            left_out = dimension in LEFT_OUT
            code = 0 if left_out else int(bulk.codes[dimension][place])
            row[dimension.attribute] = "" if left_out else bulk.texts[dimension][code]
        found.append(row)
    events: dict[int, Row] = {}
    for place, number in enumerate(bulk.event.tolist()):
        view = int(bulk.event_view[place])
        of = found[view] if view >= 0 else None
        row = events.setdefault(
            number,
            {
                "time_ms": int(bulk.event_time_ms[place]),
                "view": of and (of["path"], of["time_ms"]),
                "properties": [],
            },
        )
        text = bulk.texts[Dimension.PROPERTY][int(bulk.property[place])]
        row["properties"].append(split_property(text))
    for row in events.values():
        row["properties"].sort()
    return in_order(found), in_order(events.values())


def together(*parts: tuple[list[Row], list[Row]]) -> tuple[list[Row], list[Row]]:
    views_there, events = zip(*parts, strict=True)
    return in_order(chain(*views_there)), in_order(chain(*events))
