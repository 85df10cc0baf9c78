"""Rows gathered into pieces that a store takes in: without those that it has already."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from attrs import define, field
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, property_text
from medamad.domain.errors import BadRequest
from medamad.storage.import_batches import Span
from medamad.storage.imports import Imported
from medamad.storage.segments.build import Content
from medamad.storage.segments.format import PAGE_VISITOR, VISITOR, timed_flags
from medamad.storage.segments.parts import (
    EventRows,
)
from medamad.transfer.existing import Known, Said, said_of
from medamad.transfer.rows import MAX_MS, EventRow, Refused, Row, ViewRow, texts_of
from medamad.transfer.survey import Given, Key, Run, Survey, key_of, numbered
from medamad.transfer.visitors import Noted, Visits

MOST_ROWS: Final = 8_192
MOST_TEXT: Final = 1 << 19
"""Characters of the texts of a piece."""
_NO_SPAN: Final = Span("", 1, 0, 0)


@define(eq=False)
class Gathering:
    """Rows until there are enough for a piece. What is left out is counted."""

    _known: Known
    _survey: Survey
    _spans: Sequence[Span]
    """Which numbers the hits of the stores get."""
    views: int = 0
    visitors: int = 0
    events: int = 0
    first_ms: int = MAX_MS
    last_ms: int = -1
    """The times of the first and of the last of them."""
    there: int = 0
    """Views and events that the website has already, or that were counted, or come again."""
    counted: int = 0
    """Those of them of which that is known by nothing but their time."""
    rows: int = 0
    """All that were gone through."""
    _view_rows: list[ViewRow] = field(factory=list)
    _places: list[int] = field(factory=list)
    _event_rows: list[tuple[int, int, int, str]] = field(factory=list)
    """Number, time, number of the view, property."""
    _texts: int = 0
    _seen: set[Key] = field(factory=set)
    _run: Run = field(factory=Run)
    _event_ms: int = 0
    _is_kept: bool = False
    _span: Span = _NO_SPAN
    """The one that was needed last."""
    _ends: dict[int, Counter[Said]] = field(init=False)
    """The views still to come that an earlier import ended with, by their time."""

    def __attrs_post_init__(self) -> None:
        self.there = self._survey.again
        self._ends = {time_ms: Counter(ended) for time_ms, ended in self._known.ends.items()}

    def add(self, file: Given, row: ViewRow | EventRow) -> None:
        """Take a row, or find out why not. Raises BadRequest for one of which no place is known."""
        begins = self._run.begins(file, row)
        if isinstance(row, ViewRow):
            self._add_view(row)
        else:
            self._add_event(row, begins=begins)

    @property
    def noted(self) -> Noted:
        """Whose views there are."""
        return self._survey.noted

    @property
    def is_full(self) -> bool:
        """Whether there is enough for a piece; never in the midst of an event."""
        held = max(len(self._view_rows), len(self._event_rows))
        return held >= MOST_ROWS or self._texts >= MOST_TEXT

    def continues(self, file: Given, row: Row) -> bool:
        """Return whether a row belongs to the event of the row before."""
        return self._run.has(file, row)

    def take(self) -> Imported:
        """Return what was gathered, and begin anew."""
        found = imported(self._places, self._view_rows, self._event_rows)
        self._view_rows, self._places, self._event_rows, self._texts = [], [], [], 0
        return found

    @property
    def is_empty(self) -> bool:
        """Whether nothing was gathered."""
        return not self._view_rows and not self._event_rows

    def _reach(self, time_ms: int) -> None:
        self.first_ms, self.last_ms = min(self.first_ms, time_ms), max(self.last_ms, time_ms)

    def _place(self, store: str, number: int) -> int:
        if self._span.store != store or not self._span.place(number):
            fitting = (each for each in self._spans if each.store == store and each.place(number))
            span = next(fitting, None)
            if span is None:
                raise BadRequest("a file was changed while it was read; import it again")
            self._span = span
        return self._span.place(number)

    def _is_first(self, row: ViewRow | EventRow) -> bool:
        """Return whether a hit is there for the first time in the files."""
        key = key_of(row)
        if key in self._survey.repeated:
            if key in self._seen:
                return False
            self._seen.add(key)
        return True

    def _is_there(self, row: ViewRow | EventRow, *, is_view: bool) -> bool:
        """Return whether a hit is left out, and count it."""
        is_known = self._known.number_of(row.store, row.number, is_view=is_view) > 0
        is_counted = not is_known and (self._known.is_counted(row) or self._was_at_end(row))
        is_there = is_known or is_counted
        self.counted += is_counted
        self.there += is_there
        return is_there

    def _was_at_end(self, row: ViewRow | EventRow) -> bool:
        """Return whether it is one of the views that an earlier import ended with."""
        if row.store or not isinstance(row, ViewRow) or row.time_ms not in self._ends:
            return False
        left, said = self._ends[row.time_ms], said_of(row)
        was_there = left[said] > 0
        left[said] -= was_there
        return was_there

    def _add_view(self, row: ViewRow) -> None:
        if not self._is_first(row):
            return
        if self._is_there(row, is_view=True):
            return
        self._reach(row.time_ms)
        row.duration_ms = max(row.duration_ms, self._survey.repeated.get(key_of(row), 0))
        self.views += 1
        self.visitors += row.first_today
        self._texts += sum(map(len, texts_of(row)))
        self._view_rows.append(row)
        self._places.append(self._place(row.store, row.number))

    def _add_event(self, row: EventRow, *, begins: bool) -> None:
        if begins:
            self._event_ms = row.time_ms
            self._is_kept = self._is_first(row) and not self._is_there(row, is_view=False)
            if self._is_kept:
                self._reach(row.time_ms)
                self.events += 1
        if not self._is_kept:
            return
        view = 0
        if row.view:
            view = self._known.number_of(row.store, row.view, is_view=True)
            view = view or self._place(row.store, row.view)
        text = property_text(row.name, row.value)
        self._texts += len(text)
        self._event_rows.append((self._place(row.store, row.number), self._event_ms, view, text))


def gather(files: Sequence[Given], gathering: Gathering) -> Iterator[Imported | None]:
    """Go through the rows, a little with every step; gives a piece, or nothing yet."""
    visits = Visits(gathering.noted)
    for place, (file, row) in enumerate(numbered(files, visits), 1):
        gathering.rows = visits.rows
        if isinstance(row, Refused):
            continue
        if gathering.is_full and not gathering.continues(file, row):
            yield gathering.take()
        gathering.add(file, row)
        if place % MOST_ROWS == 0:
            yield None
    gathering.rows = visits.rows
    yield None if gathering.is_empty else gathering.take()


def imported(
    places: Sequence[int], views: Sequence[ViewRow], events: Sequence[tuple[int, int, int, str]]
) -> Imported:
    """Return views by their numbers in the store, and properties of events, as it takes them in."""
    order = np.argsort(np.array(places, np.uint64), kind="stable")
    rows = [views[place] for place in order.tolist()]
    codes, texts = _coded([texts_of(row) for row in rows])
    duration_ms = np.array([row.duration_ms for row in rows], np.uint32)
    visits = [VISITOR * row.first_today | PAGE_VISITOR * row.first_of_page for row in rows]
    properties: dict[str, int] = {}
    columns: Any = list(zip(*events, strict=True)) or [[], [], [], []]
    carried = [properties.setdefault(text, len(properties)) for text in columns[3]]
    by_event = np.argsort(np.array(columns[0], np.uint64), kind="stable")
    content = Content(
        time_ms=np.array([row.time_ms for row in rows], np.int64),
        sequence=np.array(places, np.uint64)[order],
        flags=timed_flags(np.array(visits, np.uint8), duration_ms),
        duration_ms=duration_ms,
        number_today=np.array([row.number_today for row in rows], np.uint16),
        width_px=np.array([row.width_px for row in rows], np.uint16),
        codes=codes,
        events=EventRows(
            event=np.array(columns[0], np.uint64)[by_event],
            time_ms=np.array(columns[1], np.int64)[by_event],
            view=np.array(columns[2], np.uint64)[by_event],
            property=np.array(carried, np.uint32)[by_event],
        ),
    )
    return Imported(content, {**texts, Dimension.PROPERTY: list(properties)})


def _coded(
    rows: Sequence[Sequence[str]],
) -> tuple[dict[Dimension, NDArray[np.uint32]], dict[Dimension, list[str]]]:
    codes, texts = {}, {}
    for place, dimension in enumerate(VIEW_DIMENSIONS):
        numbers: dict[str, int] = {}
        found = [numbers.setdefault(row[place], len(numbers)) for row in rows]
        codes[dimension] = np.array(found, np.uint32)
        texts[dimension] = list(numbers)
    return codes, texts
