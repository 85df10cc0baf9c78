"""The keyboard shortcuts of the dashboard."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import BUSY, Dashboard, loaded
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def test_shortcuts_work(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).turn_to(BUSY)
    heading = page.get_by_role("heading", level=1)
    dialog = page.get_by_role("dialog")
    loaded(page)
    page.keyboard.press("?")
    expect(dialog.locator(".keys-row")).to_have_count(37)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.keyboard.press("x")
    page.wait_for_url("**?period=12mo")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**?from=*&to=*")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**?period=12mo")
    loaded(page)
    with page.expect_response("**/summary?*"), page.expect_response("**/live"):
        page.keyboard.press(".")
    page.keyboard.press("f")
    value = page.get_by_role("combobox", name="Value")
    expect(value).to_be_focused()
    page.keyboard.type("ty?")
    expect(value).to_have_value("ty?")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    # A closed dialog has the focus until it is removed.
    expect(page.locator("dialog")).to_have_count(0)
    page.keyboard.press("s")
    expect(page.get_by_role("menuitemradio", checked=True)).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.type("gw")
    expect(heading).to_have_text("Websites")
    page.go_back()
    page.wait_for_url(re.compile(r"\?period=12mo$"))
