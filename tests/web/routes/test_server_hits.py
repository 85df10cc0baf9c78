"""Hits that a server sends on behalf of visitors, with a token."""

from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from attrs import define, evolve
from support.web.client import Answer, Browser
from support.web.daemon_in_memory import NOW, Server, build_server
from twisted.internet.defer import Deferred

from medamad.accounts.tokens import make_token
from medamad.domain.accounts import Scope
from medamad.ingest.networks import Networks
from medamad.ingest.write_queue import QueueSettings

HIT = "/api/event/hit"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:130.0) Gecko/20100101 Firefox/130.0"
DAY_S = 86_400
NO_ADDRESS = "expected an id that is not an address, such as a keyed hash of one"
ADDRESSES = ("10.0.0.1", "1.2.3.4:80", "::1", "[2001:db8::1]:443", " 1.2.3.4", "x, 1.2.3.4")


@define
class ServerSender:
    """Sends hits with a token."""

    browser: Browser
    headers: dict[str, str]
    sent: int = 0

    async def load(self, path: str = "/", **members: Any) -> Answer:
        self.sent += 1
        body = {"e": "load", "b": f"b{self.sent}", "u": f"https://example.com{path}"} | members
        return await self.browser.ask("POST", HIT, body, headers=self.headers)


async def server_sender(
    server: Server, scope: Scope = Scope.SEND, peer: str = "203.0.113.9"
) -> ServerSender:
    text, key, token = make_token("a", scope, None, None, NOW)
    await server.store.tokens.add(key, token)
    return ServerSender(server.browser(peer), {"Authorization": f"Bearer {text}"})


async def ask(owner: Browser, name: str, **parameters: str) -> Any:
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    answer = await owner.ask("GET", f"/website/example.com/{name}?{query}")
    assert answer.status == 200
    return answer.json


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_long_hit_takes_several_places_in_the_queue(server: Server) -> None:
    server.pipeline.queue.settings = QueueSettings(max_waiting=2)
    sender = await server_sender(server)
    short = Deferred.fromCoroutine(sender.load("/", visitor="v1"))
    assert (await sender.load("/?" + "x" * 2_000, visitor="v1")).status == 503
    assert (await short).status == 204


@pytest.mark.parametrize("scope", [Scope.SEND, Scope.FULL])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_first_views_are_distinguished_from_later_ones(
    server: Server, owner: Browser, scope: Scope
) -> None:
    sender = await server_sender(server, scope)
    for visitor, path in (("v1", "/"), ("v1", "/"), ("v1", "/a"), ("v2", "/"), ("v2", "/")):
        assert (await sender.load(path, visitor=visitor)).status == 204
    current = (await ask(owner, "summary"))["current"]
    assert (current["visitors"], current["pageviews"]) == (2, 5)
    pages = await ask(owner, "pages")
    assert [(row["path"], row["visitors"], row["pageviews"]) for row in pages] == [
        ("/", 2, 4),
        ("/a", 1, 1),
    ]


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_visitor_is_new_the_next_day_and_on_another_website(
    server: Server, owner: Browser
) -> None:
    await server.store.add_website("other.example", NOW)
    sender = await server_sender(server)
    await sender.load(visitor="v1")
    assert (await sender.load(visitor="v1", u="https://other.example/")).status == 204
    server.now += DAY_S
    await sender.load(visitor="v1")
    await sender.load(visitor="v1")
    assert (await ask(owner, "summary"))["current"]["visitors"] == 2
    answer = await owner.ask("GET", "/website/other.example/summary")
    assert isinstance(answer.json, dict)
    assert answer.json["current"]["visitors"] == 1


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_repeated_hit_counts_once_also_for_its_visitor(
    server: Server, owner: Browser
) -> None:
    sender = await server_sender(server)
    three_days_ago = (NOW - 3 * DAY_S) * 1000
    for _ in range(3):
        assert (await sender.load(visitor="v", b="same", time=three_days_ago)).status == 204
        server.now += 3_600
        await server.store.maintain(int(server.now * 1000))
    current = (await ask(owner, "summary"))["current"]
    assert (current["visitors"], current["pageviews"]) == (1, 1)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_names_find_visits_alone_where_visitors_are_not_counted(
    server: Server, owner: Browser, tmp_path: Path
) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, has_visitors=False)
    sender = await server_sender(server)
    for name, path in (("v", "/"), ("v", "/a"), ("w", "/")):
        assert (await sender.load(path, visitor=name, w=1440)).status == 204
        server.now += 600
    assert (await sender.load("/b", visitor="w", p=True, q=True)).status == 204
    current = (await ask(owner, "summary", visits="true"))["current"]
    assert (current["visitors"], current["visits"], current["pageviews"]) == (0, 2, 4)
    assert not (tmp_path / "data" / "visitor-keys.json").is_file()


