"""Results as tables of Markdown."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from targets import ANONYMOUS_BYTES, BYTES_A_VIEW, START_MS, groups, ratio

Result: TypeAlias = Mapping[str, Any]

_MB = 10**6
_NONE = "-"
_MANY_MS = 100
_SOME_MS = 10


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
