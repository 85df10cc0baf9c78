"""Storing many hits at once that happened before: straight into blocks, without the journal."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.model.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.store.flags import PAGE_VISITOR, VISITOR, timed_flags
from medamad.store.parts import EventRows
from medamad.store.sealing import Content

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
        """Give the earliest and the latest time of its views and events; there has to be one."""
        times_ms = np.concatenate((self.time_ms, self.event_time_ms))
        return int(times_ms.min()), int(times_ms.max())

    def cut(self, first: int, most: int) -> list[int]:
        """Give the lengths of pieces: the first as given, the others of `most` views, or less."""
        ends = [*range(min(first, len(self)), len(self), most), len(self)]
        return np.diff(ends, prepend=0).tolist() or [0]

    def sequence_numbers(self) -> int:
        """Give how many sequence numbers its views and events need."""
        return len(self) + len(np.unique(self.event))

    def used_texts(self) -> Iterator[tuple[Dimension, list[str]]]:
        """Give the texts of each dimension, those of dimensions left out too."""
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
