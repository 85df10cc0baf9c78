"""What changed, over HTTP."""

from typing import Any

import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Browser
from support.web.daemon_in_memory import Server

PERIOD = "start=2025-06-15T00:00:00Z&end=2025-06-15T23:59:59Z"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


async def come(owner: Browser, *visits: tuple[str, str]) -> None:
    """Make visits, of which each has a language of its own."""
    for number, (path, referrer) in enumerate(visits):
        headers = {"User-Agent": FIREFOX, "Accept-Language": f"en;q=0.{number + 1}"}
        body = {
            "e": "load",
            "b": f"b{number}",
            "u": f"https://example.com{path}",
            "r": referrer,
            "p": True,
            "q": True,
            "t": "Europe/Vienna",
        }
        assert (await owner.ask("POST", "/event/hit", body, headers=headers)).status == 204


async def changes(owner: Browser, query: str) -> Any:
    answer = await owner.ask("GET", f"/website/example.com/changes?{query}")
    assert answer.status == 200, answer.body
    return answer.json


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_the_parts_of_a_difference(owner: Browser) -> None:
    google = "https://www.google.com/"
    await come(owner, ("/guide", google), ("/guide", google), ("/", "https://t.co/x"))
    goal = {"name": "Guide", "path": "/guide"}
    made = await owner.ask("POST", "/websites/example.com/goals", goal)
    found = await changes(owner, f"{PERIOD}&limit=1&conversions={made.json['id']}")
    of_source, of_page, of_country, _, _, of_goal = found.pop("dimensions")
    assert found == {
        "metric": "visits",
        "compared_with": {
            "start": "2025-06-14T00:00:00+00:00",
            # As long as the present day has lasted.
            "end": "2025-06-14T15:06:40+00:00",
        },
        "earlier_weeks": 0,
        "before": 0,
        "now": 3,
        "difference": 3,
        "by_chance": True,
        "pairs": [],
    }
    rise = {"before": 0, "now": 2, "difference": 2, "by_chance": True}
    rest = {"parts": 1, "before": 0, "now": 1, "difference": 1}
    parts = [{"name": "Google", **rise}]
    assert of_source == {"dimension": "source", "parts": parts, "others": rest}
    parts = [{"name": "/guide", **rise}]
    assert of_page == {"dimension": "entry_page", "parts": parts, "others": rest}
    assert of_country["parts"][0]["name"] == "Austria"
    parts = [{"name": "reached", **rise}]
    assert of_goal == {"dimension": "goal", "parts": parts, "others": rest}


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_revenue_by_where_its_visits_began(owner: Browser) -> None:
    await come(owner, ("/guide", "https://www.google.com/"), ("/", "https://t.co/x"))
    for number, amount in enumerate(("19.90", "0.10", "5"), 1):
        order = {"e": "custom", "b": f"b{number // 3}", "g": "example.com", "d": {"paid": amount}}
        assert (await owner.ask("POST", "/event/hit", order)).status == 204
    goal = {"name": "Order", "event": "paid", "revenue": "paid", "currency": "EUR"}
    made = await owner.ask("POST", "/websites/example.com/goals", goal)
    found = await changes(owner, f"{PERIOD}&metric=revenue&conversions={made.json['id']}")
    assert (found["metric"], found["currency"], found["now"]) == ("revenue", "EUR", 25)
    parts = found["dimensions"][0]["parts"]
    assert [(part["name"], part["now"]) for part in parts] == [("Google", 20), ("t.co", 5)]


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_two_periods_and_a_filter_are_chosen(server: Server, owner: Browser) -> None:
    await come(owner, ("/", ""), ("/", ""), ("/guide", ""))
    server.now += 3 * 86_400
    await come(owner, ("/", ""))
    later = "start=2025-06-18T00:00:00Z&end=2025-06-18T23:59:59Z&path=/"
    compared = PERIOD.replace("start", "compare_start").replace("end=", "compare_end=")
    for metric in ("visits", "visitors", "pageviews"):
        found = await changes(owner, f"{later}&{compared}&metric={metric}")
        assert (found["before"], found["now"], found["difference"]) == (2, 1, -1)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_figures_that_are_not_counted_cannot_change(server: Server, owner: Browser) -> None:
    path = f"/website/example.com/changes?{PERIOD}"
    answer = await owner.ask("GET", f"{path}&metric=visit_duration")
    expected = "expected one of visits, visitors, pageviews, conversions, revenue"
    reason = "rates, means and medians are not the sum of their parts"
    assert (answer.status, answer.error) == (400, f"metric: {expected}; {reason}")
    server.pipeline.rules = evolve(server.pipeline.rules, has_visitors=False)
    answer = await owner.ask("GET", f"{path}&metric=visitors")
    assert (answer.status, answer.error.partition(" (")[0]) == (
        400,
        "metric: visitors are not counted",
    )
    settings = server.store.settings
    server.store.apply(evolve(settings, visits=evolve(settings.visits, is_on=False)))
    answer = await owner.ask("GET", path)
    assert (answer.status, "visits are switched off" in answer.error) == (404, True)
    for query in ("conversions=x", "visitor=new"):
        answer = await owner.ask("GET", f"{path}&metric=visitors&{query}")
        assert answer.status in {400, 404}
    assert (await owner.ask("GET", f"{path}&metric=conversions")).status == 404


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_visitors_change_where_visits_are_switched_off(
    server: Server, owner: Browser
) -> None:
    settings = server.store.settings
    server.store.apply(evolve(settings, visits=evolve(settings.visits, is_on=False)))
    await come(owner, ("/", ""), ("/guide", ""))
    found = await changes(owner, f"{PERIOD}&metric=visitors")
    assert found["now"] == 2
    pages = found["dimensions"][1]["parts"]
    assert [part["name"] for part in pages] == ["/", "/guide"]
