import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Browser
from support.web.daemon_in_memory import NOW, Server

SETTINGS = "/websites/example.com/settings"
OTHER = "/websites/other.example/settings"
NOTE = {"time": "2026-01-31", "text": "New prices"}
QUIET = {"kind": "quiet", "url": "https://hooks.example.com/T0P/secret"}


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_settings_are_copied_to_another_website(server: Server, owner: Browser) -> None:
    await server.store.add_website("other.example", NOW)
    of = "/websites/example.com"
    ids = []
    for goal in ({"name": "Cart", "path": "/cart"}, {"name": "Paid", "path": "/paid"}):
        made = (await owner.ask("POST", f"{of}/goals", goal)).json
        assert isinstance(made, dict)
        ids.append(made["id"])
    funnel = {"name": "Checkout", "goals": ids}
    flood = {"name": "Flood", "filters": f"goal={ids[0]}", "start": "2026-01-31T00:00:00Z"}
    defined = (("funnels", funnel), ("exclusions", flood), ("annotations", NOTE), ("alerts", QUIET))
    for path, details in defined:
        assert (await owner.ask("POST", f"{of}/{path}", details)).status == 201
    exported = await owner.ask("GET", f"{SETTINGS}/export")
    assert exported.status == 200
    assert b"T0P" not in exported.body
    counts = {"goals": 2, "funnels": 1, "exclusions": 1, "annotations": 1, "alerts": 1}
    counts |= {"settings": 0}
    imported = await owner.ask("POST", f"{OTHER}/import", exported.json)
    # New websites have three switches on, of which nothing has to be changed.
    assert (imported.status, imported.json) == (200, counts | {"known": 3, "without_report": 0})
    again = await owner.ask("POST", f"{OTHER}/import", exported.json)
    none = dict.fromkeys(counts, 0)
    assert again.json == none | {"known": 9, "without_report": 0}
    there = (await owner.ask("GET", f"{OTHER}/export")).json
    assert isinstance(there, dict)
    (rule,) = there["exclusions"]
    assert rule == flood | {"filters": f"goal={there['goals'][0]['id']}", "created": NOW}
    (copied,) = there["funnels"]
    assert copied["goals"] == [goal["id"] for goal in there["goals"]] != ids
    assert there["alerts"] == [{**QUIET, "url": "https://hooks.example.com/", "format": "json"}]


@pytest.mark.parametrize(
    ("body", "status", "error"),
    [
        ({"goals": [{"id": "c", "name": "Cart"}]}, 400, "path: expected exactly one of path and"),
        ({"goals": [{"name": "Cart", "path": "/"}]}, 400, "goals[0].id: required"),
        ({"exclusions": [{"name": "a", "filters": "pth=/"}]}, 400, "pth: there is no such filter"),
        ({"exclusions": [{"name": "a"}]}, 400, "exclusions: expected at least one filter, or a"),
        ({"goals": [{"id": "c", "name": "New", "path": "/other"}]}, 409, "goals: New is there"),
        ({"alerts": "none"}, 400, "alerts: expected"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_of_what_is_refused_nothing_is_stored(
    owner: Browser, body: dict[str, object], status: int, error: str
) -> None:
    await owner.ask("POST", "/websites/example.com/goals", {"name": "New", "path": "/new"})
    before = (await owner.ask("GET", f"{SETTINGS}/export")).json
    refused = await owner.ask(
        "POST", f"{SETTINGS}/import", {"annotations": [NOTE | {"id": "n"}]} | body
    )
    assert refused.status == status
    assert refused.error.startswith(error)
    assert (await owner.ask("GET", f"{SETTINGS}/export")).json == before


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_the_preset_for_privacy_stays(server: Server, owner: Browser) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, is_exempt=True, respect_gpc=True)
    body = {"settings": {"respect_gpc": False, "bots": "strict"}}
    refused = await owner.ask("POST", f"{SETTINGS}/import", body)
    message = "respect_gpc: the configuration's preset for privacy requires it"
    assert (refused.status, refused.error) == (400, message)
    body["settings"]["respect_gpc"] = True
    assert (await owner.ask("POST", f"{SETTINGS}/import", body)).status == 200
    assert (await owner.ask("GET", f"{SETTINGS}/export")).json["settings"]["bots"] == "strict"
