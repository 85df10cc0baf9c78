"""Nothing jumps while a page loads, in whatever order the responses arrive."""

from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import BUSY, DESKTOP_WIDTH, PHONE_WIDTH, Dashboard
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

MOST: Final = 0.05
"""Half of what Core Web Vitals call good."""

WATCH: Final = """
window.shifts = [];
new PerformanceObserver((list) => {
    for (const { value, sources } of list.getEntries()) {
        const moved = sources.map(({ node }) => node?.className ?? node?.nodeName);
        shifts.push({ value, moved });
    }
}).observe({ type: "layout-shift", buffered: true });
"""
DELAY: Final = """
const order = %s;
const counts = {};
const fetchNow = window.fetch;
window.fetch = async (url, ...rest) => {
    const response = await fetchNow(url, ...rest);
    const name = order.find((name) => String(url).includes(name)) ?? "others";
    counts[name] = (counts[name] ?? 0) + 1;
    const place = name === "others" ? order.length : order.indexOf(name);
    await new Promise((done) => setTimeout(done, 200 * (place + 1) + 60 * counts[name]));
    return response;
};
"""
"""Delay responses so that they arrive in an order, those of one name one after another."""

ORDERS: Final = {
    "figures first": ["/summary", "/websites", "/live"],
    "figures last": ["/live", "/pages", "/referrers", "/countries", "/summary"],
}


# Each two of an order, a width and a period meet once.
@pytest.mark.parametrize(
    ("order", "width", "query"),
    [
        ("figures first", PHONE_WIDTH, ""),
        ("figures first", DESKTOP_WIDTH, "?period=7d"),
        ("figures last", PHONE_WIDTH, "?period=7d"),
        ("figures last", DESKTOP_WIDTH, ""),
    ],
)
def test_a_website_does_not_jump(
    order: str, width: int, query: str, demo: Client, dashboard_of: Make
) -> None:
    dashboard = dashboard_of(demo, fresh=True, viewport={"width": width, "height": 780})
    dashboard.page.add_init_script(WATCH)
    dashboard.page.add_init_script(DELAY % ORDERS[order])
    page = dashboard.open(f"{BUSY}{query}")
    expect(page.locator(".tile-figure")).to_have_count(6)
    expect(page.locator(".panel .rows")).to_have_count(5)
    expect(page.locator(".live")).to_be_visible()
    page.wait_for_load_state("networkidle")
    shifts = page.evaluate("shifts")
    assert sum(shift["value"] for shift in shifts) < MOST, shifts


def test_the_map_comes_without_scrolling_to_it(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, viewport={"width": PHONE_WIDTH, "height": 700})
    page = dashboard.open(BUSY)
    expect(page.locator(".map path[data-step='5']")).to_have_count(1)
    assert page.evaluate("scrollY") == 0
