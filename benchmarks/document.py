"""Run the benchmarks, and insert their results into docs/performance.md with its plot.

    python benchmarks/document.py --run [--views 10000 1000000 10000000] [--data DIR] [--out DIR]

Between the lines `<!-- begin NAME -->` and `<!-- end NAME -->` the document is replaced by what
compare.py, ingest.py, mixed_load.py, visits.py and footprint.py wrote to --out. With --run they run
first, one after the other, and earlier results are deleted, so all figures are from this build and
machine. The largest number of views that is compared with DuckDB is the one shown in full.
"""

import re
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from measurements import OUT, Noise, comparisons, keep, kept, run
from plots import SHOWN, draw
from tables import (
    Result,
    both_table,
    footprint_table,
    growth_table,
    machine_lines,
    measured_by,
    queries_table,
    storing_table,
    targets_table,
    tenfold_table,
    visits_table,
)
from targets import HUNDRED_MILLION

DOCS: Final = Path(__file__).parents[1] / "docs"
DOCUMENT: Final = DOCS / "performance.md"
PLOT: Final = DOCS / "cost-by-views.svg"

_MISSING: Final = "This was not measured."
_LEAST_POINTS: Final = 2


def run_all(arguments: Namespace) -> None:
    """Run every benchmark on the same traffic, and sample how quiet the machine is between them."""
    for file in arguments.out.glob("*.json"):
        file.unlink()
    most = max(views for views in arguments.views if views <= arguments.compared)
    options = [f"--repeat={arguments.repeat}", f"--out={arguments.out}"]
    noise = Noise()
    with (
        nullcontext(arguments.data) if arguments.data else tempfile.TemporaryDirectory() as data,
    ):
        filled = [f"--data={data}"]
        for views in arguments.views:
            noise.sample()
            limit = f"--compared={arguments.compared}"
            run("compare", f"--views={views}", limit, *options, *filled)
        noise.sample()
        run("visits", f"--views={most}", *options, *filled)
        noise.sample()
        run("mixed_load", f"--views={most}", f"--out={arguments.out}", *filled)
    for name in ("ingest", "footprint"):
        noise.sample()
        run(name, f"--out={arguments.out}")
    noise.sample()
    keep(arguments.out, "noise", noise.figures)


def parts(folder: Path) -> Iterator[tuple[str, str]]:
    """Return the name and the text of each part for which there are results."""
    results = comparisons(folder)
    by_views = {result["views"]: result for result in results}
    full = max(
        (result for result in results if "theirs" in result["disk"]),
        key=lambda result: result["views"],
        default=None,
    )
    if full:
        yield "targets", _part(full, targets_table(full))
        yield "queries", _part(full, queries_table(full))
        if more := by_views.get(10 * full["views"]):
            yield "tenfold", tenfold_table(full, more)
        if noise := kept(folder, "noise"):
            yield "machine", machine_lines(full, noise)
    if len(results) >= _LEAST_POINTS:
        yield "growth", f"{_commands(results)}\n\n{growth_table(results, SHOWN)}"
    if hundred := by_views.get(HUNDRED_MILLION.views):
        yield "hundred", _part(hundred, targets_table(hundred))
    for name, table_of in (
        ("ingest", storing_table),
        ("both", both_table),
        ("visits", visits_table),
        ("footprint", footprint_table),
    ):
        if result := kept(folder, name):
            yield name, _part(result, table_of(result))


def _part(result: Result, table: str) -> str:
    return f"{measured_by(result)}\n\n{table}"


def _commands(results: Sequence[Result]) -> str:
    commands = dict.fromkeys(f"`{result['command']}`" for result in results)
    return f"Measured by {', '.join(commands)}."


def replaced(text: str, found: dict[str, str]) -> str:
    """Return the text with every part replaced; those that were not found say so.

    Raises ValueError if the text has no lines for a part that was found.
    """
    names = re.findall(r"<!-- begin (\w+) -->\n", text)
    if unknown := found.keys() - names:
        raise ValueError(f"{DOCUMENT.name} has no lines for {', '.join(sorted(unknown))}")
    for name in names:
        before, _, rest = text.partition(f"<!-- begin {name} -->\n")
        _, end, after = rest.partition(f"<!-- end {name} -->")
        text = f"{before}<!-- begin {name} -->\n\n{found.get(name, _MISSING)}\n\n{end}{after}"
    return text


def main() -> None:
    """Run the benchmarks if asked for, and update the document."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true", help="run the benchmarks first")
    parser.add_argument("--views", type=int, nargs="+", default=[10_000, 1_000_000, 10_000_000])
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--compared", type=int, default=10_000_000, metavar="VIEWS")
    parser.add_argument("--data", type=Path, help="a folder to keep what was filled")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    if arguments.run:
        run_all(arguments)
    DOCUMENT.write_text(replaced(DOCUMENT.read_text("utf-8"), dict(parts(arguments.out))), "utf-8")
    results = comparisons(arguments.out)
    if len(results) >= _LEAST_POINTS:
        draw(results, PLOT)


if __name__ == "__main__":
    main()
