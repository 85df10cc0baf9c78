"""The URL of a website's page, and a website without visits."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.browser.overview import THREE_DAYS, figures, tile
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
    comparison = page.get_by_role("button", name="Compare: ")
    expect(comparison).to_have_accessible_name("Compare: No comparison")
    page.go_back()
    expect(comparison).to_have_accessible_name("Compare: Previous period")
    page.go_back()
    expect(visitors).to_have_text("5")
    page.go_forward()
    expect(visitors).to_have_text("2")


def test_a_website_without_visits_links_to_its_setup(
    march_owner: Client, dashboard_of: Make
) -> None:
    march_owner.request("POST", "/api/websites", {"hostname": "empty.example"})
    page = dashboard_of(march_owner).open("websites/empty.example?period=all")
    assert figures(page) == ["0", "0", "0", *["\N{EN DASH}"] * 3]
    expect(page.locator(".overview").get_by_text("No visits in this period")).to_be_visible()
    page.locator(".overview").get_by_role("link", name="Script and setup").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up empty.example")
