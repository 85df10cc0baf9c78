"""Who may call which route: a table derived from the OpenAPI document.

The rules (contract, sections 1, 2 and 7), the first that holds:

1. A method that the address does not take is 405; OPTIONS is 204.
2. Where the document asks for somebody who is known, what opens nothing is 401: a cookie, a token
   or a share link that is unknown, ended or revoked.
3. What the document does not take there, a token whose scope is another one, and a token or a
   share link of another website are 403. Alerts, exclusions and settings take a full token even
   to be read.
4. A change by the cookie, other than an event, from a page of another origin is 403.
   share link of another website are 403. Recipients of reports are shown to full tokens alone.
4. A change by the cookie, other than an event or by a page that a mail links to, from a page of
   another origin is 403.
5. A change in demo mode, other than an event, a login or a logout, is 403.
6. A hit needs nobody to be known; where a token is shown, it has to be a good one that sends.
7. Anything else succeeds, with the status that the document names.
"""

import re
from collections.abc import Iterator
from ipaddress import ip_network
from itertools import count, cycle, product

import pytest
import pytest_twisted
from attrs import define, evolve, field, frozen
from support.openapi import OPERATIONS
from support.web.client import Browser
from support.web.daemon_in_memory import HASH, NOW, PASSWORD, USERNAME, Server

from medamad.accounts.credentials import IDLE_S, LIFETIME_S, digest, new_token
from medamad.accounts.shares import make_share
from medamad.accounts.tokens import make_token
from medamad.domain.accounts import Login, Scope, Token
from medamad.domain.alerts import SERVICE, Alerts, Rule
from medamad.domain.annotations import Annotation, Annotations
from medamad.domain.goals import Definitions, Exclusion, Funnel, Goal
from medamad.domain.subscriptions import Every, Subscription
from medamad.domain.websites import Website
from medamad.ingest.networks import Networks
from medamad.storage.store import Store
from medamad.web.routing import file_routes, interface_routes, operating_routes

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
    "POST /user/tokens": {"name": "report", "scope": "read"},
    "POST /websites/{hostname}/shares": {"name": "club"},
    "POST /websites/{hostname}/goals": {"name": "Thanks", "path": "/thanks"},
    "PATCH /websites/{hostname}/goals/{goal}": {"name": "Bought"},
    "POST /websites/{hostname}/exclusions": {"name": "Flood", "filters": "path=/flood"},
    "POST /websites/{hostname}/funnels": {"name": "Order", "goals": ["goal-one", "goal-two"]},
    "PATCH /websites/{hostname}/funnels/{funnel}": {"name": "Order"},
    "POST /websites/{hostname}/alerts": {"kind": "quiet", "url": "https://example.com/"},
    "POST /websites/{hostname}/settings/import": {
        "goals": [{"id": "x", "name": "New", "path": "/new"}]
    },
    "POST /user/alerts": {"kind": "backup", "url": "https://example.com/"},
    "PATCH /websites/{hostname}/alerts/{alert}": {"url": "https://example.com/2"},
    "PATCH /user/alerts/{alert}": {"url": "https://example.com/2"},
    "PATCH /user/reports/{report}": {"hour": 9},
    "POST /user/reports": {"address": "ada@example.com", "websites": [HOSTNAME]},
    "POST /user/test-mail": {"address": "ada@example.com"},
    "POST /websites/{hostname}/annotations": {"text": "Deploy"},
    "PATCH /websites/{hostname}/settings": {"bots": "strict"},
    "PATCH /websites/{hostname}/annotations/{annotation}": {"text": "Deploy 2"},
    "POST /shared/{share}": {"password": "any"},
}
QUERIES = {
    "/event/pixel.gif": f"?u=https://{HOSTNAME}/",
    "/website/{hostname}/changes": "?start=2020-01-01T00:00:00Z&end=2020-01-07T23:59:59Z",
    "/website/{hostname}/next": "?of=/",
    "/website/{hostname}/previous": "?of=/",
    "/websites/{hostname}/settings/preview": "?settings=%7B%7D",
    "/website/{hostname}/goals/preview": "?definition=%7B%22path%22:%22/%22%7D",
    "/website/{hostname}/funnels/preview": (
        "?definition=%7B%22goals%22:%5B%22goal-one%22,%22goal-two%22%5D%7D"
    ),
}
INSIDE = ("/health", "/health/live", "/metrics")
"""What only the peers below may ask."""
INSIDERS = Networks([ip_network("198.51.100.0/24")])
INSIDER, OUTSIDER = "198.51.100.7", "203.0.113.9"
AT_THE_ROOT = ("/script.js", "/scripts/{name}", *INSIDE)
IN_AND_OUT = ("/auth/login", "/auth/logout", "/shared/{share}")
TOKEN = b"t" * 32
SHARE = "s" * 24
NAMED = {
    "{hostname}": HOSTNAME,
    "{name}": "default.js",
    "{token}": TOKEN.hex()[:16],
    "{share}": SHARE,
    "{report}": "0123456789ab",
    "{secret}": "s" * 24,
    "{goal}": "goal-new",
    "{alert}": "thealert",
    "{funnel}": "thefunnel",
    "{exclusion}": "theflood",
    "{annotation}": "the-note",
}
REPORT = Subscription(
    id=NAMED["{report}"],
    secret=NAMED["{secret}"],
    address="owner@example.com",
    websites=(),
    every=Every.WEEK,
    day=1,
    hour=8,
    timezone="UTC",
    language="en",
    created=NOW,
)
DEFINED = Definitions(
    tuple(Goal(id=each, name=each, path="/") for each in ("goal-one", "goal-two", "goal-new")),
    (Funnel("thefunnel", "Checkout", ("goal-one", "goal-two")),),
    (Exclusion(id="theflood", name="The flood", filters=(("path", "/none"),), created=NOW),),
)
ALERTS_OF_WEBSITE, ALERTS_OF_SERVICE = (
    Alerts((Rule(id="thealert", kind=kind, url="https://example.com/"),))
    for kind in ("quiet", "backup")
)

