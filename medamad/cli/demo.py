"""`medamad demo`: a daemon with sample traffic in a temporary folder, to look around."""

import sys
import time
from argparse import ArgumentParser, Namespace
from functools import partial
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
from medamad.web.server.endpoints import read_bound

_MAX_DAYS: Final = 3_650
_MAX_VIEWS: Final = 10_000_000
_LIVE_S: Final = 1.0
"""How often hits are added while the demonstration runs."""
_MIN_FREE_DISK: Final = Size(16 << 20)

EXAMPLES: Final = (
    ("medamad demo", "ninety days of traffic on port 8080 of this machine"),
    ("medamad demo --listen 0.0.0.0:8080", "for other machines, which cannot change anything"),
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
    parser.add_argument(
        "--read-only",
        action="store_true",
        help="refuse every change but login and logout, as always where other machines can connect",
    )


def run(arguments: Namespace) -> int:
    """Run the demonstration until it is stopped; nothing is left afterwards."""
    with TemporaryDirectory(prefix="medamad-demo-") as folder:

        def read() -> Config:
            config = Config().with_overrides(Path(folder), arguments.listen)
            is_read_only = arguments.read_only or not _is_for_this_machine(config)
            return _demonstrating(config, is_read_only=is_read_only)

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
        greet = partial(_greet, is_read_only=config.server.demo)
        return run_daemon(config, read_config=read, started=greet, prepare=prepare)


def _is_for_this_machine(config: Config) -> bool:
    """Return whether the demonstration can be reached from this machine alone.

    An endpoint that cannot be read counts as others: the daemon reports it.
    """
    try:
        return all(read_bound(text).address.is_loopback for text in config.server.listen)
    except Exception:  # noqa: BLE001 - whatever an endpoint's plugin raises on its text
        return False


def _run_live(live: LiveTraffic) -> None:
    """Go on storing invented hits until the daemon stops."""
    from twisted.internet import reactor as installed  # noqa: PLC0415 - importing it installs it

    reactor: Any = installed
    repeated = repeat(_LIVE_S, live.store_due, reactor)
    reactor.addSystemEventTrigger("before", "shutdown", repeated.stop)


def _demonstrating(config: Config, *, is_read_only: bool) -> Config:
    server = msgspec.structs.replace(config.server, demo=is_read_only)
    store = msgspec.structs.replace(config.store, min_free_disk=_MIN_FREE_DISK)
    return evolve(config, server=server, store=store)


def _greet(started: Started, *, is_read_only: bool) -> None:
    for url in started.urls[:1]:
        print(f"\nA medamad demonstration runs at {url}/")
    if started.first_login is not None:
        login = started.first_login
        print(f"Log in as {login.username} with the password {login.password}")
    print(f"Websites: {', '.join(site.hostname for site in SITES)}")
    changes = "Nothing can be changed" if is_read_only else "Change what you like"
    print(f"{changes}; nothing is kept. Ctrl-C stops it.\n")
    sys.stdout.flush()
