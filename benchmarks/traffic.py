"""Realistic traffic of one website for any number of views, the same for the same plan.

Some 1,000,000 views a second are drawn, a day at a time; memory holds two days and one batch.
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
from audience import Audience
from content import HOSTNAME, Content
from days import Columns, Days, joined, taken
from numpy.typing import NDArray
from plan import Plan

from medamad.domain.dimensions import Dimension

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.storage.bulk_loads import Bulk

_BATCH: Final = 262_144
"""Days are joined into a batch until it has this many views."""


def batches(plan: Plan) -> Iterator[Bulk]:
    """Yield exactly `plan.views` views in order of time, with their events, in batches."""
    content = Content.of(plan.seed, plan.days, plan.paths, plan.steepness)
    audience = Audience.of(plan.seed, HOSTNAME)
    given = 0
    for columns in _batches(Days(plan, content, audience)):
        size = len(columns["time_ms"])
        cut = min(max(plan.before_memtable - given, 0), size)
        given += size
        for stretch in (slice(0, cut), slice(cut, size)):
            if stretch.start < stretch.stop:
                yield _bulk_of(taken(columns, stretch), content, audience, plan.until_ms)


def _batches(days: Days) -> Iterator[Columns]:
    held: list[Columns] = []
    for columns in days:
        held.append(columns)
        if sum(len(part["time_ms"]) for part in held) >= _BATCH:
            yield joined(held)
            held.clear()
    if held:
        yield joined(held)


def _bulk_of(
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
