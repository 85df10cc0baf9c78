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
    least_ratio: float | None

    @property
    def text(self) -> str:
        """The target as text."""
        parts = [] if self.most_ms is None else [f"{self.most_ms:g} ms"]
        if self.least_ratio is not None:
            parts.append(f"{self.least_ratio:g} times as fast")
        return ", ".join(parts)

    def is_met(self, ours_ms: float, theirs_ms: float) -> bool:
        """Return whether the medians of one query meet it."""
        return (self.most_ms is None or ours_ms <= self.most_ms) and (
            self.least_ratio is None or theirs_ms >= self.least_ratio * ours_ms
        )


TARGETS: Final[Mapping[str, Target]] = {
    "short": Target("visitors by page or dimension, all time", 4, 12),
    "long": Target("the same with bounces and time", 6, 40),
    "short, month": Target("visitors by page or dimension, 30 days", 6, 4),
    "long, month": Target("the same with bounces and time, 30 days", 6, 10),
    "by day": Target("summary by day with the period before, 90 days", 100, 25),
    "time": Target("time, quartiles of every page, all time", None, 4),
    "filtered": Target("any, filtered by browser, page, part of the path or property", None, 3),
    "dashboard": Target("fourteen requests of a dashboard, 30 days, together", 80, None),
    "websites": Target("list of websites with summaries, beside 1,000 small ones", 10, None),
}
"""Targets at 10,000,000 views, by group of queries."""

START_MS: Final = 1_000
ANONYMOUS_BYTES: Final = 150 * 10**6
BYTES_A_VIEW: Final = 36


def group_of(query: Query) -> str:
    """Return the group of a query; "" for none."""
    if query.filters:
        return "filtered"
    if query.statistic == "summary":
        return "by day" if query.by_day and query.case != MONTH else ""
    if query.statistic == "time":
        return "time" if query.case == ALL_TIME else ""
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
    for name, target in TARGETS.items():
        under = [measured for measured in result["queries"] if measured["group"] == name]
        if under:
            met = [
                target.is_met(measured["ours"]["median_ms"], measured["theirs"]["median_ms"])
                if "theirs" in measured
                else target.is_met(measured["ours"]["median_ms"], 0)
                for measured in under
            ]
            yield target, under, sum(met)
