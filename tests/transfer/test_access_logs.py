"""Which lines of access logs are views, and which visitors they belong to."""

import os
import tracemalloc
from datetime import UTC, datetime
from ipaddress import ip_network
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.transfer.log_samples import (
    CRAWLER,
    FIREFOX,
    RULES,
    caddy,
    left_out,
    line,
    ms,
    nginx,
    read,
)

from medamad.domain.errors import BadRequest
from medamad.domain.hits import HostingRule
from medamad.domain.website_settings import WebsiteSettings
from medamad.ingest.networks import Networks
from medamad.ingest.pipeline import Rules
from medamad.ingest.website_rules import WebsiteRules
from medamad.transfer.import_context import ImportTarget, ReadContext, VisitorIndex
from medamad.transfer.import_survey import ImportFile, number_rows, survey_rows
from medamad.transfer.rows import RejectedRow, ViewRow


def test_a_line_from_the_future_is_rejected(tmp_path: Path) -> None:
    target = ImportTarget("example.com", RULES, ms("2026-02-01T00:30:00+00:00"))
    later = line(time="31/Jan/2026:23:30:01 -0100")
    view, refused = read(tmp_path, line() + later, target=target)
    assert isinstance(view, ViewRow)
    assert refused == RejectedRow(2, "time", "expected a time at most a day in the future")


def test_a_pipe_cannot_be_imported() -> None:
    reading, writing = os.pipe()
    os.write(writing, line().encode())
    os.close(writing)
    path = Path(f"/dev/fd/{reading}")
    with pytest.raises(BadRequest, match=f"{path}: expected a file, not a pipe"):
        ImportFile.of(path, None)
    os.close(reading)


@pytest.mark.parametrize(
    "fields",
    [
        {"request": "POST /a HTTP/1.1"},
        {"request": "HEAD /a HTTP/1.1"},
        {"request": r"\x16\x03\x01", "status": 400},
        {"request": "-", "status": 408},
        {"status": 301},
        {"status": 404},
        {"status": 206},
        {"request": "GET /style.CSS?v=1 HTTP/1.1"},
        {"request": "GET /favicon.ico HTTP/1.1"},
        {"request": "GET /robots.txt HTTP/1.1"},
        {"agent": CRAWLER},
        {"address": "203.0.113.9"},
        {"referrer": "http://www.spam.example/"},
    ],
)
def test_requests_that_are_not_views_are_skipped(tmp_path: Path, fields: dict[str, str]) -> None:
    assert read(tmp_path, line(**fields)) == []  # type: ignore[arg-type]


PROGRAMS = (
    *("curl/8.5.0", "Wget/1.21", "python-requests/2.31", "Go-http-client/1.1", "libwww-perl/6"),
    *("-", "kube-probe/1.29", "Mozilla/5.0", CRAWLER),
)


def test_a_client_without_a_browser_name_is_a_program(tmp_path: Path) -> None:
    """Its hits may count, but a log has the requests of every client."""
    content = line() + "".join(line(agent=agent) for agent in PROGRAMS)
    content += caddy() + caddy(headers={"Accept": ["*/*"]}) + caddy(headers={})
    assert left_out(tmp_path, content) == (2, {"programs": len(PROGRAMS) + 2})
    assert left_out(tmp_path, content, Rules(bots="off")) == (len(PROGRAMS) + 4, {})
    common = '192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.0" 200 -\n'
    assert left_out(tmp_path, common, Rules(bots="strict")) == (1, {}), "it does not say"
    assert left_out(tmp_path, caddy() + caddy(headers=None)) == (2, {}), "nor does this line"


LESSER = (
    *("Lynx/2.8.9rel.1 libwww-FM/2.14", "w3m/0.5.3", "Dillo/3.0.5", "NetSurf/3.10 (Linux)"),
    *("Links (2.29; Linux x86_64; text)", "Links/2.28", "ELinks/0.16.1 (textmode; Linux)"),
    *("Mozilla/4.0 (compatible; Dillo 3.0)", "Mozilla/5.0 (X11; Linux x86_64) NetSurf/3.11"),
    "Mozilla/5.0 (X11; Linux x86_64) KHTML/5.105.0 (like Gecko) Konqueror/5 KIO/5.105",
    "Mozilla/5.0 (Nintendo Switch) AppleWebKit/606.4 (KHTML, like Gecko) NintendoBrowser/5.1.0.20",
)


