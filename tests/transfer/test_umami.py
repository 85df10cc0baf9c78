from pathlib import Path
from zipfile import ZipFile

import pytest
from support.transfer.foreign_files import (
    TARGET,
    UMAMI,
    UMAMI_DATA,
    UMAMI_VIEW,
    csv_of,
    read,
    seen,
    umami,
    write,
)

from medamad.domain.dimensions import WidthClass
from medamad.domain.errors import BadRequest
from medamad.transfer.import_survey import ImportFile, survey_rows
from medamad.transfer.rows import EventRow, RejectedRow, ViewRow


def test_a_view_of_umami(tmp_path: Path) -> None:
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
        visit=1,
        time_ms=1_769_902_200_250,
        path="/café",
        first_today=True,
        first_of_page=True,
        width_class=WidthClass.WIDE,
        referrer="other.example/page",
        utm_source="=news",
        utm_medium="mail",
        browser="Edge",
        os="Windows",
        os_version="8",
        device="Mobile",
        country="AT",
        locale="de-AT",
        host="www.example.org",
    )


def test_repeated_rows_and_other_rows_are_skipped(tmp_path: Path) -> None:
    """Monthly exports may overlap: rows with the same id are imported once."""
    first = write(tmp_path / "first", UMAMI, UMAMI_VIEW, UMAMI_VIEW | {"event_id": "e2"})
    second = write(
        tmp_path / "second",
        UMAMI,
        UMAMI_VIEW | {"event_id": "e2"},
        UMAMI_VIEW | {"event_id": "e3", "event_type": "3"},
        UMAMI_VIEW | {"event_id": "e4", "referrer_domain": "spam.example"},
        UMAMI_VIEW | {"event_id": "e5", "session_id": "s2", "created_at": "2026-01-30 10:00:00"},
    )
    found = [row for row in read(first, second) if isinstance(row, ViewRow)]
    assert [(row.number, row.first_today, row.first_of_page) for row in found] == [
        (2, True, True),
        (3, False, False),
        (1, True, True),
    ]


def test_rows_without_ids_are_identified_by_their_content(tmp_path: Path) -> None:
    """A table may have been exported from Umami's database without `event_id`."""
    names = [name for name in UMAMI if name != "event_id"]
    view = {name: UMAMI_VIEW[name] for name in names if name in UMAMI_VIEW}
    event = view | {"event_type": "2", "event_name": "buy"}
    records = [view, view, view | {"session_id": "s2"}, event, event | {"session_id": "s2"}]
    older = write(tmp_path / "older", names, *records[1:4])
    newer = write(tmp_path / "newer", names, *records)
    alone = read(newer)
    for files in ((newer, newer), (older, newer), (newer, older)):
        found = read(*files)
        views = {row.number: row.first_today for row in found if isinstance(row, ViewRow)}
        of_events = [row.view for row in found if isinstance(row, EventRow)]
        assert (len(views), len(of_events), len(found)) == (3, 2, len(alone))
        assert sum(views.values()) == 2
        assert set(of_events) <= views.keys()
        *_, looked = survey_rows([ImportFile.of(file, None, TARGET) for file in files])
        assert looked.skipped == {"repeated": len(alone) if files[0] == files[1] else 3}


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


def test_a_path_may_lack_its_slash(tmp_path: Path) -> None:
    def of(number: int, **more: str) -> dict[str, str]:
        return UMAMI_VIEW | {"event_id": f"e{number}"} | more

    path = write(
        tmp_path / "export",
        UMAMI,
        of(1, url_path="'-x", hostname="example.org"),
        of(2, url_path="a b"),
        of(3, url_path=""),
        of(4, hostname="bad host"),
        of(5, referrer_domain="spam.example"),
        of(6, event_type="3"),
        of(6),
    )
    assert [(row.host, row.path) for row in read(path) if isinstance(row, ViewRow)] == [
        ("example.org", "/-x"),
        ("", "/a b"),
        ("", "/"),
    ]
    *_, found = survey_rows([ImportFile.of(path, None, TARGET)])
    assert found.skipped == {"no_page": 1, "spam": 1, "no_view": 1, "repeated": 1}


def test_an_export_need_not_be_in_order(tmp_path: Path) -> None:
    """Nor need its files: first views, and the views of events, are found by their times."""

    def at(time: str, number: int, **more: str) -> dict[str, str]:
        return UMAMI_VIEW | {"created_at": f"2026-01-31 {time}", "event_id": f"e{number}"} | more

    later = write(
        tmp_path / "later",
        UMAMI,
        at("10:05:00", 1, event_type="2", event_name="buy"),
        at("10:10:00", 2),
        at("10:00:00", 3, url_path="/b"),
        at("09:59:00", 4, event_type="2", event_name="buy"),
    )
    earlier = write(
        tmp_path / "earlier", UMAMI, at("09:00:00", 5, url_path="/c"), at("10:01:00", 6)
    )
    found = read(later, earlier)
    views = [row for row in found if isinstance(row, ViewRow)]
    assert [(row.number, row.first_today, row.first_of_page) for row in views] == [
        (6, False, False),
        (3, False, True),
        (2, True, True),
        (5, False, True),
    ]
    assert [row.visit for row in views] == [3, 3, 2, 3]
    assert [row.view for row in found if isinstance(row, EventRow)] == [5, 0]


