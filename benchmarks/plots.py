"""Cost against the number of views: medamad and DuckDB side by side, as a small SVG."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

SHOWN: Final = (
    "countries, short, all time",
    "pages, all time",
    "pages, last 30 days",
    "summary, by day, with previous, 90 days",
    "time, all time",
    "pages, path contains",
)
"""The queries that stand for the others, by their names."""

_ENGINES: Final = {"ours": ("medamad, HTTP", "#1f6f8b", "o"), "theirs": ("DuckDB", "#b5651d", "s")}
_STYLE: Final[Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "medamad",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(results: Sequence[dict[str, Any]], file: Path) -> None:
    """Write the plot of some results. The same results make the same file."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9, 5.4), layout="constrained")
        panels = figure.subplots(2, 3, sharex=True, sharey=True)
        for panel, name in zip(panels.flat, SHOWN, strict=True):
            _draw_query(panel, results, name)
        for panel in panels[-1]:
            panel.set_xlabel("views")
        for panel in panels[:, 0]:
            panel.set_ylabel("median, ms")
        panels.flat[0].legend(frameon=False, loc="upper left")
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def _draw_query(panel: Axes, results: Sequence[dict[str, Any]], name: str) -> None:
    for engine, (label, colour, marker) in _ENGINES.items():
        points = [
            (result["views"], measured[engine]["median_ms"])
            for result in results
            for measured in result["queries"]
            if measured["name"] == name and engine in measured
        ]
        panel.loglog(*zip(*points, strict=True), color=colour, marker=marker, ms=4, label=label)
    panel.set_title(name, fontsize=9, loc="left")
    panel.grid(which="major", color="#dddddd", linewidth=0.6)
    panel.minorticks_off()
