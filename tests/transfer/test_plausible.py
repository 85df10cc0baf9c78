import tracemalloc
from pathlib import Path
from zipfile import ZipFile

import pytest
from support.transfer.day_files import HOST, Plausible

from medamad.domain.dimensions import Dimension, property_text
from medamad.domain.errors import BadRequest
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.import_days import DaySurvey, are_day_files, survey_days
from medamad.transfer.import_survey import ImportFile
from medamad.transfer.rows import DayRow, RejectedRow, parse_day

DAY = parse_day("2023-02-09")


def given(path: Path, content: str | bytes) -> ImportFile:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return ImportFile.of(path, None, ImportTarget(HOST))


def read(path: Path, content: str) -> list[DayRow | RejectedRow]:
    return list(given(path, content).day_rows())


def test_a_table_is_recognised_by_its_columns_in_any_order(tmp_path: Path) -> None:
    """Also if the file has another name, or further columns."""
    text = '"pageviews","scroll_depth","page","visitors","date"\n9,80,"/docs/?x=1",8,"2023-02-09"\n'
    (row,) = read(tmp_path / "pages.csv", text)
    assert isinstance(row, DayRow)
    assert (row.table.name, row.day, row.texts) == ("imported_pages", DAY, ("/docs",))
    assert (row.views, row.page_visitors, row.visitors, row.visits) == (9, 8, 0, 0)


@pytest.mark.parametrize(
    ("cell", "time_s"),
    [
        ("4294967295", 4_294_967_295),
        (r"\N", 0),
        ("", 0),
        ("0.0", 0),
        ("12.7", 13),
        ("4294967294.6", 4_294_967_295),
    ],
)
def test_the_time_on_a_page_is_that_of_all_its_views(
    tmp_path: Path, cell: str, time_s: int
) -> None:
    text = "date,page,visitors,pageviews,total_time_on_page,total_time_on_page_visits\n"
    (row,) = read(tmp_path / "a.csv", f"{text}2023-02-09,/docs,8,9,{cell},7\n")
    assert isinstance(row, DayRow)
    assert (row.time_s, row.visits) == (time_s, 0)


@pytest.mark.parametrize("cell", ["-1", "1e3", "x", "4294967295.6", "9" * 400])
def test_bad_times_on_page_are_rejected(tmp_path: Path, cell: str) -> None:
    text = "date,page,visitors,pageviews,total_time_on_page\n"
    (row,) = read(tmp_path / "a.csv", f"{text}2023-02-09,/docs,8,9,{cell}\n")
    reason = "expected a whole number from 0 to 4294967295"
    assert row == RejectedRow(2, "total_time_on_page", reason)


@pytest.mark.parametrize(
    ("columns", "visits", "bounces"),
    [("visits,bounces", 6, 2), ("bounces,x", 5, 2), ("visits,x", 0, 0)],
)
def test_bounces_need_visits(tmp_path: Path, columns: str, visits: int, bounces: int) -> None:
    of = {"visits": "6", "bounces": "2", "x": "1"}
    cells = ",".join(of[name] for name in columns.split(","))
    text = f"date,device,visitors,pageviews,{columns}\n2023-02-09,TV,5,9,{cells}\n"
    (row,) = read(tmp_path / "a.csv", text)
    assert isinstance(row, DayRow)
    assert (row.visits, row.bounces, row.texts) == (visits, bounces, ("TV",))


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        (",,,,", ("", "", "", "", "", "")),
        ("Direct / None,,,,", ("", "", "", "", "", "")),
        ("GitHub,www.github.com/a/b/,,,", ("github.com/a/b", "", "", "", "", "")),
        (f"x,{HOST}/page,,,", ("", "", "", "", "", "")),
        ("x,192.0.2.1,,,", ("", "", "", "", "", "")),
        ("news,,news, email ,", ("", "news", "email", "", "", "")),
        ("Signal,,,,", ("Signal", "", "", "", "", "")),
        ("news,a.example,news,,c", ("a.example", "news", "", "", "", "c")),
    ],
)
def test_sources(tmp_path: Path, cells: str, texts: tuple[str, ...]) -> None:
    head = "date,source,referrer,utm_source,utm_medium,utm_content,pageviews,visitors"
    (row,) = read(tmp_path / "a.csv", f"{head}\n2023-02-09,{cells},2,1\n")
    assert isinstance(row, DayRow)
    assert row.texts == texts


