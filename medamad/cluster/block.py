"""Rows for the tables of the cluster, made of what a store has of its websites."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import astuple, define, field, frozen
from numpy.typing import NDArray

from medamad.clickhouse.client import Client, Upload
from medamad.clickhouse.native import CodedTexts, Values, encode_text
from medamad.clickhouse.tables import (
    EVENTS,
    TEXTS,
    VIEWS,
    Table,
    days_of,
    number_at,
    sequence_in,
)
from medamad.domain.dimensions import (
    VIEW_DIMENSIONS,
    Dimension,
    ViewFlag,
    ViewNumber,
    split_property,
)
from medamad.domain.hits import NUMBERS_OF_HITS
from medamad.storage.segments.parts import EventColumns, ViewColumns, are_late
from medamad.storage.segments.snapshot import Snapshot

Numbers: TypeAlias = NDArray[np.uint64]

_MOST_KNOWN: Final = 200_000
"""How many visits or views are remembered. Any other is looked up again."""
_MOST_TEXTS: Final = 200_000
"""How many texts are remembered as sent. Any other is sent again."""


@frozen(eq=False)
class Properties:
    """Rows of the properties of events, shape (m,). `place` is that of a row in its event."""

    event: Numbers
    place: NDArray[np.uint8]
    time_ms: NDArray[np.int64]
    view: Numbers
    code: NDArray[np.uint32]
    batch: NDArray[np.uint32]

    def select(self, chosen: NDArray[np.bool_]) -> "Properties":
        """Return some of the rows."""
        return Properties(*(column[chosen] for column in astuple(self, recurse=False)))

    def __len__(self) -> int:
        return len(self.event)


Key: TypeAlias = tuple[int, int]
"""A website, and the number of a view or a visit of it."""


@frozen
class SentView:
    """A view that only the cluster has."""

    visit: int
    day: int
    time_ms: int


@define(eq=False)
class Known:
    """What is remembered from one block to the next, so that it is not looked up or sent again."""

    collector: int
    days: dict[Key, int | None] = field(factory=dict)
    """By visit, the day in which it began; None if neither the store nor the cluster has it."""
    views: dict[Key, SentView | None] = field(factory=dict)
    """Views that the store does not have any more; None if the cluster does not have them either.
    """
    texts: set[tuple[int, Dimension, int]] = field(factory=set)
    """The codes of texts that the cluster has, with their website and dimension."""

    def add(self, block: "Block") -> None:
        """Remember the texts of a block that was sent."""
        if len(self.texts) > _MOST_TEXTS:
            self.texts.clear()
        self.texts.update(block.new_texts)

    def look_up(self, client: Client, block: "Block") -> None:
        """Find in the cluster what the store no longer has. Raises ClickHouseError.

        A row must have the same key each time that it is sent, whatever is left here of its visit.
        """
        for website, numbers in _by_website(block.unknown_visits).items():
            found = self._find(client, website, "visit", numbers, "min(visit_day) AS day")
            days = dict(zip(found["visit"], found["day"], strict=True))
            self.days |= {(website, number): days.get(number) for number in numbers}
        for website, numbers in _by_website(block.unknown_views).items():
            columns = "any(visit) AS of_visit, min(visit_day) AS day, any(time_ms) AS at_ms"
            found = self._find(client, website, "view", numbers, columns)
            views = {
                view: SentView(sequence_in(visit), day, time_ms)
                for view, visit, day, time_ms in zip(*found.values(), strict=True)
            }
            self.views |= {(website, number): views.get(number) for number in numbers}

    def _find(
        self, client: Client, website: int, column: str, numbers: Sequence[int], columns: str
    ) -> dict[str, list[int]]:
        """Return columns of the views by the visit or view in a column, those of some numbers."""
        wanted = [number_at(self.collector, number) for number in numbers]
        found = client.query(
            f"SELECT {column}, {columns} FROM {client.table(VIEWS.name)}"
            f" WHERE website = {{website:UInt32}} AND {column} IN wanted GROUP BY {column}",
            parameters={"website": website},
            uploads={"wanted": Upload({"number": "UInt64"}, {"number": wanted})},
        )
        values = {name: column.tolist() for name, column in found.items()} or {
            name: [] for name in (column, "day")
        }
        values[column] = [sequence_in(number) for number in values[column]]
        return values


def _by_website(keys: Iterable[Key]) -> dict[int, list[int]]:
    numbers: dict[int, list[int]] = {}
    for website, number in sorted(keys):
        numbers.setdefault(website, []).append(number)
    return numbers


@define(eq=False)
class Block:
    """Rows that are sent together, of any number of websites."""

    known: Known
    views: int = 0
    events: int = 0
    """How many properties of events it has."""
    unknown_visits: set[Key] = field(factory=set)
    """Visits whose day is not known yet: such a block is not for sending."""
    unknown_views: set[Key] = field(factory=set)
    """Views of events that the store does not have any more, and that are not known yet."""
    new_texts: dict[tuple[int, Dimension, int], str] = field(factory=dict)
    """Texts that the cluster may not have yet."""
    _columns: dict[tuple[str, str], list[NDArray[Any]]] = field(factory=dict)
    _encoded: dict[tuple[str, str], list[bytes]] = field(factory=dict)
    """The texts of a column, to which its codes refer."""

    @property
    def is_complete(self) -> bool:
        """Whether all is known that it takes. If not, `Known.look_up` finds the rest."""
        return not (self.unknown_visits or self.unknown_views)

    @property
    def rows(self) -> int:
        """How many rows of views and events it has."""
        return self.views + self.events

    @property
    def days(self) -> set[int]:
        """The days on which the visits of the rows began."""
        columns = (self._columns.get((table.name, "visit_day"), ()) for table in (VIEWS, EVENTS))
        return {int(day) for days in chain.from_iterable(columns) for day in np.unique(days)}

    def columns(self, table: Table) -> dict[str, Values]:
        """Return the columns of VIEWS or EVENTS."""
        found: dict[str, Values] = {}
        for name in table.types:
            values = np.concatenate(self._columns[table.name, name])
            encoded = self._encoded.get((table.name, name))
            found[name] = values if encoded is None else CodedTexts(values, encoded)
        return found

    def texts(self) -> dict[str, Values]:
        """Return the columns of TEXTS."""
        keys = list(self.new_texts)
        values: dict[str, Values] = {
            "website": [website for website, _, _ in keys],
            "dimension": [int(dimension) for _, dimension, _ in keys],
            "text": list(self.new_texts.values()),
        }
        return {name: values[name] for name in TEXTS.types}

    def add_views(self, website: int, snapshot: Snapshot, numbers: Numbers) -> None:
        """Add those of the views with these numbers, ascending, that the snapshot has."""
        for leaf, places in _places_of(snapshot, numbers):
            self._add_views(website, snapshot, leaf, places)

    def add_events(self, website: int, snapshot: Snapshot, properties: Properties) -> None:
        """Add events. Those of a view get its visit, if the snapshot has the view."""
        day = days_of(properties.time_ms)
        visit = np.zeros(len(properties), np.uint64)
        late = np.zeros(len(properties), np.bool_)
        of_views = np.unique(properties.view[properties.view > 0])
        missing = set(of_views.tolist())
        for leaf, places in _places_of(snapshot, of_views):
            views, time_ms = leaf.sequence[places], leaf.time_ms[places]
            visits = _visits_of(leaf, places)
            days = self._days_of(website, snapshot, views, visits, time_ms)
            missing.difference_update(views.tolist())
            at = np.minimum(np.searchsorted(views, properties.view), len(views) - 1)
            is_here = views[at] == properties.view
            at = at[is_here]
            visit[is_here], day[is_here] = visits[at], days[at]
            late[is_here] = are_late(
                properties.event[is_here], properties.time_ms[is_here], views[at], time_ms[at]
            )
        for number in missing:
            view = self._sent_view(website, number)
            if view is not None:
                its = np.flatnonzero(properties.view == number)
                visit[its], day[its] = view.visit, view.day
                late[its] = are_late(
                    properties.event[its],
                    properties.time_ms[its],
                    properties.view[its],
                    np.full(len(its), view.time_ms),
                )
        names, values = self._name_and_value(website, snapshot, properties.code)
        self._put(
            EVENTS,
            {
                "website": np.full(len(properties), website, np.uint32),
                "visit_day": day,
                "visit": self._numbers(visit),
                "view": self._numbers(properties.view),
                "event": self._numbers(properties.event),
                "place": properties.place,
                "late": late.astype(np.uint8),
                "time_ms": properties.time_ms,
                "batch": properties.batch,
                "name": names,
                "value": values,
            },
        )
        self.events += len(properties)

    def _add_views(
        self, website: int, snapshot: Snapshot, leaf: ViewColumns, places: NDArray[np.intp]
    ) -> None:
        view, time_ms, flags = leaf.sequence[places], leaf.time_ms[places], leaf.flags[places]
        visit = _visits_of(leaf, places)
        self._put(
            VIEWS,
            {
                "website": np.full(len(places), website, np.uint32),
                "visit_day": self._days_of(website, snapshot, view, visit, time_ms),
                "visit": self._numbers(visit),
                "view": self._numbers(view),
                "time_ms": time_ms,
                **{flag.attribute: (flags & flag != 0).astype(np.uint8) for flag in ViewFlag},
                **{each.attribute: leaf.numbers(each)[places] for each in NUMBERS_OF_HITS},
                "duration_ms": leaf.duration_ms[places],
                "batch": np.full(len(places), leaf.import_batch, np.uint32),
                **{
                    dimension.attribute: self._texts_of(
                        website, snapshot, dimension, leaf.codes(dimension)[places]
                    )
                    for dimension in VIEW_DIMENSIONS
                },
            },
        )
        self.views += len(places)

    def _put(self, table: Table, columns: dict[str, NDArray[Any]]) -> None:
        for name, values in columns.items():
            self._columns.setdefault((table.name, name), []).append(values)

    def _numbers(self, sequences: NDArray[Any]) -> Numbers:
        """Return sequence numbers with the number of the collector, 0 for none."""
        in_front = np.uint64(number_at(self.known.collector, 1) - 1)
        numbers = sequences.astype(np.uint64)
        return np.where(numbers > 0, numbers | in_front, numbers)

    def _days_of(
        self, website: int, snapshot: Snapshot, view: Numbers, visit: Numbers, time_ms: NDArray[Any]
    ) -> NDArray[np.uint16]:
        """Return the days in which the visits of views began."""
        day, known = days_of(time_ms), self.known.days
        if len(known) > _MOST_KNOWN:
            known.clear()
        is_first = view == visit
        known.update(zip(_keys(website, visit[is_first]), day[is_first].tolist(), strict=True))
        begun_before = np.flatnonzero((visit > 0) & ~is_first)
        visits, of_view = np.unique(visit[begun_before], return_inverse=True)
        unknown = [key[1] for key in _keys(website, visits) if key not in known]
        for leaf, places in _places_of(snapshot, np.array(unknown, np.uint64)):
            days = days_of(leaf.time_ms[places]).tolist()
            known.update(zip(_keys(website, leaf.sequence[places]), days, strict=True))
        began = np.full(len(visits), -1)
        for place, key in enumerate(_keys(website, visits)):
            # Its first view may be damaged, or old enough to be gone from here.
            if key not in known:
                self.unknown_visits.add(key)
                continue
            found = known[key]
            if found is None:
                found = known[key] = int(day[begun_before[of_view == place]].min())
            began[place] = found
        is_known = began[of_view] >= 0
        day[begun_before[is_known]] = began[of_view[is_known]]
        return day

    def _sent_view(self, website: int, number: int) -> SentView | None:
        """Return a view that the store does not have any more, None if the cluster has none."""
        key, known = (website, number), self.known.views
        if len(known) > _MOST_KNOWN:
            known.clear()
        if key not in known:
            self.unknown_views.add(key)
        return known.get(key)

    def _texts_of(
        self, website: int, snapshot: Snapshot, dimension: Dimension, codes: NDArray[Any]
    ) -> NDArray[np.intp]:
        """Return codes of the texts in the column of a dimension."""
        encoded = self._encoded.setdefault((VIEWS.name, dimension.attribute), [])
        used, places = np.unique(codes, return_inverse=True)
        places += len(encoded)
        encoded += [
            encode_text(text) for text in self._used(website, snapshot, dimension, used.tolist())
        ]
        return places

    def _name_and_value(
        self, website: int, snapshot: Snapshot, codes: NDArray[Any]
    ) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return codes of the texts in the columns of a property's name and value."""
        names = self._encoded.setdefault((EVENTS.name, "name"), [])
        values = self._encoded.setdefault((EVENTS.name, "value"), [])
        used, places = np.unique(codes, return_inverse=True)
        places += len(names)
        for text in self._used(website, snapshot, Dimension.PROPERTY, used.tolist()):
            name, value = split_property(text)
            names.append(encode_text(name))
            values.append(encode_text(value))
        return places, places

    def _used(
        self, website: int, snapshot: Snapshot, dimension: Dimension, codes: Sequence[int]
    ) -> Iterator[str]:
        texts = snapshot.texts(dimension)
        for code in codes:
            text, key = texts[code], (website, dimension, code)
            if key not in self.known.texts:
                self.new_texts[key] = text
            yield text


