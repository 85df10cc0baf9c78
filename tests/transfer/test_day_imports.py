"""Daily figures of other programs are imported exactly, only once, and can be undone."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytest_twisted
from support.query.readers import reader_of
from support.storage.contents import orphans, rows, settled
from support.storage.hits import DAY_MS, NOW_MS, a_view, views
from support.transfer.day_files import BEGIN, HOST, DayRollup, GoatCounter, Plausible
from support.transfer.day_imports import END_MS, EPOCH, statistics, take_days
from support.transfer.round_trips import SOURCES, answers, files_of, take_in

from medamad.domain.errors import Conflict
from medamad.domain.websites import Website
from medamad.domain.zones import start_of_day
from medamad.query.reports import ROW_REPORTS, SummaryOptions, events_by_property, summary
from medamad.query.request import Filter, Gap, Query, Result
from medamad.storage.check import StoreCheck
from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
BERLIN = ZoneInfo("Europe/Berlin")


def check(store: Store, website: Website, expected: DayRollup, reports: Iterable[str]) -> None:
    """Compare the reports with figures by name."""
    found: dict[str, dict[Any, dict[str, Any]]] = {}
    for row in statistics(store, website):
        name: Any = row.get("name", row.get("date", ""))
        if row["report"] == "property_values":
            name = (row["name"], row["value"])
        if row["report"] == "days":
            name = row["date"][:10]
        found.setdefault(row["report"], {})[name] = row
    for report in reports:
        known = expected.of[report]
        shown = {name: row for name, row in found[report].items() if row.get("pageviews") != 0}
        assert set(shown) == set(known), report
        for name, (count, visitors, of_page, bounces, visits, duration_ms) in known.items():
            row = shown[name]
            if report.startswith("propert"):
                assert row["events"] == count
                continue
            assert row["visitors"] == (of_page if report == "pages" else visitors), (report, name)
            assert row.get("pageviews", count) == count, (report, name)
            share = pytest.approx(round(bounces / visits, 4), abs=1e-4) if visits else None
            assert row.get("bounce_percentage") == share, (report, name)
            assert row.get("duration", 0) == duration_ms, (report, name)
            assert ("duration" in row) == any(of[5] for of in known.values()), (report, name)


OF_PLAUSIBLE = (
    *("summary", "pages", "referrer_urls", "sources", "mediums", "campaigns", "terms"),
    *("contents", "browsers", "os", "devices", "countries", "properties"),
)


def findings(store: Store) -> list[str]:
    with store.environment.reading() as txn:
        return list(StoreCheck(store.environment, txn).findings())


OF_GOATCOUNTER = (
    *("summary", "pages", "referrer_urls", "sources", "browsers", "os", "countries"),
    *("languages", "properties", "property_values"),
)


@pytest_twisted.ensureDeferred
async def test_plausible_s_figures_are_imported_and_undone(
    open_store: OpenStore, tmp_path: Path
) -> None:
    export = Plausible()
    store = open_store()
    website = await store.add_website(HOST, 1)
    await store.append(views(1, 9))
    before = answers(store, website), rows_of(store, website)
    zipped = export.zip(tmp_path / "export.zip")
    taken = await take_days(store, website, [zipped])
    assert (taken.survey.rejected, taken.gathering.days) == ([], export.days)
    assert taken.ended is not None
    (count, visitors, *_) = export.sums().of["summary"][""]
    events = sum(of[0] for of in export.sums().of["properties"].values())
    assert (taken.ended.views, taken.ended.visitors, taken.ended.events) == (
        *(count, visitors, events),
    )
    assert (taken.gathering.views, taken.gathering.visitors) == (count, visitors)
    assert taken.gathering.events == events
    assert findings(store) == orphans(store.environment) == []
    with pytest.raises(Conflict, match="the same was imported before, as number 1"):
        await take_days(store, website, [zipped])
    other = await store.add_website("other.example", 1)
    folder = export.folder(tmp_path / "single")
    await take_days(store, other, folder, most_bytes=1)
    check(store, other, export.sums(), (*OF_PLAUSIBLE, "days"))
    # Only values of one name can be identified.
    values = export.sums().of["property_values"]
    query = Query(filters=(Filter("prop_name", "eq", ("Outbound Link: Click",)),))
    report = store.read(
        other,
        lambda snapshot: events_by_property(reader_of(snapshot, SOURCES), query),
    )
    assert {(row.name, row.value): row.events for row in report.content} == {
        name: of[0] for name, of in values.items() if name[0] == "Outbound Link: Click"
    }
    await store.close()
    store = open_store()
    check(store, other, export.sums(), (*OF_PLAUSIBLE, "days"))
    await store.imports.undo(website, taken.ended.number)
    assert (answers(store, website), rows_of(store, website)) == before
    await settled(store, NOW_MS + 9 * DAY_MS)
    assert findings(store) == orphans(store.environment) == []
    check(store, other, export.sums(), OF_PLAUSIBLE)
    await store.close()


def summary_with_visits(store: Store, website: Website) -> Result[Any]:
    query, options = Query(with_visits=True), SummaryOptions(now_ms=END_MS)
    return store.read(
        website,
        lambda snapshot: summary(reader_of(snapshot, SOURCES), query, options=options),
    )


def by_name(found: dict[tuple[Any, Any], int]) -> Counter[Any]:
    sums: Counter[Any] = Counter()
    for (_, name), figure in found.items():
        sums[name] += figure
    return sums


@pytest_twisted.ensureDeferred
async def test_plausible_s_visits_are_imported(open_store: OpenStore, tmp_path: Path) -> None:
    export = Plausible()
    store = open_store()
    website = await store.add_website(HOST, 1)
    await take_days(store, website, [export.zip(tmp_path / "export.zip")])

    def ask(report: str, *filters: Filter) -> Result[Any]:
        query = Query(filters=filters, with_visits=True)
        return store.read(
            website,
            lambda snapshot: ROW_REPORTS[report](reader_of(snapshot, SOURCES), query),
        )

    def shown(report: str, column: str, figure: str) -> Counter[Any]:
        found = ask(report)
        assert not found.gaps.days(Gap.VISITS)
        return Counter({getattr(row, column): getattr(row, figure) for row in found.content})

    (visits, views, bounces, seconds) = (
        by_name(export.visits("visitors", figure))["all"]
        for figure in ("visits", "pageviews", "bounces", "visit_duration")
    )
    found = summary_with_visits(store, website).content["current"]
    assert (found.visits, found.views_per_visit) == (visits, round(views / visits, 2))
    assert found.visit_bounce_percentage == round(bounces / visits, 4)
    assert found.visit_duration == round(1000 * seconds / visits)
    entrances, seen = export.visits("entry_pages", "entrances"), export.visits("pages", "visits")
    exits = by_name(export.visits("exit_pages", "exits"))
    pages = by_name({key: max(seen[key], entrances[key]) for key in seen})
    assert shown("entries", "path", "visits") == by_name(entrances)
    assert shown("exits", "path", "visits") == exits
    assert shown("exits", "path", "exit_percentage") == {
        path: round(exits[path] / pages[path], 4) for path in exits
    }
    assert shown("pages", "path", "visits") == pages
    countries = by_name(export.visits("locations", "visits"))
    assert shown("countries", "country", "visits") == {
        ours: sum(count for name, count in countries.items() if name[1] == ours)
        for _, ours in countries
    }
    days = [(BEGIN - EPOCH).days + n for n in range(export.days)]
    for report, filters in (
        ("languages", ()),
        # How many views the visits had that saw a page besides their first is unknown.
        ("pages", (Filter("path", "eq", ("/docs",)),)),
    ):
        found_gaps = ask(report, *filters).gaps
        assert days in (found_gaps.days(Gap.VISITS), found_gaps.days(Gap.FIGURES))
    assert findings(store) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_visits_are_unknown_where_an_export_lacks_a_figure(
    open_store: OpenStore, tmp_path: Path
) -> None:
    path = tmp_path / "visitors.csv"
    path.write_text(f"date,visitors,visits,bounces,pageviews\n{BEGIN},2,3,1,4\n", "utf-8")
    store = open_store()
    website = await store.add_website(HOST, 1)
    await take_days(store, website, [path])
    found = summary_with_visits(store, website)
    assert found.content["current"].visits == 0
    assert found.gaps.days(Gap.VISITS) == [(BEGIN - EPOCH).days]
    await store.close()


@pytest.mark.parametrize(
    ("days", "share"),
    [
        ([(1, 2, 1)] * 30, 0.5),
        ([(1, 3, 1), (2, 2, 1), (3, 7, 0), (1, 1, 1)], round(3 / 13, 4)),
        ([(1, 1, 5)], 1),
    ],
)
@pytest_twisted.ensureDeferred
async def test_bounces_are_the_same_share_of_many_small_days(
    open_store: OpenStore, tmp_path: Path, days: list[tuple[int, int, int]], share: float
) -> None:
    """Each day has too few visitors, visits and bounces for a rate of its own."""
    path = tmp_path / "visitors.csv"
    head = "date,visitors,visits,bounces,pageviews,visit_duration\n"
    rows = (
        f"{BEGIN + timedelta(days=n)},{','.join(map(str, figures))},9,1\n"
        for n, figures in enumerate(days)
    )
    path.write_text(head + "".join(rows), "utf-8")
    store = open_store()
    website = await store.add_website(HOST, 1)
    await take_days(store, website, [path])
    found = summary_of(store, website)
    assert found["bounce_percentage"] == share
    assert found["visitors"] == sum(visitors for visitors, _, _ in days)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_days_without_views_have_no_visitors(open_store: OpenStore, tmp_path: Path) -> None:
    """The export has other figures of these days, and the statistics have them too."""
    days = [BEGIN + timedelta(days=n) for n in range(3)]
    total = tmp_path / "total.csv"
    head = "date,visitors,pageviews\n"
    total.write_text(f"{head}{days[0]},5,0\n{days[1]},4,0\n{days[2]},3,7\n", "utf-8")
    events = tmp_path / "events.csv"
    events.write_text(f"date,name,events\n{days[0]},Signup,2\n", "utf-8")
    store = open_store()
    website = await store.add_website(HOST, 1)
    taken = await take_days(store, website, [total, events])
    gathering = taken.gathering
    assert (gathering.days, gathering.days_without_views) == (2, 1)
    assert (gathering.views, gathering.visitors, gathering.events) == (7, 3, 2)
    found = summary_of(store, website)
    assert (found["pageviews"], found["visitors"]) == (7, 3)
    assert taken.ended is not None
    assert (taken.ended.visitors, taken.ended.events) == (3, 2)
    assert findings(store) == []
    await store.close()


def rows_of(store: Store, website: Website) -> Any:
    return store.read(website, rows)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Pacific/Honolulu"])
@pytest_twisted.ensureDeferred
async def test_goatcounter_s_figures_are_imported_and_undone(
    open_store: OpenStore, tmp_path: Path, zone: str
) -> None:
    export = GoatCounter(zone=ZoneInfo(zone))
    store = open_store()
    website = await store.add_website(HOST, 1)
    before = answers(store, website)
    zipped = export.zip(tmp_path / "export.zip")
    taken = await take_days(store, website, [zipped], zone=export.zone)
    assert taken.survey.rejected == []
    in_all = ("summary", "pages", "referrer_urls", "sources", "properties", "property_values")
    check(store, website, export.found, OF_GOATCOUNTER if zone == "UTC" else in_all)
    by_day = store.read(
        website,
        lambda snapshot: summary(
            reader_of(snapshot, SOURCES),
            Query(),
            options=SummaryOptions(now_ms=END_MS, interval="day", zone=ZoneInfo(zone)),
        ),
    ).content
    shown = {str(row.date)[:10]: row.pageviews for row in by_day["interval"] if row.pageviews}
    assert shown == {day: of[0] for day, of in export.found.of["days"].items()}
    assert taken.ended is not None
    assert findings(store) == []
    await store.imports.undo(website, taken.ended.number)
    assert answers(store, website) == before
    assert findings(store) == orphans(store.environment) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_days_with_data_are_left_out(open_store: OpenStore, tmp_path: Path) -> None:
    """Whether they were counted here or imported; so is the day that is not over."""
    export = Plausible()
    days = [BEGIN + timedelta(days=n) for n in range(export.days)]
    store = open_store(retention=Retention(others=Keep(1), zone=BERLIN))
    website = await store.add_website(HOST, 1)
    first_s = [start_of_day(BERLIN, (day - EPOCH).days) for day in days]
    await store.append(
        # The last second of a day, and the first of another.
        [a_view(time_ms=(first_s[1] - 1) * 1000), a_view(time_ms=first_s[3] * 1000)]
    )
    zipped = export.zip(tmp_path / "export.zip")
    today = (days[-1] - EPOCH).days
    for _ in range(2):
        taken = await take_days(store, website, [zipped], zone=BERLIN, today=today)
        gathering = taken.gathering
        assert (gathering.days, gathering.days_existing, gathering.days_not_over) == (3, 2, 1)
        left_out = frozenset([days[0], days[3], days[5]])
        expected = export.sums(left_out).of["summary"][""][0]
        assert summary_of(store, website)["pageviews"] == expected + 2
        assert taken.ended is not None
        await store.imports.undo(website, taken.ended.number)
        # Of the views only sums remain now.
        await store.maintain(first_s[5] * 1000 + 2 * DAY_MS)
        async with store.maintenance.segments_lock:
            pass
        assert not list(store.read(website, lambda snapshot: list(snapshot.parts)))
    await take_days(store, website, [zipped], zone=BERLIN)
    again = await take_days(
        store,
        website,
        [Plausible(seed=3).zip(tmp_path / "other.zip")],
        zone=BERLIN,
        is_finished=False,
    )
    assert (again.gathering.days, again.gathering.days_existing) == (0, export.days)
    await store.close()


def summary_of(store: Store, website: Website) -> dict[str, Any]:
    return next(row for row in statistics(store, website) if row["report"] == "summary")


@pytest_twisted.ensureDeferred
async def test_an_unfinished_import_is_undone_at_the_next_start(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store()
    website = await store.add_website(HOST, 1)
    before = answers(store, website)
    zipped = Plausible().zip(tmp_path / "export.zip")
    taken = await take_days(store, website, [zipped], most_bytes=1, is_finished=False)
    assert taken.gathering.days == 6
    assert store.partitions.get_or_create(website.number).rollups
    assert answers(store, website) == before
    await store.close()
    store = open_store()
    await settled(store, NOW_MS)
    assert answers(store, website) == before
    assert not store.partitions.get_or_create(website.number).rollups
    assert findings(store) == orphans(store.environment) == []
    assert (await take_days(store, website, [zipped])).ended is not None
    await store.close()


@pytest.mark.parametrize("after", ["sums", "nothing"])
@pytest_twisted.ensureDeferred
async def test_retention_keeps_rollups_or_nothing_of_imports(
    open_store: OpenStore, tmp_path: Path, after: str
) -> None:
    store = open_store(retention=Retention(others=Keep(30, after), zone=UTC))
    website = await store.add_website(HOST, 1)
    export = Plausible()
    await take_days(store, website, [export.zip(tmp_path / "export.zip")])
    await settled(store, END_MS + 60 * DAY_MS)
    if after == "sums":
        check(store, website, export.sums(), OF_PLAUSIBLE)
    else:
        assert summary_of(store, website)["pageviews"] == 0
    assert findings(store) == orphans(store.environment) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_exports_of_views_skip_rollups(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    website = await store.add_website(HOST, 1)
    await store.append(views(1, 9))
    before = [path.read_bytes() for path in files_of(store, website, tmp_path / "a", "csv")]
    await take_days(store, website, [Plausible().zip(tmp_path / "export.zip")])
    files = files_of(store, website, tmp_path / "b", "csv")
    assert [path.read_bytes() for path in files] == before
    # What is imported of rows knows of the days.
    umami = tmp_path / "website_event.csv"
    umami.write_text(
        "session_id,url_path,event_type,created_at\ns1,/,1,2024-03-29 12:00:00\n", "utf-8"
    )
    taken = await take_in(store, website, [umami])
    assert (taken.gathering.views, taken.gathering.left_out) == (0, 1)
    await store.close()
