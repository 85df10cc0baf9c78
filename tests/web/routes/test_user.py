import sys
from importlib.metadata import metadata, version

import pytest
import pytest_twisted
from support.web.client import Browser
from support.web.daemon_in_memory import NOW, PASSWORD, USERNAME, Server

from medamad import __version__

USER = "/user"


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest_twisted.ensureDeferred
async def test_the_account_is_shown(owner: Browser, prefix: str) -> None:
    answer = await owner.ask("GET", prefix + USER)
    assert answer.status == 200
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert answer.header("Cache-Control") == "no-store"
    assert answer.json == {
        "username": USERNAME,
        "settings": {"language": "en", "script_type": ["default"]},
        "dateCreated": NOW,
        "dateUpdated": NOW,
    }


@pytest_twisted.ensureDeferred
async def test_everything_can_be_changed_at_once(server: Server, owner: Browser) -> None:
    server.now += 5
    change = {
        "username": "grace",
        "password": "a new one",
        "settings": {"language": "de", "script_type": ["default", "click-events"]},
    }
    answer = await owner.ask("PATCH", USER, change)
    assert answer.status == 200
    expected = {
        "username": "grace",
        "settings": change["settings"],
        "dateCreated": NOW,
        "dateUpdated": NOW + 5,
    }
    assert answer.json == expected
    assert (await owner.ask("GET", USER)).json == expected
    assert (await server.browser().log_in("grace", "a new one")).status == 200


@pytest.mark.parametrize("change", [{}, {"unknown": 1}, {"settings": {}}])
@pytest_twisted.ensureDeferred
async def test_an_empty_change_changes_nothing(
    server: Server, owner: Browser, change: dict[str, object]
) -> None:
    before = (await owner.ask("GET", USER)).json
    server.now += 5
    answer = await owner.ask("PATCH", USER, change)
    assert (answer.status, answer.json) == (200, before)


