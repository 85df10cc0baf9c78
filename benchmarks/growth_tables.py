"""How cost grows with the number of views, as Markdown tables."""

from collections.abc import Sequence
from typing import Final

from tables import Result, milliseconds, table

MOST_TIMES: Final = 4
"""How many times more a query answered from counters may cost with ten times the views."""
_COUNTED: Final = ("short", "long")


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
