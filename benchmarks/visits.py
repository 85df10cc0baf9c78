"""Statistics of visits, goals and funnels over HTTP, compared with how fast they are to be.

    python benchmarks/visits.py [--views 10000000] [--repeat 21] [--data DIR] [--out DIR]

The first request of each reads every segment; the others find what it kept. Both are shown.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import evolve, frozen
from content import HOSTNAME
from daemon_setup import Daemon, address, asker, daemon_on
from measurements import Times
from plan import DAY_MS
from queries import ALL_TIME, MONTH, Filter, Query
from query_times import time_queries

_UNFILTERED_MS: Final = 10.0
_BY_DAY_MS: Final = 30.0
_MONTH_MS: Final = 60.0
_ALL_TIME_MS: Final = 200.0
_PAGE: Final = "/journal/frost"
_GOALS: Final[tuple[dict[str, str], ...]] = (
    {"name": "Frost", "path": _PAGE},
    {"name": "Articles on soil", "path": "/journal/*soil*"},
    {"name": "Shared", "event": "action", "value": "share"},
    {"name": "Ordered", "event": "action", "value": "order"},
)


@frozen
class Timed:
    """A query, with the milliseconds in which it is to be answered."""

    query: Query
    target_ms: float
    extra: str = ""
    """Parameters that other queries do not have."""

    @property
    def address(self) -> str:
        """Its URL path."""
        return address(self.query) + self.extra


def timed(until_ms: int, funnel: str, goals: Sequence[str]) -> Iterator[Timed]:
    """Return every query: over all time and over 30 days, without and with each filter.

    `funnel` is the name of its figures, and `goals` are the ids of the goals.
    """
    bounds = {"start_ms": until_ms - 30 * DAY_MS, "end_ms": until_ms - 1}
    month = {"case": MONTH, **bounds}
    visits, of_page = "&visits=true", f"&of={_PAGE}"
    lists = ("entries", "exits", "goals")
    filters: tuple[Filter, ...] = (
        ("browser", "eq", "Firefox"),
        ("path", "eq", _PAGE),
        ("entry_page", "eq", _PAGE),
        ("language", "eq", "German"),
        ("path", "contains", "/a"),
        ("referrer", "contains", "google"),
        ("exit_page", "eq", _PAGE),
        ("visit_referrer", "contains", "google"),
        ("visit_utm_source", "eq", "newsletter"),
        ("prop_name", "eq", "action"),
        ("goal", "eq", goals[0]),
        ("goal", "eq", goals[-1]),
    )
    for where, slow_ms in ({"case": ALL_TIME}, _ALL_TIME_MS), (month, _MONTH_MS):
        for statistic in lists:
            yield Timed(Query(statistic, limit=10, **where), _UNFILTERED_MS)
        for statistic in ("pages", "referrers", "countries", "browsers"):
            yield Timed(Query(statistic, limit=10, **where), _UNFILTERED_MS, visits)
        for statistic in ("next", "previous"):
            yield Timed(Query(statistic, limit=10, **where), slow_ms, of_page)
        yield Timed(Query(funnel, **where), slow_ms)
        for filter_ in filters:
            field, operator, value = filter_
            if value in goals:
                value = _GOALS[goals.index(value)]["name"]
            name = f"{field} {operator} {value}"
            filtered = {**where, "case": f"{where['case']}, {name}", "filters": (filter_,)}
            for statistic in (*lists, funnel):
                yield Timed(Query(statistic, limit=10, **filtered), slow_ms)
            yield Timed(Query("pages", limit=10, **filtered), slow_ms, visits)
            yield Timed(Query("summary", **filtered), slow_ms, visits)
    by_day = Query("summary", by_day=True, previous=True, **month)
    yield Timed(by_day, _BY_DAY_MS, visits)
    yield Timed(evolve(by_day, start_ms=until_ms - 90 * DAY_MS, case="90 days"), _BY_DAY_MS, visits)


def define(daemon: Daemon) -> tuple[str, list[str]]:
    """Define the goals and a funnel of all of them.

    Return the name of the funnel's figures, and the ids of the goals.
    """
    owner = daemon.client()
    base = f"/api/websites/{HOSTNAME}"
    # An earlier run may have left them in a folder that is kept.
    for kind in ("funnels", "goals"):
        for defined in owner.get(f"{base}/{kind}"):
            owner.request("DELETE", f"{base}/{kind}/{defined['id']}")
    ids = [owner.request("POST", f"{base}/goals", goal).json["id"] for goal in _GOALS]
    funnel = owner.request("POST", f"{base}/funnels", {"name": "All", "goals": ids})
    return f"funnels/{funnel.json['id']}", ids


def measure(folder: Path, until_ms: int, repeat: int) -> Iterator[dict[str, Any]]:
    """Return the times of each query."""
    with daemon_on(folder) as (daemon, _):
        funnel, goals = define(daemon)
        with asker(daemon) as our:
            for each in timed(until_ms, funnel, goals):
                first_ms = our.ask(each.address)[1]
                times = Times([our.ask(each.address)[1] for _ in range(repeat)])
                name = each.query.name.replace(funnel, "funnel")
                yield {
                    "name": name + (" with visits" if "visits=true" in each.extra else ""),
                    "target_ms": each.target_ms,
                    "first_ms": round(first_ms, 1),
                    **times.figures,
                }


if __name__ == "__main__":
    time_queries("visits", __doc__, measure)
