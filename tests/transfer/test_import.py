"""An export can be imported again unchanged, only once, and undone as a whole."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_twisted
from support.storage.bulk_loads import load, made
from support.storage.contents import agrees, rows, settled
from support.storage.hits import DAY_MS, NOW_MS, views
from support.transfer.filled_store import fill
from support.transfer.round_trips import answers, exported, files_of, take_in

from medamad.domain.dimensions import WidthClass
from medamad.domain.errors import BadRequest, Conflict
from medamad.storage.compaction.planner import Sizes
from medamad.storage.store import Store
from medamad.transfer.export import FORMAT_NAMES, ExportRequest
from medamad.transfer.import_survey import ImportFile, survey_rows
from medamad.transfer.rows import EventRow, RejectedRow, ViewRow

OpenStore = Callable[..., Store]
SMALL = Sizes(chunk_views=8, merged_members=2, counted_from=2)


@pytest_twisted.ensureDeferred
async def test_long_rows_fill_a_chunk_sooner(open_store: OpenStore, tmp_path: Path) -> None:
    origin = open_store(sizes=SMALL, name="origin")
    website = await fill(origin)
    files = files_of(origin, website, tmp_path / "out", "ndjson")
    for most_bytes, waiting in ((1 << 20, 1), (1, 0)):
        there = open_store(name=f"there-{most_bytes}")
        twin = await there.add_website("example.org", 1)
        taken = await take_in(there, twin, files, most_bytes)
        assert taken.waiting == waiting
        assert there.read(twin, rows) == origin.read(website, rows)
        await there.close()
    await origin.close()


@pytest.mark.parametrize("format_name", FORMAT_NAMES)
@pytest_twisted.ensureDeferred
async def test_every_report_is_the_same_after_an_import(
    open_store: OpenStore, tmp_path: Path, format_name: str
) -> None:
    origin = open_store(sizes=SMALL, name="origin")
    website = await fill(origin)
    files = files_of(origin, website, tmp_path / "out", format_name)
    there = open_store(name="there")
    await there.add_website("before.example", 1)
    twin = await there.add_website("example.org", 1)
    taken = await take_in(there, twin, files)
    assert taken.ended.views == len(origin.read(website, rows)[0])
    assert (taken.gathering.left_out, taken.survey.rejected_rows) == (0, 0)
    assert there.read(twin, rows) == origin.read(website, rows)
    there.read(twin, agrees)
    assert answers(there, twin) == answers(origin, website)
    again = files_of(there, twin, tmp_path / "again", format_name)
    for first, second in zip(files, again, strict=True):
        if format_name != "parquet":
            # In what order events are is where they came with their views.
            in_order = (sorted(file.read_bytes().splitlines()) for file in (first, second))
            assert len({tuple(lines) for lines in in_order}) == 1
    await origin.close()
    await there.close()


@pytest_twisted.ensureDeferred
async def test_an_import_beside_hits_can_be_undone(open_store: OpenStore, tmp_path: Path) -> None:
    origin = open_store(sizes=SMALL, name="origin")
    website = await fill(origin)
    files = files_of(origin, website, tmp_path / "out", "csv")
    there = open_store(sizes=SMALL, name="there")
    twin = await there.add_website("example.org", 1)
    await there.append(views(1, 30))
    await load(there, twin, made(5, 20, 6))
    await settled(there, NOW_MS + DAY_MS + 1)
    before = answers(there, twin), exported(there, twin, ExportRequest(what="views"))
    taken = await take_in(there, twin, files)
    assert answers(there, twin) != before[0]
    await settled(there, NOW_MS + 3 * DAY_MS)
    await there.imports.undo(twin, taken.ended.number)
    assert (answers(there, twin), exported(there, twin, ExportRequest(what="views"))) == before
    await origin.close()
    await there.close()


@pytest_twisted.ensureDeferred
async def test_existing_hits_are_left_out(open_store: OpenStore, tmp_path: Path) -> None:
    """Whether they were imported before or counted there."""
    origin = open_store(sizes=SMALL, name="origin")
    website = await fill(origin)
    first = files_of(origin, website, tmp_path / "first", "ndjson")
    there = open_store(name="there")
    twin = await there.add_website("example.org", 1)
    await take_in(there, twin, first)
    with pytest.raises(Conflict, match="the same was imported before, as number 1"):
        await take_in(there, twin, first)
    await origin.append(views(300, 320, NOW_MS + 2 * DAY_MS))
    second = files_of(origin, website, tmp_path / "second", "ndjson")
    taken = await take_in(there, twin, second)
    assert taken.ended.views == 21
    assert taken.gathering.left_out == len(origin.read(website, rows)[0]) - 21 + len(
        origin.read(website, rows)[1]
    )
    assert there.read(twin, rows) == origin.read(website, rows)
    # Back where it is from, all of it is there.
    await there.append([view for view in views(400, 402) if view.website == twin.number])
    back = files_of(there, twin, tmp_path / "back", "ndjson")
    before = origin.read(website, rows)
    taken = await take_in(origin, website, back)
    assert (taken.ended.views, taken.ended.events) == (3, 0)
    assert len(origin.read(website, rows)[0]) == len(before[0]) + 3
    await origin.close()
    await there.close()


@pytest_twisted.ensureDeferred
async def test_views_and_events_may_be_imported_separately(
    open_store: OpenStore, tmp_path: Path
) -> None:
    origin = open_store(sizes=SMALL, name="origin")
    website = await fill(origin)
    files = files_of(origin, website, tmp_path / "out", "csv")
    there = open_store(name="there")
    twin = await there.add_website("example.org", 1)
    for file in files:
        await take_in(there, twin, [file])
    assert answers(there, twin) == answers(origin, website)
    await origin.close()
    await there.close()


CSV = "store,view,time,path,first_today\n"
LINE = "ab,{},2026-01-31T00:00:00.000Z,/a,true\n"


@pytest.mark.parametrize(
    ("text", "line", "field", "reason"),
    [
        ("ab,1,yesterday,/a,true\n", 2, "time", "expected an RFC 3339 date-time"),
        ("ab,1,1969-01-31T00:00:00Z,/a,true\n", 2, "time", "of the years 1970 to 9999"),
        ("ab,-1,2026-01-31T00:00:00Z,/a,true\n", 2, "view", "expected a whole number from 0"),
        ("ab,1,2026-01-31T00:00:00Z,/a,maybe\n", 2, "first_today", "expected true or false"),
        (f"ab,1,2026-01-31T00:00:00Z,/{'a' * 5000},1\n", 2, "path", "at most 4096 characters"),
        ("ab,1,2026-01-31T00:00:00Z,/a\n", 2, "store", "expected 5 cells, got 4"),
        ("ab,1,,/a,1\n", 2, "time", "missing"),
        (f"{LINE.format(1)}ab,2,never,/,1\n", 3, "time", "expected an RFC 3339"),
        ('ab,1,2026-01-31T00:00:00Z,"/a\n\n\nb",1\nab,2,never,/,1\n', 6, "time", "expected an RFC"),
    ],
)
def test_a_bad_row_is_named_by_line_and_field(
    tmp_path: Path, text: str, line: int, field: str, reason: str
) -> None:
    file = tmp_path / "views.csv"
    file.write_text(CSV + text, "utf-8")
    *_, found = survey_rows([ImportFile.of(file, None)])
    ((name, refused),) = found.rejected
    assert (name, refused.line, refused.field) == (str(file), line, field)
    assert reason in refused.reason
    assert found.rejected_rows == 1


@pytest.mark.parametrize(
    ("line", "field", "reason"),
    [
        ("{", "line", "not a JSON object"),
        ("[1]", "line", "not a JSON object"),
        ('{"path": "/"}', "time", "the file has no such column"),
        ('{"time": 5, "path": "/"}', "time", "expected a time"),
        ('{"time": "2026-01-31T00:00:00Z", "path": 5}', "path", "expected text"),
        ('{"time": "2026-01-31T00:00:00Z", "path": "\\ud800"}', "line", "not a JSON object"),
        ('{"time": "2026-01-31T00:00:00Z", "path": "/", "view": 1.5}', "view", "a whole number"),
        ('{"time": "2026-01-31T00:00:00Z", "name": "a\\u0000b", "value": ""}', "name", "NUL"),
        ('{"time": "2026-01-31T00:00:00Z", "name": "a", "value": "b\\u0000"}', "value", "NUL"),
        ('{"time": "2026-01-31T00:00:00Z", "path": "/\\u0000"}', "path", "NUL"),
    ],
)
def test_a_bad_line_is_named_by_number_and_field(
    tmp_path: Path, line: str, field: str, reason: str
) -> None:
    file = tmp_path / "views.ndjson"
    good = '{"time": "2026-01-31T00:00:00Z", "path": "/"}'
    file.write_text(f"{good}\n\n{line}\n{good}\n", "utf-8")
    *_, found = survey_rows([ImportFile.of(file, "ndjson")])
    ((_, refused),) = found.rejected
    assert (refused.line, refused.field) == (3, field)
    assert reason in refused.reason
    assert (found.views, found.rejected_rows) == (2, 1)


@pytest.mark.parametrize(
    ("name", "content", "source", "reason"),
    [
        (
            "a.csv",
            b"a,b\n1,2\n",
            None,
            "unknown format; expected one of umami, goatcounter, medama, access-log",
        ),
        ("a.csv", b"a,b\n1,2\n", "csv", "time: the file has no such column"),
        ("a.csv", b"time,path\n\xff,2\n", None, "not valid UTF-8"),
        ("a.csv", b'time,path\n"a"b,2\n', None, "line 2: not comma-separated values"),
        ("a.csv", b"", "csv", "time: the file has no such column"),
        ("a.parquet", b"PAR1 but no more of it", None, "not a valid Parquet file"),
        ("a.ndjson", b"{" * 2_000_000, None, "line 1: expected fewer than"),
        ("a.csv", b"time,path\n" + b"," * 5_000_000, None, "line 2: expected fewer than"),
    ],
)
def test_other_files_are_rejected(
    tmp_path: Path, name: str, content: bytes, source: str | None, reason: str
) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(BadRequest, match=reason) as refused:
        list(survey_rows([ImportFile.of(file, source)]))
    assert str(refused.value).startswith(f"{file}: ")


@pytest_twisted.ensureDeferred
async def test_repeated_rows_are_imported_once(open_store: OpenStore, tmp_path: Path) -> None:
    file = tmp_path / "views.csv"
    file.write_text(CSV + "".join(LINE.format(n) for n in (5, 3, 5, 4, 3)), "utf-8")
    events = tmp_path / "events.csv"
    head = "store,event,view,time,name,value\n"
    line = "ab,{},{},2026-01-31T00:00:00Z,{},v\n"
    event_rows = ((9, 3, "a"), (9, 3, "b"), (8, 4, "a"), (9, 3, "c"))
    events.write_text(head + "".join(line.format(*each) for each in event_rows), "utf-8")
    store = open_store()
    website = await store.add_website("example.org", 1)
    taken = await take_in(store, website, [file, events])
    assert (taken.ended.views, taken.ended.events) == (3, 2)
    assert taken.gathering.left_out == 2
    ((_, refused),) = taken.survey.rejected
    assert (refused.line, refused.field) == (5, "event")
    assert refused.reason == "9 occurs more than once, with other rows in between"
    found = store.read(website, rows)
    assert [row["properties"] for row in found[1]] == [[("a", "v"), ("b", "v")], [("a", "v")]]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_rows_without_numbers_are_numbered(open_store: OpenStore, tmp_path: Path) -> None:
    file = tmp_path / "views.csv"
    file.write_text("time,path\n" + "2026-01-31T00:00:00Z,/a\n" * 5, "utf-8")
    store = open_store()
    website = await store.add_website("example.org", 1)
    assert (await take_in(store, website, [file])).ended.views == 5
    origins = store.imports.origins(website)
    assert origins.spans == []
    await store.close()


@pytest.mark.parametrize("name", ["views.csv", "views.ndjson"])
def test_what_an_earlier_build_wrote_is_coarsened(tmp_path: Path, name: str) -> None:
    record = {
        "store": "00000000000000aa",
        "view": "7",
        "time": "2026-01-31T00:00:00Z",
        "path": "/a",
        "browser_version": "17.5",
        "os_version": "10.15",
        "number_today": "3",
        "width_px": "1439",
    }
    file = tmp_path / name
    if name.endswith("csv"):
        file.write_text(f"{','.join(record)}\n{','.join(record.values())}\n", "utf-8")
    else:
        file.write_text(f"{json.dumps(record | {'width_px': 1439, 'number_today': 3})}\n", "utf-8")
    assert list(ImportFile.of(file, None).rows()) == [
        ViewRow(
            store="00000000000000aa",
            number=7,
            time_ms=1_769_817_600_000,
            path="/a",
            browser_version="17",
            os_version="10",
            width_class=WidthClass.LAPTOP,
            line=2 if name.endswith("csv") else 1,
        )
    ]


@pytest.mark.parametrize(
    ("column", "cell", "reason"),
    [
        ("width_class", "huge", "expected one of phone, tablet, laptop, desktop, wide"),
        ("width_class", "1", "expected one of phone, tablet, laptop, desktop, wide"),
        ("width_px", "65536", "expected a whole number from 0 to 65535"),
        ("since", "never", "expected one of new, month, midweek, week, day"),
    ],
)
def test_a_cell_that_is_none_of_the_values_is_rejected(
    tmp_path: Path, column: str, cell: str, reason: str
) -> None:
    file = tmp_path / "views.csv"
    file.write_text(f"time,path,{column}\n2026-01-31T00:00:00Z,/a,{cell}\n", "utf-8")
    assert list(ImportFile.of(file, None).rows()) == [RejectedRow(2, column, reason)]


def test_rows_are_what_a_reader_yields(tmp_path: Path) -> None:
    file = tmp_path / "both.ndjson"
    file.write_text(
        '{"time": "2026-01-31T00:00:00.5Z", "path": "/a", "more": 1, "width_class": "tablet"}\n'
        '{"time": "2026-01-31T00:00:01+01:00", "name": "n", "value": "v", "view": 1}\n',
        "utf-8",
    )
    view, event = list(ImportFile.of(file, None).rows())
    assert view == ViewRow(
        time_ms=1_769_817_600_500, path="/a", width_class=WidthClass.TABLET, line=1
    )
    assert event == EventRow(time_ms=1_769_814_001_000, name="n", value="v", view=1, line=2)
    assert not isinstance(view, RejectedRow)
