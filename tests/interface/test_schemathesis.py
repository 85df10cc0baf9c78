"""The real daemon against its own document: valid requests succeed, invalid ones do not."""

import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from email.utils import formatdate
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import (
    ignored_auth,
    negative_data_rejection,
    positive_data_acceptance,
)
from support.daemon import PATIENCE_S, Client, Daemon, running
from support.openapi import DOCUMENT, FILE, METHODS, OPERATIONS, resolved

pytestmark = pytest.mark.daemon

ENDS_THE_LOGIN = ["delete-user", "post-auth-logout"]
AT_THE_ROOT = ("/script", "/health", "/metrics")
WITH_HITS = "with-hits.example"
BEYOND_THE_DOCUMENT = re.compile(
    "start: expected a date-time that is not after end|previous: expected start and end"
    "|u: expected the URL of the page, since there is no Referer"
    "|interval: expected at most|hostname: .* is the name of another website"
    "|websites: no website .* is registered|dateExpires: expected a Unix time in the future"
    "|name: expected 1 to 64 characters, got 0"
    "|[a-z_]+: only statistics can be filtered"
    "|name: expected 1 to 100 characters, got 0|text: expected 1 to 200 characters, got 0"
    "|(revenue|currency): expected both revenue and currency, or neither"
    "|path: expected exactly one of path and event|value: expected only with event"
    "|(event|revenue): expected 1 to 64 characters, got 0"
    r"|goals: there is no goal|goal\[eq\]: there is no goal"
    "|(threshold|hours|goal|url|report): (not expected|required|expected .*) with (kind|format)"
    "|goal: there is no goal|(threshold|hours): expected a whole number or null"
    "|url: (expected an address|required)|report: |alerts: there can be 100"
    "|day: expected 1 to 7|(funnels|alerts): the file has no goal"
    "|alerts: (url|kind|goal|hours|threshold|report): "
    "|since: expected (a time|at most one)|metric: expected some of"
)
"""Refusals of what fits the document: a schema cannot say what goes together with what."""

schemathesis.openapi.format(
    "http-date",
    st.integers(0, 4_000_000_000).map(lambda seconds: formatdate(seconds, usegmt=True)),
)
schemathesis.openapi.format(
    "time-zone", st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"])
)
schemathesis.openapi.format("currency", st.sampled_from(["EUR", "JPY", "USD"]))


PAGES = "/website/{hostname}/pages"


def covered_once() -> dict[str, Any]:
    """Return the document with a single filter, and what all reports take in that of pages only.

    All filters have the same schema, and more values to cover than all else together.
    """
    document = deepcopy(DOCUMENT)
    everywhere = [
        *DOCUMENT["paths"][PAGES]["parameters"],
        *DOCUMENT["paths"][PAGES]["get"]["parameters"],
    ]

    def is_covered_here(path: str, parameter: dict[str, Any]) -> bool:
        whole = resolved(parameter)
        if whole.get("style") == "deepObject":
            return path == PAGES and whole["name"] == "path"
        return path == PAGES or whole["in"] == "path" or parameter not in everywhere

    for path, item in document["paths"].items():
        for described in (item, *(item[method] for method in METHODS if method in item)):
            described["parameters"] = [
                resolved(parameter)
                for parameter in described.get("parameters", ())
                if is_covered_here(path, parameter)
            ]
    return document


SCHEMA = schemathesis.openapi.from_path(FILE)
COVERED = schemathesis.openapi.from_dict(covered_once())
# That a method is not taken is tested with everything else about who may ask what.
COVERED.config.phases.coverage.unexpected_methods = set()
FUZZED = schemathesis.openapi.from_path(FILE)
FUZZED.config.phases.coverage.enabled = False
ALIKE = [
    *(
        f"get-website-id-{name}"
        for name in (
            *("time", "sources", "mediums", "campaigns", "terms", "contents"),
            *("browsers", "os", "devices", "countries"),
            *("goals-preview", "funnels-preview"),
        )
    ),
    "patch-websites-id-goals-id",
    "patch-websites-id-funnels-id",
    "patch-websites-id-annotations-id",
    "patch-websites-id-alerts-id",
    "patch-user-alerts-id",
]
"""Their parameters are those of the pages, or of what creates a goal, a funnel and the like.

Of these, every one is covered value by value.
"""
FILTERED = [
    entry.raw["operationId"]
    for entry in OPERATIONS
    if any(parameter.get("style") == "deepObject" for parameter in entry.parameters)
]
"""Every report."""

