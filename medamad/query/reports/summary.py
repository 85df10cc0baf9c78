"""The summary: visitors, views, bounces and time of a period, of the one before, and over time."""

from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

from attrs import evolve

from medamad.domain.zones import zone_named
from medamad.lookup.referrers import Sources
from medamad.query.aggregate import figures_of_time
from medamad.query.buckets import edges
from medamad.query.period import Period, previous
from medamad.query.request import Question
from medamad.query.rows import Columns, Row, records
from medamad.query.scan import select
from medamad.query.series import Series, series_of, whole_of
from medamad.storage.segments.parts import (
    NO_TIME,
)
from medamad.storage.segments.snapshot import Missing, Snapshot

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
    series, whole = None, None
    if interval is not None:
        start_ms, end_ms = _bounded(snapshot, period, now_ms)
        buckets = edges(interval, start_ms, end_ms, period.zone)
        in_parts = evolve(selection, period=Period(start_ms, end_ms), missing=Missing.INTERVAL)
        series = series_of(in_parts, buckets)
        is_up_to_now = all(
            end_ms >= each.time_bounds[1] for each in chain(snapshot.parts, snapshot.days)
        )
        if (is_up_to_now or period.end_ms) and not snapshot.missed.days(Missing.INTERVAL):
            # All the views of the period are in the series.
            whole = series.whole
    (current,) = _rows(whole or whole_of(selection), question)
    summary: Summary = {"current": current}
    if stretch_before is not None:
        before = whole_of(selection.during(stretch_before))
        (summary["previous"],) = _rows(before, question)
    if series is not None:
        summary["interval"] = _rows(series, question, buckets.dates)
    return summary


def _rows(series: Series, question: Question, dates: Sequence[str] | None = None) -> list[Row]:
    sums = series.sums
    columns: Columns = {
        "visitors": sums.visitors(question.names_page),
        "pageviews": sums.views,
        **figures_of_time(sums, series.medians, question),
    }
    return records(columns if dates is None else {**columns, "date": dates})


def _bounded(snapshot: Snapshot, period: Period, now_ms: int) -> tuple[int, int]:
    """Return both bounds of a series: without a start, from the first view; without an end, to now.

    Where there is no view to begin at, the end lies before the start.
    """
    end_ms = now_ms if period.end_ms is None else period.end_ms
    if period.start_ms is not None:
        return period.start_ms, end_ms
    first_ms = min(
        (each.time_bounds[0] for each in chain(snapshot.parts, snapshot.days)), default=NO_TIME[0]
    )
    return (end_ms + 1 if first_ms == NO_TIME[0] else first_ms), end_ms
