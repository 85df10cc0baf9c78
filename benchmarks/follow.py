"""How many lines of an access log a second `medamad follow` counts, on one core.

    python benchmarks/follow.py [--lines N] [--seed N] [--format combined|json] [--people]

A daemon runs beside it. The lines have 20,000 paths, half of them with a query that no other line
has, 200 User-Agents of people and robots, and what pages consist of: for each page, four files. The
first figure is the processor time of the follower, with reading, counting and sending; the second
is how long all of it took, the daemon's commits included. With `--people`, pages that people see
are counted as views, too: every eighth line.
"""

import json
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.daemon import running

from medamad.cli.follow import Follower
from medamad.lookup.robots import public_list

_PATHS: Final = 20_000
_BROWSERS: Final = 120
_ROBOTS: Final = 80
_FILES: Final = 4
"""Requests for files of a page, besides the page."""


def lines(count: int, seed: int, form: str) -> Iterator[str]:
    """Yield the lines of a log."""
    random = Random(seed)
    agents = [
        f"Mozilla/5.0 (X11; Linux x86_64; rv:{version}.0) Gecko/20100101 Firefox/{version}.0"
        for version in range(_BROWSERS)
    ]
    agents += [
        f"Mozilla/5.0 (compatible; {crawler.name}/1.0; +https://robots.example)"
        for crawler in public_list()[:_ROBOTS]
    ]
    for number in range(count):
        page = int(_PATHS * random.random() ** 3)
        query = f"?q={number}" if number % 2 else ""
        target = f"/page/{page}{query}" if number % (_FILES + 1) == 0 else f"/static/{page % 97}.js"
        second = number * 86_400 // count
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        agent, address = random.choice(agents), f"192.0.2.{random.randrange(256)}"
        if form == "json":
            record = {
                "time_iso8601": f"2026-10-10T{clock}+00:00",
                "remote_addr": address,
                "request": f"GET {target} HTTP/1.1",
                "status": "200",
                "http_user_agent": agent,
            }
            yield json.dumps(record) + "\n"
        else:
            yield (
                f"{address} - - [10/Oct/2026:{clock} +0000]"
                f' "GET {target} HTTP/1.1" 200 5123 "https://example.com/" "{agent}"\n'
            )


def main() -> None:
    """Print how many lines a second were counted."""
    parser = ArgumentParser(description="Count the lines of a log.")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=("combined", "json"), default="combined")
    parser.add_argument("--people", action="store_true")
    asked = parser.parse_args()
    with TemporaryDirectory() as folder, running(Path(folder) / "daemon") as daemon:
        daemon.client().add_website("example.com")
        log = Path(folder) / "access.log"
        follower = Follower(daemon.data, log, "example.com", None, has_people=asked.people)
        log.write_text("".join(lines(1_000, asked.seed + 1, asked.format)))
        follower.follow(is_once=True)  # loads what it needs
        with log.open("a") as file:
            file.writelines(lines(asked.lines, asked.seed, asked.format))
        begun, used = time.monotonic(), time.process_time()
        follower.follow(is_once=True)
        used, took = time.process_time() - used, time.monotonic() - begun
        views = daemon.client().get("/api/website/example.com/summary")["current"]["pageviews"]
        counted = sum(
            row["requests"] for row in daemon.client().get("/api/website/example.com/robots")
        )
    print(
        f"{asked.lines:,} lines, {asked.format}: {asked.lines / used:,.0f} lines per second of one"
        f" core, {asked.lines / took:,.0f} per second in all; {counted:,} requests of robots,"
        f" {views:,} views"
    )


if __name__ == "__main__":
    main()
