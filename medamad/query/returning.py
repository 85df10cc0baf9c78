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

from medamad.domain.dimensions import Since
from medamad.query.filters import BEHAVIOUR_FIELDS, DURATION_FIELD, GOAL_FIELD
from medamad.query.reader import Selected
from medamad.query.request import PROPERTY_FIELDS, Query
from medamad.query.rows import Columns
from medamad.query.spans import Spans
from medamad.query.sums import SINCE_PLACES

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


def returning_columns(selected: Selected, query: Query, spans: Spans, zone: tzinfo) -> Columns:
    """Return the figures of each span as columns, UNSET where they are not defined.

    Weeks and months are those of the zone in which days begin. They are defined where nearly all
    visitors' first views of the day say when the visitor was here last, and no filter can let
    through other views of a visitor than those.
    """
    if query.filters_on(_FIELDS_OF_VIEWS):
        return {}
    visitors, is_known = selected.visitors_by_since(spans)
    is_known &= visitors[:, 0] * _MIN_SHARE <= visitors.sum(axis=1)
    columns: Columns = {}
    for name, texts in _FIGURES.items():
        is_defined = is_known
        if name in _CALENDAR:
            is_defined = is_known & spans.are(_CALENDAR[name], zone)
        if is_defined.any():
            column = (
                visitors[:, [SINCE_PLACES[since] for since in texts]].sum(axis=1).astype(np.object_)
            )
            column[~is_defined] = msgspec.UNSET
            columns[name] = column
    return columns
