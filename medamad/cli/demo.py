"""`medamad demo`: a daemon with sample traffic in a temporary folder, to look around."""

import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
from attrs import evolve

from medamad.cli.run import run_daemon
from medamad.cli.support import add_listen, report_config_error, whole
from medamad.config.schema import Config, ConfigError
from medamad.config.values import Size
from medamad.daemon.service import Started
from medamad.daemon.thread_pool import repeat
from medamad.demo.sites import SITES
from medamad.demo.traffic import LiveTraffic, TrafficPlan, fill, live_hits
from medamad.web.backend import Backend

_MAX_DAYS: Final = 3_650
_MAX_VIEWS: Final = 10_000_000
_LIVE_S: Final = 1.0
"""How often hits are added while the demonstration runs."""
_MIN_FREE_DISK: Final = Size(16 << 20)

EXAMPLES: Final = (
    ("medamad demo", "ninety days of traffic on port 8080 of this machine"),
    ("medamad demo --days 365 --views 1000000", "more traffic, which takes longer to generate"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_listen(parser)
    parser.add_argument(
        "--days",
        type=whole(1, _MAX_DAYS),
        default=90,
        metavar="N",
        help="how many days of traffic, up to now (default: 90)",
    )
    parser.add_argument(
        "--views",
        type=whole(1, _MAX_VIEWS),
        default=100_000,
        metavar="N",
        help="how many views on those days, over all websites (default: 100000)",
    )


def run(arguments: Namespace) -> int:
    """Run the demonstration until it is stopped; nothing is left afterwards."""
    with TemporaryDirectory(prefix="medamad-demo-") as folder:

        def read() -> Config:
            return _demonstrating(Config().with_overrides(Path(folder), arguments.listen))

        async def prepare(backend: Backend) -> None:
            plan = TrafficPlan(
                until_ms=int(time.time() * 1000), days=arguments.days, views=arguments.views
            )
            websites = await fill(backend.store, plan)
            numbers = {website.hostname: website.number for website in websites}
            live = LiveTraffic(backend.store, live_hits(plan, numbers), lambda: time.time() * 1000)
            _run_live(live)

        try:
            config = read()
        except ConfigError as error:
            return report_config_error(error)
        return run_daemon(config, read_config=read, started=_greet, prepare=prepare)


def _run_live(live: LiveTraffic) -> None:
    """Go on storing invented hits until the daemon stops."""
    from twisted.internet import reactor as installed  # noqa: PLC0415 - importing it installs it

    reactor: Any = installed
    repeated = repeat(_LIVE_S, live.store_due, reactor)
    reactor.addSystemEventTrigger("before", "shutdown", repeated.stop)


def _demonstrating(config: Config) -> Config:
    server = msgspec.structs.replace(config.server, demo=True)
    store = msgspec.structs.replace(config.store, min_free_disk=_MIN_FREE_DISK)
    return evolve(config, server=server, store=store)


def _greet(started: Started) -> None:
    for url in started.urls[:1]:
        print(f"\nA medamad demonstration runs at {url}/")
    if started.first_login is not None:
        login = started.first_login
        print(f"Log in as {login.username} with the password {login.password}")
    print(f"Websites: {', '.join(site.hostname for site in SITES)}")
    print("Nothing can be changed, and nothing is kept. Ctrl-C stops it.\n")
    sys.stdout.flush()