SESSION = requests.Session()
"""Keeps connections open, but no cookie."""
SESSION.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
SESSION.trust_env = False

RUNS = settings(
    max_examples=5,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


FEW_RUNS = settings(RUNS, max_examples=2)

RETURNING = "[events]\nreturning = true"
"""Without it, the filter by new and returning visitors is refused."""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("schemathesis"), configuration=RETURNING) as daemon:
        yield daemon
        assert "Traceback" not in daemon.log


@pytest.fixture(scope="module")
def another_daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("ending")) as daemon:
        yield daemon
        assert "Traceback" not in daemon.log


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Client:
    client = daemon.client()
    client.add_website(WITH_HITS)
    for number in range(20):
        load = {
            "e": "load",
            "b": f"b{number}",
            "u": f"https://{WITH_HITS}/{number % 3}?utm_source=s{number % 2}",
            "r": "https://www.google.com/search",
            "p": number % 2 == 0,
            "q": True,
            "t": "Europe/Berlin",
            "d": {"plan": f"p{number % 4}"},
        }
        assert client.request("POST", "/event/hit", load).status == 204
        unload = {"e": "unload", "b": f"b{number}", "m": 1_000 * number + 500}
        assert client.request("POST", "/event/hit", unload).status == 204
    return client


@COVERED.exclude(operation_id=[*ENDS_THE_LOGIN, *ALIKE]).parametrize()
@FEW_RUNS
def test_operations(case: schemathesis.Case, daemon: Daemon, client: Client) -> None:
    check(case, daemon, client)


@FUZZED.include(operation_id=sorted({*FILTERED, *ALIKE})).parametrize()
@FEW_RUNS
def test_operations_that_are_alike(case: schemathesis.Case, daemon: Daemon, client: Client) -> None:
    check(case, daemon, client)


@SCHEMA.include(operation_id=ENDS_THE_LOGIN).parametrize()
@RUNS
def test_operations_that_end_the_login(case: schemathesis.Case, another_daemon: Daemon) -> None:
    check(case, another_daemon, another_daemon.client())


LONG = settings(RUNS, max_examples=1_000, derandomize=False)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@SCHEMA.exclude(operation_id=ENDS_THE_LOGIN).parametrize()
@RUNS
def test_every_value_of_every_parameter(
    case: schemathesis.Case, daemon: Daemon, client: Client
) -> None:
    check(case, daemon, client)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@FUZZED.exclude(operation_id=ENDS_THE_LOGIN).parametrize()
@LONG
def test_operations_thoroughly(case: schemathesis.Case, daemon: Daemon, client: Client) -> None:
    check(case, daemon, client)


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@FUZZED.include(operation_id=ENDS_THE_LOGIN).parametrize()
@LONG
def test_operations_that_end_the_login_thoroughly(
    case: schemathesis.Case, another_daemon: Daemon
) -> None:
    check(case, another_daemon, another_daemon.client())


LINKED = {
    "websites": (
        "post-websites",
        "get-websites-id",
        "patch-websites-id",
        "delete-websites-id",
        "get-websites-id-shares",
    ),
    "shares": (
        "post-websites",
        "post-websites-id-shares",
        "get-shared-id",
        "post-shared-id",
        "delete-websites-id-shares-id",
    ),
    "goals": (
        "post-websites",
        "get-websites-id-goals",
        "post-websites-id-goals",
        "patch-websites-id-goals-id",
        "delete-websites-id-goals-id",
    ),
    "alerts": ("post-user-alerts", "patch-user-alerts-id", "delete-user-alerts-id"),
    "annotations": (
        "post-websites",
        "post-websites-id-annotations",
        "patch-websites-id-annotations-id",
        "delete-websites-id-annotations-id",
    ),
    "tokens": ("post-user-tokens", "delete-user-tokens-id"),
}
"""Of each kind what makes it, and what links lead to from there: few, so that they lead far."""


