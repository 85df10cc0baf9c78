"""Setting up a website: its tag, and the wait for its first visit."""

from collections.abc import Callable
from secrets import token_hex

import pytest
from playwright.sync_api import Page, expect
from support.browser.dashboard import Dashboard
from support.browser.example_site import served
from support.browser.visitors import DESKTOP, Statistics, Visitor
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]
Someone = Callable[..., Visitor]

WAITING = "Waiting for the first visit"


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


def arrival(page: Page) -> str:
    return page.locator(".arrival").inner_text()


def test_from_the_tag_to_the_first_visit(
    daemon: Daemon, website: Statistics, dashboard_of: Make, someone: Someone
) -> None:
    page = dashboard_of(website.owner).open(f"websites/{website.hostname}/setup")
    expect(page.locator(".arrival")).to_have_text(WAITING)
    tag = page.get_by_role("figure", name="script").inner_text()
    assert tag == f'<script defer src="http://localhost:{daemon.port}/script.js"></script>'
    with served(tag) as site:
        visitor = someone()
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
    expect(page.get_by_role("status")).to_have_text("First visit received. You’re set up.")
    page.locator(".step").get_by_role("link", name="View statistics").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(website.hostname)
    assert visitor.errors == []


def test_the_tag_is_copied(website: Statistics, dashboard_of: Make) -> None:
    dashboard = dashboard_of(website.owner, permissions=["clipboard-read", "clipboard-write"])
    page = dashboard.open(f"websites/{website.hostname}/setup")
    tag = page.get_by_role("figure", name="script")
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == tag.inner_text()


def test_the_image_counts_visitors_without_javascript(
    website: Statistics, dashboard_of: Make, someone: Someone
) -> None:
    page = dashboard_of(website.owner).open(f"websites/{website.hostname}/setup")
    page.get_by_text("Also count visitors without JavaScript").click()
    tag = page.get_by_role("figure", name="image").inner_text()
    with served(tag) as site:
        someone(java_script_enabled=False).page.goto(site.address(website.hostname))
        expect(page.locator(".arrival")).to_contain_text("First visit received.")


def test_it_says_why_nothing_arrives(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    page = dashboard_of(owner).open("websites/example.com/setup")
    expect(page.get_by_text(WAITING)).to_be_visible()
    assert page.get_by_role("heading", name="Why nothing has been counted yet").count() == 0
    assert hit(new_daemon, "example.com", "Googlebot/2.1") == 204
    assert Client(new_daemon.port).request("POST", "/api/event/hit", {"e": "none"}).status == 400
    puzzles = page.get_by_role("region", name="Why nothing has been counted yet")
    expect(puzzles).to_contain_text(
        "Crawlers, monitoring services and headless browsers aren’t counted."
    )
    expect(puzzles).to_contain_text("The request wasn’t a valid hit.")
    assert arrival(page) == WAITING


def test_another_hostname_with_hits_can_be_added(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    for other in ("www2.example.com", "x1.example", "x2.example", "x3.example", "x4.example"):
        assert hit(new_daemon, other) == 404
    page = dashboard_of(owner).open("websites/example.com/setup")
    puzzles = page.get_by_role("region", name="Why nothing has been counted yet").get_by_role(
        "listitem"
    )
    expect(puzzles).to_have_count(3)
    expect(puzzles.first).to_contain_text(
        "Hits are arriving for www2.example.com, which hasn’t been added."
    )
    puzzles.first.get_by_role("button", name="Add it too").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up www2.example.com")
    registered = [website["hostname"] for website in owner.get("/api/websites")]
    assert registered == ["example.com", "www2.example.com"]


def test_a_website_can_be_renamed_to_where_hits_come_from(
    new_daemon: Daemon, dashboard_of: Make
) -> None:
    owner = new_daemon.client()
    owner.add_website("exmaple.com")
    assert hit(new_daemon, "example.com") == 404
    page = dashboard_of(owner).open("websites/exmaple.com/setup")
    page.get_by_role("button", name="Rename exmaple.com to this").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up example.com")
    assert owner.get("/api/websites") == [{"hostname": "example.com"}]
    assert hit(new_daemon, "example.com") == 204
    expect(page.get_by_text("First visit received. You’re set up.")).to_be_visible()


def test_a_website_with_visits(demo: Client, dashboard_of: Make) -> None:
    hostname = demo.get("/api/websites")[0]["hostname"]
    page = dashboard_of(demo).open(f"websites/{hostname}")
    page.get_by_role("button", name="Switch website").click()
    page.get_by_role("menuitem", name="Script and setup").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Set up {hostname}")
    expect(page.locator(".arrival")).to_contain_text("views received. You’re set up.")


def test_a_website_that_is_not_registered(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open("websites/nowhere.example/setup")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "The website nowhere.example hasn’t been added here."
    )
