import re

import pytest
import pytest_twisted
from support.web.client import Answer, Browser
from support.web.daemon_in_memory import NOW, Server

from medamad.accounts.shares import make_share
from medamad.accounts.tokens import make_token
from medamad.domain.accounts import Scope

GOALS = "/websites/example.com/goals"
FUNNELS = "/websites/example.com/funnels"
ORDER = {"name": "Order", "event": "order", "revenue": "total", "currency": "EUR"}


def members(answer: Answer) -> dict[str, object]:
    assert isinstance(answer.json, dict)
    return answer.json


async def made(owner: Browser, path: str, details: dict[str, object]) -> str:
    answer = await owner.ask("POST", path, details)
    assert answer.status == 201
    return str(members(answer)["id"])


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_goals_are_defined_listed_changed_and_removed(owner: Browser, prefix: str) -> None:
    goals = prefix + GOALS
    assert (await owner.ask("GET", goals)).json == []
    created = await owner.ask("POST", goals, {"name": " Blog ", "path": "/blog/*", "value": None})
    assert created.status == 201
    blog = members(created)
    assert re.fullmatch(r"[\w-]{8}", str(blog.pop("id")))
    assert blog == {"name": "Blog", "path": "/blog/*"}
    blog = members(created)
    order = members(await owner.ask("POST", goals, ORDER))
    assert order == {"id": order["id"]} | ORDER
    assert (await owner.ask("GET", goals)).json == [blog, order]
    changed = await owner.ask("PATCH", f"{goals}/{order['id']}", {"value": "paid", "name": "Paid"})
    assert (changed.status, changed.json) == (200, order | {"value": "paid", "name": "Paid"})
    without = {"event": None, "value": None, "revenue": None, "currency": None, "path": "/thanks/"}
    changed = await owner.ask("PATCH", f"{goals}/{order['id']}", without)
    page = {"id": order["id"], "name": "Paid", "path": "/thanks"}
    assert (changed.status, changed.json) == (200, page)
    assert (await owner.ask("GET", goals)).json == [blog, page]
    removed = await owner.ask("DELETE", f"{goals}/{blog['id']}")
    assert (removed.status, removed.body) == (204, b"")
    assert (await owner.ask("GET", goals)).json == [page]


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_funnels_are_defined_listed_changed_and_removed(owner: Browser, prefix: str) -> None:
    funnels = prefix + FUNNELS
    ids = [await made(owner, GOALS, {"name": path, "path": path}) for path in ("/a", "/b", "/c")]
    assert (await owner.ask("GET", funnels)).json == []
    created = await owner.ask("POST", funnels, {"name": "Order", "goals": ids[:2]})
    assert created.status == 201
    funnel = members(created)
    assert funnel == {"id": funnel["id"], "name": "Order", "goals": ids[:2]}
    assert (await owner.ask("GET", funnels)).json == [funnel]
    changed = await owner.ask("PATCH", f"{funnels}/{funnel['id']}", {"goals": ids[::-1]})
    assert (changed.status, changed.json) == (200, funnel | {"goals": ids[::-1]})
    assert (await owner.ask("DELETE", f"{funnels}/{funnel['id']}")).status == 204
    assert (await owner.ask("GET", funnels)).json == []


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_goal_of_a_funnel_can_only_be_renamed(owner: Browser) -> None:
    ids = [await made(owner, GOALS, {"name": path, "path": path}) for path in ("/a", "/b")]
    funnel = await made(owner, FUNNELS, {"name": "Checkout", "goals": ids})
    goal = f"{GOALS}/{ids[0]}"
    uses = "the funnel Checkout uses the goal /a, which"
    refused = await owner.ask("PATCH", goal, {"path": "/c"})
    assert (refused.status, refused.error) == (
        409,
        f"{uses} can be renamed, but not changed otherwise",
    )
    refused = await owner.ask("DELETE", goal)
    assert (refused.status, refused.error) == (409, f"{uses} cannot be removed")
    renamed = await owner.ask("PATCH", goal, {"name": "A", "path": "/a"})
    assert (renamed.status, members(renamed)["name"]) == (200, "A")
    await owner.ask("DELETE", f"{FUNNELS}/{funnel}")
    assert (await owner.ask("DELETE", goal)).status == 204


