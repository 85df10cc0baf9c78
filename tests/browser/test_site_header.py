"""The header of a website's page: the switcher and the open pages."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import BUSY, Dashboard
from support.browser.known_website import Visit, send
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
    page.keyboard.press("s")
    page.get_by_role("menuitem", name="Script and setup").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up docs.tinydaemon.example")
    page.go_back()
    figures(page)
    page.keyboard.press("s")
    expect(page.get_by_role("menuitemradio", checked=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(switcher).to_be_focused()
    page.keyboard.press("s")
    page.get_by_role("menuitem", name="Websites").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Websites")


def test_many_websites_are_searched(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    for number in range(20):
        owner.add_website(f"number-{number:02}.example")
    page = dashboard_of(owner).open("websites/number-03.example?period=7d")
    switcher = page.get_by_role("button", name="Switch website")
    expect(switcher).to_have_attribute("aria-haspopup", "dialog")
    figures(page)
    page.keyboard.press("s")
    expect(page.get_by_label("Search websites")).to_be_focused()
    expect(page.get_by_role("option")).to_have_count(20)
    page.keyboard.type("BER-1")
    expect(page.get_by_role("option")).to_have_count(10)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("number-11.example")
    assert page.url.endswith("/websites/number-11.example?period=7d")
    switcher.click()
    page.keyboard.type("nowhere")
    expect(page.get_by_role("dialog")).to_contain_text("No results for “nowhere”.")
    page.get_by_label("Search websites").fill("15")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("number-15.example")


def test_the_first_day_is_shown_by_hours(owner: Client, dashboard_of: Make) -> None:
    hostname = "beginner.example"
    owner.add_website(hostname)
    page = dashboard_of(owner).open(f"websites/{hostname}")
    pages = page.get_by_role("region", name="Pages", exact=True)
    expect(pages).to_contain_text("The pages that visitors open will appear here.")
    send(owner, hostname, Visit("/"))
    page.keyboard.press(".")
    expect(page.get_by_role("group", name="Chart: Visitors, By hour")).to_be_visible()
    expect(page.locator(".overview")).to_contain_text("From the third day on")
    # None before the day of the first view.
    hours = page.locator(".overview tbody tr")
    expect(hours.first).to_contain_text("0:00")
    assert hours.count() <= 25
    page.get_by_role("button", name="Interval: ").click()
    page.get_by_role("menuitemradio", name="By day").click()
    expect(hours).to_have_count(30)
    expect(page.locator(".overview")).not_to_contain_text("From the third day on")


def test_open_pages(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    page = dashboard_of(owner).open("websites/example.com")
    expect(page.locator(".live")).to_have_text("0 pages open now")
    expect(page.locator(".live")).to_have_attribute("title", re.compile("filters don’t apply"))
    for beacon, text in (("one", "1 page open now"), ("two", "2 pages open now")):
        load = {"e": "load", "b": beacon, "u": "https://example.com/", "p": True, "q": True}
        assert owner.request("POST", "/api/event/hit", load).status == 204
        page.keyboard.press(".")
        expect(page.locator(".live")).to_have_text(text)
    assert (
        owner.request("POST", "/api/event/hit", {"e": "unload", "b": "one", "m": 5}).status == 204
    )
    page.keyboard.press(".")
    expect(page.locator(".live")).to_have_text("1 page open now")


def test_an_unknown_website(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open("websites/nowhere.example")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "The website nowhere.example hasn’t been added here."
    )
    page.get_by_role("link", name="Back to websites").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Websites")
