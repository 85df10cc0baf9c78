"""What the figures have to be, and whether they are."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen
from questions import ALL_TIME, DIMENSIONS, MONTH, Question

_COUNTED: Final = ("pages", *DIMENSIONS)


@frozen
class Bar:
    """A bound on the median of each question of a group: milliseconds, and times DuckDB's speed."""

    title: str
    most_ms: float | None
    least_ratio: float | None

    @property
    def text(self) -> str:
        """The bound, for people."""
        parts = [] if self.most_ms is None else [f"{self.most_ms:g} ms"]
        if self.least_ratio is not None:
            parts.append(f"{self.least_ratio:g} times as fast")
        return ", ".join(parts)

    def is_met(self, ours_ms: float, theirs_ms: float) -> bool:
        """Return whether the medians of one question keep to it."""
        return (self.most_ms is None or ours_ms <= self.most_ms) and (
            self.least_ratio is None or theirs_ms >= self.least_ratio * ours_ms
        )


BARS: Final[Mapping[str, Bar]] = {
    "short": Bar("visitors by page or dimension, all time", 4, 12),
    "long": Bar("the same with bounces and time", 6, 40),
    "short, month": Bar("visitors by page or dimension, 30 days", 6, 4),
    "long, month": Bar("the same with bounces and time, 30 days", 6, 10),
    "by day": Bar("summary by day with the period before, 90 days", 100, 25),
    "time": Bar("time, quartiles of every page, all time", None, 4),
    "filtered": Bar("any, filtered by browser, page, part of the path or property", None, 3),
    "dashboard": Bar("fourteen requests of a dashboard, 30 days, together", 80, None),
    "websites": Bar("list of websites with summaries, beside 1,000 small ones", 10, None),
}
"""Bars at 10,000,000 views, by group."""

START_MS: Final = 1_000
ANONYMOUS_BYTES: Final = 150 * 10**6
BYTES_A_VIEW: Final = 36


def group_of(question: Question) -> str:
    """Return the group of a question, "" for none."""
    if question.filters:
        return "filtered"
    if question.statistic == "summary":
        return "by day" if question.by_day and question.case != MONTH else ""
    if question.statistic == "time":
        return "time" if question.case == ALL_TIME else ""
    if question.statistic not in _COUNTED:
        return ""
    length = "short" if question.summary else "long"
    return length if question.case == ALL_TIME else f"{length}, month"


def ratio(measured: Mapping[str, Any]) -> float:
    """Return how many times as fast as DuckDB the daemon was."""
    speed: float = measured["theirs"]["median_ms"] / measured["ours"]["median_ms"]
    return speed


def groups(result: Mapping[str, Any]) -> Iterator[tuple[Bar, Sequence[Mapping[str, Any]], int]]:
    """Give each bar, what was measured under it, and how much of that keeps to it."""
    for name, bar in BARS.items():
        under = [measured for measured in result["questions"] if measured["group"] == name]
        if under:
            met = [
                bar.is_met(measured["ours"]["median_ms"], measured["theirs"]["median_ms"])
                if "theirs" in measured
                else bar.is_met(measured["ours"]["median_ms"], 0)
                for measured in under
            ]
            yield bar, under, sum(met)
