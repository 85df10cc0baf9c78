from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Browser
from support.web.daemon_in_memory import Server

from medamad.accounts.tokens import make_token
from medamad.domain.accounts import Scope
from medamad.lookup.robots import Purpose, Robot, Robots
from medamad.storage.request_totals import MAX_PATHS

GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
DAY_S = 86_400

pytestmark = pytest.mark.usefixtures("website")


async def load(visitor: Browser, agent: str, path: str, **details: object) -> None:
    body = {"e": "load", "b": "b1", "u": f"https://example.com{path}", "p": True, "q": True}
    answer = await visitor.ask("POST", "/event/hit", body | details, headers={"User-Agent": agent})
    assert answer.status == 204
    assert answer.header("X-Medamad-Ignored") == (None if agent == FIREFOX else "bot")


async def robots(server: Server, query: str = "", of: str = "example.com") -> Any:
    await server.pipeline.robots.write()
    answer = await (await server.owner()).ask("GET", f"/website/{of}/robots?{query}")
    assert answer.status == 200, answer.error
    return answer.json


def counted(rows: list[dict[str, Any]]) -> list[tuple[object, ...]]:
    return [
        tuple(value for name, value in row.items() if name != "requests_percentage") for row in rows
    ]


@pytest_twisted.ensureDeferred
async def test_robots_are_counted_apart_from_people(server: Server, visitor: Browser) -> None:
    server.set(robots=Robots({"gptbot": Robot("OpenAI", Purpose.AI_TRAINING)}))
    for agent, path in (
        (GPTBOT, "/"), (GPTBOT, "/a"), (GPTBOT, "/a?x=1"), (GOOGLEBOT, "/a"), (FIREFOX, "/"),
    ):  # fmt: skip
        await load(visitor, agent, path)
    assert await robots(server) == [
        {
            "name": "GPTBot",
            "operator": "OpenAI",
            "purpose": "ai-training",
            "requests": 3,
            "requests_percentage": 0.75,
        },
        {
            "name": "Googlebot",
            "operator": "",
            "purpose": "search",
            "requests": 1,
            "requests_percentage": 0.25,
        },
    ]
    assert counted(await robots(server, "by=path")) == [("/a", 3), ("/", 1)]
    assert counted(await robots(server, "by=path&name=GPTBot")) == [("/a", 2), ("/", 1)]
    assert counted(await robots(server, "by=name&path[eq]=/")) == [
        ("GPTBot", "OpenAI", "ai-training", 1)
    ]
    assert counted(await robots(server, "by=purpose")) == [("ai-training", 3), ("search", 1)]
    assert counted(await robots(server, "by=path&purpose[eq]=search")) == [("/a", 1)]
    assert counted(await robots(server, "by=operator")) == [("OpenAI", 3), ("", 1)]
    assert counted(await robots(server, "by=name&operator=")) == [("Googlebot", "", "search", 1)]
    today = datetime.fromtimestamp(server.now, UTC).date().isoformat()
    assert counted(await robots(server, "by=day")) == [(today, 4)]
    assert counted(await robots(server, "by=path&limit=1&offset=1")) == [("/", 1)]
    summary = await (await server.owner()).ask("GET", "/website/example.com/summary")
    assert summary.json["current"]["pageviews"] == 1


@pytest_twisted.ensureDeferred
async def test_pixel_and_servers_count_robots_too(server: Server, visitor: Browser) -> None:
    page = {"Referer": "https://example.com/pixel", "User-Agent": GPTBOT}
    assert (await visitor.ask("GET", "/event/pixel.gif", headers=page)).status == 200
    text, key, token = make_token("a", Scope.SEND, None, None, int(server.now))
    await server.store.tokens.add(key, token)
    yesterday = datetime.fromtimestamp(server.now - DAY_S, UTC)
    body = {
        "e": "load", "b": "b1", "u": "https://example.com/server", "p": True, "q": True,
        "userAgent": GPTBOT, "time": yesterday.isoformat(),
    }  # fmt: skip
    answer = await visitor.ask(
        "POST", "/event/hit", body, headers={"Authorization": f"Bearer {text}"}
    )
    assert answer.header("X-Medamad-Ignored") == "bot"
    assert counted(await robots(server, "by=path")) == [("/pixel", 1), ("/server", 1)]
    assert counted(await robots(server, "by=day"))[0] == (yesterday.date().isoformat(), 1)


