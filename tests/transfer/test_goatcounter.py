from pathlib import Path
from typing import Any

import pytest
from support.transfer.foreign_files import GOAT, GOAT_VIEW, read, write

from medamad.domain.dimensions import WidthClass
from medamad.domain.errors import BadRequest
from medamad.transfer.rows import ViewRow


@pytest.mark.parametrize(
    ("fields", "wanted"),
    [
        (
            {"Referrer": "www.other.example/x/", "Referrer scheme": "h"},
            {"referrer": "other.example/x"},
        ),
        ({"Referrer": "Hacker News", "Referrer scheme": "g"}, {"referrer": "Hacker News"}),
        (
            {"Referrer": "https://www.other.example/x?y#z", "Referrer scheme": "o"},
            {"referrer": "other.example/x"},
        ),
        (
            {"Referrer": "http://other.example", "Referrer scheme": "h"},
            {"referrer": "other.example"},
        ),
        (
            {"Referrer": "android-app://com.example.reader/", "Referrer scheme": "o"},
            {"referrer": "com.example.reader"},
        ),
        ({"Referrer": "some text", "Referrer scheme": "o"}, {"referrer": "some text"}),
        ({"Referrer": "https://example.org/a", "Referrer scheme": "o"}, {"referrer": ""}),
        ({"Screen size": "390,844,3"}, {"device": "Mobile"}),
        ({"Screen size": "820,1180,2"}, {"device": "Tablet"}),
        ({"Screen size": "1024,768,1"}, {"device": "Tablet"}),
        ({"Screen size": "1280,720,1"}, {"device": "Desktop"}),
        ({"Screen size": ""}, {"device": "Unknown"}),
        ({"Referrer": "spring", "Referrer scheme": "c"}, {"referrer": "", "utm_source": "spring"}),
        ({"2Path": "/a?utm_campaign=x"}, {"path": "/a", "utm_campaign": "x"}),
        ({"Browser": "Edge 119.0", "System": "Linux Ubuntu"}, {"browser": "Edge", "os": "Linux"}),
        ({"Browser": "", "System": ""}, {"browser": "Unknown", "os": "Unknown"}),
        (
            {"Location": "US-TX", "Screen size": "390,844,3"},
            {"country": "US", "width_class": WidthClass.PHONE},
        ),
        ({"Location": "?", "Screen size": ""}, {"country": "", "width_class": WidthClass.UNKNOWN}),
        ({"Session": "", "FirstVisit": "false"}, {"first_today": False, "first_of_page": False}),
    ],
)
def test_a_view_of_goatcounter(
    tmp_path: Path, fields: dict[str, str], wanted: dict[str, Any]
) -> None:
    (row,) = read(write(tmp_path / "export.csv", GOAT, GOAT_VIEW | fields))
    assert isinstance(row, ViewRow)
    assert {name: getattr(row, name) for name in wanted} == wanted


def test_a_full_referrer_that_is_spam_is_skipped(tmp_path: Path) -> None:
    spam = GOAT_VIEW | {"Referrer": "https://spam.example/x", "Referrer scheme": "o"}
    assert read(write(tmp_path / "export.csv", GOAT, spam)) == []


@pytest.mark.parametrize("session", ["", "0-0", "00000000-0000-0000-0000-000000000000"])
def test_every_view_is_a_visitor_where_goatcounter_kept_no_sessions(
    tmp_path: Path, session: str
) -> None:
    records = [
        GOAT_VIEW | {"Session": session, "Date": f"2026-01-31T12:00:0{second}Z"}
        for second in range(3)
    ]
    found = read(write(tmp_path / "export.csv", GOAT, *records))
    views = [row for row in found if isinstance(row, ViewRow)]
    assert [(row.first_today, row.visit) for row in views] == [(True, 0)] * 3


def test_a_session_of_goatcounter_may_have_several_visits(tmp_path: Path) -> None:
    records = [
        GOAT_VIEW | {"Session": "1", "Date": f"2026-01-31T{time}Z"}
        for time in ("12:00:00", "12:30:00", "13:00:01")
    ]
    found = read(write(tmp_path / "export.csv", GOAT, *records))
    assert [row.visit for row in found if isinstance(row, ViewRow)] == [1, 1, 3]


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


def test_texts_are_truncated_like_those_of_hits(tmp_path: Path) -> None:
    long = {"Referrer": "x" * 9_000, "Browser": "y" * 9_000, "System": "z" * 9_000}
    campaign = GOAT_VIEW | long | {"Referrer scheme": "c"}
    named = GOAT_VIEW | long | {"Referrer scheme": "g"}
    first, second = read(write(tmp_path / "export.csv", GOAT, campaign, named))
    assert isinstance(first, ViewRow)
    assert isinstance(second, ViewRow)
    assert (len(first.utm_source), len(second.referrer)) == (512, 2_048)
    assert (len(first.browser), len(first.os)) == (64, 64)
