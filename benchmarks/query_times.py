"""Timing queries of the daemon, each compared with the time in which it is to be answered."""

from argparse import ArgumentParser
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from daemon_setup import filled, folder_or_temporary
from fill import add_plan, plan_of
from measurements import OUT, command, keep, machine

Measure: TypeAlias = Callable[[Path, int, int], Iterable[dict[str, Any]]]
"""Takes a filled folder, when its traffic ends, and how often to repeat each query.

Returns for each query its name, the milliseconds that are the target, those of its first request,
and `Times.figures` of the others; if the target is a multiple of a time, also that, `without_ms`.
"""


def time_queries(name: str, description: str | None, measure: Measure, **defaults: int) -> None:
    """Fill a folder, measure, print, and save the result under a name.

    `defaults` are those of arguments of the plan.
    """
    parser = ArgumentParser(description=description)
    parser.add_argument("--views", type=int, default=10_000_000)
    parser.add_argument("--repeat", type=int, default=21)
    parser.add_argument("--data", type=Path, help="a folder to keep what was filled")
    parser.add_argument("--out", type=Path, default=OUT)
    add_plan(parser)
    parser.set_defaults(**defaults)
    arguments = parser.parse_args()
    plan = plan_of(arguments, arguments.views)
    rows = []
    with folder_or_temporary(arguments.data) as kept:
        place = filled(kept / str(plan.views), plan, is_fixed=arguments.until is not None)
        for row in measure(place.folder, place.plan.until_ms, arguments.repeat):
            rows.append(row)
            mark = " " if row["median_ms"] <= row["target_ms"] else "!"
            without = f", without {row['without_ms']:.1f}" if "without_ms" in row else ""
            print(
                f"{mark} {row['name'][:90]:90} {row['median_ms']:8.1f} ms"
                f" (target {row['target_ms']:.0f}{without}, first {row['first_ms']:.0f})",
                flush=True,
            )
    result = {"machine": machine(), "command": command(), "views": plan.views, "queries": rows}
    keep(arguments.out, name, result)
