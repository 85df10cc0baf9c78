"""Make the files of a format that later builds must read, with the last build that writes it.

Run it in a checkout of that build: `PYTHONPATH=tests .venv/bin/python …/tests/formats/make.py`. It
makes FORMAT.tar.xz beside this file: the store of a daemon that was killed, a backup, an export of
a website, and the answers to all statistics.
"""

import csv
import io
import json
import random
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from support.daemon import Client, Daemon

from medamad.storage.environment.meta import FORMAT

HERE: Final = Path(__file__).parent
MEDAMAD: Final = Path(sys.executable).with_name("medamad")
BEGIN: Final = datetime(2026, 3, 20, tzinfo=UTC)
"""Summer time begins within the days from here on."""
DAYS: Final = 14
VISITS: Final = 400
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
STORE: Final = "00000000000000f0"
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
AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
ALL_DAYS: Final = "start=2026-01-01T00:00:00Z&end=2026-04-30T23:59:59Z"
OF_VIEWS: Final = "start=2026-03-01T00:00:00Z&end=2026-04-30T23:59:59Z"
"""Without the days of which only totals are known."""
ROWS: Final = (
    *("pages", "entries", "exits", "time", "referrers", "sources", "mediums", "campaigns"),
    *("terms", "contents", "browsers", "os", "devices", "countries", "languages", "properties"),
)
FILTERS: Final = (
    *("", "path[eq]=/pricing", "browser[neq]=Firefox", "country[in]=Germany,Japan"),
    *("entry_page[eq]=/", "exit_page[contains]=blog", "visit_referrer[eq]=google.com"),
    *("prop_name[eq]=event", "utm_source[starts_with]=l", "visitor[eq]=returning"),
)


def history() -> tuple[str, str]:
    """Return the views and the events of two weeks, as exports have them."""
    rng = random.Random(10)  # noqa: S311 - the same each time
    views, events, number = io.StringIO(), io.StringIO(), 0
    of_views, of_events = csv.writer(views), csv.writer(events)
    of_views.writerow(VIEW_COLUMNS)
    of_events.writerow(EVENT_COLUMNS)
    begins = sorted(rng.uniform(0, DAYS * 86_400) for _ in range(VISITS))
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
            time = f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"
            of_views.writerow(
                (
                    *(STORE, number, visit if known else "", time, path),
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
                    of_events.writerow((STORE, number, order, time, name, value))
            moment += timedelta(seconds=rng.uniform(5, 1_500))
    return views.getvalue(), events.getvalue()


def command(*arguments: str | Path) -> None:
    subprocess.run([MEDAMAD, *map(str, arguments)], check=True)


def hit(client: Client, beacon: str, path: str, number: int, **further: Any) -> None:
    """Send the view of a page, before which there were so many."""
    load = {"e": "load", "b": beacon, "u": f"https://live.example{path}", "t": "Europe/Berlin"}
    send(client, {**load, "p": number == 0, "q": True, "n": number + 1, "w": 1_280, **further})


def send(client: Client, body: dict[str, Any]) -> None:
    headers = {"User-Agent": AGENT, "Accept-Language": "de-AT,de;q=0.9"}
    answer = client.request("POST", "/api/event/hit", body, headers)
    assert answer.status == 204, answer


def live(client: Client) -> None:
    """Send a visit, which stays in the log."""
    hit(client, "first", "/", 0, r="https://www.google.com/")
    send(client, {"e": "unload", "b": "first", "m": 12_000})
    hit(client, "second", "/pricing", 1, r="https://live.example/", d={"plan": "pro"})
    send(
        client,
        {
            "e": "custom",
            "g": "live.example",
            "b": "second",
            "d": {"event": "order", "total": "12.50"},
        },
    )
    hit(client, "third", "/blog/one", 2, r="https://live.example/pricing")


def questions(
    client: Client, hostname: str, period: str, filters_in_turn: Sequence[str] = ("",)
) -> Iterator[str]:
    """Return the paths of all statistics under some filters."""
    site = f"/api/website/{hostname}/"
    visits = "&visits=true"
    for filters in filters_in_turn:
        query = f"?{period}&{filters}".rstrip("&")
        for interval in ("day", "week") if not filters else ("day",):
            zone = "&timezone=Europe/Berlin" if interval == "day" else ""
            yield f"{site}summary{query}{visits}&interval={interval}{zone}"
        for name in ROWS:
            yield site + name + query + ("" if name in ("entries", "exits") else visits)
        for name in ("next", "previous"):
            yield f"{site}{name}{query}&of=/pricing"
        # Which conversions count under filters on views has been defined anew since format 10.
        if not filters or filters.startswith(("entry_page", "exit_page", "visit")):
            yield f"{site}goals{query}"
    for funnel in client.get(f"/api/websites/{hostname}/funnels"):
        yield f"{site}funnels/{funnel['id']}?{period}"


def main() -> None:
    with TemporaryDirectory() as name, TemporaryDirectory() as made:
        folder, target = Path(name), Path(made)
        daemon = Daemon(folder, configuration="[events]\nreturning = true")
        daemon.start()
        client = daemon.client()
        for hostname in ("history.example", "live.example"):
            client.add_website(hostname)
        views, events = folder / "views.csv", folder / "events.csv"
        views.write_text(history()[0], "utf-8")
        events.write_text(history()[1], "utf-8")
        data = ("--data", daemon.data)
        command("import", "--website", "history.example", *data, views, events)
        for file, text in DAILY.items():
            (folder / file).write_text(text, "utf-8")
        files = [folder / file for file in DAILY]
        command("import", "--website", "history.example", *data, *files)
        for hostname in ("history.example", "live.example"):
            goals = [
                client.request("POST", f"/api/websites/{hostname}/goals", goal).json
                for goal in GOALS
            ]
            steps = {"name": "Buy", "goals": [goals[0]["id"], goals[2]["id"]]}
            client.request("POST", f"/api/websites/{hostname}/funnels", steps)
        daemon.stop()
        daemon.start()
        client = daemon.client()
        today = datetime.now(UTC).date()
        live(client)
        of_live = f"start={today}T00:00:00Z&end={today}T23:59:59Z"
        answers = {
            path: client.get(path)
            for asked in (
                ("history.example", OF_VIEWS, FILTERS),
                ("history.example", ALL_DAYS),
                ("live.example", of_live),
            )
            for path in questions(client, *asked)
        }
        lists = [f"/api/websites/{name}/goals" for name in ("history.example", "live.example")]
        answers |= {path: client.get(path) for path in ("/api/websites", *lists)}
        daemon.kill()
        (target / "store").mkdir()
        for file in daemon.data.iterdir():
            if file.is_file():
                shutil.copy(file, target / "store" / file.name)
        command("backup", *data, target / "backup.mdb.zst")
        for what in ("views", "events"):
            named = ("--what", what, "--format", "ndjson", "-o", target / f"{what}.ndjson")
            command("export", *named, *data, "history.example")
        (target / "answers.json").write_text(json.dumps(answers, sort_keys=True), "utf-8")
        with tarfile.open(HERE / f"{FORMAT}.tar.xz", "w:xz") as archive:
            archive.add(target, ".")


if __name__ == "__main__":
    main()
