"""Make the files of a format that later builds must read, with a build that writes it.

Run it in a checkout of that build: `PYTHONPATH=tests .venv/bin/python …/tests/formats/make.py`. It
makes FORMAT.tar.xz beside this file: the store of a daemon that was killed, a backup, exports of
two websites, and the answers to all statistics.

`tests/whole/test_formats.py` fails from when FORMAT is raised until there is a file of that format.
Make it once the format is final, and again if what the build writes changes before a release. The
files of released formats stay as they are.

Time is passed in leaps and segments are small, so that a store of some hundred views has what one
of millions has: segments that were merged, and these again, corrections of views and events in
segments, visits that go on in other segments and in the log, and days of which only sums are left.
The test asserts that it does.
"""

import csv
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from support.daemon import Client, Daemon, until

from medamad.query.reports import STATISTICS
from medamad.storage.environment.meta import FORMAT

HERE: Final = Path(__file__).parent
CLOCK: Final = "MEDAMAD_CLOCK"
"""Names a file with the seconds by which the clock is ahead."""
SEGMENT_VIEWS: Final = "MEDAMAD_SEGMENT_VIEWS"
PROGRAM: Final = f"""
import os, sys, time
from functools import partial
from pathlib import Path
system, clock = time.time, Path(os.environ["{CLOCK}"])
time.time = lambda: system() + float(clock.read_text())
views = int(os.environ["{SEGMENT_VIEWS}"])
from medamad.storage import startup
sizes = startup.Sizes(chunk_views=views, merged_members=2, counted_from=0)
startup.start_store = partial(startup.start_store, sizes=sizes)
from medamad.storage.environment import trusted_clock
trusted_clock.JUMP_MS = 1 << 62
from medamad.admin import imports
from medamad.transfer import import_rows
imports._PIECE_ROWS = import_rows.MAX_CHUNK_ROWS = views
from medamad.cli import main
sys.exit(main())
"""
"""The program of the build, with small segments and another clock."""
MEDAMAD: Final = (sys.executable, "-c", PROGRAM)
BEGIN: Final = datetime(2026, 3, 20, tzinfo=UTC)
"""Summer time begins within the days from here on."""
DAYS: Final = 14
VISITS: Final = 300
CONFIGURATION: Final = """
[events]
returning = true
visit_timeout = 240
[retention.websites."expired.example"]
raw_days = 14
"""
WEBSITES: Final = ("history.example", "expired.example", "long.example", "live.example")
LIVE: Final = datetime(2026, 4, 10, 8, 10, tzinfo=UTC)
"""When live hits begin."""
LIVE_MINUTES: Final = range(0, 60 * 60 + 1, 200)
"""When a visitor who stays is seen, never close to 24 hours after another view."""
ORDERED: Final = (1, 12)
"""In which of these steps the one who stays orders something."""
FLUSHED: Final = 4
"""After how many steps hits have been flushed."""
SETTLING_S: Final = 0.5
ASKED: Final = datetime(2026, 4, 13, 1, tzinfo=UTC)
"""When all periods that are asked for are over."""
LONG: Final = datetime(2026, 4, 6, tzinfo=UTC)
"""When the imported visits begin that last for more than 24 hours."""
PAGES: Final = ("/", "/pricing", "/blog/one", "/blog/two", "/a,b", "/=sum", "/café", "/order")
SOURCES: Final = ("", "google.com", "news.ycombinator.com/item", "t.co", "intranet")
CAMPAIGNS: Final = (("", "", ""), ("letter", "email", "spring"), ("ads", "cpc", "summer"))
BROWSERS: Final = (
    ("Firefox", "140", "Linux", "", "Desktop"),
    ("Chrome", "126", "Windows", "10", "Desktop"),
    ("Safari", "17", "iOS", "17", "Mobile"),
    ("", "", "", "", ""),
)
PLACES: Final = (("DE", "de-DE"), ("AT", "de-AT"), ("US", "en-US"), ("JP", "ja"), ("", ""))
SINCES: Final = ("new", "month", "week", "day", "")
VIEW_COLUMNS: Final = (
    *("store", "view", "visit", "time", "path", "referrer", "utm_source", "utm_medium"),
    *("utm_campaign", "browser", "browser_version", "os", "os_version", "device", "country"),
    *("locale", "host", "since", "first_today", "first_of_page", "width_class", "duration_ms"),
)
EVENT_COLUMNS: Final = ("store", "event", "view", "time", "name", "value")
STORES: Final = ("00000000000000f0", "00000000000000f1")
DAILY: Final = {
    "imported_visitors.csv": "date,visitors,pageviews,bounces,visits,visit_duration\n"
    "2026-01-10,5,9,2,6,60\n2026-01-11,3,4,1,3,30\n",
    "imported_pages.csv": "date,page,visitors,pageviews\n"
    "2026-01-10,/,5,6\n2026-01-10,/pricing,2,3\n2026-01-11,/,3,4\n",
    "imported_browsers.csv": "date,browser,visitors,pageviews,visits,bounces\n"
    "2026-01-10,Chrome,4,7,5,2\n2026-01-10,Firefox,1,2,1,0\n2026-01-11,Chrome,3,4,3,1\n",
}
"""Days of which only totals are known."""
GOALS: Final = (
    {"name": "Pricing", "path": "/pricing"},
    {"name": "Blog", "path": "/blog/*"},
    {
        "name": "Order",
        "event": "event",
        "value": "order",
        "revenue": "total",
        "currency": "EUR",
    },
)
AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:{0}.0) Gecko/20100101 Firefox/{0}.0"
ALL_DAYS: Final = "start=2026-01-01T00:00:00Z&end=2026-04-12T23:59:59Z"
OF_VIEWS: Final = "start=2026-03-01T00:00:00Z&end=2026-04-12T23:59:59Z"
"""Without the days of which only totals are known."""
OF_LONG: Final = "start=2026-04-06T00:00:00Z&end=2026-04-12T23:59:59Z"
FILTERS: Final = (
    *("", "path[eq]=/pricing", "browser[neq]=Firefox", "country[in]=Germany,Japan"),
    *("entry_page[eq]=/", "exit_page[contains]=blog", "visit_referrer[eq]=google.com"),
    *("prop_name[eq]=event", "utm_source[starts_with]=l", "visitor[eq]=returning"),
)


