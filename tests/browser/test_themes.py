"""Themes and reduced motion."""

import re
from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import Page, expect
from support.browser.dashboard import BUSY, Dashboard, loaded
from support.browser.held_requests import HeldRequests
from support.browser.waiting import comes
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


BRIGHT: Final = 200


def is_dark(page: Page) -> bool:
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return all(int(part) < BRIGHT for part in re.findall(r"\d+", paper))


def test_the_theme_is_that_of_the_system(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo, color_scheme="light").open(BUSY)
    loaded(page)

    def drawn() -> str:
        return str(page.locator(".chart canvas").evaluate("canvas => canvas.toDataURL()"))

    light = drawn()
    assert not is_dark(page)
    page.emulate_media(color_scheme="dark")
    assert is_dark(page)
    comes(lambda: drawn() == light, False)


def test_another_theme_is_chosen(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo, color_scheme="light").turn_to("settings/about")

    def choose(name: str) -> None:
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("menuitemradio", name=name).click()

    choose("Dark")
    assert is_dark(page)
    page.emulate_media(color_scheme="dark")
    assert is_dark(page)
    choose("Light")
    assert not is_dark(page)
    # It is applied before the page is drawn.
    page.route("**/api/**", lambda _route: None)
    page.reload(wait_until="domcontentloaded")
    assert not is_dark(page)
    page.unroute_all(behavior="ignoreErrors")
    page.reload()
    page.get_by_role("heading", level=1).wait_for()
    assert not is_dark(page)
    page.emulate_media(color_scheme="light")
    assert not is_dark(page)
    choose("System")
    page.emulate_media(color_scheme="dark")
    assert is_dark(page)


def moving(page: Page) -> list[str]:
    """Name what moves or would move."""
    names: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((element) => {
          const style = getComputedStyle(element);
          return style.animationName !== "none"
            || style.transitionDuration.split(", ").some((time) => time !== "0s");
        }).map((element) => element.className)"""
    )
    return names


def test_reduced_motion_is_respected(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, reduced_motion="no-preference")
    held = HeldRequests(dashboard.page, "**/api/website/**")
    page = dashboard.open(BUSY)
    expect(page.locator(".tile .skeleton")).to_have_count(6)
    assert moving(page)
    page.emulate_media(reduced_motion="reduce")
    assert moving(page) == []
    held.let_go()
