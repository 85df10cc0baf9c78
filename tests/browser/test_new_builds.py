"""A dashboard whose daemon is replaced by another build."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Route, expect
from support.browser.dashboard import Dashboard
from support.daemon import Client

pytestmark = pytest.mark.browser


def test_a_new_build_is_loaded_once(demo: Client, dashboard_of: Callable[..., Dashboard]) -> None:
    dashboard = dashboard_of(demo, fresh=True)
    page = dashboard.page
    build, loads = "one", list[str]()

    def answer(route: Route) -> None:
        with suppress(PlaywrightError):  # the page is loaded again before all is answered
            response = route.fetch()
            route.fulfill(response=response, headers=response.headers | {"x-api-commit": build})

    page.route("**/api/**", answer)
    page.on("load", lambda: loads.append(build))
    dashboard.open("settings/about")
    facts = page.locator("dd")
    expect(facts).to_have_count(3)
    build = "two"
    with page.expect_event("load"):
        page.keyboard.type("gw")
    expect(page.locator("main li").first).to_be_visible()
    page.keyboard.type("gs")
    page.locator(".settings-nav").get_by_role("link", name="About").click()
    expect(facts).to_have_count(3)
    assert loads == ["one", "two"]
