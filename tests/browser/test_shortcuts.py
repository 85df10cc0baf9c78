"""The keyboard shortcuts of the dashboard."""

import re
from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import Page, expect
from support.browser.dashboard import BUSY, Dashboard, loaded
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def dialog(name: str) -> Callable[[Page], None]:
    def check(page: Page) -> None:
        expect(page.get_by_role("dialog", name=name)).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)

    return check


def address(end: str) -> Callable[[Page], None]:
    return lambda page: page.wait_for_url(re.compile(rf"{re.escape(end)}$"))


def heading(name: str) -> Callable[[Page], None]:
    def check(page: Page) -> None:
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        page.go_back()
        loaded(page)

    return check


def switcher(page: Page) -> None:
    expect(page.get_by_role("menuitemradio", checked=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)


KEYS: Final[dict[str, Callable[[Page], None]]] = {
    "?": dialog("Keyboard shortcuts"),
    "g w": heading("Websites"),
    "g s": heading("Settings"),
    "s": switcher,
    "y": address("?period=yesterday"),
    "t": address("?period=today"),
    "d": address("?period=24h"),
    "q": address("?period=90d"),
    "m": address(BUSY),
    "w": address("?period=7d"),
    "h": address("?period=6mo"),
    "a": address("?period=all"),
    "x": address("?period=12mo"),
    "r": dialog("Custom range"),
    "c": address("?period=12mo&compare=none"),
    "z": dialog("Time zone"),
    "f": dialog("Add filter"),
    ".": lambda _page: None,
    "←": lambda page: page.wait_for_url("**?from=*&to=*&compare=none"),
    "→": address("?period=12mo&compare=none"),
}
"""Each key of a website's page, one after the other, and what shows that it did its work."""


def test_every_listed_shortcut_works(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).turn_to(BUSY)
    loaded(page)
    page.keyboard.press("?")
    rows = page.get_by_role("dialog").locator(".keys-row")
    rows.first.wait_for()
    listed = [" ".join(row.locator("kbd").all_inner_texts()) for row in rows.all()]
    assert sorted(listed) == sorted(KEYS)
    assert all(text.strip() for text in page.locator(".keys-row dd").all_inner_texts())
    page.keyboard.press("Escape")
    for keys, check in KEYS.items():
        expect(page.get_by_role("dialog")).to_have_count(0)
        if " " in keys:
            page.keyboard.type(keys.replace(" ", ""))
        else:
            page.keyboard.press(keys.replace("←", "ArrowLeft").replace("→", "ArrowRight"))
        check(page)


def test_a_shortcut_refreshes(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(BUSY)
    loaded(page)
    page.wait_for_load_state("networkidle")
    with page.expect_response("**/summary?*"), page.expect_response("**/live"):
        page.keyboard.press(".")


def test_a_shortcut_adds_a_website(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open()
    page.get_by_role("link", name="Add website").first.wait_for()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".keys-row").filter(has_text="Add website").locator("kbd")).to_have_text(
        "n"
    )
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.keyboard.press("n")
    expect(page.get_by_role("heading", level=1)).to_have_text("Add website")


def test_shortcuts_are_off_in_text_fields(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).turn_to(BUSY)
    loaded(page)
    page.keyboard.press("f")
    value = page.get_by_role("combobox", name="Value")
    expect(value).to_be_focused()
    page.keyboard.type("ty?")
    expect(value).to_have_value("ty?")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+y")
    page.keyboard.press("c")
    page.wait_for_url("**?compare=none")


def test_shortcuts_work_as_soon_as_the_page_is_shown(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open()
    page.evaluate(
        """() => new MutationObserver((_changes, observer) => {
          if (!document.querySelector(".controls")) return;
          observer.disconnect();
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "c", bubbles: true }));
        }).observe(document.body, { childList: true, subtree: true })"""
    )
    page.locator("main li a").first.click()
    page.wait_for_url("**?compare=none")
