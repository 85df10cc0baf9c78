"""Report which ratio has fallen by a third since the ratios were recorded.

    python benchmarks/guard.py [--record] [--views 1000000] [--file recorded_ratios.json]

Runs compare.py, ingest.py and footprint.py at a small scale. Every figure is a ratio of two that
were measured in the same run, and a larger one is better: the times of DuckDB to ours for each
query, and of one connection to six; hits per second to those of a bare twisted.web server and of
DuckDB; a fixed loop to the processor time of a hit; what a target allows to what is taken up.

If any has fallen, everything runs once more and the better of both counts: whatever else the
machine does makes single figures worse. The exit status is 1 if any has fallen in both.

--record replaces the recorded ratios. They hold for one number of views and one kind of machine.
"""

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from measurements import Noise, comparisons, kept, run
from tables import table
from targets import EMPTY_STORE_BYTES, IDLE_BYTES, LIVE_BYTES

RECORDED: Final = Path(__file__).with_name("recorded_ratios.json")
LEAST_SHARE: Final = 2 / 3


def measured(views: int) -> dict[str, float]:
    """Run the benchmarks and return the ratios by name."""
    noise = Noise()
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        noise.sample()
        run("compare", f"--views={views}", "--repeat=9", f"--out={out}")
        noise.sample()
        few = ("--hits=10000", "--duck-hits=1000", "--turns=3", "--turn-hits=3000")
        run("ingest", *few, f"--out={out}")
        noise.sample()
        run("footprint", f"--out={out}")
        ingest, footprint = kept(out, "ingest"), kept(out, "footprint")
        assert ingest
        assert footprint
        loop_us = min(noise.figures["loop_ms"]) * 1000
        found = [
            *_of_queries(comparisons(out)[0]),
            *_of_hits(ingest, loop_us),
            *_of_footprint(footprint),
        ]
    return {title: round(ratio, 3) for title, ratio in found}


def _of_queries(result: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for query in result["queries"]:
        # The least of each: other work of the machine adds to a time and never takes from it.
        least_ms = {
            side: query[side]["least_ms"] for side in ("ours", "theirs", "six") if side in query
        }
        if "theirs" in query:
            yield query["name"], least_ms["theirs"] / least_ms["ours"]
        if "six" in query:
            yield f"{query['name']}: six connections", least_ms["ours"] / least_ms["six"]
    yield "disk, for each view", result["disk"]["theirs"] / result["disk"]["ours"]


def _of_hits(result: Mapping[str, Any], loop_us: float) -> Iterator[tuple[str, float]]:
    ours = result["ours_per_second"]
    for title, key in (
        ("bare twisted.web", "bare_per_second"),
        ("DuckDB", "theirs_per_second"),
    ):
        yield f"hits a second, to {title}", ours / result[key]
    for title, key in (("an unload for each", "unload_per_second"), ("TLS", "tls_per_second")):
        if key in result:
            yield f"hits a second with {title}, to those without", result[key] / ours
    yield "a fixed loop, to the processor time of a hit", loop_us / result["hit_us"]


def _of_footprint(result: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    yield "target of an empty store, to its size", EMPTY_STORE_BYTES / result["empty_store_bytes"]
    yield "target of idle memory, to what is used", IDLE_BYTES / result["idle_bytes"]
    for size, target in LIVE_BYTES.items():
        title = f"target of a view that is not sealed yet, to its size, commits of {size}"
        yield title, target / result["live_bytes"][str(size)]


def fallen(before: Mapping[str, float], now: Mapping[str, float]) -> list[str]:
    """Return the names of the ratios that have fallen by a third, the worst first."""
    shares = {name: now[name] / before[name] for name in before.keys() & now.keys()}
    worst = sorted(shares, key=lambda name: shares[name])
    return [name for name in worst if shares[name] <= LEAST_SHARE]


def better(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    """Return the larger of each ratio."""
    return {name: max(ratio, second.get(name, ratio)) for name, ratio in first.items()}


def main() -> int:
    """Measure, and compare or record."""
    parser = ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="replace the recorded ratios")
    parser.add_argument("--views", type=int, default=1_000_000)
    parser.add_argument("--file", type=Path, default=RECORDED)
    arguments = parser.parse_args()
    if arguments.record:
        ratios = measured(arguments.views)
        recorded = {"views": arguments.views, "ratios": ratios}
        arguments.file.write_bytes(msgspec.json.format(msgspec.json.encode(recorded)) + b"\n")
        return 0
    if not arguments.file.exists():
        parser.error(f"{arguments.file} does not exist; --record writes it")
    recorded = msgspec.json.decode(arguments.file.read_bytes())
    if recorded["views"] != arguments.views:
        parser.error(f"--views: the recorded ratios are those of {recorded['views']} views")
    before, now = recorded["ratios"], measured(arguments.views)
    if fallen(before, now):
        now = better(now, measured(arguments.views))
    if unknown := sorted(before.keys() ^ now.keys()):
        print(f"Only recorded or only measured: {'; '.join(unknown)}.\n")
    worse = fallen(before, now)
    if worse:
        rows = [(name, f"{before[name]:.2f}", f"{now[name]:.2f}") for name in worse]
        print(table(("has fallen by a third", "recorded", "measured"), rows))
    else:
        print(f"None of {len(now)} ratios has fallen by a third.")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
