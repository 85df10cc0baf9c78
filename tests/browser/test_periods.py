"""The periods and time zones of a website's page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser import past_visits as past
from support.browser.dashboard import Dashboard
from support.browser.overview import THREE_DAYS, cells, chart, choose, figures, plain, tile
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def test_a_custom_range(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    assert figures(page)[:3:2] == ["5", "6"]
    period = page.get_by_role("button", name="Period: ")
    dialog = page.get_by_role("dialog", name="Custom range")
    choose(page, "Period", "Custom range")
    expect(dialog.get_by_label("Start date")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(period).to_be_focused()
    choose(page, "Period", "Custom range")
    expect(dialog.get_by_label("Start date")).to_have_value("2025-03-10")
    expect(dialog.get_by_label("End date")).to_have_value("2025-03-12")
    dialog.get_by_role("button", name="7 March", exact=True).click()
    dialog.get_by_role("button", name="8 March", exact=True).click()
    expect(dialog.get_by_label("Start date")).to_have_value("2025-03-07")
    expect(dialog.get_by_label("End date")).to_have_value("2025-03-08")
    dialog.get_by_role("button", name="Show this range").click()
    page.wait_for_url("**from=2025-03-07&to=2025-03-08&zone=UTC")
    expect(period).to_be_focused()
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("2")
    assert "7-8 Mar 2025" in plain(period.inner_text())
    chart(page).focus()
    page.keyboard.press("r")
    dialog.get_by_label("End date").fill("2025-03-07")
    page.keyboard.press("Enter")
    page.wait_for_url("**from=2025-03-07&to=2025-03-07&zone=UTC")
    expect(chart(page)).to_be_focused()


def test_periods_and_zones_are_those_of_the_daemon(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(
        f"websites/{past.HOSTNAME}?from=2025-03-12&to=2025-03-12"
    )
    visitors = tile(page, "Visitors").locator(".tile-figure")
    expect(visitors).to_have_text("1")
    assert [row[0] for row in cells(page) if row[1] != "0"] == ["Wed 12 Mar 13:00"]
    page.keyboard.press("z")
    field = page.get_by_role("dialog", name="Time zone").get_by_label("Show times in")
    expect(field).to_be_focused()
    field.fill("new york")
    page.keyboard.press("Enter")
    page.wait_for_url("**&zone=America/New_York")
    expect(visitors).to_have_text("2")
    assert [row[0] for row in cells(page) if row[1] != "0"] == [
        "Wed 12 Mar 8:00",
        "Wed 12 Mar 19:00",
    ]
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**?from=2025-03-11&to=2025-03-11&zone=America/New_York")
    expect(visitors).to_have_text("1")
    page.keyboard.press("a")
    page.wait_for_url("**?period=all&zone=America/New_York")
    expect(visitors).to_have_text("8")
    assert figures(page)[:3:2] == ["8", "9"]
    assert cells(page)[0][0].startswith("March 2025")
