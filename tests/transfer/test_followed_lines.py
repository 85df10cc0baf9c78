"""What the lines of a log that is followed count as."""

from collections import Counter
from datetime import date
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from attrs import evolve
from support.transfer.log_samples import CRAWLER, FIREFOX, RULES, caddy, line, nginx, read

from medamad.domain.hits import HostingRule
from medamad.domain.website_settings import WebsiteSettings
from medamad.ingest.networks import Networks
from medamad.ingest.pipeline import Rules
from medamad.storage.followed_logs import FollowedWebsite, LogCounts, LoggedView
from medamad.transfer.followed_lines import LineCounter
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.rows import ViewRow

DAY = (date(2026, 2, 1) - date(1970, 1, 1)).days
GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
WEBSITES = {"example.com": FollowedWebsite(1), "www.other.example": FollowedWebsite(2)}


def counter(hostname: str = "example.com", rules: Rules = RULES) -> LineCounter:
    return LineCounter(ImportTarget(hostname, rules), WEBSITES, lambda: (DAY + 10) * 86_400.0)


def counts(content: str, hostname: str = "example.com", rules: Rules = RULES) -> LogCounts:
    made = counter(hostname, rules)
    made.count(content.encode())
    return made.take()


def test_robots_and_page_loads_are_counted() -> None:
    content = "".join(
        line(agent=agent, request=f"GET {target} HTTP/1.1", status=status)
        for agent, target, status in (
            (FIREFOX, "/", 200), (FIREFOX, "/?a=1", 200), (FIREFOX, "/", 304), (FIREFOX, "/x", 404),
            (GPTBOT, "/", 200), (GPTBOT, "/", 304), (GPTBOT, "/logo.png", 200), (GPTBOT, "/y", 404),
            ("curl/8.5.0", "/a", 200), ("-", "/a", 200),
        )
    )  # fmt: skip
    found = counts(content)
    assert found.robots == {1: {DAY: {"GPTBot": {"/": 2}, "curl": {"/a": 1}, "Unknown": {"/a": 1}}}}
    assert found.loads == {1: {DAY: {"Firefox": {"/": 2}, "": {"/": 1, "/a": 2}}}}


def test_a_line_counts_as_in_an_import_in_every_format() -> None:
    json = caddy() + nginx() + nginx(http_user_agent=GPTBOT) + caddy(headers={})
    found = counts(json)
    assert found.loads == {
        1: {DAY - 1: {"Firefox": {"/docs": 1, "/x": 1}, "": {"/x": 1, "/docs": 1}}}
    }
    assert found.robots == {1: {DAY - 1: {"GPTBot": {"/x": 1}, "Unknown": {"/docs": 1}}}}


def test_each_line_belongs_to_the_website_of_its_host_unless_one_is_named() -> None:
    hosts = ("example.com", "www.example.com", "other.example", "elsewhere.example")
    content = "".join(f"{host}:443 {line(agent=GPTBOT)}" for host in hosts) + line(agent=GPTBOT)
    assert {
        website: sum(days[DAY]["GPTBot"].values())
        for website, days in counts(content, "").robots.items()
    } == {1: 2, 2: 1}
    alone = counts(content, "example.com").robots
    assert {website: sum(days[DAY]["GPTBot"].values()) for website, days in alone.items()} == {1: 3}


@pytest.mark.parametrize("sample", [line, nginx, caddy])
def test_requests_from_hosting_networks_count_as_the_settings_say(sample: Any) -> None:
    hosting = {line: {"address": "198.51.100.7"}}.get(sample, {"remote_addr": "198.51.100.7"})
    if sample is caddy:
        hosting = {"client_ip": "198.51.100.7"}
    content = sample(**hosting) + sample()
    networks = Networks([ip_network("198.51.100.0/24")])

    def found(configured: HostingRule, own: HostingRule | None) -> tuple[int, int, int]:
        """Return the page loads of people and of robots, and the requests of hosting networks."""
        settings = WebsiteSettings().with_changes({"hosting": own})
        rules = evolve(RULES, hosting=networks, hosting_rule=configured)
        made = counter(rules=rules)
        made.use_websites({"example.com": FollowedWebsite(1, settings)})
        made.count(content.encode())
        taken = made.take()
        loads = Counter[bool]()
        for browsers in taken.loads[1].values():
            for browser, paths in browsers.items():
                loads[bool(browser)] += sum(paths.values())
        robots = Counter[str]()
        for names in taken.robots.get(1, {}).values():
            robots.update({name: sum(paths.values()) for name, paths in names.items()})
        assert {*robots} <= {"Hosting network"}
        return loads[True], loads[False], robots.total()

    assert found("count", None) == (2, 0, 0)
    assert found("count apart", None) == (1, 1, 1)
    assert found("ignore", None) == (1, 0, 0)
    assert found("ignore", "count apart") == (1, 1, 1)
    assert found("ignore", "count") == (2, 0, 0)


