"""Setting up a website: its tag, and the wait for its first visit."""

from collections.abc import Callable
from secrets import token_hex

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.browser.example_site import served
from support.browser.visitors import DESKTOP, Statistics, Visitor
from support.browser.waiting import comes
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]
Someone = Callable[..., Visitor]


def hit(daemon: Daemon, hostname: str, agent: str = DESKTOP) -> int:
    """Report a view as a browser would; returns the status."""
    load = {
        "e": "load",
        "b": token_hex(8),
        "u": f"https://{hostname}/",
        "p": True,
        "q": True,
    }
    return Client(daemon.port).request("POST", "/api/event/hit", load, {"User-Agent": agent}).status


def test_from_the_tags_to_the_first_visits(
    daemon: Daemon, website: Statistics, dashboard_of: Make, someone: Someone
) -> None:
    dashboard = dashboard_of(website.owner, permissions=["clipboard-read", "clipboard-write"])
    page = dashboard.open(f"websites/{website.hostname}/setup")
    expect(page.locator(".arrival")).to_have_text("Waiting for the first visit")
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    tag = str(page.evaluate("navigator.clipboard.readText()"))
    assert tag == f'<script defer src="http://localhost:{daemon.port}/script.js"></script>'
    with served(tag) as site:
        visitor = someone()
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
    assert visitor.errors == []
    expect(page.get_by_role("status")).to_have_text("First visit received. You’re set up.")

    page.get_by_text("Also count visits without JavaScript").click()
    image = page.get_by_role("figure", name="image").inner_text()
    with served(image) as site:
        someone(java_script_enabled=False).page.goto(site.address(website.hostname, "/image"))
        comes(lambda: website.pages, {"/": (1, 1), "/image": (1, 1)})
    page.locator(".step").get_by_role("link", name="View statistics").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(website.hostname)


def test_a_website_can_be_renamed_to_where_hits_come_from(
    new_daemon: Daemon, dashboard_of: Make
) -> None:
    owner = new_daemon.client()
    owner.add_website("exmaple.com")
    assert hit(new_daemon, "example.com") == 404
    assert hit(new_daemon, "exmaple.com", "Googlebot/2.1") == 204
    assert Client(new_daemon.port).request("POST", "/api/event/hit", {"e": "none"}).status == 400
    page = dashboard_of(owner).open("websites/exmaple.com/setup")
    puzzles = page.get_by_role("region", name="Why nothing has been counted yet")
    expect(puzzles).to_contain_text(
        "Crawlers, monitoring services and headless browsers aren’t counted."
    )
    expect(puzzles).to_contain_text("The request wasn’t a valid hit.")
    page.get_by_role("button", name="Rename exmaple.com to this").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up example.com")
    assert owner.get("/api/websites") == [{"hostname": "example.com"}]
    assert hit(new_daemon, "example.com") == 204
    expect(page.get_by_text("First visit received. You’re set up.")).to_be_visible()
