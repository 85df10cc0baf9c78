"""The formats of access logs, line by line."""

import gzip
import tracemalloc
from pathlib import Path

import pytest
from support.transfer import foreign_files as programs
from support.transfer.log_samples import FIREFOX, caddy, left_out, line, ms, nginx, read, view_of

from medamad.domain.errors import BadRequest
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.import_survey import ImportFile, digest_of, survey_rows
from medamad.transfer.rows import RejectedRow, ViewRow
from medamad.transfer.sources.log_lines import is_log_line


def test_a_line_in_the_combined_format(tmp_path: Path) -> None:
    view = view_of(
        tmp_path,
        line(
            request="GET /caf%C3%A9/?utm_source=news&x=1 HTTP/2.0",
            referrer="https://www.other.example/page/?q=1",
        ),
    )
    assert view == ViewRow(
        time_ms=ms("2026-02-01T00:30:00+00:00"),
        number=1,
        visit=1,
        identity=view.identity,
        path="/café",
        utm_source="news",
        referrer="other.example/page",
        first_today=True,
        first_of_page=True,
        browser="Firefox",
        browser_version="128",
        os="Linux",
        device="Desktop",
    )


def test_a_line_in_the_common_format(tmp_path: Path) -> None:
    common = '2001:db8::1 ident "a user" [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 -\n'
    view = view_of(tmp_path, common)
    assert (view.time_ms, view.path) == (ms("2000-10-10T20:55:36+00:00"), "/")
    assert (view.browser, view.referrer) == ("Unknown", "")


@pytest.mark.parametrize("before", ["example.com:443 ", "www.example.com:80 ", "Example.com "])
@pytest.mark.parametrize("address", ["203.0.114.9", "2001:db8::17"])
def test_a_virtual_host_may_come_first(tmp_path: Path, before: str, address: str) -> None:
    own = line(address=address)
    view, twice = read(tmp_path, before + own + before + own)
    assert isinstance(view, ViewRow)
    assert isinstance(twice, ViewRow)
    assert view.host == before.strip().partition(":")[0].lower()
    assert (view.first_today, twice.first_today) == (True, False)
    assert read(tmp_path, before + line(address="203.0.113.9")) == [], "it is blocked"
    assert read(tmp_path, "other.example:80 " + own + "other.example " + own) == []


@pytest.mark.parametrize("user", ["-", "frank", "frank van der berg"])
@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1", "::1", "client.example"])
def test_an_address_is_not_a_virtual_host(tmp_path: Path, address: str, user: str) -> None:
    view = view_of(tmp_path, line(address=address).replace(" - - [", f" - {user} ["))
    assert view.host == ""


@pytest.mark.parametrize("before", ["", "example.com:443 "])
@pytest.mark.parametrize("user", ["[", "a[b", "a] [b", "[" * 30, "a] [b [c d]"])
def test_a_user_may_have_any_name(tmp_path: Path, before: str, user: str) -> None:
    """A client may send any name, and nginx logs it unchecked."""
    named = before + line().replace(" - - [", f" - {user} [")
    assert view_of(tmp_path, named).time_ms == ms("2026-02-01T00:30:00+00:00")


