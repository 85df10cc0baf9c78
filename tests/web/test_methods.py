"""HEAD, OPTIONS and unsupported methods on every path."""

import re

import pytest
import pytest_twisted
from support.openapi import OPERATIONS
from support.web.client import Browser, Connection, encoded
from support.web.daemon_in_memory import Server

from medamad.web.routing import file_routes, interface_routes


def addresses(server: Server) -> dict[str, set[str]]:
    """Return the methods of every address, parameters filled in."""
    found: dict[str, set[str]] = {}
    for make, prefixes in ((interface_routes, ("", "/api")), (file_routes, ("",))):
        for rule in make(server.site.backend).app.url_map.iter_rules():
            address = rule.rule.replace("<hostname>", "example.com")
            address = re.sub("<[^>]*>", "none", address)
            for prefix in prefixes:
                found.setdefault(prefix + address, set()).update(rule.methods)
    return found


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_head_is_get_without_the_body(server: Server, owner: Browser) -> None:
    seen = 0
    for address, methods in addresses(server).items():
        if "GET" not in methods:
            answer = await owner.ask("HEAD", address)
            assert (answer.status, answer.body) == (405, b""), address
            continue
        for browser in (owner, server.browser()):
            whole, head = [await browser.ask(method, address) for method in ("GET", "HEAD")]
            seen += whole.status == 200
            assert (head.status, head.body) == (whole.status, b""), address
            # What is sent while it is made has chunks, if it has a body.
            known = whole.headers.keys() - {"transfer-encoding"}
            assert head.headers.keys() == known, address
            for name in ("Content-Type", "Cache-Control", "ETag"):
                assert head.header(name) == whole.header(name), address
            if not address.endswith("/user/usage"):
                assert head.header("Content-Length") == whole.header("Content-Length"), address
    assert seen > 40


@pytest_twisted.ensureDeferred
async def test_a_head_request_leaves_the_connection_usable(server: Server) -> None:
    connection = Connection(server.site)
    for _ in range(2):
        for address in ("/event/ping", "/openapi.yaml", "/nothing", "/websites"):
            assert (await connection.talk(encoded("HEAD", address, {}), "HEAD")).body == b""
            assert connection.wire.value() == b""


@pytest_twisted.ensureDeferred
async def test_options_lists_the_methods_of_every_path(server: Server) -> None:
    visitor = server.browser()
    found = addresses(server)
    described = [
        re.sub("{(share|goal|funnel|exclusion|annotation|alert)}", "none", entry.path)
        for entry in OPERATIONS
    ]
    assert {re.sub("{[^}]*}", "example.com", path) for path in described} >= {
        address for address in found if address.startswith("/website")
    }
    for address, methods in found.items():
        answer = await visitor.ask("OPTIONS", address)
        assert (answer.status, answer.body) == (204, b""), address
        assert answer.header("Allow") == ", ".join(sorted({*methods, "OPTIONS"})), address


@pytest_twisted.ensureDeferred
async def test_options_of_the_whole_server(server: Server) -> None:
    connection = Connection(server.site)
    for _ in range(2):
        answer = await connection.talk(encoded("OPTIONS", "*", {}))
        assert answer.status == 204
        assert answer.header("Allow") == "DELETE, GET, HEAD, OPTIONS, PATCH, POST"
    assert (await connection.talk(encoded("GET", "*", {}))).status == 404


@pytest.mark.parametrize("method", ["PUT", "TRACE", "BREW", "get", "Get", "hEAD", "1", "M-SEARCH"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_other_methods_are_405(server: Server, owner: Browser, method: str) -> None:
    for address, methods in addresses(server).items():
        answer = await owner.ask(method, address)
        assert answer.status == 405, address
        assert answer.header("Allow") == ", ".join(sorted({*methods, "OPTIONS"})), address
        assert answer.error
