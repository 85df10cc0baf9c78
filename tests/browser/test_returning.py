"""People come back on other days, weeks and months, in a real browser."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard, loaded
from support.browser.example_site import Site, served
from support.browser.overview import figures as tiles
from support.browser.visitors import Visitor
from support.daemon import Client
from support.durability.moving_clock import Clock, with_settable_clock

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]
MakeDashboard = Callable[..., Dashboard]

HOSTNAME = "returning.localhost"
FIGURES = ("visitors", "new_visitors", "returning_visitors", "week_visitors", "month_visitors")


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[Clock]:
    with with_settable_clock(tmp_path, "[events]\nreturning = true") as clock:
        yield clock


@pytest.fixture
def own_site(clock: Clock) -> Iterator[Site]:
    with served(f'<script defer src="{clock.daemon.base}/script.js"></script>') as site:
        yield site


def figures(of: dict[str, Any]) -> tuple[int | None, ...]:
    """Return the figures of FIGURES, None for those that are not defined."""
    return tuple(of.get(name) for name in FIGURES)


def summary(owner: Client, start: str, end: str, **parameters: str) -> dict[str, Any]:
    period = {"start": f"{start}T00:00:00Z", "end": f"{end}T23:59:59Z", "visits": "true"}
    path = f"/api/website/{HOSTNAME}/summary"
    found: dict[str, Any] = owner.get(path, **period, **parameters)
    return found


def test_one_comes_back_and_another_does_too(
    clock: Clock, own_site: Site, someone: Make, dashboard_of: MakeDashboard
) -> None:
    clock.daemon.client().add_website(HOSTNAME)
    ada, ben = someone(), someone()
    # Two days of one week, the next week, the next month, and days around the first of March, a
    # Saturday.
    for visitor, moment, since in (
        (ada, "2031-01-08T12:00", "new"),
        (ben, "2031-01-08T12:30", "new"),
        (ada, "2031-01-08T18:00", "day"),
        (ada, "2031-01-10T00:10", "day"),
        (ada, "2031-01-13T12:00", "week"),
        (ada, "2031-02-03T12:00", "month"),
        (ben, "2031-02-05T12:00", "month"),
        (ada, "2031-02-28T23:50", "week"),
        (ada, "2031-03-01T00:40", "midweek"),
        (ada, "2031-03-02T12:00", "day"),
    ):
        clock.set_to(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp())
        path = "/" if since == "new" else "/about"
        address = own_site.address(HOSTNAME, path)
        answer = visitor.visit(lambda: visitor.page.goto(address))  # noqa: B023 - called at once
        load = answer.request.post_data_json
        is_first = moment != "2031-01-08T18:00"
        assert (load["since"], load["p"], load["n"]) == (since, is_first, 1 if is_first else 2)
    assert (ada.errors, ben.errors) == ([], [])

    owner = clock.daemon.client()
    weeks = summary(owner, "2031-01-06", "2031-01-19", interval="week")
    assert [figures(row) for row in weeks["interval"]] == [(3, 2, 1, 2, None), (1, 0, 1, 1, None)]
    months = summary(owner, "2031-01-01", "2031-03-31", interval="month")
    assert [figures(row) for row in months["interval"]] == [
        (4, 2, 2, None, 2),
        (3, 0, 3, None, 2),
        (2, 0, 2, None, 1),
    ]
    assert figures(months["current"]) == (9, 2, 7, None, None)
    around_march = summary(owner, "2031-02-24", "2031-03-02")
    assert figures(around_march["current"]) == (3, 0, 3, 1, None)
    for which, visits in (("new", 2), ("returning", 8)):
        found = summary(owner, "2031-01-01", "2031-03-31", visitor=which)["current"]
        assert (found["visits"], found["pageviews"]) == (visits, visits)

    dashboard = dashboard_of(owner, now="2031-03-02T12:05:00Z")
    page = dashboard.open(f"websites/{HOSTNAME}?zone=UTC&from=2031-02-24&to=2031-03-02")
    loaded(page)
    note = page.locator(".tiles-note")
    expect(note).to_have_text(
        "New visitors 0 · Returning visitors 3 · Unique visitors of the week 1"
    )
    assert dashboard.violations(within=".tiles-note") == []
    dashboard.turn_to(f"websites/{HOSTNAME}?zone=UTC&from=2031-02-24&to=2031-03-02&path=/")
    loaded(page)
    expect(note).not_to_contain_text("visitors")


def test_one_buys_another_bounces_and_a_third_comes_back_next_week(
    clock: Clock, someone: Make, dashboard_of: MakeDashboard
) -> None:
    owner = clock.daemon.client()
    owner.add_website(HOSTNAME)
    goal = {"name": "Order", "event": "event", "value": "order"}
    revenue = {"revenue": "total", "currency": "EUR"}
    owner.request("POST", f"/api/websites/{HOSTNAME}/goals", goal | revenue)
    buyer, bouncer, regular = someone(), someone(), someone()
    tag = f'<script defer src="{clock.daemon.base}/script.js"></script>'
    contents = {"/": '<a href="/shoes" target="_blank" rel="opener">shoes</a>'}
    contents["/shoes"] = '<a href="/thanks">buy</a>'

    with served(tag, contents) as site:

        def opens(visitor: Visitor, moment: str, path: str) -> None:
            clock.set_to(datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp())
            visitor.visit(lambda: visitor.page.goto(site.address(HOSTNAME, path)))

        opens(regular, "2031-01-06T09:00", "/blog")
        opens(bouncer, "2031-01-06T10:00", "/blog")
        opens(buyer, "2031-01-06T12:00", "/?utm_source=news&utm_campaign=winter")
        with buyer.context.expect_page() as opened:
            buyer.page.get_by_role("link", name="shoes").click()
        buyer.page = opened.value
        buyer.page.wait_for_load_state("networkidle")
        buyer.visit(lambda: buyer.page.get_by_role("link", name="buy").click())
        with buyer.page.expect_response("**/event/hit"):
            buyer.page.evaluate("medamad('order', {total: 49.9})")
        opens(regular, "2031-01-13T09:00", "/blog")

    dashboard = dashboard_of(clock.daemon.client(), now="2031-01-13T09:05:00Z")
    page = dashboard.open(f"websites/{HOSTNAME}?zone=UTC&from=2031-01-06&to=2031-01-13")
    assert tiles(page)[:5] == ["4", "4", "6", "1.5", "75%"]
    expect(page.locator(".tiles-note")).to_contain_text("New visitors 3 · Returning visitors 1")
    expect(page.locator(".goal-rows tbody tr")).to_contain_text("125%€")
    expect(page.locator(".goal-rows").get_by_title("€49.90")).to_be_visible()
    page.goto(page.url + "&visit_utm_campaign[eq]=winter")
    assert tiles(page)[:5] == ["1", "1", "3", "3", "0%"]
    page.goto(page.url.partition("&visit")[0].replace("01-06&", "01-13&"))
    assert tiles(page)[:5] == ["1", "1", "1", "1", "100%"]