@pytest_twisted.ensureDeferred
async def test_blocked_networks_events_and_unloads_are_not_robots_requests(
    server: Server, visitor: Browser
) -> None:
    event = {"e": "custom", "g": "example.com", "d": {"x": 1}}
    for body in (event, {"e": "unload", "b": "b1", "m": 5}):
        answer = await visitor.ask("POST", "/event/hit", body, headers={"User-Agent": GPTBOT})
        assert answer.header("X-Medamad-Ignored") == "bot"
    assert await robots(server) == []


@pytest_twisted.ensureDeferred
async def test_days_are_those_of_the_servers_time_zone_and_count_whole(
    server: Server, visitor: Browser
) -> None:
    zone = ZoneInfo("Asia/Tokyo")
    server.pipeline.rules = evolve(server.pipeline.rules, zone=zone)
    first = datetime.fromtimestamp(server.now, zone).replace(
        hour=0, minute=30, second=0, microsecond=0
    )
    server.now = first.timestamp()
    await load(visitor, GPTBOT, "/")
    server.now += DAY_S
    await load(visitor, GPTBOT, "/")
    dates = [first.date().isoformat(), datetime.fromtimestamp(server.now, zone).date().isoformat()]
    assert counted(await robots(server, "by=day")) == [(dates[0], 1), (dates[1], 1)]
    noon = first.replace(hour=12).isoformat().replace("+", "%2B")
    assert counted(await robots(server, f"by=day&start={noon}")) == [(dates[0], 1), (dates[1], 1)]
    assert counted(await robots(server, f"by=day&end={noon}")) == [(dates[0], 1)]
    before = first.replace(minute=0).timestamp() - 1
    ended = datetime.fromtimestamp(before, UTC).isoformat().replace("+", "%2B")
    assert await robots(server, f"by=day&end={ended}") == []


@pytest_twisted.ensureDeferred
async def test_a_flood_of_paths_counts_together(server: Server, visitor: Browser) -> None:
    for number in range(MAX_PATHS + 20):
        await load(visitor, GPTBOT, f"/{number}")
    rows = counted(await robots(server, "by=path"))
    assert rows[0] == ("(other)", 20)
    assert len(rows) == MAX_PATHS + 1


@pytest_twisted.ensureDeferred
async def test_what_cannot_be_stored_is_kept_for_the_next_time(
    server: Server, visitor: Browser
) -> None:
    server.store.free_space.min_free_disk = 1 << 62
    await load(visitor, GPTBOT, "/")
    assert await robots(server) == []
    await load(visitor, GPTBOT, "/")
    server.store.free_space.min_free_disk = 0
    assert counted(await robots(server, "by=path")) == [("/", 2)]


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("by=browser", "by: expected one of name, operator, purpose, path, day"),
        ("browser[eq]=x", "browser[eq]: robots can be filtered by name, operator, purpose, path"),
        ("path[contains]=x", "path[contains]: expected the operator eq"),
        ("purpose=fun", "purpose: expected one of search, ai-training, ai-answer, preview"),
        ("limit=0", "limit: expected a whole number from 1 to 5000"),
        ("start=today", "start: "),
    ],
)
@pytest_twisted.ensureDeferred
async def test_wrong_parameters_are_named(owner: Browser, query: str, error: str) -> None:
    answer = await owner.ask("GET", f"/website/example.com/robots?{query}")
    assert answer.status == 400
    assert answer.error.startswith(error)