ANNOTATED = Annotations((Annotation(id="the-note", time="2024-05-01", text="Launch"),))


@frozen
class Address:
    """A path, and by each method that it takes: its success, and by what somebody is known."""

    path: str
    methods: dict[str, tuple[int, tuple[str, ...]]]

    @property
    def target(self) -> str:
        named = self.path
        for name, value in NAMED.items():
            named = named.replace(name, value)
        return named + QUERIES.get(self.path, "")

    @property
    def prefixes(self) -> tuple[str, ...]:
        return ("",) if self.path in AT_THE_ROOT or self in DOCUMENTS else ("", "/api")


def described() -> Iterator[Address]:
    """Return every address of the document."""
    methods: dict[str, dict[str, tuple[int, tuple[str, ...]]]] = {}
    for operation in OPERATIONS:
        success = min(int(status) for status in operation.raw["responses"])
        security = operation.raw.get("security", [{"session": []}])
        known_by = tuple(name for scheme in security for name in scheme)
        taken = methods.setdefault(operation.path, {})
        taken[operation.method] = (success, known_by)
        if operation.method == "GET":
            taken["HEAD"] = (success, known_by)
    for path, taken in methods.items():
        yield Address(path, taken)


def page(path: str, success: int) -> Address:
    return Address(path, dict.fromkeys(READING, (success, ())))


DOCUMENTS = (
    page("/", 302),
    page("/dashboard", 302),
    page("/dashboard/", 200),
    page("/dashboard/websites/example.com", 200),
    page("/share/{share}", 200),
    page("/share/{share}/funnels/{funnel}", 200),
    *(
        Address(f"/mail/{{secret}}/{what}", dict.fromkeys((*READING, "POST"), (200, ())))
        for what in ("confirm", "unsubscribe")
    ),
)
ADDRESSES = (*described(), *DOCUMENTS)


COOKIES = ("no", "garbage", "expired", "idle", "revoked", "good")
BAD_TOKENS = ("token garbage", "token expired", "token revoked")
GOOD_TOKENS = tuple(f"token {scope}{where}" for scope in Scope for where in ("", " elsewhere"))
BAD_SHARES = ("share garbage", "share revoked", "share locked")
GOOD_SHARES = ("share", "share elsewhere")


