"""The hours since a moment against those of earlier weeks, over HTTP."""

from typing import Any

import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Browser
from support.web.daemon_in_memory import NOW, Server

from medamad.domain.instants import second_as_text

COMPARE = "/website/example.com/compare"
ANNOTATIONS = "/websites/example.com/annotations"
WEEK_S = 7 * 86_400
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


async def come(owner: Browser, server: Server, count: int) -> None:
    for number in range(count):
        headers = {"User-Agent": FIREFOX, "Accept-Language": f"en;q=0.{number + 1}"}
        body = {
            "e": "load",
            "b": f"{server.now} {number}",
            "u": "https://example.com/",
            "p": True,
            "q": True,
        }
        assert (await owner.ask("POST", "/event/hit", body, headers=headers)).status == 204


async def weeks(owner: Browser, server: Server) -> None:
    """Let a day with four visits, one with three and, a week later, one with a visit pass."""
    for visits in (4, 3):
        await come(owner, server, visits)
        server.now += WEEK_S
    await come(owner, server, 1)
    server.now += 60
    # The login has ended meanwhile.
    owner.cookie = (await server.owner()).cookie


async def compare(owner: Browser, query: str = "") -> Any:
    answer = await owner.ask("GET", f"{COMPARE}?{query}")
    assert answer.status == 200, answer.body
    return answer.json


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_by_default_it_is_since_a_day_ago(server: Server, owner: Browser) -> None:
    await weeks(owner, server)
    found = await compare(owner, "metric=visits&worse_than=20%25")
    assert found == {
        "since": second_as_text(NOW + 2 * WEEK_S + 60 - 86_400),
        "until": second_as_text(NOW + 2 * WEEK_S + 60),
        # The first view is later than the beginning of the first of these days.
        "earlier_weeks": 1,
        "metrics": [
            {
                "metric": "visits",
                "now": 1,
                "before": 3.0,
                "change": -0.6667,
                "by_chance": True,
                "is_worse": False,
            }
        ],
    }


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_it_begins_with_a_moment_or_the_latest_annotation_of_a_name(
    server: Server, owner: Browser
) -> None:
    await weeks(owner, server)
    begin = NOW + 2 * WEEK_S
    for text, at in (("deploy 1", begin - 900), ("Deploy 2", begin), ("deployed", begin + 10)):
        details = {"text": text, "time": second_as_text(at)}
        assert (await owner.ask("POST", ANNOTATIONS, details)).status == 201
    planned = {"text": "deploy 3", "time": second_as_text(begin + 900)}
    assert (await owner.ask("POST", ANNOTATIONS, planned)).status == 201
    since_deploy = await compare(owner, "annotation=deploy")
    assert since_deploy["earlier_weeks"] == 2
    assert since_deploy["since"] == second_as_text(begin)
    assert since_deploy == await compare(owner, f"since={second_as_text(begin)}")
    figures = {each["metric"]: (each["now"], each["before"]) for each in since_deploy["metrics"]}
    assert figures["visits"] == figures["visitors"] == (1, 3.5)
    day = second_as_text(begin)[:10]
    assert (await compare(owner, f"since={day}"))["since"] == f"{day}T00:00:00Z"


@pytest.mark.parametrize(
    ("query", "status", "reason"),
    [
        ("since=monday", 400, "since: expected an RFC 3339 date-time such as"),
        ("since=2020-01-01", 400, "since: expected a time in the last seven days"),
        ("since=9999-01-01", 400, "since: expected a time that is not in the future"),
        ("since=2026-02-30", 400, "since: expected a date of the years 0001 to 9999"),
        ("since=2025-06-15&annotation=a", 400, "since: expected at most one of since and"),
        ("annotation=deploy", 404, "annotation: there is none named deploy until now"),
        ("metric=orders", 400, "metric: expected some of visits, visitors, pageviews, bounces,"),
        ("worse_than=much", 400, "worse_than: expected a share such as 20% or 0.2"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_what_is_wrong_is_rejected(
    owner: Browser, query: str, status: int, reason: str
) -> None:
    refused = await owner.ask("GET", f"{COMPARE}?{query}")
    assert refused.status == status
    assert refused.error.startswith(reason)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_what_is_not_counted_is_not_compared(server: Server, owner: Browser) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, has_visitors=False)
    settings = server.store.settings
    server.store.apply(evolve(settings, visits=evolve(settings.visits, is_on=False)))
    found = await compare(owner)
    assert [each["metric"] for each in found["metrics"]] == ["pageviews", "time", "not-found"]
    for metric, what in (("visits", "visits"), ("visitors", "visitors")):
        refused = await owner.ask("GET", f"{COMPARE}?metric={metric}")
        assert refused.error == f"metric: {what} are not counted (see the configuration)"
