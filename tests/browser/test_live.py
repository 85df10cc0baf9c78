"""What is going on now: lists of the last half hour, which are updated while they are seen."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import PHONE_WIDTH, Dashboard, loaded
from support.browser.known_website import Visit, send
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

HOSTNAME: Final = "live.example"
TITLE: Final = "Live: last 30 minutes"
UPDATED_MS: Final = 10_000
HIDE: Final = """hidden => {
    Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""


def rows(dialog: Locator, name: str) -> Locator:
    return dialog.get_by_role("table", name=name).locator("tbody tr")


def requests_of(page: Page) -> list[str]:
    """Return the path and query of each request from now on; it grows."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append("?".join(urlsplit(request.url)[2:4])))
    return asked


@pytest.fixture(scope="module")
def visited(owner: Client) -> Client:
    owner.add_website(HOSTNAME)
    send(owner, HOSTNAME, Visit("/", properties={"event": "order"}))
    send(owner, HOSTNAME, Visit("/", "https://www.google.com/search", "Europe/Vienna"))
    return owner


def test_a_hit_appears_while_the_lists_are_open(visited: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(visited, fresh=True)
    dashboard.page.clock.install()
    page = dashboard.open(f"websites/{HOSTNAME}")
    loaded(page)
    opener = page.locator(".view-head .live")
    expect(opener).to_have_text("0 pages open now")
    opener.click()
    dialog = page.get_by_role("dialog", name=TITLE)
    expect(rows(dialog, "Pages")).to_have_text(["/2"])
    expect(rows(dialog, "Referrers")).to_have_text(["Direct / none1", "Google1"])
    expect(rows(dialog, "Countries")).to_have_text(["Austria1", "Germany1"])
    expect(rows(dialog, "Events")).to_have_text(["event: order1"])
    load = {"e": "load", "b": "open", "u": f"https://{HOSTNAME}/new", "p": True, "q": True}
    answer = visited.request("POST", "/api/event/hit", load, {"User-Agent": "Opera/9.8"})
    assert answer.status == HTTPStatus.NO_CONTENT
    asked = requests_of(page)
    page.clock.fast_forward(UPDATED_MS)
    expect(rows(dialog, "Pages")).to_have_text(["/2", "/new1"])
    expect(dialog.locator(".live")).to_have_text("1 page open now")
    # Nothing else of the page is requested as often, nor the number of open pages by itself.
    assert asked == [f"/api/website/{HOSTNAME}/live?lists=true"]
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(opener).to_be_focused()
    expect(opener).to_have_text("1 page open now")
    # What the tests after this one see is as it was.
    left = {"e": "unload", "b": "open", "m": 1000}
    assert visited.request("POST", "/api/event/hit", left).status == HTTPStatus.NO_CONTENT


def test_nothing_is_requested_while_the_tab_is_hidden(visited: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(visited, fresh=True)
    dashboard.page.clock.install()
    page = dashboard.open(f"websites/{HOSTNAME}")
    loaded(page)
    page.keyboard.press("l")
    dialog = page.get_by_role("dialog", name=TITLE)
    expect(rows(dialog, "Pages").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    asked = requests_of(page)
    page.evaluate(HIDE, arg=True)
    for _ in range(6):
        page.clock.fast_forward(UPDATED_MS)
    assert asked == []
    with page.expect_response("**/live?lists=true"):
        page.evaluate(HIDE, arg=False)
    # And it goes on.
    expect(rows(dialog, "Pages").first).to_be_visible()
    page.wait_for_load_state("networkidle")
    with page.expect_response("**/live?lists=true"):
        page.clock.fast_forward(UPDATED_MS)


def test_readers_of_a_share_link_see_it(visited: Client, dashboard_of: Make) -> None:
    made = visited.request("POST", f"/api/websites/{HOSTNAME}/shares", {"name": "club"})
    assert made.status == HTTPStatus.CREATED, made
    dashboard = dashboard_of(Client(visited.port))
    page = dashboard.page
    page.set_viewport_size({"width": PHONE_WIDTH, "height": 800})
    page.goto(f"{dashboard.base}/share/{made.json['id']}")
    loaded(page)
    page.locator(".view-head .live").click()
    dialog = page.get_by_role("dialog", name=TITLE)
    expect(rows(dialog, "Referrers")).to_contain_text(["Direct / none", "Google"])
    assert dashboard.violations(within="dialog") == []
    assert not dashboard.is_wider_than_the_window()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
