from datetime import UTC, datetime
from ipaddress import ip_network
from zoneinfo import ZoneInfo

import msgspec
import pytest
import pytest_twisted
from attrs import evolve
from support.log_failures import LoggedFailures
from support.storage.log_lines import logged_warnings
from support.web.client import Answer, Browser
from support.web.daemon_in_memory import NOW, Server
from twisted.internet.defer import Deferred

from medamad.domain.dimensions import Dimension
from medamad.domain.errors import Unavailable
from medamad.domain.zones import day_at, offset_at
from medamad.ingest.networks import Networks
from medamad.ingest.write_queue import QueueSettings
from medamad.storage.settings import NEW_VALUES

HIT, PING = "/event/hit", "/event/ping"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
MIDNIGHT = "Sun, 15 Jun 2025 00:00:00 GMT"
TODAY = 20_254
"""The day of NOW, counted from 1970-01-01."""


def load(**fields: object) -> dict[str, object]:
    return {"e": "load", "b": "b1", "u": "https://example.com/a", "p": True, "q": True} | fields


def open_to_all(answer: Answer) -> bool:
    return (
        answer.header("Access-Control-Allow-Origin") == "*"
        and answer.header("Access-Control-Allow-Credentials") is None
        and answer.header("Set-Cookie") is None
    )


@pytest.mark.parametrize(
    "target", ["/event/hit", "/api/event/hit", "/event/h%69t", "/event/hit?x=1"]
)
@pytest.mark.parametrize("content_type", ["text/plain;charset=UTF-8", "application/json", None])
@pytest_twisted.ensureDeferred
async def test_a_load_is_stored(
    server: Server, visitor: Browser, website: str, target: str, content_type: str | None
) -> None:
    headers = {"User-Agent": FIREFOX, "Accept-Language": "de-AT,de;q=0.8"}
    if content_type:
        headers["Content-Type"] = content_type
    body = msgspec.json.encode(load())
    answer = await visitor.ask("POST", target, body=body, headers=headers)
    assert answer.status == 204
    assert answer.body == b""
    assert answer.header("X-Medamad-Ignored") is None
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert open_to_all(answer)
    found = server.store.websites.by_hostname(website)
    assert found is not None
    assert server.store.visitors_last_day(found, NOW * 1000) == 1


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_the_headers_are_stored(owner: Browser) -> None:
    headers = {"User-Agent": FIREFOX, "Accept-Language": "de-AT,de;q=0.8"}
    await owner.ask("POST", HIT, load(), headers=headers)
    for statistic, row in [
        ("browsers", {"browser": "Firefox"}),
        ("os", {"os": "Linux"}),
        ("devices", {"device": "Desktop"}),
        ("languages", {"language": "German"}),
    ]:
        answer = await owner.ask("GET", f"/website/example.com/{statistic}?summary=true")
        assert answer.json == [row | {"visitors": 1, "visitors_percentage": 1.0}]


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_view_has_a_duration_and_events(owner: Browser) -> None:
    for body in (
        load(),
        {"e": "unload", "b": "b1", "m": 4200},
        {"e": "custom", "b": "b1", "g": "example.com", "d": {"signup": True}},
    ):
        assert (await owner.ask("POST", HIT, body)).status == 204
    answer = await owner.ask("GET", "/website/example.com/summary")
    assert answer.json == {
        "current": {"visitors": 1, "pageviews": 1, "bounce_percentage": 1.0, "duration": 4200}
    }
    answer = await owner.ask("GET", "/website/example.com/properties")
    assert answer.json == [{"name": "signup", "events": 1, "events_percentage": 1.0}]


