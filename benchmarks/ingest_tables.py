"""The results of storing hits as Markdown tables."""

from typing import Final

from tables import Result, milliseconds, table

PER_SECOND: Final = 6_000
TIMES_DUCKDB: Final = 10
P99_MS: Final = 50


def storing_table(result: Result) -> str:
    """Return the hits per second of the daemon, DuckDB and a bare server, and what visits cost."""
    ours, theirs = result["ours_per_second"], result["theirs_per_second"]
    times = ours / theirs
    rows = (
        (
            "medamad, HTTP, one core",
            f"{ours:,}",
            f"{PER_SECOND:,}",
            _is_met(ours >= PER_SECOND),
        ),
        (
            "times DuckDB with a commit for each hit, one core",
            f"{times:.1f}",
            f"{TIMES_DUCKDB}",
            _is_met(times >= TIMES_DUCKDB),
        ),
        ("DuckDB in-process, one core", f"{theirs:,}", "-", "-"),
        ("DuckDB in-process, all cores", f"{result['theirs_on_all_cores_per_second']:,}", "-", "-"),
        ("bare twisted.web, 204 and no more, one core", f"{result['bare_per_second']:,}", "-", "-"),
    )
    stored = table(("hits a second", "measured", "target", "met"), rows)
    with_us, without_us = result["hit_us"], result["hit_without_visits_us"]
    share = with_us / without_us - 1
    cost = (
        ("with visits", f"{with_us}"),
        ("without visits", f"{without_us}"),
        ("what visits cost", f"{share:.1%}"),
    )
    return f"{stored}\n\n{table(('processor time of a hit', 'µs'), cost)}"


def both_table(result: Result) -> str:
    """Return the times of hits and statistics under a mixed load."""
    rows = [
        (
            title,
            milliseconds(result[name]["median_ms"]),
            milliseconds(result[name]["p99_ms"]),
            f"{P99_MS}",
            _is_met(result[name]["p99_ms"] <= P99_MS),
        )
        for title, name in (
            (f"hit, of {result['hits_per_second']:,} a second", "hits"),
            (f"statistic over {result['views']:,} views", "statistics"),
        )
    ]
    return table(("", "median ms", "99th percentile ms", "target", "met"), rows)


def _is_met(is_met: bool) -> str:
    return "yes" if is_met else "no"