def test_a_client_without_a_user_agent_is_a_robot_unless_the_format_has_none() -> None:
    made = counter()
    made.visitor_key = b"key"
    empty = line(agent="-")
    common = empty.removesuffix(' "-" "-"\n') + "\n"
    made.count((empty + common * 2).encode())
    found = made.take()
    assert found.robots == {1: {DAY: {"Unknown": {"/a": 1}}}}
    assert [(view.path, view.browser) for view in found.views] == [("/a", "Unknown")] * 2


def test_a_new_website_counts_from_then_on() -> None:
    made = counter("")
    content = f"new.example:443 {line(agent=GPTBOT)}".encode()
    made.count(content)
    assert made.take() == LogCounts(robots={}, loads={})
    made.use_websites(WEBSITES | {"new.example": FollowedWebsite(3)})
    made.count(content)
    assert list(made.take().robots) == [3]


def test_days_are_those_of_the_configured_zone() -> None:
    content = line(agent=GPTBOT, time="31/Jan/2026:23:30:00 +0000")
    content += line(agent=GPTBOT, time="31/Jan/2026:23:30:00 -0100")
    rules = evolve(RULES, zone=ZoneInfo("Asia/Tokyo"))
    assert list(counts(content, rules=rules).robots[1]) == [DAY]
    assert list(counts(content).robots[1]) == [DAY - 1, DAY]


def test_blocked_networks_the_far_future_and_what_is_no_line_do_not_count() -> None:
    content = line(agent=GPTBOT, address="203.0.113.9")
    content += line(agent=GPTBOT, time="31/Jan/2027:23:30:00 +0000")
    content += 'no line\n\n{"level": "info", "msg": "x"}\n{broken\n'
    made = counter()
    made.count(content.encode())
    assert made.take() == LogCounts(robots={}, loads={})
    assert made.invalid == 2


@pytest.mark.parametrize("agent", [CRAWLER, GPTBOT])
def test_nobody_is_a_robot_if_bots_count(agent: str) -> None:
    found = counts(line(agent=agent), rules=Rules(bots="off"))
    assert found.robots == {}
    assert list(found.loads) == [1]


def test_repeated_lines_are_counted_as_often_as_they_occur() -> None:
    assert counts(line(agent=GPTBOT) * 500).robots[1][DAY]["GPTBot"] == {"/a": 500}


def test_networks_that_a_website_blocks_do_not_count_for_it() -> None:
    settings = WebsiteSettings(blocked_networks=("192.0.2.0/25", "2001:db8::/32"))
    made = counter("")
    made.use_websites(
        {
            "example.com": FollowedWebsite(1, settings),
            "other.example": FollowedWebsite(2, WebsiteSettings(blocked_networks=("192.0.2.200",))),
        }
    )
    for address in ("192.0.2.1", "192.0.2.200", "2001:db8::1"):
        for host in ("example.com", "other.example"):
            made.count(f"{host}:443 {line(agent=GPTBOT, address=address)}".encode())
            json = {"host": host, "client_ip": address, "uri": "/json"}
            made.count(caddy(**json).encode())
    found = made.take()
    assert found.robots == {1: {DAY: {"GPTBot": {"/a": 1}}}, 2: {DAY: {"GPTBot": {"/a": 2}}}}
    assert found.loads[1][DAY - 1] == {"Firefox": {"/json": 1}}
    assert found.loads[2][DAY - 1] == {"Firefox": {"/json": 2}}
    made.use_websites({"example.com": FollowedWebsite(1)})
    made.count(f"example.com:443 {line(agent=GPTBOT)}".encode())
    assert made.take().robots == {1: {DAY: {"GPTBot": {"/a": 1}}}}


def test_a_line_is_judged_by_the_page_that_was_requested() -> None:
    settings = WebsiteSettings(
        excluded_paths=("/reset/*",), redacted_paths=("/reset/*", "/f/*"), kept_parameters=("f",)
    )
    made = counter()
    made.use_websites({"example.com": FollowedWebsite(1, settings)})
    for target in ("/reset/a", "/f/logo.png", "/logo.png?f=1", "/view?f=a.png", "/f/x"):
        made.count(line(request=f"GET {target} HTTP/1.1").encode())
    assert made.take().loads == {1: {DAY: {"Firefox": {"/view?f=a.png": 1, "/f/…": 1}}}}


def test_the_settings_of_a_website_hold_for_its_lines() -> None:
    settings = WebsiteSettings(
        bots="off",
        excluded_paths=("/admin",),
        redacted_paths=("/reset/*",),
        kept_parameters=("t",),
    )
    made = counter()
    made.use_websites({"example.com": FollowedWebsite(1, settings)})
    for target in ("/reset/secret", "/view?s=1&t=2", "/admin"):
        made.count(line(agent=GPTBOT, request=f"GET {target} HTTP/1.1").encode())
    found = made.take()
    assert found.robots == {}
    (loads,) = found.loads[1][DAY].values()
    assert loads == {"/reset/…": 1, "/view?t=2": 1}
    made.use_websites({"example.com": FollowedWebsite(1, evolve(settings, bots=None))})
    made.count(line(agent=GPTBOT, request="GET http://example.com/reset/a%2Fb HTTP/1.1").encode())
    assert made.take().robots == {1: {DAY: {"GPTBot": {"/reset/…": 1}}}}
    made.count(line(agent=GPTBOT, request="GET /reset/secret HTTP/1.1").encode())
    assert made.take().robots == {1: {DAY: {"GPTBot": {"/reset/…": 1}}}}


