"""The statistics as SQL for DuckDB, each in the form that was the fastest there.

Names of referrers, countries and languages are in the columns already; the reader of the rows
computes fractions. Times are Unix milliseconds: a fast group by day is an integer division.
"""

from collections.abc import Sequence
from typing import Final

from plan import DAY_MS
from queries import Filter, Query

MAX_ROWS: Final = 5_000

_COLUMNS: Final = {
    "pages": "path",
    "referrers": "source",
    "sources": "utm_source",
    "mediums": "utm_medium",
    "campaigns": "utm_campaign",
    "browsers": "browser",
    "os": "os",
    "devices": "device",
    "countries": "country",
    "languages": "language",
}
_TOTALS: Final = """
    count_if({visitor})::BIGINT, count(*),
    count_if(first_today AND duration_ms IS NOT NULL)::BIGINT,
    count_if(first_today AND duration_ms <= 5000)::BIGINT,
    quantile_cont(duration_ms, 0.5)"""


def candidates(query: Query) -> Sequence[str]:
    """Return the SQL texts that answer a query; the fastest may be used.

    `duckdb_answers` has the columns of their rows.
    """
    if query.statistic == "summary":
        return [_summary(query)]
    if query.statistic == "time":
        return [_time(query)]
    if query.statistic == "properties":
        return [_properties(query)]
    if query.summary:
        return [_short(query)]
    return [_in_one_step(query), _in_two_steps(query)]


def column(query: Query) -> str:
    """Return the column that a statistic counts."""
    if not query.grouped:
        return "referrer"
    return "locale" if query.locale else _COLUMNS[query.statistic]


def _short(query: Query) -> str:
    dimension = column(query)
    return _ordered(
        query,
        f"""SELECT {dimension}, count_if({_visitor(query)})::BIGINT AS visitors,
            count(*) AS pageviews
        FROM views {_where(query)} GROUP BY {dimension}""",  # noqa: S608 - of our own texts
    )


def _in_one_step(query: Query) -> str:
    dimension = column(query)
    return _ordered(
        query,
        f"""SELECT {dimension}, count_if({_visitor(query)})::BIGINT AS visitors,
            count(*) AS pageviews,
            count_if(first_today AND duration_ms IS NOT NULL)::BIGINT,
            count_if(first_today AND duration_ms <= 5000)::BIGINT,
            sum(duration_ms)::BIGINT
        FROM views {_where(query)} GROUP BY {dimension}""",  # noqa: S608
    )


def _in_two_steps(query: Query) -> str:
    """Return SQL that counts by the flag too, and then adds up what the flag selects."""
    dimension = column(query)
    counts, visitors = "count(*) AS n", "sum(n) FILTER (first_today)"
    if _visitor(query) == "first_of_page":
        counts, visitors = f"{counts}, count_if(first_of_page) AS of_page", "sum(of_page)"
    return _ordered(
        query,
        f"""SELECT {dimension}, coalesce({visitors}, 0)::BIGINT AS visitors,
            sum(n)::BIGINT AS pageviews,
            coalesce(sum(timed) FILTER (first_today), 0)::BIGINT,
            coalesce(sum(bounces) FILTER (first_today), 0)::BIGINT,
            sum(duration_ms)::BIGINT
        FROM (
            SELECT {dimension}, first_today, {counts}, count(duration_ms) AS timed,
                count_if(duration_ms <= 5000) AS bounces, sum(duration_ms) AS duration_ms
            FROM views {_where(query)} GROUP BY {dimension}, first_today)
        GROUP BY {dimension}""",  # noqa: S608
    )


def _ordered(query: Query, counted: str) -> str:
    """Return SQL that orders and limits rows, with both totals if there is a limit."""
    totals = ", sum(visitors) OVER (), sum(pageviews) OVER ()" if query.limit else ""
    return f"""
        SELECT *{totals} FROM ({counted})
        ORDER BY visitors DESC, pageviews DESC, {column(query)}
        LIMIT {query.limit or MAX_ROWS}"""  # noqa: S608