def history(visits: int = VISITS) -> tuple[str, str]:
    """Return the views and the events of two weeks, as exports have them."""
    rng = random.Random(10)  # noqa: S311 - the same each time
    views, events, number = io.StringIO(), io.StringIO(), 0
    of_views, of_events = csv.writer(views), csv.writer(events)
    of_views.writerow(VIEW_COLUMNS)
    of_events.writerow(EVENT_COLUMNS)
    begins = sorted(rng.uniform(0, DAYS * 86_400) for _ in range(visits))
    for begin in begins:
        moment = BEGIN + timedelta(seconds=round(begin, 3))
        visit, known = number + 1, rng.random() < 0.95
        source, campaign = rng.choice(SOURCES), rng.choice(CAMPAIGNS)
        browser, place, since = rng.choice(BROWSERS), rng.choice(PLACES), rng.choice(SINCES)
        is_new = rng.random() < 0.7
        seen: set[str] = set()
        for step in range(rng.choice((1, 1, 1, 2, 3, 5))):
            number += 1
            path, first = rng.choice(PAGES), step == 0
            of_views.writerow(
                (
                    *(STORES[0], number, visit if known else "", stated(moment), path),
                    *((source, *campaign) if first else ("", "", "", "")),
                    *browser,
                    *place,
                    *("example.org", since if first and is_new else ""),
                    *(str(first and is_new).lower(), str(path not in seen).lower()),
                    rng.choice(("phone", "laptop", "wide", "")),
                    rng.choice(("", 900, 4_000, 12_000, 61_000, 300_000)),
                )
            )
            seen.add(path)
            if path == "/order":
                order = number
                number += 1
                for name, value in (("event", "order"), ("total", f"{rng.randint(5, 90)}.50")):
                    of_events.writerow((STORES[0], number, order, stated(moment), name, value))
            moment += timedelta(seconds=rng.uniform(5, 1_500))
    return views.getvalue(), events.getvalue()