def test_minor_browsers_are_not_programs(tmp_path: Path) -> None:
    content = "".join(line(agent=agent) for agent in LESSER)
    assert left_out(tmp_path, content) == (len(LESSER), {})
    crawling = ("check-links/2.0", "Mozilla/5.0 (compatible; LinksCrawler/1.0)")
    content = "".join(line(agent=agent) for agent in crawling)
    assert left_out(tmp_path, content) == (0, {"programs": 2})


def test_logs_may_lack_user_agents(tmp_path: Path) -> None:
    """If no line has one, they were not logged; otherwise a client without one is a program."""
    bare = caddy(headers={"Accept": ["*/*"]})
    without = bare + bare + line(agent="-") + line(agent="-", status=404)
    rows = read(tmp_path, without)
    visitors = [row.first_today for row in rows if isinstance(row, ViewRow)]
    assert visitors == [True, False, True], "the last is of another day"
    assert left_out(tmp_path, without) == (3, {"no_view": 1})
    for other in (line(), line(status=404)):
        reasons = {"programs": 3, "no_view": 1 + (other != line())}
        assert left_out(tmp_path, without + other) == (other == line(), reasons)
        assert left_out(tmp_path, other + without) == (other == line(), reasons)


def test_the_first_user_agent_may_come_late(tmp_path: Path) -> None:
    """After a night of health checks, and in any of the files."""
    checks = line(agent="-", request="GET /a.css HTTP/1.1") * 20_000 + line(agent="-")
    assert left_out(tmp_path, checks + line()) == (1, {"no_view": 20_000, "programs": 1})
    for contents in ((line(agent="-"), line()), (line(), line(agent="-"))):
        assert len(read(tmp_path, *contents)) == 1


def test_skipped_requests_are_counted_by_reason(tmp_path: Path) -> None:
    content = (
        line(status=404)
        + line(request="GET /style.css HTTP/1.1", agent="curl/8.5.0")
        + line(agent="curl/8.5.0")
        + line(address="203.0.113.9")
        + line(referrer="http://www.spam.example/")
        + line(request="GET foo/bar HTTP/1.1")
        + caddy(host="another.example")
        + '{"level":"info","ts":1769902200.1,"logger":"admin","msg":"started"}\n'
    )
    assert left_out(tmp_path, content) == (
        0,
        {"no_view": 3, "programs": 1, "blocked": 1, "spam": 1, "no_page": 1, "other_hosts": 1},
    )


@pytest.mark.parametrize(
    ("configured", "own", "views", "robots"),
    [
        ("count", None, [True, False], {}),
        ("count apart", None, [False], {"Hosting network": {"/a": 1}}),
        ("ignore", None, [False], {}),
        ("count apart", "ignore", [False], {}),
    ],
)
def test_requests_from_hosting_networks_are_flagged_or_left_out(
    tmp_path: Path, configured: HostingRule, own: HostingRule | None, views: list[bool], robots: Any
) -> None:
    networks = Networks([ip_network("198.51.100.0/24")])
    rules = evolve(RULES, hosting=networks, hosting_rule=configured)
    settings = WebsiteSettings().with_changes({"hosting": own})
    target = ImportTarget("example.com", rules, own=WebsiteRules.of(settings))
    request = "GET /a HTTP/1.1"
    content = line(address="198.51.100.7", request=request) + line(request=request)
    found = read(tmp_path, content, target=target)
    assert [row.hosting for row in found if isinstance(row, ViewRow)] == views
    *_, survey = survey_rows([ImportFile.of(tmp_path / "access.log.0", "access-log", target)])
    assert survey.skipped == ({} if len(views) == 2 else {"hosting": 1})
    assert [*survey.robots.values()] == ([robots] if robots else [])


@pytest.mark.parametrize(
    "host",
    [
        *("203.0.114.9", "203.0.114.9:80", "[2001:db8::1]:443", "[", "-example.com", ":80"),
        *("my_host.internal", "_example.com", "localhost", "other.example"),
    ],
)
def test_an_invalid_hostname_is_another_host(tmp_path: Path, host: str) -> None:
    content = nginx(http_host="www.example.com") + nginx(http_host=host) + caddy(host=host)
    assert left_out(tmp_path, content) == (1, {"other_hosts": 2})


