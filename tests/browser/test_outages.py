"""An unreachable daemon, and scripts that cannot be loaded."""

from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import BUSY, Dashboard, loaded
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

RETRY_S: Final = 5


def test_the_last_figures_stay_in_grey_under_one_banner(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, fresh=True)
    dashboard.page.clock.install()
    page = dashboard.open(f"{BUSY}?period=yesterday")
    before = loaded(page).all_inner_texts()
    page.locator(".panel tbody tr").first.wait_for()
    page.wait_for_load_state("networkidle")
    days = page.locator(".chart-head p")
    yesterday = days.inner_text()
    page.context.set_offline(True)
    page.keyboard.press("w")
    away = page.get_by_role("alert")
    expect(away).to_have_count(1)
    expect(away).to_contain_text("The server isn’t responding")
    # They are still those of the period that was read, and the page says so.
    assert loaded(page).all_inner_texts() == before
    expect(days).to_have_text(yesterday)
    expect(page.locator(".panel tbody tr").first).to_be_visible()
    figure, label = (page.locator(of).first for of in (".tile-figure", ".tile-name"))
    colour = "it => getComputedStyle(it).color"
    assert figure.evaluate(colour) == label.evaluate(colour)
    assert dashboard.violations("all but colours", without=".panel") == []
    assert dashboard.violations("colours", within=".away, .overview, .panel:nth-child(1)") == []
    # Of another website there is nothing, and still one banner.
    page.keyboard.press("s")
    page.get_by_role("menuitemradio").last.click()
    expect(page.locator(".tile-figure")).to_have_count(0)
    expect(page.locator(".panel .skeleton").first).to_be_visible()
    expect(away).to_have_count(1)
    page.context.set_offline(False)
    page.clock.fast_forward(RETRY_S * 1000)
    loaded(page)
    expect(away).to_have_count(0)
    expect(days).not_to_have_text(yesterday)
    # It is not retried at its times alone.
    page.context.set_offline(True)
    page.keyboard.press(".")
    expect(away).to_be_visible()
    page.context.set_offline(False)
    away.get_by_role("button", name="Try again").click()
    expect(away).to_have_count(0)
    dashboard.complaints.clear()


def test_a_script_that_cannot_be_loaded(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo, fresh=True).open("nowhere")
    page.route("**/assets/page-*.js", lambda route: route.abort("connectionrefused"))
    page.keyboard.type("gs")
    trouble = page.get_by_role("alert")
    expect(trouble).to_contain_text("The server isn’t responding")
    page.unroute("**/assets/page-*.js")
    with page.expect_event("load"):
        trouble.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
