import re

import pytest
import pytest_twisted
from support.web.client import Browser
from support.web.daemon_in_memory import NOW, Server

TOKENS = "/user/tokens"


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_token_is_created_shown_once_listed_used_and_revoked(
    server: Server, owner: Browser, prefix: str
) -> None:
    wanted = {
        "name": "report",
        "scope": "read",
        "websites": ["Example.com"],
        # With a point: JSON knows no difference.
        "dateExpires": float(NOW + 600),
    }
    made = await owner.ask("POST", prefix + TOKENS, wanted)
    assert made.status == 201
    assert isinstance(made.json, dict)
    text = made.json["token"]
    assert re.fullmatch("medamad_[A-Za-z0-9_-]{43}", text)
    known = {
        "id": made.json["id"],
        "name": "report",
        "scope": "read",
        "websites": ["example.com"],
        "dateCreated": NOW,
        "dateExpires": NOW + 600,
        "dateLastUsed": None,
    }
    assert made.json == known | {"token": text}
    listed = await owner.ask("GET", prefix + TOKENS)
    assert listed.json == [known]
    headers = {"Authorization": f"Bearer {text}"}
    reader = server.browser()
    assert (await reader.ask("GET", "/website/example.com/pages", headers=headers)).status == 200
    assert (await owner.ask("DELETE", f"{prefix}{TOKENS}/{known['id']}")).status == 204
    assert (await reader.ask("GET", "/website/example.com/pages", headers=headers)).status == 401
    assert (await owner.ask("GET", prefix + TOKENS)).json == []
    gone = await owner.ask("DELETE", f"{prefix}{TOKENS}/{known['id']}")
    assert (gone.status, gone.error) == (404, "there is no such token")


@pytest_twisted.ensureDeferred
async def test_a_token_is_for_all_websites_by_default(owner: Browser) -> None:
    made = await owner.ask("POST", TOKENS, {"name": "a", "scope": "full"})
    assert isinstance(made.json, dict)
    assert made.json["websites"] is None


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"scope": "read"}, "name: required"),
        ({"name": "a"}, "scope: required"),
        ({"name": "a", "scope": "write"}, "scope: expected one of read, send, annotate, full"),
        ({"name": "", "scope": "read"}, "name: expected 1 to 64 characters, got 0"),
        ({"name": 1, "scope": "read"}, "name: expected text, got a whole number"),
        (
            {"name": "a", "scope": "read", "websites": ["nowhere.example"]},
            "websites: no website nowhere.example is registered",
        ),
        (
            {"name": "a", "scope": "read", "websites": []},
            "websites: expected at least one, or null for all of them",
        ),
        (
            {"name": "a", "scope": "read", "websites": ["a b"]},
            (
                "websites: expected a hostname of letters, digits and hyphens, "
                "without scheme, port or path"
            ),
        ),
        (
            {"name": "a", "scope": "read", "dateExpires": NOW},
            "dateExpires: expected a Unix time in the future",
        ),
        (
            {"name": "a", "scope": "read", "dateExpires": NOW + 600.5},
            "dateExpires: expected a whole number or null",
        ),
    ],
)
@pytest_twisted.ensureDeferred
async def test_invalid_tokens_are_rejected(
    owner: Browser, body: dict[str, object], reason: str
) -> None:
    refused = await owner.ask("POST", TOKENS, body)
    assert (refused.status, refused.error) == (400, reason)
    assert (await owner.ask("GET", TOKENS)).json == []


@pytest_twisted.ensureDeferred
async def test_tokens_survive_a_new_password_but_not_a_deletion(
    server: Server, owner: Browser
) -> None:
    made = await owner.ask("POST", TOKENS, {"name": "a", "scope": "read"})
    assert isinstance(made.json, dict)
    headers = {"Authorization": f"Bearer {made.json['token']}"}
    assert (await owner.ask("PATCH", "/user", {"password": "another"})).status == 200
    assert (await server.browser().ask("GET", "/websites", headers=headers)).status == 200
    assert (await owner.ask("DELETE", "/user")).status == 204
    assert (await server.browser().ask("GET", "/websites", headers=headers)).status == 401
