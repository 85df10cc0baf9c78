"""Results name the days whose imported figures are incomplete."""

import json
from collections.abc import Callable
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest_twisted
from support.query.readers import reader_of
from support.storage.hits import a_view, unload
from support.transfer.day_files import BEGIN, HOST, GoatCounter, Plausible
from support.transfer.day_imports import END_MS, EPOCH, statistics, take_days
from support.transfer.round_trips import SOURCES

from medamad.query.request import NO_GAPS, Gap, Gaps, Query
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.store import Store
from medamad.transfer.export import ExportRequest, ExportSource, statistics_reports

OpenStore = Callable[..., Store]


@pytest_twisted.ensureDeferred
async def test_results_name_the_days_they_do_not_cover(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store()
    website = await store.add_website(HOST, 1)
    folder = [
        path
        for path in Plausible().folder(tmp_path / "some")
        if "browsers" not in path.name and "entry" not in path.name
    ]
    await take_days(store, website, folder)
    numbers = [(BEGIN - EPOCH).days + n for n in range(6)]

    def gaps_in(report: str, *, is_brief: bool = False) -> list[list[int]]:
        return store.read(website, gaps_of(report, Query(is_brief=is_brief)))

    assert gaps_in("browsers") == [numbers, [], []]
    assert gaps_in("os") == [[], numbers, []]
    assert gaps_in("os", is_brief=True) == [[], [], []]
    assert gaps_in("languages") == [numbers, [], []]
    assert gaps_in("summary") == [[], numbers, []]
    assert gaps_in("pages") == [[], [], numbers], "of these the total time is known"
    assert gaps_in("pages", is_brief=True) == [[], [], []]
    assert gaps_in("time") == [[], numbers, []]
    assert gaps_in("property_values") == [[], [], []]
    await store.close()


def gaps_of(report: str, query: Query) -> Callable[[Snapshot], list[list[int]]]:
    def run(snapshot: Snapshot) -> list[list[int]]:
        result = statistics_reports(END_MS)[report](reader_of(snapshot, SOURCES), query)
        return [result.gaps.days(gap) for gap in (Gap.FIGURES, Gap.DURATIONS, Gap.BOUNCES)]

    return run


@pytest_twisted.ensureDeferred
async def test_unknown_figures_are_exported_as_empty_cells(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store()
    website = await store.add_website(HOST, 1)
    export = GoatCounter()
    await take_days(store, website, [export.zip(tmp_path / "export.zip")])
    numbers = [(BEGIN - EPOCH).days + n for n in range(6)]
    for report in ("summary", "days", "pages", "referrers", "countries", "locales"):
        gaps = store.read(website, gaps_of(report, Query()))
        assert (report, gaps) == (report, [[], numbers, numbers])
    for number, (path, duration_ms) in enumerate((("/", 9_000), ("/own", 9_000), ("/untimed", 0))):
        await store.append([a_view(time_ms=END_MS, beacon=f"b{number}", path=path)])
        if duration_ms:
            await store.append([unload(number, duration_ms, END_MS)])
    found = {
        (row["report"], row.get("name", row.get("date", "")[:10])): (
            row.get("bounce_percentage"),
            row.get("duration"),
        )
        for row in statistics(store, website)
    }
    assert found["pages", "/"] == (0.0, 9_000)
    assert found["pages", "/own"] == (0.0, 9_000)
    assert found["pages", "/api"] == found["pages", "/untimed"] == (None, None)
    assert found["os", "Android"] == (None, None)
    assert found["summary", ""] == (0.0, 9_000)
    assert found["days", "2024-03-28"] == (None, None)
    assert found["days", "2024-04-20"] == (0.0, 0), "of no view there is nothing to know"
    assert found["days", "2024-06-01"] == (0.0, 9_000)
    assert {name for report, name in found if report == "time"} == {"/", "/own"}
    await store.close()


@pytest_twisted.ensureDeferred
async def test_statistics_are_of_the_days_that_have_rollups(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store()
    website = await store.add_website(HOST, 1)
    tokyo = ZoneInfo("Asia/Tokyo")
    export = Plausible()
    await take_days(store, website, [export.zip(tmp_path / "export.zip")], zone=tokyo)

    def written(zone: tzinfo) -> tuple[dict[str, Any], Gaps]:
        request = ExportRequest(what="statistics", format="ndjson")
        data, all_gaps = b"", NO_GAPS
        with store.snapshot(website) as snapshot:
            source = ExportSource(
                snapshot=snapshot,
                origins=store.imports.origins(website),
                sources=SOURCES,
                period=request.period,
                zone=zone,
            )
            for piece in request.encoded(source, END_MS):
                data += piece.data
                for gaps in piece.gaps.values():
                    all_gaps |= gaps
        rows = [json.loads(line) for line in data.splitlines()]
        return {
            row["date"]: row["pageviews"]
            for row in rows
            if row["report"] == "days" and row.get("pageviews")
        }, all_gaps

    days, gaps = written(tokyo)
    assert days == {f"{day}T00:00:00+09:00": of[0] for day, of in export.sums().of["days"].items()}
    numbers = [(BEGIN - EPOCH).days + n for n in range(6)]
    assert gaps.days(Gap.INTERVAL) == []
    assert gaps.days(Gap.FIGURES) == numbers, "of languages"
    assert written(UTC)[0] == {}
    await store.close()
