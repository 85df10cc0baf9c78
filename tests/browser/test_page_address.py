"""The URL of a website's page, and invalid ones."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser import past_visits as past
from support.browser.dashboard import BUSY, Dashboard
from support.browser.overview import THREE_DAYS, cells, choose, figures, table, tile
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def test_back_and_forward(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    visitors = tile(page, "Visitors").locator(".tile-figure")
    expect(visitors).to_have_text("5")
    page.keyboard.press("ArrowLeft")
    expect(visitors).to_have_text("2")
    page.keyboard.press("c")
    expect(page.get_by_role("button", name="Compare")).to_have_attribute("aria-pressed", "false")
    page.go_back()
    expect(page.get_by_role("button", name="Compare")).to_have_attribute("aria-pressed", "true")
    page.go_back()
    expect(visitors).to_have_text("5")
    page.go_forward()
    expect(visitors).to_have_text("2")


def test_a_copied_link_shows_the_same(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    tile(page, "Views").click()
    choose(page, "Interval", "By hour")
    page.keyboard.press("c")
    page.locator(".panel").first.get_by_role("button", name="/about", exact=True).click()
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("1")
    expect(table(page).locator("tbody tr")).to_have_count(72)
    elsewhere = dashboard_of(march_owner, timezone_id="Asia/Tokyo")
    other = elsewhere.turn_to(page.url.removeprefix(f"{elsewhere.base}/dashboard/"))
    expect(table(other).locator("tbody tr")).to_have_count(72)
    assert figures(other) == figures(page)
    assert cells(other) == cells(page)
    expect(tile(other, "Views")).to_have_attribute("aria-pressed", "true")
    expect(other.get_by_role("group", name="Chart: Views, By hour")).to_be_visible()
    expect(other.get_by_role("button", name="Remove: Page is /about")).to_be_visible()


@pytest.mark.parametrize(
    "query",
    [
        "period=fortnight",
        "from=2025-03-12&to=2025-03-10",
        "from=2025-02-30&to=2025-03-10",
        "from=2025-03-10",
        "from=2025-03-10T09:00&to=2025-03-10T09:00",
        "zone=Nowhere/Atlantis&measure=joy&interval=second&compare=all",
    ],
)
def test_invalid_parameters_are_ignored(
    query: str, march_owner: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(march_owner).turn_to(f"websites/{past.HOSTNAME}?{query}")
    assert figures(page)[0] == "0"
    expect(page.get_by_role("button", name="Period: ")).to_contain_text("Last 30 days")
    expect(page.get_by_role("button", name="Time zone: ")).to_contain_text("Europe/Berlin")
    expect(page.get_by_role("button", name="Compare")).to_have_attribute("aria-pressed", "true")
    expect(tile(page, "Visitors")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("query", ["", "?period=all", "?period=24h", "?period=12mo"])
def test_a_website_without_visits(query: str, march_owner: Client, dashboard_of: Make) -> None:
    march_owner.request("POST", "/api/websites", {"hostname": "empty.example"})
    page = dashboard_of(march_owner).open(f"websites/empty.example{query}")
    assert figures(page) == ["0", "0", "0", *["\N{EN DASH}"] * 3]
    expect(page.locator(".overview").get_by_text("No visits in this period")).to_be_visible()
    expect(page.locator(".change")).to_have_count(0)
    expect(page.locator(".overview .skeleton")).to_have_count(0)


def test_a_future_range_is_ignored(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).turn_to(f"{BUSY}?from=2999-11-20&to=2999-11-21")
    figures(page)
    expect(page.get_by_role("button", name="Period: ")).to_contain_text("Last 30 days")


@pytest.mark.parametrize("query", ["", "?period=all"])
def test_a_website_without_visits_links_to_its_setup(
    query: str, march_owner: Client, dashboard_of: Make
) -> None:
    march_owner.request("POST", "/api/websites", {"hostname": "new.example"})
    page = dashboard_of(march_owner).open(f"websites/new.example{query}")
    page.locator(".overview").get_by_role("link", name="Script and setup").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up new.example")


def test_a_website_with_visits_does_not_mention_setup(
    march_owner: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(march_owner).open(f"websites/{past.HOSTNAME}")
    assert figures(page)[:3:2] == ["0", "0"]
    page.wait_for_load_state("networkidle")
    expect(page.locator(".overview").get_by_role("link")).to_have_count(0)
