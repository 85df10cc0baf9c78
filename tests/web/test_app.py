"""URLs: where routes are mounted, and what is not found."""

import subprocess
import sys

import pytest
import pytest_twisted
from support.web.client import Browser, Connection, encoded
from support.web.daemon_in_memory import Server

from medamad.web.routing import interface_routes

NOWHERE = [
    "/nothing",
    "/api",
    "/api/",
    "/api/nothing",
    "/api/api/user",
    "/api/script.js",
    "/api/dashboard/",
    "/user/",
    "//user",
    "/api//user",
    "/user//usage",
    "/USER",
    "/website/example.com",
    "/website/example.com/",
    "/website/example.com/nothing",
    "/website//pages",
    "/websites/",
    "/websites/a/b",
    "/event",
    "/event/hit/",
    "/event%2Fhit",
    "/dashboards/nothing",
    "/pulse/hit",
    "/api/pulse/ping",
    "/favicon.ico",
    "/.well-known/security.txt",
    "/;x",
    "/a|b",
    "/a\\b",
    "/<script>",
    "nothing",
]


@pytest.mark.parametrize("target", NOWHERE)
@pytest_twisted.ensureDeferred
async def test_an_unknown_path_is_404(owner: Browser, target: str) -> None:
    for method in ("GET", "POST", "DELETE", "OPTIONS", "PROPFIND"):
        answer = await owner.ask(method, target)
        assert answer.status == 404
        assert answer.error == "there is nothing at this address"
        assert answer.header("Location") is None
    answer = await owner.ask("HEAD", target)
    assert (answer.status, answer.body) == (404, b"")


@pytest_twisted.ensureDeferred
async def test_a_path_with_many_segments_is_404(visitor: Browser) -> None:
    assert (await visitor.ask("GET", "/dashboard" + "/a" * 31)).status == 200
    for target in ("/dashboard" + "/a" * 32, "/" * 16_000, "/event" * 2_000, "/%zz" * 4_000):
        answer = await visitor.ask("GET", target)
        assert answer.status == 404
        # None of them is decoded.
        assert answer.error == "there is nothing at this address"


@pytest.mark.parametrize("target", ["/%", "/a%zz", "/%ff", "/api/%c3%28", "/user/%4"])
@pytest_twisted.ensureDeferred
async def test_a_badly_encoded_path_is_400(visitor: Browser, target: str) -> None:
    answer = await visitor.ask("GET", target)
    assert answer.status == 400
    assert answer.error == "path: an invalid percent-escape, or not valid UTF-8"


