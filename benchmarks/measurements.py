"""Measured times and memory, how quiet the machine was, and running and saving benchmarks."""

import os
import platform
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median, quantiles
from typing import Any, Final, TypeAlias

import msgspec
from attrs import Factory, define, frozen

OUT: Final = Path("build/benchmarks")
_PLACES: Final = ("--data", "--out")
_GIB: Final = 1 << 30
_LEAST_REPEAT: Final = 5
_LONGEST_S: Final = 6.0
_LOOPS: Final = 5
_LOOP_LENGTH: Final = 2_000_000

Ask: TypeAlias = Callable[[], float]
"""Runs a query once and returns the milliseconds it took."""


@frozen
class Times:
    """The times of repeated runs, in milliseconds."""

    times_ms: Sequence[float]

    @property
    def median_ms(self) -> float:
        """The median."""
        return median(self.times_ms)

    @property
    def p99_ms(self) -> float:
        """The 99th percentile, interpolated; of few times, about the longest."""
        if len(self.times_ms) == 1:
            return self.times_ms[0]
        return quantiles(self.times_ms, n=100, method="inclusive")[98]

    @property
    def figures(self) -> dict[str, float]:
        """The figures that are saved."""
        return {
            "least_ms": round(min(self.times_ms), 3),
            "median_ms": round(self.median_ms, 3),
            "p99_ms": round(self.p99_ms, 3),
            "times": len(self.times_ms),
        }

    @property
    def centiles_ms(self) -> tuple[float, float, float, float]:
        """The median, the 95th and 99th percentiles, and the longest."""
        centiles = quantiles(self.times_ms, n=1000, method="inclusive")
        return centiles[499], centiles[949], centiles[989], max(self.times_ms)

    def __str__(self) -> str:
        names = ("p50", "p95", "p99", "worst")
        return "  ".join(
            f"{name} {value:6.2f} ms" for name, value in zip(names, self.centiles_ms, strict=True)
        )


def by_turns(asks: Mapping[str, Ask], repeat: int) -> dict[str, dict[str, float]]:
    """Return the times of each, run alternately, each first equally often.

    Slow ones are repeated less often.
    """
    times: dict[str, list[float]] = {name: [] for name in asks}
    began = time.monotonic()
    for turn in range(repeat):
        if turn >= _LEAST_REPEAT and time.monotonic() - began > _LONGEST_S:
            break
        for name in asks if turn % 2 else reversed(list(asks)):
            times[name].append(asks[name]())
    return {name: Times(of).figures for name, of in times.items()}


def machine() -> dict[str, Any]:
    """Return what the figures depend on: processor, cores, memory and versions."""
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    pages = os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": next(iter(models), platform.machine()),
        "cores": os.cpu_count(),
        "memory_gib": round(pages * os.sysconf("SC_PAGE_SIZE") / _GIB),
        "python": platform.python_version(),
        **{name: version(name) for name in ("medamad", "twisted", "lmdb", "numpy", "duckdb")},
    }


def _stolen() -> tuple[int, int]:
    """Return the stolen and the total processor time of all cores, in ticks (man 5 proc)."""
    first = Path("/proc/stat").read_text("ascii").splitlines()[0]
    ticks = [int(text) for text in first.split()[1:9]]
    return ticks[7], sum(ticks)


@define
class Noise:
    """What the machine did besides: the times of a fixed loop, and the processor time it lost."""

    _loops_ms: list[float] = Factory(list)
    _before: tuple[int, int] = Factory(_stolen)

    def sample(self) -> None:
        """Time the loop, a few times."""
        for _ in range(_LOOPS):
            began = time.perf_counter()
            total = 0
            for number in range(_LOOP_LENGTH):
                total += number
            self._loops_ms.append(round((time.perf_counter() - began) * 1000, 2))

    @property
    def figures(self) -> dict[str, Any]:
        """The figures that are saved; `stolen` is a share of the time since the first."""
        stolen, total = (
            after - before for after, before in zip(_stolen(), self._before, strict=True)
        )
        return {"loop_ms": self._loops_ms, "stolen": stolen / max(total, 1)}


def processor_s(pid: int) -> float:
    """Return the processor time that a process has used, in seconds."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text("ascii").split()[0]) for thread in threads) / 1e9


def private_bytes(pid: int) -> dict[str, int]:
    """Return the memory of a process in bytes: anonymous, private and resident."""
    sizes: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()[1:]:
        name, _, size = line.partition(":")
        sizes[name] = int(size.split()[0]) * 1024
    return {
        "anonymous": sizes["Anonymous"],
        "private_dirty": sizes["Private_Dirty"],
        "private_clean": sizes["Private_Clean"],
        "resident": sizes["Rss"],
    }


def keep(folder: Path, name: str, result: Mapping[str, Any]) -> None:
    """Save a result."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(result)))


def kept(folder: Path, name: str) -> dict[str, Any] | None:
    """Return a saved result, or None."""
    file = folder / f"{name}.json"
    found: dict[str, Any] | None = msgspec.json.decode(file.read_bytes()) if file.exists() else None
    return found


def comparisons(folder: Path) -> list[dict[str, Any]]:
    """Return the results of all comparisons, fewest views first."""
    found = [msgspec.json.decode(file.read_bytes()) for file in folder.glob("compare-*.json")]
    return sorted(found, key=lambda result: result["views"])


def run(name: str, *arguments: str | Path) -> None:
    """Run a benchmark of this folder as a command. Raises CalledProcessError if it fails."""
    script = Path(__file__).with_name(f"{name}.py")
    print(f"{name} …", file=sys.stderr, flush=True)
    subprocess.run([sys.executable, script, *arguments], check=True, stdout=subprocess.DEVNULL)


def command() -> str:
    """Return the command line of this run, without folders."""
    shown = [f"benchmarks/{Path(sys.argv[0]).name}"]
    arguments = iter(sys.argv[1:])
    for argument in arguments:
        if argument in _PLACES:
            next(arguments)
        elif argument.partition("=")[0] not in _PLACES:
            shown.append(argument)
    return shlex.join(["python", *shown])
