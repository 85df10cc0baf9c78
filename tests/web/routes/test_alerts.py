import re

import pytest
import pytest_twisted
from support.storage.hits import a_view
from support.web.client import Answer, Browser
from support.web.daemon_in_memory import NOW, Server, sent

from medamad.accounts.tokens import make_token
from medamad.daemon.alert_watch import AlertWatch
from medamad.domain.accounts import Scope
from medamad.domain.errors import Unavailable

ALERTS = "/websites/example.com/alerts"
OF_SERVICE = "/user/alerts"
URL = "https://hooks.example.com/T0P/secret"
QUIET = {"kind": "quiet", "url": URL}
MAILED = {"kind": "quiet", "format": "mail", "report": "r"}
DISK = {"kind": "disk", "threshold": 1_000_000, "url": URL, "format": "slack"}


def members(answer: Answer) -> dict[str, object]:
    assert isinstance(answer.json, dict)
    return answer.json


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.parametrize(
    ("path", "details", "also"),
    [(ALERTS, QUIET, {"format": "json", "secret": f"secret of {URL}"}), (OF_SERVICE, DISK, {})],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_alerts_are_defined_listed_and_removed(
    owner: Browser, prefix: str, path: str, details: dict[str, object], also: dict[str, object]
) -> None:
    alerts = prefix + path
    assert (await owner.ask("GET", alerts)).json == []
    made = await owner.ask("POST", alerts, details)
    assert made.status == 201
    alert = members(made)
    assert re.fullmatch(r"[\w-]{8}", str(alert["id"]))
    assert alert == {
        "id": alert["id"],
        **details,
        **also,
        # Its path is a secret.
        "url": "https://hooks.example.com/",
        "dateFired": None,
        "dateBegan": None,
        "failure": None,
    }
    assert (await owner.ask("GET", alerts)).json == [alert]
    assert (await owner.ask("DELETE", f"{alerts}/{alert['id']}")).status == 204
    assert (await owner.ask("GET", alerts)).json == []
    again = await owner.ask("DELETE", f"{alerts}/{alert['id']}")
    assert (again.status, again.error) == (404, f"there is no alert {alert['id']}")


@pytest.mark.parametrize("path", [ALERTS, OF_SERVICE])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_an_alert_is_changed(server: Server, owner: Browser, path: str) -> None:
    kind, other = ("referrer", "quiet") if path == ALERTS else ("disk", "backup")
    details = {"kind": kind, "threshold": 1_000_000, "url": URL, "format": "slack"}
    alert = members(await owner.ask("POST", path, details))
    await server.site.backend.alerts.look()
    await sent(server)
    one = f"{path}/{alert['id']}"
    for change, expected in (
        ({}, {}),
        ({"format": "ntfy"}, {"format": "ntfy"}),
        ({"threshold": 7}, {"threshold": 7}),
        ({"url": "https://b.example/x"}, {"url": "https://b.example/"}),
    ):
        alert = alert | expected
        changed = await owner.ask("PATCH", one, change)
        assert (changed.status, members(changed) | {"dateFired": 0, "dateBegan": 0}) == (
            200,
            alert | {"dateFired": 0, "dateBegan": 0},
        )
        (listed,) = (await owner.ask("GET", path)).json
        assert listed == members(changed)
    for change, reason in (
        ({"threshold": None}, f"threshold: expected 1 to 1,000,000 with kind {kind}"),
        ({"threshold": 0}, f"threshold: expected 1 to 1,000,000 with kind {kind}"),
        ({"kind": "other"}, "kind: expected one of "),
        ({"url": None}, "url: expected an address"),
        ({"goal": "x"}, f"goal: not expected with kind {kind}"),
        ({"format": "mail", "url": None, "report": "r"}, "report: there is no report r"),
    ):
        refused = await owner.ask("PATCH", one, change)
        assert refused.status == 400
        assert refused.error.startswith(reason)
    assert (await owner.ask("GET", path)).json == [listed]
    changed = await owner.ask("PATCH", one, {"kind": other, "threshold": None})
    assert "threshold" not in members(changed)
    assert (await owner.ask("PATCH", f"{path}/other", {})).status == 404


@pytest_twisted.ensureDeferred
async def test_a_change_of_what_an_alert_looks_at_ends_what_it_has_found(
    server: Server, owner: Browser
) -> None:
    alert = members(await owner.ask("POST", OF_SERVICE, DISK))
    await server.site.backend.alerts.look()
    await sent(server)
    one = f"{OF_SERVICE}/{alert['id']}"
    same = members(await owner.ask("PATCH", one, {"threshold": 1_000_000}))
    assert (same["dateFired"], same["dateBegan"]) == (NOW, NOW)
    changed = members(await owner.ask("PATCH", one, {"threshold": 999_999}))
    assert (changed["dateFired"], changed["dateBegan"]) == (NOW, None)
    server.now += 60
    await server.site.backend.alerts.look()
    await sent(server)
    (listed,) = (await owner.ask("GET", OF_SERVICE)).json
    assert (listed["dateFired"], listed["dateBegan"]) == (NOW + 60, NOW + 60)


@pytest_twisted.ensureDeferred
async def test_the_list_shows_when_an_alert_last_fired(server: Server, owner: Browser) -> None:
    await owner.ask("POST", OF_SERVICE, DISK)
    server.receiver.failure = "500 Internal Server Error"
    await server.site.backend.alerts.look()
    await sent(server)
    (alert,) = (await owner.ask("GET", OF_SERVICE)).json
    assert (alert["dateFired"], alert["dateBegan"]) == (NOW, NOW)
    assert alert["failure"] == "500 Internal Server Error: go away"


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_an_alert_can_be_tried(server: Server, owner: Browser) -> None:
    alert = members(await owner.ask("POST", ALERTS, QUIET | {"format": "ntfy"}))
    tried = await owner.ask("POST", f"{ALERTS}/{alert['id']}/test")
    text = "This is a test. At the moment, the alert has nothing to report."
    assert (tried.status, tried.json) == (200, {"text": text, "firing": False, "failure": None})
    assert [(posted.url, posted.body) for posted in server.receiver.posted] == [
        (URL, text.encode())
    ]
    assert (await owner.ask("POST", f"{ALERTS}/other/test")).status == 404


@pytest.mark.parametrize("kind", ["goal", "no-goal"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_goal_has_to_be_one_of_the_website(
    server: Server, owner: Browser, kind: str
) -> None:
    details = {"kind": kind, "hours": 24, "url": URL, "format": "discord"}
    details |= {"threshold": 1} if kind == "goal" else {}
    refused = await owner.ask("POST", ALERTS, details | {"goal": "other"})
    assert (refused.status, refused.error) == (400, "goal: there is no goal other")
    goal = members(
        await owner.ask("POST", "/websites/example.com/goals", {"name": "Cart", "path": "/cart"})
    )
    alert = members(await owner.ask("POST", ALERTS, details | {"goal": goal["id"]}))
    (website,) = server.store.websites.all()
    await server.store.append([a_view(website.number, time_ms=NOW * 1000, path="/cart")])
    tried = await owner.ask("POST", f"{ALERTS}/{alert['id']}/test")
    assert members(tried)["firing"] is (kind == "goal")


@pytest.mark.parametrize(
    ("path", "body", "reason"),
    [
        (ALERTS, {}, "kind: required"),
        (ALERTS, MAILED, "report: there is no report r"),
        (
            ALERTS,
            QUIET | {"threshold": "1"},
            "threshold: expected a whole number or null, got text",
        ),
        (ALERTS, DISK, "kind: expected one of quiet, spike, drop, referrer, goal, no-goal"),
        (OF_SERVICE, QUIET, "kind: expected one of disk, backup, limits, damage, import"),
        (OF_SERVICE, DISK | {"threshold": 0}, "threshold: expected 1 to 1,000,000 with kind disk"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_bad_alerts(owner: Browser, path: str, body: dict[str, object], reason: str) -> None:
    refused = await owner.ask("POST", path, body)
    assert (refused.status, refused.error) == (400, reason)


@pytest_twisted.ensureDeferred
async def test_the_hundred_and_first_is_refused(owner: Browser) -> None:
    for _ in range(100):
        assert (await owner.ask("POST", OF_SERVICE, DISK)).status == 201
    refused = await owner.ask("POST", OF_SERVICE, DISK)
    assert (refused.status, refused.error) == (400, "alerts: there can be 100, remove one first")


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_those_of_the_service_take_a_token_for_all_websites(server: Server) -> None:
    (website,) = server.store.websites.all()
    text, key, token = make_token("one", Scope.FULL, [website.number], NOW + 60, NOW)
    await server.store.tokens.add(key, token)
    program, headers = server.browser(), {"Authorization": f"Bearer {text}"}
    assert (await program.ask("GET", ALERTS, headers=headers)).json == []
    refused = await program.ask("GET", OF_SERVICE, headers=headers)
    assert (refused.status, refused.error) == (403, "this takes a token for all websites")


@pytest_twisted.ensureDeferred
async def test_a_key_that_cannot_be_read_keeps_nobody_from_the_list(
    server: Server, owner: Browser
) -> None:
    def unreadable(_url: str) -> str:
        raise Unavailable("the key of webhooks: /key: Permission denied", retry_after=60)

    backend = server.site.backend
    backend.alerts = AlertWatch(backend, server.receiver.post, unreadable, 0)
    alert = members(await owner.ask("POST", OF_SERVICE, DISK | {"format": "json"}))
    assert "secret" not in alert
    assert alert["failure"] == "the key of webhooks: /key: Permission denied"
    tried = members(await owner.ask("POST", f"{OF_SERVICE}/{alert['id']}/test"))
    assert tried["failure"] == "the key of webhooks: /key: Permission denied"
    assert server.receiver.posted == []


@pytest_twisted.ensureDeferred
async def test_before_the_daemon_has_begun_to_look_alerts_are_unavailable(
    server: Server, owner: Browser
) -> None:
    await owner.ask("POST", OF_SERVICE, DISK)
    server.site.backend.alerts = None
    refused = await owner.ask("GET", OF_SERVICE)
    assert (refused.status, refused.error) == (503, "the daemon is still starting")
