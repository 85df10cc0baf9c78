import pytest
import pytest_twisted
from support.web.client import Browser
from support.web.daemon_in_memory import NOW, Server

SHARES = "/websites/example.com/shares"
PASSWORD = "open sesame"


async def made(owner: Browser, **details: object) -> str:
    answer = await owner.ask("POST", SHARES, {"name": "club"} | details)
    assert answer.status == 201
    assert isinstance(answer.json, dict)
    return str(answer.json["id"])


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_link_is_created_listed_opened_and_revoked(
    server: Server, owner: Browser, prefix: str
) -> None:
    answer = await owner.ask(
        "POST", prefix + SHARES, {"name": " club ", "embed": ["https://a.example"]}
    )
    assert answer.status == 201
    assert isinstance(answer.json, dict)
    share = answer.json["id"]
    known = {
        "id": share,
        "name": "club",
        "protected": False,
        "embed": ["https://a.example"],
        "dateCreated": NOW,
    }
    assert answer.json == known
    assert (await owner.ask("GET", prefix + SHARES)).json == [known]
    reader = server.browser()
    opened = await reader.ask("GET", f"{prefix}/shared/{share}")
    assert opened.json == {"protected": False, "hostname": "example.com"}
    headers = {"X-Medamad-Share": share}
    pages = f"{prefix}/website/example.com/pages"
    assert (await reader.ask("GET", pages, headers=headers)).status == 200
    assert (await owner.ask("DELETE", f"{prefix}{SHARES}/{share}")).status == 204
    assert (await reader.ask("GET", pages, headers=headers)).status == 401
    gone = await reader.ask("GET", f"{prefix}/shared/{share}")
    assert (gone.status, gone.error) == (404, "this share link does not exist, or no longer does")
    assert (await owner.ask("DELETE", f"{prefix}{SHARES}/{share}")).status == 404
    assert (await owner.ask("GET", prefix + SHARES)).json == []


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_link_with_a_password_reveals_nothing_without_it(
    server: Server, owner: Browser
) -> None:
    share = await made(owner, password=PASSWORD)
    other = await made(owner, password=PASSWORD)
    reader = server.browser()
    assert (await reader.ask("GET", f"/shared/{share}")).json == {"protected": True}
    refused = await reader.ask("POST", f"/shared/{share}", {"password": "wrong"})
    assert (refused.status, refused.error) == (401, "the password is wrong")
    opened = await reader.ask("POST", f"/shared/{share}", {"password": PASSWORD})
    assert opened.status == 200
    assert opened.header("Set-Cookie") is None
    assert isinstance(opened.json, dict)
    assert opened.json["hostname"] == "example.com"
    headers = {"X-Medamad-Share": opened.json["key"]}
    shown = await reader.ask("GET", f"/shared/{share}", headers=headers)
    assert shown.json == {"protected": True, "hostname": "example.com"}
    assert (await reader.ask("GET", f"/shared/{other}", headers=headers)).json == {
        "protected": True
    }
    answer = await reader.ask("GET", "/website/example.com/summary", headers=headers)
    assert answer.status == 200
    listed = await owner.ask("GET", SHARES)
    assert PASSWORD.encode() not in listed.body
    assert b"argon2" not in listed.body


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_link_is_not_revoked_through_another_website(
    server: Server, owner: Browser
) -> None:
    await server.store.add_website("other.example", NOW)
    share = await made(owner)
    refused = await owner.ask("DELETE", f"/websites/other.example/shares/{share}")
    assert refused.status == 404
    assert (await owner.ask("GET", "/websites/other.example/shares")).json == []
    assert (await server.browser().ask("GET", f"/shared/{share}")).status == 200


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_link_survives_a_rename_but_not_a_deletion(server: Server, owner: Browser) -> None:
    share = await made(owner)
    await owner.ask("PATCH", "/websites/example.com", {"hostname": "new.example"})
    opened = await server.browser().ask("GET", f"/shared/{share}")
    assert opened.json == {"protected": False, "hostname": "new.example"}
    await owner.ask("DELETE", "/websites/new.example")
    assert (await server.browser().ask("GET", f"/shared/{share}")).status == 404
    assert (await server.browser().ask("GET", f"/share/{share}")).status == 404


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "name: required"),
        ({"name": ""}, "name: expected 1 to 64 characters, got 0"),
        ({"name": "a", "password": "four"}, "password: expected 5 to 128 characters, got 4"),
        (
            {"name": "a", "embed": ["a.example"]},
            'embed: expected origins such as "https://www.example.com", or "*"',
        ),
        ({"name": "a", "embed": "*"}, "embed: expected a list, got text"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_invalid_links_are_rejected(
    owner: Browser, body: dict[str, object], reason: str
) -> None:
    refused = await owner.ask("POST", SHARES, body)
    assert (refused.status, refused.error) == (400, reason)
    assert (await owner.ask("GET", SHARES)).json == []


@pytest.mark.parametrize(
    ("embed", "ancestors", "origin"),
    [
        ([], "'none'", "same-origin"),
        (
            ["https://a.example", "http://localhost:8000"],
            "https://a.example http://localhost:8000",
            "cross-origin",
        ),
        (["*"], "*", "cross-origin"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_its_page_may_be_embedded_by_its_origins(
    server: Server, owner: Browser, embed: list[str], ancestors: str, origin: str
) -> None:
    share = await made(owner, embed=embed)
    page, funnel = [
        await server.browser().ask("GET", f"/share/{share}{place}?period=7d")
        for place in ("", "/funnels/x")
    ]
    assert page.status == 200
    assert (funnel.status, funnel.body) == (page.status, page.body)
    assert funnel.headers == page.headers
    assert page.header("Content-Type") == "text/html; charset=utf-8"
    policy = page.header("Content-Security-Policy")
    assert policy is not None
    assert policy.endswith(f"frame-ancestors {ancestors}")
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert page.header("Cross-Origin-Resource-Policy") == origin
    assert page.header("X-Robots-Tag") == "noindex, nofollow"
    assert page.header("Referrer-Policy") == "no-referrer"
    assert b"/api/user" not in page.body
    assert b"noindex" in page.body
    dashboard = await owner.ask("GET", "/dashboard/")
    assert "frame-ancestors 'none'" in str(dashboard.header("Content-Security-Policy"))


@pytest_twisted.ensureDeferred
async def test_the_page_of_an_unknown_link_is_404(visitor: Browser) -> None:
    page = await visitor.ask("GET", f"/share/{'x' * 24}")
    assert page.status == 404
    assert page.header("Content-Type") == "text/html; charset=utf-8"
    assert "frame-ancestors 'none'" in str(page.header("Content-Security-Policy"))
    assert (await visitor.ask("GET", "/share")).status == 404
