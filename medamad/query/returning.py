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
from numpy.typing import NDArray

from medamad.domain.dimensions import Since
from medamad.domain.zones import day_at, start_of_day
from medamad.query.buckets import Buckets, make_buckets
from medamad.query.filters import BEHAVIOUR_FIELDS, DURATION_FIELD, GOAL_FIELD, Mask
from medamad.query.reader import Selected
from medamad.query.request import PROPERTY_FIELDS, Query
from medamad.query.rows import Columns
from medamad.query.sums import SINCE_PLACES

_NEVER_MS: Final = -(1 << 62)
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
_FIELDS_OF_VIEWS: Final = (
    *("path", "entry_page", "exit_page", *PROPERTY_FIELDS),
    *(GOAL_FIELD, DURATION_FIELD, *BEHAVIOUR_FIELDS),
)
"""Under a filter on any of these, a visitor's first view of the day may be left out."""
_MIN_SHARE: Final = 100
"""There are no figures if more than one visitor in so many has an unknown text."""


def returning_columns(
    selected: Selected,
    query: Query,
    *,
    zone: tzinfo,
    now_ms: int,
    buckets: Buckets | None = None,
    interval: str | None = None,
) -> Columns:
    """Return the figures of each bucket, or of the period, as columns; UNSET where not defined.

    `interval` is that of the buckets, whose period has to be that of the selection. Weeks and
    months are those of the zone in which days begin. They are defined where nearly all visitors'
    first views of the day say when the visitor was here last, and no filter can let through other
    views of a visitor than those.
    """
    if query.filters_on(_FIELDS_OF_VIEWS):
        return {}
    period = selected.period
    start_ms = _NEVER_MS if period.start_ms is None else period.start_ms
    last_ms = now_ms if period.end_ms is None else period.end_ms
    if buckets is None:
        buckets = Buckets(np.array([start_ms, last_ms + 1], np.int64), [""])
    begins_ms = np.maximum(buckets.edges_ms[:-1], start_ms)
    ends_ms = np.minimum(buckets.edges_ms[1:] - 1, last_ms)
    visitors, is_known = selected.visitors_by_since(buckets)
    is_known &= visitors[:, 0] * _MIN_SHARE <= visitors.sum(axis=1)
    columns: Columns = {}
    for name, texts in _FIGURES.items():
        is_defined = is_known
        if name in _CALENDAR and is_known.any():
            if period.start_ms is None or interval not in (None, _CALENDAR[name]):
                continue
            is_defined = is_known & _are(_CALENDAR[name], begins_ms, ends_ms, zone, now_ms)
        if is_defined.any():
            column = (
                visitors[:, [SINCE_PLACES[since] for since in texts]].sum(axis=1).astype(np.object_)
            )
            column[~is_defined] = msgspec.UNSET
            columns[name] = column
    return columns


def _are(
    interval: str,
    begins_ms: NDArray[np.int64],
    ends_ms: NDArray[np.int64],
    zone: tzinfo,
    now_ms: int,
) -> Mask:
    """Return which spans of time are one week or month of a zone, or the present one so far.

    The present one may end at any time of the present day.
    """
    edges_ms = make_buckets(interval, int(begins_ms[0]), int(begins_ms[-1]), zone).edges_ms
    places = np.searchsorted(edges_ms, begins_ms)
    next_ms = edges_ms[np.minimum(places + 1, len(edges_ms) - 1)]
    today_ms = start_of_day(zone, day_at(zone, now_ms // 1000)) * 1000
    is_over = ends_ms + 1 >= np.minimum(next_ms, today_ms)
    are: Mask = (edges_ms[places] == begins_ms) & (ends_ms < next_ms) & is_over
    return are
