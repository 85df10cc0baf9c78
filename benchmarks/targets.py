"""Performance targets, and whether the figures meet them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from queries import ALL_TIME, DIMENSIONS, MONTH, Query

_COUNTED: Final = ("pages", *DIMENSIONS)


@frozen
class Target:
    """A target for the median of each query in a group: milliseconds, and a multiple of DuckDB."""

    title: str
    most_ms: float | None
    least_ratio: float | None = None

    @property
    def text(self) -> str:
        """The target as text."""
        parts = [] if self.most_ms is None else [f"{self.most_ms:g} ms"]
        if self.least_ratio is not None:
            parts.append(f"{self.least_ratio:g} times as fast")
        return ", ".join(parts)

    def is_met(self, measured: Mapping[str, Any]) -> bool:
        """Return whether the medians of one query meet it; without DuckDB, the milliseconds."""
        return (self.most_ms is None or measured["ours"]["median_ms"] <= self.most_ms) and (
            self.least_ratio is None
            or "theirs" not in measured
            or ratio(measured) >= self.least_ratio
        )


@frozen
class Targets:
    """The targets at one number of views."""

    views: int
    groups: Mapping[str, Target]
    """By group of queries."""
    start_ms: int
    private_bytes: int
    bytes_per_view: int


TEN_MILLION: Final = Targets(
    views=10_000_000,
    groups={
        "short": Target("visitors by page or dimension, all time", 4, 12),
        "long": Target("the same with bounces and time", 6, 40),
        "short, month": Target("visitors by page or dimension, 30 days", 6, 4),
        "long, month": Target("the same with bounces and time, 30 days", 6, 10),
        "by day": Target("summary by day with the period before, 90 days", 100, 25),
        "time": Target("time, quartiles of every page, all time", 15, 4),
        "filtered list": Target("list filtered by browser, page, part of it or property", None, 3),
        "filtered": Target("time, summary and properties with the same filters", None, 3),
        "dashboard": Target("fourteen requests of a dashboard, 30 days, together", 80),
        "filtered dashboard": Target("the same with each filter", 150),
        "dashboard query": Target("each of its requests with each filter", None, 3),
        "websites": Target("list of websites with summaries, beside 1,000 small ones", 10),
    },
    start_ms=400,
    private_bytes=150 * 10**6,
    bytes_per_view=36,
)
HUNDRED_MILLION: Final = Targets(
    views=100_000_000,
    groups={
        "short": Target("visitors by page or dimension, all time", 20),
        "long": Target("the same with bounces and time", 20),
        "short, month": Target("visitors by page or dimension, 30 days", 20),
        "long, month": Target("the same with bounces and time, 30 days", 20),
        "time": Target("time, quartiles of every page, all time", 60),
        "time, month": Target("the same, 30 days", 60),
        "filtered list": Target("list filtered by browser, page, part of it or property", 60),
    },
    start_ms=1_000,
    private_bytes=250 * 10**6,
    bytes_per_view=30,
)
SIX_TIMES: Final = 1.4
"""How many times as fast a dashboard is over six connections as over one."""
TENFOLD_TIMES: Final = 4
"""How many times more a query answered from counters may cost with ten times the views."""

TIMES_BARE: Final = 2.0
"""Hits a second, as a multiple of what a bare twisted.web server answers."""
UNLOAD_SHARE: Final = 0.8
"""Hits a second, as a share of those without TLS and unloads."""
TLS_SHARE: Final = 0.6
HIT_US: Final = 75
TIMES_DUCKDB: Final = 10
HITS_P99_MS: Final = 30
STATISTICS_P99_MS: Final = 40

EMPTY_STORE_BYTES: Final = 10**6
IDLE_BYTES: Final = 70 * 10**6
LIVE_BYTES: Final[Mapping[int, int]] = {100: 90, 1: 150}
"""Bytes on disk for a view that is not sealed yet, by the number of hits in its commit."""


def targets_of(views: int) -> Targets:
    """Return the targets that apply at a number of views."""
    return TEN_MILLION if views < HUNDRED_MILLION.views else HUNDRED_MILLION


def group_of(query: Query) -> str:
    """Return the group of a query; "" for none."""
    if query.filters:
        return "filtered list" if query.statistic in _COUNTED else "filtered"
    if query.statistic == "summary":
        return "by day" if query.by_day and query.case != MONTH else ""
    if query.statistic == "time":
        return "time" if query.case == ALL_TIME else "time, month"
    if query.statistic not in _COUNTED:
        return ""
    length = "short" if query.summary else "long"
    return length if query.case == ALL_TIME else f"{length}, month"


def ratio(measured: Mapping[str, Any]) -> float:
    """Return how many times faster than DuckDB the daemon was."""
    speed: float = measured["theirs"]["median_ms"] / measured["ours"]["median_ms"]
    return speed


def groups(result: Mapping[str, Any]) -> Iterator[tuple[Target, Sequence[Mapping[str, Any]], int]]:
    """Yield each target, the measurements it applies to, and how many of them meet it."""
    for name, target in targets_of(result["views"]).groups.items():
        under = [measured for measured in result["queries"] if measured["group"] == name]
        if under:
            yield target, under, sum(map(target.is_met, under))