@pytest.mark.parametrize(
    ("fields", "headers", "reason"),
    [
        ({}, {"User-Agent": "Mozilla/5.0 (compatible; Googlebot/2.1)"}, "bot"),
        ({"r": "https://www.spam.example/x"}, {}, "spam"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_an_ignored_hit_says_why(
    owner: Browser, website: str, fields: dict[str, object], headers: dict[str, str], reason: str
) -> None:
    answer = await owner.ask("POST", HIT, load(**fields), headers=headers)
    assert answer.status == 204
    assert answer.header("X-Medamad-Ignored") == reason
    assert "X-Medamad-Ignored" in (answer.header("Access-Control-Expose-Headers") or "")
    assert open_to_all(answer)
    answer = await owner.ask("GET", f"/website/{website}/ignored")
    assert answer.json == [{"reason": reason, "hits": 1, "last": NOW}]
    assert (await owner.ask("GET", f"/website/{website}/pages")).json == []


@pytest.mark.parametrize("respected", [True, False])
@pytest.mark.parametrize(
    ("header", "value", "objects"),
    [("Sec-GPC", "1", True), ("sec-gpc", "1", True), ("Sec-GPC", "0", False), ("DNT", "1", False)],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_global_privacy_control_is_respected_if_configured(
    server: Server, visitor: Browser, header: str, value: str, *, objects: bool, respected: bool
) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, respect_gpc=respected)
    for target in (HIT, "/event/h%69t"):
        answer = await visitor.ask("POST", target, load(), headers={header: value})
        assert answer.status == 204
        expected = "gpc" if objects and respected else None
        assert answer.header("X-Medamad-Ignored") == expected


@pytest.mark.parametrize("target", [HIT, "/event/h%69t"])
@pytest_twisted.ensureDeferred
async def test_a_page_of_another_website_cannot_report(
    server: Server, visitor: Browser, website: str, target: str
) -> None:
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    answer = await visitor.ask("POST", target, load(), headers=foreign)
    assert (answer.status, answer.header("X-Medamad-Ignored")) == (204, "origin")
    assert open_to_all(answer)
    server.pipeline.rules = evolve(server.pipeline.rules, origins="any")
    answer = await visitor.ask("POST", target, load(), headers=foreign)
    assert (answer.status, answer.header("X-Medamad-Ignored")) == (204, None)
    found = server.store.websites.by_hostname(website)
    assert found is not None
    assert server.store.visitors_last_day(found, NOW * 1000) == 1


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_blocked_address_is_ignored(server: Server) -> None:
    answer = await server.browser("192.0.2.77").ask("POST", HIT, load())
    assert answer.header("X-Medamad-Ignored") == "blocked"
    behind = {"X-Forwarded-For": "192.0.2.77"}
    answer = await server.browser("10.0.0.1").ask("POST", HIT, load(), headers=behind)
    assert answer.header("X-Medamad-Ignored") is None
    server.set(trusted_proxies=Networks([ip_network("10.0.0.0/8")]))
    answer = await server.browser("10.0.0.1").ask("POST", HIT, load(b="b2"), headers=behind)
    assert answer.header("X-Medamad-Ignored") == "blocked"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", ""),
        (b"{", ""),
        (b"[]", ""),
        (b"[" * 10_000, ""),
        (b'{"e":"load","b":"\xff"}', ""),
        (b'{"e":"load","b":"\\ud800","u":"http://example.com","p":true,"q":true}', ""),
        (b'{"e":"other"}', "e"),
        (b"{}", "e"),
        (msgspec.json.encode(load(b="")), "b"),
        (msgspec.json.encode(load(b="x" * 65)), "b"),
        (msgspec.json.encode(load(u="ftp://example.com/")), "u"),
        (msgspec.json.encode(load(u=1)), "u"),
        (msgspec.json.encode(load(p="yes")), "p"),
        (msgspec.json.encode(load(d={"a": None})), "d"),
        (b'{"e":"unload","b":"b1","m":0}', "m"),
        (b'{"e":"unload","b":"b1","m":1e400}', ""),
        (b'{"e":"custom","g":"example.com","d":{}}', "d"),
        (b'{"e":"custom","g":"' + b"a" * 254 + b'","d":{"a":1}}', "g"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_malformed_hit_is_400(visitor: Browser, body: bytes, field: str) -> None:
    answer = await visitor.ask("POST", HIT, body=body)
    assert answer.status == 400
    assert answer.error.startswith(field)
    assert open_to_all(answer)


@pytest.mark.parametrize(
    "body", [load(u="https://other.example/"), {"e": "custom", "g": "other.example", "d": {"a": 1}}]
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_hit_for_an_unknown_website_is_404(
    visitor: Browser, body: dict[str, object]
) -> None:
    answer = await visitor.ask("POST", HIT, body)
    assert answer.status == 404
    assert "other.example" in answer.error
    assert open_to_all(answer)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_too_many_hits_from_a_network_are_429(server: Server, visitor: Browser) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, hits_per_minute=1)
    assert (await visitor.ask("POST", HIT, load())).status == 204
    answer = await visitor.ask("POST", HIT, load(b="b2"))
    assert answer.status == 429
    assert answer.error
    assert answer.header("Retry-After") == "60"
    assert open_to_all(answer)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_long_request_takes_several_places_in_the_queue(
    server: Server, visitor: Browser
) -> None:
    server.pipeline.queue.settings = QueueSettings(max_waiting=2)
    long = "x" * 2_000
    for body, headers in (
        (load(u=f"https://example.com/?{long}"), {}),
        (load(), {"Cookie": f"a={long}"}),
    ):
        short = Deferred.fromCoroutine(visitor.ask("POST", HIT, load()))
        answer = await visitor.ask("POST", HIT, body, headers=headers)
        assert (answer.status, answer.error) == (503, "too many hits wait to be stored")
        assert answer.header("Retry-After") == "1"
        assert open_to_all(answer)
        assert (await short).status == 204


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_hit_that_cannot_be_stored_is_503(server: Server, visitor: Browser) -> None:
    async def full(_hits: object) -> list[object]:
        raise Unavailable("the disk is full", retry_after=30)

    server.append = full
    answer = await visitor.ask("POST", HIT, load())
    assert (answer.status, answer.error) == (503, "the disk is full")
    assert answer.header("Retry-After") == "30"


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_an_internal_error_is_500_and_logged(
    server: Server, visitor: Browser, logged_failures: LoggedFailures
) -> None:
    async def broken(_hits: object) -> list[object]:
        raise ZeroDivisionError("secret")

    server.append = broken
    answer = await visitor.ask("POST", HIT, load())
    assert answer.status == 500
    assert answer.error == "an internal error; see the server's log"
    assert len(logged_failures.take(ZeroDivisionError)) == 1


@pytest_twisted.ensureDeferred
async def test_hits_are_accepted_in_demo_mode_and_from_any_origin(
    server: Server, visitor: Browser, website: str
) -> None:
    server.set(demo=True)
    headers = {"Origin": f"https://{website}", "Sec-Fetch-Site": "cross-site"}
    assert (await visitor.ask("POST", HIT, load(), headers=headers)).status == 204


@pytest.mark.parametrize("target", ["/event/ping", "/api/event/ping?u=example.com%2Fa"])
@pytest_twisted.ensureDeferred
async def test_a_ping_is_unique_once_a_day(visitor: Browser, target: str) -> None:
    answer = await visitor.ask("GET", target)
    assert answer.status == 200
    assert answer.body == b"0"
    assert answer.header("Content-Type") == "text/plain; charset=utf-8"
    assert answer.header("Last-Modified") == MIDNIGHT
    assert answer.header("Cache-Control") == "private, no-cache, max-age=86400"
    assert open_to_all(answer)
    for second in range(1, 4):
        since = {"If-Modified-Since": answer.header("Last-Modified") or ""}
        answer = await visitor.ask("GET", target, headers=since)
        assert (answer.status, answer.body) == (200, b"1")
        assert answer.header("Last-Modified") == f"Sun, 15 Jun 2025 00:00:0{second} GMT"


@pytest.mark.parametrize("target", ["/event/ping?n=a.test/100%", "/api/event/ping?n=a.test/a&b"])
@pytest_twisted.ensureDeferred
async def test_a_ping_returns_the_number_of_earlier_views(visitor: Browser, target: str) -> None:
    headers: dict[str, str] = {}
    for before in (b"0", b"1", b"2"):
        answer = await visitor.ask("GET", target, headers=headers)
        assert (answer.status, answer.body) == (200, before)
        headers = {"If-Modified-Since": answer.header("Last-Modified") or ""}
    headers = {"If-Modified-Since": "Sun, 15 Jun 2025 23:59:59 GMT"}
    assert (await visitor.ask("GET", target, headers=headers)).body == b"3600"


@pytest.mark.parametrize("target", ["/event/ping?v=a.test/100%", "/api/event/ping?v=a.test/a&b"])
@pytest.mark.parametrize(
    ("is_on", "since", "lifetime"),
    [(True, ("new", "day", "day", "month"), 31_536_000), (False, (None,) * 4, 86_400)],
)
@pytest_twisted.ensureDeferred
async def test_a_ping_also_returns_when_the_visitor_was_here_last_if_configured(
    server: Server,
    visitor: Browser,
    target: str,
    since: tuple[str | None, ...],
    lifetime: int,
    *,
    is_on: bool,
) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, has_returning=is_on)
    headers: dict[str, str] = {}
    for before, last in zip((0, 1, 2, 0), since, strict=True):
        answer = await visitor.ask("GET", target, headers=headers)
        assert answer.json == {"n": before} | ({"since": last} if last else {})
        assert answer.header("Content-Type") == "application/json"
        assert answer.header("Cache-Control") == f"private, no-cache, max-age={lifetime}"
        assert open_to_all(answer)
        headers = {"If-Modified-Since": answer.header("Last-Modified") or ""}
        first_day = TODAY if answer.json["n"] or last == "new" else 20_200
        assert answer.header("ETag") == (f'W/"{first_day}"' if is_on else None)
        headers["If-None-Match"] = answer.header("ETag") or ""
        if before == 2:
            headers["If-Modified-Since"] = "Fri, 30 May 2025 00:00:07 GMT"
            headers["If-None-Match"] = 'W/"20200"'
            lifetime -= (TODAY - 20_200) * 86_400 if is_on else 0
    assert answer.header("Last-Modified") == MIDNIGHT


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest_twisted.ensureDeferred
async def test_the_address_of_a_ping_has_the_day(visitor: Browser, prefix: str) -> None:
    target = f"{prefix}{PING}?d={TODAY}&n=a.test/100%&n=2"
    headers: dict[str, str] = {}
    for before in (b"0", b"1", b"2"):
        answer = await visitor.ask("GET", target, headers=headers)
        assert (answer.status, answer.body) == (200, before)
        assert answer.header("Cache-Control") == "private, no-cache, max-age=86400"
        headers = {"If-Modified-Since": answer.header("Last-Modified") or ""}


@pytest.mark.parametrize("day", [TODAY - 365, TODAY - 1, TODAY + 1, 0, 999_999])
@pytest.mark.parametrize("since", [None, "Sun, 15 Jun 2025 00:00:03 GMT"])
@pytest_twisted.ensureDeferred
async def test_a_ping_of_another_day_says_which_it_is_and_leaves_nothing(
    visitor: Browser, day: int, since: str | None
) -> None:
    headers = {} if since is None else {"If-Modified-Since": since}
    answer = await visitor.ask("GET", f"{PING}?d={day}&n=a.test/", headers=headers)
    assert (answer.status, answer.json) == (200, {"d": TODAY})
    assert leaves_nothing(answer)
    assert open_to_all(answer)


def leaves_nothing(answer: Answer) -> bool:
    """Return whether a browser keeps nothing of a response."""
    return (
        answer.header("Cache-Control") == "private, no-store"
        and answer.header("Last-Modified") is None
        and answer.header("ETag") is None
    )


@pytest_twisted.ensureDeferred
async def test_the_day_of_a_ping_is_that_of_the_configured_zone(
    server: Server, visitor: Browser
) -> None:
    """It is noon in UTC."""
    for zone, today in (("Pacific/Kiritimati", TODAY + 1), ("Pacific/Pago_Pago", TODAY)):
        server.pipeline.rules = evolve(server.pipeline.rules, zone=ZoneInfo(zone))
        answer = await visitor.ask("GET", f"{PING}?d={today}&n=a.test/")
        assert answer.body == b"0"
        answer = await visitor.ask("GET", f"{PING}?d={today - 1}&n=a.test/")
        assert answer.json == {"d": today}


async def _count(visitor: Browser, kept: dict[int, str], day: int) -> int:
    """Return what a tracker is told, whose browser keeps dates by the day of their address."""
    since = {"If-Modified-Since": kept[day]} if day in kept else {}
    answer = await visitor.ask("GET", f"{PING}?d={day}&n=a.test", headers=since)
    if answer.header("Last-Modified") is None:
        kept.pop(day, None)
        return await _count(visitor, kept, answer.json["d"])
    kept[day] = answer.header("Last-Modified") or ""
    return int(answer.body)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns"])
@pytest.mark.parametrize("hours_wrong", [-50, -24, -1, 0, 1, 5, 24, 700])
@pytest_twisted.ensureDeferred
async def test_every_day_has_one_first_view_by_any_clock(
    server: Server, visitor: Browser, zone: str, hours_wrong: int
) -> None:
    """Also on the day on which clocks are put back, and by a script from before."""
    server.pipeline.rules = evolve(server.pipeline.rules, zone=ZoneInfo(zone))
    begin = datetime(2025, 10, 25, 12, tzinfo=UTC).timestamp()
    offset_s = offset_at(ZoneInfo(zone), int(begin))
    kept: dict[int, str] = {}
    first_views = []
    for hour in range(72):
        server.now = begin + hour * 3_600
        guess = int((server.now + hours_wrong * 3_600 + offset_s) // 86_400)
        count = await _count(visitor, kept, guess)
        if count == 0:
            first_views.append(day_at(ZoneInfo(zone), int(server.now)))
    assert first_views == [20_386, 20_387, 20_388, 20_389]


@pytest.mark.parametrize("day", ["", "x", "-1", "1.5", "1234567", "%31"])
@pytest_twisted.ensureDeferred
async def test_a_malformed_day_is_rejected(visitor: Browser, day: str) -> None:
    answer = await visitor.ask("GET", f"{PING}?d={day}&n=a.test/")
    message = "d: expected a number of days since 1970-01-01"
    assert (answer.status, answer.error) == (400, message)


QUERIES = (f"d={TODAY}&n=shop.test/a", "n=shop.test/a", "v=shop.test", "u=shop.test%2Fa")


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    ("headers", "is_own"),
    [
        ({}, True),
        ({"Origin": "https://shop.test"}, True),
        ({"Origin": "https://SHOP.test", "Sec-Fetch-Site": "cross-site"}, True),
        ({"Referer": "https://shop.test/b?c#d"}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Origin": "https://www.shop.test"}, False),
        ({"Origin": "https://shop.test:8443"}, False),
        ({"Origin": "https://shop.test.evil.test"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "https://evil.test", "Referer": "https://shop.test/"}, False),
        ({"Referer": "https://evil.test/?https://shop.test/"}, False),
        ({"Referer": "https://evil.test/https://shop.test/"}, False),
        # An image on a page that sends no Referer, and an address that somebody opens.
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "none"}, False),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_page_learns_nothing_of_another_host(
    server: Server, visitor: Browser, query: str, headers: dict[str, str], *, is_own: bool
) -> None:
    """Pages of one site share the browser's cache."""
    server.pipeline.rules = evolve(server.pipeline.rules, has_returning=True)
    seen = {"If-Modified-Since": "Sun, 15 Jun 2025 00:00:03 GMT", **headers}
    answer = await visitor.ask("GET", f"{PING}?{query}", headers=seen)
    is_json, found = query.startswith("v"), msgspec.json.decode(answer.body)
    if is_own:
        count = 1 if query[0] == "u" else 4
        assert found == ({"n": 4, "since": "day"} if is_json else count)
        assert answer.header("Last-Modified") == "Sun, 15 Jun 2025 00:00:04 GMT"
    else:
        assert found == ({"n": 0} if is_json else 0)
        assert leaves_nothing(answer)
    # Or it could read the browser's entry without a request.
    assert "Origin" in (answer.header("Vary") or "")


@pytest.mark.parametrize("query", [*QUERIES, "", "root"])
@pytest_twisted.ensureDeferred
async def test_a_browser_that_objects_is_given_no_date(
    server: Server, visitor: Browser, query: str
) -> None:
    headers = {"Sec-GPC": "1", "If-Modified-Since": "Sun, 15 Jun 2025 00:00:03 GMT"}
    answer = await visitor.ask("GET", f"{PING}?{query}", headers=headers)
    assert answer.header("Last-Modified") == "Sun, 15 Jun 2025 00:00:04 GMT"
    server.pipeline.rules = evolve(server.pipeline.rules, respect_gpc=True, has_returning=True)
    answer = await visitor.ask("GET", f"{PING}?{query}", headers=headers)
    assert answer.status == 200
    assert answer.body == (b'{"n":0}' if query[:1] == "v" else b"0")
    assert leaves_nothing(answer)


@pytest.mark.parametrize("query", [*QUERIES, "", "root"])
@pytest_twisted.ensureDeferred
async def test_no_browser_is_given_a_date_where_visitors_are_not_counted(
    server: Server, visitor: Browser, query: str
) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, has_visitors=False)
    headers = {"If-Modified-Since": "Sun, 15 Jun 2025 00:00:03 GMT", "If-None-Match": 'W/"20254"'}
    answer = await visitor.ask("GET", f"{PING}?{query}", headers=headers)
    assert answer.status == 200
    assert answer.body == (b'{"n":0}' if query[:1] == "v" else b"0")
    assert leaves_nothing(answer)


@pytest.mark.parametrize("query", ["n=x", "u=x"])
@pytest_twisted.ensureDeferred
async def test_other_pings_are_remembered_for_a_day(
    server: Server, visitor: Browser, query: str
) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, has_returning=True)
    answer = await visitor.ask("GET", f"{PING}?{query}")
    assert (answer.body, answer.header("Content-Type")) == (b"0", "text/plain; charset=utf-8")
    assert answer.header("Cache-Control") == "private, no-cache, max-age=86400"


@pytest.mark.parametrize("query", ["n=a.test/%00", "n=x&u=a%00b", "v=a.test/%00"])
@pytest_twisted.ensureDeferred
async def test_a_ping_without_a_page_is_rejected(visitor: Browser, query: str) -> None:
    answer = await visitor.ask("GET", f"/event/ping?{query}")
    assert (answer.status, answer.error) == (400, f"{query[0]}: expected text without NUL")


@pytest.mark.usefixtures("website")
@pytest.mark.parametrize("path", ["//event/", "/api//event/"])
@pytest_twisted.ensureDeferred
async def test_events_may_be_sent_with_a_double_slash(visitor: Browser, path: str) -> None:
    assert (await visitor.ask("GET", f"{path}ping")).body == b"0"
    assert (await visitor.ask("POST", f"{path}hit", load())).status == 204


@pytest_twisted.ensureDeferred
async def test_a_ping_dated_yesterday_is_unique_again(visitor: Browser) -> None:
    since = {"If-Modified-Since": "Sat, 14 Jun 2025 00:00:07 GMT"}
    answer = await visitor.ask("GET", PING, headers=since)
    assert (answer.status, answer.body) == (200, b"0")
    assert answer.header("Last-Modified") == MIDNIGHT


@pytest.mark.parametrize("date", ["", "yesterday", "2025-06-15T00:00:00Z", "Sun, 32 Jun 2025"])
@pytest_twisted.ensureDeferred
async def test_a_ping_with_an_invalid_date_is_400(visitor: Browser, date: str) -> None:
    answer = await visitor.ask("GET", PING, headers={"If-Modified-Since": date})
    assert answer.status == 400
    assert answer.error.startswith("If-Modified-Since: ")
    assert open_to_all(answer)


@pytest.mark.parametrize("target", ["/event/ping?u=%zz", "/event/p%69ng?u=%ff"])
@pytest_twisted.ensureDeferred
async def test_a_badly_encoded_ping_is_400(visitor: Browser, target: str) -> None:
    answer = await visitor.ask("GET", target)
    assert answer.status == 400
    assert answer.error.startswith("u: ")


@pytest_twisted.ensureDeferred
async def test_head_of_a_ping_has_no_body(visitor: Browser) -> None:
    answer = await visitor.ask("HEAD", PING)
    assert (answer.status, answer.body) == (200, b"")
    assert answer.header("Content-Length") == "1"


@pytest.mark.parametrize(
    ("target", "method"),
    [(HIT, "POST"), ("/api/event/hit", "POST"), (PING, "GET"), ("/api/event/ping", "GET")],
)
@pytest_twisted.ensureDeferred
async def test_a_preflight_allows_any_origin(visitor: Browser, target: str, method: str) -> None:
    headers = {
        "Origin": "https://example.com",
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": "content-type",
    }
    answer = await visitor.ask("OPTIONS", target, headers=headers)
    assert answer.status == 204
    assert open_to_all(answer)
    assert method in (answer.header("Access-Control-Allow-Methods") or "").split(", ")
    assert answer.header("Access-Control-Allow-Headers") == "Content-Type, If-Modified-Since"
    assert answer.header("Access-Control-Max-Age") == "86400"


@pytest.mark.parametrize(
    ("method", "target", "allowed"),
    [
        ("GET", HIT, "OPTIONS, POST"),
        ("HEAD", HIT, "OPTIONS, POST"),
        ("POST", PING, "GET, HEAD, OPTIONS"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_other_methods_are_405(
    visitor: Browser, method: str, target: str, allowed: str
) -> None:
    answer = await visitor.ask(method, target)
    assert answer.status == 405
    assert answer.header("Allow") == allowed
    assert open_to_all(answer)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_network_cannot_use_up_a_limit_and_its_excess_is_logged(
    server: Server, owner: Browser
) -> None:
    server.store.apply(
        evolve(server.store.settings, new_values={**NEW_VALUES, Dimension.UTM_CAMPAIGN: 8})
    )
    names = iter(range(1_000))

    async def hits(browser: Browser, count: int) -> None:
        for _ in range(count):
            number = next(names)
            url = f"https://example.com/a?utm_campaign=c{number}"
            answer = await browser.ask("POST", HIT, load(b=f"b{number}", u=url))
            assert (answer.status, answer.header("X-Medamad-Ignored")) == (204, None)

    async def campaigns() -> set[str]:
        rows = (await owner.ask("GET", "/website/example.com/campaigns")).json
        return {row["campaign"] for row in rows}

    async def website() -> object:
        return (await owner.ask("GET", "/websites/example.com")).json

    with logged_warnings() as lines:
        await hits(server.browser("203.0.113.1"), 4)
        assert await website() == {"hostname": "example.com"}
        await hits(server.browser("203.0.113.9"), 6)
        assert await campaigns() == {*(f"c{number}" for number in range(6)), "(other)"}
        await hits(server.browser("198.51.100.1"), 1)
    assert "c10" in await campaigns()
    assert await website() == {"hostname": "example.com", "limitsReached": ["utm_campaign"]}
    warnings = [line for line in lines if "utm_campaign" in line]
    assert len(warnings) == 1
    assert (
        "example.com: new values of utm_campaign, all of them or those of one network"
        in warnings[0]
    )
    assert "[limits] new_utm" in warnings[0]
    server.set(metrics_from=Networks([ip_network("127.0.0.0/8")]))
    metrics = await server.browser("127.0.0.1", "localhost").ask("GET", "/metrics")
    assert b"\nmedamad_new_values_limits_reached 1.0\n" in metrics.body
