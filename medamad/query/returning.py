"""New and returning visitors, and the unique visitors of a calendar week or month.

A visitor counts once a day, with the first view of the day. That view also says when the visitor
was here last, so it is known whether it is the visitor's first ever, of the week, and of the month.
"""

from collections.abc import Mapping
from datetime import tzinfo
from itertools import pairwise, starmap
from types import MappingProxyType
from typing import Final

import msgspec
import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, Since
from medamad.domain.zones import day_at, start_of_day
from medamad.query.buckets import Buckets, make_buckets
from medamad.query.filters import GOAL_FIELD, Mask
from medamad.query.period import Period
from medamad.query.request import PROPERTY_FIELDS, Query
from medamad.query.rows import Columns
from medamad.query.scan import Selection
from medamad.query.view_filter import SelectedViews
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
_FEW_SPANS: Final = 32
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

    def stretches_of(self, views: SelectedViews) -> list[tuple[int, slice]] | None:
        """Return the spans of some views, and which views are in each.

        None if the views do not ascend, or are in so many spans that to look at each would be slow.
        """
        if self.buckets is None:
            return [(0, slice(None))]
        if not views.part.ascends:
            return None
        time_ms = views.time_ms
        first, last = self.of(time_ms[[0, -1]]).tolist()
        if last - first > _FEW_SPANS:
            return None
        inner = np.searchsorted(time_ms, self.buckets.edges_ms[first + 1 : last + 1]).tolist()
        stretches = starmap(slice, pairwise([0, *inner, len(time_ms)]))
        return list(enumerate(stretches, first))

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
    counted = _Visitors(spans, np.array([_PLACES.get(text, 0) for text in texts], np.intp))
    is_known = np.ones(len(spans), np.bool_)

    def counters_of(part: Part) -> tuple[int, Counters] | None:
        first, last = spans.of(np.array(part.time_bounds, np.int64)).tolist()
        counters = part.counters(Dimension.SINCE) if first == last else None
        return None if counters is None else (first, counters)

    for scanned in selection.scan(counters_of):
        if isinstance(scanned, tuple):
            counted.add_counters(*scanned)
        else:
            counted.add_views(scanned)
    for rollup, counters in selection.rollups(lambda rollup: rollup.counters(Dimension.SINCE)):
        first, last = spans.of(np.array(rollup.time_bounds, np.int64)).tolist()
        if counters is None or first != last:
            is_known[first : last + 1] = False
        else:
            counted.add_counters(first, counters)
    return counted.total(), is_known


@define(eq=False)
class _Visitors:
    """Visitors by span and text, shape (n, _ROWS)."""

    spans: Spans
    place_of_code: NDArray[np.intp]
    """The row of each code of Dimension.SINCE."""
    _sums: NDArray[np.int64] = field(init=False)
    _keys: list[NDArray[np.intp]] = field(factory=list)
    """Of visitors that are not among the sums: the place of each in them, if these were flat."""

    def __attrs_post_init__(self) -> None:
        self._sums = np.zeros((len(self.spans), _ROWS), np.int64)

    def add_counters(self, span: int, counters: Counters) -> None:
        """Add the visitors of counters of Dimension.SINCE, all in one span."""
        np.add.at(self._sums[span], self.place_of_code[counters.codes], counters.sums[VISITORS])

    def add_views(self, views: SelectedViews) -> None:
        """Add the visitors among some views."""
        flags, codes = views.flags & VISITOR, views.codes(Dimension.SINCE)
        stretches = self.spans.stretches_of(views)
        if stretches is None:
            firsts = np.flatnonzero(flags)
            places = self.place_of_code.take(codes.take(firsts))
            self._keys.append(self.spans.of(views.time_ms.take(firsts)) * _ROWS + places)
            return
        # Comparing all codes with each of a few is faster than a lookup of each.
        is_first = flags.view(np.bool_)
        for span, stretch in stretches:
            for code, place in enumerate(self.place_of_code.tolist()):
                is_counted = (codes[stretch] == code) & is_first[stretch]
                self._sums[span, place] += np.count_nonzero(is_counted)

    def total(self) -> NDArray[np.int64]:
        """Return all visitors that were added."""
        if not self._keys:
            return self._sums
        added = np.bincount(np.concatenate(self._keys), minlength=self._sums.size)
        return self._sums + added.reshape(-1, _ROWS)
