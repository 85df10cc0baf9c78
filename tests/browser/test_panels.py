"""The panels of a website's page."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import PHONE_WIDTH, Dashboard
from support.browser.known_website import HOSTILE, HOSTNAME, LONG, RIGHT_TO_LEFT, Visit, send
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

PAGE = f"websites/{HOSTNAME}?period=7d"


def panel(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def rows(panel: Locator) -> list[list[str]]:
    """Return the cells of a panel's rows, once there are any."""
    panel.locator("tbody tr").first.wait_for()
    return [
        [row.locator("th button").first.inner_text(), *row.locator("td").all_inner_texts()[:2]]
        for row in panel.locator("tbody tr").all()
    ]


def show(panel: Locator, tab: str) -> list[list[str]]:
    panel.get_by_role("tab", name=tab, exact=True).click()
    expect(panel.get_by_role("tab", name=tab, exact=True)).to_have_attribute(
        "aria-selected", "true"
    )
    return rows(panel)


FILTERING_ROWS = {
    "Pages": (
        ("Top", "/about", "path[eq]=/about", "3"),
        ("Entry", "/about", "entry_page[eq]=/about", "3"),
        ("Exit", "/about", "exit_page[eq]=/about", "3"),
        ("Time", "/a,b", "path[eq]=/a,b", "1"),
    ),
    "Referrers": (
        ("Referrers", "Direct / none", "visit_referrer[eq]=", "7"),
        ("UTM source", "news", "visit_utm_source[eq]=news", "1"),
        ("UTM medium", "(none)", "visit_utm_medium[eq]=", "12"),
        ("UTM campaign", "(none)", "visit_utm_campaign[eq]=", "12"),
    ),
    "Locations": (
        ("Countries", "United States", "country[eq]=United+States", "1"),
        ("Languages", "German", "language[eq]=German", "10"),
        ("Languages (regional)", "British English", "language[eq]=British+English", "1"),
    ),
    "Technology": (
        ("Browsers", "Chrome", "browser[eq]=Chrome", "10"),
        ("Operating systems", "Linux", "os[eq]=Linux", "12"),
        ("Devices", "Desktop", "device[eq]=Desktop", "12"),
    ),
}