def _time(query: Query) -> str:
    order = "visitors DESC, round_even(quartiles[2], 0) DESC"
    if query.summary:
        order = "round(total_ms / all_ms, 4) DESC, round_even(quartiles[2], 0) DESC"
    quantiles = "[0.5, 0.5]" if query.summary else "[0.25, 0.5, 0.75]"
    return f"""
        SELECT path, visitors, total_ms, quartiles, sum(total_ms) OVER () AS all_ms FROM (
            SELECT path, count_if(first_of_page)::BIGINT AS visitors,
                sum(duration_ms)::BIGINT AS total_ms,
                quantile_cont(duration_ms, {quantiles}) AS quartiles
            FROM views {_where(query)} GROUP BY path HAVING total_ms IS NOT NULL)
        ORDER BY {order}, path LIMIT {query.limit or MAX_ROWS}"""  # noqa: S608


def _summary(query: Query) -> str:
    """Return SQL for the totals of the period, its days, and the totals of the previous period.

    Rows of (kind, day, …). The totals and the days come out of one pass.
    """
    totals = _TOTALS.format(visitor=_visitor(query))
    if not query.by_day:
        return f"SELECT 0, NULL, {totals} FROM views {_where(query)}"  # noqa: S608
    text = f"""
        SELECT grouping(day), day, {totals}
        FROM (SELECT *, time_ms // {DAY_MS} AS day FROM views {_where(query)})
        GROUP BY GROUPING SETS ((day), ())"""  # noqa: S608
    if query.previous:
        assert query.start_ms is not None
        assert query.end_ms is not None
        length_ms = query.end_ms - query.start_ms + 1
        before = (query.start_ms - length_ms, query.start_ms - 1)
        text += f"""
        UNION ALL SELECT 2, NULL, {totals}
        FROM views {_where(query, before)}"""  # noqa: S608
    return f"{text} ORDER BY 1, 2"


def _properties(query: Query) -> str:
    """Return SQL that counts rows: an event has a name once, and one row with ordinal 0."""
    by_value = any(field == "prop_name" for field, _, _ in query.filters)
    labels = "name, value" if by_value else "name"
    total = "count(*)" if by_value else "count_if(ordinal = 0)"
    own = [_condition(filter_) for filter_ in query.filters if filter_[0].startswith("prop_")]
    on_views = [filter_ for filter_ in query.filters if not filter_[0].startswith("prop_")]
    if on_views:
        conditions = " AND ".join(map(_condition, on_views))
        own.append(f"view IN (SELECT id FROM views WHERE {conditions})")  # noqa: S608
    where = _joined([*_period(query.start_ms, query.end_ms), *own])
    return f"""
        SELECT {labels}, count(*) AS events, sum({total}) OVER () AS total
        FROM properties {where} GROUP BY {labels}
        ORDER BY events DESC, {labels} LIMIT {query.limit or MAX_ROWS}"""  # noqa: S608


def _visitor(query: Query) -> str:
    fields = {field for field, *_ in query.filters}
    of_page = query.statistic == "pages" or "path" in fields
    return "first_of_page" if of_page else "first_today"


def _where(query: Query, period: tuple[int, int] | None = None) -> str:
    conditions = _period(*(period or (query.start_ms, query.end_ms)))
    on_property = [_condition(filter_) for filter_ in query.filters if "prop_" in filter_[0]]
    conditions += [_condition(filter_) for filter_ in query.filters if "prop_" not in filter_[0]]
    if on_property:
        matching = " AND ".join(on_property)
        conditions.append(f"id IN (SELECT view FROM properties WHERE {matching})")  # noqa: S608
    return _joined(conditions)


def _joined(conditions: Sequence[str]) -> str:
    return f"WHERE {' AND '.join(conditions)}" if conditions else ""


def _period(start_ms: int | None, end_ms: int | None) -> list[str]:
    first = [] if start_ms is None else [f"time_ms >= {start_ms}"]
    return first + ([] if end_ms is None else [f"time_ms <= {end_ms}"])


def _condition(filter_: Filter) -> str:
    """Return the SQL of a filter. `contains` is evaluated once for each text, not for each view."""
    field, operator, value = filter_
    named = {"prop_name": "name", "prop_value": "value"}.get(field, field)
    text = "'" + value.replace("'", "''") + "'"
    if operator == "eq":
        return f"{named} = {text}"
    assert operator == "contains"
    return (
        f"{named} IN (SELECT text FROM texts_of_{named} "  # noqa: S608
        f"WHERE contains(lower(text::VARCHAR), lower({text})))"
    )
