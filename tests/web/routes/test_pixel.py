import struct
from ipaddress import ip_network
from urllib.parse import quote

import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Answer, Browser, Connection, encoded
from support.web.daemon_in_memory import Server

from medamad.domain.errors import Unavailable
from medamad.ingest.networks import Networks

PIXEL = "/api/event/pixel.gif"
PAGE = {"Referer": "https://example.com/a?utm_source=News"}
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

pytestmark = pytest.mark.usefixtures("website")


def image(answer: Answer) -> None:
    """Check that a response is an image of one transparent pixel, whose date the browser keeps.

    If the view was ignored, it keeps nothing.
    """
    assert answer.status == 200
    assert answer.header("Content-Type") == "image/gif"
    assert len(answer.body) == 43
    assert answer.body[:6] == b"GIF89a"
    assert struct.unpack("<HH", answer.body[6:10]) == (1, 1)
    is_kept = answer.header("X-Medamad-Ignored") is None
    kept, not_kept = "private, no-cache, max-age=86400", "private, no-store"
    assert answer.header("Cache-Control") == (kept if is_kept else not_kept)
    assert (answer.header("Last-Modified") is not None) == is_kept
    assert answer.header("Vary") == "Origin"
    assert answer.header("Cross-Origin-Resource-Policy") == "cross-origin"
    assert answer.header("Access-Control-Allow-Origin") == "*"
    assert answer.header("Set-Cookie") is None


async def figures(server: Server, statistic: str) -> object:
    owner = await server.owner()
    return (await owner.ask("GET", f"/website/example.com/{statistic}")).json


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest_twisted.ensureDeferred
async def test_a_view_is_stored_before_the_response(
    server: Server, visitor: Browser, prefix: str
) -> None:
    headers = {**PAGE, "User-Agent": FIREFOX, "Accept-Language": "de-AT"}
    image(await visitor.ask("GET", f"{prefix}/event/pixel.gif", headers=headers))
    (page,) = await figures(server, "pages")
    assert (page["path"], page["visitors"], page["pageviews"]) == ("/a", 1, 1)
    for statistic, name, value in (
        ("sources", "source", "News"),
        ("browsers", "browser", "Firefox"),
        ("languages", "language", "German"),
        ("countries", "country", "Unknown"),
        ("referrers", "referrer", ""),
    ):
        (row,) = await figures(server, statistic)
        assert row[name] == value


@pytest_twisted.ensureDeferred
async def test_if_modified_since_says_whether_the_visitor_was_here_today(
    server: Server, visitor: Browser
) -> None:
    since: dict[str, str] = {}
    for second, path in enumerate(["/a", "/b", "/a"]):
        headers = {"Referer": f"https://example.com{path}", **since}
        answer = await visitor.ask("GET", PIXEL, headers=headers)
        image(answer)
        assert answer.header("Last-Modified") == f"Sun, 15 Jun 2025 00:00:0{second} GMT"
        since = {"If-Modified-Since": answer.header("Last-Modified") or ""}
    summary = (await figures(server, "summary"))["current"]
    assert (summary["visitors"], summary["pageviews"]) == (1, 3)
    rows = {
        row["path"]: (row["visitors"], row["pageviews"]) for row in await figures(server, "pages")
    }
    assert rows == {"/a": (1, 2), "/b": (0, 1)}
    yesterday = {"If-Modified-Since": "Sat, 14 Jun 2025 00:00:09 GMT"}
    image(await visitor.ask("GET", PIXEL, headers=PAGE | yesterday))
    assert (await figures(server, "summary"))["current"]["visitors"] == 2


@pytest_twisted.ensureDeferred
async def test_page_and_referrer_may_be_named(server: Server, visitor: Browser) -> None:
    url, referrer = (
        quote("https://example.com/b c?x=1", ""),
        quote("https://www.news.example/1", ""),
    )
    target = f"{PIXEL}?u={url}&r={referrer}"
    image(await visitor.ask("GET", target, headers={"Referer": "https://www.example.com/"}))
    (page,) = await figures(server, "pages")
    assert page["path"] == "/b c"
    (row,) = await figures(server, "referrers?grouped=false")
    assert row["referrer"] == "news.example/1"


