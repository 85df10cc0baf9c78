"""DuckDB's rows in the form of the daemon's responses."""

from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from duckdb_sql import column
from plan import DAY_MS
from queries import Query

Rows: TypeAlias = list[tuple[Any, ...]]

_NAMES: Final = {"utm_source": "source", "utm_medium": "medium", "utm_campaign": "campaign"}
_TOTAL: Final = 1
_PREVIOUS: Final = 2


def answer(query: Query, rows: Rows) -> object:
    """Return the answer to a query."""
    if query.statistic == "summary":
        return _summary(query, rows)
    if query.statistic == "time":
        return [_time(query, *row) for row in rows]
    if query.statistic == "properties":
        return [_property(*labels, events, total) for *labels, events, total in rows]
    return _counted(query, rows)


def _counted(query: Query, rows: Rows) -> list[dict[str, Any]]:
    """Rows of (name, visitors, views), bounces, time, and so on; with a limit, both totals."""
    if query.limit is None:
        all_visitors, all_views = (sum(row[place] for row in rows) for place in (1, 2))
    else:
        all_visitors, all_views = rows[0][-2:] if rows else (0, 0)
    found = []
    for name, visitors, views, *further in rows:
        row = {
            _name(query): name,
            "visitors": visitors,
            "visitors_percentage": _fraction(visitors, all_visitors),
        }
        if not query.summary:
            timed, bounces, duration_ms = further[:3]
            if query.statistic == "pages":
                row["pageviews"] = views
                row["pageviews_percentage"] = _fraction(views, all_views)
            row["bounce_percentage"] = _fraction(bounces, timed)
            row["duration"] = duration_ms or 0
        found.append(row)
    return found


def _name(query: Query) -> str:
    if query.statistic == "languages":
        return "language"
    if query.statistic == "referrers":
        return "referrer"
    return _NAMES.get(column(query), column(query))


def _time(query: Query, *figures: Any) -> dict[str, Any]:
    path, visitors, total_ms, quartiles, all_ms = figures
    row = {
        "path": path,
        "duration": round(quartiles[1]),
        "duration_percentage": _fraction(total_ms, all_ms),
    }
    if not query.summary:
        row["visitors"] = visitors
        row["duration_upper_quartile"] = round(quartiles[2])
        row["duration_lower_quartile"] = round(quartiles[0])
    return row


def _property(name: str, *rest: Any) -> dict[str, Any]:
    *value, events, total = rest
    return {
        "name": name,
        **({"value": value[0]} if value else {}),
        "events": events,
        "events_percentage": _fraction(events, total),
    }


def _summary(query: Query, rows: Rows) -> dict[str, Any]:
    totals = {kind: _totals(*figures) for kind, day, *figures in rows if day is None}
    if not query.by_day:
        return {"current": totals[0]}
    assert query.start_ms is not None
    assert query.end_ms is not None
    days = {day: _totals(*figures) for kind, day, *figures in rows if kind == 0}
    found: dict[str, Any] = {"current": totals[_TOTAL]}
    if query.previous:
        found["previous"] = totals[_PREVIOUS]
    found["interval"] = [
        {**days.get(day, _totals(0, 0, 0, 0, None)), "date": _date(day)}
        for day in range(query.start_ms // DAY_MS, query.end_ms // DAY_MS + 1)
    ]
    return found


def _totals(
    visitors: int | None,
    views: int,
    timed: int | None,
    bounces: int | None,
    median_ms: float | None,
) -> dict[str, Any]:
    """Without any views, all columns but their number are NULL."""
    return {
        "visitors": visitors or 0,
        "pageviews": views,
        "bounce_percentage": _fraction(bounces or 0, timed or 0),
        "duration": round(median_ms or 0),
    }


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * DAY_MS / 1000, UTC).isoformat()


def _fraction(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0
