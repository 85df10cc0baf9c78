from typing import Any

import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Browser
from support.web.daemon_in_memory import Server

HALF_AN_HOUR_S = 1_800
LISTS = ("pages", "sources", "countries", "events")
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
WITHOUT_VISITORS = ("visitors", "visitors_percentage", "visits_percentage", "events_percentage")


async def load(owner: Browser, beacon: str, path: str, **details: Any) -> None:
    body = {"e": "load", "b": beacon, "u": f"https://example.com{path}", "p": True, "q": True}
    headers = {"User-Agent": FIREFOX, "Accept-Language": "en-GB"}
    answer = await owner.ask("POST", "/event/hit", body | details, headers=headers)
    assert answer.status == 204


async def event(owner: Browser, beacon: str, **properties: object) -> None:
    body = {"e": "custom", "b": beacon, "g": "example.com", "d": properties}
    assert (await owner.ask("POST", "/event/hit", body)).status == 204


async def live(owner: Browser) -> dict[str, Any]:
    answer = await owner.ask("GET", "/website/example.com/live?lists=true")
    assert answer.status == 200
    assert isinstance(answer.json, dict)
    return answer.json


def named(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the name and the count of each row."""
    return [
        tuple(value for name, value in row.items() if name not in WITHOUT_VISITORS) for row in rows
    ]


async def visit(owner: Browser) -> None:
    """One visit from Google sees three pages, one of them twice, and orders."""
    await load(owner, "b1", "/a", r="https://www.google.com/search", t="Europe/London")
    await load(owner, "b2", "/b", r="https://example.com/a", p=False, t="Europe/London")
    await load(owner, "b3", "/a", r="https://example.com/b", p=False, q=False, t="Europe/London")
    await event(owner, "b3", event="order", amount=12.5)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_lists_of_a_website_without_hits_are_empty(owner: Browser) -> None:
    assert await live(owner) == {"visitors": 0} | {name: [] for name in LISTS}


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_lists_have_views_visits_and_events_of_the_last_half_hour(
    server: Server, owner: Browser
) -> None:
    await load(owner, "b0", "/early", r="https://news.example/")
    await event(owner, "b0", event="signup")
    server.now += HALF_AN_HOUR_S + 60
    await visit(owner)
    shown = await live(owner)
    assert list(shown) == ["visitors", *LISTS]
    assert shown["visitors"] == 3
    assert named(shown["pages"]) == [("/a", 2), ("/b", 1)]
    # Links within the website are no source of a visit.
    assert named(shown["sources"]) == [("Google", 1), ("", 0)]
    assert named(shown["countries"]) == [("United Kingdom", 1)]
    assert named(shown["events"]) == [("amount", "12.5", 1), ("event", "order", 1)]


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_list_has_the_rows_of_its_statistic(server: Server, owner: Browser) -> None:
    await visit(owner)
    for number in range(12):
        await load(owner, f"c{number}", f"/c/{number}", r=f"https://{number}.example/")
    server.now += 1
    shown = await live(owner)
    assert [len(shown[name]) for name in LISTS] == [10, 10, 2, 2]
    for name, statistic in (
        ("pages", "pages?summary=true&views=true&order=pageviews"),
        ("sources", "referrers?summary=true&visits=true&order=visits"),
        ("countries", "countries?summary=true&visits=true&order=visits"),
    ):
        answer = await owner.ask("GET", f"/website/example.com/{statistic}&limit=10")
        assert shown[name] == answer.json, name


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_without_visits_sources_and_countries_are_listed_by_views(
    server: Server, owner: Browser
) -> None:
    settings = server.store.settings
    server.store.apply(evolve(settings, visits=evolve(settings.visits, is_on=False)))
    await visit(owner)
    shown = await live(owner)
    for name, statistic in (("sources", "referrers"), ("countries", "countries")):
        path = f"/website/example.com/{statistic}?summary=true&views=true&order=pageviews"
        assert shown[name] == (await owner.ask("GET", path)).json
    assert named(shown["sources"]) == [("", 2), ("Google", 1)]


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_lists_are_only_there_on_request(owner: Browser) -> None:
    await visit(owner)
    plain = await owner.ask("GET", "/website/example.com/live")
    assert plain.body == b'{"visitors":3}'
    for query in ("lists=false", "lists=0", "list=true"):
        answer = await owner.ask("GET", f"/website/example.com/live?{query}")
        assert answer.body == plain.body
    for query in ("lists=maybe", "lists=", "lists=10"):
        answer = await owner.ask("GET", f"/website/example.com/live?{query}")
        assert (answer.status, answer.error) == (400, "lists: expected true, false, 1 or 0")