@pytest.mark.parametrize("before", ["my_host.example.com:80 ", "203.0.114.9:80 ", "my_host "])
def test_an_invalid_hostname_is_another_virtual_host(tmp_path: Path, before: str) -> None:
    assert left_out(tmp_path, before + line()) == (0, {"other_hosts": 1})


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("//blog/post-1", "//blog/post-1"),
        ("/a?b=http://other.example/c", "/a"),
        ("/a//b", "/a//b"),
        ("http://example.com/proxied/?utm_source=x", "/proxied"),
        ("HTTPS://www.example.com", "/"),
        ("http://example.com?x=/y", "/"),
        ("http://other.example/proxy-test", None),
        ("http://[::1/x", None),
        ("foo/bar", None),
        ("*", None),
        ("", None),
    ],
)
def test_a_target_is_a_path_or_a_full_url(tmp_path: Path, target: str, path: str | None) -> None:
    rows = read(tmp_path, line(request=f"GET {target} HTTP/1.1"))
    assert [row.path for row in rows if isinstance(row, ViewRow)] == ([path] if path else [])


@pytest.mark.parametrize("path", ["/release/1.2", "/index.html", "/a.php", "/j.s/", "/me@b.co"])
def test_a_path_with_a_dot_may_be_a_page(tmp_path: Path, path: str) -> None:
    assert len(read(tmp_path, line(request=f"GET {path} HTTP/1.1"))) == 1


DOWNLOADS = (
    *("exe", "7z", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "pdf", "mp3", "mp4", "txt", "gz"),
    *("dmg", "csv", "rar", "zip", "odt", "ods", "odp", "rtf", "epub", "mobi", "apk", "jar", "iso"),
    *("AppImage", "flatpak", "mkv", "opus", "aac", "heic", "sig", "asc", "sha256", "sha512"),
)
"""First what the tracker takes for downloads."""


@pytest.mark.parametrize("ending", DOWNLOADS)
def test_a_download_is_not_a_page(tmp_path: Path, ending: str) -> None:
    assert left_out(tmp_path, line(request=f"GET /a.{ending} HTTP/1.1")) == (0, {"no_view": 1})


def test_cached_pages_count(tmp_path: Path) -> None:
    assert len(read(tmp_path, line(status=304))) == 1


def test_visitors_are_distinguished_for_a_day(tmp_path: Path) -> None:
    def at(time: str, path: str, **more: str) -> str:
        request = f"GET {path} HTTP/1.1"
        return line(time=f"{time} +0000", request=request, **more)  # type: ignore[arg-type]

    first = [
        at("01/Feb/2026:10:00:00", "/a"),
        at("01/Feb/2026:10:00:01", "/b"),
        at("01/Feb/2026:10:00:02", "/a", address="192.0.2.2"),
    ]
    second = [
        at("01/Feb/2026:10:00:03", "/a"),
        at("01/Feb/2026:10:00:04", "/a", agent=FIREFOX.replace("128", "129")),
        at("02/Feb/2026:00:00:00", "/a"),
    ]
    rows = read(tmp_path, "".join(first), "".join(second))
    found = [(row.first_today, row.first_of_page) for row in rows if isinstance(row, ViewRow)]
    yes, no = (True, True), (False, False)
    assert found == [yes, (False, True), yes, no, yes, yes]


def test_visits_are_those_of_an_address_with_a_user_agent(tmp_path: Path) -> None:
    def at(time: str, address: str = "192.0.2.1", agent: str = FIREFOX) -> str:
        return line(time=f"01/Feb/2026:{time} +0000", address=address, agent=agent)

    later = at("10:40:00") + at("11:10:01") + at("10:40:00", address="192.0.2.2")
    earlier = at("10:00:00") + at("10:20:00") + at("10:20:00", agent=FIREFOX.replace("128", "129"))
    rows = read(tmp_path, later, earlier)
    found = [(row.number, row.visit) for row in rows if isinstance(row, ViewRow)]
    assert found == [(4, 1), (6, 6), (5, 5), (1, 1), (2, 1), (3, 3)]


def test_logs_of_several_servers_may_be_in_any_order(tmp_path: Path) -> None:
    def at(time: str, path: str, referrer: str = "-") -> str:
        request = f"GET {path} HTTP/1.1"
        return line(time=f"01/Feb/2026:{time} +0000", request=request, referrer=referrer)

    first = at("10:00:00", "/second") + at("12:00:00", "/first")
    second = at("09:00:00", "/first", "https://www.google.com/")
    rows = read(tmp_path, first, second)
    found = [
        (row.referrer, row.first_today, row.first_of_page)
        for row in rows
        if isinstance(row, ViewRow)
    ]
    assert found == [("", False, True), ("", False, False), ("google.com", True, True)]


