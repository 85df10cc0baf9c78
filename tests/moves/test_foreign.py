"""Exports of other programs: what comes in is what they counted, and goes again as a whole."""

import csv
import io
import random
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import duckdb
import pytest
import pytest_twisted
from attrs import frozen
from held import rows
from moved import answers, take_in
from views import views

from medamad.collect.rules import Rules
from medamad.model.errors import BadRequest, Conflict
from medamad.moves.foreign import country_of
from medamad.moves.medama import country_by_name, locale_by_name
from medamad.moves.naming import browser_named, device_named, system_named
from medamad.moves.rows import EventRow, Refused, Row, ViewRow
from medamad.moves.survey import Given, numbered, survey
from medamad.moves.visits import Into
from medamad.store.store import Store
from medamad.vocabulary.spam import SpamHosts

OpenStore = Callable[..., Store]
HOST = "example.org"
BEGIN = datetime(2025, 3, 1, tzinfo=UTC)
INTO = Into(HOST, Rules(spam=SpamHosts(["spam.example"])))


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
    """Give what some visitors did on some days, in order; an event follows a view of its page."""
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
Write = Callable[[Sequence[Seen], Path], Path]


def told(store: Store, website: Any) -> dict[str, Counter[Any]]:
    """Give what the store has, counted in the most simple way."""
    found, events = store.ask(website, rows)
    return {
        "paths": Counter(row["path"] for row in found),
        "browsers": Counter(row["browser"] for row in found),
        "countries": Counter(row["country"] for row in found),
        "days": Counter(row["time_ms"] // 86_400_000 for row in found),
        "visitors": Counter(row["time_ms"] // 86_400_000 for row in found if row["p"]),
        "events": Counter(pair for row in events for pair in row["properties"]),
        "viewless": Counter(row["view"] is None for row in events),
    }


def counted(things: Sequence[Seen]) -> dict[str, Counter[Any]]:
    """Give the same of what was seen, without any of ours."""
    found = [each for each in things if each.event is None]
    visits = {(each.time.date(), each.visitor) for each in found}

    def number(day: Any) -> int:
        return int((day - BEGIN.date()).days + BEGIN.timestamp() // 86_400)

    return {
        "paths": Counter(each.path for each in found),
        "browsers": Counter(each.browser for each in found),
        "countries": Counter(each.country for each in found),
        "days": Counter(number(each.time.date()) for each in found),
        "visitors": Counter(number(day) for day, _ in visits),
    }


@pytest.mark.parametrize("program", PROGRAMS)
@pytest_twisted.ensureDeferred
async def test_what_another_program_counted_comes_in_and_goes_again(
    program: str, open_store: OpenStore, tmp_path: Path
) -> None:
    things = seen(400)
    file = PROGRAMS[program](things, tmp_path / "export")
    assert Given.of(file, None).source == program
    store = open_store()
    website = await store.add_website(HOST, 1)
    await store.append(views(1, 30))
    before, known = answers(store, website), told(store, website)
    taken = await take_in(store, website, [file])
    assert taken.survey.refused_rows == 0
    found, wanted = told(store, website), counted(things)
    for name, counts in wanted.items():
        assert found[name] - known[name] == counts, name
    events = Counter(each.event for each in things if each.event is not None)
    assert found["events"] - known["events"] == expected_events(program, events)
    has_views = program != "goatcounter"
    assert (found["viewless"] - known["viewless"]) == {not has_views: events.total()}
    with pytest.raises(Conflict, match="the same was imported before, as number 1"):
        await take_in(store, website, [file])
    await store.imports.undo(website, taken.ended.number)
    assert answers(store, website) == before
    await store.close()


@pytest_twisted.ensureDeferred
async def test_of_an_export_that_has_grown_the_later_part_comes_in(
    open_store: OpenStore, tmp_path: Path
) -> None:
    things = seen(300)
    middle = things[150].time
    first = goatcounter([each for each in things if each.time <= middle], tmp_path / "first")
    store = open_store()
    website = await store.add_website(HOST, 1)
    await take_in(store, website, [first])
    taken = await take_in(store, website, [goatcounter(things, tmp_path / "second")])
    assert taken.gathering.there == sum(each.time <= middle for each in things)
    found = told(store, website)
    for name, counts in counted(things).items():
        assert found[name] == counts, name
    await store.imports.undo(website, 1)
    later = [each for each in things if each.time > middle]
    assert told(store, website)["paths"] == counted(later)["paths"]
    again = await take_in(store, website, [first])
    assert again.gathering.there == 0
    assert told(store, website)["paths"] == counted(things)["paths"]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_what_came_after_the_first_hit_of_ours_is_left_out_unless_wanted(
    open_store: OpenStore, tmp_path: Path
) -> None:
    things = seen(60)
    file = umami(things, tmp_path / "export.zip")
    middle = things[30].time
    store = open_store()
    website = await store.add_website(HOST, 1)
    own = views(1, 30, round(middle.timestamp() * 1_000))
    await store.append(own)
    first_ms = min(view.time_ms for view in own)
    before = sum(each.time.timestamp() * 1_000 < first_ms for each in things)
    assert 0 < before < len(things)
    taken = await take_in(store, website, [file])
    assert taken.ended.views + taken.ended.events == before
    assert taken.gathering.there == len(things) - before
    await store.imports.undo(website, taken.ended.number)
    taken = await take_in(store, website, [file], overlapping=True)
    assert taken.ended.views + taken.ended.events == len(things)
    await store.close()


def expected_events(program: str, events: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Give the properties that a program's events become."""
    match program:
        case "umami":
            return events + Counter({("signup", ""): events.total()})
        case "goatcounter":
            return Counter({("-".join(pair), ""): count for pair, count in events.items()})
    return events


def read(path: Path, into: Into = INTO) -> list[Row | Refused]:
    return [row for _, row in numbered([Given.of(path, None, into)])]


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


def test_all_of_a_view_of_umami(tmp_path: Path) -> None:
    record = UMAMI_VIEW | {
        "hostname": "www.example.org",
        "browser": "edge-chromium",
        "os": "Windows 8.1",
        "device": "mobile",
        "screen": "99999x20",
        "language": "de-AT",
        "country": "at",
        "url_query": "utm_medium=mail&x=1",
        "utm_source": "'=news",
        "referrer_domain": "www.other.example",
        "referrer_path": "/page/",
    }
    (row,) = read(write(tmp_path / "website_event.csv", UMAMI, record))
    assert row == ViewRow(
        number=1,
        time_ms=1_769_902_200_250,
        path="/café",
        first_today=True,
        first_of_page=True,
        width_px=65_535,
        referrer="other.example/page",
        utm_source="=news",
        utm_medium="mail",
        browser="Edge",
        os="Windows",
        os_version="8.1",
        device="Mobile",
        country="AT",
        locale="de-AT",
        host="www.example.org",
    )


def test_what_overlaps_and_what_is_no_view_is_passed_over(tmp_path: Path) -> None:
    """Exports of months may overlap: what has the same identity comes in once."""
    first = write(tmp_path / "first", UMAMI, UMAMI_VIEW, UMAMI_VIEW | {"event_id": "e2"})
    second = write(
        tmp_path / "second",
        UMAMI,
        UMAMI_VIEW | {"event_id": "e2"},
        UMAMI_VIEW | {"event_id": "e3", "event_type": "3"},
        UMAMI_VIEW | {"event_id": "e4", "referrer_domain": "spam.example"},
        UMAMI_VIEW | {"event_id": "e5", "session_id": "s2", "created_at": "2026-01-30 10:00:00"},
    )
    files = [Given.of(path, None, INTO) for path in (first, second)]
    found = [row for _, row in numbered(files) if isinstance(row, ViewRow)]
    assert [(row.number, row.first_today, row.first_of_page) for row in found] == [
        (1, True, True),
        (2, False, False),
        (3, True, True),
    ]


def test_an_event_of_umami_belongs_to_the_last_view_of_its_page(tmp_path: Path) -> None:
    event = {"event_type": "2", "event_name": "buy"}
    found = read(
        write(
            tmp_path / "events",
            UMAMI,
            UMAMI_VIEW,
            UMAMI_VIEW | event | {"event_id": "e2"},
            UMAMI_VIEW | event | {"event_id": "e3", "url_path": "/other"},
            UMAMI_VIEW | event | {"event_id": "e4", "session_id": "s2"},
        )
    )
    assert [row.view for row in found if isinstance(row, EventRow)] == [1, 0, 0]


def test_data_that_stand_alone_are_no_export(tmp_path: Path) -> None:
    alone = write(tmp_path / "event_data.csv", UMAMI_DATA, {"event_id": "e1"})
    with pytest.raises(BadRequest, match="expected a file of umami"):
        Given.of(alone, None)
    with pytest.raises(BadRequest, match=r"event_data\.csv: event_type: there is no such column"):
        list(Given.of(alone, "umami").rows())


GOAT_VIEW = {
    "2Path": "/a",
    "Event": "false",
    "Session": "1",
    "Bot": "0",
    "FirstVisit": "true",
    "Date": "2026-01-31T12:00:00Z",
}


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        (
            {"Referrer": "www.other.example/x/", "Referrer scheme": "h"},
            {"referrer": "other.example/x"},
        ),
        ({"Referrer": "Hacker News", "Referrer scheme": "g"}, {"referrer": "Hacker News"}),
        ({"Referrer": "spring", "Referrer scheme": "c"}, {"referrer": "", "utm_source": "spring"}),
        ({"2Path": "/a?utm_campaign=x"}, {"path": "/a", "utm_campaign": "x"}),
        ({"Browser": "Edge 119.0", "System": "Linux Ubuntu"}, {"browser": "Edge", "os": "Linux"}),
        ({"Browser": "", "System": ""}, {"browser": "Unknown", "os": "Unknown"}),
        ({"Location": "US-TX", "Screen size": "390,844,3"}, {"country": "US", "width_px": 390}),
        ({"Location": "?", "Screen size": ""}, {"country": "", "width_px": 0}),
        ({"Session": "", "FirstVisit": "false"}, {"first_today": False, "first_of_page": False}),
    ],
)
def test_a_view_of_goatcounter(
    tmp_path: Path, fields: dict[str, str], wanted: dict[str, Any]
) -> None:
    (row,) = read(write(tmp_path / "export.csv", GOAT, GOAT_VIEW | fields))
    assert isinstance(row, ViewRow)
    assert {name: getattr(row, name) for name in wanted} == wanted


def test_version_1_of_goatcounter_has_user_agents(tmp_path: Path) -> None:
    names = [
        "1Path" if name == "2Path" else name for name in GOAT if name not in {"UserAgent", "System"}
    ]
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
    record = GOAT_VIEW | {"Browser": agent, "1Path": "/a"}
    del record["2Path"]
    bot = record | {"Bot": "3"}
    (row,) = read(write(tmp_path / "export.csv", names, record, bot))
    assert isinstance(row, ViewRow)
    assert (row.browser, row.browser_version, row.device) == ("Firefox", "128", "Desktop")


def test_a_later_version_of_goatcounter_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text(",".join(GOAT).replace("2Path", "3Path") + "\n")
    with pytest.raises(BadRequest, match="expected an export of version 1 or 2, got 3"):
        read(path)


@pytest.mark.parametrize(
    ("names", "record", "field"),
    [
        (UMAMI, UMAMI_VIEW | {"created_at": "yesterday"}, "created_at"),
        (UMAMI, UMAMI_VIEW | {"created_at": "1969-12-31 00:00:00"}, "created_at"),
        (GOAT, GOAT_VIEW | {"Date": ""}, "Date"),
    ],
)
def test_a_bad_row_is_named_and_the_others_come_in(
    tmp_path: Path, names: list[str], record: dict[str, Any], field: str
) -> None:
    good = UMAMI_VIEW | {"event_id": "e9"} if names is UMAMI else GOAT_VIEW
    found = read(write(tmp_path / "export", names, record, good))
    assert [(row.line, row.field) for row in found if isinstance(row, Refused)] == [(2, field)]
    assert sum(isinstance(row, ViewRow) for row in found) == 1


def test_a_row_of_too_few_cells_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "export", GOAT, GOAT_VIEW)
    with path.open("a") as file:
        file.write("/b,,false\n")
    assert read(path)[1] == Refused(3, "2Path", f"expected {len(GOAT)} cells, got 3")


def test_a_zip_that_is_cut_off_is_told(tmp_path: Path) -> None:
    path = umami(seen(50), tmp_path / "export.zip")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(BadRequest, match=r"export\.zip: not a sound zip"):
        Given.of(path, None)


def test_an_older_medama_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "analytics.db"
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE views (hostname TEXT, pathname TEXT, date_created TIMESTAMPTZ);"
            "INSERT INTO views VALUES ('example.org', '/a', '2024-05-01T00:00:00Z');"
        )
    (row,) = read(path)
    assert row == ViewRow(number=1, time_ms=1_714_521_600_000, path="/a")