@pytest.mark.parametrize(
    ("time", "at"),
    [
        ("2025-06-12T10:00:00Z", "2025-06-12T10:00:00Z"),
        ("2025-06-12T12:00:00+02:00", "2025-06-12T10:00:00Z"),
        (1_749_722_400_000, "2025-06-12T10:00:00Z"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_hit_counts_at_the_time_that_it_states(
    server: Server, owner: Browser, time: object, at: str
) -> None:
    sender = await server_sender(server)
    assert (await sender.load("/then", p=True, q=True, time=time)).status == 204
    custom = {"e": "custom", "g": "example.com", "d": {"sold": 1}, "time": time}
    answer = await sender.browser.ask("POST", HIT, custom, headers=sender.headers)
    assert answer.status == 204
    await sender.load("/now", p=True, q=True)
    for _ in range(2):
        rows = await ask(owner, "pages", start=at, end=at)
        assert [row["path"] for row in rows] == ["/then"]
        assert [row["name"] for row in await ask(owner, "properties", start=at, end=at)] == ["sold"]
        assert len(await ask(owner, "pages")) == 2
        # Sealed, they are where they were.
        await server.store.maintain(int(server.now * 1000))
        async with server.store.maintenance.segments_lock:
            pass


@pytest.mark.parametrize("time", [NOW - 8 * DAY_S, NOW + 120, -5, 1e300])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_times_long_ago_or_in_the_future_are_rejected(
    server: Server, owner: Browser, time: float
) -> None:
    sender = await server_sender(server)
    refused = await sender.load(p=True, q=True, time=time * 1000)
    assert (refused.status, refused.error) == (400, "time: expected one of the last 7 days")
    assert (await sender.load(p=True, q=True, time=(NOW + 30) * 1000)).status == 204
    now = "2025-06-15T15:06:40Z"
    assert len(await ask(owner, "pages", end=now)) == 1


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_agent_language_and_country_come_from_the_body(
    server: Server, owner: Browser
) -> None:
    sender = await server_sender(server)
    sender.headers |= {"User-Agent": "curl/8.0", "Accept-Language": "fr"}
    details = {"userAgent": FIREFOX, "language": "de-AT,de;q=0.9", "country": "jp"}
    assert (await sender.load(visitor="v", **details)).status == 204
    for name, column, value in (
        ("browsers", "browser", "Firefox"),
        ("languages", "language", "German"),
        ("countries", "country", "Japan"),
    ):
        assert [row[column] for row in await ask(owner, name)] == [value]


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_an_unknown_country_code_counts_as_none(server: Server, owner: Browser) -> None:
    sender = await server_sender(server)
    for details in ({}, {"country": "ZZ"}, {"country": "xx"}):
        assert (await sender.load(visitor=f"v {details}", **details)).status == 204
    (row,) = await ask(owner, "countries")
    assert (row["country"], row["visitors"]) == ("Unknown", 3)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_the_servers_own_address_and_headers_are_ignored(server: Server) -> None:
    """As networks the operator has blocked, or other websites' pages, trackers are ignored."""
    rules = server.pipeline.rules
    hosting = Networks([ip_network("192.0.2.9/32")])
    server.pipeline.rules = evolve(rules, hosting=hosting, hosting_rule="ignore")
    sender = await server_sender(server, peer="192.0.2.9")
    sender.headers["Origin"] = "https://elsewhere.example"
    answer = await sender.load(visitor="v")
    assert (answer.status, answer.header("X-Medamad-Ignored")) == (204, None)
    blocked = await server.browser("192.0.2.9").ask(
        "POST", HIT, {"e": "load", "b": "x", "u": "https://example.com/", "p": True, "q": True}
    )
    assert blocked.header("X-Medamad-Ignored") == "blocked"


@pytest.mark.parametrize("where", ["the lane", "the router"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("time", 5),
        ("visitor", "v"),
        ("userAgent", FIREFOX),
        ("language", "de"),
        ("country", "DE"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_without_a_token_the_fields_are_rejected(
    server: Server, owner: Browser, name: str, value: object, where: str
) -> None:
    body = {"e": "load", "b": "b", "u": "https://example.com/", "p": True, "q": True, name: value}
    # An escape in the path is beyond the lane.
    target = HIT if where == "the lane" else "/api/event/%68it"
    for headers in ({}, {"Authorization": "Basic YTpi"}):
        refused = await server.browser().ask("POST", target, body, headers=headers)
        assert (refused.status, refused.error) == (401, f"{name}: may only be sent with a token")
    assert await ask(owner, "pages") == []


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({}, "p: required, expected true or false"),
        ({"p": True}, "q: required, expected true or false"),
        ({"visitor": ""}, "visitor: expected a text of 1 to 128 characters"),
        ({"visitor": "x" * 129}, "visitor: expected a text of 1 to 128 characters"),
        ({"visitor": "v", "country": "DEU"}, "country: expected a country's code of two letters"),
        (
            {"visitor": "v", "time": "yesterday"},
            "time: expected an RFC 3339 date-time or Unix milliseconds",
        ),
        (
            {"visitor": "v", "time": "2025-06-12T10:00:00"},
            "time: expected an RFC 3339 date-time or Unix milliseconds",
        ),
        ({"visitor": 5}, "visitor: expected a text of 1 to 128 characters"),
        *(
            ({"visitor": address} | more, "visitor: " + NO_ADDRESS)
            for more in ({}, {"p": True, "q": True})
            for address in ADDRESSES
        ),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_malformed_field_is_named(
    server: Server, owner: Browser, members: dict[str, object], reason: str
) -> None:
    sender = await server_sender(server)
    refused = await sender.load(**members)
    assert (refused.status, refused.error) == (400, reason)
    assert await ask(owner, "pages") == []


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_token_cannot_end_views_of_other_websites(server: Server, owner: Browser) -> None:
    other = await server.store.add_website("other.example", NOW)
    text, key, token = make_token("a", Scope.SEND, [other.number], None, NOW)
    await server.store.tokens.add(key, token)
    limited = {"Authorization": f"Bearer {text}"}
    await (await server_sender(server)).load(visitor="v", b="theirs")
    unload = {"e": "unload", "b": "theirs", "m": 5_000}
    assert (await server.browser().ask("POST", HIT, unload, headers=limited)).status == 204
    assert (await ask(owner, "summary"))["current"]["duration"] == 0
    refused = await ServerSender(server.browser(), limited).load(visitor="v")
    assert (refused.status, refused.error) == (403, "u: the token is not for example.com")


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_the_visitor_id_is_not_stored(server: Server) -> None:
    sender = await server_sender(server)
    await sender.load(visitor="a-name-to-look-for")
    path = server.store.environment.path
    assert b"a-name-to-look-for" not in path.read_bytes()


@pytest_twisted.ensureDeferred
async def test_visitors_are_recognised_after_a_restart(tmp_path: Path) -> None:
    server = await build_server(tmp_path)
    await server.store.add_website("example.com", NOW)
    sender = await server_sender(server)
    assert (await sender.load(visitor="v")).status == 204
    await server.store.close()
    server = await build_server(tmp_path, NOW + 3_600)
    again = ServerSender(server.browser(), sender.headers, sent=1)
    assert (await again.load("/a", visitor="v")).status == 204
    assert (await again.load("/a", visitor="w")).status == 204
    current = (await ask(await server.owner(), "summary"))["current"]
    assert (current["visitors"], current["pageviews"]) == (2, 3)
    await server.store.close()
