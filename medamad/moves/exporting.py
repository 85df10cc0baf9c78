"""Reading a website out: its views, its events or its statistics, as rows of tables.

Each is a generator that does a little with every step, in whatever thread that is taken: no more
than a part of a website is in memory, and nothing is open between two steps.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import partial
from typing import Any, Final

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from medamad.model.dimensions import VIEW_DIMENSIONS, Dimension, split_property
from medamad.moves.tables import EVENTS, VIEWS, Rows, Table
from medamad.stats import naming
from medamad.stats.period import Period
from medamad.stats.wanted import Wanted
from medamad.store.flags import PAGE_VISITOR, VISITOR
from medamad.store.held import Held
from medamad.store.origins import Origins
from medamad.store.parts import NO_TIME, Events, Missed, Missing, Views
from medamad.vocabulary.sources import Sources

STEP_ROWS: Final = 4_096
"""How many rows a piece has at most: no other thread runs while a library writes them."""


@frozen
class Piece:
    """Some rows, perhaps none, and how far the export has come by then."""

    rows: Rows
    done: int
    """How many views, or events, or reports, were gone through."""
    total: int


@frozen(kw_only=True)
class Exported:
    """A website at one moment, and what of it is wanted, for as long as it is.

    Days are those of `zone`: of others there may be no sums. What an answer turns out to be
    without is noted in `missed`, and of each report, or of views or events, in `missed_of`.
    """

    held: Held
    origins: Origins
    sources: Sources
    period: Period
    zone: tzinfo = UTC
    wanted: Wanted = field(factory=Wanted)
    missed: Missed = field(factory=Missed)
    missed_of: dict[str, Missed] = field(factory=dict)

    def note(self, what: str, missed: Missed) -> None:
        """Note what a part of an answer is without."""
        self.missed.join(missed)
        self.missed_of[what] = missed

    def note_summed(self, table: Table) -> None:
        """Note the days of which there may have been views, or events, and are sums alone."""
        missed = Missed()
        for head in self.held.summed:
            bounds_ms = head.time_bounds if table is VIEWS else head.event_time_bounds
            is_in = bounds_ms != NO_TIME and not self.period.is_outside(*bounds_ms)
            if head.day is not None and is_in:
                missed.note_day(Missing.FIGURES, head.day.number)
        self.note(table.name, missed)


def views(exported: Exported) -> Iterator[Piece]:
    """Give the views of a period, in the order in which they were stored as far as that is kept."""
    parts = exported.held.parts()
    done, total = 0, sum(part.views for part in parts)
    for part in parts:
        bounds_ms = part.time_bounds
        if part.views and not exported.period.is_outside(*bounds_ms):
            columns = part.read(partial(_columns, exported.period))
            found = 0 if columns is None else len(columns["sequence"])
            for begin in range(0, found, STEP_ROWS):
                stretch = slice(begin, begin + STEP_ROWS)
                some = {name: column[stretch] for name, column in (columns or {}).items()}
                yield Piece(_view_rows(some, exported), done + begin, total)
        done += part.views
        yield Piece([()] * len(VIEWS.columns), done, total)


def _columns(period: Period, part: Views) -> dict[str, NDArray[Any]]:
    """Copy the columns of a part, so that nothing of them is borrowed."""
    time_ms = part.time_ms
    chosen: Any = slice(None)
    if not period.contains(*part.time_bounds):
        chosen = period.stretch(time_ms) if part.ascends else period.mask(time_ms)
    columns: dict[str, NDArray[Any]] = {
        "sequence": part.sequence,
        "time_ms": time_ms,
        "flags": part.flags,
        "duration_ms": part.duration_ms,
        "number_today": part.number_today,
        "width_px": part.width_px,
        **{dimension.attribute: part.codes(dimension) for dimension in VIEW_DIMENSIONS},
    }
    return {name: column[chosen].copy() for name, column in columns.items()}


def _view_rows(some: Mapping[str, NDArray[Any]], exported: Exported) -> Rows:
    stores, numbers = exported.origins.of(some["sequence"])
    flags = some["flags"]
    texts = exported.held.texts
    values: dict[str, Sequence[Any]] = {
        "store": stores,
        "view": numbers,
        "time": some["time_ms"].tolist(),
        "first_today": ((flags & VISITOR) != 0).tolist(),
        "first_of_page": ((flags & PAGE_VISITOR) != 0).tolist(),
    }
    for name in ("number_today", "width_px", "duration_ms"):
        values[name] = [number or None for number in some[name].tolist()]
    for dimension in VIEW_DIMENSIONS:
        values[dimension.attribute] = _named(some[dimension.attribute], texts(dimension))
    for name, of, name_of in (
        ("source", "referrer", naming.source),
        ("country_name", "country", naming.country),
        ("language", "locale", naming.language),
    ):
        names = {text: name_of(text, exported.sources) for text in set(values[of])}
        values[name] = [names[text] for text in values[of]]
    return [values[column.name] for column in VIEWS.columns]


def _named(codes: NDArray[Any], texts: Sequence[str]) -> list[str]:
    return [texts[code] for code in codes.tolist()]


def events(exported: Exported) -> Iterator[Piece]:
    """Give the properties of the events of a period, by the time of each event."""
    parts = exported.held.parts()
    total = sum(part.events for part in parts) + sum(map(len, exported.held.events))
    done = 0
    for part in parts:
        found = part.read(_events_of) if part.events else None
        if found is not None:
            yield from _event_pieces(found, exported, done, total)
        done += part.events
        yield Piece([()] * len(EVENTS.columns), done, total)
    for loose in exported.held.events:
        yield from _event_pieces(_copied(loose, loose.view), exported, done, total)
        done += len(loose)
    yield Piece([()] * len(EVENTS.columns), done, total)


def _events_of(part: Views) -> NDArray[np.uint64]:
    """Copy the events of a part: rows of number, time, sequence number of the view, property."""
    own, loose = part.own, part.loose
    of_own = part.sequence[own.view.astype(np.intp)] if len(own) else own.view
    found = np.concatenate([_copied(own, of_own), _copied(loose, loose.view)], axis=1)
    return found[:, np.argsort(found[0], kind="stable")]


def _copied(events: Events, view: NDArray[Any]) -> NDArray[np.uint64]:
    columns = (events.event, events.time_ms, view, events.property)
    return np.stack([column.astype(np.uint64) for column in columns])


def _event_pieces(
    found: NDArray[np.uint64], exported: Exported, done: int, total: int
) -> Iterator[Piece]:
    found = found[:, exported.period.mask(found[1].astype(np.int64))]
    for begin in range(0, found.shape[1], STEP_ROWS):
        event, time_ms, view, codes = found[:, begin : begin + STEP_ROWS]
        stores, numbers = exported.origins.of(event)
        _, viewed = exported.origins.of(view)
        texts = _named(codes, exported.held.texts(Dimension.PROPERTY))
        pairs = [split_property(text) for text in texts]
        yield Piece(
            [
                stores,
                numbers,
                [number or None for number in viewed],
                time_ms.astype(np.int64).tolist(),
                [name for name, _ in pairs],
                [value for _, value in pairs],
            ],
            done + begin,
            total,
        )