@pytest.mark.parametrize(
    ("headers", "ignored"),
    [
        ({}, "origin"),
        ({"Referer": ""}, "origin"),
        ({"Origin": "null"}, "origin"),
        ({"Referer": "about:blank"}, "origin"),
        ({"Referer": "https://evil.example/", "Origin": "null"}, "origin"),
        ({"Referer": "https://example.com/", "Origin": "null"}, None),
        ({"Origin": "https://example.com"}, None),
        ({"Referer": "https://www.example.com./x?y"}, None),
        ({"Referer": "https://shop.example.com:8443/x"}, None),
        ({"Referer": "https://evil.example/"}, "origin"),
        ({"Referer": "https://evil.example"}, "origin"),
        ({"Referer": "https://evil.example/https://example.com/"}, "origin"),
        ({"Referer": "https://example.com/", "Origin": "https://evil.example"}, "origin"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_page_reports_only_for_its_own_website(
    server: Server, visitor: Browser, headers: dict[str, str], ignored: str | None
) -> None:
    target = f"{PIXEL}?u=https://example.com/"
    answer = await visitor.ask("GET", target, headers=headers)
    image(answer)
    assert answer.header("X-Medamad-Ignored") == ignored
    summary = (await figures(server, "summary"))["current"]
    assert summary["pageviews"] == (ignored is None)
    server.pipeline.rules = evolve(server.pipeline.rules, origins="any")
    answer = await visitor.ask("GET", target, headers=headers)
    assert answer.header("X-Medamad-Ignored") is None


@pytest.mark.parametrize(
    ("target", "headers", "message"),
    [
        (PIXEL, {}, "u: expected the URL of the page, since there is no Referer"),
        (PIXEL, {"Referer": ""}, "u: expected the URL of the page, since there is no Referer"),
        (
            PIXEL,
            {"Referer": "about:blank"},
            "u: expected the URL of the page, since there is no Referer",
        ),
        (PIXEL, {"Referer": "https://["}, "u: expected an http or https URL"),
        (f"{PIXEL}?u=", PAGE, "u: expected an http or https URL"),
        (f"{PIXEL}?u=%zz", PAGE, "u: an invalid percent-escape"),
        (f"{PIXEL}?u=https://example.com/%00", PAGE, "u: expected text without NUL"),
        (f"{PIXEL}?r=%ff", PAGE, "r: not valid UTF-8"),
        (PIXEL, PAGE | {"If-Modified-Since": "x"}, "If-Modified-Since: expected an HTTP date"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_malformed_parameters_are_400(
    server: Server, visitor: Browser, target: str, headers: dict[str, str], message: str
) -> None:
    answer = await visitor.ask("GET", target, headers=headers)
    assert (answer.status, answer.error) == (400, message)
    assert answer.header("Access-Control-Allow-Origin") == "*"
    assert (await figures(server, "summary"))["current"]["pageviews"] == 0


@pytest_twisted.ensureDeferred
async def test_a_page_of_an_unknown_website_is_404(visitor: Browser) -> None:
    answer = await visitor.ask("GET", PIXEL, headers={"Referer": "https://x.example/"})
    assert (answer.status, answer.error) == (404, "u: no website is registered for x.example")


@pytest_twisted.ensureDeferred
async def test_an_ignored_view_gets_an_image_and_a_reason(server: Server, visitor: Browser) -> None:
    rules = server.pipeline.rules
    server.pipeline.rules = evolve(
        rules,
        respect_gpc=True,
        blocked=Networks([ip_network("198.51.100.0/25")]),
        hosting=Networks([ip_network("198.51.100.128/25")]),
        hosting_rule="ignore",
    )
    blocked, hosting = server.browser("198.51.100.7"), server.browser("198.51.100.207")
    for browser, further, target, reason in (
        (visitor, {"User-Agent": "Googlebot/2.1"}, PIXEL, "bot"),
        (visitor, {"Sec-GPC": "1"}, PIXEL, "gpc"),
        (visitor, {}, f"{PIXEL}?r=https://spam.example/", "spam"),
        (blocked, {}, PIXEL, "blocked"),
        (hosting, {}, PIXEL, "hosting"),
    ):
        answer = await browser.ask("GET", target, headers=PAGE | further)
        image(answer)
        assert answer.header("X-Medamad-Ignored") == reason
    rows = await figures(server, "ignored")
    assert {row["reason"] for row in rows} == {"bot", "gpc", "spam", "blocked", "hosting"}
    assert (await figures(server, "summary"))["current"]["pageviews"] == 0


@pytest_twisted.ensureDeferred
async def test_the_browser_keeps_nothing_where_visitors_are_not_counted(
    server: Server, visitor: Browser
) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, has_visitors=False)
    for _ in range(2):
        answer = await visitor.ask("GET", PIXEL, headers=PAGE)
        assert answer.header("Cache-Control") == "private, no-store"
        assert (answer.header("Last-Modified"), answer.header("ETag")) == (None, None)
    current = (await figures(server, "summary"))["current"]
    assert (current["visitors"], current["pageviews"]) == (0, 2)


@pytest_twisted.ensureDeferred
async def test_a_view_that_cannot_be_stored_is_503(server: Server, visitor: Browser) -> None:
    async def full(_hits: object) -> list[object]:
        raise Unavailable("the disk is full", retry_after=30)

    server.append = full
    answer = await visitor.ask("GET", PIXEL, headers=PAGE)
    assert (answer.status, answer.error) == (503, "the disk is full")


@pytest_twisted.ensureDeferred
async def test_head_counts_nothing(server: Server, visitor: Browser) -> None:
    answer = await visitor.ask("HEAD", PIXEL, headers=PAGE)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.header("Content-Length") == "43"
    assert (await figures(server, "summary"))["current"]["pageviews"] == 0


@pytest_twisted.ensureDeferred
async def test_the_pixel_follows_the_configured_path(server: Server, visitor: Browser) -> None:
    server.set(event_name="pulse")
    image(await visitor.ask("GET", "/pulse/pixel.gif", headers=PAGE))
    image(await visitor.ask("GET", "/api/pulse/pixel.gif", headers=PAGE))
    assert (await figures(server, "summary"))["current"]["pageviews"] == 2


@pytest_twisted.ensureDeferred
async def test_the_pixel_knows_when_the_visitor_was_here_last_if_configured(
    server: Server, visitor: Browser
) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, has_returning=True)
    for date, ago in (
        ("Fri, 30 May 2025 00:00:00 GMT", 16),
        ("Fri, 13 Jun 2025 00:00:02 GMT", 2),
        (None, 0),
    ):
        since = {} if date is None else {"If-Modified-Since": date}
        answer = await visitor.ask("GET", PIXEL, headers={**PAGE, **since})
        assert answer.status == 200
        lifetime = (365 - ago) * 86_400
        assert answer.header("Cache-Control") == f"private, no-cache, max-age={lifetime}"
        assert answer.header("Last-Modified") == "Sun, 15 Jun 2025 00:00:00 GMT"
    # Of a week from 9 June: one was here on its Friday, one in May, and one never.
    week = "start=2025-06-09T00:00:00Z&end=2025-06-15T23:59:59Z"
    current = (await figures(server, f"summary?{week}&visits=true"))["current"]
    names = ("visitors", "new_visitors", "returning_visitors", "week_visitors")
    assert [current[name] for name in names] == [3, 1, 2, 2]


@pytest.mark.parametrize("path", [PIXEL, PIXEL.replace(".", "%2E")])
@pytest_twisted.ensureDeferred
async def test_a_view_is_stored_although_its_client_disconnects(server: Server, path: str) -> None:
    """The router takes the second path, and cancels what nobody waits for."""
    connection = Connection(server.site)
    connection.push(encoded("GET", path, {**PAGE, "User-Agent": FIREFOX}))
    connection.close()
    await server.pipeline.queue.drained()
    assert connection.wire.value() == b""
    (page,) = await figures(server, "pages")
    assert page["pageviews"] == 1