@pytest.mark.parametrize(
    ("target", "allowed"),
    [
        ("/user", "DELETE, GET, HEAD, OPTIONS, PATCH"),
        ("/api/user/usage", "GET, HEAD, OPTIONS"),
        ("/websites", "GET, HEAD, OPTIONS, POST"),
        ("/auth/login", "OPTIONS, POST"),
        ("/openapi.yaml", "GET, HEAD, OPTIONS"),
        ("/script.js", "GET, HEAD, OPTIONS"),
        ("/", "GET, HEAD, OPTIONS"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_an_unsupported_method_is_405(visitor: Browser, target: str, allowed: str) -> None:
    for method in ("PUT", "TRACE", "BREW"):
        answer = await visitor.ask(method, target)
        assert answer.status == 405
        assert answer.header("Allow") == allowed
        assert answer.error == f"this address takes only {allowed}"


@pytest_twisted.ensureDeferred
async def test_an_absolute_url_is_accepted(server: Server, visitor: Browser) -> None:
    answer = await visitor.ask("GET", "http://stats.example.com/event/ping?u=x")
    assert (answer.status, answer.body) == (200, b"0")
    answer = await Connection(server.site).talk(encoded("GET", "http://stats.example.com", {}))
    assert answer.header("Location") == "/dashboard/"


@pytest_twisted.ensureDeferred
async def test_segments_may_be_percent_encoded(owner: Browser) -> None:
    answer = await owner.ask("GET", "/%61pi/%75ser")
    assert answer.status == 200


def test_both_prefixes_have_the_same_routes(server: Server) -> None:
    routes = interface_routes(server.site.backend).app.url_map.iter_rules()
    rules = {(rule.rule, *sorted(rule.methods or ())) for rule in routes}
    assert ("/websites/<hostname>", "GET", "HEAD") in rules
    assert ("/event/hit", "POST") in rules
    assert len(rules) == 92


@pytest.mark.parametrize("name", ["pulse", "a.b", "x_1-"])
@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_the_path_of_events_is_configurable(
    server: Server, visitor: Browser, prefix: str, name: str
) -> None:
    server.set(event_name=name)
    load = {"e": "load", "b": "b1", "u": "https://example.com/", "p": True, "q": True}
    for place, first in enumerate((name, "event")):
        answer = await visitor.ask("GET", f"{prefix}/{first}/ping?u=x")
        assert (answer.status, answer.body) == (200, b"0")
        assert answer.header("Access-Control-Allow-Origin") == "*"
        hit = await visitor.ask("POST", f"{prefix}/{first}/hit", {**load, "b": f"b{place}"})
        assert hit.status == 204
        encoded = f"%{ord(first[0]):02x}{first[1:]}"
        answer = await visitor.ask("GET", f"{prefix}/{encoded}/ping")
        assert (answer.status, answer.body) == (200, b"0")
        preflight = await visitor.ask("OPTIONS", f"{prefix}/{first}/hit")
        assert preflight.status == 204
        assert preflight.header("Access-Control-Allow-Methods") == "OPTIONS, POST"
        wrong = await visitor.ask("GET", f"{prefix}/{first}/hit")
        assert (wrong.status, wrong.header("Access-Control-Allow-Origin")) == (405, "*")
        for target in (f"{prefix}/{first}", f"{prefix}/{first}/nothing"):
            assert (await visitor.ask("GET", target)).status == 404
    server.set(event_name="event")
    assert (await visitor.ask("GET", f"{prefix}/{name}/ping")).status == 404
    assert (await visitor.ask("GET", f"{prefix}/event/ping")).status == 200


DETAILS = {"username": "ada", "password": "correct horse"}


@pytest_twisted.ensureDeferred
async def test_everything_is_below_a_base_path_too(server: Server, visitor: Browser) -> None:
    server.set(base_path="/my/stats")
    for target in ("/my/stats", "/my/stats/", "/my/stats/dashboard", "/"):
        answer = await visitor.ask("GET", target)
        assert (answer.status, answer.header("Location")) == (302, "/my/stats/dashboard/")
    for target in ("/my/stats/dashboard/", "/my/stats/dashboard/websites/a.com", "/dashboard/"):
        answer = await visitor.ask("GET", target)
        assert b'src="/my/stats/dashboard/assets/main-' in answer.body
        assert b'href="/my/stats/api/user"' in answer.body
        assert b'="/dashboard/' not in answer.body
    assert b'src="/my/stats/dashboard/' in (await visitor.ask("GET", "/my/stats/share/x")).body
    for target in ("script.js", "scripts/default.js", "api/event/ping", "event/ping"):
        assert (await visitor.ask("GET", f"/my/stats/{target}")).status == 200
    assert b"- url: /my/stats/api\n" in (await visitor.ask("GET", "/my/stats/openapi.yaml")).body
    for target in ("/my/statsx", "/my/stats/my/stats", "/my/stats/nothing", "/my"):
        assert (await visitor.ask("GET", target)).status == 404
    server.set(base_path="")
    assert b'src="/dashboard/assets/main-' in (await visitor.ask("GET", "/dashboard/")).body
    assert (await visitor.ask("GET", "/my/stats/script.js")).status == 404


@pytest.mark.parametrize("prefix", ["/api", ""])
@pytest_twisted.ensureDeferred
async def test_the_device_cookie_is_for_the_login_below_the_base_path(
    server: Server, visitor: Browser, prefix: str
) -> None:
    server.set(base_path="/stats")
    answer = await visitor.ask("POST", f"/stats{prefix}/auth/login", DETAILS)
    assert f"Path=/stats{prefix}/auth/login;" in answer.headers["set-cookie"][1]


def test_routes_load_while_a_hit_loads_what_it_needs() -> None:
    program = """
import builtins, time
from threading import Event, Thread, current_thread
from medamad.lookup.languages import locale_of
from medamad.web.app import Root

import_module = builtins.__import__
begun = Event()

def slow_import(name, globals=None, *args, **kwargs):
    importing = (globals or {}).get("__name__")
    if importing == "werkzeug.test" and current_thread() is hit and not begun.is_set():
        begun.set()
        time.sleep(1)
    return import_module(name, globals, *args, **kwargs)

builtins.__import__ = slow_import
hit = Thread(target=locale_of, args=["en-GB"])
hit.start()
assert begun.wait(60)
Root(None, None).load()
hit.join()
"""
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
