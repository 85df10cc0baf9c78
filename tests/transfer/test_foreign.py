"""Hits of other programs are imported exactly, and can be undone as a whole."""

import tracemalloc
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from attrs import evolve
from support.query.readers import reader_of
from support.storage.contents import rows
from support.storage.hits import views
from support.transfer.foreign_files import (
    BEGIN,
    GOAT,
    GOAT_VIEW,
    HOST,
    PROGRAMS,
    TARGET,
    UMAMI,
    UMAMI_VIEW,
    Seen,
    goatcounter,
    read,
    seen,
    umami,
    write,
)
from support.transfer.round_trips import answers, take_in

from medamad.domain.errors import Conflict
from medamad.domain.website_settings import WebsiteSettings
from medamad.ingest.pipeline import Rules
from medamad.ingest.website_rules import WebsiteRules
from medamad.query.request import Query
from medamad.query.visit_reports import entry_pages
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.store import Store
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.import_survey import ImportFile, survey_rows
from medamad.transfer.rows import RejectedRow, ViewRow

OpenStore = Callable[..., Store]
Write = Callable[[Sequence[Seen], Path], Path]


def content_of(store: Store, website: Any) -> dict[str, Counter[Any]]:
    """Return the content of the store, counted naively."""
    found, events = store.read(website, rows)
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
    """Return the same for the visits that the files were made from."""
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
async def test_another_program_s_hits_are_imported_and_undone(
    program: str, open_store: OpenStore, tmp_path: Path
) -> None:
    things = seen(400)
    file = PROGRAMS[program](things, tmp_path / "export")
    assert ImportFile.of(file, None).source == program
    store = open_store()
    website = await store.add_website(HOST, 1)
    await store.append(views(1, 30))
    before, known = answers(store, website), content_of(store, website)
    taken = await take_in(store, website, [file])
    assert taken.survey.rejected_rows == 0
    found, wanted = content_of(store, website), counted(things)
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
async def test_the_new_part_of_a_later_export_is_imported(
    open_store: OpenStore, tmp_path: Path
) -> None:
    things = seen(300)
    middle = things[150].time
    first = goatcounter([each for each in things if each.time <= middle], tmp_path / "first")
    store = open_store()
    website = await store.add_website(HOST, 1)
    await take_in(store, website, [first])
    taken = await take_in(store, website, [goatcounter(things, tmp_path / "second")])
    assert taken.gathering.left_out == sum(each.time <= middle for each in things)
    found = content_of(store, website)
    for name, counts in counted(things).items():
        assert found[name] == counts, name
    await store.imports.undo(website, 1)
    later = [each for each in things if each.time > middle]
    assert content_of(store, website)["paths"] == counted(later)["paths"]
    again = await take_in(store, website, [first])
    assert again.gathering.left_out == 0
    assert content_of(store, website)["paths"] == counted(things)["paths"]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_events_after_the_last_view_count_once(open_store: OpenStore, tmp_path: Path) -> None:
    event = UMAMI_VIEW | {"event_type": "2", "event_name": "buy"}
    records = [UMAMI_VIEW | {"created_at": "2026-01-31 10:00:00"}]
    records += [
        event | {"created_at": f"2026-01-31 10:0{n}:00", "event_id": f"e{n}"} for n in (2, 3, 4)
    ]
    store = open_store()
    website = await store.add_website(HOST, 1)
    # The first has an event alone.
    for first, end, came in ((1, 2, (0, 1)), (0, 3, (1, 1)), (0, 4, (0, 1))):
        file = write(tmp_path / f"export-{end}", UMAMI, *records[first:end])
        taken = await take_in(store, website, [file])
        assert (taken.ended.views, taken.ended.events) == came, end
    assert content_of(store, website)["events"] == {("buy", ""): 3}
    await store.close()