@pytest.mark.parametrize(
    ("row", "field", "reason"),
    [
        ("2023-02-30,TV,1,1", "date", "expected a date such as 2026-01-31"),
        ("20230203,TV,1,1", "date", "expected a date"),
        ("1969-12-31,TV,1,1", "date", "expected a date"),
        ("2023-02-09,TV,-1,1", "visitors", "expected a whole number from 0 to 4294967295"),
        ("2023-02-09,TV,1,4294967296", "pageviews", "expected a whole number"),
        ("2023-02-09,TV,1,", "pageviews", "expected a whole number"),
        ("2023-02-09,TV,1,1.5", "pageviews", "expected a whole number"),
        ("2023-02-09,TV,1", "date", "expected 4 cells, got 3"),
    ],
)
def test_a_bad_row_is_named_by_line_and_field(
    tmp_path: Path, row: str, field: str, reason: str
) -> None:
    path = tmp_path / "a.csv"
    good = "2023-02-09,TV,1,1"
    text = f"date,device,visitors,pageviews\n{good}\n{row}\n{good}\n"
    (one, found, other) = read(path, text)
    assert one == DayRow(one.table, DAY, ("TV",), 1, 1, line=2)  # type: ignore[union-attr]
    assert isinstance(other, DayRow)
    assert isinstance(found, RejectedRow)
    assert (found.line, found.field) == (3, field)
    assert reason in found.reason


def surveyed(*files: ImportFile) -> DaySurvey:
    assert are_day_files(files)
    *_, found = survey_days(files)
    return found


def test_unknown_tables_in_a_zip_are_reported(tmp_path: Path) -> None:
    path = Plausible().zip(tmp_path / "export.zip")
    with ZipFile(path, "a") as archive:
        archive.writestr("imported_moods_20240328_20240402.csv", "date,mood,visitors,pageviews\n")
        archive.writestr("readme.txt", "date,page\n")
    (refused,) = surveyed(ImportFile.of(path, None)).rejected
    assert (refused[0], refused[1].line) == (str(path), 0)
    assert refused[1].field == "imported_moods_20240328_20240402.csv"
    assert refused[1].reason == "not one of Plausible's tables: date, mood, visitors, pageviews"


def test_custom_properties_are_imported_with_custom_events(tmp_path: Path) -> None:
    """Exports since 2025 have a table of them, which also has a column `events`."""
    path = Plausible(days=1).zip(tmp_path / "export.zip")
    text = "date,property,value,visitors,events\n2024-03-28,plan ,pro,2,3\n2024-03-28,plan,,1,x\n"
    with ZipFile(path, "a") as archive:
        archive.writestr("imported_custom_props_20240328_20240328.csv", text)
    found = [
        row
        for row in ImportFile.of(path, None, ImportTarget(HOST)).day_rows()
        if "props" in (row.table.name if isinstance(row, DayRow) else row.field)
    ]
    row, refused = found
    assert isinstance(row, DayRow)
    assert (row.table.dimensions, row.texts) == (
        (Dimension.PROPERTY,),
        (property_text("plan", "pro"),),
    )
    assert (row.views, row.visitors) == (3, 0)
    assert isinstance(refused, RejectedRow)
    assert refused.field == "imported_custom_props_20240328_20240328.csv: events"
    (alone, _) = read(tmp_path / "any.csv", text)
    assert isinstance(alone, DayRow)
    assert (alone.table, alone.texts) == (row.table, row.texts)


def test_engagement_is_not_an_event(tmp_path: Path) -> None:
    text = "date,name,link_url,path,visitors,events\n"
    text += "".join(f"2024-03-28,{name},,,2,3\n" for name in ("engagement", "Signup"))
    (row,) = read(tmp_path / "any.csv", text)
    assert isinstance(row, DayRow)
    assert row.texts == (property_text("Signup", ""),)


def test_an_unknown_table_in_a_zip_is_not_recognised_by_its_columns(tmp_path: Path) -> None:
    path = Plausible(days=1).zip(tmp_path / "export.zip")
    with ZipFile(path, "a") as archive:
        archive.writestr("imported_goals_20240328_20240328.csv", "date,goal,visitors,events\n")
    (refused,) = surveyed(ImportFile.of(path, None)).rejected
    assert refused[1].field == "imported_goals_20240328_20240328.csv"
    assert refused[1].reason == "not one of Plausible's tables: date, goal, visitors, events"


