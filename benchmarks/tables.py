"""Results as tables of Markdown."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from targets import ANONYMOUS_BYTES, BYTES_A_VIEW, START_MS, groups, ratio

Result: TypeAlias = Mapping[str, Any]

_MB = 10**6
_NONE = "-"
_MANY_MS = 100
_SOME_MS = 10
MOST_TIMES: Final = 4
"""How many times more a query answered from counters may cost with ten times the views."""
_COUNTED: Final = ("short", "long")

PER_SECOND: Final = 6_000
TIMES_DUCKDB: Final = 10
P99_MS: Final = 50


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; all columns but the first are figures."""
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def targets_table(result: Result) -> str:
    """Return the targets and the figures that were measured."""
    return table(
        ("query", "target", "slowest median", "least ratio to DuckDB", "met"),
        [*_query_targets(result), *_further_targets(result)],
    )


def _query_targets(result: Result) -> Iterator[tuple[str, ...]]:
    for target, under, met in groups(result):
        slowest = max(under, key=lambda measured: measured["ours"]["median_ms"])
        compared = [measured for measured in under if "theirs" in measured]
        least = min(compared, key=ratio) if compared else None
        yield (
            target.title,
            target.text,
            f"{milliseconds(slowest['ours']['median_ms'])} ms{_called(slowest, under)}",
            f"{ratio(least):.1f}{_called(least, under)}" if least else _NONE,
            "yes" if met == len(under) else f"{met} of {len(under)}",
        )


def _called(measured: Result, among: Sequence[Result]) -> str:
    return f" ({measured['name']})" if len(among) > 1 else ""


def _further_targets(result: Result) -> Iterator[tuple[str, ...]]:
    start_ms = result["start"]["median_ms"]
    anonymous = result["memory"]["anonymous"]
    ours, theirs = (result["disk"][engine] / result["views"] for engine in ("ours", "theirs"))
    figures = (
        (
            "start until it answers",
            f"{START_MS:,} ms",
            f"{milliseconds(start_ms)} ms",
            start_ms <= START_MS,
        ),
        (
            "private anonymous memory after every query",
            f"{ANONYMOUS_BYTES // _MB} MB",
            f"{anonymous / _MB:.0f} MB",
            anonymous <= ANONYMOUS_BYTES,
        ),
    )
    for title, target, figure, is_met in figures:
        yield title, target, figure, _NONE, "yes" if is_met else "no"
    yield (
        "disk, for each view",
        f"{BYTES_A_VIEW} bytes",
        f"{ours:.1f} bytes",
        f"{theirs / ours:.2f} ({theirs:.1f} bytes)",
        "yes" if ours <= BYTES_A_VIEW else "no",
    )


def queries_table(result: Result) -> str:
    """Return every query that was compared, median and 99th percentile of both."""
    return table(
        ("query", "medamad ms", "p99", "DuckDB ms", "p99", "ratio"),
        [
            (
                measured["name"],
                milliseconds(measured["ours"]["median_ms"]),
                milliseconds(measured["ours"]["p99_ms"]),
                milliseconds(measured["theirs"]["median_ms"]) if "theirs" in measured else _NONE,
                milliseconds(measured["theirs"]["p99_ms"]) if "theirs" in measured else _NONE,
                f"{ratio(measured):.1f}" if "theirs" in measured else _NONE,
            )
            for measured in result["queries"]
        ],
    )


def machine_lines(result: Result) -> str:
    """Return what the figures were measured on and by which command."""
    machine = result["machine"]
    versions = ", ".join(
        f"{title} {machine[name]}"
        for title, name in (
            ("Python", "python"),
            ("Twisted", "twisted"),
            ("lmdb", "lmdb"),
            ("numpy", "numpy"),
            ("DuckDB", "duckdb"),
        )
    )
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB; "
        f"{versions}. Measured by `{result['command']}`."
    )


def milliseconds(value: float) -> str:
    """Return a time as text with its significant digits."""
    if value >= _MANY_MS:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= _SOME_MS else f"{value:.2f}"


def growth_table(results: Sequence[Result], names: Sequence[str]) -> str:
    """Return the medians of some queries at each number of views, ours and DuckDB's."""
    by_views = [
        {measured["name"]: measured for measured in result["queries"]} for result in results
    ]
    return table(
        ("query", *(f"{result['views']:,} views" for result in results)),
        [
            (
                name,
                *(
                    f"{milliseconds(found[name]['ours']['median_ms'])} / "
                    f"{milliseconds(found[name]['theirs']['median_ms'])}"
                    for found in by_views
                ),
            )
            for name in names
        ],
    )


def tenfold_table(fewer: Result, more: Result) -> str:
    """Return by which factor the cost grows of queries that are answered from counters."""
    before = {measured["name"]: measured["ours"]["median_ms"] for measured in fewer["queries"]}
    times = {
        measured["name"]: measured["ours"]["median_ms"] / before[measured["name"]]
        for measured in more["queries"]
        if measured["group"] in _COUNTED
    }
    worst = max(times, key=lambda name: times[name])
    met = sum(grown <= MOST_TIMES for grown in times.values())
    return table(
        ("all time, unfiltered", "times the cost, at most", "target", "met"),
        [
            (
                f"{more['views']:,} views for {fewer['views']:,}",
                f"{times[worst]:.1f} ({worst})",
                f"{MOST_TIMES}",
                "yes" if met == len(times) else f"{met} of {len(times)}",
            )
        ],
    )


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
