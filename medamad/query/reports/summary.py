"""The summary: visitors, views, bounces and durations of a period, and its series."""

from collections.abc import Sequence
from itertools import chain
from typing import TypeAlias

from attrs import evolve, frozen

from medamad.domain.zones import zone_named
from medamad.lookup.referrers import Sources
from medamad.query.aggregate import bounces_and_durations
from medamad.query.buckets import make_buckets
from medamad.query.period import Period, previous_period
from medamad.query.request import Cancellation, Query
from medamad.query.result import Gap, Result
from medamad.query.rows import Columns, Row, make_rows
from medamad.query.scan import select
from medamad.query.series import Series, series_of, total_of
from medamad.storage.segments.parts import NO_TIME
from medamad.storage.segments.snapshot import Snapshot

Summary: TypeAlias = dict[str, Row | list[Row]]


@frozen(kw_only=True)
class Options:
    """What a summary includes besides the figures of the period.

    `now_ms` ends a series that has no end; take it after the snapshot. `interval` is one of
    `buckets.INTERVALS`. `timezone` names an IANA zone, which replaces the UTC offset of the
    period's start.
    """

    now_ms: int
    previous: bool = False
    interval: str | None = None
    timezone: str | None = None


def report(
    snapshot: Snapshot,
    query: Query,
    sources: Sources,
    cancellation: Cancellation,
    *,
    options: Options,
) -> Result[Summary]:
    """Return the figures `current`, and on demand `previous` and the series `interval`.

    Raise BadRequest for an unknown interval or zone, for too many buckets, and for `previous`
    without both bounds of the period.
    """
    period = query.period
    period_before = previous_period(period) if options.previous else None
    if options.timezone is not None:
        period = evolve(period, zone=zone_named(options.timezone))
    selection = select(snapshot, query, sources, cancellation)
    series, total = None, None
    if options.interval is not None:
        start_ms, end_ms = _bounds(snapshot, period, options.now_ms)
        buckets = make_buckets(options.interval, start_ms, end_ms, period.zone)
        bounded = evolve(selection, period=Period(start_ms, end_ms), gap=Gap.INTERVAL)
        series = series_of(bounded, buckets)
        is_complete = all(
            end_ms >= each.time_bounds[1] for each in chain(snapshot.parts, snapshot.rollups)
        )
        if (is_complete or period.end_ms) and not series.tally.gaps.days(Gap.INTERVAL):
            # All views of the period are in the series.
            total = series.total
    current = total or total_of(selection)
    (row,) = _rows(current, query)
    summary: Summary = {"current": row}
    gaps = current.tally.gaps
    if period_before is not None:
        before = total_of(selection.during(period_before))
        (summary["previous"],) = _rows(before, query)
        gaps |= before.tally.gaps
    if series is not None:
        summary["interval"] = _rows(series, query, buckets.dates)
        gaps |= series.tally.gaps
    return Result(summary, gaps)


def _rows(series: Series, query: Query, dates: Sequence[str] | None = None) -> list[Row]:
    sums = series.tally
    columns: Columns = {
        "visitors": sums.visitors(of_page=query.has_path_filter),
        "pageviews": sums.views,
        **bounces_and_durations(sums, series.medians_ms, query),
    }
    return make_rows(columns if dates is None else {**columns, "date": dates})


def _bounds(snapshot: Snapshot, period: Period, now_ms: int) -> tuple[int, int]:
    """Return both bounds of a series: without a start, the first view; without an end, now.

    If there is no view to start at, the end is before the start.
    """
    end_ms = now_ms if period.end_ms is None else period.end_ms
    if period.start_ms is not None:
        return period.start_ms, end_ms
    first_ms = min(
        (each.time_bounds[0] for each in chain(snapshot.parts, snapshot.rollups)),
        default=NO_TIME[0],
    )
    return (end_ms + 1 if first_ms == NO_TIME[0] else first_ms), end_ms
