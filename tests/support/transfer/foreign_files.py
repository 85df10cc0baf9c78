"""Exports as other programs write them, made up by the documents of their formats."""

import csv
import io
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import duckdb
from attrs import frozen

from medamad.ingest.pipeline import Rules
from medamad.lookup.referrers import SpamHosts
from medamad.transfer.import_context import ImportTarget, ReadContext
from medamad.transfer.import_survey import ImportFile, number_rows, survey_rows
from medamad.transfer.rows import HitRow, RejectedRow

HOST = "example.org"
BEGIN = datetime(2025, 3, 1, tzinfo=UTC)
TARGET = ImportTarget(HOST, Rules(spam=SpamHosts(["spam.example"])))


def csv_columns(head: str) -> list[str]:
    return head.split(",")


UMAMI = csv_columns(
    "website_id,session_id,visit_id,event_id,hostname,browser,os,device,screen,language,country,"
    "url_path,url_query,utm_source,referrer_path,referrer_domain,event_type,event_name,created_at"
)
UMAMI_DATA = csv_columns(
    "website_id,session_id,event_id,url_path,event_name,data_key,string_value,number_value,"
    "date_value,data_type,created_at"
)
GOAT = csv_columns(
    "2Path,Title,Event,UserAgent,Browser,System,Session,Bot,Referrer,Referrer scheme,Screen size,"
    "Location,FirstVisit,Date"
)
MEDAMA = """
CREATE TABLE views (
    bid TEXT, hostname TEXT NOT NULL, pathname TEXT NOT NULL, is_unique_user BOOLEAN NOT NULL,
    is_unique_page BOOLEAN NOT NULL, referrer_host TEXT, referrer_group TEXT, country TEXT,
    language_base TEXT, language_dialect TEXT, ua_browser TEXT NOT NULL, ua_os TEXT NOT NULL,
    ua_device_type TEXT NOT NULL, utm_source TEXT, utm_medium TEXT, utm_campaign TEXT,
    duration_ms UINTEGER, date_created TIMESTAMPTZ NOT NULL
);
CREATE TABLE events (
    bid TEXT, batch_id TEXT NOT NULL, group_name TEXT NOT NULL, name TEXT NOT NULL,
    value TEXT NOT NULL, date_created TIMESTAMPTZ NOT NULL
);
"""


@frozen
class Seen:
    """A view, or an event by its name and value, as somebody was seen to cause it."""

    number: int
    time: datetime
    visitor: str
    path: str
    browser: str
    country: str
    event: tuple[str, str] | None = None


def seen(count: int) -> list[Seen]:
    """Return what some visitors did on some days, in order; an event follows a view of its page."""
    rng = random.Random(5)  # noqa: S311
    found: list[Seen] = []
    time = BEGIN
    while len(found) < count:
        time += timedelta(minutes=rng.randrange(1, 240))
        visitor = f"visitor-{rng.randrange(9)}"
        view = Seen(
            len(found),
            time,
            visitor,
            rng.choice(("/", "/a", "/b/c", "/straße")),
            ("Chrome", "Firefox", "Safari")[int(visitor[-1]) % 3],
            ("DE", "GB", "")[int(visitor[-1]) % 3],
        )
        found.append(view)
        if rng.random() < 0.2:
            event = ("plan", rng.choice(("free", "pro")))
            found.append(
                Seen(len(found), time, visitor, view.path, view.browser, view.country, event)
            )
    return found


def csv_of(names: Sequence[str], records: Sequence[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, names, restval="")
    writer.writeheader()
    writer.writerows(records)
    return file.getvalue()


def umami(things: Sequence[Seen], path: Path) -> Path:
    """Write a zip as Umami does."""
    os = {"Chrome": "Windows 10", "Firefox": "Linux", "Safari": "Mac OS"}
    events = [
        {
            "session_id": each.visitor,
            "event_id": f"e{each.number}",
            "hostname": HOST,
            "browser": each.browser.lower(),
            "os": os[each.browser],
            "device": "laptop",
            "screen": "1440x900",
            "language": "en-GB",
            "country": each.country,
            "url_path": each.path,
            "event_type": 1 if each.event is None else 2,
            "event_name": "" if each.event is None else "signup",
            "created_at": each.time.strftime("%Y-%m-%d %H:%M:%S"),
        }
        for each in things
    ]
    data = [
        {
            "event_id": f"e{each.number}",
            "data_key": each.event[0],
            "string_value": each.event[1],
        }
        for each in things
        if each.event is not None
    ]
    with ZipFile(path, "w") as archive:
        archive.writestr("website_event.csv", csv_of(UMAMI, events))
        archive.writestr("session_data.csv", "website_id\n")
        archive.writestr("event_data.csv", csv_of(UMAMI_DATA, data))
    return path


def goatcounter(things: Sequence[Seen], path: Path) -> Path:
    """Write a CSV as GoatCounter does."""
    records = [
        {
            "2Path": each.path if each.event is None else "-".join(each.event),
            "Event": "false" if each.event is None else "true",
            "Browser": f"{each.browser} 120",
            "System": "macOS 10.15",
            "Session": each.visitor,
            "Bot": 0,
            "Screen size": "1440,900,2",
            "Location": f"{each.country}-X" if each.country else "",
            "FirstVisit": "false",
            "Date": each.time.isoformat().replace("+00:00", "Z"),
        }
        for each in things
    ]
    path.write_text(csv_of(GOAT, records))
    return path


def medama_file(things: Sequence[Seen], path: Path) -> Path:
    """Write a database as Medama does."""
    country = {"DE": "Germany", "GB": "United Kingdom", "": ""}
    known: set[tuple[Any, ...]] = set()
    last = ""

    def is_first(*what: Any) -> bool:
        found = what not in known
        known.add(what)
        return found

    with duckdb.connect(str(path)) as database:
        database.execute(MEDAMA)
        for each in things:
            if each.event is not None:
                values = (last, f"batch-{each.number}", HOST, *each.event, each.time)
                database.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", values)
                continue
            last, day = f"bid-{each.number}", each.time.date()
            host = HOST if each.number % 2 else f"www.{HOST}"
            database.execute(
                "INSERT INTO views VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(last, host, each.path, is_first(day, each.visitor)),
                    *(is_first(day, each.visitor, each.path), "", "", country[each.country]),
                    *("English", "British English", each.browser, "MacOS", "Desktop"),
                    *("", "", "", 1_000 + each.number, each.time),
                ),
            )
        database.execute(
            "INSERT INTO views SELECT * REPLACE ('other.example' AS hostname) FROM views LIMIT 9"
        )
    return path


PROGRAMS = {"umami": umami, "goatcounter": goatcounter, "medama": medama_file}


def read(
    *paths: Path, target: ImportTarget = TARGET, source: str | None = None
) -> list[HitRow | RejectedRow]:
    """Read files as an import does, when they were looked through."""
    files = [ImportFile.of(path, source, target) for path in paths]
    *_, found = survey_rows(files)
    return [row for _, row in number_rows(files, ReadContext(found.index))]


def write(path: Path, names: Sequence[str], *records: dict[str, Any]) -> Path:
    path.write_text(csv_of(names, records), encoding="utf-8-sig")
    return path


UMAMI_VIEW = {
    "session_id": "s1",
    "event_id": "e1",
    "url_path": "/caf%C3%A9/",
    "event_type": "1",
    "created_at": "2026-01-31T23:30:00.250Z",
}
GOAT_VIEW = {
    "2Path": "/a",
    "Event": "false",
    "Session": "1",
    "Bot": "0",
    "FirstVisit": "true",
    "Date": "2026-01-31T12:00:00Z",
}
