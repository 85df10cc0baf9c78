"""The real daemon against its own document: what fits is taken, what does not is refused."""

import re
from collections.abc import Iterator
from email.utils import formatdate

import pytest
import schemathesis
from daemon import Client, Daemon, running
from document import FILE
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation
from schemathesis.specs.openapi.checks import positive_data_acceptance

pytestmark = pytest.mark.daemon

ENDS_THE_LOGIN = ["delete-user", "post-auth-logout"]
WITH_HITS = "with-hits.example"
BEYOND_THE_DOCUMENT = re.compile(
    "start: expected a date-time that is not after end|previous: expected start and end"
    "|u: expected the URL of the page, since no Referer gives it"
    "|interval: expected at most|hostname: .* is the name of another website"
)
"""Refusals of what fits the document: a schema cannot say what goes together with what."""

schemathesis.openapi.format(
    "http-date",
    st.integers(0, 4_000_000_000).map(lambda seconds: formatdate(seconds, usegmt=True)),
)
schemathesis.openapi.format(
    "time-zone", st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "America/St_Johns"])
)
SCHEMA = schemathesis.openapi.from_path(FILE)
FUZZED = schemathesis.openapi.from_path(FILE)
FUZZED.config.phases.coverage.enabled = False
ALIKE = [
    f"get-website-id-{name}"
    for name in (
        *("time", "sources", "mediums", "campaigns", "terms", "contents"),
        *("browsers", "os", "devices", "countries"),
    )
]
"""Their parameters are those of the pages, of which every one is covered value by value."""

RUNS = settings(
    max_examples=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("schemathesis")) as daemon:
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


@SCHEMA.exclude(operation_id=[*ENDS_THE_LOGIN, *ALIKE]).parametrize()
@RUNS
def test_operations(case: schemathesis.Case, daemon: Daemon, client: Client) -> None:
    check(case, daemon, client)


@FUZZED.include(operation_id=ALIKE).parametrize()
@RUNS
def test_operations_that_are_alike(case: schemathesis.Case, daemon: Daemon, client: Client) -> None:
    check(case, daemon, client)


@SCHEMA.include(operation_id=ENDS_THE_LOGIN).parametrize()
@RUNS
def test_operations_that_end_the_login(case: schemathesis.Case, another_daemon: Daemon) -> None:
    check(case, another_daemon, another_daemon.client())


def check(case: schemathesis.Case, daemon: Daemon, client: Client) -> None:
    """Send a case, with the login's cookie where it has one, and judge the answer."""
    assert client.cookie is not None
    if "_me_sess" in case.cookies:
        case.cookies["_me_sess"] = client.cookie.partition("=")[2]
    if case.path.startswith("/website/") and is_positive(case, ParameterLocation.PATH):
        case.path_parameters["hostname"] = WITH_HITS
    prefix = "" if case.path.startswith("/script") else "/api"
    response = case.call(base_url=daemon.base + prefix)
    is_beyond = response.status_code == 400 and BEYOND_THE_DOCUMENT.match(
        response.json()["error"]["message"]
    )
    excluded = [positive_data_acceptance] if is_beyond else None
    case.validate_response(response, excluded_checks=excluded)


def is_positive(case: schemathesis.Case, place: ParameterLocation) -> bool:
    """Tell whether what a case has in a place fits the document."""
    assert case.meta is not None
    component = case.meta.components.get(place)
    return component is not None and component.mode.is_positive
