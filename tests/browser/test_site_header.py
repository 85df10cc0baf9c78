"""The header of a website's page: the switcher and the open pages."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import BUSY, Dashboard
from support.browser.overview import figures
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def test_websites_are_switched(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(f"{BUSY}?period=7d&browser[eq]=Firefox")
    figures(page)
    switcher = page.get_by_role("button", name="Switch website")
    switcher.click()
    names = page.get_by_role("menu").get_by_role("menuitemradio")
    expect(names).to_have_text([website["hostname"] for website in demo.get("/api/websites")])
    page.keyboard.press("Escape")
    switcher.click()
    expect(page.get_by_role("menuitemradio", checked=True)).to_be_focused()
    page.keyboard.press("d")
    expect(page.get_by_role("menuitemradio", name="docs.tinydaemon.example")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("docs.tinydaemon.example")
    expect(page).to_have_title("docs.tinydaemon.example · medamad")
    # The time range is kept; the filters need not apply to another website.
    assert page.url.endswith("/websites/docs.tinydaemon.example?period=7d")
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_contain_text(BUSY.removeprefix("websites/"))
    assert page.url.endswith(f"{BUSY}?period=7d&browser[eq]=Firefox")


def test_open_pages(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    load = {"e": "load", "b": "one", "u": "https://example.com/", "p": True, "q": True}
    assert owner.request("POST", "/api/event/hit", load).status == 204
    page = dashboard_of(owner).open("websites/example.com")
    expect(page.locator(".live")).to_have_text("1 page open now")
    assert (
        owner.request("POST", "/api/event/hit", {"e": "unload", "b": "one", "m": 5}).status == 204
    )
    page.keyboard.press(".")
    expect(page.locator(".live")).to_have_text("0 pages open now")


def test_an_unknown_website(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open("websites/nowhere.example")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "The website nowhere.example hasn’t been added here."
    )
    page.get_by_role("link", name="Back to websites").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Websites")