@pytest.mark.parametrize(("visit_id", "visits"), [("", [1, 1, 3]), ("v1", [1, 1, 1])])
def test_visits_are_umami_s_or_end_after_half_an_hour(
    tmp_path: Path, visit_id: str, visits: list[int]
) -> None:
    records = [
        UMAMI_VIEW | {"created_at": f"2026-01-31 {time}", "event_id": time, "visit_id": visit_id}
        for time in ("10:00:00", "10:30:00", "11:00:01")
    ]
    found = read(write(tmp_path / "events", UMAMI, *records))
    assert [row.visit for row in found if isinstance(row, ViewRow)] == visits


def test_an_event_after_midnight_belongs_to_the_view_before(tmp_path: Path) -> None:
    event = {"event_type": "2", "event_name": "buy", "event_id": "e2"}
    after = UMAMI_VIEW | event | {"created_at": "2026-02-01 00:10:00"}
    found = read(write(tmp_path / "events", UMAMI, after, UMAMI_VIEW))
    assert [row.view for row in found if isinstance(row, EventRow)] == [2]


def test_a_text_with_nul_is_rejected(tmp_path: Path) -> None:
    file = write(tmp_path / "website_event.csv", UMAMI, UMAMI_VIEW | {"url_path": "/a\0b"})
    *_, survey = survey_rows([ImportFile.of(file, None, TARGET)])
    ((_, rejected),) = survey.rejected
    assert rejected.field == "path"
    assert "NUL" in rejected.reason
    assert survey.views == 0


def test_event_data_alone_are_rejected(tmp_path: Path) -> None:
    alone = write(tmp_path / "event_data.csv", UMAMI_DATA, {"event_id": "e1"})
    with pytest.raises(BadRequest, match="unknown format; expected one of umami"):
        ImportFile.of(alone, None)
    with pytest.raises(
        BadRequest, match=r"event_data\.csv: event_type: the file has no such column"
    ):
        list(ImportFile.of(alone, "umami").rows())


def test_numbers_in_the_data_of_events_are_as_umami_shows_them(tmp_path: Path) -> None:
    values = [
        ("5.0000", "5"),
        ("10.0000", "10.0000"),
        ("", "-0.2500"),
        ("", "1200.0000"),
        ("1.0000", ""),
        ("1.500", ""),
    ]
    event = UMAMI_VIEW | {"event_type": "2", "event_name": "buy"}
    data = [
        {"event_id": "e1", "data_key": f"k{n}", "string_value": text, "number_value": number}
        for n, (text, number) in enumerate(values)
    ]
    path = tmp_path / "export.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("website_event.csv", csv_of(UMAMI, [event]))
        archive.writestr("event_data.csv", csv_of(UMAMI_DATA, data) + "x\n")
    *found, refused = sorted(read(path), key=lambda row: isinstance(row, RejectedRow))
    assert [row.value for row in found if isinstance(row, EventRow)] == [
        *("", "5", "10", "-0.25", "1200", "1.0000", "1.500")
    ]
    count = len(UMAMI_DATA)
    assert refused == RejectedRow(8, "event_data.csv: website_id", f"expected {count} cells, got 1")


def test_a_truncated_zip_is_rejected(tmp_path: Path) -> None:
    path = umami(seen(50), tmp_path / "export.zip")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(BadRequest, match=r"export\.zip: not a valid zip archive"):
        ImportFile.of(path, None)


def test_another_program_s_zip_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("imported_visitors.csv", "date\n")
    with pytest.raises(BadRequest, match=r"website_event\.csv: the zip archive has no such file"):
        list(ImportFile.of(path, "umami").rows())


def test_a_table_of_several_websites_is_rejected(tmp_path: Path) -> None:
    """Umami's database has such a table; its links and pixels belong to no website."""
    own = UMAMI_VIEW | {"website_id": "w1"}
    link = UMAMI_VIEW | {"website_id": "w2", "event_id": "e2", "event_type": "3"}
    first = write(tmp_path / "first", UMAMI, own, link)
    assert len(read(first)) == 1
    for kind in ("1", "2"):
        path = write(
            tmp_path / "all", UMAMI, own, link, link | {"event_type": kind, "event_id": "e4"}
        )
        with pytest.raises(
            BadRequest,
            match="all: line 4: website_id: expected rows of one website, w1, got w2",
        ):
            read(path)


@pytest.mark.parametrize("is_zip", [False, True])
def test_several_tables_must_be_of_one_website(tmp_path: Path, *, is_zip: bool) -> None:
    """In one import, or in one zip; a row that names no website belongs to the same one."""

    def made(*websites: str) -> list[Path]:
        files = [
            write(
                tmp_path / f"{number}.csv",
                UMAMI,
                UMAMI_VIEW | {"website_id": website, "event_id": f"e{number}"},
            )
            for number, website in enumerate(websites)
        ]
        if not is_zip:
            return files
        path = tmp_path / "export.zip"
        with ZipFile(path, "w") as archive:
            for file in files:
                archive.write(file, f"{file.stem}/website_event.csv")
        return [path]

    assert len(read(*made("", "w1", "", "w1"))) == 4
    with pytest.raises(
        BadRequest,
        match="line 2: website_id: expected rows of one website, w1, got w2",
    ):
        read(*made("w1", "", "w2"))


def test_totals_without_days_are_rejected(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with ZipFile(path, "w") as archive:
        for name in ("events", "pages", "referrers", "browsers"):
            archive.writestr(f"{name}.csv", "x,y\n/,5\n")
    with pytest.raises(
        BadRequest, match=r"has no such file; pages\.csv and similar tables have totals"
    ):
        list(ImportFile.of(path, None).rows())
