"""What is left out of all figures, and brought back, over HTTP."""

from typing import Any

import pytest
import pytest_twisted
from support.web.client import Browser
from support.web.daemon_in_memory import NOW, Server

from medamad.accounts.shares import make_share
from medamad.accounts.tokens import make_token
from medamad.domain.accounts import Scope
from medamad.domain.goals import MAX_EXCLUSIONS, Definitions, Exclusion
from medamad.domain.hits import View

EXCLUSIONS = "/websites/example.com/exclusions"
AGENTS = {
    "Firefox": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Chrome": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36",
}
CHROME = {"name": "Chrome", "filters": "browser[eq]=Chrome"}
FIGURES = (
    "summary?visits=true&interval=day&start=2020-01-01T00:00:00Z&end=2030-01-01T00:00:00Z",
    *("pages", "time", "browsers?views=true&visits=true", "entries", "exits", "next?of=/"),
    *("properties?visits=true", "goals", "live?lists=true", "export?what=statistics&format=ndjson"),
    "changes?start=2020-01-01T00:00:00Z&end=2030-01-01T00:00:00Z&metric=visits",
)


async def get(owner: Browser, path: str) -> Any:
    answer = await owner.ask("GET", path)
    assert answer.status == 200, answer.body
    return answer.body if "export" in path else answer.json


async def added(owner: Browser, **details: str) -> str:
    answer = await owner.ask("POST", EXCLUSIONS, details)
    assert answer.status == 201, answer.body
    assert isinstance(answer.json, dict)
    return str(answer.json["id"])


async def visit(owner: Browser, browser: str, *paths: str, plan: str = "") -> None:
    """Send the page loads of a visit, and an event of the last page."""
    headers = {"User-Agent": AGENTS[browser], "Accept-Language": "en-GB"}
    before = ""
    for number, path in enumerate(paths, 1):
        url = f"https://example.com{path}"
        load: dict[str, object] = {
            "e": "load",
            "b": f"{browser} {path}",
            "u": url,
            "r": before,
            "p": number == 1,
            "q": True,
            "n": number,
            "w": 1_500,
        }
        unload = {"e": "unload", "b": load["b"], "m": 1_000}
        # The last page stays open.
        for hit in (load, unload) if number < len(paths) else (load,):
            assert (await owner.ask("POST", "/event/hit", hit, headers=headers)).status == 204
        before = url
    if plan:
        event = {"e": "custom", "b": f"{browser} {path}", "g": "example.com", "d": {"plan": plan}}
        assert (await owner.ask("POST", "/event/hit", event, headers=headers)).status == 204


