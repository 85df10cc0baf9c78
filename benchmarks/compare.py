"""Every statistic over HTTP compared with DuckDB over the same views.

    python benchmarks/compare.py [--views 10000000 …] [--repeat 21] [--data DIR] [--out DIR]

For each number of views, fill both (or use what the folder of --data has) and run every query on
each; fail if the figures differ. Then time each query on both in turn; dashboards also over six
connections at once. Write all figures to --out as JSON and Markdown.

Above --compared views there is no DuckDB, whose file would take too long to fill: nothing is
checked, and the daemon is timed alone.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec
from attrs import frozen
from daemon_setup import (
    SMALL,
    Filled,
    address,
    asker,
    daemon_on,
    filled,
    folder_or_temporary,
    login,
)
from duckdb_answers import answer
from duckdb_store import DuckStore
from fill import add_plan, plan_of
from measurements import OUT, Ask, by_turns, command, keep, machine, private_bytes
from queries import Query, dashboards, queries
from query_client import QueryClient, SixConnections
from tables import measured_by, queries_table, targets_table
from targets import group_of
from traffic import batches

_STARTS: Final = 5
_WEBSITES: Final = "/api/websites?summary=true"


@frozen
class Sides:
    """What is compared: the daemon, and DuckDB if it is there."""

    our: QueryClient
    open_six: Callable[[], SixConnections]
    duck: DuckStore | None

    def times(self, chosen: Sequence[Query], repeat: int) -> dict[str, dict[str, float]]:
        """Return the times of some queries; several are sent over six connections, too."""
        asks: dict[str, Ask] = {"ours": partial(_ask, self.our, chosen)}
        with ExitStack() as opened:
            if len(chosen) > 1:
                # Only now: the daemon closes connections that are idle for a minute.
                six = opened.enter_context(self.open_six())
                asks["six"] = partial(six.ask, list(map(address, chosen)))
            if self.duck:
                asks["theirs"] = partial(_ask_duck, self.duck, chosen)
            return by_turns(asks, repeat)


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
    chosen: list[Query], boards: list[list[Query]], sides: Sides, repeat: int
) -> Iterator[dict[str, Any]]:
    """Return the times of each query, of loading dashboards, and of the list of websites."""
    for query in chosen:
        yield {
            "name": query.name,
            "group": group_of(query),
            **sides.times([query], repeat),
        }
    for board in boards:
        if board[0].filters:
            for query in board:
                times = sides.times([query], repeat)
                yield {"name": query.name, "group": "dashboard query", **times}
        yield {
            "name": f"{len(board)} requests of a dashboard, {board[0].case}",
            "group": "filtered dashboard" if board[0].filters else "dashboard",
            **sides.times(board, repeat),
        }
    body, _ = sides.our.ask(_WEBSITES)
    assert len(msgspec.json.decode(body)) == SMALL + 1
    yield {
        "name": f"list of {SMALL + 1:,} websites with summaries",
        "group": "websites",
        **by_turns({"ours": lambda: sides.our.ask(_WEBSITES)[1]}, repeat),
    }


def compare(place: Filled, repeat: int, most_compared: int) -> dict[str, Any]:
    """Return all figures for one number of views."""
    plan = place.plan
    chosen = list(queries(plan.since_ms, plan.until_ms))
    boards = list(dashboards(plan.until_ms))
    duck = None
    starts_ms = []
    with ExitStack() as used:
        if plan.views <= most_compared:
            duck = DuckStore.filled(place.duck_file, batches(plan))
            used.callback(duck.close)
        for _ in range(_STARTS - 1):
            with daemon_on(place.folder) as (_, took_ms):
                starts_ms.append(took_ms)
        daemon, took_ms = used.enter_context(daemon_on(place.folder))
        starts_ms.append(took_ms)
        our = used.enter_context(asker(daemon))
        open_six = partial(SixConnections, daemon.port, login(daemon))
        every = [*chosen, *(query for board in boards for query in board)]
        if duck:
            check(every, our, duck)
            print(f"{len(every)} answers are the same; measuring", file=sys.stderr)
        else:
            _ask(our, every)
        memory = private_bytes(daemon.pid)
        measured = list(measure(chosen, boards, Sides(our, open_six, duck), repeat))
    return {
        "views": plan.views,
        "days": plan.days,
        "machine": machine(),
        "command": command(),
        "queries": measured,
        "start": {"median_ms": round(median(starts_ms)), "times": _STARTS},
        "memory": memory,
        "disk": {"ours": place.store_bytes, **({"theirs": duck.bytes_used} if duck else {})},
    }


def report(result: dict[str, Any]) -> str:
    """Return a result as Markdown."""
    return (
        f"# {result['views']:,} views of one website over {result['days']} days\n\n"
        f"{measured_by(result)}\n\n{targets_table(result)}\n\n{queries_table(result)}\n"
    )


def main() -> None:
    """Fill, check, measure, write and print."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--views", type=int, nargs="+", default=[10_000_000])
    parser.add_argument("--repeat", type=int, default=21)
    parser.add_argument("--compared", type=int, default=10_000_000, metavar="VIEWS")
    parser.add_argument("--data", type=Path, help="a folder to keep what was filled")
    parser.add_argument("--out", type=Path, default=OUT)
    add_plan(parser)
    arguments = parser.parse_args()
    with folder_or_temporary(arguments.data) as folder:
        for views in arguments.views:
            plan = plan_of(arguments, views)
            is_fixed = arguments.until is not None
            place = filled(folder / str(views), plan, is_fixed=is_fixed)
            result = compare(place, arguments.repeat, arguments.compared)
            keep(arguments.out, f"compare-{views}", result)
            text = report(result)
            (arguments.out / f"compare-{views}.md").write_text(text, "utf-8")
            print(text, flush=True)


if __name__ == "__main__":
    main()