@frozen
class State:
    """Who asks, and of what service."""

    shown: str
    """What is shown: a cookie, a token or a share link, one of the above."""
    is_foreign: bool
    demo: bool

    @property
    def scheme(self) -> str:
        kind = self.shown.split(" ")[0]
        return kind if kind in ("token", "share") else "session"


STATES = tuple(State(*state) for state in product(COOKIES, (False, True), (False, True)))
FURTHER_STATES = tuple(
    State(shown, *service)
    for shown in (*BAD_TOKENS, *GOOD_TOKENS, *BAD_SHARES, *GOOD_SHARES)
    for service in ((True, False), (False, True))
)


def expected(address: Address, method: str, state: State) -> int:
    """Return the status by the rules above."""
    if method == "OPTIONS":
        return 204
    if method not in address.methods:
        return 405
    success, known_by = address.methods[method]
    if (method, address.path) == ("POST", "/event/hit") and state.scheme == "token":
        return of_server(state, success)
    if known_by and state.shown not in ("good", *GOOD_TOKENS, *GOOD_SHARES):
        return 401
    is_refused = (
        (known_by and state.scheme not in known_by)
        or (known_by and is_for_something_else(address, method, state))
        or is_refused_change(address, method, state, known_by)
    )
    return 403 if is_refused else success


def of_server(state: State, success: int) -> int:
    """Return the status of a hit with a token; without one, anybody may send it."""
    if state.shown in BAD_TOKENS:
        return 401
    may_send = state.shown.split(" ")[1] in ("send", "full")
    return success if may_send and not state.shown.endswith("elsewhere") else 403


def is_refused_change(
    address: Address, method: str, state: State, known_by: tuple[str, ...]
) -> bool:
    """Return whether a change is rejected because of its origin or its host."""
    if method in READING or address.path.startswith(("/event/", "/mail/")):
        return False
    by_cookie = state.scheme == "session" or not known_by
    return (state.is_foreign and by_cookie) or (state.demo and address.path not in IN_AND_OUT)


def is_for_something_else(address: Address, method: str, state: State) -> bool:
    """Return whether a good token or share link does not go as far as this."""
    words = state.shown.split(" ")
    is_hidden = address.path.startswith("/user/reports") or re.search(
        "/(alerts|settings|exclusions|suggestions)", address.path
    )
    if state.scheme == "token":
        allowed = {Scope.FULL}
        if method in READING and not is_hidden:
            allowed.add(Scope.READ)
        elif (method, address.path) == ("POST", "/websites/{hostname}/annotations"):
            allowed.add(Scope.ANNOTATE)
        if words[1] not in allowed:
            return True
    return words[-1] == "elsewhere" and (method, address.path) not in (
        ("GET", "/websites"),
        ("HEAD", "/websites"),
    )


@define
class Shown:
    """The credentials shown to a daemon, each created when first needed."""

    _house: Server
    _made: dict[str, dict[str, str]] = field(factory=dict)

    async def headers(self, which: str) -> dict[str, str]:
        if which not in self._made:
            self._made[which] = await self._make(which)
        return self._made[which]

    def used_up(self) -> None:
        """Create everything again, after what may have ended sessions."""
        self._made.clear()

    async def _make(self, which: str) -> dict[str, str]:
        if which.startswith("token "):
            return {"Authorization": f"Bearer {await self._token(which)}"}
        if which.startswith("share"):
            return {"X-Medamad-Share": await self._share(which)}
        cookie = await self._cookie(which)
        return {} if cookie is None else {"Cookie": f"_me_sess={cookie}"}

    def _number(self, which: str) -> int:
        (website,) = self._house.store.websites.all()
        return website.number + (1_000 if which.endswith("elsewhere") else 0)

    async def _token(self, which: str) -> str:
        scope = which.split(" ")[1]
        all_of_them = which in GOOD_TOKENS and not which.endswith("elsewhere")
        text, key, token = make_token(
            which,
            Scope(scope if scope in tuple(Scope) else "full"),
            None if all_of_them else [self._number(which)],
            NOW + 60,
            NOW,
        )
        if scope == "expired":
            token = evolve(token, expires=NOW)
        if scope != "garbage":
            await self._house.store.tokens.add(key, token)
        if scope == "revoked":
            assert await self._house.store.tokens.revoke(key)
        return text

    async def _share(self, which: str) -> str:
        shares = self._house.store.shares
        share = make_share(which, self._number(which), (), HASH if "locked" in which else "", NOW)
        if "garbage" not in which:
            await shares.add(share.id.encode(), share)
        if "revoked" in which:
            assert await shares.revoke(share.id.encode())
        return share.id

    async def _cookie(self, which: str) -> str | None:
        ages = {"good": (0, 0), "expired": (LIFETIME_S + 1, 0), "idle": (IDLE_S + 1, IDLE_S + 1)}
        if which in ages:
            token = new_token()
            since, last_seen = (NOW - age for age in ages[which])
            await self._house.store.account.add_login(
                digest(token), Login(since=since, last_seen=last_seen)
            )
            return token
        if which == "revoked":
            self._house.set(demo=False)
            browser = await self._house.owner()
            assert (await browser.ask("POST", "/auth/logout")).status == 204
            return browser.cookie
        return new_token() if which == "garbage" else None


