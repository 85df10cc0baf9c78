"""An unreachable or failing daemon, an expired session, an unknown page."""

from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import Route, expect
from support.browser.dashboard import BUSY, Dashboard, loaded
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

RETRY_S: Final = 5


def abort(route: Route) -> None:
    route.abort("connectionrefused")


def test_a_daemon_that_becomes_unreachable_and_returns(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, fresh=True)
    dashboard.page.clock.install()
    page = dashboard.open(BUSY)
    before = loaded(page).all_inner_texts()
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)
    page.keyboard.press(".")
    away = page.get_by_role("alert")
    expect(away).to_contain_text("The server isn’t responding")
    expect(away).to_contain_text("Figures in grey are the last ones received.")
    assert loaded(page).all_inner_texts() == before
    page.context.set_offline(False)
    away.get_by_role("button", name="Try again").click()
    expect(away).to_have_count(0)
    # It retries by itself, too.
    page.context.set_offline(True)
    page.keyboard.press(".")
    expect(away).to_be_visible()
    page.context.set_offline(False)
    page.clock.fast_forward(RETRY_S * 1000)
    expect(away).to_have_count(0)
    assert loaded(page).all_inner_texts() == before


def test_a_daemon_that_is_unreachable_from_the_start(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, fresh=True)
    page = dashboard.page
    page.clock.install()
    page.route("**/api/**", abort)
    page.goto(f"{dashboard.base}/dashboard/{BUSY}")
    expect(page.get_by_role("alert")).to_have_text("The server isn’t responding")
    page.unroute("**/api/**")
    page.clock.fast_forward(RETRY_S * 1000)
    loaded(page)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_an_error_is_shown_where_it_occurred(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    fault = {"error": {"code": 500, "message": "an internal fault"}}
    dashboard.page.route("**/summary?*", lambda route: route.fulfill(status=500, json=fault))
    page = dashboard.open(BUSY)
    trouble = page.locator(".overview").get_by_role("alert")
    expect(trouble).to_contain_text("Something went wrong")
    page.locator(".panel tbody tr").first.wait_for()
    page.unroute("**/summary?*")
    trouble.get_by_role("button", name="Try again").click()
    loaded(page)
    expect(trouble).to_have_count(0)
    assert dashboard.complaints
    dashboard.complaints.clear()


def test_a_failed_query_does_not_leave_old_data(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    page = dashboard.open(f"{BUSY}?period=yesterday")
    loaded(page)
    page.locator(".panel tbody tr").first.wait_for()
    page.wait_for_load_state("networkidle")
    fault = {"error": {"code": 500, "message": "an internal fault"}}
    page.route("**/api/website/**", lambda route: route.fulfill(status=500, json=fault))
    page.keyboard.press("t")
    trouble = page.locator(".overview").get_by_role("alert")
    expect(trouble).to_contain_text("Something went wrong")
    expect(page.locator(".panel").first.get_by_role("alert")).to_be_visible()
    expect(page.locator(".tile-figure, .overview tbody tr, .panel tbody tr")).to_have_count(0)
    # Those of the period that was read are still there.
    page.keyboard.press("y")
    loaded(page)
    page.keyboard.press("a")
    expect(trouble).to_be_visible()
    expect(page.locator(".tile-figure")).to_have_count(0)
    page.unroute("**/api/website/**")
    dashboard.complaints.clear()


def test_the_last_figures_stay_in_grey_under_one_banner(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    page = dashboard.open(f"{BUSY}?period=yesterday")
    before = loaded(page).all_inner_texts()
    page.wait_for_load_state("networkidle")
    days = page.locator(".chart-head p")
    yesterday = days.inner_text()
    page.route("**/api/**", abort)
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
    assert dashboard.violations() == []
    # Of another website there is nothing, and still one banner.
    page.keyboard.press("s")
    page.get_by_role("menuitemradio").last.click()
    expect(page.locator(".tile-figure")).to_have_count(0)
    expect(page.locator(".panel .skeleton").first).to_be_visible()
    expect(away).to_have_count(1)
    page.unroute("**/api/**")
    away.get_by_role("button", name="Try again").click()
    loaded(page)
    expect(away).to_have_count(0)
    expect(days).not_to_have_text(yesterday)


def test_a_script_that_cannot_be_loaded(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(BUSY)
    loaded(page)
    page.route("**/assets/days-dialog-*.js", abort)
    page.keyboard.press("r")
    trouble = page.get_by_role("alert")
    expect(trouble).to_contain_text("The server isn’t responding")
    page.unroute("**/assets/days-dialog-*.js")
    with page.expect_event("load"):
        trouble.get_by_role("button", name="Try again").click()
    loaded(page)
    page.keyboard.press("r")
    expect(page.get_by_role("dialog", name="Custom range")).to_be_visible()


def test_an_expired_session(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    page = dashboard_of(owner).open("websites/example.com?period=7d")
    loaded(page)
    assert owner.request("POST", "/api/auth/logout").status == 204
    page.keyboard.press(".")
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    assert page.url.endswith("/websites/example.com?period=7d")


@pytest.mark.parametrize("path", ["nowhere/at/all", "settings/nope"])
def test_an_unknown_page(path: str, demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(path)
    expect(page.get_by_role("heading", level=1)).to_have_text("This page doesn’t exist.")
    page.get_by_role("link", name="Back to websites").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Websites")
