"""The panels of a website's page."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import Dashboard
from support.browser.known_website import HOSTILE, HOSTNAME, LONG, RIGHT_TO_LEFT
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

PAGE = f"websites/{HOSTNAME}?period=7d"


def panel(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def rows(panel: Locator) -> list[list[str]]:
    """Return the cells of a panel's rows, once there are any."""
    panel.locator("table:not(.stale) tbody tr").first.wait_for()
    return [
        [row.locator("th button").first.inner_text(), *row.locator("td").all_inner_texts()[:2]]
        for row in panel.locator("tbody tr").all()
    ]


def first_row(panel: Locator, tab: str) -> list[str]:
    panel.get_by_role("tab", name=tab, exact=True).click()
    expect(panel.get_by_role("tabpanel", name=tab, exact=True)).to_be_visible()
    return rows(panel)[0]


CAMPAIGNS = {"UTM medium": "12", "UTM campaign": "12", "UTM term": "12", "UTM source": "11"}
FIRST_ROWS = {
    "Pages": {
        "Entry": ["/", "4", "33%"],
        "Exit": ["/", "4", "33%"],
        # Of 263 seconds in all, 63 were spent on /.
        "Time": ["/", "1m 3s", "20s"],
    },
    "Referrers": {
        "Campaigns": ["(none)", "11", "92%"],
    },
    "Locations": {
        "Countries": ["Germany", "10", "83%"],
        "Languages": ["German", "10", "83%"],
        "Languages (regional)": ["Swiss High German", "10", "83%"],
    },
    "Technology": {
        "Browsers": ["Chrome", "10", "83%"],
        "Operating systems": ["Linux", "12", "100%"],
        "Devices": ["Desktop", "12", "100%"],
    },
}


def test_what_the_daemon_counts_is_shown(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    assert rows(panel(page, "Pages")) == [
        ["/", "4", "33%"],
        ["/about", "3", "25%"],
        [HOSTILE, "1", "8.3%"],
        ["/=1+1", "1", "8.3%"],
        ["/a,b", "1", "8.3%"],
        [LONG.removesuffix("/"), "1", "8.3%"],
        [RIGHT_TO_LEFT, "1", "8.3%"],
    ]
    bars_are_as_long_as_their_shares(panel(page, "Pages"))
    referrers = panel(page, "Referrers")
    referrers.get_by_role("button", name="Show URLs of blog.example").click()
    expect(referrers.locator("tbody tr")).to_have_count(2)
    assert rows(referrers) == [
        ["blog.example/post/2", "2", "67%"],
        ["blog.example/post/1", "1", "33%"],
    ]
    expect(referrers.get_by_role("button", name="All referrers")).to_be_focused()
    for name, tabs in FIRST_ROWS.items():
        for tab, row in tabs.items():
            assert first_row(panel(page, name), tab) == row, tab
    for kind, figure in CAMPAIGNS.items():
        referrers.get_by_role("button", name="Campaigns by: ").click()
        referrers.get_by_role("menuitemradio", name=kind).click()
        expect(referrers.get_by_role("columnheader").first).to_have_text(kind)
        assert rows(referrers)[0][:2] == ["(none)", figure]
    technology = panel(page, "Technology")
    for before, after in (("Visitors", "Views"), ("Views", "Visits")):
        technology.get_by_role("button", name=before, exact=True).click()
        technology.get_by_role("button", name=after, exact=True).wait_for()
        assert rows(technology) == [["Desktop", "12", "100%"]]
    properties = panel(page, "Properties")
    assert rows(properties) == [["plan", "4", "100%"]]
    properties.get_by_role("button", name="plan").click()
    expect(properties.locator("tbody tr")).to_have_count(2)
    assert rows(properties) == [["pro", "3", "75%"], ["=1+1;=2", "1", "25%"]]
    properties.get_by_role("button", name="pro", exact=True).click()
    page.wait_for_url("**prop_name[eq]=plan&prop_value[eq]=pro")
    expect(properties.get_by_role("button", name="pro", exact=True)).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(page.locator(".tile-figure").first).to_have_text("3")
    # The arrows are the tabs' here, not the period's.
    technology.get_by_role("tab", name="Devices").focus()
    page.keyboard.press("ArrowLeft")
    expect(technology.get_by_role("tab", name="Operating systems")).to_be_focused()
    assert "period=7d" in page.url
    page.reload()
    selected = technology.get_by_role("tab", selected=True)
    expect(selected).to_have_text("Operating systems")


def bars_are_as_long_as_their_shares(pages: Locator) -> None:
    boxes = [bar.bounding_box() for bar in pages.locator(".row-bar").all()]
    longest, *others = [box["width"] for box in boxes if box]
    assert longest > pages.locator("tbody th").first.evaluate("head => head.offsetWidth") * 0.9
    assert [width / longest for width in others] == pytest.approx([3 / 4, *[1 / 4] * 5], abs=0.01)


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
    expect(world.locator("path:not([data-step='0'])")).to_have_count(1)
