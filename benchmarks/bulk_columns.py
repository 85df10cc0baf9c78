"""The columns of a bulk load, made from generated views."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from audience import Audience
from bulk import Bulk
from content import Content
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension


def bulk_of(
    columns: Mapping[str, NDArray[Any]],
    content: Content,
    audience: Audience,
    until_ms: int,
) -> Bulk:
    """Return views in order of time as a bulk load.

    Without the events that lie after `until_ms`.
    """
    kind, campaign = columns["kind"], columns["campaign"]
    return Bulk(
        time_ms=columns["time_ms"],
        first_today=columns["first_today"],
        first_of_page=columns["first_of_page"],
        duration_ms=columns["duration_ms"],
        width_class=audience.width_class[kind],
        visit_offset=_visit_offset(columns["visit"]),
        codes={
            Dimension.PATH: columns["path"],
            Dimension.REFERRER: columns["referrer"],
            **{dimension: codes[campaign] for dimension, codes in content.campaigns.items()},
            **{dimension: codes[kind] for dimension, codes in audience.codes.items()},
        },
        texts=content.texts | audience.texts,
        **_properties(columns, content, audience.plan[kind], until_ms),
    )


def _visit_offset(visit: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return how many views earlier each view's visit began, plus 1.

    A visit whose first view is in an earlier batch begins with its first one in this.
    """
    _, first, visit_of = np.unique(visit, return_index=True, return_inverse=True)
    return (np.arange(len(visit)) - first[visit_of] + 1).astype(np.uint32)


def _properties(
    columns: Mapping[str, NDArray[Any]],
    content: Content,
    plan: NDArray[np.int8],
    until_ms: int,
) -> dict[str, NDArray[Any]]:
    """Return the properties of views and of events in them, by time."""
    patterns = content.patterns
    pattern = content.pattern[columns["path"]]
    bare = np.flatnonzero((pattern == 0) & (plan >= 0))
    pattern[bare] = patterns.plans[plan[bare]]
    loads = np.flatnonzero(pattern)
    event_ms = columns["time_ms"] + columns["event_after_ms"]
    customs = np.flatnonzero((columns["event"] > 0) & (event_ms < until_ms))
    time_ms = np.concatenate((columns["time_ms"][loads], event_ms[customs]))
    view = np.concatenate((loads, np.where(columns["event_alone"][customs], -1, customs)))
    carried = patterns.properties[np.concatenate((pattern[loads], columns["event"][customs]))]
    order = np.argsort(time_ms, kind="stable")
    carried = carried[order]
    event, place = np.nonzero(carried >= 0)
    of_row = order[event]
    return {
        "event": event,
        "event_time_ms": time_ms[of_row],
        "event_view": view[of_row],
        "property": carried[event, place].astype(np.uint16),
    }
