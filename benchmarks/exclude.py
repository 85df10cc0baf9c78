"""Statistics over HTTP with three exclusions and without, compared with how fast they are to be.

    python benchmarks/exclude.py [--views 10000000] [--repeat 21] [--data DIR] [--out DIR]

Without filters, 30 ms; under filters, twice the time that it takes without exclusions. The first
request of each finds what is left out; the others find what it kept. Both are shown.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from content import HOSTNAME
from daemon_setup import Daemon, address, asker, daemon_on
from measurements import Times
from plan import DAY_MS
from queries import ALL_TIME, MONTH, Filter, Query
from query_times import time_queries

_UNFILTERED_MS: Final = 30.0
MOST_TIMES: Final = 2.0
EXCLUSIONS: Final = f"/api/websites/{HOSTNAME}/exclusions"
_FILTERS: Final[tuple[tuple[Filter, ...], ...]] = (
    (),
    (("browser", "eq", "Firefox"),),
    (("path", "contains", "/a"),),
)


def queries(until_ms: int) -> Iterator[tuple[str, bool]]:
    """Return the URL path of each query, and whether it has filters."""
    bounds = {"start_ms": until_ms - 30 * DAY_MS, "end_ms": until_ms - 1}
    for where in ({"case": ALL_TIME}, {"case": MONTH, **bounds}):
        for filters in _FILTERS:
            wanted = {**where, "filters": filters}
            has_filters = bool(filters)
            yield address(Query("summary", **wanted)) + "&visits=true", has_filters
            for statistic in ("pages", "referrers", "browsers"):
                yield address(Query(statistic, limit=10, **wanted)) + "&visits=true", has_filters
            for statistic in ("time", "entries", "exits", "properties"):
                yield address(Query(statistic, limit=10, **wanted)), has_filters
    by_day = Query("summary", by_day=True, previous=True, case=MONTH, **bounds)
    yield address(by_day) + "&visits=true", False


def rules(until_ms: int) -> Iterator[dict[str, str]]:
    """Return three exclusions: a flood of a day, and two of all time."""
    start, end = (
        datetime.fromtimestamp((until_ms - days * DAY_MS) / 1000, UTC).isoformat()
        for days in (20, 19)
    )
    yield {"name": "Flood", "filters": "browser=Chrome", "start": start, "end": end}
    yield {"name": "Ours", "filters": "country=Germany&browser=Firefox"}
    yield {"name": "Entries", "filters": "entry_page=/journal/frost&os=Linux"}


def remove_all(daemon: Daemon) -> None:
    """Remove all exclusions: an earlier run may have left some in a folder that is kept."""
    owner = daemon.client()
    for rule in owner.get(EXCLUSIONS):
        owner.request("DELETE", f"{EXCLUSIONS}/{rule['id']}")


def measure(folder: Path, until_ms: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Return the times of each query without exclusions and with them."""
    with daemon_on(folder) as (daemon, _), asker(daemon) as our:
        remove_all(daemon)
        without = {}
        for path, _ in queries(until_ms):
            our.ask(path)
            without[path] = Times([our.ask(path)[1] for _ in range(repeat)]).figures["median_ms"]
        for rule in rules(until_ms):
            assert daemon.client().request("POST", EXCLUSIONS, rule).status == 201  # noqa: PLR2004
        for path, has_filters in queries(until_ms):
            first_ms = our.ask(path)[1]
            times = Times([our.ask(path)[1] for _ in range(repeat)])
            yield {
                "name": path.removeprefix(f"/api/website/{HOSTNAME}/"),
                "target_ms": without[path] * MOST_TIMES if has_filters else _UNFILTERED_MS,
                "without_ms": without[path],
                "first_ms": round(first_ms, 1),
                **times.figures,
            }
        remove_all(daemon)


if __name__ == "__main__":
    time_queries("exclude", __doc__, measure)
