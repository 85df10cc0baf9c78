from urllib.parse import quote

import msgspec
import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Browser
from support.web.daemon_in_memory import Server

from medamad.web.routes.website_settings import MAX_PREVIEW

SETTINGS = "/websites/example.com/settings"
AS_ADDED = {
    "bots": None,
    "hosting": None,
    "respect_gpc": None,
    "blocked_networks": [],
    "blocked_countries": [],
    "allowed_hosts": [],
    "excluded_paths": [],
    "redacted_paths": [],
    "redact_uuids": True,
    "redact_hexadecimal": True,
    "redact_emails": True,
    "kept_parameters": [],
    "configured": {
        "bots": "declared",
        "hosting": "count",
        "respect_gpc": False,
        "origins": "website",
    },
}
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:131.0) Gecko/20100101 Firefox/131.0"


async def view(owner: Browser, path: str, gpc: str = "0") -> str | None:
    body = {"e": "load", "b": path, "u": f"https://example.com{path}", "p": True, "q": True}
    headers = {"User-Agent": FIREFOX, "Sec-GPC": gpc}
    answer = await owner.ask("POST", "/event/hit", body, headers=headers)
    assert answer.status == 204
    return answer.header("X-Medamad-Ignored")


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_settings_are_read_and_changed_one_by_one(server: Server, owner: Browser) -> None:
    assert (await owner.ask("GET", SETTINGS)).json == AS_ADDED
    answer = await owner.ask("PATCH", SETTINGS, {"bots": "strict", "blocked_countries": ["de"]})
    changed = AS_ADDED | {"bots": "strict", "blocked_countries": ["DE"]}
    assert (answer.status, answer.json) == (200, changed)
    answer = await owner.ask(
        "PATCH", SETTINGS, {"bots": None, "allowed_hosts": ["Bücher.example", "bücher.example"]}
    )
    changed |= {"bots": None, "allowed_hosts": ["xn--bcher-kva.example"]}
    assert answer.json == changed
    rules = evolve(server.pipeline.rules, bots="off", hosting_rule="ignore", respect_gpc=True)
    server.pipeline.rules = rules
    changed["configured"] = {
        "bots": "off",
        "hosting": "ignore",
        "respect_gpc": True,
        "origins": "website",
    }
    assert (await owner.ask("GET", SETTINGS)).json == changed
    # Its name may change, and another website has settings of its own.
    await owner.ask("PATCH", "/websites/example.com", {"hostname": "renamed.example"})
    assert (await owner.ask("GET", "/websites/renamed.example/settings")).json == changed
    await owner.ask("POST", "/websites", {"hostname": "example.com"})
    assert (await owner.ask("GET", SETTINGS)).json == AS_ADDED | {
        "configured": changed["configured"]
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bots": "some"}, "bots: expected one of declared, off, strict"),
        ({"hosting": "apart"}, "hosting: expected one of count, count apart, ignore"),
        ({"respect_gpc": "yes"}, "respect_gpc: "),
        ({"redact_uuids": None}, "redact_uuids: "),
        ({"blocked_networks": ["192.0.2.0/33"]}, "blocked_networks: '192.0.2.0/33'"),
        ({"blocked_networks": ["192.0.2.1/24"]}, "blocked_networks: 192.0.2.1/24 has host bits"),
        ({"blocked_networks": [""]}, "blocked_networks: expected texts of 1 to 512 characters"),
        ({"blocked_countries": ["Germany"]}, "blocked_countries: expected ISO 3166 codes"),
        ({"allowed_hosts": ["https://a.example"]}, "allowed_hosts: expected a hostname"),
        ({"excluded_paths": ["admin"]}, "excluded_paths: expected paths that begin with a slash"),
        ({"redacted_paths": ["reset/*"]}, "redacted_paths: expected paths that begin with"),
        ({"redacted_paths": ["/reset"]}, "redacted_paths: expected a * for each segment"),
        ({"redacted_paths": ["/reset-*"]}, "redacted_paths: expected each * to be a whole"),
        ({"redacted_paths": ["/**/a"]}, "redacted_paths: expected ** at the end alone"),
        ({"kept_parameters": ["t\n"]}, "kept_parameters: expected texts of 1 to 512"),
        ({"kept_parameters": ["t\0x"]}, "kept_parameters: expected texts without control"),
        *(
            ({"kept_parameters": ["t", name]}, "kept_parameters: expected names of parameters, ")
            for name in ("a&b", "t=1", "t#")
        ),
        (
            {"kept_parameters": [f"t{n}" for n in range(101)]},
            "kept_parameters: expected at most 100",
        ),
        (
            {"blocked_networks": [f"10.0.{n >> 8}.{n & 255}" for n in range(501)]},
            "blocked_networks: expected at most 500 entries",
        ),
        (
            {"excluded_paths": [f"/{n}/{'x' * 400}" for n in range(40)]},
            "settings: expected at most 16,000 bytes of JSON in all",
        ),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_wrong_setting_is_400_and_named(
    owner: Browser, change: dict[str, object], message: str
) -> None:
    asked = [await owner.ask("PATCH", SETTINGS, change)]
    if len(msgspec.json.encode(change)) <= MAX_PREVIEW:
        asked += [await owner.ask("GET", preview_of(change))]
    for answer in asked:
        assert (answer.status, answer.error[: len(message)]) == (400, message)
    assert (await owner.ask("GET", SETTINGS)).json == AS_ADDED


def preview_of(change: object) -> str:
    return f"{SETTINGS}/preview?settings={quote(msgspec.json.encode(change))}"


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_preview_of_many_settings_is_400_and_named(owner: Browser) -> None:
    for length, status in ((100, 200), (140, 400)):
        change = {"excluded_paths": [f"/{n}".ljust(length, "[") for n in range(30)]}
        answer = await owner.ask("GET", preview_of(change))
        assert answer.status == status
    assert answer.error == "settings: expected at most 4,000 characters in a preview"


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_the_preset_for_privacy_stays(server: Server, owner: Browser) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, is_exempt=True, respect_gpc=True)
    answer = await owner.ask("PATCH", SETTINGS, {"respect_gpc": False})
    message = "respect_gpc: the configuration's preset for privacy requires it"
    assert (answer.status, answer.error) == (400, message)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_settings_apply_to_the_next_hit_and_to_no_other_website(owner: Browser) -> None:
    await owner.ask("POST", "/websites", {"hostname": "other.example"})
    await owner.ask("PATCH", "/websites/other.example/settings", {"excluded_paths": ["/a"]})
    assert await view(owner, "/a") is None
    await owner.ask("PATCH", SETTINGS, {"excluded_paths": ["/a"], "respect_gpc": True})
    assert await view(owner, "/a") == "path"
    assert await view(owner, "/b", gpc="1") == "gpc"
    assert await view(owner, "/c") is None
    ignored = (await owner.ask("GET", "/website/example.com/ignored")).json
    assert {row["reason"]: row["hits"] for row in ignored} == {"path": 1, "gpc": 1}


