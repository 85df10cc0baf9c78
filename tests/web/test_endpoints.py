"""Every row of the contract's table of endpoints: its success and its errors.

Some of the statuses that the tables list cannot come about by the contract; they stand in
UNREACHABLE with the reason.
"""

import json
from typing import Any

import lmdb
import pytest
import pytest_twisted
from attrs import evolve, frozen
from support.log_failures import LoggedFailures
from support.web.client import Answer
from support.web.daemon_in_memory import PASSWORD, USERNAME, Server

HOSTNAME = "example.com"
FOREIGN = {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
LOAD = {"e": "load", "b": "b", "u": f"https://{HOSTNAME}/", "p": True, "q": True}
FILTERED = (400, 401, 403, 404, 500)
UNREACHABLE = {
    ("GET", "/user", 404): "an account always exists: the first one is made at once",
    ("PATCH", "/user", 404): "the same",
    ("DELETE", "/user", 404): "the same",
    ("PATCH", "/user", 409): "there is one account, so no other can hold the name",
    ("GET", "/websites", 404): "none registered is 200 and []",
    **{
        ("GET", f"/website/{HOSTNAME}/{name}", 403): "reading changes nothing"
        for name in (
            "referrers",
            "sources",
            "mediums",
            "campaigns",
            "browsers",
            "os",
            "devices",
            "countries",
            "languages",
            "properties",
        )
    },
}


@frozen
class RequestCase:
    """A request. Without `cookie` it has no session."""

    method: str
    path: str
    content: Any = None
    headers: tuple[tuple[str, str], ...] = ()
    cookie: bool = True


@frozen
class Row:
    """A row of the tables: a request that succeeds, its status, and the errors it can have."""

    requested: RequestCase
    success: int
    errors: tuple[int, ...]
    wrong: RequestCase | None = None
    """The same request, malformed."""
    missing: RequestCase | None = None
    """The same request for what does not exist."""

    @property
    def name(self) -> str:
        return f"{self.requested.method} {self.requested.path}"


def statistic(name: str, errors: tuple[int, ...]) -> Row:
    requested = RequestCase("GET", f"/website/{HOSTNAME}/{name}")
    return Row(
        requested,
        200,
        errors,
        wrong=evolve(requested, path=f"{requested.path}?browser[is]=x"),
        missing=evolve(requested, path=f"/website/other.example/{name}"),
    )


LOGIN = RequestCase(
    "POST", "/auth/login", {"username": USERNAME, "password": PASSWORD}, cookie=False
)
HIT = RequestCase("POST", "/event/hit", LOAD, cookie=False)
PING = RequestCase("GET", "/event/ping?u=example.com", cookie=False)
USER = RequestCase("GET", "/user")
PATCH_USER = RequestCase("PATCH", "/user", {"username": "grace"})
DELETE_USER = RequestCase("DELETE", "/user")
WEBSITES = RequestCase("GET", "/websites")
ADD = RequestCase("POST", "/websites", {"hostname": "new.example"})
WEBSITE = RequestCase("GET", f"/websites/{HOSTNAME}")
RENAME = RequestCase("PATCH", f"/websites/{HOSTNAME}", {"hostname": "renamed.example"})
REMOVE = RequestCase("DELETE", f"/websites/{HOSTNAME}")
NO_NAME, OTHER = "/websites/no_name", "/websites/other.example"

ROWS = [
    Row(LOGIN, 200, (400, 401, 500), wrong=evolve(LOGIN, content={"username": USERNAME})),
    Row(RequestCase("POST", "/auth/logout"), 204, (401, 500)),
    Row(
        HIT,
        204,
        (400, 404, 500),
        wrong=evolve(HIT, content=LOAD | {"p": "yes"}),
        missing=evolve(HIT, content=LOAD | {"u": "https://other.example/"}),
    ),
    Row(PING, 200, (400, 500), wrong=evolve(PING, headers=(("If-Modified-Since", "today"),))),
    Row(USER, 200, (400, 401, 404, 500), wrong=evolve(USER, path="/user?x=%zz")),
    Row(
        PATCH_USER,
        200,
        (400, 401, 403, 404, 409, 500),
        wrong=evolve(PATCH_USER, content={"username": "no"}),
    ),
    Row(DELETE_USER, 204, (400, 401, 403, 404, 500), wrong=evolve(DELETE_USER, path="/user?%ff=x")),
    Row(RequestCase("GET", "/user/usage"), 200, (401, 500)),
    Row(WEBSITES, 200, (400, 401, 404, 500), wrong=evolve(WEBSITES, path="/websites?summary=2")),
    Row(ADD, 201, (400, 401, 403, 409, 500), wrong=evolve(ADD, content={})),
    Row(
        WEBSITE,
        200,
        (400, 401, 404, 500),
        wrong=evolve(WEBSITE, path=NO_NAME),
        missing=evolve(WEBSITE, path=OTHER),
    ),
    Row(
        RENAME,
        200,
        (400, 401, 403, 404, 500),
        wrong=evolve(RENAME, content={"hostname": "x" * 254}),
        missing=evolve(RENAME, path=OTHER),
    ),
    Row(
        REMOVE,
        204,
        (400, 401, 403, 404, 500),
        wrong=evolve(REMOVE, path=NO_NAME),
        missing=evolve(REMOVE, path=OTHER),
    ),
    statistic("summary", (400, 401, 404, 500)),
    statistic("pages", (400, 401, 404, 500)),
    statistic("time", (400, 401, 404, 500)),
    statistic("referrers", FILTERED),
    statistic("sources", FILTERED),
    statistic("mediums", FILTERED),
    statistic("campaigns", FILTERED),
    statistic("browsers", FILTERED),
    statistic("os", FILTERED),
    statistic("devices", FILTERED),
    statistic("countries", FILTERED),
    statistic("languages", FILTERED),
    statistic("properties", FILTERED),
]

ERRORS = [
    (row, status)
    for row in ROWS
    for status in row.errors
    if (row.requested.method, row.requested.path, status) not in UNREACHABLE
]


async def ask(server: Server, requested: RequestCase) -> Answer:
    browser = await server.owner() if requested.cookie else server.browser()
    return await again(browser, requested)


async def again(browser: Any, requested: RequestCase) -> Answer:
    body = b"" if requested.content is None else json.dumps(requested.content).encode()
    headers = dict(requested.headers)
    if body:
        headers["Content-Type"] = "application/json"
    return await browser.ask(requested.method, requested.path, body=body, headers=headers)


@pytest.fixture(autouse=True)
def registered(website: str) -> str:
    """The website that the rows are about."""
    assert website == HOSTNAME
    return website


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest_twisted.ensureDeferred
async def test_each_endpoint_succeeds(server: Server, row: Row, prefix: str) -> None:
    answer = await ask(server, evolve(row.requested, path=prefix + row.requested.path))
    assert answer.status == row.success
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert bool(answer.body) == (row.success != 204 and row.requested is not LOGIN)


def provoking(row: Row, status: int) -> RequestCase:
    """Return a request that causes the error."""
    wrong_password = evolve(LOGIN, content=LOGIN.content | {"password": "wrong"})
    requested = {
        400: row.wrong,
        401: wrong_password if row.requested is LOGIN else evolve(row.requested, cookie=False),
        403: evolve(row.requested, headers=tuple(FOREIGN.items())),
        404: row.missing,
        409: evolve(row.requested, content={"hostname": HOSTNAME}),
    }[status]
    assert requested is not None
    return requested


async def fault(server: Server, requested: RequestCase) -> Answer:
    """Remove what the response depends on, after the login."""
    browser = await server.owner()
    if requested.path.startswith("/event/"):
        server.pipeline.rules = None
    else:
        server.store.environment.lmdb.close()
    return await again(browser, requested)


@pytest.mark.parametrize(
    ("row", "status"), ERRORS, ids=lambda value: getattr(value, "name", str(value))
)
@pytest_twisted.ensureDeferred
async def test_each_endpoint_returns_its_errors(
    server: Server, row: Row, status: int, logged_failures: LoggedFailures
) -> None:
    if status == 500:
        answer = await fault(server, row.requested)
        # A fault of our own is logged, and only a fault.
        assert logged_failures.take(lmdb.Error, AttributeError)
        assert "lmdb" not in answer.error.lower()
        assert "attribute" not in answer.error.lower()
    else:
        answer = await ask(server, provoking(row, status))
    assert answer.status == status
    assert answer.error


def test_unreachable_errors_are_listed() -> None:
    listed = {
        (row.requested.method, row.requested.path, status) for row in ROWS for status in row.errors
    }
    assert UNREACHABLE.keys() <= listed
