"""Filling a data folder with traffic, and running the daemon on it."""

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec
from attrs import asdict, evolve, frozen
from content import HOSTNAME
from plan import Plan
from queries import Query
from query_client import QueryClient

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.daemon import RUN, Daemon

SMALL = 1_000
"""The number of small websites besides the large one."""

_MARKER = "filled.json"
_FRESH_MS = 12 * 3_600_000
_FILL = Path(__file__).with_name("fill.py")

CONFIGURATION = """
[limits]
new_paths = 1000000
[server]
trusted_proxies = ["127.0.0.1"]
"""


def disk_bytes(folder: Path) -> int:
    """Return what the files of a folder take up on disk."""
    return sum(file.stat().st_blocks * 512 for file in folder.iterdir())


@frozen
class Filled:
    """A folder with the traffic of a plan: `data` for the daemon, and DuckDB's file."""

    folder: Path
    plan: Plan

    @property
    def duck_file(self) -> Path:
        """The file of DuckDB."""
        return self.folder / "views.duckdb"

    @property
    def store_bytes(self) -> int:
        """The size of the daemon's files on disk."""
        return disk_bytes(self.folder / "data")


def filled(folder: Path, plan: Plan, *, is_fixed: bool) -> Filled:
    """Fill a folder with the traffic of a plan and of SMALL other websites, unless it is filled.

    What was filled twelve hours ago is filled again, as its last day is over, unless `is_fixed`
    says that the end of the plan was requested.
    """
    marker = folder / _MARKER
    wanted = asdict(plan) | {"small": SMALL}
    if marker.exists():
        found = msgspec.json.decode(marker.read_bytes())
        until_ms: int = found["until_ms"]
        is_same = found == wanted
        if not is_fixed and time.time() * 1000 - until_ms < _FRESH_MS:
            is_same = found == wanted | {"until_ms": until_ms}
        if is_same:
            return Filled(folder, evolve(plan, until_ms=until_ms))
    if folder.exists():
        assert marker.exists() or not any(folder.iterdir()), f"{folder} holds something else"
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    marker.write_bytes(msgspec.json.encode(wanted | {"views": -1}))
    arguments = {
        "data": folder / "data",
        "views": plan.views,
        "days": plan.days,
        "paths": plan.paths,
        "steepness": plan.steepness,
        "memtable": plan.memtable,
        "seed": plan.seed,
        "until": plan.until_ms,
        "small": SMALL,
    }
    options = [f"--{name}={value}" for name, value in arguments.items()]
    subprocess.run([sys.executable, _FILL, *options], check=True)
    marker.write_bytes(msgspec.json.encode(wanted))
    return Filled(folder, plan)


@contextmanager
def folder_or_temporary(given: Path | None) -> Iterator[Path]:
    """Yield the given folder or, if None, a temporary one."""
    with nullcontext(str(given)) if given else tempfile.TemporaryDirectory() as name:
        yield Path(name)


@contextmanager
def daemon_on(folder: Path) -> Iterator[tuple[Daemon, float]]:
    """Run the daemon on a folder. Yield it and the milliseconds until it responded."""
    daemon = Daemon(folder, configuration=CONFIGURATION, command=RUN)
    began = time.perf_counter()
    daemon.start()
    took_ms = (time.perf_counter() - began) * 1000
    try:
        yield daemon, took_ms
    finally:
        daemon.stop()


def login(daemon: Daemon) -> dict[str, str]:
    """Log in and return the header of further requests."""
    cookie = daemon.client().cookie
    assert cookie is not None
    return {"Cookie": cookie}


def asker(daemon: Daemon) -> QueryClient:
    """Log in and return a client."""
    return QueryClient(daemon.port, login(daemon))


def address(query: Query) -> str:
    """Return the URL path of a query for the large website."""
    return f"/api/website/{HOSTNAME}/{query.path_and_query}"
