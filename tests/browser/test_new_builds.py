"""A dashboard whose daemon is replaced by another build."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, Route, expect
from support.browser.dashboard import BUSY, Dashboard, loaded
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


class Builds:
    """Answers of other builds of the daemon.

    Of two names, the first answer to each page bears one and all others the other, by turns.
    """

    def __init__(self, page: Page, *names: str) -> None:
        self.names = names
        self.pages = 0
        page.route("**/api/**", self._answer)

    def _answer(self, route: Route) -> None:
        # The account is requested first, and once.
        is_first = route.request.url.endswith("/api/user")
        self.pages += is_first
        name = self.names[(self.pages + is_first) % len(self.names)]
        with suppress(PlaywrightError):  # the page reloads before every request is answered
            answer = route.fetch()
            route.fulfill(response=answer, headers=answer.headers | {"x-api-commit": name})


def refresh(page: Page) -> None:
    with page.expect_response("**/live"):
        page.keyboard.press(".")


def test_a_new_build_is_loaded_once(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, fresh=True)
    builds = Builds(dashboard.page, "one")
    page = dashboard.open(BUSY)
    loaded(page)
    refresh(page)
    assert builds.pages == 1
    for name, loads in (("two", 2), ("three", 3)):
        builds.names = (name,)
        with page.expect_event("load"):
            page.keyboard.press(".")
        loaded(page)
        for _ in range(3):
            refresh(page)
        assert builds.pages == loads


def test_alternating_builds_do_not_cause_a_loop(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, fresh=True)
    builds = Builds(dashboard.page, "one", "two")
    page = dashboard.page
    page.goto(f"{dashboard.base}/dashboard/{BUSY}")
    expect(page.locator(".panel tbody tr").first).to_be_visible()
    for _ in range(5):
        loaded(page)
        refresh(page)
    assert 2 <= builds.pages <= 3
