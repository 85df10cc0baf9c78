"""Insert the results into docs/performance.md, and draw its plot.

    python benchmarks/document.py [--out DIR]

Reads what compare.py, ingest.py and mixed_load.py wrote to --out. Between the lines
`<!-- begin NAME -->` and `<!-- end NAME -->` the text is replaced; a part without a result stays
as it is.
"""

import re
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from measurements import OUT, comparisons, kept
from plots import SHOWN, draw
from tables import (
    Result,
    both_table,
    growth_table,
    machine_lines,
    queries_table,
    storing_table,
    targets_table,
    tenfold_table,
)

DOCS: Final = Path(__file__).parents[1] / "docs"
DOCUMENT: Final = DOCS / "performance.md"
PLOT: Final = DOCS / "cost-by-views.svg"

_TARGET_VIEWS: Final = 10_000_000
_TEN_TIMES: Final = 10 * _TARGET_VIEWS
_LEAST_POINTS: Final = 2


def parts(folder: Path) -> Iterator[tuple[str, str]]:
    """Return the name and the text of each part for which there are results."""
    results = comparisons(folder)
    for result in results:
        if result["views"] == _TARGET_VIEWS:
            yield "targets", f"{machine_lines(result)}\n\n{targets_table(result)}"
            yield "queries", queries_table(result)
    if len(results) >= _LEAST_POINTS:
        yield "growth", f"{_commands(results)}\n\n{growth_table(results, SHOWN)}"
    by_views = {result["views"]: result for result in results}
    if _TARGET_VIEWS in by_views and _TEN_TIMES in by_views:
        yield "tenfold", tenfold_table(by_views[_TARGET_VIEWS], by_views[_TEN_TIMES])
    if ingest := kept(folder, "ingest"):
        yield "storing", f"{machine_lines(ingest)}\n\n{storing_table(ingest)}"
    if both := kept(folder, "both"):
        yield "both", f"{machine_lines(both)}\n\n{both_table(both)}"


def _commands(results: Sequence[Result]) -> str:
    commands = dict.fromkeys(f"`{result['command']}`" for result in results)
    return f"Measured by {', '.join(commands)} on the machine above."


def replaced(text: str, name: str, part: str) -> str:
    """Return the text with a part replaced.

    Raises ValueError if its two marker lines are missing.
    """
    begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        raise ValueError(f"{DOCUMENT.name}: expected one begin and one end of {name}")
    between = re.compile(f"({re.escape(begin)}).*?({re.escape(end)})", re.DOTALL)
    return between.sub(lambda found: f"{found[1]}\n{part}\n\n{found[2]}", text)


def main() -> None:
    """Update the document."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    text = DOCUMENT.read_text("utf-8")
    for name, part in parts(arguments.out):
        text = replaced(text, name, part)
    DOCUMENT.write_text(text, "utf-8")
    results = comparisons(arguments.out)
    if len(results) >= _LEAST_POINTS:
        draw(results, PLOT)


if __name__ == "__main__":
    main()