@pytest.mark.parametrize(
    ("path", "body", "status", "reason"),
    [
        (GOALS, {}, 400, "name: required"),
        (GOALS, {"name": 1}, 400, "name: expected text, got a whole number"),
        (GOALS, {"name": "a"}, 400, "path: expected exactly one of path and event"),
        (GOALS, {"name": "a", "path": "a"}, 400, "path: expected a path that begins with / or *"),
        (GOALS, ORDER | {"name": ""}, 400, "name: expected 1 to 100 characters, got 0"),
        (GOALS, ORDER | {"event": "\0"}, 400, "event: expected text without NUL"),
        (
            GOALS,
            ORDER | {"currency": "Euro"},
            400,
            "currency: expected the code of a currency (ISO 4217), such as EUR",
        ),
        (
            GOALS,
            ORDER | {"currency": None},
            400,
            "currency: expected both revenue and currency, or neither",
        ),
        (GOALS, ORDER | {"name": "Taken"}, 409, "name: Taken is taken"),
        (FUNNELS, {"name": "a"}, 400, "goals: required"),
        (
            FUNNELS,
            {"name": "a", "goals": ["x"]},
            400,
            "goals: expected 2 to 8 goals in order, got 1",
        ),
        (FUNNELS, {"name": "a", "goals": ["x", "y"]}, 400, "goals: there is no goal x"),
        (FUNNELS, {"name": "a", "goals": "xy"}, 400, "goals: expected a list, got text"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_what_is_wrong_is_rejected(
    owner: Browser, path: str, body: dict[str, object], status: int, reason: str
) -> None:
    await made(owner, GOALS, {"name": "Taken", "path": "/"})
    other = await made(owner, GOALS, {"name": "Other", "path": "/"})
    before = (await owner.ask("GET", GOALS)).body
    refused = await owner.ask("POST", path, body)
    assert (refused.status, refused.error) == (status, reason)
    if "required" not in reason and path == GOALS:
        cleared = {"path": None, "event": None} | body
        refused = await owner.ask("PATCH", f"{path}/{other}", cleared)
        assert (refused.status, refused.error) == (status, reason)
    assert (await owner.ask("GET", GOALS)).body == before


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", f"{GOALS}/x", {"name": "a"}),
        ("DELETE", f"{GOALS}/x", None),
        ("PATCH", f"{FUNNELS}/x", {"name": "a"}),
        ("DELETE", f"{FUNNELS}/x", None),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_what_is_missing_is_not_found(
    owner: Browser, method: str, path: str, body: dict[str, object] | None
) -> None:
    refused = await owner.ask(method, path, body)
    what = "goal" if "goal" in path else "funnel"
    assert (refused.status, refused.error) == (404, f"there is no {what} x")
    elsewhere = path.replace("example.com", "other.example")
    refused = await owner.ask(method, elsewhere, body)
    assert (refused.status, refused.error) == (
        404,
        "hostname: no website other.example is registered",
    )


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_each_website_has_goals_of_its_own(server: Server, owner: Browser) -> None:
    await server.store.add_website("other.example", NOW)
    goal = await made(owner, GOALS, ORDER)
    others = GOALS.replace("example.com", "other.example")
    assert (await owner.ask("GET", others)).json == []
    assert (await owner.ask("DELETE", f"{others}/{goal}")).status == 404
    assert await made(owner, others, ORDER) != goal
    await owner.ask("PATCH", "/websites/example.com", {"hostname": "new.example"})
    renamed = await owner.ask("GET", GOALS.replace("example.com", "new.example"))
    assert renamed.json == [{"id": goal} | ORDER]
    await owner.ask("DELETE", "/websites/new.example")
    await server.store.add_website("example.com", NOW)
    assert (await owner.ask("GET", GOALS)).json == []


@pytest.mark.parametrize(
    ("shown", "may_change"), [("share", False), ("read", False), ("full", True)]
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_who_reads_figures_reads_goals_and_funnels(
    server: Server, owner: Browser, shown: str, may_change: bool
) -> None:
    (website,) = server.store.websites.all()
    ids = [await made(owner, GOALS, {"name": path, "path": path}) for path in ("/a", "/b")]
    funnel = await made(owner, FUNNELS, {"name": "Checkout", "goals": ids})
    if shown == "share":
        share = make_share("club", website.number, (), "", NOW)
        await server.store.shares.add(share.id.encode(), share)
        headers = {"X-Medamad-Share": share.id}
    else:
        text, key, token = make_token("report", Scope(shown), [website.number], None, NOW)
        await server.store.tokens.add(key, token)
        headers = {"Authorization": f"Bearer {text}"}
    reader = server.browser()
    for path in (GOALS, FUNNELS):
        answer = await reader.ask("GET", path, headers=headers)
        assert (answer.status, answer.json) == (200, (await owner.ask("GET", path)).json)
    status = {}
    for method, path, body in (
        ("POST", GOALS, ORDER),
        ("PATCH", f"{GOALS}/{ids[0]}", {"name": "A"}),
        ("PATCH", f"{FUNNELS}/{funnel}", {"name": "A"}),
        ("DELETE", f"{FUNNELS}/{funnel}", None),
        ("DELETE", f"{GOALS}/{ids[0]}", None),
        ("POST", FUNNELS, {"name": "B", "goals": [ids[1], ids[1]]}),
    ):
        answer = await reader.ask(method, path, body, headers=headers)
        status[method, path] = answer.status
    if may_change:
        assert list(status.values()) == [201, 200, 200, 204, 204, 400]
    else:
        assert set(status.values()) == {403}
