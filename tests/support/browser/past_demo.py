"""The demonstration at a moment of the past: `python past_demo.py CLOCK`, then as `run`.

Its traffic is the same whenever it runs, and so is what the dashboard shows of it.
"""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Final

# It is run by its path.
sys.path.append(str(Path(__file__).parents[2]))

from support.daemon import Client, Daemon
from support.durability import settable_clock

from medamad.cli import run
from medamad.config.schema import Config, load
from medamad.demo.sites import SITES
from medamad.demo.traffic import TrafficPlan, fill, live_hits
from medamad.web.backend import Backend

NOW: Final = datetime(2026, 11, 27, 17, 36, tzinfo=UTC)
_LIVE_MS: Final = 30 * 60_000
"""For how long before, there are as many hits as come while a demonstration runs."""
_NOW_MS: Final = int(NOW.timestamp()) * 1000
_PLAN: Final = TrafficPlan(until_ms=_NOW_MS - _LIVE_MS, days=63, views=60_000)


@contextmanager
def demonstration_of_the_past(folder: Path) -> Iterator[Client]:
    """Run it, with its clock begun at `NOW`; gives a client that is logged in."""
    clock = folder / "clock"
    clock.write_text(f"{NOW.timestamp() - time.time()}\n", "ascii")
    daemon = Daemon(folder, command=(sys.executable, __file__, str(clock)))
    daemon.start()
    try:
        yield daemon.client()
    finally:
        daemon.stop()


async def _prepare(backend: Backend) -> None:
    websites = await fill(backend.store, _PLAN)
    numbers = {website.hostname: website.number for website in websites}
    hits = takewhile(lambda hit: hit.time_ms < _NOW_MS, live_hits(_PLAN, numbers, SITES))
    await backend.store.append(list(hits))


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("clock", type=Path)
    run.configure(parser)
    asked = parser.parse_args()
    settable_clock.use(asked.clock)

    def read() -> Config:
        return load(asked.config).with_overrides(asked.data, asked.listen)

    return run.run_daemon(read(), read_config=read, started=lambda _started: None, prepare=_prepare)


if __name__ == "__main__":
    sys.exit(main())
