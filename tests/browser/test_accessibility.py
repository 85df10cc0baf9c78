"""Accessibility by axe-core: each page, light and dark, on a desktop and on a phone."""

from collections.abc import Callable
from itertools import product
from typing import Final

import pytest
from attrs import frozen
from playwright.sync_api import Page, expect
from support.browser.dashboard import BUSY, DESKTOP_WIDTH, PHONE_WIDTH, SCHEMES, Dashboard
from support.daemon import Client

pytestmark = [pytest.mark.browser, pytest.mark.one_page]

Make = Callable[..., Dashboard]

WIDTHS: Final = (DESKTOP_WIDTH, PHONE_WIDTH)


@frozen
class Scene:
    """A page, and what is done before it is looked at."""

    path: str
    act: Callable[[Page], object] = lambda _page: None
    is_logged_in: bool = True
    without: str = ""
    """What another scene has, too."""


PANELS: Final = ".panel:not(:has(dialog))"


def figures(page: Page) -> None:
    """Wait for all of a website's page: its lists and its map come when they are scrolled to."""
    expect(page.locator(".tile-figure")).to_have_count(6)
    for panel in page.locator(".panel").all():
        panel.scroll_into_view_if_needed()
        panel.locator("tbody tr, .map path").first.wait_for()


def table(page: Page) -> None:
    figures(page)
    page.get_by_role("button", name="Show as table").click()
    page.locator(".chart-table td").first.wait_for()


def tip(page: Page) -> None:
    figures(page)
    # The chart is redrawn when the previous period arrives.
    page.wait_for_load_state("networkidle")
    page.get_by_role("group", name="Chart: ").focus()
    page.keyboard.press("Home")
    page.locator(".tip").wait_for()


def full_list(page: Page) -> None:
    page.get_by_role("button", name="Show all").first.click()
    page.get_by_role("dialog").locator("tbody tr").first.wait_for()


def editor(page: Page) -> None:
    page.get_by_role("button", name="Add filter").click()
    page.get_by_role("dialog").get_by_role("option").first.wait_for(state="attached")


def menu(name: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        page.get_by_role("button", name=name).click()
        page.get_by_role("menu").wait_for()

    return act


def key(name: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        expect(page.locator(".tile-figure")).to_have_count(6)
        page.keyboard.press(name)
        page.get_by_role("dialog").wait_for()

    return act


def section(page: Page) -> None:
    page.locator(".settings-content h2").first.wait_for()


SCENES: Final = {
    "login": Scene("", is_logged_in=False),
    "websites": Scene("", lambda page: page.locator(".curve svg").first.wait_for()),
    "order of websites": Scene("", menu("Sort")),
    "menu": Scene("", menu("Menu")),
    "website": Scene(BUSY, figures),
    "filtered": Scene(f"{BUSY}?browser[in]=Chrome,Firefox&path[not_contains]=x", figures),
    "chart's tip": Scene(BUSY, tip, without=PANELS),
    "chart's table": Scene(BUSY, table, without=PANELS),
    "no visits": Scene(f"{BUSY}?from=2020-01-01&to=2020-01-31"),
    "switcher": Scene(BUSY, menu("Switch website"), without=PANELS),
    "periods": Scene(BUSY, menu("Period:"), without=PANELS),
    "full list": Scene(BUSY, full_list, without=PANELS),
    "filter editor": Scene(BUSY, editor, without=PANELS),
    "days": Scene(BUSY, key("r"), without=PANELS),
    "zones": Scene(BUSY, key("z"), without=PANELS),
    "keys": Scene(BUSY, key("?"), without=PANELS),
    "setup": Scene(f"{BUSY}/setup"),
    "account": Scene("settings/account", section),
    "settings of websites": Scene("settings/websites", section),
    "tokens": Scene("settings/tokens", section),
    "tracker": Scene("settings/tracker", section),
    "usage": Scene("settings/usage", section),
    "about": Scene("settings/about", section),
    "no page": Scene("nowhere"),
}


@pytest.mark.parametrize(
    "every_rule", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "every rule"]
)
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_axe_finds_nothing(
    scene: Scene, demo: Client, dashboard_of: Make, *, every_rule: bool
) -> None:
    """In the dark the rules about colours alone: a page differs in nothing else there."""
    client = demo if scene.is_logged_in else Client(demo.port)
    dashboard = dashboard_of(client)
    page = dashboard.page
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": DESKTOP_WIDTH, "height": 800})
    dashboard.open(scene.path)
    scene.act(page)
    found = {}
    for scheme, width in product(SCHEMES, WIDTHS):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        colours = scheme == "dark" and not every_rule
        found[scheme, width] = dashboard.violations(of_colours_alone=colours, without=scene.without)
    assert not any(found.values()), found