def _keys(website: int, visits: Numbers) -> list[Key]:
    return [(website, visit) for visit in visits.tolist()]


def _places_of(
    snapshot: Snapshot, numbers: Numbers
) -> Iterator[tuple[ViewColumns, NDArray[np.intp]]]:
    """Return the parts that have views with some numbers, ascending, and the rows of these."""
    if not len(numbers):
        return
    for segment in snapshot.leaf_segments():
        low, high = segment.header.sequence_bounds
        begin, end = np.searchsorted(numbers, np.array((low, high + 1), np.uint64))
        if begin < end:
            for leaf in snapshot.with_segments([segment]).leaves():
                yield from _rows_of(leaf, numbers[begin:end])
    for chunk in snapshot.chunks:
        yield from _rows_of(chunk, numbers)


def _rows_of(leaf: ViewColumns, numbers: Numbers) -> Iterator[tuple[ViewColumns, NDArray[np.intp]]]:
    sequence = leaf.sequence
    if len(sequence):
        places = np.minimum(np.searchsorted(sequence, numbers), len(sequence) - 1)
        places = places[sequence[places] == numbers]
        if len(places):
            yield leaf, places


def _visits_of(leaf: ViewColumns, places: NDArray[np.intp]) -> Numbers:
    """Return the numbers of the visits of views, 0 where there is none."""
    offset = leaf.numbers(ViewNumber.VISIT_OFFSET)[places].astype(np.uint64)
    return np.where(offset > 0, leaf.sequence[places] + np.uint64(1) - offset, np.uint64(0))


