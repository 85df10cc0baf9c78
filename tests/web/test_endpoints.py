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
class Asked:
    """A request. Without `cookie` it has no session."""

    method: str
    path: str
    content: Any = None
    headers: tuple[tuple[str, str], ...] = ()
    cookie: bool = True


@frozen
class Row:
    """A row of the tables: a request that succeeds, its status, and the errors it can have."""

    asked: Asked
    success: int
    errors: tuple[int, ...]
    wrong: Asked | None = None
    """The same request, malformed."""
    missing: Asked | None = None
    """The same request for what does not exist."""

    @property
    def name(self) -> str:
        return f"{self.asked.method} {self.asked.path}"


def statistic(name: str, errors: tuple[int, ...]) -> Row:
    asked = Asked("GET", f"/website/{HOSTNAME}/{name}")
    return Row(
        asked,
        200,
        errors,
        wrong=evolve(asked, path=f"{asked.path}?browser[is]=x"),
        missing=evolve(asked, path=f"/website/other.example/{name}"),
    )


LOGIN = Asked("POST", "/auth/login", {"username": USERNAME, "password": PASSWORD}, cookie=False)
HIT = Asked("POST", "/event/hit", LOAD, cookie=False)
PING = Asked("GET", "/event/ping?u=example.com", cookie=False)
USER = Asked("GET", "/user")
PATCH_USER = Asked("PATCH", "/user", {"username": "grace"})
DELETE_USER = Asked("DELETE", "/user")
WEBSITES = Asked("GET", "/websites")
ADD = Asked("POST", "/websites", {"hostname": "new.example"})
WEBSITE = Asked("GET", f"/websites/{HOSTNAME}")
RENAME = Asked("PATCH", f"/websites/{HOSTNAME}", {"hostname": "renamed.example"})
REMOVE = Asked("DELETE", f"/websites/{HOSTNAME}")
NO_NAME, OTHER = "/websites/no_name", "/websites/other.example"

ROWS = [
    Row(LOGIN, 200, (400, 401, 500), wrong=evolve(LOGIN, content={"username": USERNAME})),
    Row(Asked("POST", "/auth/logout"), 204, (401, 500)),
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
    Row(Asked("GET", "/user/usage"), 200, (401, 500)),
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
    if (row.asked.method, row.asked.path, status) not in UNREACHABLE
]


async def ask(server: Server, asked: Asked) -> Answer:
    browser = await server.owner() if asked.cookie else server.browser()
    return await again(browser, asked)


async def again(browser: Any, asked: Asked) -> Answer:
    body = b"" if asked.content is None else json.dumps(asked.content).encode()
    headers = dict(asked.headers)
    if body:
        headers["Content-Type"] = "application/json"
    return await browser.ask(asked.method, asked.path, body=body, headers=headers)


@pytest.fixture(autouse=True)
def registered(website: str) -> str:
    """The website that the rows are about."""
    assert website == HOSTNAME
    return website


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
@pytest_twisted.ensureDeferred
async def test_each_endpoint_succeeds(server: Server, row: Row, prefix: str) -> None:
    answer = await ask(server, evolve(row.asked, path=prefix + row.asked.path))
    assert answer.status == row.success
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert bool(answer.body) == (row.success != 204 and row.asked is not LOGIN)


def provoking(row: Row, status: int) -> Asked:
    """Return a request that causes the error."""
    wrong_password = evolve(LOGIN, content=LOGIN.content | {"password": "wrong"})
    asked = {
        400: row.wrong,
        401: wrong_password if row.asked is LOGIN else evolve(row.asked, cookie=False),
        403: evolve(row.asked, headers=tuple(FOREIGN.items())),
        404: row.missing,
        409: evolve(row.asked, content={"hostname": HOSTNAME}),
    }[status]
    assert asked is not None
    return asked


async def fault(server: Server, asked: Asked) -> Answer:
    """Remove what the response depends on, after the login."""
    browser = await server.owner()
    if asked.path.startswith("/event/"):
        server.pipeline.rules = None
    else:
        server.store.environment.lmdb.close()
    return await again(browser, asked)


@pytest.mark.parametrize(
    ("row", "status"), ERRORS, ids=lambda value: getattr(value, "name", str(value))
)
@pytest_twisted.ensureDeferred
async def test_each_endpoint_returns_its_errors(
    server: Server, row: Row, status: int, logged_failures: LoggedFailures
) -> None:
    if status == 500:
        answer = await fault(server, row.asked)
        # A fault of our own is logged, and only a fault.
        assert logged_failures.take(lmdb.Error, AttributeError)
        assert "lmdb" not in answer.error.lower()
        assert "attribute" not in answer.error.lower()
    else:
        answer = await ask(server, provoking(row, status))
    assert answer.status == status
    assert answer.error


def test_unreachable_errors_are_listed() -> None:
    listed = {(row.asked.method, row.asked.path, status) for row in ROWS for status in row.errors}
    assert UNREACHABLE.keys() <= listed
