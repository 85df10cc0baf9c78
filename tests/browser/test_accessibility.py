"""Accessibility by axe-core: each page, light and dark, on a desktop and on a phone."""

from collections.abc import Callable
from itertools import product
from typing import Final

import pytest
from attrs import frozen
from playwright.sync_api import Page, expect
from support.browser.dashboard import BUSY, DESKTOP_WIDTH, PHONE_WIDTH, SCHEMES, Dashboard
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

WIDTHS: Final = (DESKTOP_WIDTH, PHONE_WIDTH)


@frozen
class Scene:
    """A page, and what is done before it is looked at."""

    path: str
    act: Callable[[Page], object] = lambda _page: None
    new: str = ""
    """What no other scene has. Its colours alone are examined."""
    whose: str = "demo"


PANELS: Final = ".panel:not(:has(dialog))"
CHART: Final = ".overview"
MENU: Final = ":has(> [role=menu])"
DIALOG: Final = "dialog"


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
    for summary in page.locator("summary").all():
        summary.click()


SCENES: Final = {
    "login": Scene("", whose="nobody"),
    "websites": Scene("", lambda page: page.locator(".curve svg").first.wait_for()),
    "order of websites": Scene("", menu("Sort"), MENU),
    "menu": Scene("", menu("Menu"), MENU),
    "adding a website": Scene("add"),
    "website": Scene(BUSY, figures),
    "chart's tip": Scene(BUSY, tip, CHART),
    "switcher": Scene(BUSY, menu("Switch website"), MENU),
    "periods": Scene(BUSY, menu("Period:"), MENU),
    "full list": Scene(BUSY, full_list, DIALOG),
    "filter editor": Scene(BUSY, editor, DIALOG),
    "days": Scene(BUSY, key("r"), DIALOG),
    "zones": Scene(BUSY, key("z"), DIALOG),
    "keys": Scene(BUSY, key("?"), DIALOG),
    "chart's table": Scene(BUSY, table, CHART),
    "filtered": Scene(
        f"{BUSY}?browser[in]=Chrome,Firefox&path[not_contains]=x",
        figures,
        ".filters, .panel tr:has([aria-pressed=true])",
    ),
    "no visits": Scene(f"{BUSY}?from=2020-01-01&to=2020-01-31"),
    "setup": Scene(f"{BUSY}/setup"),
    "a demo's account": Scene("settings/account", section),
    **{
        f"settings: {name}": Scene(f"settings/{name}", section, whose="owner")
        for name in ("account", "websites", "tokens", "tracker", "usage", "about")
    },
    "no page": Scene("nowhere"),
}


def shown(dashboard: Dashboard, scene: Scene) -> Page:
    """Open a page, unless its scene before this one has left it: then close what was opened."""
    page = dashboard.page
    if not scene.new or page.url != f"{dashboard.base}/dashboard/{scene.path}":
        return dashboard.open(scene.path)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("dialog, [role=menu], .tip")).to_have_count(0)
    return page


@pytest.mark.parametrize(
    "every_rule", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "every rule"]
)
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_axe_finds_nothing(
    scene: Scene, demo: Client, owner: Client, dashboard_of: Make, *, every_rule: bool
) -> None:
    """In the dark the rules about colours alone: a page differs in nothing else there."""
    clients = {"demo": demo, "owner": owner, "nobody": Client(demo.port)}
    dashboard = dashboard_of(clients[scene.whose])
    page = shown(dashboard, scene)
    scene.act(page)
    is_part = bool(scene.new) and not every_rule
    found = {}
    if is_part:
        found["the whole page"] = dashboard.violations("all but colours", without=PANELS)
    for scheme, width in product(SCHEMES, WIDTHS):
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        found[f"{scheme}, {width} pixels wide"] = dashboard.violations(
            "colours" if scheme == "dark" and not every_rule else "all",
            within=scene.new if is_part else "",
            without=PANELS if is_part else "",
        )
    assert not any(found.values()), found
    # What was opened in a wide window lies where it did there.
    assert scene.new or not dashboard.is_wider_than_the_window()