async def figures(owner: Browser) -> list[Any]:
    websites = await get(owner, "/websites?summary=true")
    of_website = [await get(owner, f"/website/example.com/{path}") for path in FIGURES]
    return [websites, *of_website]


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_exclusions_are_added_listed_and_removed(owner: Browser, prefix: str) -> None:
    exclusions = prefix + EXCLUSIONS
    await visit(owner, "Firefox", "/", "/a")
    await visit(owner, "Chrome", "/", "/a", "/b")
    assert await get(owner, exclusions) == []
    bounds = {"start": "2020-01-01T00:00:00Z", "end": "2030-01-01T00:00:00+01:00"}
    filters = "browser[eq]=Chrome&path[contains]=%2Fa"
    created = await owner.ask(
        "POST", exclusions, {"name": " Chrome ", "filters": filters, **bounds}
    )
    assert created.status == 201
    assert isinstance(created.json, dict)
    rule = {
        "id": created.json["id"],
        "name": "Chrome",
        "filters": "browser[eq]=Chrome&path[contains]=/a",
        **bounds,
        "created": NOW,
    }
    assert created.json == rule
    (listed,) = await get(owner, exclusions)
    (day,) = listed.pop("interval")
    assert listed == {**rule, "views": 3, "visits": 1}
    assert day.pop("date").endswith("T00:00:00+00:00")
    assert day == {"views": 3, "visits": 1}
    (in_tokyo,) = await get(owner, f"{exclusions}?timezone=Asia/Tokyo")
    assert in_tokyo["interval"][0]["date"].endswith("T00:00:00+09:00")
    assert (await owner.ask("GET", f"{exclusions}?timezone=x")).status == 400
    removed = await owner.ask("DELETE", f"{exclusions}/{rule['id']}")
    assert (removed.status, removed.body) == (204, b"")
    assert (await owner.ask("DELETE", f"{exclusions}/{rule['id']}")).status == 404
    assert await get(owner, exclusions) == []


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_what_is_left_out_is_in_no_figure_and_comes_back_exactly(owner: Browser) -> None:
    await owner.ask("POST", "/websites/example.com/goals", {"name": "A", "path": "/a"})
    await visit(owner, "Firefox", "/", "/a", plan="free")
    alone = await figures(owner)
    rule = await added(owner, **CHROME)
    await visit(owner, "Chrome", "/", "/a", "/b", plan="pro")
    # What comes later is left out as well.
    assert await figures(owner) == alone
    views = await get(owner, "/website/example.com/export?what=views&format=ndjson")
    assert views.count(b"Chrome") == 3
    await owner.ask("DELETE", f"{EXCLUSIONS}/{rule}")
    together = await figures(owner)
    assert together != alone
    assert together[1]["current"]["pageviews"] == 5
    assert together[1]["current"]["visits"] == 2
    same = [
        path
        for path, *both in zip(("", *FIGURES), alone, together, strict=True)
        if both[0] == both[1]
    ]
    assert not same
    # What is stored is left out all the same.
    await added(owner, name="The other", filters="exit_page=/b")
    assert await figures(owner) == alone


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_responses_say_how_many_exclusions_there_are(owner: Browser) -> None:
    await added(owner, name="Before", end="2001-01-01T00:00:00Z", filters="path=/none")
    await added(owner, **CHROME)
    for period, partial in (
        ("", "left-out=2"),
        ("?start=2001-01-02T00:00:01Z", "left-out=1"),
        ("?start=2001-01-01T23:59:59Z", "left-out=2"),
    ):
        for statistic in ("summary", "pages"):
            answer = await owner.ask("GET", f"/website/example.com/{statistic}{period}")
            assert answer.headers["x-medamad-partial"] == [partial]
    for rule in await get(owner, EXCLUSIONS):
        await owner.ask("DELETE", f"{EXCLUSIONS}/{rule['id']}")
    answer = await owner.ask("GET", "/website/example.com/summary")
    assert "x-medamad-partial" not in answer.headers


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_period_leaves_out_the_visits_that_began_in_it(owner: Browser) -> None:
    await visit(owner, "Firefox", "/")
    await added(owner, name="Before", end="2001-01-01T00:00:00Z")
    assert (await get(owner, "/website/example.com/summary"))["current"]["pageviews"] == 1
    await added(owner, name="Since", start="2001-01-01T00:00:00Z")
    assert (await get(owner, "/website/example.com/summary"))["current"]["pageviews"] == 0
    before, since = await get(owner, EXCLUSIONS)
    assert (before["views"], before["visits"], before["interval"]) == (0, 0, [])
    assert (since["views"], since["visits"]) == (1, 1)


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({}, 400, "name: required"),
        ({"name": "a"}, 400, "filters: expected at least one filter, or a period"),
        ({"name": "", "filters": "path=/"}, 400, "name: expected 1 to 100 characters, got 0"),
        ({"name": "a", "filters": "pth=/"}, 400, "pth: there is no such filter"),
        ({"name": "a", "filters": "limit=1"}, 400, "limit: there is no such filter"),
        ({"name": "a", "filters": "path[like]=/"}, 400, "path[like]: expected one of"),
        ({"name": "a", "filters": "path=%zz"}, 400, "path: an invalid percent-escape"),
        ({"name": "a", "filters": "goal=none"}, 400, "goal: there is no goal none"),
        ({"name": "a", "filters": "visitor=new"}, 400, "visitor: returning visitors are switched"),
        ({"name": "a", "start": "x"}, 400, "start: "),
        ({"name": "a", "filters": "path=/", "until": "x"}, 400, "until: no such member"),
        ({"name": "a", "end": "x"}, 400, "end: "),
        ({"name": "Taken", "filters": "path=/"}, 409, "name: Taken is taken"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_what_is_wrong_is_named(
    owner: Browser, body: dict[str, str], status: int, reason: str
) -> None:
    await added(owner, name="Taken", filters="path=/none")
    answer = await owner.ask("POST", EXCLUSIONS, body)
    assert answer.status == status
    assert answer.error.startswith(reason)
    assert len(await get(owner, EXCLUSIONS)) == 1


@pytest_twisted.ensureDeferred
async def test_a_website_has_a_limited_number_of_them(
    owner: Browser, server: Server, website: str
) -> None:
    number = server.store.websites.by_hostname(website).number  # type: ignore[union-attr]
    full = tuple(
        Exclusion(id=f"rule{n}", name=f"{n}", filters=(("path", f"/{n}"),), created=NOW)
        for n in range(MAX_EXCLUSIONS)
    )
    await server.store.goals.change(number, lambda _: Definitions(exclusions=full))
    answer = await owner.ask("POST", EXCLUSIONS, CHROME)
    assert answer.status == 400
    assert answer.error == "name: a website has at most 100 exclusions, remove one first"
    assert (await get(owner, "/website/example.com/summary"))["current"]["pageviews"] == 0


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_goal_of_an_exclusion_can_only_be_renamed(owner: Browser) -> None:
    created = await owner.ask("POST", "/websites/example.com/goals", {"name": "A", "path": "/a"})
    assert isinstance(created.json, dict)
    goal = f"/websites/example.com/goals/{created.json['id']}"
    rule = await added(owner, name="Reached", filters=f"goal={created.json['id']}")
    refused = await owner.ask("DELETE", goal)
    uses = "the exclusion Reached uses the goal A, which"
    assert (refused.status, refused.error) == (409, f"{uses} cannot be removed")
    assert (await owner.ask("PATCH", goal, {"path": "/c"})).status == 409
    assert (await owner.ask("PATCH", goal, {"name": "B"})).status == 200
    await owner.ask("DELETE", f"{EXCLUSIONS}/{rule}")
    assert (await owner.ask("DELETE", goal)).status == 204


@pytest_twisted.ensureDeferred
async def test_only_the_account_and_full_tokens_see_and_change_them(
    owner: Browser, server: Server, website: str
) -> None:
    store = server.store
    number = store.websites.by_hostname(website).number  # type: ignore[union-attr]
    rule = await added(owner, **CHROME)
    share = make_share("all", number, (), "", NOW)
    await store.shares.add(share.id.encode("ascii"), share)
    shown: dict[str, dict[str, str]] = {"share": {"X-Medamad-Share": share.id}}
    for scope in Scope:
        text, key, token = make_token(f"a {scope}", scope, [number], None, NOW)
        await store.tokens.add(key, token)
        shown[scope] = {"Authorization": f"Bearer {text}"}
    for name, headers in shown.items():
        browser = server.browser()
        wanted = 200 if name == Scope.FULL else 403
        assert (await browser.ask("GET", EXCLUSIONS, headers=headers)).status == wanted
        body = {"name": f"by {name}", "filters": "path=/none"}
        created = await browser.ask("POST", EXCLUSIONS, body, headers=headers)
        assert created.status == (201 if name == Scope.FULL else 403)
        removed = await browser.ask("DELETE", f"{EXCLUSIONS}/{rule}", headers=headers)
        assert removed.status == (204 if name == Scope.FULL else 403)
        if name == Scope.FULL:
            rule = await added(owner, **CHROME)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_flood_is_suggested_until_it_is_left_out(server: Server, owner: Browser) -> None:
    store, suggestions = server.store, "/websites/example.com/suggestions"
    (website,) = store.websites.all()
    hours = {NOW - 3_600 * back: 3 for back in range(1, 24 * 8)}
    flood = {NOW - 3_600 * 50: 150, NOW - 3_600 * 49: 90}
    for is_flood, visits in ((False, hours), (True, flood)):
        views = [
            View(
                website=website.number,
                time_ms=time_s * 1000,
                beacon=f"{is_flood} {time_s} {number}",
                path="/a,b" if is_flood else f"/{number}",
                country="SG" if is_flood else "DE",
                browser="Chrome",
                first_today=True,
                identity=f"{is_flood} {time_s} {number}".encode(),
            )
            for time_s, count in visits.items()
            for number in range(count)
        ]
        await store.append(views)
    (found,) = await get(owner, suggestions)
    assert found | {"start": "", "end": ""} == {
        "filters": "country[eq]=Singapore",
        "start": "",
        "end": "",
        "visits": 240,
        "visits_percentage": round(240 / 246, 4),
        "views": 240,
        "usual_visits": 0,
    }
    before = await get(owner, "/website/example.com/summary?visits=true")
    assert before["current"]["visits"] == 240 + 3 * len(hours)
    bounds = {name: found[name] for name in ("filters", "start", "end")}
    exclusion = await added(owner, name="Flood", **bounds)
    after = await get(owner, "/website/example.com/summary?visits=true")
    assert after["current"]["visits"] == 3 * len(hours)
    assert await get(owner, suggestions) == []
    assert (await owner.ask("DELETE", f"{EXCLUSIONS}/{exclusion}")).status == 204
    assert await get(owner, suggestions) == [found]
    long_ago = "?end=2020-01-31T00:00:00Z"
    assert await get(owner, suggestions + long_ago) == []
    answer = await owner.ask("GET", f"{suggestions}?start=2020-01-01T00:00:00Z")
    assert (answer.status, answer.error) == (400, "start: expected at most 92 days before the end")
