"""The lines of access logs in JSON, by Caddy and by nginx."""

import json
from pathlib import Path

import pytest
from support.transfer.log_samples import FIREFOX, caddy, left_out, ms, nginx, read, view_of

from medamad.transfer.import_survey import ImportFile
from medamad.transfer.rows import RejectedRow


def test_a_time_is_not_a_boolean(tmp_path: Path) -> None:
    content = caddy().replace("1769902200.25", "true")
    reason = "expected Unix time or a date and time, not true or false"
    assert read(tmp_path, content) == [RejectedRow(1, "ts", reason)]


@pytest.mark.parametrize(
    "moment",
    [
        *(1769902200.25, 1769902200250.0, 1769902200250, 1769902200250000, 1769902200250000000),
        *("1769902200.25", "1769902200250", "2026-01-31T23:30:00.250Z"),
        *("2026-01-31T23:30:00.250+0000", "2026-02-01T00:30:00.250000000+01:00"),
        *("2026/01/31 23:30:00.250", "2026/01/31 23:30:00.250123456"),
    ],
)
def test_caddy_s_time_formats(tmp_path: Path, moment: float | str) -> None:
    content = caddy().replace("1769902200.25", json.dumps(moment))
    assert view_of(tmp_path, content).time_ms == 1769902200250


@pytest.mark.parametrize(
    ("moment", "time"),
    [
        ("2026/01/31 23:30:00", "2026-01-31T23:30:00+00:00"),
        ("31/Jan/2026:23:30:00 -0100", "2026-02-01T00:30:00+00:00"),
        (0, "1970-01-01T00:00:00+00:00"),
        (99_999_999_999, "5138-11-16T09:46:39+00:00"),
        (100_000_000_000, "1973-03-03T09:46:40+00:00"),
    ],
)
def test_times_of_whole_seconds(tmp_path: Path, moment: float | str, time: str) -> None:
    content = caddy().replace("1769902200.25", json.dumps(moment))
    assert view_of(tmp_path, content).time_ms == ms(time)


@pytest.mark.parametrize(
    "moment", [None, "", "2026/31/01 23:30:00", "Jan 31 2026", "9" * 400, "1" * 30, -1, 10**21]
)
def test_bad_times_are_rejected(tmp_path: Path, moment: float | str | None) -> None:
    content = caddy().replace("1769902200.25", json.dumps(moment))
    (refused,) = read(tmp_path, content)
    assert isinstance(refused, RejectedRow)
    assert refused.field in {"ts", "time"}


TLS = '{"level":"info","ts":"once","logger":"tls","msg":"cleaned storage units"}\n'


@pytest.mark.parametrize(
    "begin",
    [
        TLS * 25 + caddy(),
        caddy().replace("1769902200.25", '"Jan 31 2026"'),
        nginx(time_iso8601="yesterday"),
        nginx().replace("time_iso8601", "at"),
    ],
)
def test_json_logs_are_recognised_by_their_keys(tmp_path: Path, begin: str) -> None:
    """Errors in the first lines are then reported as those of a log."""
    path = tmp_path / "access.log"
    path.write_text(begin)
    assert ImportFile.of(path, None).source == "access-log"


def test_json_with_other_keys_is_not_a_log(tmp_path: Path) -> None:
    path = tmp_path / "views.ndjson"
    path.write_text('{"time":"2026-01-01T00:00:00Z","path":"/a","host":"example.com"}\n')
    assert ImportFile.of(path, None).source == "ndjson"


def test_caddy_s_json(tmp_path: Path) -> None:
    started = '{"level":"info","ts":1769902200.1,"logger":"admin","msg":"started"}\n'
    view = view_of(tmp_path, started + caddy())
    assert (view.time_ms, view.path, view.host) == (1769902200250, "/docs", "www.example.com")
    assert (view.utm_medium, view.referrer, view.locale) == ("mail", "", "de-AT")
    assert (view.browser, view.first_today) == ("Firefox", True)
    assert read(tmp_path, caddy(host="another.example")) == []
    assert read(tmp_path, caddy(type="image/png")) == []
    assert len(read(tmp_path, caddy(uri="/data.xml"))) == 1, "its Content-Type is that of a page"


@pytest.mark.parametrize(
    "moment",
    [
        {"time_iso8601": "2026-01-31T23:30:00+01:00"},
        {"time_local": "31/Jan/2026:22:30:00 +0000"},
        {"msec": "1769898600.000"},
    ],
)
def test_nginx_s_json(tmp_path: Path, moment: dict[str, str]) -> None:
    record = moment | {
        "remote_addr": "192.0.2.1",
        "request": "GET /x?utm_term=t HTTP/1.1",
        "status": "200",
        "http_referer": "-",
        "http_user_agent": FIREFOX,
    }
    view = view_of(tmp_path, json.dumps(record))
    assert (view.time_ms, view.path) == (ms("2026-01-31T22:30:00+00:00"), "/x")
    assert (view.utm_term, view.browser, view.host) == ("t", "Firefox", "")


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"request": "GET /caf\xe9 HTTP/1.1"}, {"path": "/caf\ufffd"}),
        ({"http_referer": "https://a.example/\xe9"}, {"referrer": "a.example/\ufffd"}),
        ({"http_user_agent": f"{FIREFOX} \xe9"}, {"browser": "Firefox"}),
    ],
)
def test_nginx_s_json_may_have_invalid_utf_8(
    tmp_path: Path, sent: dict[str, str], expected: dict[str, str]
) -> None:
    """nginx writes the bytes that it received; such a line is recognised as well."""
    view = view_of(tmp_path, nginx(**sent).encode().replace(rb"\u00e9", b"\xe9"))
    assert {name: getattr(view, name) for name in expected} == expected
    assert ImportFile.of(tmp_path / "access.log.0", None).source == "access-log"


@pytest.mark.parametrize(
    "fields",
    [
        {"request": ""},
        {"request": "\x16\x03\x01\xfc"},
        {"request": "GET /"},
        {"request_method": "", "request_uri": "", "request": ""},
    ],
)
def test_nginx_s_json_may_have_requests_that_are_not_http(
    tmp_path: Path, fields: dict[str, str]
) -> None:
    """For example, of a client that sends TLS to a plain port, or nothing."""
    content = nginx(status="400", http_user_agent="", **fields)
    assert left_out(tmp_path, content + nginx()) == (1, {"no_view": 1})
    assert ImportFile.of(tmp_path / "access.log", None).source == "access-log"


@pytest.mark.parametrize("status", ["000", "009", " 000"])
def test_nginx_s_json_may_have_an_unusual_status(tmp_path: Path, status: str) -> None:
    """For example, of a request that was cancelled in HTTP/2, or one in HTTP/0.9."""
    content = nginx(http_user_agent=r'":007,"').replace('"200"', status)
    assert left_out(tmp_path, content + nginx()) == (1, {"no_view": 1})
    assert ImportFile.of(tmp_path / "access.log", None).source == "access-log"


def test_nginx_s_numbers_may_have_leading_zeros(tmp_path: Path) -> None:
    """Zeros within texts are kept."""
    path = '/"status":007,00'
    content = nginx(request=f"GET {path} HTTP/1.1").replace('"200"', '0200,"x":[00,-1,0.05]')
    assert view_of(tmp_path, content).path == path


def test_other_invalid_json_is_rejected(tmp_path: Path) -> None:
    content = '{"status":000,"request":"' + r"\"" * 20_000 + "\n"
    (refused,) = read(tmp_path, content)
    assert isinstance(refused, RejectedRow)
    assert refused.reason.startswith("not a JSON object: ")
