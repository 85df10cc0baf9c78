"""Results as tables of Markdown."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any, Final, TypeAlias

from targets import (
    EMPTY_STORE_BYTES,
    HIT_US,
    HITS_P99_MS,
    IDLE_BYTES,
    LIVE_BYTES,
    SIX_TIMES,
    STATISTICS_P99_MS,
    TENFOLD_TIMES,
    TIMES_BARE,
    TIMES_DUCKDB,
    TLS_SHARE,
    UNLOAD_SHARE,
    groups,
    ratio,
    targets_of,
)

Result: TypeAlias = Mapping[str, Any]
Row: TypeAlias = tuple[str, ...]

_MB: Final = 10**6
_NONE: Final = "-"
_MANY_MS: Final = 100
_SOME_MS: Final = 10
_COUNTED: Final = ("short", "long")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; all columns but the first are figures."""
    lines = [heads, ["---", *("---:" for _ in heads[1:])], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def milliseconds(value: float) -> str:
    """Return a time as text with its significant digits."""
    if value >= _MANY_MS:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= _SOME_MS else f"{value:.2f}"


def measured_by(result: Result) -> str:
    """Return how many views were measured, if that was an argument, and by which command."""
    views = f"{result['views']:,} views. " if "views" in result else ""
    return f"{views}Measured by `{result['command']}`."


def machine_lines(result: Result, noise: Result) -> str:
    """Return which machine and versions the figures are from, and how quiet it was."""
    machine = result["machine"]
    versions = ", ".join(
        f"{title} {machine[name]}"
        for title, name in (
            ("medamad", "medamad"),
            ("Python", "python"),
            ("Twisted", "twisted"),
            ("lmdb", "lmdb"),
            ("numpy", "numpy"),
            ("DuckDB", "duckdb"),
        )
    )
    loops_ms = noise["loop_ms"]
    least, middle, most = min(loops_ms), median(loops_ms), max(loops_ms)
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB; "
        f"{versions}.\n\n"
        f"How quiet it was: between the benchmarks, a fixed loop on one core ran {len(loops_ms)} "
        f"times, in {least:.1f} to {most:.1f} ms (median {middle:.1f}); on a quiet machine it "
        f"always takes as long. Other machines on the same host took {noise['stolen']:.1%} of the "
        f"processor time (steal)."
    )


def targets_table(result: Result) -> str:
    """Return the targets of a comparison and the figures that were measured."""
    return table(
        ("query", "target", "slowest median", "least ratio to DuckDB", "met"),
        [*_query_targets(result), *_six_targets(result), *_further_targets(result)],
    )


def _query_targets(result: Result) -> Iterator[Row]:
    for target, under, met in groups(result):
        slowest = max(under, key=lambda measured: measured["ours"]["median_ms"])
        compared = [measured for measured in under if "theirs" in measured]
        least = min(compared, key=ratio) if compared else None
        yield (
            target.title,
            target.text,
            f"{milliseconds(slowest['ours']['median_ms'])} ms{_called(slowest, under)}",
            f"{ratio(least):.1f}{_called(least, under)}" if least else _NONE,
            _met_of(met, len(under)),
        )


def _six_targets(result: Result) -> Iterator[Row]:
    """Yield how much faster the slowest and the fastest dashboard are over six connections."""
    times = {
        measured["name"]: measured["ours"]["median_ms"] / measured["six"]["median_ms"]
        for measured in result["queries"]
        if "six" in measured
    }
    least = min(times, key=lambda name: times[name])
    yield (
        "dashboards over six connections",
        f"{SIX_TIMES:g} times as fast as over one",
        f"{times[least]:.2f} times ({least})",
        _NONE,
        _met_of(sum(value >= SIX_TIMES for value in times.values()), len(times)),
    )


def _called(measured: Result, among: Sequence[Result]) -> str:
    return f" ({measured['name']})" if len(among) > 1 else ""