async def _define_alerts(store: Store, website: Website) -> None:
    if store.alerts.of(website.number) != ALERTS_OF_WEBSITE:
        await store.alerts.change(website.number, lambda _: ALERTS_OF_WEBSITE)
    if store.alerts.of(SERVICE) != ALERTS_OF_SERVICE:
        await store.alerts.change(SERVICE, lambda _: ALERTS_OF_SERVICE)


async def put_right(server: Server) -> None:
    """Reset to the website and what it has, and to the token, that the table is about."""
    store = server.store
    for website in store.websites.all():
        if website.hostname != HOSTNAME:
            await store.delete_website(website)
    if not store.websites.all():
        await store.add_website(HOSTNAME, NOW)
    (website,) = store.websites.all()
    if store.goals.of(website.number) != DEFINED:
        await store.goals.change(website.number, lambda _: DEFINED)
    await _define_alerts(store, website)
    if store.annotations.of(website.number) != ANNOTATED:
        await store.annotations.change(website.number, lambda _: ANNOTATED)
    if store.shares.find(SHARE.encode()) is None:
        share = evolve(make_share("the one", website.number, (), "", NOW), id=SHARE)
        await store.shares.add(SHARE.encode(), share)
    if store.reports.find(b"the one") is None:
        await store.reports.add(b"the one", evolve(REPORT, websites=(website.number,)))
    if store.tokens.find(TOKEN) is None:
        token = Token(TOKEN.hex()[:16], "the one", Scope.READ, None, NOW)
        await store.tokens.add(TOKEN, token)


NETWORKS = (f"100.{n >> 8}.{n & 255}.9" for n in count())
"""Addresses, each in a network of its own: who shows many bad tokens has to wait."""