@pytest_twisted.ensureDeferred
async def test_hits_after_the_first_counted_one_are_skipped_by_default(
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
    assert taken.gathering.left_out == len(things) - before
    await store.imports.undo(website, taken.ended.number)
    taken = await take_in(store, website, [file], overlapping=True)
    assert taken.ended.views + taken.ended.events == len(things)
    await store.close()


@pytest.mark.parametrize(
    ("has_visits", "entries"), [(True, {"/": 1, "/a": 1, "/c": 1}), (False, {})]
)
@pytest_twisted.ensureDeferred
async def test_visits_are_imported_in_any_order_unless_they_are_switched_off(
    open_store: OpenStore, tmp_path: Path, entries: dict[str, int], *, has_visits: bool
) -> None:
    views = (("s1", "12:00", "/c"), ("s1", "10:10", "/b"), ("s2", "10:05", "/a"))
    records = [
        UMAMI_VIEW
        | {"session_id": session, "created_at": f"2026-01-31 {time}:00", "url_path": path}
        | {"event_id": time}
        for session, time, path in (*views, ("s1", "10:00", "/"))
    ]
    file = write(tmp_path / "export", UMAMI, *records)
    store = open_store()
    website = await store.add_website(HOST, 1)
    await take_in(store, website, [file], rules=Rules(has_visits=has_visits))

    def read_entries(snapshot: Snapshot) -> dict[Any, Any]:
        found = entry_pages(reader_of(snapshot), Query())
        return {row.path: row.visits for row in found.content}

    assert store.read(website, read_entries) == entries
    await store.close()


def expected_events(program: str, events: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Return the properties that a program's events become."""
    match program:
        case "umami":
            return events + Counter({("signup", ""): events.total()})
        case "goatcounter":
            return Counter({("-".join(pair), ""): count for pair, count in events.items()})
    return events


@pytest.mark.parametrize(
    ("names", "record", "field"),
    [
        (UMAMI, UMAMI_VIEW | {"created_at": "yesterday"}, "created_at"),
        (UMAMI, UMAMI_VIEW | {"created_at": "1969-12-31 00:00:00"}, "created_at"),
        (GOAT, GOAT_VIEW | {"Date": ""}, "Date"),
    ],
)
def test_a_bad_row_is_named_and_the_others_are_imported(
    tmp_path: Path, names: list[str], record: dict[str, Any], field: str
) -> None:
    good = UMAMI_VIEW | {"event_id": "e9"} if names is UMAMI else GOAT_VIEW
    found = read(write(tmp_path / "export", names, record, good))
    assert [(row.line, row.field) for row in found if isinstance(row, RejectedRow)] == [(2, field)]
    assert sum(isinstance(row, ViewRow) for row in found) == 1


def test_what_a_website_never_stores_is_imported_from_no_program(tmp_path: Path) -> None:
    settings = WebsiteSettings(redacted_paths=("/reset/*",), redact_emails=True)
    target = evolve(TARGET, own=WebsiteRules.of(settings))
    email, long = "ada@example.org", "x" * 500 + "/ada@example.org"
    umami_file = write(
        tmp_path / "umami.csv",
        UMAMI,
        UMAMI_VIEW | {"utm_source": email, "url_path": "/reset/kQ2%2Fp", "referrer_domain": "a.b"},
        UMAMI_VIEW | {"event_id": "e2", "utm_source": long, "referrer_path": f"/{email}"},
    )
    goats = write(
        tmp_path / "goats.csv",
        GOAT,
        GOAT_VIEW | {"Referrer": email, "Referrer scheme": "c"},
        GOAT_VIEW | {"Referrer": email, "Referrer scheme": "g", "2Path": f"/a?utm_term={email}"},
    )
    sources = tmp_path / "sources.csv"
    sources.write_text(
        "date,source,referrer,utm_source,utm_medium,utm_content,pageviews,visitors\n"
        f"2023-02-09,{email},,{email},,,2,1\n2023-02-09,x,a.example/{email},,{email},,2,1\n"
    )
    events = tmp_path / "events.csv"
    events.write_text(
        "date,name,link_url,path,visitors,events\n"
        f"2023-02-09,Click,https://a.example/{email},/x,1,1\n"
        "2023-02-09,404,,/reset/kQ2,1,1\n2023-02-09,404,,/caf%C3%A9,1,1\n"
    )
    props = tmp_path / "props.csv"
    props.write_text(
        "date,property,value,visitors,events\n"
        f"2023-02-09,url,https://a.example/{email},1,1\n2023-02-09,path,/reset/kQ2,1,1\n"
    )
    found = [
        *read(umami_file, goats, target=target),
        *(
            row
            for file in (sources, events, props)
            for row in ImportFile.of(file, None, target).day_rows()
        ),
    ]
    assert not any(isinstance(row, RejectedRow) for row in found)
    assert len(found) == 11
    text = "\n".join(map(str, found))
    assert "kQ2" not in text
    assert "ada" not in text
    assert "/reset/…" in text
    assert "/caf%C3%A9" in text


def test_a_row_with_too_few_cells_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "export", GOAT, GOAT_VIEW)
    with path.open("a") as file:
        file.write("/b,,false\n")
    assert read(path)[1] == RejectedRow(3, "2Path", f"expected {len(GOAT)} cells, got 3")


@pytest.mark.parametrize("program", PROGRAMS)
def test_hits_from_the_future_are_rejected(program: str, tmp_path: Path) -> None:
    """Otherwise all later imports would fall into a time that is covered."""
    things = seen(60)
    path = PROGRAMS[program](things, tmp_path / "export")
    latest_ms = round(things[30].time.timestamp() * 1_000)
    found = read(path, target=ImportTarget(HOST, latest_ms=latest_ms))
    refused = [row for row in found if isinstance(row, RejectedRow)]
    assert {row.reason for row in refused} == {"expected a time at most a day in the future"}
    assert len(refused) == 29
    taken = {row.time_ms for row in found if not isinstance(row, RejectedRow)}
    assert max(taken) == latest_ms
    assert all(row.line for row in refused if row.field != "events: date_created")


@pytest.mark.parametrize("rows", [8_000, pytest.param(200_000, marks=pytest.mark.slow)])
def test_many_rows_take_little_memory(tmp_path: Path, rows: int) -> None:
    """The rows are read one after the other."""
    path = tmp_path / "export"
    with path.open("w") as file:
        file.write(",".join(UMAMI) + "\n")
        for number in range(rows):
            file.write(
                f",s{number % 99},,e{number},,chrome,Linux,desktop,,,DE,/{number % 50},,,,,1,,"
                "2026-01-31 12:00:00\n"
            )
    tracemalloc.start()
    count = sum(1 for _ in survey_rows([ImportFile.of(path, None, TARGET)]))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count > 1
    assert peak < 5 << 20
