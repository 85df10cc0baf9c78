import pytest
import pytest_twisted
from support.web.client import Browser
from support.web.daemon_in_memory import PASSWORD, USERNAME, Server

LOGIN, LOGOUT, USER = "/auth/login", "/auth/logout", "/user"
DETAILS = {"username": USERNAME, "password": PASSWORD}


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest_twisted.ensureDeferred
async def test_login_sets_the_cookie(visitor: Browser, prefix: str) -> None:
    answer = await visitor.ask("POST", prefix + LOGIN, DETAILS)
    assert answer.status == 200
    assert answer.body == b""
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert answer.header("Cache-Control") == "no-store"
    cookie, device = answer.headers["set-cookie"]
    value, *attributes = cookie.split("; ")
    name, _, token = value.partition("=")
    assert name == "_me_sess"
    assert len(token) >= 43
    assert attributes == ["Max-Age=2592000", "Path=/", "HttpOnly", "SameSite=Lax", "Secure"]
    value, *attributes = device.split("; ")
    assert value.startswith("_me_device=")
    assert attributes == [
        "Max-Age=34560000",
        f"Path={prefix}/auth/login",
        "HttpOnly",
        "SameSite=Strict",
        "Secure",
    ]
    visitor.cookie = token
    assert (await visitor.ask("GET", prefix + USER)).status == 200


@pytest.mark.parametrize(
    "details",
    [
        {"username": USERNAME, "password": "wrong"},
        {"username": "nobody", "password": PASSWORD},
        {"username": "", "password": ""},
        {"username": "x" * 1024, "password": "x" * 1024},
    ],
)
@pytest_twisted.ensureDeferred
async def test_wrong_credentials_are_401(visitor: Browser, details: dict[str, str]) -> None:
    answer = await visitor.ask("POST", LOGIN, details)
    assert answer.status == 401
    assert answer.error
    assert answer.header("Set-Cookie") is None


@pytest.mark.parametrize(
    ("details", "field"),
    [
        ({"username": USERNAME}, "password"),
        ({"password": PASSWORD}, "username"),
        ({"username": 1, "password": PASSWORD}, "username"),
        ({"username": USERNAME, "password": None}, "password"),
        ({"username": USERNAME, "password": ["x"]}, "password"),
        ({"username": "x" * 1025, "password": PASSWORD}, "username"),
        ({"username": USERNAME, "password": "x" * 1025}, "password"),
        ([], "body"),
        ("text", "body"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_malformed_credentials_are_400(visitor: Browser, details: object, field: str) -> None:
    answer = await visitor.ask("POST", LOGIN, details)
    assert answer.status == 400
    assert answer.error.startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("body", "content_type", "message"),
    [
        (b"{", "application/json", "body: expected valid JSON in UTF-8"),
        (b'{"username": "\xff"}', "application/json", "body: expected valid JSON in UTF-8"),
        (b"", "application/json", "body: expected a JSON object, got nothing"),
        (b"username=a&password=b", "application/x-www-form-urlencoded", "Content-Type: "),
        (b'{"username": "a", "password": "b"}', "text/plain", "Content-Type: "),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_body_that_is_not_json_is_400(
    visitor: Browser, body: bytes, content_type: str, message: str
) -> None:
    answer = await visitor.ask("POST", LOGIN, body=body, headers={"Content-Type": content_type})
    assert answer.status == 400
    assert answer.error.startswith(message)


@pytest_twisted.ensureDeferred
async def test_login_from_another_origin_is_403(server: Server, visitor: Browser) -> None:
    answer = await visitor.ask("POST", LOGIN, DETAILS, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status == 403
    assert answer.error == "this request comes from a page of another origin"
    server.set(cors_origins=frozenset({"https://dash.example"}))
    headers = {"Sec-Fetch-Site": "same-site", "Origin": "https://dash.example"}
    answer = await visitor.ask("POST", LOGIN, DETAILS, headers=headers)
    assert answer.status == 200
    assert answer.header("Access-Control-Allow-Credentials") == "true"


@pytest_twisted.ensureDeferred
async def test_a_network_is_throttled_after_ten_failures(server: Server, visitor: Browser) -> None:
    for _ in range(10):
        answer = await visitor.ask("POST", LOGIN, {"username": USERNAME, "password": "wrong"})
        assert answer.status == 401
    answer = await visitor.ask("POST", LOGIN, DETAILS)
    assert answer.status == 429
    assert answer.error
    assert int(answer.header("Retry-After") or 0) >= 1
    elsewhere = server.browser("198.51.100.7")
    assert (await elsewhere.log_in(USERNAME, PASSWORD)).status == 200


@pytest_twisted.ensureDeferred
async def test_a_known_browser_is_not_throttled_by_others(server: Server, visitor: Browser) -> None:
    answer = await server.browser().log_in(USERNAME, PASSWORD)
    _, device = (cookie.partition(";")[0] for cookie in answer.headers["set-cookie"])
    for _ in range(10):
        await visitor.ask("POST", LOGIN, {"username": USERNAME, "password": "wrong"})
    assert (await visitor.ask("POST", LOGIN, DETAILS)).status == 429
    answer = await visitor.ask("POST", LOGIN, DETAILS, headers={"Cookie": f"{device}0"})
    assert answer.status == 429
    answer = await visitor.ask("POST", LOGIN, DETAILS, headers={"Cookie": device})
    assert answer.status == 200
    # It opens nothing by itself.
    assert (await visitor.ask("GET", USER, headers={"Cookie": device})).status == 401


@pytest_twisted.ensureDeferred
async def test_a_forged_device_cookie_is_not_a_known_browser(visitor: Browser) -> None:
    for _ in range(10):
        await visitor.ask("POST", LOGIN, {"username": USERNAME, "password": "wrong"})
    for value in ("", "a.b", "x" * 5_000, "\xff"):
        headers = {"Cookie": f"_me_device={value}"}
        assert (await visitor.ask("POST", LOGIN, DETAILS, headers=headers)).status == 429


@pytest_twisted.ensureDeferred
async def test_logout_ends_the_session_and_clears_the_cookie(owner: Browser) -> None:
    answer = await owner.ask("POST", LOGOUT)
    assert answer.status == 204
    assert answer.body == b""
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert answer.header("Content-Length") is None
    (cookie,) = answer.headers["set-cookie"]
    value, *attributes = cookie.split("; ")
    assert value == "_me_sess="
    assert attributes[:2] == ["Max-Age=0", "Expires=Thu, 01 Jan 1970 00:00:00 GMT"]
    assert attributes[2:] == ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"]
    for target in (USER, "/websites"):
        assert (await owner.ask("GET", target)).status == 401
    assert (await owner.ask("POST", LOGOUT)).status == 401


@pytest_twisted.ensureDeferred
async def test_logout_needs_a_login(visitor: Browser) -> None:
    assert (await visitor.ask("POST", LOGOUT)).status == 401
    visitor.cookie = "nonsense"
    answer = await visitor.ask("POST", LOGOUT)
    assert answer.status == 401
    assert answer.error


@pytest_twisted.ensureDeferred
async def test_logout_leaves_other_sessions(server: Server, owner: Browser) -> None:
    other = server.browser()
    await other.log_in(USERNAME, PASSWORD)
    await owner.ask("POST", LOGOUT)
    assert (await other.ask("GET", USER)).status == 200
