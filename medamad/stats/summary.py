"""The summary: visitors, views, bounces and time of a period, of the one before, and over time."""

from typing import TypeAlias

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from medamad.stats.buckets import Buckets, edges
from medamad.stats.counting import Tally, tally, tally_all
from medamad.stats.period import Period, previous
from medamad.stats.quantiles import by_group, median
from medamad.stats.question import Question
from medamad.stats.rows import Row, fractions
from medamad.stats.selecting import ViewFilter, view_filter
from medamad.stats.zones import zone_named
from medamad.store.parts import Snapshot
from medamad.vocabulary.sources import Sources

Summary: TypeAlias = dict[str, Row | list[Row]]


def report(
    snapshot: Snapshot,
    question: Question,
    sources: Sources,
    *,
    now_ms: int,
    with_previous: bool = False,
    interval: str | None = None,
    timezone: str | None = None,
) -> Summary:
    """Give `current`, and on demand `previous` and the `interval` series.

    `interval` is one of `buckets.INTERVALS`. `timezone` names an IANA zone, in place of the
    offset of the period's start. `now_ms` ends a series without an end; take it after the
    snapshot. BadRequest for an unknown interval or zone, for too many buckets, and for
    `previous` without both bounds.
    """
    period = question.period
    stretch_before = previous(period) if with_previous else None
    if timezone is not None:
        period = evolve(period, zone=zone_named(timezone))
    selection = view_filter(snapshot, question, sources)
    of_page = question.names_page
    summary: Summary = {"current": _totals(selection, snapshot, period, of_page)}
    if stretch_before is not None:
        summary["previous"] = _totals(selection, snapshot, stretch_before, of_page)
    if interval is not None:
        start_ms, end_ms = _bounded(snapshot, period, now_ms)
        buckets = edges(interval, start_ms, end_ms, period.zone)
        within = Period(start_ms, end_ms)
        summary["interval"] = _series(selection, snapshot, within, of_page, buckets)
    return summary


def _totals(selection: ViewFilter, snapshot: Snapshot, period: Period, of_page: bool) -> Row:
    chosen = list(selection.choose(snapshot.parts, period))
    medians = np.array([median([views.duration_ms[views.timed] for views in chosen])], np.int64)
    (row,) = _rows(tally_all(chosen), medians, of_page)
    return row


def _series(
    selection: ViewFilter, snapshot: Snapshot, period: Period, of_page: bool, buckets: Buckets
) -> list[Row]:
    chosen = list(selection.choose(snapshot.parts, period))
    pieces = [(buckets.of(views.time_ms), views) for views in chosen]
    spread = by_group(
        [numbers[views.timed] for numbers, views in pieces],
        [views.duration_ms[views.timed] for views in chosen],
        len(buckets.dates),
    )
    sums = tally(pieces, len(buckets.dates))
    rows = _rows(sums, spread.quartile(2), of_page)
    for row, date in zip(rows, buckets.dates, strict=True):
        row["date"] = date
    return rows


def _rows(sums: Tally, medians: NDArray[np.int64], of_page: bool) -> list[Row]:
    columns = (
        sums.visitors(of_page).tolist(),
        sums.views.tolist(),
        fractions(sums.bounces, sums.timed_visitors).tolist(),
        medians.tolist(),
    )
    return [
        {"visitors": visitors, "pageviews": views, "bounce_percentage": bounces, "duration": middle}
        for visitors, views, bounces, middle in zip(*columns, strict=True)
    ]


def _bounded(snapshot: Snapshot, period: Period, now_ms: int) -> tuple[int, int]:
    """Give both bounds of a series: without a start, from the first view; without an end, to now.

    Where there is no view to begin at, the end lies before the start.
    """
    end_ms = now_ms if period.end_ms is None else period.end_ms
    if period.start_ms is not None:
        return period.start_ms, end_ms
    return min((part.least_ms for part in snapshot.parts if len(part)), default=end_ms + 1), end_ms
