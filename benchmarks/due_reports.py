"""Reports that are due at once: how long hits take while a hundred of them are made and mailed.

    python benchmarks/due_reports.py [--websites 100] [--views 5000] [--rate 500] [--seconds 10]

Each website has so many views in 60 days and one weekly report. Hits are sent at an even pace, by
another process: first alone, then until all reports have been mailed. Of the latter those count
that were due between the arrival of the first report and that of the last one. The time of a hit
counts from when it was due.
"""

import asyncio
import logging
import multiprocessing
import os
import tempfile
import time
from argparse import ArgumentParser
from concurrent.futures import ProcessPoolExecutor
from itertools import islice, pairwise
from pathlib import Path

from aiosmtpd.smtp import SMTP
from attrs import Factory, define
from content import HOSTNAME
from daemon_setup import CONFIGURATION
from hit_requests import requests
from hit_sender import pace
from measurements import OUT, Times, command, keep, machine

# daemon_setup has made the tests' support importable.
from support.daemon import RUN, Daemon
from support.mail_server import PASSWORD, USER, accept, mail_server
from tables import milliseconds, table
from twisted.internet import task
from twisted.internet.defer import Deferred

from medamad.demo.sites import SITES
from medamad.demo.traffic import TrafficPlan, hits
from medamad.domain.subscriptions import Every, Subscription
from medamad.storage.grants import REPORTS
from medamad.storage.offline import add_grant, website_numbers
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store

_CONNECTIONS = 64
_DAYS = 60
_DAY_S = 86_400
_BATCH = 2_000
_LONGEST_S = 300
_LOOKS_S = 30
"""Reports that arrive further apart were not mailed at once."""


@define
class Measured:
    """The milliseconds of hits alone and while reports are mailed, and how long that took."""

    alone: list[float] = Factory(list)
    while_mailed: list[float] = Factory(list)
    mailed_s: float = 0.0

    @property
    def times(self) -> dict[str, Times]:
        """The times by what they are of."""
        return {"alone": Times(self.alone), "while reports are mailed": Times(self.while_mailed)}


def hostnames(websites: int) -> list[str]:
    """Return the names of the websites: hits are sent to the first."""
    return [HOSTNAME, *(f"site-{number}.example" for number in range(1, websites))]


async def fill(reactor: object, data: Path, names: list[str], views: int) -> None:
    """Store the views of all websites."""
    store = start_store(data, StoreSettings(), reactor)
    site = next(site for site in SITES if site.hostname == HOSTNAME)
    until_ms = int(time.time() * 1000)
    for seed, name in enumerate(names):
        website = await store.add_website(name, until_ms // 1000 - _DAYS * _DAY_S)
        plan = TrafficPlan(until_ms=until_ms, days=_DAYS, views=views, seed=seed)
        invented = hits(plan, {HOSTNAME: website.number}, [site])
        while some := list(islice(invented, _BATCH)):
            await store.append(some)
    await store.close()


def send(port: int, seed: int, rate: float, seconds: float) -> list[tuple[float, float]]:
    """Send hits; return when each was due, on the clock of `perf_counter`, and its milliseconds."""
    some = list(requests(round(rate * seconds), seed))
    sent = asyncio.run(pace(port, some, _CONNECTIONS, rate))
    return list(zip(sent.due_s, sent.times.times_ms, strict=True))


def add_reports(data: Path, names: list[str]) -> None:
    """Add a report of each website, which is due."""
    ago = int(time.time()) - 20 * _DAY_S
    for place, number in enumerate(website_numbers(data, names)):
        report = Subscription(
            id=f"{place:012x}",
            secret=f"secret{place}",
            address="ada@example.com",
            websites=(number,),
            every=Every.WEEK,
            day=1,
            hour=0,
            timezone="UTC",
            language="en",
            created=ago,
            confirmed=ago,
        )
        add_grant(data, REPORTS, report.id.encode(), report)


def measure(folder: Path, names: list[str], rate: float, seconds: float) -> Measured:
    """Return the times of hits, alone and while the reports of all websites are mailed."""
    measured = Measured()
    logging.getLogger("mail.log").setLevel(logging.ERROR)
    spawned = multiprocessing.get_context("spawn")
    with mail_server(folder / "mail") as server, ProcessPoolExecutor(1, spawned) as other:
        os.environ["SSL_CERT_FILE"] = str(server.trusted)
        (folder / "password").write_text(PASSWORD, "utf-8")
        mail = (
            f'public_url = "https://stats.example.com"\n[mail]\nhost = "localhost"\n'
            f'port = {server.port}\nuser = "{USER}"\nfrom = "stats@example.org"\n'
            f'password_file = "{folder}/password"\n'
        )
        daemon = Daemon(folder, configuration=CONFIGURATION + mail, command=RUN)
        daemon.start()
        try:
            other.submit(send, daemon.port, 1, rate, 2.0).result()
            alone = other.submit(send, daemon.port, 2, rate, seconds).result()
            measured.alone = [took_ms for _, took_ms in alone]
            arrived_s: list[float] = []

            async def arrive(smtp: SMTP) -> str:
                arrived_s.append(time.perf_counter())
                return await accept(smtp)

            server.received.on_mail = arrive
            add_reports(daemon.data, names)
            sent, seed, latest = [], 3, time.monotonic() + _LONGEST_S
            while len(arrived_s) < len(names):
                assert time.monotonic() < latest, f"only {len(arrived_s)} reports were mailed"
                sent += other.submit(send, daemon.port, seed, rate, 1.0).result()
                seed += 1
            assert max(later - each for each, later in pairwise(arrived_s)) < _LOOKS_S
            first_s, last_s = arrived_s[0], arrived_s[-1]
            measured.while_mailed = [ms for due_s, ms in sent if first_s <= due_s <= last_s]
            measured.mailed_s = last_s - first_s
            assert len(arrived_s) == len(names)
        finally:
            daemon.stop()
    return measured


def main() -> None:
    """Fill, measure, print and write."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--websites", type=int, default=100)
    parser.add_argument("--views", type=int, default=5_000, help="of each website")
    parser.add_argument("--rate", type=float, default=500)
    parser.add_argument("--seconds", type=float, default=10, help="of hits alone")
    parser.add_argument("--out", type=Path, default=OUT)
    arguments = parser.parse_args()
    names = hostnames(arguments.websites)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # In a process of its own, since a reactor runs once.
        filling = multiprocessing.get_context("spawn").Process(
            target=run_fill, args=(folder / "data", names, arguments.views)
        )
        filling.start()
        filling.join()
        assert filling.exitcode == 0
        measured = measure(folder, names, arguments.rate, arguments.seconds)
    rows = [
        (called, f"{len(times.times_ms):,}", *map(milliseconds, times.centiles_ms))
        for called, times in measured.times.items()
    ]
    print(table(("hits", "times", "p50 ms", "p95 ms", "p99 ms", "worst ms"), rows))
    print(f"\n{len(names)} reports were mailed in {measured.mailed_s:.1f} s")
    result = {
        "machine": machine(),
        "command": command(),
        "websites": len(names),
        "views": arguments.views,
        "hits_per_second": round(arguments.rate),
        "mailed_s": round(measured.mailed_s, 1),
        **{called: times.figures for called, times in measured.times.items()},
    }
    keep(arguments.out, "due_reports", result)


def run_fill(data: Path, names: list[str], views: int) -> None:
    """Fill a data folder."""
    data.mkdir(parents=True)
    task.react(lambda reactor: Deferred.fromCoroutine(fill(reactor, data, names, views)), ())


if __name__ == "__main__":
    main()