@pytest.mark.parametrize("is_configured", [True, False])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_browser_with_gpc_is_given_no_date_if_the_website_respects_it(
    server: Server, owner: Browser, *, is_configured: bool
) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, respect_gpc=is_configured)
    gpc = {"Sec-GPC": "1", "Origin": "https://example.com"}
    for respects in (not is_configured, is_configured, None):
        await owner.ask("PATCH", SETTINGS, {"respect_gpc": respects})
        is_respected = is_configured if respects is None else respects
        for target in ("ping?n=example.com", "ping?u=example.com%2Fa", "ping"):
            answer = await owner.ask("GET", f"/event/{target}", headers=gpc)
            assert (answer.header("Last-Modified") is None) is is_respected, (respects, target)
        answer = await owner.ask("GET", "/event/pixel.gif?u=https://example.com/", headers=gpc)
        assert (answer.header("Last-Modified") is None) is is_respected, respects


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_preview_shows_what_would_be_stored_and_changes_nothing(owner: Browser) -> None:
    await owner.ask("PATCH", SETTINGS, {"redact_uuids": False})
    for path in ("/", "/reset/a", "/reset/b", "/admin/a", "/about"):
        await view(owner, path)
    change = {"redacted_paths": ["/reset/*"], "excluded_paths": ["/admin/*"]}
    assert (await owner.ask("GET", preview_of(change))).json == {
        "paths": 5,
        "redacted": 2,
        "excluded": 1,
        "stored": 3,
        "changes": [
            {"path": "/reset/a", "stored": "/reset/…"},
            {"path": "/reset/b", "stored": "/reset/…"},
            {"path": "/admin/a", "stored": None},
        ],
    }
    settings = (await owner.ask("GET", SETTINGS)).json
    assert settings == AS_ADDED | {"redact_uuids": False}