def test_another_zip_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("website_event.csv", "date,page\n")
    with pytest.raises(
        BadRequest, match=r"export\.zip: imported_visitors: the zip archive has no such table"
    ):
        list(ImportFile.of(path, "plausible").day_rows())


def test_a_day_of_a_table_comes_from_one_file(tmp_path: Path) -> None:
    folder = Plausible(days=2).folder(tmp_path / "single")
    pages = next(path for path in folder if "imported_pages" in path.name)
    again = tmp_path / "again.csv"
    again.write_bytes(pages.read_bytes())
    found = surveyed(*(ImportFile.of(path, None) for path in [*folder, again]))
    assert found.rejected_rows == 10
    assert found.rejected[0] == (
        str(again),
        RejectedRow(2, "date", f"{pages} has the same day"),
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("date,device,visitors\n", "pageviews: the file has no such column"),
        ("date,device,visitors,pageviews\n\xff,", "not valid UTF-8"),
        ('date,device,visitors,pageviews\n"a"b,1,1,1\n', "line 2: not comma-separated values"),
        ("date,visitors,pageviews,mood\n", "unknown format"),
        (
            "report,date,name,value,visitors,pageviews,events\n",
            "unknown format",
        ),
        (
            "date,device,visitors,pageviews\n2023-02-09,TV,1,1\n",
            "imported_visitors: missing",
        ),
    ],
)
def test_bad_files_are_rejected(tmp_path: Path, content: str, reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        surveyed(given(tmp_path / "a.csv", content.encode("latin-1")))


def test_files_from_several_sources_are_rejected(tmp_path: Path) -> None:
    other = tmp_path / "views.csv"
    other.write_text("time,path\n", "utf-8")
    files = [ImportFile.of(Plausible().zip(tmp_path / "a.zip"), None), ImportFile.of(other, None)]
    with pytest.raises(BadRequest, match="expected files from one source, got csv and plausible"):
        are_day_files(files)
    assert not are_day_files([files[1]])


def test_a_zip_bomb_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    with ZipFile(path, "w", 8) as archive:
        archive.writestr("imported_pages_1.csv", b"\n" * (64 << 20))
    with pytest.raises(
        BadRequest, match=r"imported_pages_1\.csv: expected a compression ratio of at most"
    ):
        surveyed(ImportFile.of(path, None))


@pytest.mark.parametrize("rows", [15_000, pytest.param(500_000, marks=pytest.mark.slow)])
def test_rows_take_little_memory(tmp_path: Path, rows: int) -> None:
    """Those with the most columns: below 300 MB for two million, including texts."""
    path = tmp_path / "imported_sources.csv"
    with path.open("w") as file:
        file.write("date,source,referrer,utm_source,visitors,visits,bounces,pageviews\n")
        for n in range(rows):
            day = f"2023-{n % 12 + 1:02}-{n % 28 + 1:02}"
            file.write(f"{day},x,{n % 9_973}.example/page,{n % 997},1,1,1,1\n")
    total = given(tmp_path / "total.csv", "date,visitors,pageviews\n2023-01-01,1,1\n")
    tracemalloc.start()
    found = surveyed(ImportFile.of(path, None), total)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.rejected_rows == 0
    # What is there at first: tables of names, and of texts seen lately.
    assert most < (24 << 20) + 120 * rows


def test_versions_count_beside_names(tmp_path: Path) -> None:
    text = (
        "date,browser,browser_version,visitors,pageviews\n2023-02-09,Microsoft Edge,111.0,1,1\n"
        "2023-02-09,,,1,1\n"
    )
    (edge, unknown) = read(tmp_path / "a.csv", text)
    assert isinstance(edge, DayRow)
    assert isinstance(unknown, DayRow)
    assert edge.table.dimensions == (Dimension.BROWSER, Dimension.BROWSER_VERSION)
    assert (edge.texts, unknown.texts) == (("Edge", "111"), ("Unknown", ""))


def test_a_path_with_nul_is_rejected(tmp_path: Path) -> None:
    text = "date,page,visitors,pageviews\n2023-02-09,/a\0b,1,1\n2023-02-09,/,1,1\n"
    totals = "date,visitors,pageviews\n2023-02-09,1,1\n"
    survey = surveyed(given(tmp_path / "a.csv", totals), given(tmp_path / "b.csv", text))
    ((_, rejected),) = survey.rejected
    assert (rejected.line, rejected.field, rejected.reason) == (
        2,
        "path",
        "expected text without NUL",
    )