def stated(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"


def long_visits(begin: datetime) -> str:
    """Return the views of two visits that last for more than 24 hours, and of short ones."""
    day = timedelta(days=1)
    visits = {
        "stays": [begin + timedelta(hours=10 * number) for number in range(7)],
        # One view in each of its days begins a visit, the second one a millisecond too early.
        "limit": [begin, begin + day - timedelta(milliseconds=1), begin + day],
    }
    for hour in range(0, 66, 2):
        at = begin + timedelta(hours=hour, minutes=30)
        visits[f"{hour}"] = [at, at + timedelta(minutes=5)][: 1 + hour % 4 // 2]
    written = sorted((at, name) for name, times in visits.items() for at in times)
    first: dict[str, int] = {}
    views = io.StringIO()
    of_views = csv.writer(views)
    of_views.writerow(VIEW_COLUMNS)
    for number, (at, name) in enumerate(written, 1):
        path = f"/{name}" if name in ("stays", "limit") else "/short"
        is_first = first.setdefault(name, number) == number
        of_views.writerow(
            (
                *(STORES[1], number, first[name], stated(at), path),
                *("google.com" if is_first else "", "", "", ""),
                *("Firefox", "140", "Linux", "", "Desktop", "AT", "de-AT", "long.example", ""),
                *(str(is_first).lower(), str(is_first).lower(), "laptop", 4_000),
            )
        )
    return views.getvalue()


def command(*arguments: str | Path) -> None:
    subprocess.run([*MEDAMAD, *map(str, arguments)], check=True)


def set_clock(moment: datetime) -> None:
    """Make all processes read a moment as the time, which goes on from it."""
    clock = Path(os.environ[CLOCK])
    written = clock.with_suffix(".new")
    written.write_text(str(moment.timestamp() - time.time()), "utf-8")
    written.replace(clock)


def hit(
    client: Client, url: str, beacon: str, number: int, version: int = 140, **further: Any
) -> None:
    """Send the view of a page, before which the visitor had so many on this day."""
    load = {"e": "load", "b": beacon, "u": url, "t": "Europe/Berlin"}
    body = {**load, "p": number == 0, "q": True, "n": number + 1, "w": 1_280, **further}
    send(client, body, version)


def send(client: Client, body: dict[str, Any], version: int = 140) -> None:
    headers = {"User-Agent": AGENT.format(version), "Accept-Language": "de-AT,de;q=0.9"}
    answer = client.request("POST", "/api/event/hit", body, headers)
    assert answer.status == 204, answer


def long_live(client: Client) -> None:
    """Send hits of 60 hours: of a visitor who stays, and of others, who leave half a day later."""
    site = "https://long.example"
    order = {"e": "custom", "g": "long.example", "d": {"event": "order", "total": "12.50"}}
    today, number = LIVE.date(), -1
    for step, minute in enumerate(LIVE_MINUTES):
        now = LIVE + timedelta(minutes=minute)
        set_clock(now)
        today, number = now.date(), number + 1 if now.date() == today else 0
        if minute == LIVE_MINUTES[-1]:
            # An event is in a segment before the view that it belongs to arrives.
            send(client, {**order, "b": "late"})
            for who in range(20):
                hit(client, f"{site}/crowd", f"crowd-{who}", 0, 60 + who)
            time.sleep(SETTLING_S)
            hit(client, f"{site}/thanks", "late", 0, 80)
        from_page = f"{site}/stays" if step else "https://t.co/"
        hit(client, f"{site}/stays", f"stays-{step}", number, r=from_page)
        if step in ORDERED:
            send(client, {**order, "b": f"stays-{step}"})
        for who in range(5):
            version = 100 + (5 * step + who) % 40
            hit(client, f"{site}/short", f"{step}-{who}", 0, version, d={"who": who})
        before = step - FLUSHED
        if before >= 0:
            for who in range(5):
                unload = {"e": "unload", "b": f"{before}-{who}", "m": 1_000 * (step + who)}
                send(client, unload)
            send(client, {**order, "b": f"{before}-0"})
        # Segments are written meanwhile.
        time.sleep(SETTLING_S)


def live(client: Client) -> None:
    """Send a visit, which stays in the log."""
    site = "https://live.example"
    hit(client, f"{site}/", "first", 0, r="https://www.google.com/")
    send(client, {"e": "unload", "b": "first", "m": 12_000})
    hit(client, f"{site}/pricing", "second", 1, r=f"{site}/", d={"plan": "pro"})
    send(
        client,
        {
            "e": "custom",
            "g": "live.example",
            "b": "second",
            "d": {"event": "order", "total": "12.50"},
        },
    )
    hit(client, f"{site}/blog/one", "third", 2, r=f"{site}/pricing")


def questions(
    client: Client, hostname: str, period: str, filters_in_turn: Sequence[str] = ("",)
) -> Iterator[str]:
    """Return the paths of all statistics under some filters."""
    site = f"/api/website/{hostname}/"
    for filters in filters_in_turn:
        query = f"?{period}&{filters}".rstrip("&")
        for interval in ("day", "week") if not filters else ("day",):
            zone = "&timezone=Europe/Berlin" if interval == "day" else ""
            yield f"{site}summary{query}&visits=true&interval={interval}{zone}"
        for statistic in STATISTICS:
            visits = "" if statistic.is_of_visits else "&visits=true"
            yield site + statistic.name + query + visits
            variant = statistic.variant
            if variant is not None and variant.parameter is not None:
                chosen = f"&{variant.parameter}={str(variant.value).lower()}"
                yield site + statistic.name + query + visits + chosen
        for name in ("next", "previous"):
            page = "/stays" if hostname == "long.example" else "/pricing"
            yield f"{site}{name}{query}&of={page}"
        # Which conversions count under filters on views has been defined anew since format 10.
        if not filters or filters.startswith(("entry_page", "exit_page", "visit")):
            yield f"{site}goals{query}"
    for funnel in client.get(f"/api/websites/{hostname}/funnels"):
        yield f"{site}funnels/{funnel['id']}?{period}"


def add_website(client: Client, hostname: str) -> None:
    """Add a website with goals and a funnel."""
    client.add_website(hostname)
    goals = [client.request("POST", f"/api/websites/{hostname}/goals", goal).json for goal in GOALS]
    steps = {"name": "Buy", "goals": [goals[0]["id"], goals[2]["id"]]}
    client.request("POST", f"/api/websites/{hostname}/funnels", steps)


def load(folder: Path, data: Path, hostname: str, texts: Mapping[str, str]) -> None:
    """Import files."""
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    files = [folder / name for name in texts]
    command("import", "--website", hostname, "--data", data, *files)


def fill(daemon: Daemon) -> None:
    """Import history and send hits; leave the daemon running."""
    os.environ[SEGMENT_VIEWS] = "64"
    set_clock(LIVE)
    daemon.start()
    client = daemon.client()
    for hostname in WEBSITES:
        add_website(client, hostname)
    for hostname, count in (("history.example", VISITS), ("expired.example", VISITS // 4)):
        views, events = history(count)
        load(daemon.folder, daemon.data, hostname, {"views.csv": views, "events.csv": events})
    load(daemon.folder, daemon.data, "expired.example", {"long.csv": long_visits(BEGIN)})
    load(daemon.folder, daemon.data, "history.example", DAILY)
    daemon.stop()
    os.environ[SEGMENT_VIEWS] = "8"
    daemon.start()
    until(lambda: "daily totals remain" in daemon.log)
    load(daemon.folder, daemon.data, "long.example", {"long.csv": long_visits(LONG)})
    client = daemon.client()
    long_live(client)
    live(client)


def record(client: Client) -> dict[str, Any]:
    """Return the answers by their paths."""
    asked = (
        ("history.example", OF_VIEWS, FILTERS),
        ("history.example", ALL_DAYS),
        ("expired.example", ALL_DAYS),
        ("long.example", OF_LONG),
        ("live.example", ALL_DAYS),
    )
    paths = [path for each in asked for path in questions(client, *each)]
    paths += [f"/api/websites/{hostname}/goals" for hostname in WEBSITES]
    return {path: client.get(path) for path in ("/api/websites", *paths)}


def main() -> None:
    with TemporaryDirectory() as name, TemporaryDirectory() as made:
        folder, target = Path(name), Path(made)
        os.environ[CLOCK] = str(folder / "clock")
        daemon = Daemon(folder, configuration=CONFIGURATION, command=(*MEDAMAD, "run"))
        try:
            fill(daemon)
            set_clock(ASKED)
            answers = record(daemon.client())
        finally:
            daemon.kill()
        (target / "store").mkdir()
        for file in daemon.data.iterdir():
            if file.is_file():
                shutil.copy(file, target / "store" / file.name)
        data = ("--data", daemon.data)
        command("backup", *data, target / "backup.mdb.zst")
        for hostname in ("history.example", "long.example"):
            (target / hostname).mkdir()
            for what in ("views", "events"):
                output = ("--output", target / hostname / f"{what}.ndjson")
                command("export", "--what", what, "--format", "ndjson", *output, *data, hostname)
        (target / "answers.json").write_text(json.dumps(answers, sort_keys=True), "utf-8")
        with tarfile.open(HERE / f"{FORMAT}.tar.xz", "w:xz") as archive:
            archive.add(target, ".")


if __name__ == "__main__":
    main()
