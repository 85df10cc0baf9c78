import re

import pytest
import pytest_twisted
from support.web.client import Answer, Browser
from support.web.daemon_in_memory import NOW, Server

from medamad.accounts.shares import make_share
from medamad.accounts.tokens import make_token
from medamad.domain.accounts import Scope
from medamad.domain.annotations import Annotation, Annotations
from medamad.domain.instants import second_as_text

ANNOTATIONS = "/websites/example.com/annotations"
LAUNCH = {"time": "2025-06-02", "text": "Launch"}
DEPLOY = {
    "time": "2025-06-03T16:30:00Z",
    "text": "Deploy 1.4",
    "link": "https://example.com/changes/1.4",
}

A_TIME = "a day such as 2026-01-31, or an RFC 3339 date-time such as 2026-01-31T18:00:00Z"
AN_ADDRESS = "an address that begins with https:// or http://, of at most 2,048 characters"


def members(answer: Answer) -> dict[str, object]:
    assert isinstance(answer.json, dict)
    return answer.json


async def added(owner: Browser, details: dict[str, str], path: str = ANNOTATIONS) -> str:
    answer = await owner.ask("POST", path, details)
    assert answer.status == 201
    return str(members(answer)["id"])


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_annotations_are_added_listed_changed_and_removed(
    owner: Browser, prefix: str
) -> None:
    path = prefix + ANNOTATIONS
    assert (await owner.ask("GET", path)).json == []
    created = await owner.ask("POST", path, DEPLOY | {"time": "2025-06-03T18:30:00.5+02:00"})
    assert created.status == 201
    deploy = members(created)
    assert re.fullmatch(r"[\w-]{8}", str(deploy["id"]))
    assert deploy == {"id": deploy["id"]} | DEPLOY
    launch = members(await owner.ask("POST", path, LAUNCH | {"text": " Launch ", "link": None}))
    assert launch == {"id": launch["id"]} | LAUNCH
    assert (await owner.ask("GET", path)).json == [launch, deploy]
    changed = await owner.ask("PATCH", f"{path}/{deploy['id']}", {"link": None})
    del deploy["link"]
    assert (changed.status, changed.json) == (200, deploy)
    earlier = {"text": "Deploy 1.4.1", "time": "2025-05-31"}
    changed = await owner.ask("PATCH", f"{path}/{deploy['id']}", earlier)
    assert (changed.status, changed.json) == (200, deploy | earlier)
    assert (await owner.ask("GET", path)).json == [deploy | earlier, launch]
    removed = await owner.ask("DELETE", f"{path}/{launch['id']}")
    assert (removed.status, removed.body) == (204, b"")
    assert (await owner.ask("GET", path)).json == [deploy | earlier]


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_without_a_time_it_is_now(owner: Browser) -> None:
    for sent in ({"text": "Deploy"}, {"text": "Deploy", "time": None}):
        answer = await owner.ask("POST", ANNOTATIONS, sent)
        assert members(answer)["time"] == second_as_text(NOW)


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", "Launch Deploy"),
        ("?start=2025-06-03T00:00:00Z", "Deploy"),
        ("?end=2025-06-03T00:00:00Z", "Launch"),
        ("?start=2025-06-02T23:59:59Z&end=2025-06-03T16:29:59Z", "Launch"),
        # In New York, the day lasts until four o'clock UTC.
        ("?start=2025-06-03T03:59:59Z", "Deploy"),
        ("?start=2025-06-03T03:59:59Z&timezone=America/New_York", "Launch Deploy"),
        ("?start=2025-06-02T23:59:59-04:00", "Launch Deploy"),
        ("?start=2025-06-03T04:00:00Z&timezone=America/New_York", "Deploy"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_those_of_a_period_are_listed(owner: Browser, query: str, shown: str) -> None:
    await added(owner, LAUNCH)
    await added(owner, DEPLOY | {"text": "Deploy"})
    answer = await owner.ask("GET", ANNOTATIONS + query)
    assert answer.status == 200
    assert isinstance(answer.json, list)
    assert " ".join(each["text"] for each in answer.json) == shown


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("?start=monday", "start: expected an RFC 3339 date-time such as 2024-01-31T00:00:00Z"),
        ("?timezone=Mars", "timezone: expected an IANA time zone such as Europe/Berlin"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_other_periods_are_rejected(owner: Browser, query: str, reason: str) -> None:
    refused = await owner.ask("GET", ANNOTATIONS + query)
    assert (refused.status, refused.error) == (400, reason)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({"text": None}, "text: expected text, got null"),
        ({"text": ""}, "text: expected 1 to 200 characters, got 0"),
        ({"text": "x" * 201}, "text: expected 1 to 200 characters, got 201"),
        ({"time": "yesterday"}, f"time: expected {A_TIME}"),
        ({"link": "javascript:alert(1)"}, f"link: expected {AN_ADDRESS}"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_what_is_wrong_is_rejected_and_nothing_is_lost(
    owner: Browser, sent: dict[str, object], reason: str
) -> None:
    launch = await added(owner, LAUNCH)
    refused = await owner.ask("POST", ANNOTATIONS, DEPLOY | sent)
    assert (refused.status, refused.error) == (400, reason)
    refused = await owner.ask("PATCH", f"{ANNOTATIONS}/{launch}", sent)
    assert (refused.status, refused.error) == (400, reason)
    assert (await owner.ask("GET", ANNOTATIONS)).json == [{"id": launch} | LAUNCH]


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_one_more_than_a_thousand_is_rejected(server: Server, owner: Browser) -> None:
    (website,) = server.store.websites.all()
    notes = tuple(Annotation(id=str(number), **LAUNCH) for number in range(999))
    await server.store.annotations.change(website.number, lambda _: Annotations(notes))
    await added(owner, LAUNCH)
    refused = await owner.ask("POST", ANNOTATIONS, LAUNCH)
    assert (refused.status, refused.error) == (
        400,
        "annotations: a website can have 1,000, remove one first",
    )


@pytest.mark.parametrize(("method", "body"), [("PATCH", {"text": "a"}), ("DELETE", None)])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_what_is_missing_is_not_found(
    owner: Browser, method: str, body: dict[str, object] | None
) -> None:
    refused = await owner.ask(method, f"{ANNOTATIONS}/x", body)
    assert (refused.status, refused.error) == (404, "there is no annotation x")
    elsewhere = ANNOTATIONS.replace("example.com", "other.example")
    refused = await owner.ask(method, f"{elsewhere}/x", body)
    assert (refused.status, refused.error) == (
        404,
        "hostname: no website other.example is registered",
    )


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_each_website_has_annotations_of_its_own(server: Server, owner: Browser) -> None:
    await server.store.add_website("other.example", NOW)
    launch = await added(owner, LAUNCH)
    others = ANNOTATIONS.replace("example.com", "other.example")
    assert (await owner.ask("GET", others)).json == []
    assert (await owner.ask("DELETE", f"{others}/{launch}")).status == 404
    await owner.ask("PATCH", "/websites/example.com", {"hostname": "new.example"})
    renamed = await owner.ask("GET", ANNOTATIONS.replace("example.com", "new.example"))
    assert renamed.json == [{"id": launch} | LAUNCH]


@pytest.mark.parametrize(
    ("shown", "may"),
    [
        ("share", "GET"),
        ("read", "GET"),
        ("send", ""),
        ("annotate", "POST"),
        ("full", "GET POST PATCH DELETE"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_who_may_read_and_change_them(
    server: Server, owner: Browser, shown: str, may: str
) -> None:
    (website,) = server.store.websites.all()
    launch = await added(owner, LAUNCH)
    if shown == "share":
        share = make_share("club", website.number, (), "", NOW)
        await server.store.shares.add(share.id.encode(), share)
        headers = {"X-Medamad-Share": share.id}
    else:
        text, key, token = make_token("pipeline", Scope(shown), [website.number], None, NOW)
        await server.store.tokens.add(key, token)
        headers = {"Authorization": f"Bearer {text}"}
    somebody = server.browser()
    statuses = {}
    for method, path, body in (
        ("GET", ANNOTATIONS, None),
        ("POST", ANNOTATIONS, DEPLOY),
        ("PATCH", f"{ANNOTATIONS}/{launch}", {"text": "A"}),
        ("DELETE", f"{ANNOTATIONS}/{launch}", None),
    ):
        answer = await somebody.ask(method, path, body, headers=headers)
        statuses[method] = answer.status
    done = {"GET": 200, "POST": 201, "PATCH": 200, "DELETE": 204}
    assert statuses == {
        method: status if method in may.split() else 403 for method, status in done.items()
    }


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_token_that_annotates_sends_no_hits(server: Server) -> None:
    text, key, token = make_token("pipeline", Scope.ANNOTATE, None, None, NOW)
    await server.store.tokens.add(key, token)
    hit = {"e": "load", "b": "b", "u": "https://example.com/", "p": True, "q": True}
    headers = {"Authorization": f"Bearer {text}"}
    refused = await server.browser().ask("POST", "/event/hit", hit, headers=headers)
    assert (refused.status, refused.error) == (
        403,
        "this takes a token whose scope is full or send",
    )
