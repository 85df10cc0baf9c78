from typing import Any
from urllib.parse import quote

import msgspec
import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Browser
from support.web.daemon_in_memory import NOW, Server

from medamad.accounts.shares import make_share
from medamad.domain.dimensions import Dimension

GOALS = "/websites/example.com/goals"
FUNNELS = "/websites/example.com/funnels"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
CHROME = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/140.0.0.0 Safari/537.36"


async def get(owner: Browser, rest: str) -> Any:
    answer = await owner.ask("GET", f"/website/example.com/{rest}")
    assert answer.status == 200, answer.body
    return answer.json


async def goal(owner: Browser, name: str, **details: str) -> str:
    answer = await owner.ask("POST", GOALS, {"name": name, **details})
    assert answer.status == 201, answer.body
    assert isinstance(answer.json, dict)
    return str(answer.json["id"])


async def send(owner: Browser, agent: str, *bodies: dict[str, object]) -> None:
    headers = {"User-Agent": agent, "Accept-Language": "en-GB"}
    for body in bodies:
        assert (await owner.ask("POST", "/event/hit", body, headers=headers)).status == 204


def load(path: str, number: int, referrer: str = "") -> dict[str, object]:
    url = f"https://example.com{path}"
    first = number == 1
    seen = {"b": f"{path} {number} {referrer}", "u": url, "r": referrer, "n": number}
    return {"e": "load", "p": first, "q": True, "t": "Europe/London", "w": 1_500, **seen}


def order(view: dict[str, object], kind: str, total: str) -> dict[str, object]:
    properties = {"order": kind, "total": total}
    return {"e": "custom", "b": view["b"], "g": "example.com", "d": properties}


async def visits(owner: Browser) -> None:
    """One visitor comes from a search and orders twice; another reads a page and leaves."""
    home, google = "https://example.com/", "https://www.google.com/"
    loads = (load("/", 1, google), load("/cart", 2, home))
    await send(
        owner,
        FIREFOX,
        *loads,
        order(loads[1], "book", "12.50"),
        order(loads[1], "pen", "0.105"),
    )
    await send(owner, CHROME, load("/cart", 1))


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_visits_are_filtered_by_goals_and_by_where_they_began(owner: Browser) -> None:
    await visits(owner)
    ordered, cart = (
        await goal(owner, "Order", event="order"),
        await goal(owner, "Cart", path="/cart"),
    )
    for filters, browsers in (
        (f"goal={ordered}", ["Firefox"]),
        (f"goal[eq]={cart}", ["Firefox", "Chrome"]),
        (f"goal={cart}&goal={ordered}", ["Firefox"]),
        ("entry_page=/cart", ["Chrome"]),
        ("exit_page=/cart&visit_referrer=google", ["Firefox"]),
        ("visit_referrer=", ["Chrome"]),
    ):
        found = await get(owner, f"browsers?summary=true&{filters}")
        assert [row["browser"] for row in found] == browsers, filters
    (summary,) = (await get(owner, f"summary?goal={ordered}")).values()
    assert summary["pageviews"] == 2
    export = await owner.ask("GET", f"/website/example.com/export?what=statistics&goal={ordered}")
    assert b"browsers,,Firefox" in export.body
    assert b"Chrome" not in export.body


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_rows_have_the_conversions_of_a_goal(owner: Browser) -> None:
    await visits(owner)
    ordered = await goal(owner, "Order", event="order", value="pen")
    pages = await get(owner, f"pages?summary=true&conversions={ordered}")
    assert [(row["path"], row["conversions"], row["conversion_percentage"]) for row in pages] == [
        ("/cart", 1, 0.5),
        ("/", 1, 1.0),
    ]
    assert all("visits" not in row for row in pages)
    pages = await get(owner, f"pages?summary=true&conversions={ordered}&goal={ordered}")
    assert [(row["conversions"], row["conversion_percentage"]) for row in pages] == [
        (1, 1.0),
        (1, 0.5),
    ], "of all visits that saw the page"
    found = await get(owner, f"referrers?summary=true&visits=true&conversions={ordered}")
    assert [list(row.values())[3:] for row in found] == [[1, 0.5, 0, 0.0], [1, 0.5, 1, 1.0]]


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_properties_have_the_visits_in_which_they_occurred(owner: Browser) -> None:
    await visits(owner)
    assert await get(owner, "properties?visits=true") == [
        {"name": name, "events": 2, "events_percentage": 1.0, "visits": 1}
        for name in ("order", "total")
    ]


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_goals_have_conversions_visits_and_exact_revenue(owner: Browser) -> None:
    await visits(owner)
    cart = await goal(owner, "Cart", path="/c*")
    paid = await goal(owner, "Paid", event="order", revenue="total", currency="EUR")
    thanks = await goal(owner, "Thanks", path="/thanks", revenue="total", currency="JPY")
    answer = await owner.ask("GET", "/website/example.com/goals")
    assert msgspec.json.decode(answer.body) == [
        {"id": cart, "name": "Cart", "conversions": 2, "visits": 2, "visits_percentage": 1.0},
        {
            "id": paid,
            "name": "Paid",
            "conversions": 2,
            "visits": 1,
            "visits_percentage": 0.5,
            "revenue": {"sum": 12.605, "mean": 6.302, "median": 6.3025, "currency": "EUR"},
        },
        {
            "id": thanks,
            "name": "Thanks",
            "conversions": 0,
            "visits": 0,
            "visits_percentage": 0.0,
            "revenue": {"sum": 0, "mean": 0, "median": 0, "currency": "JPY"},
        },
    ]
    assert b'"revenue":{"sum":12.605,"mean":6.302,"median":6.3025,"currency":"EUR"}' in answer.body
    (row,) = await get(owner, "goals?limit=1&goal=" + paid)
    assert (row["name"], row["conversions"], row["visits_percentage"]) == ("Paid", 2, 0.5)
    (row, *_) = await get(owner, "goals?interval=day&timezone=Europe/Berlin&browser=Chrome")
    (day,) = row["interval"]
    assert day.pop("date").endswith("T00:00:00+02:00")
    assert day == {"conversions": 1, "visits": 1, "visits_percentage": 1.0}


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_amounts_are_exact_when_the_limit_on_new_values_is_used_up(
    server: Server, owner: Browser
) -> None:
    new_values = {**server.store.settings.new_values, Dimension.PROPERTY: 1}
    server.store.apply(evolve(server.store.settings, new_values=new_values))
    await visits(owner)
    await goal(owner, "Paid", event="order", revenue="total", currency="EUR")
    late: dict[str, object] = {"order": "a map", "total": 1234567.895}
    await send(owner, FIREFOX, {"e": "custom", "g": "example.com", "d": late})
    values = await get(owner, "properties?prop_name=order")
    assert [row["value"] for row in values] == ["(other)", "book"]
    answer = await owner.ask("GET", "/website/example.com/goals")
    assert b'"sum":1234580.500' in answer.body


