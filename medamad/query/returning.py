"""New and returning visitors, and the unique visitors of a calendar week or month.

A visitor counts once a day, with the first view of the day. That view also says when the visitor
was here last, so it is known whether it is the visitor's first ever, of the week, and of the month.
"""

from collections.abc import Mapping
from datetime import tzinfo
from types import MappingProxyType
from typing import Final

import msgspec
import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, Since
from medamad.domain.zones import day_at, start_of_day
from medamad.query.buckets import Buckets, make_buckets
from medamad.query.filters import GOAL_FIELD, Mask
from medamad.query.period import Period
from medamad.query.request import PROPERTY_FIELDS, Query
from medamad.query.rows import Columns
from medamad.query.scan import Selection
from medamad.storage.segments.counters import VISITORS, Counters
from medamad.storage.segments.format import VISITOR
from medamad.storage.segments.parts import Part

_FIGURES: Final[Mapping[str, tuple[Since, ...]]] = MappingProxyType(
    {
        "new_visitors": (Since.NEW,),
        "returning_visitors": (Since.MONTH, Since.MIDWEEK, Since.WEEK, Since.DAY),
        "week_visitors": (Since.NEW, Since.MONTH, Since.WEEK),
        "month_visitors": (Since.NEW, Since.MONTH, Since.MIDWEEK),
    }
)
"""The figures, each with the texts of the views that it counts."""
_CALENDAR: Final[Mapping[str, str]] = MappingProxyType(
    {"week_visitors": "week", "month_visitors": "month"}
)
"""The figures that are defined for one calendar week or month only."""
_FIELDS_OF_VIEWS: Final = ("path", "entry_page", "exit_page", *PROPERTY_FIELDS, GOAL_FIELD)
"""Under a filter on any of these, a visitor's first view of the day may be left out."""
_PLACES: Final[Mapping[str, int]] = MappingProxyType(
    {since: place for place, since in enumerate(Since, 1)}
)
"""The rows of sums by text. Row 0 is for unknown ones."""
_ROWS: Final = len(_PLACES) + 1
_MIN_SHARE: Final = 100
"""There are no figures if more than one visitor in so many has an unknown text."""


@frozen(eq=False)
class Spans:
    """The n spans of time that figures are of: each of them one bucket, or `period` alone.

    The period of the selection has to be that of the buckets.
    """

    period: Period
    now_ms: int
    buckets: Buckets | None = None
    interval: str | None = None
    """The interval of the buckets."""

    def __len__(self) -> int:
        return 1 if self.buckets is None else len(self.buckets.dates)

    def of(self, time_ms: NDArray[np.int64]) -> NDArray[np.intp]:
        """Return the number of the span that each time is in, or of the nearest."""
        if self.buckets is None:
            return np.zeros(len(time_ms), np.intp)
        return np.clip(self.buckets.of(time_ms), 0, len(self) - 1)

    def are(self, interval: str, zone: tzinfo) -> Mask:
        """Return which spans are one calendar week or month in a zone, or the present one so far.

        The present one may end at any time of the present day.
        """
        begin_ms, end_ms = self._bounds_ms()
        if begin_ms is None or self.interval not in (None, interval):
            return np.zeros(len(self), np.bool_)
        edges_ms = make_buckets(interval, int(begin_ms[0]), int(begin_ms[-1]), zone).edges_ms
        places = np.searchsorted(edges_ms, begin_ms)
        next_ms = edges_ms[np.minimum(places + 1, len(edges_ms) - 1)]
        today_ms = start_of_day(zone, day_at(zone, self.now_ms // 1000)) * 1000
        is_over = end_ms + 1 >= np.minimum(next_ms, today_ms)
        are: Mask = (edges_ms[places] == begin_ms) & (end_ms < next_ms) & is_over
        return are

    def _bounds_ms(self) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
        """Return the first and the last millisecond of each span; no first if that is unknown."""
        start_ms, end_ms = self.period.start_ms, self.period.end_ms
        last_ms = self.now_ms if end_ms is None else end_ms
        if start_ms is None or not len(self):
            return None, np.array([last_ms], np.int64)
        if self.buckets is None:
            return np.array([start_ms], np.int64), np.array([last_ms], np.int64)
        edges_ms = self.buckets.edges_ms
        return np.maximum(edges_ms[:-1], start_ms), np.minimum(edges_ms[1:] - 1, last_ms)


def returning_columns(selection: Selection, query: Query, spans: Spans, zone: tzinfo) -> Columns:
    """Return the figures of each span as columns, UNSET where they are not defined.

    Weeks and months are those of the zone in which days begin. They are defined where nearly all
    visitors' first views of the day say when the visitor was here last, and no filter can let
    through other views of a visitor than those.
    """
    if query.filters_on(_FIELDS_OF_VIEWS):
        return {}
    visitors, is_known = _visitors_by_since(selection, spans)
    is_known &= visitors[:, 0] * _MIN_SHARE <= visitors.sum(axis=1)
    columns: Columns = {}
    for name, texts in _FIGURES.items():
        is_defined = is_known
        if name in _CALENDAR:
            is_defined = is_known & spans.are(_CALENDAR[name], zone)
        if is_defined.any():
            column = visitors[:, [_PLACES[since] for since in texts]].sum(axis=1).astype(np.object_)
            column[~is_defined] = msgspec.UNSET
            columns[name] = column
    return columns


def _visitors_by_since(
    selection: Selection, spans: Spans
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the selected visitors by span and text, shape (n, _ROWS).

    And which spans are known, shape (n,): those of which no day has only a rollup without texts.
    """
    texts = selection.snapshot.texts(Dimension.SINCE)
    place_of_code = np.array([_PLACES.get(text, 0) for text in texts], np.intp)
    visitors = np.zeros((len(spans), _ROWS), np.int64)
    is_known = np.ones(len(spans), np.bool_)

    def add(span: int, counters: Counters) -> None:
        np.add.at(visitors[span], place_of_code[counters.codes], counters.sums[VISITORS])

    def counted(part: Part) -> tuple[int, Counters] | None:
        first, last = spans.of(np.array(part.time_bounds, np.int64)).tolist()
        counters = part.counters(Dimension.SINCE) if first == last else None
        return None if counters is None else (first, counters)

    keys: list[NDArray[np.intp]] = []
    for scanned in selection.scan(counted):
        if isinstance(scanned, tuple):
            add(*scanned)
            continue
        firsts = np.flatnonzero(scanned.flags & VISITOR)
        codes = scanned.codes(Dimension.SINCE).take(firsts)
        keys.append(spans.of(scanned.time_ms.take(firsts)) * _ROWS + place_of_code.take(codes))
    for rollup, counters in selection.rollups(lambda rollup: rollup.counters(Dimension.SINCE)):
        first, last = spans.of(np.array(rollup.time_bounds, np.int64)).tolist()
        if counters is None or first != last:
            is_known[first : last + 1] = False
        else:
            add(first, counters)
    if keys:
        visitors += np.bincount(np.concatenate(keys), minlength=visitors.size).reshape(-1, _ROWS)
    return visitors, is_known