@pytest.mark.parametrize("registered", [HOST, f"www.{HOST}"])
def test_a_database_of_medama_is_read_by_either_name(tmp_path: Path, registered: str) -> None:
    path = tmp_path / "analytics.db"
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE views (hostname TEXT, pathname TEXT, date_created TIMESTAMPTZ);"
            "INSERT INTO views VALUES ('example.org', '/a', '2024-05-01T00:00:00Z');"
            "INSERT INTO views VALUES ('www.example.org', '/b', '2024-05-02T00:00:00Z');"
        )
    found = [row for row in read(path, Into(registered)) if isinstance(row, ViewRow)]
    assert [row.path for row in found] == ["/a", "/b"]


def test_an_event_of_medama_may_lack_its_value(tmp_path: Path) -> None:
    path = medama_file([], tmp_path / "analytics.db")
    with duckdb.connect(str(path)) as database:
        database.execute(
            "CREATE TABLE loose AS SELECT * FROM events; DROP TABLE events;"
            "ALTER TABLE loose RENAME TO events;"
            "INSERT INTO events VALUES"
            " (NULL, 'a', 'example.org', 'plan', NULL, '2024-05-01T00:00:00Z'),"
            " (NULL, 'b', 'example.org', NULL, 'pro', '2024-05-01T00:00:01Z'),"
            " (NULL, 'c', 'example.org', 'none', 'at any time', NULL);"
        )
    (row,) = read(path)
    assert isinstance(row, EventRow)
    assert (row.name, row.value) == ("plan", "")


