"""The page of a website's robots."""

from collections.abc import Callable
from http import HTTPStatus

import pytest
from playwright.sync_api import Page, expect
from support.browser.dashboard import Dashboard
from support.browser.visitors import DESKTOP
from support.daemon import Client, until

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

HOSTNAME = "robots.example"
GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
GOOGLEBOT = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"


@pytest.fixture(scope="module")
def read_by_robots(owner: Client) -> str:
    """A website that a person and three robots have read; returns its hostname."""
    owner.add_website(HOSTNAME)
    nobody = "Nobody/1 (+https://x)"
    for number, (agent, path) in enumerate(
        [(GPTBOT, "/"), (GPTBOT, "/a"), (GOOGLEBOT, "/"), (nobody, "/"), (DESKTOP, "/")]
    ):
        hit = {"e": "load", "b": f"b{number}", "u": f"https://{HOSTNAME}{path}"}
        answer = owner.request(
            "POST", "/api/event/hit", hit | {"p": True, "q": True}, {"User-Agent": agent}
        )
        assert answer.status == HTTPStatus.NO_CONTENT
    until(lambda: len(owner.get(f"/api/website/{HOSTNAME}/robots")) == 3)
    return HOSTNAME


def rows(page: Page, panel: str) -> list[list[str]]:
    """Return the name and the count of each row of a list."""
    region = page.locator(".panel").filter(has=page.get_by_role("heading", name=panel, exact=True))
    region.locator("tbody tr").first.wait_for()
    return [
        [row.locator("th").inner_text(), row.locator("td").first.inner_text()]
        for row in region.locator("tbody tr").all()
    ]


def test_robots_are_shown_by_purpose_name_and_page(
    owner: Client, read_by_robots: str, dashboard_of: Make
) -> None:
    dashboard = dashboard_of(owner)
    page = dashboard.open(f"websites/{read_by_robots}?period=7d")
    page.get_by_role("link", name="Robots, counted apart from people").click()
    page.wait_for_url(f"**/dashboard/websites/{read_by_robots}/robots?period=7d")
    expect(page.get_by_text("4 page requests by robots")).to_be_visible()
    assert rows(page, "Purposes") == [["AI training", "2"], ["Search", "1"], ["Unknown", "1"]]
    assert rows(page, "Robots") == [
        ["GPTBot, OpenAI", "2"],
        ["Googlebot, Google", "1"],
        ["Nobody", "1"],
    ]
    assert rows(page, "Pages") == [["/", "3"], ["/a", "1"]]
    assert dashboard.violations_by_scheme() == {}
    page.set_viewport_size({"width": 390, "height": 844})
    assert not dashboard.is_wider_than_the_window()
    page.get_by_role("button", name="AI training").click()
    expect(page.get_by_text("2 page requests by robots")).to_be_visible()
    assert rows(page, "Pages") == [["/", "1"], ["/a", "1"]]
    page.get_by_role("button", name="Count all robots").click()
    expect(page.get_by_text("4 page requests by robots")).to_be_visible()
    page.get_by_role("link", name=read_by_robots).click()
    page.wait_for_url(f"**/dashboard/websites/{read_by_robots}?period=7d")


def test_a_share_link_shows_them(owner: Client, read_by_robots: str, dashboard_of: Make) -> None:
    made = owner.request("POST", f"/api/websites/{read_by_robots}/shares", {"name": "club"})
    dashboard = dashboard_of(Client(owner.port))
    page = dashboard.page
    page.goto(f"{dashboard.base}/share/{made.json['id']}?period=7d")
    page.get_by_role("link", name="Robots, counted apart from people").click()
    page.wait_for_url("**/share/*/robots?period=7d")
    expect(page.get_by_text("4 page requests by robots")).to_be_visible()
