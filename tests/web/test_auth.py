"""Which credentials count if a request has several."""

from typing import Any

import pytest
import pytest_twisted
from support.web.client import Browser
from support.web.daemon_in_memory import HASH, NOW, Server

from medamad.accounts.shares import make_share
from medamad.accounts.tokens import make_token
from medamad.domain.accounts import Scope

PAGES = "/website/example.com/pages"


async def token_for(server: Server, scope: Scope = Scope.READ) -> str:
    text, key, token = make_token("a", scope, None, None, NOW)
    await server.store.tokens.add(key, token)
    return text


@pytest.mark.parametrize("form", ["Bearer {}", "bearer {}", "BEARER   {} "])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_bearer_token_follows_rfc_6750(server: Server, form: str) -> None:
    headers = {"Authorization": form.format(await token_for(server))}
    assert (await server.browser().ask("GET", PAGES, headers=headers)).status == 200


@pytest.mark.parametrize("value", ["Basic YTpi", "Bearer eyJhbGciOi", "Bearer", "", "\xff"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_another_authorization_header_does_not_affect_the_session(
    owner: Browser, visitor: Browser, value: str
) -> None:
    """A proxy in front may have logins of its own, and hand them on."""
    headers = {"Authorization": value}
    assert (await owner.ask("GET", PAGES, headers=headers)).status == 200
    assert (await owner.ask("GET", "/user", headers=headers)).status == 200
    refused = await visitor.ask("GET", PAGES, headers=headers)
    is_token = value.startswith("Bearer ")
    reason = "this is not a token of this service" if is_token else "the session cookie is missing"
    assert (refused.status, refused.error.startswith(reason)) == (401, True), refused.error


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_cookie_does_not_extend_a_token_or_a_share_link(
    server: Server, owner: Browser
) -> None:
    token = {"Authorization": f"Bearer {await token_for(server)}"}
    assert (await owner.ask("GET", "/user", headers=token)).status == 403
    assert (await owner.ask("DELETE", "/websites/example.com", headers=token)).status == 403
    for bad in ({"Authorization": "Bearer medamad_bad"}, {"X-Medamad-Share": "bad"}):
        assert (await owner.ask("GET", PAGES, headers=bad)).status == 401
    share = make_share("club", 1, (), "", NOW)
    await server.store.shares.add(share.id.encode(), share)
    shown = {"X-Medamad-Share": share.id}
    assert (await owner.ask("GET", PAGES, headers=shown)).status == 200
    assert (await owner.ask("GET", "/websites", headers=shown)).status == 403
    assert (await owner.ask("GET", "/website/example.com/ignored", headers=shown)).status == 403


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_network_with_many_bad_tokens_is_throttled(server: Server) -> None:
    good = {"Authorization": f"Bearer {await token_for(server)}"}
    bad = {"Authorization": "Bearer medamad_bad"}
    statuses = [(await server.browser().ask("GET", PAGES, headers=bad)).status for _ in range(11)]
    assert statuses == [*[401] * 10, 429]
    refused = await server.browser().ask("GET", PAGES, headers=bad)
    assert refused.header("Retry-After") == "1"
    assert (await server.browser().ask("GET", PAGES, headers=good)).status == 200
    assert (await server.browser("192.0.2.7").ask("GET", PAGES, headers=bad)).status == 401


@pytest_twisted.ensureDeferred
async def test_a_token_for_some_websites_sees_only_those(server: Server) -> None:
    one, two = [await server.store.add_website(f"{name}.example", NOW) for name in "ab"]
    text, key, token = make_token("a", Scope.FULL, [two.number], None, NOW)
    await server.store.tokens.add(key, token)
    headers = {"Authorization": f"Bearer {text}"}
    browser = server.browser()
    assert (await browser.ask("GET", "/websites", headers=headers)).json == [
        {"hostname": "b.example"}
    ]
    refused = await browser.ask("GET", "/website/a.example/pages", headers=headers)
    assert (refused.status, refused.error) == (403, "hostname: the token is not for a.example")
    # One that is not registered cannot be distinguished.
    unknown = await browser.ask("GET", "/website/z.example/pages", headers=headers)
    assert (unknown.status, unknown.error) == (403, "hostname: the token is not for z.example")
    refused = await browser.ask("POST", "/websites", {"hostname": "c.example"}, headers=headers)
    assert (refused.status, refused.error) == (403, "this takes a token for all websites")
    # Nor does a rename reveal a name in use.
    for name in ("a.example", "c.example"):
        body = {"hostname": name}
        answer = await browser.ask("PATCH", "/websites/b.example", body, headers=headers)
        assert (answer.status, answer.error) == (403, "this takes a token for all websites")
    # It stays with its website through a rename, and is for none once that is gone.
    await server.store.rename_website(two, "c.example", NOW)
    assert (await browser.ask("GET", "/website/c.example/pages", headers=headers)).status == 200
    assert (await browser.ask("DELETE", "/websites/c.example", headers=headers)).status == 204
    again = await server.store.add_website("c.example", NOW)
    assert again.number not in (one.number, two.number)
    assert (await browser.ask("GET", "/website/c.example/pages", headers=headers)).status == 403
    assert (await browser.ask("GET", "/websites", headers=headers)).json == []


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_bad_token_is_rejected_before_a_bad_body(server: Server) -> None:
    good = {"Authorization": f"Bearer {await token_for(server, Scope.FULL)}"}
    bad = {"Authorization": "Bearer medamad_bad"}
    large = {"Content-Length": "16385"}
    browser = server.browser()
    assert (await browser.ask("POST", "/websites", headers=large | bad)).status == 401
    assert (await browser.ask("POST", "/websites", headers=large | good)).status == 413


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_share_link_with_a_password_needs_it(server: Server) -> None:
    share = make_share("club", 1, (), HASH, NOW)
    await server.store.shares.add(share.id.encode(), share)
    refused = await server.browser().ask("GET", PAGES, headers={"X-Medamad-Share": share.id})
    assert (refused.status, refused.error) == (401, "this share link asks for a password")


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_queries_wait_in_the_queue_of_their_client(server: Server) -> None:
    backend, clients = server.site.backend, []
    run_query = backend.run_query

    def recorded(query: Any, client: tuple[Any, ...] = ()) -> Any:
        clients.append(client)
        return run_query(query, client=client)

    backend.run_query = recorded
    share = make_share("club", 1, (), "", NOW)
    await server.store.shares.add(share.id.encode(), share)
    owner = await server.owner()
    bearer = {"Authorization": f"Bearer {await token_for(server)}"}
    shown = {"X-Medamad-Share": share.id}
    asked = [
        (owner, {}, "pages"),
        (owner, bearer, "live"),
        (server.browser("203.0.113.200"), shown, "summary"),
        (server.browser("198.51.100.7"), shown, "time"),
    ]
    for browser, headers, what in asked:
        path = f"/website/example.com/{what}"
        assert (await browser.ask("GET", path, headers=headers)).status == 200
    assert (await owner.ask("GET", "/websites?summary=true")).status == 200
    account, token, *shares, listed = clients
    assert listed == account
    assert len({who for who, _ in (account, token, *shares)}) == 3
    assert [network for _, network in shares] == [b"\xcb\x00\x71", b"\xc6\x33\x64"]
    assert shares[0][0] == shares[1][0]
