"""Every route and method, for whoever may ask: a table made of the OpenAPI document by rules.

The rules (contract, sections 1, 2 and 7), the first that holds:

1. A method that the address does not take is 405; OPTIONS is 204.
2. Where the document asks for the cookie, one that opens no login is 401.
3. A change, other than an event, from a page of another origin is 403.
4. A change in demo mode, other than an event, a login or a logout, is 403.
5. Anything else succeeds, with the status that the document names.
"""

from collections.abc import Iterator
from ipaddress import ip_network
from itertools import cycle, product

import pytest
import pytest_twisted
from attrs import define, field, frozen
from browser import Browser
from document import OPERATIONS
from house import NOW, PASSWORD, USERNAME, House

from medamad.account.logins import IDLE_S, LIFETIME_S, digest, new_token
from medamad.collect.networks import Networks
from medamad.model.accounts import Login
from medamad.web.app import documents_routes, interface_routes, operating_routes

METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")
READING = ("GET", "HEAD")
HOSTNAME = "example.com"
FOREIGN_PAGES = (
    {"Sec-Fetch-Site": "cross-site", "Origin": "https://elsewhere.example"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Origin": "https://elsewhere.example"},
    {"Origin": "null"},
)
OWN_PAGES: tuple[dict[str, str], ...] = (
    {},
    {"Sec-Fetch-Site": "none"},
    {"Sec-Fetch-Site": "same-origin", "Origin": "https://stats.example.com"},
)
BODIES = {
    "POST /auth/login": {"username": USERNAME, "password": PASSWORD},
    "POST /event/hit": {"e": "load", "b": "b", "u": f"https://{HOSTNAME}/", "p": True, "q": True},
    "PATCH /user": {"settings": {"language": "de"}},
    "POST /websites": {"hostname": "new.example"},
    "PATCH /websites/{hostname}": {"hostname": "renamed.example"},
}
QUERIES = {"/event/pixel.gif": f"?u=https://{HOSTNAME}/"}
INSIDE = ("/health", "/health/live", "/metrics")
"""What only the peers below may ask."""
INSIDERS = Networks([ip_network("198.51.100.0/24")])
INSIDER, OUTSIDER = "198.51.100.7", "203.0.113.9"
AT_THE_ROOT = ("/script.js", "/scripts/{name}", *INSIDE)
IN_AND_OUT = ("/auth/login", "/auth/logout")


@frozen
class Address:
    """A path, and by each method that it takes: its success, and whether it needs the cookie."""

    path: str
    methods: dict[str, tuple[int, bool]]

    @property
    def target(self) -> str:
        named = self.path.replace("{hostname}", HOSTNAME).replace("{name}", "default.js")
        return named + QUERIES.get(self.path, "")

    @property
    def prefixes(self) -> tuple[str, ...]:
        return ("",) if self.path in AT_THE_ROOT or self in DOCUMENTS else ("", "/api")


def described() -> Iterator[Address]:
    """Give every address of the document."""
    methods: dict[str, dict[str, tuple[int, bool]]] = {}
    for operation in OPERATIONS:
        success = min(int(status) for status in operation.raw["responses"])
        needs_cookie = operation.raw.get("security") != []
        taken = methods.setdefault(operation.path, {})
        taken[operation.method] = (success, needs_cookie)
        if operation.method == "GET":
            taken["HEAD"] = (success, needs_cookie)
    for path, taken in methods.items():
        yield Address(path, taken)


def page(path: str, success: int) -> Address:
    return Address(path, dict.fromkeys(READING, (success, False)))


DOCUMENTS = (
    page("/", 302),
    page("/dashboard", 302),
    page("/dashboard/", 200),
    page("/dashboard/websites/example.com", 200),
)
ADDRESSES = (*described(), *DOCUMENTS)


@frozen
class State:
    """Who asks, and of what service."""

    cookie: str
    """Which: `no`, `garbage`, `expired`, `idle`, `revoked` or `good`."""
    is_foreign: bool
    demo: bool


STATES = tuple(
    State(*state)
    for state in product(
        ("no", "garbage", "expired", "idle", "revoked", "good"), (False, True), (False, True)
    )
)


def expected(address: Address, method: str, state: State) -> int:
    """Give the status by the rules above."""
    if method == "OPTIONS":
        return 204
    if method not in address.methods:
        return 405
    success, needs_cookie = address.methods[method]
    if needs_cookie and state.cookie != "good":
        return 401
    if method not in READING and not address.path.startswith("/event/"):
        if state.is_foreign:
            return 403
        if state.demo and address.path not in IN_AND_OUT:
            return 403
    return success


@define
class Cookies:
    """The cookies of a house, each made when it is first asked for."""

    _house: House
    _made: dict[str, str | None] = field(factory=dict)

    async def get(self, which: str) -> str | None:
        if which not in self._made:
            self._made[which] = await self._make(which)
        return self._made[which]

    def used_up(self) -> None:
        """Make all anew, after what may have ended logins."""
        self._made.clear()

    async def _make(self, which: str) -> str | None:
        ages = {"good": (0, 0), "expired": (LIFETIME_S + 1, 0), "idle": (IDLE_S + 1, IDLE_S + 1)}
        if which in ages:
            token = new_token()
            since, last_seen = (NOW - age for age in ages[which])
            await self._house.store.add_login(
                digest(token), Login(since=since, last_seen=last_seen)
            )
            return token
        if which == "revoked":
            self._house.set(demo=False)
            browser = await self._house.owner()
            assert (await browser.ask("POST", "/auth/logout")).status == 204
            return browser.cookie
        return new_token() if which == "garbage" else None


async def put_right(house: House) -> None:
    """Leave the one website that the table is about, and no other."""
    for website in house.store.websites.all():
        if website.hostname != HOSTNAME:
            await house.store.delete_website(website)
    if not house.store.websites.all():
        await house.store.add_website(HOSTNAME, NOW)


@pytest.mark.parametrize("address", ADDRESSES, ids=lambda address: address.path)
@pytest_twisted.ensureDeferred
async def test_the_table(house: House, address: Address) -> None:
    wrong = []
    cookies = Cookies(house)
    pages = {True: cycle(FOREIGN_PAGES), False: cycle(OWN_PAGES)}
    for method, state, prefix in product(METHODS, STATES, address.prefixes):
        await put_right(house)
        peer = INSIDER if address.path in INSIDE else OUTSIDER
        browser = Browser(house.site, await cookies.get(state.cookie), peer)
        house.set(demo=state.demo, metrics_from=INSIDERS)
        body = BODIES.get(f"{method} {address.path}")
        headers = next(pages[state.is_foreign])
        answer = await browser.ask(method, prefix + address.target, body, headers=headers)
        wanted = expected(address, method, state)
        if answer.status != wanted:
            wrong.append((method, prefix, state, headers, answer.status, wanted))
        elif wanted >= 400 and method != "HEAD":
            assert answer.error
        elif wanted < 400 and method in ("DELETE", "PATCH", "POST"):
            cookies.used_up()
    assert not wrong


@pytest.mark.parametrize(
    ("path", "peer"),
    [
        *product(INSIDE, (OUTSIDER, None)),
        *product((f"/api{path}" for path in INSIDE), (OUTSIDER, INSIDER)),
    ],
)
@pytest_twisted.ensureDeferred
async def test_to_others_there_is_nothing_inside(house: House, path: str, peer: str | None) -> None:
    """Nothing tells what is there from what is not: not the status, nor a header."""
    house.set(metrics_from=INSIDERS, cors_origins=frozenset(["https://app.example"]))
    token = (await house.owner()).cookie
    for method, cookie, headers in product(
        METHODS, (None, token), ({}, {"Origin": "https://app.example"})
    ):
        browser = Browser(house.site, cookie, peer)
        answer = await browser.ask(method, path, headers=headers)
        nothing = await browser.ask(method, "/nothing", headers=headers)
        assert (answer.status, answer.body) == (404, nothing.body)
        assert answer.headers == nothing.headers


@pytest_twisted.ensureDeferred
async def test_a_refusal_changes_nothing(house: House) -> None:
    """Send every change in each state that refuses it, then look at what there is."""
    await put_right(house)
    before = house.store.account(), house.store.websites.all()
    cookies = Cookies(house)
    for address, state in product(ADDRESSES, STATES):
        for method in address.methods:
            if expected(address, method, state) in (401, 403):
                browser = Browser(house.site, await cookies.get(state.cookie))
                house.set(demo=state.demo)
                body = BODIES.get(f"{method} {address.path}")
                headers = FOREIGN_PAGES[0] if state.is_foreign else {}
                await browser.ask(method, address.target, body, headers=headers)
    assert (house.store.account(), house.store.websites.all()) == before


def test_every_route_is_in_the_table(house: House) -> None:
    routes = {
        (rule.rule.replace("<hostname>", "{hostname}").replace("<name>", "{name}"), method)
        for part in (
            interface_routes(house.site.backend),
            documents_routes(house.site.backend),
            operating_routes(house.site.backend, house.site),
        )
        for rule in part.app.url_map.iter_rules()
        for method in rule.methods or ()
    }
    table = {(address.path, method) for address in ADDRESSES for method in address.methods}
    placed = {
        (path.replace("/dashboard/websites/example.com", "/dashboard/<path:place>"), how)
        for path, how in table
    }
    assert {(path, method) for path, method in routes if method != "OPTIONS"} == placed