def test_an_empty_file_is_a_log(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.touch()
    given = ImportFile.of(path, None)
    assert (given.source, list(given.rows())) == ("access-log", [])


def test_escapes_are_decoded(tmp_path: Path) -> None:
    escaped = line(
        request=r"GET /a\"b\\c\xc3\xa9?utm_campaign=\"x\" HTTP/1.1",
        referrer=r"https://other.example/\"",
        agent=rf"{FIREFOX} \"quoted\"",
    )
    view = view_of(tmp_path, escaped)
    assert (view.path, view.utm_campaign, view.referrer) == (
        '/a"b\\cé',
        '"x"',
        'other.example/"',
    )
    assert view.browser == "Firefox"
    assert view_of(tmp_path, line(request="GET /\xff HTTP/1.1").encode("latin-1")).path == "/\ufffd"


def test_unusual_lines_are_reported(tmp_path: Path) -> None:
    content = (
        "nonsense\n\n"
        + line(time="31/Foo/2026:23:30:00 +0000")
        + line(time="31/Feb/2026:23:30:00 +0000")
        + "x" * 60_000
        + "\n"
        + '{"broken\n{"request_uri": "/", "msec": "1.5"}\n'
        + line()
    )
    *refused, view = read(tmp_path, content)
    assert [(row.line, row.field) for row in refused if isinstance(row, RejectedRow)] == [
        (1, "line"),
        (3, "time"),
        (4, "time"),
        (5, "line"),
        (6, "line"),
        (7, "status"),
    ]
    assert isinstance(view, ViewRow)


def test_a_line_that_is_too_long_is_skipped(tmp_path: Path) -> None:
    """A request full of bytes that the server escapes makes such a line."""
    content = line() + nginx(http_referer="\1" * 24_000) + line(agent=r"\x01" * 24_000) + line()
    assert left_out(tmp_path, content) == (2, {"long": 2})
    assert left_out(tmp_path, content + "x" * 70_000) == (2, {"long": 3})


NAMES = (
    *("_", ".example.com", "*.example.com", "www.example.*"),
    *(r"~^(www\.)?example\.com$", r"~^(?:[a-z]+\.)?example\.com$"),
)
"""Of servers of nginx that have several."""


@pytest.mark.parametrize("name", ["", "-", *NAMES])
def test_a_server_with_several_names_has_no_host(tmp_path: Path, name: str) -> None:
    assert view_of(tmp_path, nginx(server_name=name)).host == ""


@pytest.mark.parametrize("before", [":443 ", *(f"{n}{p} " for n in NAMES for p in ("", ":80"))])
@pytest.mark.parametrize("address", ["203.0.114.9", "2001:db8::17"])
def test_a_virtual_host_with_several_names_has_no_host(
    tmp_path: Path, before: str, address: str
) -> None:
    first, second = read(tmp_path, before + line(address=address) + before + line())
    assert isinstance(first, ViewRow)
    assert isinstance(second, ViewRow)
    assert (first.host, second.host) == ("", "")
    assert (first.first_today, second.first_today) == (True, True), "the addresses differ"


@pytest.mark.parametrize("before", ["- ", "-:443 "])
@pytest.mark.parametrize("address", ["203.0.114.9", "2001:db8::17"])
def test_a_missing_host_is_empty(tmp_path: Path, before: str, address: str) -> None:
    """nginx writes a hyphen for $http_host, also before an address, which is still read."""
    plain = line(address=address) + line() + line(address="203.0.113.9")
    found = read(tmp_path, "".join(f"{before}{each}\n" for each in plain.splitlines()))
    assert found == read(tmp_path, plain), "two visitors, and one who is blocked"
    assert len(found) == 2


def test_logs_are_recognised_by_their_lines_and_read_with_gzip(tmp_path: Path) -> None:
    plain, small = tmp_path / "a", tmp_path / "b"
    content = ("garbage\n" + line() + caddy()).encode()
    plain.write_bytes(content)
    small.write_bytes(gzip.compress(content))
    given = [ImportFile.of(plain, None), ImportFile.of(small, None)]
    assert [each.source for each in given] == ["access-log", "access-log"]
    assert digest_of(given[:1]) == digest_of(given[1:]), "it is the same log"
    for each in given:
        *_, found = survey_rows([each])
        assert (found.views, found.rejected_rows) == (2, 1)
    small.write_bytes(gzip.compress(content)[:-9])
    with pytest.raises(BadRequest, match=f"{small}: not a valid gzip file"):
        list(survey_rows([ImportFile.of(small, None)]))


def test_an_incomplete_last_line_is_skipped(tmp_path: Path) -> None:
    """At any byte: a log may be read or copied while it is written."""
    whole = line(address="192.0.2.2", referrer="https://other.example/").rstrip("\n")
    for cut in range(1, len(whole)):
        assert left_out(tmp_path, line() + whole[:cut]) == (1, {"cut": 1})
    assert left_out(tmp_path, line() + whole) == (2, {})
    assert left_out(tmp_path, whole[:-1]) == (0, {"cut": 1})
    record = caddy().rstrip("\n")
    for cut in range(1, len(record), 50):
        assert left_out(tmp_path, caddy() + record[:cut]) == (1, {"cut": 1})
    assert left_out(tmp_path, record) == (1, {})


def test_a_log_in_the_common_format_may_lack_the_last_line_end(tmp_path: Path) -> None:
    common = '192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 -'
    assert left_out(tmp_path, f"{common}\n{common}") == (2, {})
    assert left_out(tmp_path, f"{common}\n{common[:-1]}") == (1, {"cut": 1})


@pytest.mark.parametrize("form", ["combined", "caddy"])
def test_a_log_may_begin_with_a_byte_order_mark(tmp_path: Path, form: str) -> None:
    content = {"combined": line, "caddy": caddy}[form]()
    path = tmp_path / "access.log"
    path.write_text(content * 2, "utf-8-sig")
    one, two = programs.read(path, target=ImportTarget("example.com"))
    assert isinstance(one, ViewRow)
    assert isinstance(two, ViewRow)
    assert (one.first_today, two.first_today) == (True, False)


def test_a_long_line_takes_little_memory() -> None:
    long = line(agent="x" * (1 << 20)).encode()
    tracemalloc.start()
    try:
        assert is_log_line(long)
        assert tracemalloc.get_traced_memory()[1] < len(long) * 3
    finally:
        tracemalloc.stop()
