"""An export has everything that is stored, in every format."""

import csv
import io
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet
import pytest
import pytest_twisted
from support.storage.bulk_loads import load, made
from support.storage.contents import agrees, in_order, rows, settled
from support.storage.hits import DAY_MS, NOW_MS, a_view, unload, views
from support.transfer.filled_store import NASTY, fill
from support.transfer.round_trips import LATER_MS, SOURCES, exported

from medamad.domain.dimensions import VIEW_DIMENSIONS, WidthClass
from medamad.domain.errors import BadRequest
from medamad.query.period import Period
from medamad.query.request import Filter
from medamad.storage.compaction.planner import Sizes
from medamad.storage.store import Store
from medamad.transfer.export import FORMAT_NAMES, STEP_ROWS, ExportRequest, ExportSource, take_rows
from medamad.transfer.tables import TABLES, ColumnKind

OpenStore = Callable[..., Store]


def read(data: bytes, request: ExportRequest) -> list[dict[str, Any]]:
    """Read a file by its documented format, without our own reader."""
    kinds = {column.name: column.kind for column in TABLES[request.what].columns}
    if request.format == "parquet":
        table = pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()
        return [
            {name: _ms(value) if name == "time" else value for name, value in row.items()}
            for row in table
        ]
    if request.format == "ndjson":
        found = [dict.fromkeys(kinds) | json.loads(line) for line in data.splitlines()]
        return [row | ({"time": _ms(row["time"])} if "time" in row else {}) for row in found]
    text = io.StringIO(data.decode("utf-8"), newline="")
    return [
        {name: _cell(kinds[name], cell) for name, cell in row.items()}
        for row in csv.DictReader(text, strict=True)
    ]


def _cell(kind: ColumnKind, cell: str) -> Any:
    if kind is ColumnKind.TEXT:
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))
        return re.sub(r"(^|[;\t\r\n])'", r"\1", cell)
    if cell == "":
        return None
    if kind is ColumnKind.TIMESTAMP:
        return _ms(cell)
    return json.loads(cell)


def _ms(moment: Any) -> int:
    if isinstance(moment, str):
        assert moment.endswith("Z")
        moment = datetime.fromisoformat(moment)
    assert moment.tzinfo is not None
    return round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1000)


def as_held(
    view_rows: list[dict[str, Any]], event_rows: list[dict[str, Any]]
) -> tuple[list[Any], list[Any]]:
    """Return rows of files in the form of rows read from the store."""
    found = {}
    for row in view_rows:
        assert row["view"] not in found
        found[row["view"]] = {
            "time_ms": row["time"],
            "p": row["first_today"],
            "q": row["first_of_page"],
            "hosting": row["hosting"],
            "duration_ms": row["duration_ms"] or 0,
            "width_class": WidthClass[(row["width_class"] or "unknown").upper()],
            "visit_offset": row["view"] - row["visit"] + 1 if row["visit"] else 0,
            **{dimension.attribute: row[dimension.attribute] for dimension in VIEW_DIMENSIONS},
        }
    events: dict[int, Any] = {}
    for row in event_rows:
        of = found.get(row["view"])
        one = events.setdefault(
            row["event"],
            {
                "time_ms": row["time"],
                "view": None if row["view"] is None else (of["path"], of["time_ms"]),
                "properties": [],
            },
        )
        one["properties"].append((row["name"], row["value"]))
    for one in events.values():
        one["properties"].sort()
    return in_order(found.values()), in_order(events.values())


@pytest.mark.parametrize("sizes", [Sizes(), Sizes(chunk_views=8, merged_members=2, counted_from=2)])
@pytest.mark.parametrize("format_name", FORMAT_NAMES)
@pytest_twisted.ensureDeferred
async def test_views_and_events_are_complete(
    open_store: OpenStore, sizes: Sizes, format_name: str
) -> None:
    store = open_store(sizes=sizes)
    website = await fill(store)
    store.read(website, agrees)
    found = []
    for what in ("views", "events"):
        request = ExportRequest(what=what, format=format_name)
        found.append(read(exported(store, website, request), request))
    assert as_held(*found) == store.read(website, rows)
    (name,) = {row["store"] for table in found for row in table}
    assert len(name) == 16
    named = {row["referrer"]: (row["source"], row["country_name"]) for row in found[0]}
    assert named["=1+1"] == ("=1+1", "Germany")
    await store.close()


@pytest_twisted.ensureDeferred
async def test_an_export_can_be_limited_to_a_period(open_store: OpenStore) -> None:
    store = open_store(sizes=Sizes(chunk_views=8))
    website = await fill(store)
    period = Period(NOW_MS + 3, NOW_MS + DAY_MS)
    all_views, all_events = store.read(website, rows)
    for what, there in (("views", all_views), ("events", all_events)):
        request = ExportRequest(what=what, period=period)
        found = read(exported(store, website, request), request)
        numbers = {row[what[:-1]] for row in found}
        inside = [row for row in there if period.start_ms <= row["time_ms"] <= period.end_ms]
        assert 0 < len(inside) < len(there)
        assert len(numbers) == len(inside)
        assert {row["time"] for row in found} == {row["time_ms"] for row in inside}
    await store.close()