def events_of(snapshot: Snapshot, numbers: Numbers) -> Properties:
    """Return all properties of those of some events, ascending, that the snapshot has."""
    found = [NO_PROPERTIES]
    if len(numbers):
        for segment in snapshot.leaf_segments():
            bounds = (segment.header.first_sequence, segment.header.last_sequence + 1)
            begin, end = np.searchsorted(numbers, np.array(bounds, np.uint64))
            if begin < end:
                for leaf in snapshot.with_segments([segment]).leaves():
                    some, batch = numbers[begin:end], leaf.import_batch
                    found.append(_among(leaf.loose, leaf.loose.view, some, batch))
                    found.append(_among(leaf.own, leaf.sequence[leaf.own.view], some, batch))
        found += [_among(piece, piece.view, numbers, 0) for piece in snapshot.events]
    return Properties(
        *map(np.concatenate, zip(*(astuple(each, recurse=False) for each in found), strict=True))
    )


def _among(events: EventColumns, view: NDArray[Any], numbers: Numbers, batch: int) -> Properties:
    """Return the properties of those of some events that are among some numbers, ascending."""
    first = np.searchsorted(events.event, numbers[0])
    last = np.searchsorted(events.event, numbers[-1], side="right")
    event = events.event[first:last].astype(np.uint64)
    begins = np.flatnonzero(np.diff(event, prepend=np.uint64(0)))
    lengths = np.diff(np.append(begins, len(event)))
    place = np.arange(len(event)) - np.repeat(begins, lengths)
    chosen = np.isin(event, numbers)
    return Properties(
        event[chosen],
        place[chosen].astype(np.uint8),
        events.time_ms[first:last][chosen].astype(np.int64),
        view[first:last][chosen].astype(np.uint64),
        events.property[first:last][chosen].astype(np.uint32),
        np.full(int(chosen.sum()), batch, np.uint32),
    )


NO_PROPERTIES: Final = Properties(
    np.zeros(0, np.uint64),
    np.zeros(0, np.uint8),
    np.zeros(0, np.int64),
    np.zeros(0, np.uint64),
    np.zeros(0, np.uint32),
    np.zeros(0, np.uint32),
)