def test_pages(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    pages = panel(page, "Pages")
    assert rows(pages) == [
        ["/", "4", "33%"],
        ["/about", "3", "25%"],
        [HOSTILE, "1", "8.3%"],
        ["/=1+1", "1", "8.3%"],
        ["/a,b", "1", "8.3%"],
        [LONG.removesuffix("/"), "1", "8.3%"],
        [RIGHT_TO_LEFT, "1", "8.3%"],
    ]
    # Of 263 seconds in all, 63 were spent on / and 60 on /a,b.
    assert show(pages, "Time")[:3] == [
        ["/", "20s", "24%"],
        ["/a,b", "1m 0s", "23%"],
        ["/about", "20s", "23%"],
    ]


def test_referrers_and_the_addresses_behind_one(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    referrers = panel(page, "Referrers")
    grouped = [
        ["Direct / none", "7", "58%"],
        ["blog.example", "3", "25%"],
        ["Google", "2", "17%"],
    ]
    assert rows(referrers) == grouped
    referrers.get_by_role("button", name="Show URLs of blog.example").click()
    expect(referrers.locator("tbody tr")).to_have_count(2)
    assert rows(referrers) == [
        ["blog.example/post/2", "2", "67%"],
        ["blog.example/post/1", "1", "33%"],
    ]
    back = referrers.get_by_role("button", name="All referrers")
    expect(back).to_be_focused()
    page.keyboard.press("Enter")
    expect(referrers.locator("tbody tr")).to_have_count(3)
    assert rows(referrers) == grouped
    assert show(referrers, "UTM source") == [["(none)", "11", "92%"], ["news", "1", "8.3%"]]


def test_rows_are_sorted_by_visitors_views_or_visits(
    new_daemon: Daemon, dashboard_of: Make
) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    for place, (referrer, is_first) in enumerate(
        [("one", True), ("two", True), *[("two", False)] * 2, *[("three", False)] * 5]
    ):
        load = {"e": "load", "b": f"{place}", "u": "https://example.com/", "q": is_first}
        load |= {"p": is_first, "r": f"https://{referrer}.example/"}
        assert owner.request("POST", "/api/event/hit", load).status == 204
    dashboard = dashboard_of(owner)
    page = dashboard.open("websites/example.com?period=today")
    referrers = panel(page, "Referrers")
    # Nobody came from three.example first.
    assert rows(referrers) == [["two.example", "1", "50%"], ["one.example", "1", "50%"]]
    referrers.get_by_role("button", name="Visitors", exact=True).click()
    by_views = [
        ["three.example", "5", "56%"],
        ["two.example", "3", "33%"],
        ["one.example", "1", "11%"],
    ]
    expect(referrers.get_by_role("button", name="Views", exact=True)).to_be_visible()
    expect(referrers.locator("tbody tr")).to_have_count(3)
    assert rows(referrers) == by_views
    page.reload()
    expect(referrers.locator("tbody tr")).to_have_count(3)
    assert rows(referrers) == by_views
    referrers.get_by_role("button", name="Views", exact=True).click()
    expect(referrers.get_by_role("button", name="Visits", exact=True)).to_be_visible()
    expect(referrers.locator("tbody td").nth(1)).to_have_text("50%")
    assert rows(referrers) == [
        ["two.example", "1", "50%"],
        ["one.example", "1", "50%"],
        ["three.example", "0", "0%"],
    ]
    # A list of nothing but later views still has rows.
    dashboard.open("websites/example.com?period=today&referrer[eq]=three.example")
    referrers.get_by_role("button", name="Visits", exact=True).click()
    expect(referrers.locator("tbody td")).to_have_text(["0", "0%"])


def test_locations_and_technology(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    places = panel(page, "Locations")
    assert show(places, "Countries") == [
        ["Germany", "10", "83%"],
        ["Singapore", "1", "8.3%"],
        ["United States", "1", "8.3%"],
    ]
    assert show(places, "Languages") == [["German", "10", "83%"], ["English", "2", "17%"]]
    assert show(places, "Languages (regional)")[0] == ["Swiss High German", "10", "83%"]
    technology = panel(page, "Technology")
    assert rows(technology) == [["Chrome", "10", "83%"], ["Firefox", "2", "17%"]]
    assert show(technology, "Devices") == [["Desktop", "12", "100%"]]


def test_properties_and_their_values(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    properties = panel(page, "Properties")
    assert rows(properties) == [["plan", "4", "100%"]]
    properties.get_by_role("button", name="plan").click()
    expect(properties.locator("tbody tr")).to_have_count(2)
    assert rows(properties) == [["pro", "3", "75%"], ["=1+1;=2", "1", "25%"]]
    properties.get_by_role("button", name="pro", exact=True).click()
    page.wait_for_url("**prop_name[eq]=plan&prop_value[eq]=pro")
    expect(panel(page, "Pages").locator("tbody tr")).to_have_count(1)
    properties.get_by_role("button", name="pro", exact=True).click()
    expect(panel(page, "Pages").locator("tbody tr")).to_have_count(7)
    assert "prop_" not in page.url


def test_a_row_is_a_filter(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    row = panel(page, "Technology").get_by_role("button", name="Firefox")
    row.click()
    page.wait_for_url("**browser[eq]=Firefox")
    expect(row).to_have_attribute("aria-pressed", "true")
    expect(panel(page, "Pages").locator("tbody tr")).to_have_count(2)
    page.go_back()
    expect(panel(page, "Pages").locator("tbody tr")).to_have_count(7)
    page.go_forward()
    expect(panel(page, "Pages").locator("tbody tr")).to_have_count(2)
    row.click()
    expect(row).to_have_attribute("aria-pressed", "false")
    expect(panel(page, "Pages").locator("tbody tr")).to_have_count(7)


@pytest.mark.parametrize("name", list(FILTERING_ROWS))
def test_every_row_is_a_filter(name: str, known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    visitors = page.locator(".tile-figure").first
    for tab, word, filtered, left in FILTERING_ROWS[name]:
        show(panel(page, name), tab)
        row = panel(page, name).locator("tbody").get_by_role("button", name=word, exact=True)
        row.click()
        expect(row).to_have_attribute("aria-pressed", "true")
        assert page.url.endswith(f"?period=7d&{filtered}")
        expect(visitors).to_have_text(left)
        row.click()
        expect(row).to_have_attribute("aria-pressed", "false")
        expect(visitors).to_have_text("12")


def test_bars_are_as_long_as_their_shares(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    pages = panel(page, "Pages")
    rows(pages)
    boxes = [bar.bounding_box() for bar in pages.locator(".row-bar").all()]
    longest, *others = [box["width"] for box in boxes if box]
    assert longest > pages.locator("tbody th").first.evaluate("head => head.offsetWidth") * 0.9
    assert [width / longest for width in others] == pytest.approx([3 / 4, *[1 / 4] * 5], abs=0.01)


def test_tabs_follow_the_keyboard_and_are_remembered(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    technology = panel(page, "Technology")
    technology.get_by_role("tab", name="Browsers").focus()
    page.keyboard.press("ArrowLeft")
    expect(technology.get_by_role("tab", name="Devices")).to_be_focused()
    assert rows(technology)[0][0] == "Desktop"
    page.keyboard.press("ArrowLeft")
    assert rows(technology)[0][0] == "Linux"
    assert "period=7d" in page.url, "the arrows are the tabs' here, not the period's"
    page.reload()
    expect(technology.get_by_role("tab", name="Operating systems")).to_have_attribute(
        "aria-selected", "true"
    )
    assert rows(technology)[0][0] == "Linux"


def test_the_map(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    panel(page, "Locations").scroll_into_view_if_needed()
    world = panel(page, "Locations").get_by_role("img", name=re.compile("World map"))
    germany = world.locator("[data-code=DE]")
    expect(germany).to_have_attribute("data-step", "5")
    expect(world.locator("[data-code=SG]")).to_have_attribute("data-step", "2")
    expect(world.locator("[data-code=FR]")).to_have_attribute("data-step", "0")
    germany.hover()
    expect(page.locator(".map-tip")).to_have_text("Germany10 visitors · 83%")
    germany.click()
    page.wait_for_url("**country[eq]=Germany")
    expect(world.locator("[data-step='0']")).not_to_have_count(0)
    expect(world.locator("path:not([data-step='0'])")).to_have_count(1)


def test_outbound_links_are_safe(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    rows(panel(page, "Pages"))
    rows(panel(page, "Referrers"))
    links = page.locator(".row-name a")
    addresses = [link.get_attribute("href") for link in links.all()]
    assert f"https://{HOSTNAME}/%3Cimg%20src=x%20onerror=alert(1)%3E" in addresses
    assert "https://blog.example/" in addresses
    assert all(address and address.startswith("https://") for address in addresses)
    assert {link.get_attribute("rel") for link in links.all()} == {"noopener noreferrer"}
    assert page.locator("main img").count() == 0


def test_a_tiny_share_is_not_nothing(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).page
    found = [
        {"browser": "Chrome", "visitors": 9_999, "visitors_percentage": 0.9996},
        {"browser": "Lynx", "visitors": 1, "visitors_percentage": 0.0004},
    ]
    page.route("**/browsers?*", lambda route: route.fulfill(json=found))
    page.goto(f"http://localhost:{known.port}/dashboard/{PAGE}")
    shares = [row[2] for row in rows(panel(page, "Technology"))]
    assert shares == ["100%", "<0.1%"]


def test_names_are_translated(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.request("PATCH", "/api/user", {"settings": {"language": "de"}})
    owner.add_website("example.com")
    send(owner, "example.com", Visit("/", language="en-GB"))
    page = dashboard_of(owner, locale="de-DE").open("websites/example.com?period=7d")
    places = page.locator(".panel").nth(2)
    places.get_by_role("tab").nth(1).click()
    country = places.locator("tbody button").first
    expect(country).to_have_text("Deutschland")
    country.click()
    page.wait_for_url("**country[eq]=Germany")
    expect(country).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".chip-words")).to_have_text("Land ist Deutschland")
    country.click()
    expect(page.locator(".chip-words")).to_have_count(0)
    places.get_by_role("tab").nth(2).click()
    expect(places.locator("tbody button").first).to_have_text("Englisch")
    places.get_by_role("tab").nth(3).click()
    expect(places.locator("tbody button").first).to_have_text("Englisch (Vereinigtes Königreich)")
    places.locator("tbody button").first.click()
    page.wait_for_url("**language[eq]=British+English")


def test_empty_panels(owner: Client, dashboard_of: Make) -> None:
    owner.request("POST", "/api/websites", {"hostname": "quiet.example"})
    page = dashboard_of(owner).open("websites/quiet.example")
    expect(panel(page, "Pages")).to_contain_text("No visits in this period")
    expect(panel(page, "Properties")).to_contain_text("No properties in this period")


def test_it_is_accessible(known: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(known, viewport={"width": PHONE_WIDTH, "height": 700})
    page = dashboard.open(f"{PAGE}&browser[in]=Chrome,Firefox&path[neq]={LONG}")
    panel(page, "Locations").scroll_into_view_if_needed()
    page.locator(".map path").first.wait_for()
    assert dashboard.violations_by_scheme() == {}
    assert not dashboard.is_wider_than_the_window()