def test_a_zip_of_another_program_is_none_of_umami(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("imported_visitors.csv", "date\n")
    with pytest.raises(BadRequest, match=r"website_event\.csv: there is no such file in the zip"):
        list(Given.of(path, "umami").rows())


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_of_the_future_is_refused(program: str, tmp_path: Path) -> None:
    """Or all that comes in later would be of a time that was counted."""
    things = seen(60)
    path = PROGRAMS[program](things, tmp_path / "export")
    latest_ms = round(things[30].time.timestamp() * 1_000)
    found = read(path, Into(HOST, latest_ms=latest_ms))
    refused = [row for row in found if isinstance(row, Refused)]
    assert {row.reason for row in refused} == {"expected a time that is at most a day ahead"}
    assert len(refused) == 29
    taken = {row.time_ms for row in found if not isinstance(row, Refused)}
    assert max(taken) == latest_ms
    assert all(row.line for row in refused if row.field != "events: date_created")


def test_what_is_no_database_of_medama(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with duckdb.connect(str(path)) as database:
        database.execute("CREATE TABLE things (name TEXT)")
    with pytest.raises(BadRequest, match=r"other\.db: not a database of Medama"):
        read(path)


def test_without_the_library_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = medama_file(seen(5), tmp_path / "analytics.db")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(BadRequest, match="needs the extra `duckdb`"):
        read(path)


def test_many_rows_take_little_memory(tmp_path: Path) -> None:
    """The rows are read one after the other."""
    path = tmp_path / "export"
    with path.open("w") as file:
        file.write(",".join(UMAMI) + "\n")
        for number in range(60_000):
            file.write(
                f",s{number % 99},,e{number},,chrome,Linux,desktop,,,DE,/{number % 50},,,,,1,,"
                "2026-01-31 12:00:00\n"
            )
    tracemalloc.start()
    count = sum(1 for _ in survey([Given.of(path, None, INTO)]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count > 1
    assert peak < 16 << 20


@pytest.mark.parametrize(
    ("text", "version", "wanted"),
    [
        ("crios", "", ("Chrome", "")),
        ("Chrome 79.0", "", ("Chrome", "79")),
        ("Safari", "16.3", ("Safari", "16.3")),
        ("Microsoft Edge", "111.0", ("Edge", "111")),
        ("Vivaldi 6.5.3", "", ("Vivaldi", "6.5")),
        ("(unknown)", "", ("Unknown", "")),
    ],
)
def test_names_of_browsers(text: str, version: str, wanted: tuple[str, str]) -> None:
    assert browser_named(text, version) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Mac OS", ("macOS", "")),
        ("macOS 10.15", ("macOS", "10.15")),
        ("Windows 10", ("Windows", "10")),
        ("Android OS", ("Android", "")),
        ("iOS 17.1", ("iOS", "17.1")),
        ("Linux Ubuntu", ("Linux", "")),
        ("", ("Unknown", "")),
    ],
)
def test_names_of_systems(text: str, wanted: tuple[str, str]) -> None:
    assert system_named(text) == wanted


def test_no_country_is_called_unknown() -> None:
    assert (country_of("ZZ"), country_of("de-BY")) == ("", "DE")


def test_names_of_devices_countries_and_languages() -> None:
    assert [device_named(text) for text in ("Laptop", "tablet", "toaster")] == [
        "Desktop",
        "Tablet",
        "Unknown",
    ]
    assert [country_by_name(name) for name in ("Germany", "GB", "Atlantis")] == ["DE", "GB", ""]
    assert locale_by_name("English", "British English") == "en-GB"
    assert locale_by_name("German", "German (Germany)") == "de-DE"
    assert locale_by_name("German", "") == "de"
    assert locale_by_name("Klingonese", "") == ""
