"""Access checks and the order of errors, for every route."""

from collections.abc import Callable
from itertools import product

import pytest
import pytest_twisted
from support.log_failures import LoggedFailures
from support.web.client import Browser, Connection, encoded
from support.web.daemon_in_memory import Server
from twisted.internet.defer import Deferred, fail

from medamad.query.request import Cancelled

CHANGES = [
    ("PATCH", "/user"),
    ("DELETE", "/user"),
    ("POST", "/websites"),
    ("PATCH", "/websites/example.com"),
    ("DELETE", "/websites/example.com"),
]
READINGS = [
    ("GET", "/user"),
    ("GET", "/user/usage"),
    ("GET", "/websites"),
    ("GET", "/websites/example.com"),
    ("GET", "/website/example.com/summary"),
]
LOGOUT = ("POST", "/auth/logout")
REFUSED_BODIES = [
    ({"Content-Length": "16385"}, b"", 413),
    ({"Transfer-Encoding": "chunked"}, b"4001\r\n" + b"x" * 16_385, 413),
    ({"Transfer-Encoding": "chunked"}, b"no chunk\r\n", 400),
]


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.parametrize(("method", "target"), [*CHANGES, *READINGS, LOGOUT])
@pytest_twisted.ensureDeferred
async def test_401_comes_before_every_other_error(
    server: Server, visitor: Browser, prefix: str, method: str, target: str
) -> None:
    server.set(demo=True)
    target = target.replace("example.com", "%zz")
    for headers in (
        {},
        {"Cookie": "_me_sess="},
        {"Cookie": "_me_sess=nonsense"},
        {"Cookie": "other=1; _me_sess=\xff"},
        {"Sec-Fetch-Site": "cross-site", "Content-Type": "text/plain"},
    ):
        answer = await visitor.ask(
            method, f"{prefix}{target}?limit=x&%zz", body=b"{", headers=headers
        )
        assert answer.status == 401
        assert answer.error


@pytest.mark.parametrize(("method", "target"), [*CHANGES, LOGOUT])
@pytest_twisted.ensureDeferred
async def test_changes_from_another_origin_are_403(
    owner: Browser, method: str, target: str
) -> None:
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        answer = await owner.ask(method, target, body=b"{", headers=headers)
        assert answer.status == 403
        assert answer.error == "this request comes from a page of another origin"
    assert (await owner.ask("GET", "/user")).status == 200


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        *((*change, 400) for change in (*CHANGES, *READINGS, LOGOUT)),
        *(("POST", "/auth/login", 400), ("GET", "/", 400), ("GET", "/dashboard/", 400)),
        *(("GET", "/openapi.yaml", 400), ("GET", "/event/ping", 200), ("GET", "/script.js", 200)),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_an_unknown_host_is_rejected_if_hosts_are_configured(
    server: Server, owner: Browser, method: str, target: str, status: int
) -> None:
    server.set(hostnames=frozenset({"stats.example.com"}))
    # As by a page whose name was made to stand for our address: of the same origin to its browser.
    rebound = {
        "Host": "evil.example",
        "Origin": "http://evil.example",
        "Sec-Fetch-Site": "same-origin",
    }
    answer = await owner.ask(method, target, headers=rebound)
    assert answer.status == status
    if status == 400:
        assert answer.error == "Host: expected one of the hostnames in the service's configuration"
        assert (await owner.ask(*READINGS[0])).status == 200
    if (method, target) in (*CHANGES, *READINGS, LOGOUT):
        assert (await server.browser().ask(method, target, headers=rebound)).status == 401


@pytest.mark.parametrize(("method", "target"), READINGS)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_responses_are_not_cached_or_sniffed(
    owner: Browser, method: str, target: str
) -> None:
    answer = await owner.ask(method, target)
    assert answer.header("Cache-Control") == "no-store"
    assert answer.header("X-Content-Type-Options") == "nosniff"


