"""What changed, over HTTP: thirty days and the thirty before, with twelve earlier weeks.

    python benchmarks/changes.py [--views 10000000] [--repeat 21] [--data DIR] [--out DIR]

The first request of each metric reads every segment; the others find what it kept. Both are shown.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from content import HOSTNAME
from daemon_setup import Daemon, address, asker, daemon_on
from measurements import Times
from plan import DAY_MS
from queries import MONTH, Filter, Query
from query_times import time_queries

from medamad.query.change_counts import METRICS, OF_GOAL

_UNFILTERED_MS: Final = 60.0
_FILTERED_MS: Final = 150.0
_DAYS: Final = 150
"""The two periods and the earlier weeks, and a few days more."""
_PAGE: Final = "/journal/frost"
_GOAL: Final = {
    "name": "Ordered",
    "event": "action",
    "value": "order",
    "revenue": "product",
    "currency": "EUR",
}
_FILTERS: Final[tuple[Filter, ...]] = (
    ("browser", "eq", "Firefox"),
    ("path", "eq", _PAGE),
    ("referrer", "contains", "google"),
    ("entry_page", "eq", _PAGE),
    ("exit_page", "eq", _PAGE),
    ("prop_name", "eq", "action"),
)


def measure(folder: Path, until_ms: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Return the times of each metric, without and with each filter."""
    bounds = {"start_ms": until_ms - 30 * DAY_MS, "end_ms": until_ms - 1}
    with daemon_on(folder) as (daemon, _):
        goal = _define(daemon)
        with asker(daemon) as our:
            for filters in ((), *((each,) for each in _FILTERS)):
                case = ", ".join([MONTH, *(" ".join(each) for each in filters)])
                for metric in METRICS:
                    query = Query("changes", case=case, filters=filters, **bounds)
                    where = f"{address(query)}&metric={metric}"
                    if metric in OF_GOAL:
                        where += f"&conversions={goal}"
                    first_ms = our.ask(where)[1]
                    times = Times([our.ask(where)[1] for _ in range(repeat)])
                    yield {
                        "name": f"{metric}, {case}",
                        "target_ms": _FILTERED_MS if filters else _UNFILTERED_MS,
                        "first_ms": round(first_ms, 1),
                        **times.figures,
                    }


def _define(daemon: Daemon) -> str:
    """Define the goal and return its id."""
    owner, goals = daemon.client(), f"/api/websites/{HOSTNAME}/goals"
    # An earlier run may have left it in a folder that is kept.
    for defined in owner.get(goals):
        owner.request("DELETE", f"{goals}/{defined['id']}")
    goal_id: str = owner.request("POST", goals, _GOAL).json["id"]
    return goal_id


if __name__ == "__main__":
    time_queries("changes", __doc__, measure, days=_DAYS)
