"""The list of websites, and adding one."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import Dashboard
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def names(page: Page) -> Locator:
    return page.get_by_role("heading", level=2)


def test_each_website_has_its_visitors_and_a_curve(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open()
    websites = demo.get("/api/websites", summary="true")
    websites.sort(key=lambda website: -website["summary"]["visitors"])
    page.locator(".curve svg").nth(len(websites) - 1).wait_for()
    cards = page.locator("main li").all()
    for card, website in zip(cards, websites, strict=True):
        assert card.get_by_role("heading", level=2).inner_text() == website["hostname"]
        shown = int(card.locator("strong").inner_text().replace(",", ""))
        # The 24 hours move between the two requests.
        assert shown == pytest.approx(website["summary"]["visitors"], abs=3)
    cards[0].get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(websites[0]["hostname"])


def test_a_card_works_with_the_keyboard(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open()
    page.locator("main li").first.get_by_role("link").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Switch website").wait_for()
    # The card is gone; the focus starts at the beginning of the new page.
    expect(page.locator("#content")).to_be_focused()


def test_a_demo_does_not_offer_to_add_websites(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open()
    expect(page.get_by_text("This is a demo, so nothing can be changed.")).to_be_visible()
    assert page.get_by_role("link", name="Add website").count() == 0


def test_the_order_is_remembered(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open()
    page.get_by_role("button", name="Sort").click()
    page.get_by_role("menuitemradio", name="By name").click()
    by_name = sorted(website["hostname"] for website in demo.get("/api/websites"))
    expect(names(page)).to_have_text(by_name)
    page.reload()
    expect(names(page)).to_have_text(by_name)


def test_many_websites(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    for number in range(60):
        owner.add_website(f"site-{number:02}.example")
    dashboard = dashboard_of(owner, fresh=True)
    asked: list[str] = []
    dashboard.page.on(
        "request", lambda request: asked.append(request.url) if "/summary" in request.url else None
    )
    page = dashboard.open()
    page.locator(".curve svg").first.wait_for()
    page.wait_for_load_state("networkidle")
    assert 0 < len(asked) < 40, "those out of sight are not asked for"
    page.get_by_label("Search websites").fill("-5")
    expect(page.locator("main li")).to_have_count(10)
    expect(page.get_by_role("status")).to_have_text("10 websites")
    page.get_by_label("Search websites").fill("nowhere")
    expect(page.get_by_text("No results for “nowhere”.")).to_be_visible()


def test_the_first_website(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    page = dashboard_of(owner).open()
    expect(page.get_by_role("heading", level=2)).to_have_text("Add your first website")
    page.wait_for_load_state("networkidle")
    page.keyboard.press("n")
    field = page.get_by_label("Hostname")
    expect(field).to_be_focused()
    page.keyboard.type("https://Example.com/blog?page=2")
    expect(page.get_by_text("We’ll use the hostname: example.com")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up example.com")
    assert owner.get("/api/websites") == [{"hostname": "example.com"}]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("not a name", "This isn’t a valid hostname. "),
        ("taken.example", "taken.example has already been added"),
    ],
)
def test_invalid_hostnames(typed: str, message: str, owner: Client, dashboard_of: Make) -> None:
    owner.request("POST", "/api/websites", {"hostname": "taken.example"})
    page = dashboard_of(owner).open("add")
    page.get_by_label("Hostname").fill(typed)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text(message)
    page.get_by_label("Hostname").fill("other.example")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_website_with_too_many_new_values_says_so(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    websites = demo.get("/api/websites", summary="true")
    first, other = (website["hostname"] for website in websites[:2])
    websites[0]["limitsReached"] = ["utm_campaign"]
    for pattern in ("**/api/websites", "**/api/websites?*"):
        dashboard.page.route(pattern, lambda route: route.fulfill(json=websites))
    page = dashboard.open(f"websites/{first}")
    note = page.get_by_role("note").filter(has_text="(other)")
    expect(note).to_contain_text("A daily limit on new values was reached")
    assert not dashboard.violations()
    page = dashboard.open(f"websites/{other}")
    page.locator(".live").wait_for()
    expect(note).to_have_count(0)


def test_a_silent_website_is_marked(demo: Client, dashboard_of: Make) -> None:
    """Silence is shown on its card and on its page only."""
    dashboard = dashboard_of(demo)
    websites = demo.get("/api/websites", summary="true")
    first, other = (website["hostname"] for website in websites[:2])
    websites[0]["quietSince"] = 1_750_000_000
    for pattern in ("**/api/websites", "**/api/websites?*"):
        dashboard.page.route(pattern, lambda route: route.fulfill(json=websites))
    page = dashboard.open()
    page.get_by_role("heading", level=2, name=first).wait_for()
    note = page.locator(".unvisited")
    expect(note).to_have_text(["No views since 15 Jun 2025, 17:06"])
    card = page.locator("main li").filter(has_text=first)
    expect(card.locator(".unvisited")).to_have_count(1)
    dashboard.open(f"websites/{first}")
    expect(note).to_have_text(["No views since 15 Jun 2025, 17:06"])
    assert not dashboard.violations()
    page = dashboard.open(f"websites/{other}")
    page.locator(".live").wait_for()
    expect(note).to_have_count(0)