@pytest.mark.parametrize(("method", "target"), READINGS)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_reading_needs_no_origin(owner: Browser, method: str, target: str) -> None:
    answer = await owner.ask(method, target, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 200
    assert answer.header("Access-Control-Allow-Origin") is None


@pytest.mark.parametrize(("method", "target"), CHANGES)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_demo_cannot_be_changed(
    server: Server, owner: Browser, method: str, target: str
) -> None:
    server.set(demo=True)
    answer = await owner.ask(method, target, {"hostname": "new.example", "username": "other"})
    assert answer.status == 403
    assert answer.error == "this is a demonstration: nothing can be changed"
    assert (await owner.ask("GET", "/websites")).json == [{"hostname": "example.com"}]


@pytest_twisted.ensureDeferred
async def test_a_demo_allows_logging_in_and_out(server: Server, owner: Browser) -> None:
    server.set(demo=True)
    assert (await owner.ask("GET", "/user")).status == 200
    assert (await owner.ask(*LOGOUT)).status == 204
    assert (await owner.log_in("ada", "correct horse")).status == 200


@pytest.mark.parametrize(("method", "target"), [*CHANGES[:1], *CHANGES[2:4]])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_body_must_be_json_and_declared_as_such(
    owner: Browser, method: str, target: str
) -> None:
    for content_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {"Content-Type": content_type}
        answer = await owner.ask(method, target, body=b'{"hostname": "a.b"}', headers=headers)
        assert answer.status == 400
        assert answer.error == "Content-Type: expected application/json"
    for body, message in (
        (b"", "body: expected a JSON object, got nothing"),
        (b'{"x":' + b"[" * 10_000, "body: expected valid JSON in UTF-8"),
        (b'{"hostname": 1' + b"0" * 5000 + b"}", "hostname: "),
        (b'{"hostname": "\\ud800"}', "hostname: "),
    ):
        headers = {"Content-Type": "application/json"}
        answer = await owner.ask(method, target, body=body, headers=headers)
        if target == "/user" and message == "hostname: ":
            continue
        assert answer.status == 400
        assert answer.error.startswith(message)


@pytest_twisted.ensureDeferred
async def test_too_large_a_body_is_413_everywhere(owner: Browser) -> None:
    for method, target in (*CHANGES, ("POST", "/auth/login"), ("POST", "/event/hit")):
        answer = await owner.ask(method, target, body=b"x" * 16_385)
        assert answer.status == 413
        assert answer.error == "body: expected at most 16384 bytes"


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.parametrize(("method", "target"), [*CHANGES, *READINGS, LOGOUT])
@pytest_twisted.ensureDeferred
async def test_401_comes_before_an_error_in_the_body(
    server: Server, owner: Browser, prefix: str, method: str, target: str
) -> None:
    target = f"{prefix}{target.replace('example.com', '%zz')}?x=%zz"
    for headers, body, refusal in (
        *REFUSED_BODIES,
        ({"Content-Length": "16385", "Expect": "100-continue"}, b"", 413),
    ):
        for cookie, status in ((None, 401), ("nonsense", 401), (owner.cookie, refusal)):
            sent = headers if cookie is None else headers | {"Cookie": f"_me_sess={cookie}"}
            answer = await Connection(server.site).talk(encoded(method, target, sent) + body)
            assert answer.status == status
            assert answer.error.startswith("the session cookie" if status == 401 else "body: ")
            assert answer.header("Connection") == "close"


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.parametrize(
    ("method", "target"),
    [
        ("POST", "/auth/login"),
        ("POST", "/event/hit"),
        ("PUT", "/user"),
        ("POST", "/nothing"),
        ("GET", "//user"),
        ("GET", "/openapi.yaml"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_public_route_rejects_too_large_a_body_without_a_cookie(
    server: Server, prefix: str, method: str, target: str
) -> None:
    request = encoded(method, prefix + target, {"Content-Length": "16385"})
    answer = await Connection(server.site).talk(request)
    assert answer.status == 413
    assert answer.error == "body: expected at most 16384 bytes"


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest_twisted.ensureDeferred
async def test_any_origin_may_read_why_an_event_was_rejected(server: Server, prefix: str) -> None:
    for headers, body, status in REFUSED_BODIES:
        sent = headers | {"Origin": "https://a.example"}
        request = encoded("POST", prefix + "/event/hit", sent) + body
        answer = await Connection(server.site).talk(request)
        assert answer.status == status
        assert answer.header("Access-Control-Allow-Origin") == "*"
        assert answer.header("Access-Control-Expose-Headers") == "X-Api-Commit, X-Medamad-Ignored"
        assert answer.header("Access-Control-Allow-Credentials") is None


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.parametrize(
    ("origin", "credentials"), [("https://dash.example", "true"), ("https://evil.example", None)]
)
@pytest_twisted.ensureDeferred
async def test_configured_origins_may_read_why_a_body_was_rejected(
    server: Server, owner: Browser, prefix: str, origin: str, credentials: str | None
) -> None:
    server.set(cors_origins=frozenset({"https://dash.example"}))
    for cookie, (headers, body, refusal) in product((owner.cookie, ""), REFUSED_BODIES):
        sent = headers | {"Origin": origin, "Cookie": f"_me_sess={cookie}"}
        request = encoded("POST", prefix + "/websites", sent) + body
        answer = await Connection(server.site).talk(request)
        assert answer.status == (refusal if cookie else 401)
        assert answer.header("Vary") == "Origin"
        assert answer.header("Access-Control-Allow-Origin") == (origin if credentials else None)
        assert answer.header("Access-Control-Allow-Credentials") == credentials


@pytest_twisted.ensureDeferred
async def test_configured_origins_may_read_with_the_cookie(server: Server, owner: Browser) -> None:
    server.set(cors_origins=frozenset({"https://dash.example"}))
    origin = {"Origin": "https://dash.example", "Sec-Fetch-Site": "cross-site"}
    for method, target, status in (
        ("GET", "/user", 200),
        ("GET", "/nothing", 404),
        ("GET", "//user", 404),
        ("PUT", "/user", 405),
        ("PATCH", "/user", 400),
        ("DELETE", "/websites/a.example", 404),
    ):
        answer = await owner.ask(method, target, headers=origin)
        assert answer.status == status
        assert answer.header("Access-Control-Allow-Origin") == "https://dash.example"
        assert answer.header("Access-Control-Allow-Credentials") == "true"
        assert answer.header("Access-Control-Expose-Headers") == "X-Api-Commit, X-Medamad-Partial"
        assert answer.header("Vary") == "Origin"
    answer = await owner.ask("GET", "/user", headers={"Origin": "https://evil.example"})
    assert answer.header("Access-Control-Allow-Origin") is None
    assert answer.header("Vary") == "Origin"


@pytest_twisted.ensureDeferred
async def test_a_preflight_is_answered_for_configured_origins(
    server: Server, visitor: Browser
) -> None:
    server.set(cors_origins=frozenset({"https://dash.example"}))
    headers = {"Origin": "https://dash.example", "Access-Control-Request-Method": "PATCH"}
    answer = await visitor.ask("OPTIONS", "/api/websites/a.example", headers=headers)
    assert answer.status == 204
    assert answer.header("Access-Control-Allow-Origin") == "https://dash.example"
    assert answer.header("Access-Control-Allow-Credentials") == "true"
    assert answer.header("Access-Control-Allow-Methods") == "DELETE, GET, HEAD, OPTIONS, PATCH"
    assert answer.header("Access-Control-Allow-Headers") == "Authorization, Content-Type"
    answer = await visitor.ask("OPTIONS", "/user", headers={"Origin": "https://evil.example"})
    assert answer.status == 204
    assert answer.header("Allow") == "DELETE, GET, HEAD, OPTIONS, PATCH"
    assert answer.header("Access-Control-Allow-Origin") is None
    assert answer.header("Access-Control-Allow-Methods") is None
    assert (await visitor.ask("OPTIONS", "/nothing")).status == 404


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest_twisted.ensureDeferred
async def test_an_internal_error_is_500_and_only_logged(
    server: Server, owner: Browser, website: str, logged_failures: LoggedFailures, prefix: str
) -> None:
    server.site.backend.run_query = lambda _question, **_: fail(ZeroDivisionError("a secret"))
    answer = await owner.ask("GET", f"{prefix}/website/{website}/pages?path=/secret")
    assert answer.status == 500
    assert answer.error == "an internal error; see the server's log"
    (text,) = logged_failures.texts()
    assert text.startswith("responding to GET /website/<hostname>/pages failed\n")
    assert "/secret" not in text
    assert len(logged_failures.take(ZeroDivisionError)) == 1


@pytest_twisted.ensureDeferred
async def test_a_change_is_completed_if_the_client_disconnects(
    server: Server, owner: Browser, website: str
) -> None:
    connection = Connection(server.site)
    headers = {"Cookie": f"_me_sess={owner.cookie}"}
    connection.push(encoded("DELETE", f"/websites/{website}", headers))
    connection.close()
    assert (await owner.ask("GET", "/websites")).status == 200
    while server.store.websites.all():
        await server.store.maintain(0)
    assert connection.wire.value() == b""


@pytest_twisted.ensureDeferred
async def test_a_waiting_query_is_cancelled_if_the_client_disconnects(
    server: Server, owner: Browser, website: str
) -> None:
    asked: Deferred[bytes] = Deferred()
    server.site.backend.run_query = lambda _question, **_: asked
    connection = Connection(server.site)
    headers = {"Cookie": f"_me_sess={owner.cookie}"}
    connection.push(encoded("GET", f"/website/{website}/pages", headers))
    connection.close()
    assert asked.called
    assert connection.wire.value() == b""


@pytest_twisted.ensureDeferred
async def test_a_running_query_is_cancelled_if_the_client_disconnects(
    server: Server, owner: Browser, website: str
) -> None:
    begun: list[Callable[[], object]] = []
    asked: Deferred[bytes] = Deferred()

    def ask(question: Callable[[], object], **_: object) -> Deferred[bytes]:
        begun.append(question)
        return asked

    body = b'{"e":"load","b":"b1","u":"http://example.com/","p":true,"q":true}'
    assert (await owner.ask("POST", "/event/hit", body=body)).status == 204
    server.site.backend.run_query = ask
    connection = Connection(server.site)
    headers = {"Cookie": f"_me_sess={owner.cookie}"}
    connection.push(encoded("GET", f"/website/{website}/pages?path=/", headers))
    (question,) = begun
    question()
    connection.close()
    with pytest.raises(Cancelled):
        question()
