"""Exports with daily figures, made by the programs' documentation, and their expected content.

What is expected is added up here once more, row by row and in plain Python, out of the same rows.
"""

import csv
import io
import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile
from zoneinfo import ZoneInfo

from attrs import define, field

BEGIN = date(2024, 3, 28)
"""In Berlin, summer time begins on the fourth day."""

# What a program writes, and what it is called here.
BROWSERS = (
    (("Chrome", "109.0"), "Chrome"),
    (("Microsoft Edge", "111.0"), "Edge"),
    (("Safari", "16.3"), "Safari"),
    (("Samsung Browser", "20.0"), "Samsung Internet"),
    (("", ""), "Unknown"),
)
SYSTEMS = (
    (("Mac", "10.14"), "macOS"),
    (("Windows", "7"), "Windows"),
    (("GNU/Linux", ""), "Linux"),
    (("", ""), "Unknown"),
)
DEVICES = (("Laptop", "Desktop"), ("Desktop", "Desktop"), ("Mobile", "Mobile"), ("", "Unknown"))
COUNTRIES = (
    (("FR", "FR-PAC", "3027647"), "France"),
    (("FR", "FR-CVL", "3032213"), "France"),
    (("GB", "GB-ENG", "2634910"), "United Kingdom"),
    (("", "", "0"), "Unknown"),
)
PATHS = (
    ("/", "/"),
    ("/docs/", "/docs"),
    ("/docs", "/docs"),
    ("/caf%C3%A9", "/café"),
    ("/a,b", "/a,b"),
)
SOURCES = (
    # source, referrer, utm: source, medium, campaign, content, term
    (("Google", "google.com", "", "", "", "", ""), "google.com"),
    (("GitHub", "github.com/a/b/", "", "", "", "", ""), "github.com/a/b"),
    (("news", "", "news", "email", "spring", "top", "shoes"), ""),
    (("Signal", "", "", "", "", "", ""), "Signal"),
    (("", "", "", "", "", "", ""), ""),
)
EVENTS = (
    (("Signup", "", ""), ("Signup", "")),
    (
        ("Outbound Link: Click", "https://one.example/", ""),
        ("Outbound Link: Click", "https://one.example/"),
    ),
    (
        ("Outbound Link: Click", "https://two.example/", ""),
        ("Outbound Link: Click", "https://two.example/"),
    ),
    (("404", "", "/no-such-page"), ("404", "/no-such-page")),
)
HOST = "example.org"
GOAT_FOLDER = "goatcounter-export-example-20240403T000000Z-0/"
"""Every file of a GoatCounter export is in such a folder."""


@define
class DayRollup:
    """Views, visitors, visitors of a page, bounces, visits, ms: for each name of each report."""

    of: dict[str, dict[Any, list[int]]] = field(
        factory=lambda: defaultdict(lambda: defaultdict(lambda: [0] * 6))
    )

    def add(self, report: str, name: Any, *figures: int) -> None:
        for place, figure in enumerate(figures):
            self.of[report][name][place] += figure