def defined_as(definition: object) -> str:
    return "definition=" + quote(msgspec.json.encode(definition))


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_goal_is_previewed_and_not_defined(server: Server, owner: Browser) -> None:
    await visits(owner)
    cart = {"name": "", "path": "/c*", "value": None}
    expected = {"conversions": 2, "visits": 2, "visits_percentage": 1.0}
    assert await get(owner, f"goals/preview?{defined_as(cart)}") == expected
    paid = {"event": " order ", "value": "pen", "revenue": "total", "currency": "EUR"}
    preview = await get(owner, f"goals/preview?{defined_as(paid)}&path=/cart")
    revenue = {"sum": 0.105, "mean": 0.105, "median": 0.105, "currency": "EUR"}
    assert preview == {
        "conversions": 1, "visits": 1, "visits_percentage": 0.5, "revenue": revenue
    }  # fmt: skip
    before = await get(owner, f"goals/preview?{defined_as(cart)}&end=2001-01-01T00:00:00Z")
    assert before == {"conversions": 0, "visits": 0, "visits_percentage": 0.0}
    assert (await owner.ask("GET", GOALS)).json == []
    settings = server.store.settings
    server.store.apply(evolve(settings, visits=evolve(settings.visits, is_on=False)))
    assert await get(owner, f"goals/preview?{defined_as(cart)}") == {"conversions": 2}


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_funnel_is_previewed_and_not_defined(server: Server, owner: Browser) -> None:
    await visits(owner)
    goals = [await goal(owner, "Cart", path="/cart"), await goal(owner, "Paid", event="order")]
    preview = f"funnels/preview?{defined_as({'goals': goals})}"
    assert await get(owner, preview) == {
        "steps": [
            {"goal": goals[0], "name": "Cart", "visits": 2, "visits_percentage": 1.0},
            {"goal": goals[1], "name": "Paid", "visits": 1, "visits_percentage": 0.5},
        ]
    }
    backwards = await get(owner, f"funnels/preview?{defined_as({'goals': goals[::-1]})}")
    assert [step["visits"] for step in backwards["steps"]] == [1, 0]
    assert (await owner.ask("GET", FUNNELS)).json == []
    settings = server.store.settings
    server.store.apply(evolve(settings, visits=evolve(settings.visits, is_on=False)))
    assert (await owner.ask("GET", f"/website/example.com/{preview}")).status == 404


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("goals/preview", "definition: required, a JSON object"),
        ("goals/preview?definition=x", "definition: expected valid JSON in UTF-8"),
        ("goals/preview?definition=1", "definition: expected an object, got a whole number"),
        ("goals/preview?" + defined_as({"path": 1}), "path: expected text or null, got a whole "),
        ("goals/preview?" + defined_as({}), "path: expected exactly one of path and event"),
        (
            "goals/preview?" + defined_as({"path": "/", "revenue": "total"}),
            "currency: expected both revenue and currency, or neither",
        ),
        ("goals/preview?start=x", "start: "),
        ("funnels/preview", "definition: required, a JSON object"),
        ("funnels/preview?definition={}", "goals: required"),
        ("funnels/preview?" + defined_as({"goals": ["a"]}), "goals: expected 2 to 8 goals in "),
        ("funnels/preview?" + defined_as({"goals": ["a", "b"]}), "goals: there is no goal a"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_what_is_wrong_with_a_preview_is_named(
    owner: Browser, query: str, error: str
) -> None:
    answer = await owner.ask("GET", f"/website/example.com/{query}")
    assert answer.status == 400
    assert answer.error.startswith(error)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_the_steps_of_a_funnel(server: Server, owner: Browser) -> None:
    await visits(owner)
    cart, paid = await goal(owner, "Cart", path="/cart"), await goal(owner, "Paid", event="order")
    created = await owner.ask("POST", FUNNELS, {"name": "Checkout", "goals": [cart, paid]})
    assert isinstance(created.json, dict)
    funnel = created.json["id"]
    steps = [
        {"goal": cart, "name": "Cart", "visits": 2, "visits_percentage": 1.0},
        {"goal": paid, "name": "Paid", "visits": 1, "visits_percentage": 0.5},
    ]
    found = await get(owner, f"funnels/{funnel}")
    assert found == {"id": funnel, "name": "Checkout", "steps": steps}
    (website,) = server.store.websites.all()
    share = make_share("club", website.number, (), "", NOW)
    await server.store.shares.add(share.id.encode(), share)
    shown = await server.browser().ask(
        "GET",
        f"/website/example.com/funnels/{funnel}?browser=Firefox",
        headers={"X-Medamad-Share": share.id},
    )
    assert isinstance(shown.json, dict)
    assert [step["visits"] for step in shown.json["steps"]] == [1, 1]
    answer = await owner.ask("GET", "/website/example.com/funnels/x")
    assert (answer.status, answer.error) == (404, "there is no funnel x")
    settings = server.store.settings
    server.store.apply(evolve(settings, visits=evolve(settings.visits, is_on=False)))
    answer = await owner.ask("GET", f"/website/example.com/funnels/{funnel}")
    assert (answer.status, "visits are switched off" in answer.error) == (404, True)
    (row, _) = await get(owner, "goals")
    assert row == {"id": cart, "name": "Cart", "conversions": 2}


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_all_goals_together_have_a_limited_number_of_buckets(owner: Browser) -> None:
    for number in range(2):
        await goal(owner, str(number), path="/")
    period = "start=2025-01-01T00:00:00Z&end=2025-02-01T00:00:00Z&interval=minute"
    answer = await owner.ask("GET", f"/website/example.com/goals?{period}")
    assert (answer.status, answer.error) == (
        400,
        "interval: expected at most 50000 buckets of all goals together, not every minute",
    )


@pytest.mark.parametrize(
    ("rest", "status", "reason"),
    [
        ("pages?goal=x", 400, "goal: there is no goal x"),
        ("export?what=statistics&goal[eq]=x", 400, "goal[eq]: there is no goal x"),
        ("summary?goal[neq]=x", 400, "goal[neq]: expected the operator eq"),
        ("pages?conversions=x", 404, "conversions: there is no goal x"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_an_unknown_goal_is_named(
    server: Server, owner: Browser, rest: str, status: int, reason: str
) -> None:
    await server.store.add_website("other.example", NOW)
    answer = await owner.ask("GET", f"/website/example.com/{rest}")
    assert (answer.status, answer.error) == (status, reason)
    known = await goal(owner, "Cart", path="/cart")
    known_there = rest.replace("=x", f"={known}").replace("neq", "eq")
    assert (await owner.ask("GET", f"/website/example.com/{known_there}")).status == 200
    assert (await owner.ask("GET", f"/website/other.example/{known_there}")).status == status


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_without_visits_nothing_is_filtered_by_them(server: Server, owner: Browser) -> None:
    ordered = await goal(owner, "Order", event="order")
    settings = server.store.settings
    server.store.apply(evolve(settings, visits=evolve(settings.visits, is_on=False)))
    for name, parameter in (
        ("goal", f"goal={ordered}"),
        ("entry_page", "entry_page[neq]=/"),
        ("visit_referrer", "visit_referrer=x"),
        ("conversions", f"conversions={ordered}"),
    ):
        answer = await owner.ask("GET", f"/website/example.com/pages?{parameter}")
        assert answer.status == 400
        assert answer.error.startswith(f"{name}: visits are switched off")