@pytest_twisted.ensureDeferred
async def test_an_export_does_not_change_while_it_is_written(open_store: OpenStore) -> None:
    """Although hits are flushed, merged, deleted and added meanwhile."""
    store = open_store(sizes=Sizes(chunk_views=8, merged_members=2, counted_from=2))
    website = await fill(store)
    request = ExportRequest(what="views", format="ndjson")
    whole = exported(store, website, request)
    with store.snapshot(website) as snapshot:
        source = ExportSource(
            snapshot=snapshot,
            origins=store.imports.origins(website),
            sources=SOURCES,
            period=request.period,
        )
        pieces = request.encoded(source, LATER_MS)
        data = b"".join(next(pieces).data for _ in range(4))
        await store.append(views(100, 120, NOW_MS + 2 * DAY_MS))
        await settled(store, NOW_MS + 4 * DAY_MS)
        data += b"".join(piece.data for piece in pieces)
    assert data == whole
    later = exported(store, website, request)
    assert len(later.splitlines()) == len(whole.splitlines()) + 21
    await settled(store, NOW_MS + 5 * DAY_MS)
    assert exported(store, website, request) == later
    await store.close()


@pytest.mark.parametrize("format_name", FORMAT_NAMES)
@pytest_twisted.ensureDeferred
async def test_an_empty_export_has_no_rows(open_store: OpenStore, format_name: str) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    for what in ("views", "events"):
        request = ExportRequest(what=what, format=format_name)
        assert read(exported(store, website, request), request) == []
    await store.close()


@pytest_twisted.ensureDeferred
async def test_statistics_are_those_of_the_endpoints(open_store: OpenStore) -> None:
    store = open_store(sizes=Sizes(chunk_views=8))
    website = await fill(store)
    request = ExportRequest(
        what="statistics", filters=(Filter("path", "not_contains", ("nothing",)),)
    )
    found = read(exported(store, website, request), request)
    reports = [row["report"] for row in found]
    assert list(dict.fromkeys(reports)) == [
        *("summary", "days", "pages", "entries", "exits", "time", "referrers", "referrer_urls"),
        *("sources", "mediums"),
        *("campaigns", "terms", "contents", "browsers", "os", "devices", "countries", "languages"),
        *("locales", "hosting", "properties", "property_values"),
    ]
    there = store.read(website, rows)[0]
    (summary,) = [row for row in found if row["report"] == "summary"]
    assert summary["pageviews"] == len(there)
    days = [row for row in found if row["report"] == "days"]
    assert sum(row["pageviews"] for row in days) == len(there)
    pages = {row["name"]: row["pageviews"] for row in found if row["report"] == "pages"}
    assert pages["=1+1"] == 1
    assert set(pages) == {row["path"] for row in there}
    values = [
        (row["name"], row["value"], row["events"])
        for row in found
        if row["report"] == "property_values" and row["name"] == "=n"
    ]
    assert sorted(values) == sorted(("=n", text, 1) for text in NASTY)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_unknown_figures_of_statistics_are_empty(open_store: OpenStore) -> None:
    """An unload may be missing, and only a visitor's first view of the day can be a bounce."""
    store = open_store()
    website = await store.add_website("example.com", 1)
    later = a_view(beacon="b3", path="/3", first_today=False)
    await store.append([*views(1, 2), later, unload(1, 70_000), unload(3, 500)])
    for format_name in FORMAT_NAMES:
        request = ExportRequest(what="statistics", format=format_name)
        found = read(exported(store, website, request), request)
        known = {
            row["name"]: (row["bounce_percentage"], row["duration"])
            for row in found
            if row["report"] == "pages"
        }
        assert known == {"/1": (0, 70_000), "/2": (None, None), "/3": (None, 500)}
    await store.close()


@pytest_twisted.ensureDeferred
async def test_unknown_visits_of_statistics_are_empty(open_store: OpenStore) -> None:
    """Views without a visit were seen on the first day, a visit on the third."""
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 2))
    later_ms = NOW_MS + 2 * DAY_MS
    await settled(store, later_ms)
    await store.append([a_view(time_ms=later_ms, beacon="b9", path="/9", identity=b"browser")])
    request = ExportRequest(what="statistics", format="ndjson")
    found = {
        (row["report"], row["name"] or (row["date"] or "")[:10]): [
            row[name] for name in ("visits", "views_per_visit", "visit_bounce_percentage")
        ]
        for row in read(exported(store, website, request), request)
    }
    days = [found[key] for key in found if key[0] == "days"]
    assert days[:3] == [[None, None, None], [0, 0.0, 0.0], [1, 1.0, 1.0]]
    assert found["summary", ""] == [1, 1.0, 1.0]
    assert found["pages", "/1"] == [None, None, None]
    assert found["pages", "/9"] == [1, None, 1.0]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_statistics_are_written_in_pieces(open_store: OpenStore) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    views = 2 * STEP_ROWS + 100
    await load(store, website, made(1, views, 10))
    request = ExportRequest(what="statistics")
    with store.snapshot(website) as snapshot:
        source = ExportSource(
            snapshot=snapshot,
            origins=store.imports.origins(website),
            sources=SOURCES,
            period=request.period,
        )
        pieces = list(request.pieces(source, LATER_MS))
    assert max(len(column) for piece in pieces for column in piece.rows) == STEP_ROWS
    reports = [name for piece in pieces for name in piece.rows[0]]
    paths = [
        name
        for piece in pieces
        for report, name in zip(piece.rows[0], piece.rows[2], strict=True)
        if report == "pages"
    ]
    assert reports.count("pages") == len(set(paths)) == views
    await store.close()


def test_rows_are_freed_in_pieces() -> None:
    rows = list(range(2 * STEP_ROWS + 100))
    steps = take_rows(rows)
    assert next(steps) == list(range(STEP_ROWS))
    assert len(rows) == STEP_ROWS + 100
    assert [len(some) for some in steps] == [STEP_ROWS, 100]
    rows = list(range(3 * STEP_ROWS))
    steps = take_rows(rows)
    next(steps)
    steps.close()
    assert rows == []


def test_only_statistics_can_be_filtered() -> None:
    with pytest.raises(BadRequest, match="path: only statistics can be filtered"):
        ExportRequest(what="events", filters=(Filter("path", "eq", ("/",)),))