@define
class Plausible:
    """An export: rows of each table, and the days of which something is to be left out."""

    days: int = 6
    seed: int = 1
    tables: dict[str, tuple[list[str], list[list[Any]]]] = field(factory=dict, init=False)
    _rng: random.Random = field(init=False)
    _figures: list[tuple[str, date, Any, dict[str, int]]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        rng = self._rng = random.Random(self.seed)  # noqa: S311 - it is invented
        by_visits = ["visitors", "visits", "visit_duration", "bounces", "pageviews"]
        for n in range(self.days):
            day = BEGIN + timedelta(days=n)
            self._row("visitors", day, (), "all", [], by_visits)
            for theirs, ours in PATHS:
                host = rng.choice(("example.org", "www.example.org"))
                columns = ["visits", "visitors", "pageviews"]
                columns += ["total_time_on_page", "total_time_on_page_visits"]
                names = ["hostname", "page"]
                self._row("pages", day, (host, theirs), ours, names, columns)
                columns = ["visitors", "entrances", "visit_duration", "bounces", "pageviews"]
                self._row("entry_pages", day, (theirs,), ours, ["entry_page"], columns)
                columns = ["visitors", "visit_duration", "exits", "bounces", "pageviews"]
                self._row("exit_pages", day, (theirs,), ours, ["exit_page"], columns)
            for table, known, names in (
                ("browsers", BROWSERS, ["browser", "browser_version"]),
                ("operating_systems", SYSTEMS, ["operating_system", "operating_system_version"]),
                ("locations", COUNTRIES, ["country", "region", "city"]),
                (
                    "sources",
                    SOURCES,
                    [
                        *("source", "referrer", "utm_source", "utm_medium", "utm_campaign"),
                        *("utm_content", "utm_term"),
                    ],
                ),
            ):
                for theirs, ours in known:
                    self._row(table, day, theirs, (theirs, ours), names, by_visits)
            for device, ours in DEVICES:
                self._row("devices", day, (device,), ours, ["device"], by_visits)
            for event, ours in EVENTS:
                names = ["name", "link_url", "path"]
                self._row("custom_events", day, event, ours, names, ["visitors", "events"])

    def _row(
        self,
        table: str,
        day: date,
        theirs: Sequence[str],
        ours: Any,
        *named: list[str],
    ) -> None:
        names, columns = named
        rng = self._rng
        visitors = rng.randint(1, 40)
        visits = visitors + rng.randint(0, 9)
        known = {
            "visitors": visitors,
            "visits": visits,
            "entrances": visits,
            "exits": visits,
            "bounces": rng.randint(0, visits),
            "pageviews": visits + rng.randint(0, 99),
            "visit_duration": rng.randint(0, 9_999),
            "events": visits,
            "total_time_on_page": rng.choice((0, rng.randint(1, 99_999))),
            "total_time_on_page_visits": visits,
        }
        head, rows = self.tables.setdefault(table, (["date", *names, *columns], []))
        rows.append([day.isoformat(), *theirs, *(known[column] for column in columns)])
        self._figures.append((table, day, ours, known))
        assert len(head) == len(rows[-1])

    def files(self) -> Iterator[tuple[str, bytes]]:
        end = BEGIN + timedelta(days=self.days - 1)
        for table, (head, rows) in self.tables.items():
            text = io.StringIO(newline="")
            csv.writer(text, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n").writerows(
                [head, *rows]
            )
            yield f"imported_{table}_{BEGIN:%Y%m%d}_{end:%Y%m%d}.csv", text.getvalue().encode()

    def zip(self, path: Path) -> Path:
        with ZipFile(path, "w", ZIP_DEFLATED) as archive:
            for name, content in self.files():
                archive.writestr(name, content)
        return path

    def folder(self, path: Path) -> list[Path]:
        path.mkdir(exist_ok=True)
        for name, content in self.files():
            (path / name).write_bytes(content)
        return sorted(path.iterdir())

    def visits(self, table: str, figure: str) -> dict[tuple[date, Any], int]:
        """Return a figure of a table, added up by day and name."""
        found: dict[tuple[date, Any], int] = defaultdict(int)
        for name, day, ours, known in self._figures:
            if name == table:
                found[day, ours] += known[figure]
        return found

    def sums(self, without: frozenset[date] = frozenset()) -> DayRollup:
        """Add up all but some days."""
        found = DayRollup()
        by_day: dict[tuple[str, date, Any], dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for table, day, ours, known in self._figures:
            if day not in without:
                for key in _counted_by(table, day, ours):
                    for measure, figure in known.items():
                        by_day[key][measure] += figure
        for (report, _, name), known in by_day.items():
            visitors, views = known["visitors"], known["pageviews"]
            bounces = known["bounces"], known["visits"] or known["entrances"]
            if report in {"properties", "property_values"}:
                found.add(report, name, known["events"], 0)
            elif report == "entries":
                found.add("pages", name, 0, visitors, 0, *bounces)
            elif report == "pages":
                ms = known["total_time_on_page"] * 1000
                found.add(report, name, views, 0, visitors, 0, 0, ms)
            else:
                found.add(report, name, views, visitors, 0, *bounces)
        return found


def _counted_by(table: str, day: date, ours: Any) -> list[tuple[str, date, Any]]:
    """Return what a row of Plausible's counts for: report, day, name."""
    found: list[tuple[str, Any]]
    match table:
        case "visitors":
            found = [("summary", ""), ("days", day.isoformat())]
        case "sources":
            names = ("sources", "mediums", "campaigns", "contents", "terms")
            found = [("referrer_urls", ours[1]), *zip(names, ours[0][2:], strict=True)]
        case "custom_events":
            found = [("properties", ours[0]), ("property_values", ours)]
        case "exit_pages":
            found = []
        case "browsers" | "operating_systems" | "locations":
            found = [(_REPORTS.get(table, table), ours[1])]
        case _:
            found = [(_REPORTS.get(table, table), ours)]
    return [(report, day, name) for report, name in found]


_REPORTS = {"operating_systems": "os", "locations": "countries", "entry_pages": "entries"}


@define
class GoatCounter:
    """GoatCounter's export: a zip of what it counted by the hour and by the day."""

    days: int = 6
    seed: int = 2
    zone: ZoneInfo = field(factory=lambda: ZoneInfo("UTC"))
    more: Mapping[str, Sequence[Mapping[str, Any]]] = field(factory=dict)
    files: dict[str, list[dict[str, Any]]] = field(factory=dict, init=False)
    found: DayRollup = field(factory=DayRollup, init=False)

    def __attrs_post_init__(self) -> None:
        rng = random.Random(self.seed)  # noqa: S311 - it is invented
        self.files = {name: list(rows) for name, rows in GOAT_NAMES.items()}
        begin = datetime.combine(BEGIN, datetime.min.time(), UTC)
        for hour in range(0, 24 * self.days, 5):
            moment = begin + timedelta(hours=hour)
            for path, ours in GOAT_PATHS.items():
                ref = rng.choice(list(GOAT_REFS))
                count = rng.randint(1, 30)
                self._add(
                    "hit_stats",
                    hour=f"{moment:%Y-%m-%dT%H:00:00Z}",
                    path_id=path,
                    ref_id=ref,
                    count=count,
                )
                if isinstance(ours, tuple):
                    self.found.add("properties", ours[0], count, 0)
                    self.found.add("property_values", ours, count, 0)
                    continue
                referrer, campaign = GOAT_REFS[ref]
                local = moment.astimezone(self.zone).date().isoformat()
                for report, name in (
                    *(("summary", ""), ("days", local), ("pages", ours)),
                    *(("referrer_urls", referrer), ("sources", campaign)),
                ):
                    self.found.add(report, name, count, count, count)
        for n in range(self.days):
            day = (BEGIN + timedelta(days=n)).isoformat()
            for path, ours in GOAT_PATHS.items():
                for file, column, report, known in GOAT_BY_DAY:
                    theirs = rng.choice(list(known))
                    count = rng.randint(1, 30)
                    self._add(file, day=day, path_id=path, **{column: theirs}, count=count)
                    if isinstance(ours, str):
                        self.found.add(report, known[theirs], count, count, count)
        for name, rows in self.more.items():
            self.files.setdefault(name, []).extend(map(dict, rows))

    def _add(self, file: str, **row: Any) -> None:
        self.files.setdefault(file, []).append(row)

    def zip(self, path: Path, version: str = "1.0", folder: str = GOAT_FOLDER) -> Path:
        info = {"export_version": version, "goatcounter_version": "2.7", "created_for": HOST}
        with ZipFile(path, "w", ZIP_DEFLATED) as archive:
            archive.writestr(f"{folder}info.json", json.dumps(info, indent=4))
            for name, rows in self.files.items():
                lines = "".join(json.dumps(row) + "\n" for row in rows)
                archive.writestr(f"{folder}{name}.jsonl", lines)
        return path


GOAT_PATHS: Mapping[int, Any] = {
    211: "/",
    215: "/api",
    216: "/api",
    9_442_298: ("click-banana", ""),
}
GOAT_REFS = {
    1: ("", ""),
    2: ("Google", ""),
    3: ("example.com/page.html", ""),
    4: ("", "spring"),
    5: ("", ""),
    6: ("example.net/x", ""),
}
GOAT_NAMES: Mapping[str, list[dict[str, Any]]] = {
    "paths": [
        {"id": 211, "path": "/", "title": "Home page"},
        {"id": 215, "path": "/api", "title": "API"},
        {"id": 216, "path": "/api/?page=2", "title": "API"},
        {"id": 9_442_298, "event": True, "path": "click-banana", "title": "Yellow curvy fruit"},
    ],
    "refs": [
        {"id": 1, "ref": "", "ref_scheme": "o"},
        {"id": 2, "ref": "Google", "ref_scheme": "g"},
        {"id": 3, "ref": "example.com/page.html", "ref_scheme": "h"},
        {"id": 4, "ref": "spring", "ref_scheme": "c"},
        {"id": 5, "ref": "", "ref_scheme": None},
        {"id": 6, "ref": "https://www.example.net/x?y", "ref_scheme": "o"},
    ],
    "browsers": [
        {"id": 1, "name": "Chrome", "version": "46"},
        {"id": 29, "name": "", "version": ""},
        {"id": 37, "name": "Firefox", "version": "83"},
    ],
    "systems": [
        {"id": 2, "name": "Android", "version": "7.1"},
        {"id": 3, "name": "Linux", "version": "Ubuntu"},
        {"id": 18, "name": "macOS", "version": "10.15"},
    ],
    "languages": [{"iso_639_3": "", "name": "(unknown)"}, {"iso_639_3": "eng", "name": "English"}],
}
GOAT_BY_DAY: Sequence[tuple[str, str, str, Mapping[Any, str]]] = (
    ("browser_stats", "browser_id", "browsers", {1: "Chrome", 29: "Unknown", 37: "Firefox"}),
    ("system_stats", "system_id", "os", {2: "Android", 3: "Linux", 18: "macOS"}),
    (
        "location_stats",
        "location",
        "countries",
        {"IN": "India", "RO-B": "Romania", "RO": "Romania", "": "Unknown"},
    ),
    (
        "language_stats",
        "language",
        "languages",
        {"eng": "English", "spa": "Spanish", "": "Unknown"},
    ),
    (
        "size_stats",
        "width",
        "devices",
        {390: "Mobile", 820: "Tablet", 1280: "Desktop", 0: "Unknown"},
    ),
)
