"""The tail of a website: the records that only the journal holds, as columns in memory.

The writer thread alone changes a tail, by the same `extend` whether the records have just been
committed or are read back at start. What it publishes never changes afterwards: rows beyond the
published length may be filled in, and a column that must change in place is copied first.
"""

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.model.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.store.parts import Codes, Events, Views
from medamad.store.records import Kind, Record, Rows, rows_by_kind

CHUNK_VIEWS: Final = 65_536
"""How many views a chunk holds at most."""

_FIRST_CAPACITY: Final = 64
_POSITION: Final = {dimension: position for position, dimension in enumerate(VIEW_DIMENSIONS)}
_VIEW_COLUMNS: Final[dict[str, np.dtype[Any]]] = {
    "time_ms": np.dtype(np.int64),
    "sequence": np.dtype(np.uint64),
    "flags": np.dtype(np.uint8),
    "duration_ms": np.dtype(np.uint32),
    "number_today": np.dtype(np.uint16),
    "width_px": np.dtype(np.uint16),
}
_EVENT_COLUMNS: Final[dict[str, np.dtype[Any]]] = {
    "event": np.dtype(np.uint64),
    "time_ms": np.dtype(np.int64),
    "view": np.dtype(np.uint64),
    "property": np.dtype(np.uint32),
}


@frozen(eq=False)
class ChunkViews:
    """The published views of a chunk. Shapes as in `parts.Views`; `matrix` is (dimensions, n)."""

    time_ms: NDArray[np.int64]
    sequence: NDArray[np.uint64]
    flags: NDArray[np.uint8]
    duration_ms: NDArray[np.uint32]
    number_today: NDArray[np.uint16]
    width_px: NDArray[np.uint16]
    matrix: NDArray[np.uint32]
    least_ms: int
    greatest_ms: int

    def codes(self, dimension: Dimension) -> Codes:
        """Shape (n,): the code of each view's text in that dimension."""
        codes: Codes = self.matrix[_POSITION[dimension]]
        return codes

    def __len__(self) -> int:
        return len(self.sequence)


@define(eq=False)
class _Columns:
    """Columns that grow together by doubling. The last axis is the rows."""

    arrays: dict[str, NDArray[Any]]
    length: int = 0

    @classmethod
    def of(cls, dtypes: dict[str, np.dtype[Any]]) -> "_Columns":
        return cls({name: np.zeros(_FIRST_CAPACITY, dtype) for name, dtype in dtypes.items()})

    def make_room(self, rows: int) -> None:
        capacity = next(iter(self.arrays.values())).shape[-1]
        if self.length + rows <= capacity:
            return
        while capacity < self.length + rows:
            capacity *= 2
        for name, old in self.arrays.items():
            new = np.zeros((*old.shape[:-1], capacity), old.dtype)
            new[..., : self.length] = old[..., : self.length]
            self.arrays[name] = new

    def published(self, name: str) -> Any:
        array = self.arrays[name][..., : self.length]
        array.flags.writeable = False
        return array


@define(eq=False)
class _Chunk:
    """Up to CHUNK_VIEWS views. `shared` says that a question may hold the durations."""

    columns: _Columns = field(factory=lambda: _Columns.of(_VIEW_COLUMNS))
    least_ms: int = np.iinfo(np.int64).max
    greatest_ms: int = 0
    shared: bool = False
    published: ChunkViews | None = None

    def __attrs_post_init__(self) -> None:
        self.columns.arrays["matrix"] = np.zeros((len(VIEW_DIMENSIONS), _FIRST_CAPACITY), np.uint32)

    def extend(self, rows: Rows) -> None:
        columns, count = self.columns, len(rows)
        columns.make_room(count)
        span = slice(columns.length, columns.length + count)
        arrays = columns.arrays
        arrays["time_ms"][span] = rows.keys["time_ms"]
        arrays["sequence"][span] = rows.keys["sequence"]
        for name in ("flags", "number_today", "width_px"):
            arrays[name][span] = rows.values[name]
        arrays["matrix"][:, span] = rows.values["codes"].T
        columns.length += count
        self.least_ms = min(self.least_ms, int(rows.keys["time_ms"].min()))
        self.greatest_ms = max(self.greatest_ms, int(rows.keys["time_ms"].max()))
        self.published = None

    def lengthen(self, sequences: NDArray[np.uint64], durations: NDArray[np.uint32]) -> None:
        """Raise the durations of views by sequence number; the longest counts."""
        arrays = self.columns.arrays
        if self.shared:
            arrays["duration_ms"] = arrays["duration_ms"].copy()
            self.shared = False
        known = arrays["sequence"][: self.columns.length]
        places = np.minimum(np.searchsorted(known, sequences), len(known) - 1)
        found = known[places] == sequences
        np.maximum.at(arrays["duration_ms"], places[found], durations[found])
        self.published = None

    def publish(self) -> ChunkViews:
        if self.published is None:
            self.shared = True
            names = (*_VIEW_COLUMNS, "matrix")
            self.published = ChunkViews(
                **{name: self.columns.published(name) for name in names},
                least_ms=self.least_ms,
                greatest_ms=self.greatest_ms,
            )
        return self.published