def go_from_link_to_link(daemon: Daemon, client: Client, kind: str, runs: settings) -> Counter[str]:
    """Create resources and follow their links; return how often each status came."""
    seen: Counter[str] = Counter()

    class Links(SCHEMA.include(operation_id=list(LINKED[kind])).as_state_machine()):
        def setup(self) -> None:
            # Each begins alike, or the same steps would end otherwise.
            for website in client.get("/api/websites"):
                if website["hostname"] != WITH_HITS:
                    path = f"/api/websites/{website['hostname']}"
                    assert client.request("DELETE", path).status == 204
            for token in client.get("/api/user/tokens"):
                path = f"/api/user/tokens/{token['id']}"
                assert client.request("DELETE", path).status == 204

        def before_call(self, case: schemathesis.Case) -> None:
            assert client.cookie is not None
            case.cookies["_me_sess"] = client.cookie.partition("=")[2]

        def get_call_kwargs(self, _case: schemathesis.Case) -> dict[str, Any]:
            return {"base_url": daemon.base + "/api", "timeout": PATIENCE_S, "session": SESSION}

        def validate_response(
            self, response: schemathesis.Response, case: schemathesis.Case, **_more: Any
        ) -> None:
            seen[f"{case.method} {case.path} {response.status_code}"] += 1
            # That the cookie is needed is held elsewhere; this takes ours for an invented one.
            without = [ignored_auth]
            if case.path == "/shared/{share}":
                # The link's body has replaced the generated one.
                without += [negative_data_rejection, positive_data_acceptance]
            judge(case, response, *without)

    run_state_machine_as_test(Links, settings=runs)
    return seen


STEPS = settings(RUNS, phases=[Phase.generate], max_examples=30, stateful_step_count=7)


@pytest.mark.parametrize("kind", LINKED)
def test_links_lead_where_the_document_says(daemon: Daemon, client: Client, kind: str) -> None:
    # Few bodies that fit the document are goals, and few of these are deleted by a link.
    seen = go_from_link_to_link(
        daemon, client, kind, settings(STEPS, max_examples=200) if kind == "goals" else STEPS
    )
    taken = {step.rpartition(" ")[0] for step in seen if step.rpartition(" ")[2] < "300"}
    assert taken == {operation_of(name) for name in LINKED[kind]}, seen


@pytest.mark.slow
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("kind", LINKED)
def test_links_lead_where_the_document_says_thoroughly(
    daemon: Daemon, client: Client, kind: str
) -> None:
    long = settings(STEPS, max_examples=1_000, derandomize=False)
    assert go_from_link_to_link(daemon, client, kind, long)


def operation_of(name: str) -> str:
    """Return method and path of an operation."""
    operation = SCHEMA.find_operation_by_id(name)
    return f"{operation.method.upper()} {operation.path}"


def check(case: schemathesis.Case, daemon: Daemon, client: Client) -> None:
    """Send a case, with the session cookie if it has one, and check the response."""
    assert client.cookie is not None
    if "_me_sess" in case.cookies:
        case.cookies["_me_sess"] = client.cookie.partition("=")[2]
    if case.path.startswith("/website/") and is_positive(case, ParameterLocation.PATH):
        case.path_parameters["hostname"] = WITH_HITS
    prefix = "" if case.path.startswith(AT_THE_ROOT) else "/api"
    response = case.call(base_url=daemon.base + prefix, timeout=PATIENCE_S, session=SESSION)
    judge(case, response)


def judge(case: schemathesis.Case, response: schemathesis.Response, *without: Any) -> None:
    """Check a response against the document."""
    is_beyond = response.status_code == 400 and BEYOND_THE_DOCUMENT.match(
        response.json()["error"]["message"]
    )
    excluded = [*without, *([positive_data_acceptance] if is_beyond else [])]
    # Too large a body is rejected unread, whatever else is wrong with it.
    if has_international_name(case) or response.status_code == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        excluded.append(negative_data_rejection)
    case.validate_response(response, excluded_checks=excluded)


def has_international_name(case: schemathesis.Case) -> bool:
    """Return whether a website is named in letters beyond ASCII.

    Such a name is taken, as the document says, but which ones are no pattern tells.
    """
    return isinstance(case.body, dict) and not str(case.body.get("hostname", "")).isascii()


def is_positive(case: schemathesis.Case, place: ParameterLocation) -> bool:
    """Return whether what a case has in a place fits the document."""
    assert case.meta is not None
    component = case.meta.components.get(place)
    return component is not None and component.mode.is_positive
