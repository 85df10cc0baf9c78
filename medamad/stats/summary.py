"""The summary: visitors, views, bounces and time of a period, of the one before, and over time."""

from typing import TypeAlias

import numpy as np
from attrs import evolve
from numpy.typing import NDArray

from medamad.stats.buckets import Buckets, edges
from medamad.stats.counting import Tally, tally_all, tally_series
from medamad.stats.medians import median_of, medians_of
from medamad.stats.period import Period, previous
from medamad.stats.question import Question
from medamad.stats.rows import Columns, Row, fractions, records
from medamad.stats.selecting import Selection, select
from medamad.stats.zones import zone_named
from medamad.store.parts import NO_TIME, Snapshot
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
    selection = select(snapshot, question, sources)
    of_page = question.names_page
    summary: Summary = {"current": _totals(selection, of_page)}
    if stretch_before is not None:
        summary["previous"] = _totals(selection.during(stretch_before), of_page)
    if interval is not None:
        start_ms, end_ms = _bounded(snapshot, period, now_ms)
        buckets = edges(interval, start_ms, end_ms, period.zone)
        within = Period(start_ms, end_ms)
        summary["interval"] = _series(selection.during(within), of_page, buckets)
    return summary


def _totals(selection: Selection, of_page: bool) -> Row:
    medians = np.array([median_of(selection)], np.int64)
    (row,) = records(_columns(tally_all(selection), medians, of_page))
    return row


def _series(selection: Selection, of_page: bool, buckets: Buckets) -> list[Row]:
    sums, medians = tally_series(selection, buckets), medians_of(selection, buckets)
    return records({**_columns(sums, medians, of_page), "date": buckets.dates})


def _columns(sums: Tally, medians: NDArray[np.int64], of_page: bool) -> Columns:
    return {
        "visitors": sums.visitors(of_page),
        "pageviews": sums.views,
        "bounce_percentage": fractions(sums.bounces, sums.timed_visitors),
        "duration": medians,
    }


def _bounded(snapshot: Snapshot, period: Period, now_ms: int) -> tuple[int, int]:
    """Give both bounds of a series: without a start, from the first view; without an end, to now.

    Where there is no view to begin at, the end lies before the start.
    """
    end_ms = now_ms if period.end_ms is None else period.end_ms
    if period.start_ms is not None:
        return period.start_ms, end_ms
    first_ms = min((part.time_bounds[0] for part in snapshot.parts), default=NO_TIME[0])
    return (end_ms + 1 if first_ms == NO_TIME[0] else first_ms), end_ms