@define(eq=False)
class Tail:
    """One website's unsealed records."""

    chunk_views: int = CHUNK_VIEWS
    chunks: list[_Chunk] = field(factory=list)
    events: _Columns = field(factory=lambda: _Columns.of(_EVENT_COLUMNS))
    _bindings_shared: bool = False

    def extend(self, records: Iterable[Record]) -> None:
        """Take in sound records, whose views all have greater sequence numbers than those here."""
        rows = rows_by_kind(records)
        if Kind.VIEW in rows:
            views = rows[Kind.VIEW]
            self._add_views(_ascending(views, views.keys["sequence"]))
        if Kind.LEAVING in rows:
            self._add_leavings(rows[Kind.LEAVING])
        if Kind.PROPERTY in rows:
            events = rows[Kind.PROPERTY]
            self._add_properties(_ascending(events, events.values["event"]))
        if Kind.BINDING in rows:
            self._bind(rows[Kind.BINDING])

    def publish(self) -> tuple[tuple[Views, ...], tuple[Events, ...]]:
        """Give the views and events as parts that never change."""
        self._bindings_shared = True
        events = Events(**{name: self.events.published(name) for name in _EVENT_COLUMNS})
        return (
            tuple(chunk.publish() for chunk in self.chunks),
            (events,) if len(events) else (),
        )

    def _add_views(self, rows: Rows) -> None:
        while len(rows):
            if not self.chunks or self.chunks[-1].columns.length == self.chunk_views:
                self.chunks.append(_Chunk())
            room = self.chunk_views - self.chunks[-1].columns.length
            self.chunks[-1].extend(Rows(rows.keys[:room], rows.values[:room]))
            rows = Rows(rows.keys[room:], rows.values[room:])

    def _add_leavings(self, rows: Rows) -> None:
        if not self.chunks:
            return
        firsts = [int(chunk.columns.arrays["sequence"][0]) for chunk in self.chunks]
        views = rows.values["view"].astype(np.uint64)
        durations = rows.values["duration_ms"].astype(np.uint32)
        chunk_of = np.searchsorted(np.array(firsts, np.uint64), views, side="right") - 1
        for number in np.unique(chunk_of[chunk_of >= 0]):
            here = chunk_of == number
            self.chunks[number].lengthen(views[here], durations[here])

    def _add_properties(self, rows: Rows) -> None:
        columns, count = self.events, len(rows)
        columns.make_room(count)
        span = slice(columns.length, columns.length + count)
        columns.arrays["time_ms"][span] = rows.keys["time_ms"]
        for name in ("event", "view", "property"):
            columns.arrays[name][span] = rows.values[name]
        columns.length += count

    def _bind(self, rows: Rows) -> None:
        arrays = self.events.arrays
        if self._bindings_shared:
            arrays["view"] = arrays["view"].copy()
            self._bindings_shared = False
        known = arrays["event"][: self.events.length]
        events = rows.values["event"].astype(np.uint64)
        begins = np.searchsorted(known, events, side="left")
        ends = np.searchsorted(known, events, side="right")
        for begin, end, view in zip(begins, ends, rows.values["view"], strict=True):
            arrays["view"][begin:end] = view


def _ascending(rows: Rows, numbers: NDArray[Any]) -> Rows:
    """Order rows by their numbers: the journal is in order of time, which may have been set back.

    Committed rows come in that order; it is only at start that there is something to do.
    """
    if np.all(numbers[:-1] <= numbers[1:]):
        return rows
    order = np.argsort(numbers, kind="stable")
    return Rows(rows.keys[order], rows.values[order])
