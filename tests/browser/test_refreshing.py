"""Loading and refreshing data."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from playwright.sync_api import Page, Request, expect
from support.browser.dashboard import BUSY, Dashboard, loaded
from support.browser.held_requests import HeldRequests
from support.browser.known_website import Visit, send
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

REFRESH_S: Final = 30


def test_skeletons_stand_in_for_what_is_loading(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    held = HeldRequests(dashboard.page, "**/api/website/**")
    page = dashboard.open(BUSY)
    expect(page.locator(".tile .skeleton")).to_have_count(6)
    expect(page.locator(".chart-body .skeleton")).to_be_visible()
    expect(page.locator(".panel .skeleton").first).to_be_visible()
    held.let_go()
    loaded(page)
    page.locator(".panel tbody tr").first.wait_for()
    expect(page.locator(".overview .skeleton")).to_have_count(0)


def test_old_data_stays_while_new_data_is_loading(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(BUSY)
    before = loaded(page).all_inner_texts()
    page.wait_for_load_state("networkidle")
    held = HeldRequests(page, "**/api/website/**")
    with page.expect_request("**/summary?*"):
        page.keyboard.press(".")
    expect(page.locator(".overview")).to_have_attribute("aria-busy", "true")
    assert loaded(page).all_inner_texts() == before
    # Those of another period are shown as what they are: old.
    page.keyboard.press("y")
    expect(page.locator(".tiles.stale")).to_be_visible()
    assert loaded(page).all_inner_texts() == before
    expect(page.locator(".skeleton")).to_have_count(0)
    held.let_go()
    expect(page.locator(".stale")).to_have_count(0)
    assert loaded(page).all_inner_texts() != before
    expect(page.locator(".overview")).to_have_attribute("aria-busy", "false")
    # What was read before is there at once.
    held = HeldRequests(page, "**/api/website/**")
    page.keyboard.press("m")
    expect(loaded(page)).to_have_text(before)
    expect(page.locator(".tiles.stale")).to_have_count(0)
    held.let_go()


def hide(page: Page, is_hidden: bool) -> None:
    """Make the page believe that its tab was hidden or shown."""
    page.evaluate(
        """(isHidden) => {
          Object.defineProperty(document, "hidden", { get: () => isHidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        is_hidden,
    )


def hear(page: Page) -> None:
    """Process all requests that the page has made by now."""
    page.evaluate("fetch('/api/event/ping')")


def test_data_is_refreshed_while_the_page_is_visible(
    new_daemon: Daemon, dashboard_of: Make
) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    dashboard = dashboard_of(owner, fresh=True)
    page = dashboard.page
    page.clock.install()
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/api/website/" in request.url:
            asked.append(request.url)

    page.on("request", note)
    dashboard.open("websites/example.com")
    expect(loaded(page).first).to_have_text("0")
    page.wait_for_load_state("networkidle")
    # From here on, the test advances the page's clock.
    page.clock.pause_at(datetime.now(UTC) + timedelta(minutes=10))
    with page.expect_response("**/summary?*"), page.expect_response("**/live"):
        hide(page, False)
    send(owner, "example.com", Visit("/"))
    hear(page)
    asked.clear()
    page.clock.fast_forward(REFRESH_S * 1000 - 1)
    hear(page)
    assert asked == []
    page.clock.fast_forward(1)
    expect(loaded(page).first).to_have_text("1")

    hide(page, True)
    send(owner, "example.com", Visit("/"))
    asked.clear()
    page.clock.fast_forward(10 * REFRESH_S * 1000)
    hear(page)
    assert asked == []
    expect(loaded(page).first).to_have_text("1")
    hide(page, False)
    expect(loaded(page).first).to_have_text("2")
