"""The list of websites, adding one, and what is unusual about one."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


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
        expect(card.locator(".change")).to_have_text(re.compile(r"[▲▼=]"))
        label = card.get_by_role("img").get_attribute("aria-label")
        assert label is not None
        assert label.startswith("Visitors per day in the last 30 days: at most ")
    cards[0].get_by_role("link").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(websites[0]["hostname"])
    # The card is gone; the focus starts at the beginning of the new page.
    expect(page.locator("#content")).to_be_focused()


def test_a_card_shows_the_whole_name(demo: Client, dashboard_of: Make) -> None:
    name = f"{'garden-' * 8}shed.{'post-' * 8}office.example"
    dashboard = dashboard_of(demo)
    dashboard.page.route(
        "**/api/websites?*",
        lambda route: route.fulfill(json=[{"hostname": name, "summary": {"visitors": 1}}]),
    )
    heading = dashboard.open().get_by_role("heading", level=2)
    expect(heading).to_have_text(name)
    assert heading.evaluate("it => getComputedStyle(it).textOverflow") == "clip"
    assert heading.evaluate("it => it.scrollWidth <= it.clientWidth")
    assert heading.evaluate("it => it.scrollHeight <= it.clientHeight")


def test_from_the_first_website_to_many(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    dashboard = dashboard_of(owner, fresh=True)
    asked: list[str] = []
    dashboard.page.on(
        "request", lambda request: asked.append(request.url) if "/summary?" in request.url else None
    )
    page = dashboard.open()
    page.get_by_role("link", name="Add website").wait_for()
    page.keyboard.press("n")
    field = page.get_by_label("Hostname")
    expect(field).to_be_focused()
    page.keyboard.type("not a name")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("This isn’t a valid hostname. ")
    field.fill("https://Example.com/blog?page=2")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up example.com")
    assert owner.get("/api/websites") == [{"hostname": "example.com"}]

    for number in range(60):
        owner.add_website(f"site-{number:02}.example")
    page.keyboard.type("gw")
    page.locator(".curve svg").nth(5).wait_for()
    page.wait_for_load_state("networkidle")
    # Two for each that is shown.
    assert 0 < len(asked) < 80, "those out of sight are not asked for"


def test_what_is_unusual_about_a_website_is_accessible(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    websites = demo.get("/api/websites")
    websites[0] |= {"limitsReached": ["utm_campaign"], "quietSince": 1_750_000_000}
    for pattern in ("**/api/websites", "**/api/websites?*"):
        dashboard.page.route(pattern, lambda route: route.fulfill(json=websites))
    page = dashboard.open(f"websites/{websites[0]['hostname']}?from=2020-01-01&to=2020-01-01")
    expect(page.locator(".unvisited")).to_have_count(2)
    assert dashboard.violations(within=".site-head") == []
