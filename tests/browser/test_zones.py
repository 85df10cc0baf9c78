"""Choosing the time zone of a website's page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.browser.known_website import HOSTNAME
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


@pytest.mark.parametrize(
    ("typed", "zone"), [("tokyo", "Asia/Tokyo"), ("New York", "America/New_York")]
)
def test_a_zone_is_found_by_its_city(
    typed: str, zone: str, known: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(known).turn_to(f"websites/{HOSTNAME}?period=7d")
    page.locator(".tile-figure").first.wait_for()
    page.keyboard.press("z")
    field = page.get_by_role("dialog", name="Time zone").get_by_label("Show times in")
    expect(field).to_be_focused()
    field.fill(typed)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**?period=7d&zone={zone}")
