"""Realistic traffic of one website for any number of views, the same for the same plan.

Some 1,000,000 views a second are drawn, a day at a time; memory holds two days and one batch.
"""

from collections.abc import Iterator
from typing import Final

from audience import Audience
from bulk import Bulk
from bulk_columns import bulk_of
from content import HOSTNAME, Content
from days import Columns, Days, joined, taken
from plan import Plan

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
                yield bulk_of(taken(columns, stretch), content, audience, plan.until_ms)


def _batches(days: Days) -> Iterator[Columns]:
    held: list[Columns] = []
    for columns in days:
        held.append(columns)
        if sum(len(part["time_ms"]) for part in held) >= _BATCH:
            yield joined(held)
            held.clear()
    if held:
        yield joined(held)
