"""Every statistic over HTTP compared with DuckDB over the same views.

    python benchmarks/compare.py [--views 10000000 …] [--repeat 21] [--data DIR] [--out DIR]

For each number of views, fill both (or use what the folder of --data has) and run every query on
each; fail if the figures differ. Then time each query on both in turn. Write all figures to --out
as JSON and Markdown.
"""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeAlias

import msgspec
from daemon_setup import SMALL, Filled, address, asker, daemon_on, filled, folder_or_temporary
from duckdb_answers import answer
from duckdb_store import DuckStore
from fill import add_plan, plan_of
from measurements import OUT, Times, command, keep, machine, private_bytes
from queries import Query, dashboard, queries
from query_client import QueryClient
from tables import machine_lines, queries_table, targets_table
from targets import group_of
from traffic import batches

Ask: TypeAlias = Callable[[], float]
"""Runs a query once and returns the milliseconds it took."""

_STARTS = 3
_LEAST_REPEAT = 5
_LONGEST_S = 6.0
_WEBSITES = "/api/websites?summary=true"


def by_turns(ours: Ask, theirs: Ask | None, repeat: int) -> dict[str, Any]:
    """Return the times of both, run alternately, each first equally often.

    Slow ones are repeated less often.
    """
    sides = {"ours": ours} | ({"theirs": theirs} if theirs else {})
    times: dict[str, list[float]] = {name: [] for name in sides}
    began = time.monotonic()
    for turn in range(repeat):
        if turn >= _LEAST_REPEAT and time.monotonic() - began > _LONGEST_S:
            break
        for name in sides if turn % 2 else reversed(sides):
            times[name].append(sides[name]())
    return {name: Times(of).figures for name, of in times.items()}


def _ask(our: QueryClient, chosen: Sequence[Query]) -> float:
    return sum(our.ask(address(query))[1] for query in chosen)


def _ask_duck(duck: DuckStore, chosen: Sequence[Query]) -> float:
    return sum(duck.ask(query)[1] for query in chosen)


def check(chosen: list[Query], our: QueryClient, duck: DuckStore) -> None:
    """Prepare and run every query. Raises AssertionError if the two results differ."""
    for query in chosen:
        body, _ = our.ask(address(query))
        duck.prepare(query)
        ours: Any = msgspec.json.decode(body)
        theirs: Any = answer(query, duck.ask(query)[0])
        assert ours, f"{query.name}: nothing was found"
        assert ours == theirs, f"{query.name}:\n{_difference(ours, theirs)}"


def _difference(ours: Any, theirs: Any) -> str:
    if isinstance(ours, dict):
        pairs = [(ours.get(name), theirs.get(name)) for name in ours]
    else:
        pairs = list(zip(ours, theirs, strict=False))
        pairs.append((len(ours), len(theirs)))
    first = next((pair for pair in pairs if pair[0] != pair[1]), (ours, theirs))
    return f"  medamad {str(first[0])[:500]}\n  DuckDB  {str(first[1])[:500]}"


def measure(
    chosen: list[Query], our: QueryClient, duck: DuckStore, repeat: int
) -> Iterator[dict[str, Any]]:
    """Return the times of each query."""
    for query in chosen:
        ours, theirs = partial(_ask, our, [query]), partial(_ask_duck, duck, [query])
        times = by_turns(ours, theirs, repeat)
        yield {"name": query.name, "group": group_of(query), **times}


def measure_together(
    chosen: list[Query], our: QueryClient, duck: DuckStore, repeat: int
) -> Iterator[dict[str, Any]]:
    """Return the times of loading the dashboard and the list of websites."""
    yield {
        "name": f"{len(chosen)} requests of a dashboard",
        "group": "dashboard",
        **by_turns(partial(_ask, our, chosen), partial(_ask_duck, duck, chosen), repeat),
    }
    body, _ = our.ask(_WEBSITES)
    assert len(msgspec.json.decode(body)) == SMALL + 1
    yield {
        "name": f"list of {SMALL + 1:,} websites with summaries",
        "group": "websites",
        **by_turns(lambda: our.ask(_WEBSITES)[1], None, repeat),
    }


def compare(place: Filled, repeat: int) -> dict[str, Any]:
    """Return all figures for one number of views."""
    plan = place.plan
    duck = DuckStore.filled(place.duck_file, batches(plan))
    starts_ms = []
    for _ in range(_STARTS - 1):
        with daemon_on(place.folder) as (_, took_ms):
            starts_ms.append(took_ms)
    with daemon_on(place.folder) as (daemon, took_ms), asker(daemon) as our:
        starts_ms.append(took_ms)
        chosen = list(queries(plan.since_ms, plan.until_ms))
        together = dashboard(plan.until_ms)
        check([*chosen, *together], our, duck)
        memory = private_bytes(daemon.pid)
        print(
            f"{len(chosen) + len(together)} answers are the same; measuring",
            file=sys.stderr,
        )
        measured = [
            *measure(chosen, our, duck, repeat),
            *measure_together(together, our, duck, repeat),
        ]
    duck.close()
    return {
        "views": plan.views,
        "days": plan.days,
        "machine": machine(),
        "command": command(),
        "queries": measured,
        "start": {"median_ms": round(median(starts_ms)), "times": _STARTS},
        "memory": memory,
        "disk": {"ours": place.store_bytes, "theirs": duck.bytes_used},
    }


def report(result: dict[str, Any]) -> str:
    """Return a result as Markdown."""
    return (
        f"# {result['views']:,} views of one website over {result['days']} days\n\n"
        f"{machine_lines(result)}\n\n{targets_table(result)}\n\n{queries_table(result)}\n"
    )


def main() -> None:
    """Fill, check, measure, write and print."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--views", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--repeat", type=int, default=21)
    parser.add_argument("--data", type=Path, help="a folder to keep what was filled")
    parser.add_argument("--out", type=Path, default=OUT)
    add_plan(parser)
    arguments = parser.parse_args()
    with folder_or_temporary(arguments.data) as folder:
        for views in arguments.views:
            plan = plan_of(arguments, views)
            is_fixed = arguments.until is not None
            place = filled(folder / str(views), plan, is_fixed=is_fixed)
            result = compare(place, arguments.repeat)
            keep(arguments.out, f"compare-{views}", result)
            text = report(result)
            (arguments.out / f"compare-{views}.md").write_text(text, "utf-8")
            print(text, flush=True)


if __name__ == "__main__":
    main()