def _further_targets(result: Result) -> Iterator[Row]:
    targets = targets_of(result["views"])
    start_ms, anonymous = result["start"]["median_ms"], result["memory"]["anonymous"]
    disk = {engine: size / result["views"] for engine, size in result["disk"].items()}
    theirs = _NONE
    if "theirs" in disk:
        theirs = f"{disk['theirs'] / disk['ours']:.2f} ({disk['theirs']:.1f} bytes)"
    yield (
        "start until it responds",
        f"{targets.start_ms:,} ms",
        f"{milliseconds(start_ms)} ms",
        _NONE,
        _met(start_ms <= targets.start_ms),
    )
    yield (
        "private memory after every query",
        f"{targets.private_bytes // _MB} MB",
        f"{anonymous / _MB:.0f} MB",
        _NONE,
        _met(anonymous <= targets.private_bytes),
    )
    yield (
        "disk, for each view",
        f"{targets.bytes_per_view} bytes",
        f"{disk['ours']:.1f} bytes",
        theirs,
        _met(disk["ours"] <= targets.bytes_per_view),
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


def growth_table(results: Sequence[Result], names: Sequence[str]) -> str:
    """Return the medians of some queries at each number of views, ours and DuckDB's."""
    by_views = [
        {measured["name"]: measured for measured in result["queries"]} for result in results
    ]
    return table(
        ("query", *(f"{result['views']:,} views" for result in results)),
        [(name, *(_both(found[name]) for found in by_views)) for name in names],
    )


def _both(measured: Result) -> str:
    sides = [measured[side] for side in ("ours", "theirs") if side in measured]
    return " / ".join(milliseconds(side["median_ms"]) for side in sides)


def tenfold_table(fewer: Result, more: Result) -> str:
    """Return by which factor the cost grows of queries that are answered from counters."""
    before = {measured["name"]: measured["ours"]["median_ms"] for measured in fewer["queries"]}
    times = {
        measured["name"]: measured["ours"]["median_ms"] / before[measured["name"]]
        for measured in more["queries"]
        if measured["group"] in _COUNTED
    }
    worst = max(times, key=lambda name: times[name])
    met = sum(grown <= TENFOLD_TIMES for grown in times.values())
    return table(
        ("all time, unfiltered", "times the cost, at most", "target", "met"),
        [
            (
                f"{more['views']:,} views for {fewer['views']:,}",
                f"{times[worst]:.1f} ({worst})",
                f"{TENFOLD_TIMES}",
                _met_of(met, len(times)),
            )
        ],
    )


def storing_table(result: Result) -> str:
    """Return the hits per second of the daemon, DuckDB and a bare server, and a hit's cost."""
    ours, bare = result["ours_per_second"], result["bare_per_second"]
    rows = [
        ("medamad, HTTP, one core", f"{ours:,}", _NONE, _NONE),
        ("bare twisted.web, 204 and no more, one core", f"{bare:,}", _NONE, _NONE),
        _least("medamad, as a multiple of that", ours / bare, TIMES_BARE),
        *(
            _least(title, result[key] / ours, share)
            for title, key, share in (
                ("with an unload for each view, as a share", "unload_per_second", UNLOAD_SHARE),
                ("over TLS, as a share", "tls_per_second", TLS_SHARE),
            )
            if key in result
        ),
        _least(
            "times DuckDB with a commit for each hit, one core",
            ours / result["theirs_per_second"],
            TIMES_DUCKDB,
        ),
        ("DuckDB in-process, one core", f"{result['theirs_per_second']:,}", _NONE, _NONE),
        (
            "DuckDB in-process, all cores",
            f"{result['theirs_on_all_cores_per_second']:,}",
            _NONE,
            _NONE,
        ),
    ]
    with_us, without_us = result["hit_us"], result["hit_without_visits_us"]
    cost = (
        ("with visits", f"{with_us}", f"{HIT_US}", _met(with_us <= HIT_US)),
        ("with `visits = false`", f"{without_us}", _NONE, _NONE),
        ("what visits cost", f"{with_us / without_us - 1:.1%}", _NONE, _NONE),
    )
    return (
        f"{table(('hits a second', 'measured', 'target', 'met'), rows)}\n\n"
        f"{table(('processor time of a hit', 'µs', 'target', 'met'), cost)}"
    )


def _least(title: str, measured: float, target: float) -> Row:
    return title, f"{measured:.2f}", f"{target:g}", _met(measured >= target)


def both_table(result: Result) -> str:
    """Return the times of hits and statistics under a mixed load, and of each alone."""
    rows = [
        (
            title,
            milliseconds(result[f"{name}_alone"]["median_ms"]),
            milliseconds(result[f"{name}_alone"]["p99_ms"]),
            milliseconds(result[name]["median_ms"]),
            milliseconds(result[name]["p99_ms"]),
            f"{p99_ms}",
            _met(result[name]["p99_ms"] <= p99_ms),
        )
        for title, name, p99_ms in (
            (f"hit, of {result['hits_per_second']:,} a second", "hits", HITS_P99_MS),
            (f"statistic over {result['views']:,} views", "statistics", STATISTICS_P99_MS),
        )
    ]
    loads = result["loads"]
    heads = ("", "alone, median ms", "p99", "both, median ms", "p99", "target", "met")
    return (
        f"{table(heads, rows)}\n\n"
        f"The load average of the machine was {min(loads):.1f} to {max(loads):.1f}."
    )


def visits_table(result: Result) -> str:
    """Return the times of each statistic of visits, goals and funnels."""
    return table(
        ("query", "median ms", "p99", "first request ms", "target", "met"),
        [
            (
                measured["name"],
                milliseconds(measured["median_ms"]),
                milliseconds(measured["p99_ms"]),
                milliseconds(measured["first_ms"]),
                f"{measured['target_ms']:g}",
                _met(measured["median_ms"] <= measured["target_ms"]),
            )
            for measured in result["queries"]
        ],
    )


def footprint_table(result: Result) -> str:
    """Return what an empty store and views that are not sealed yet take up."""
    store, idle = result["empty_store_bytes"], result["idle_bytes"]
    rows = [
        (
            "empty store on disk",
            f"{store / _MB:.2f} MB",
            f"{EMPTY_STORE_BYTES // _MB} MB",
            _met(store <= EMPTY_STORE_BYTES),
        ),
        (
            "private memory of an idle daemon on it",
            f"{idle / _MB:.0f} MB",
            f"{IDLE_BYTES // _MB} MB",
            _met(idle <= IDLE_BYTES),
        ),
        ("its start until it responds", f"{result['start_ms']:.0f} ms", _NONE, _NONE),
    ]
    for size, target in LIVE_BYTES.items():
        measured = result["live_bytes"][str(size)]
        commits = "a commit for each" if size == 1 else f"commits of {size}"
        rows.append(
            (
                f"plain view that is not sealed yet, {commits}",
                f"{measured:.0f} bytes",
                f"{target} bytes",
                _met(measured <= target),
            )
        )
    return table(("", "measured", "target", "met"), rows)


def _met(is_met: bool) -> str:
    return "yes" if is_met else "no"


def _met_of(met: int, count: int) -> str:
    return "yes" if met == count else f"{met} of {count}"
