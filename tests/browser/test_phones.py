"""The dashboard on a phone."""

from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import expect
from support.browser.catalogues import LANGUAGES, translated
from support.browser.dashboard import BUSY, PHONE_WIDTH, Dashboard, loaded
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


LEAST_GAP: Final = 6
PHONE: Final = {"viewport": {"width": PHONE_WIDTH, "height": 700}}


@pytest.mark.parametrize(
    "path",
    [
        "",
        BUSY,
        f"{BUSY}?period=12mo&interval=week&measure=visit_duration&browser[in]=Chrome,Firefox",
        f"{BUSY}?from=2025-03-10T09:00&to=2025-03-11T10:00&zone=America/Argentina/ComodRivadavia",
        f"{BUSY}/setup",
        "settings/account",
        "settings/websites",
        "settings/tracker",
        "settings/usage",
        "settings/about",
        "add",
        "nowhere",
    ],
)
def test_a_phone_scrolls_only_vertically(path: str, demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, **PHONE)
    page = dashboard.open(path)
    page.wait_for_load_state("networkidle")
    assert not dashboard.is_wider_than_the_window()
    for button in page.locator("[aria-haspopup=menu]").all():
        button.click()
        page.get_by_role("menu").wait_for()
        assert not dashboard.is_wider_than_the_window()
        page.keyboard.press("Escape")


@pytest.mark.parametrize("key", ["?", "r", "z", "f"])
def test_dialogs_fit_a_phone(key: str, demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, **PHONE)
    page = dashboard.turn_to(BUSY)
    loaded(page)
    page.keyboard.press(key)
    page.get_by_role("dialog").wait_for()
    box = page.get_by_role("dialog").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE_WIDTH
    assert not dashboard.is_wider_than_the_window()
    assert page.get_by_role("dialog").evaluate("it => it.scrollWidth <= it.clientWidth")


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_every_language_fits_a_phone(spoken: str, demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, **PHONE)
    page = dashboard.open("settings/account")
    page.locator("select").select_option(spoken)
    expect(page.locator("html")).to_have_attribute("lang", spoken)
    for name in ("websites", "tracker", "usage", "about", "account"):
        page.locator(f".settings-nav a[href$={name}]").click()
        expect(page.locator(f".settings-nav a[href$={name}]")).to_have_attribute(
            "aria-current", "page"
        )
        page.locator(".settings-content h2").first.wait_for()
        assert not dashboard.is_wider_than_the_window()
    page.keyboard.type("gw")
    expect(page.get_by_role("heading", level=1)).to_have_text(translated(spoken, "websites.title"))
    page.locator("main li a").first.click()
    loaded(page)
    page.wait_for_load_state("networkidle")
    assert not dashboard.is_wider_than_the_window()


def test_the_figures_of_a_funnel_stand_apart_on_a_phone(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, viewport={"width": 390, "height": 844})
    page = dashboard.open("settings/account")
    page.locator("select").select_option("de")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    dashboard.turn_to("websites/shop.gardenpost.example")
    page.get_by_role("tab", name=translated("de", "goals.tab.funnels")).click()
    first = page.locator(".funnel tbody tr").first
    expect(first.locator("td").nth(1)).to_have_text("100\N{NO-BREAK SPACE}%")
    visits, share = (
        cell.evaluate(
            """cell => {
                const range = document.createRange();
                range.selectNodeContents(cell);
                const { left, right } = range.getBoundingClientRect();
                return [left, right];
            }"""
        )
        for cell in first.locator("td").all()[:2]
    )
    assert share[0] - visits[1] >= LEAST_GAP