def views(
    content: str, website: FollowedWebsite | None = None, key: bytes = b"key"
) -> list[LoggedView]:
    made = counter()
    made.visitor_key = key
    made.use_websites({"example.com": website or FollowedWebsite(1)})
    made.count(content.encode())
    found = made.take()
    assert found.loads == {}
    assert made.take() == LogCounts(robots={}, loads={})
    return list(found.views)


SAMPLES = (
    line(request="GET /a/?utm_source=x&utm_campaign=y HTTP/1.1", referrer="https://www.x.example/p?q"),
    line(status=304, referrer="http://www.example.com/b"),
    line(agent=FIREFOX.replace("128", "129"), referrer="not a URL"),
    line(referrer="https://spam.example/"),
    line(address="203.0.113.9"),
    line(request="POST /a HTTP/1.1"), line(request="GET /logo.png HTTP/1.1"), line(status=500),
    line(agent=GPTBOT), line() + line(agent="-"),
    f"www.example.com:443 {line()}", f"elsewhere.example:443 {line()}",
    caddy(), caddy(type="image/png"), nginx(), nginx(http_user_agent=GPTBOT),
)  # fmt: skip
TEXTS = [name for name in LoggedView.__struct_fields__ if hasattr(ViewRow, name)]


@pytest.mark.parametrize("content", SAMPLES)
def test_a_line_is_a_view_as_in_an_import(tmp_path: Path, content: str) -> None:
    found = [[getattr(view, name) for name in TEXTS] for view in views(content)]
    imported = [
        [getattr(row, name) for name in TEXTS]
        for row in read(tmp_path, content)
        if isinstance(row, ViewRow)
    ]
    assert found == imported


def test_the_samples_have_views_and_others() -> None:
    assert len(views("".join(SAMPLES))) == 7
    assert {"time_ms", "path", "referrer", "host", "browser", "locale", "utm_source"} < {*TEXTS}


def test_robots_are_counted_beside_people() -> None:
    made = counter()
    made.visitor_key = b"key"
    made.count((line() + line(agent=GPTBOT) * 2).encode())
    found = made.take()
    assert (len(found.views), found.robots) == (1, {1: {DAY: {"GPTBot": {"/a": 2}}}})


def test_a_visitor_is_an_address_with_a_user_agent_and_neither_is_kept() -> None:
    other = FIREFOX.replace("128", "129")
    lines = line() + line(request="GET /b HTTP/1.1") + line(agent=other)
    lines += line(address="192.0.2.77") + line(address="2001:db8::1") + line(address="-")
    found = views(lines)
    visitors = [view.visitor for view in found]
    assert len({*visitors}) == 5
    assert visitors[0] == visitors[1]
    networks = [view.network for view in found]
    assert networks[0] == networks[3] != networks[4]
    assert networks[5] == b""
    again = views(lines, key=b"another")
    assert not {*visitors} & {view.visitor for view in again}
    assert not {*networks[:5]} & {view.network for view in again}
    assert "192.0" not in str(found)
    assert b"\xc0\x00\x02" not in b"".join(networks)


def test_views_obey_the_settings_of_their_website() -> None:
    settings = WebsiteSettings(
        blocked_networks=("198.51.100.0/24",),
        excluded_paths=("/admin",),
        redacted_paths=("/reset/*",),
        redact_emails=True,
        kept_parameters=("t",),
    )
    lines = line(request="GET /reset/secret?t=3 HTTP/1.1", referrer="https://example.com/reset/x")
    lines += line(request="GET /admin HTTP/1.1") + line(address="198.51.100.1")
    lines += line(referrer="https://x.example/ada@example.org")
    found = views(lines, FollowedWebsite(1, settings))
    assert [(view.path, view.referrer, view.from_page) for view in found] == [
        ("/reset/…?t=3", "", "/reset/…"),
        ("/a", "x.example/…", None),
    ]


def test_pages_of_other_websites_here_are_redacted_as_their_own() -> None:
    made = counter()
    made.visitor_key = b"key"
    other = FollowedWebsite(2, WebsiteSettings(redacted_paths=("/reset/*",)))
    made.use_websites({"example.com": FollowedWebsite(1), "other.example": other})
    made.count(line(referrer="https://www.other.example/reset/kQ2%2FpX9s").encode())
    made.count(line(referrer="https://a.example/reset/b").encode())
    assert [view.referrer for view in made.take().views] == [
        "other.example/reset/…",
        "a.example/reset/b",
    ]


def test_views_of_the_far_future_do_not_count() -> None:
    assert views(line(time="31/Jan/2027:23:30:00 +0000")) == []