def test_rotated_logs_may_be_in_the_order_of_their_names(tmp_path: Path) -> None:
    """access.log.1 is the newest, and access.log.10 sorts before access.log.2."""
    days = [f"{day:02}/Jan/2026" for day in range(1, 31)]
    weeks = [
        line(time=f"{first}:02:30:00 +0000") + line(time=f"{last}:02:00:00 +0000")
        for first, last in pairwise(days)
    ]
    rows = read(tmp_path, *weeks[20:], *weeks[:10], *weeks[10:20])
    assert sum(row.first_today for row in rows if isinstance(row, ViewRow)) == len(days)


@pytest.mark.parametrize("lines", [5_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_long_log_takes_little_memory(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "access.log"
    begin = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    with path.open("w") as file:
        for n in range(lines):
            time = datetime.fromtimestamp(begin + n, UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
            request = f"GET /{n % 50} HTTP/1.1"
            file.write(line(address=f"192.0.2.{n % 200}", time=time, request=request))
    files = [ImportFile.of(path, None, ImportTarget("example.com"))]
    next(number_rows(files, ReadContext(VisitorIndex(UTC))))
    tracemalloc.start()
    try:
        *_, found = survey_rows(files)
        assert sum(1 for _ in number_rows(files, ReadContext(found.index))) == lines
        assert tracemalloc.get_traced_memory()[1] < (2 << 20) + 100 * lines
    finally:
        tracemalloc.stop()


def test_what_a_website_never_stores_is_not_imported(tmp_path: Path) -> None:
    settings = WebsiteSettings(
        redacted_paths=("/reset/*",), redact_emails=True, kept_parameters=("t",)
    )
    target = ImportTarget("example.com", RULES, own=WebsiteRules.of(settings))
    request = "GET /reset/kQ2pX9s?t=5&sid=x HTTP/1.1"
    content = line(request=request, referrer="https://a.example/u/ada@example.org")
    (row,) = read(tmp_path, content, target=target)
    assert isinstance(row, ViewRow)
    assert (row.path, row.referrer) == ("/reset/…?t=5", "a.example/u/…")


def test_pages_of_other_websites_here_are_redacted_as_their_own(tmp_path: Path) -> None:
    other = WebsiteRules.of(WebsiteSettings(redacted_paths=("/reset/*",)))
    target = ImportTarget("example.com", RULES, others={"www.other.example": other})
    content = line(referrer="https://other.example/reset/kQ2%2FpX9s")
    content += line(referrer="https://a.example/reset/b")
    rows = read(tmp_path, content, target=target)
    assert [row.referrer for row in rows if isinstance(row, ViewRow)] == [
        "other.example/reset/…",
        "a.example/reset/b",
    ]


def test_the_settings_of_a_website_say_which_requests_are_views(tmp_path: Path) -> None:
    settings = WebsiteSettings(
        bots="off",
        blocked_networks=("198.51.100.0/24",),
        excluded_paths=("/admin/*",),
        redacted_paths=("/admin/*", "/f/*"),
        kept_parameters=("f",),
    )
    content = line(agent="curl/8.5.0") + line(address="198.51.100.7")
    for target in ("/admin/a", "/f/logo.png", "/logo.png?f=1", "/view?f=a.png", "/f/x"):
        content += line(request=f"GET {target} HTTP/1.1")
    target = ImportTarget("example.com", RULES, own=WebsiteRules.of(settings))
    rows = read(tmp_path, content, target=target)
    assert [row.path for row in rows if isinstance(row, ViewRow)] == ["/a", "/view?f=a.png", "/f/…"]
    (file,) = (ImportFile.of(tmp_path / "access.log.0", "access-log", target),)
    *_, found = survey_rows([file])
    assert found.skipped == {"blocked": 1, "excluded": 1, "no_view": 2}
    strict = WebsiteSettings(bots="strict", excluded_paths=("/admin/*",))
    target = ImportTarget("example.com", Rules(bots="off"), own=WebsiteRules.of(strict))
    *_, found = survey_rows([ImportFile.of(file.path, "access-log", target)])
    assert found.skipped == {"programs": 1, "excluded": 1, "no_view": 2}
    assert [dict(of_day) for of_day in found.robots.values()] == [{"curl": {"/a": 1}}]