def some_of(address: Address, row: int, method: str) -> list[tuple[int, State]]:
    """Return the states to ask in by default, with their numbers.

    For a change that the address takes, they are all; for anything else, all that may be shown, but
    foreign pages and demo mode not in each combination.
    """
    if method not in address.methods:
        return [
            (each, STATES[each]) for each in range(len(STATES)) if each % 4 == (row + each // 4) % 4
        ]
    if method in READING:
        return [
            (each, state)
            for each, state in enumerate(STATES)
            if (state.is_foreign != state.demo) == bool((row + each // 4) % 2)
        ]
    return list(enumerate(STATES))


@pytest.mark.parametrize(
    "states", ["some states", pytest.param("every state", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("address", ADDRESSES, ids=lambda address: address.path)
@pytest_twisted.ensureDeferred
async def test_each_caller_gets_the_expected_status(
    server: Server, address: Address, states: str
) -> None:
    """Ask with every method, in some states by one prefix or the other, or in each by both."""
    wrong = []
    shown = Shown(server)
    pages = {True: cycle(FOREIGN_PAGES), False: cycle(OWN_PAGES)}
    prefixes = address.prefixes
    if states == "every state":
        asked = [
            *product(METHODS, STATES, prefixes),
            *product(address.methods, FURTHER_STATES, prefixes[-1:]),
        ]
    else:
        asked = [
            *(
                (method, state, prefixes[(row + column) % len(prefixes)])
                for row, method in enumerate(METHODS)
                for column, state in some_of(address, row, method)
            ),
            *(
                (method, state, prefixes[-1])
                for row, method in enumerate(address.methods)
                for column, state in enumerate(FURTHER_STATES)
                if method not in READING or column % 2 == (row + column // 2) % 2
            ),
        ]
    for method, state, prefix in asked:
        await put_right(server)
        known = await shown.headers(state.shown)
        peer = INSIDER if address.path in INSIDE else next(NETWORKS)
        browser = Browser(server.site, peer=peer)
        server.set(demo=state.demo, metrics_from=INSIDERS)
        body = BODIES.get(f"{method} {address.path}")
        headers = next(pages[state.is_foreign]) | known
        answer = await browser.ask(method, prefix + address.target, body, headers=headers)
        wanted = expected(address, method, state)
        if answer.status != wanted:
            wrong.append((method, prefix, state, headers, answer.status, wanted))
        elif wanted >= 400 and method != "HEAD":
            assert answer.error
            assert (answer.header("WWW-Authenticate") == "Bearer") == (wanted == 401)
        elif wanted < 400 and method in ("DELETE", "PATCH", "POST"):
            shown.used_up()
        if state.scheme != "session" and not address.path.startswith("/auth/"):
            assert answer.header("Set-Cookie") is None
    assert not wrong


@pytest.mark.parametrize(
    ("path", "peer"),
    [
        *product(INSIDE, (OUTSIDER, None)),
        *product((f"/api{path}" for path in INSIDE), (OUTSIDER, INSIDER)),
    ],
)
@pytest_twisted.ensureDeferred
async def test_outsiders_cannot_tell_internal_paths_from_missing_ones(
    server: Server, path: str, peer: str | None
) -> None:
    """Nothing tells what is there from what is not: not the status, nor a header."""
    server.set(metrics_from=INSIDERS, cors_origins=frozenset(["https://app.example"]))
    token = (await server.owner()).cookie
    for method, cookie, headers in product(
        METHODS, (None, token), ({}, {"Origin": "https://app.example"})
    ):
        browser = Browser(server.site, cookie, peer)
        answer = await browser.ask(method, path, headers=headers)
        nothing = await browser.ask(method, "/nothing", headers=headers)
        assert (answer.status, answer.body) == (404, nothing.body)
        assert answer.headers == nothing.headers


@pytest.mark.parametrize(
    "methods",
    [("DELETE", "PATCH", "POST"), pytest.param(METHODS, marks=pytest.mark.slow)],
    ids=len,
)
@pytest_twisted.ensureDeferred
async def test_a_rejected_request_changes_nothing(server: Server, methods: tuple[str, ...]) -> None:
    """Send every change in each state that rejects it, then check that nothing has changed."""
    await put_right(server)
    shown = Shown(server)
    for state in (*STATES, *FURTHER_STATES):
        await shown.headers(state.shown)
    before = there(server)
    for address, state in product(ADDRESSES, (*STATES, *FURTHER_STATES)):
        for method in address.methods:
            if method in methods and expected(address, method, state) in (401, 403):
                browser = Browser(server.site, peer=next(NETWORKS))
                server.set(demo=state.demo)
                body = BODIES.get(f"{method} {address.path}")
                headers = FOREIGN_PAGES[0] if state.is_foreign else {}
                headers = headers | await shown.headers(state.shown)
                await browser.ask(method, address.target, body, headers=headers)
    assert there(server) == before


def there(server: Server) -> object:
    store = server.store
    tokens = [key for key, _ in store.tokens.all()]
    websites, reports = store.websites.all(), store.reports.all()
    goals = [store.goals.of(website.number) for website in websites]
    annotations = [store.annotations.of(website.number) for website in websites]
    of_websites = (goals, annotations, store.alerts.all())
    return store.account.read(), websites, tokens, store.shares.all(), of_websites, reports


def test_every_route_is_covered(server: Server) -> None:
    routes = {
        (re.sub(r"<([a-z]+)>", r"{\1}", rule.rule), method)
        for part in (
            interface_routes(server.site.backend),
            file_routes(server.site.backend),
            operating_routes(server.site.backend, server.site),
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
