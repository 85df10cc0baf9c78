"""The dashboard on a phone."""

from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import Page, expect
from support.browser.catalogues import LANGUAGES, translated
from support.browser.dashboard import BUSY, PHONE_WIDTH, Dashboard, loaded
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


SETTINGS: Final = (
    *("websites", "alerts", "reports", "tracker", "usage", "about", "tokens", "account"),
)
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
        "settings/alerts",
        "settings/tokens",
        "settings/reports",
        "settings/tracker",
        "settings/usage",
        "settings/about",
        "add",
        "nowhere",
    ],
)
def test_a_phone_scrolls_only_vertically(path: str, demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, **PHONE)
    page = dashboard.turn_to(path)
    settle(page)
    assert not dashboard.is_wider_than_the_window()
    for button in page.locator("[aria-haspopup=menu]").all():
        button.click()
        page.get_by_role("menu").wait_for()
        assert not dashboard.is_wider_than_the_window()
        page.keyboard.press("Escape")


def settle(page: Page) -> None:
    """Wait until nothing of the page is missing."""
    expect(page.locator(".skeleton, [aria-busy=true]")).to_have_count(0)


def test_dialogs_fit_a_phone(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, **PHONE)
    page = dashboard.turn_to(BUSY)
    loaded(page)
    dialog = page.get_by_role("dialog")
    for key in ("?", "r", "z", "f"):
        page.keyboard.press(key)
        dialog.wait_for()
        box = dialog.bounding_box()
        assert box is not None
        assert box["x"] >= 0, key
        assert box["x"] + box["width"] <= PHONE_WIDTH, key
        assert not dashboard.is_wider_than_the_window(), key
        assert dialog.evaluate("it => it.scrollWidth <= it.clientWidth"), key
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)


def test_every_language_fits_a_phone(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, fresh=True, **PHONE)
    page = dashboard.open("settings/account")
    too_wide: list[str] = []

    def examine(spoken: str, name: str) -> None:
        settle(page)
        if dashboard.is_wider_than_the_window():
            too_wide.append(f"{name} in {spoken}")

    # English is that of the other tests.
    for spoken in LANGUAGES[1:]:
        page.locator("select").select_option(spoken)
        expect(page.locator("html")).to_have_attribute("lang", spoken)
        for name in SETTINGS:
            link = page.locator(f".settings-nav a[href$={name}]")
            link.dispatch_event("click")
            expect(link).to_have_attribute("aria-current", "page")
            page.locator(".settings-content h2").first.wait_for()
            examine(spoken, name)
        websites, settings = page.locator(".bar-middle a").all()
        websites.dispatch_event("click")
        page.locator("main li a").first.wait_for()
        examine(spoken, "websites")
        page.locator("main li a").first.dispatch_event("click")
        loaded(page)
        examine(spoken, "website")
        settings.dispatch_event("click")
    assert too_wide == []


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