@pytest_twisted.ensureDeferred
async def test_a_new_password_ends_every_other_session(server: Server, owner: Browser) -> None:
    other = server.browser()
    await other.log_in(USERNAME, PASSWORD)
    assert (await owner.ask("PATCH", USER, {"password": "a new one"})).status == 200
    assert (await owner.ask("GET", USER)).status == 200
    assert (await other.ask("GET", USER)).status == 401


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"username": "ab"}, "username"),
        ({"username": "x" * 49}, "username"),
        ({"username": 3}, "username"),
        ({"username": None}, "username"),
        ({"password": "abcd"}, "password"),
        ({"password": "x" * 129}, "password"),
        ({"password": False}, "password"),
        ({"settings": []}, "settings"),
        ({"settings": None}, "settings"),
        ({"settings": {"language": "xx"}}, "settings.language"),
        ({"settings": {"language": 1}}, "settings.language"),
        ({"settings": {"script_type": "default"}}, "settings.script_type"),
        ({"settings": {"script_type": ["nothing"]}}, "settings.script_type"),
        ({"settings": {"script_type": ["default", "default"]}}, "settings.script_type"),
        ([], "body"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_an_invalid_change_is_400_and_changes_nothing(
    owner: Browser, change: object, field: str
) -> None:
    before = (await owner.ask("GET", USER)).json
    if isinstance(change, dict) and "settings" not in change:
        change = {"settings": {"language": "fr"}} | change
    answer = await owner.ask("PATCH", USER, change)
    assert answer.status == 400
    assert answer.error.startswith(field)
    assert (await owner.ask("GET", USER)).json == before


@pytest_twisted.ensureDeferred
async def test_deleting_the_account_resets_the_service(
    server: Server, owner: Browser, website: str
) -> None:
    answer = await owner.ask("DELETE", USER)
    assert (answer.status, answer.body) == (204, b"")
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert (await owner.ask("GET", USER)).status == 401
    await owner.log_in(USERNAME, PASSWORD)
    assert (await owner.ask("GET", "/websites")).json == []
    assert (await owner.ask("GET", f"/websites/{website}")).status == 404
    assert server.store.account.read() is not None


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_deleting_the_account_clears_the_rejected_hits(
    server: Server, owner: Browser
) -> None:
    uncounted = server.pipeline.uncounted
    await server.store.add_website("other.example", NOW)
    numbers = [website.number for website in server.store.websites.all()]
    for number in (None, *numbers):
        uncounted.count(number, "bot", NOW)
    assert (await owner.ask("DELETE", USER)).status == 204
    assert [uncounted.of(number, NOW) for number in numbers] == [[], []]
    assert uncounted.of(None, NOW) != []


@pytest_twisted.ensureDeferred
async def test_usage_describes_the_machine(owner: Browser) -> None:
    answer = await owner.ask("GET", "/user/usage")
    assert answer.status == 200
    usage = answer.json
    assert isinstance(usage, dict)
    assert {"cpu", "memory", "disk"} <= set(usage)
    assert set(usage["cpu"]) == {"usage", "cores", "threads"}
    assert 0 <= usage["cpu"]["usage"] <= 100
    assert 1 <= usage["cpu"]["cores"] <= usage["cpu"]["threads"]
    for volume in ("memory", "disk", "storage"):
        assert 0 < usage[volume]["used"] <= usage[volume]["total"]
    assert usage["process"]["memory"] > 0
    assert usage["process"]["threads"] >= 1


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_usage_counts_hits(server: Server, owner: Browser, visitor: Browser) -> None:
    async def hits() -> dict[str, object]:
        return (await owner.ask("GET", "/api/user/usage")).json["hits"]

    assert await hits() == {"accepted": 0, "refused": [], "unknown_hostnames": []}
    load = {"e": "load", "p": True, "q": True}
    for url, status in (
        ("https://example.com/", 204),
        ("https://shop.example.com/a", 404),
        ("https://www2.example.com/b", 404),
        ("ftp://example.com/", 400),
    ):
        server.now += 1
        answer = await visitor.ask("POST", "/event/hit", {**load, "b": url[:20], "u": url})
        assert answer.status == status
    expected = {
        "accepted": 1,
        "refused": [
            {"reason": "unknown-website", "hits": 2, "last": NOW + 3},
            {"reason": "malformed", "hits": 1, "last": NOW + 4},
        ],
        "unknown_hostnames": [
            {"hostname": "www2.example.com", "hits": 1, "last": NOW + 3},
            {"hostname": "shop.example.com", "hits": 1, "last": NOW + 2},
        ],
    }
    assert await hits() == expected
    # What is registered is unknown no more.
    await owner.ask("POST", "/websites", {"hostname": "shop.example.com"})
    assert await hits() == expected | {"unknown_hostnames": expected["unknown_hostnames"][:1]}


@pytest_twisted.ensureDeferred
async def test_usage_describes_the_service(server: Server, owner: Browser) -> None:
    usage = (await owner.ask("GET", "/user/usage")).json
    assert usage["tracker"] == {"script_name": "script.js", "event_name": "event"}
    assert usage["service"] == {
        "version": __version__,
        "commit": "c0ffee1",
        "licence": "Apache-2.0",
        "demo": False,
        "timezone": "UTC",
        "export_formats": ["csv", "ndjson", "parquet"],
    }
    assert version("medamad") == __version__
    assert metadata("medamad")["License-Expression"] == usage["service"]["licence"]
    server.set(demo=True, script_name="s.js", event_name="pulse")
    usage = (await owner.ask("GET", "/user/usage")).json
    assert usage["tracker"] == {"script_name": "s.js", "event_name": "pulse"}
    assert usage["service"]["demo"] is True


@pytest_twisted.ensureDeferred
async def test_usage_lists_the_export_formats(
    owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    await owner.ask("POST", "/websites", {"hostname": "example.com"})
    formats = (await owner.ask("GET", "/user/usage")).json["service"]["export_formats"]
    assert formats == ["csv", "ndjson"]
    for name, status in (("csv", 200), ("ndjson", 200), ("parquet", 400)):
        answer = await owner.ask("HEAD", f"/website/example.com/export?format={name}")
        assert (name, answer.status) == (name, status)
