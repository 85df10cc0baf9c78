"""Nothing jumps while a page loads, in whatever order the responses arrive."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import BUSY, DESKTOP_WIDTH, PHONE_WIDTH, Dashboard
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

MOST: Final = 0.05
"""Half of what Core Web Vitals call good."""

WATCH: Final = """
window.shifts = [];
new PerformanceObserver((list) => {
    for (const { value, hadRecentInput, sources } of list.getEntries()) {
        if (hadRecentInput) continue;
        const moved = sources.map(({ node, previousRect, currentRect }) => {
            const it = node?.closest ? node : node?.parentElement;
            const isSideways = previousRect.top === currentRect.top;
            // All that moves within one frame is one shift, so a column that follows the width
            // of its figures must not make the rows of another table count.
            const isOfRows = !!it?.closest(isSideways ? "table *" : "tbody");
            return { what: it?.outerHTML.slice(0, 60), isSideways, isOfRows };
        });
        shifts.push({ value, moved, ofRows: moved.every((it) => it.isOfRows) });
    }
}).observe({ type: "layout-shift", buffered: true });
"""
DELAY: Final = """
const order = %s;
const counts = {};
const fetchNow = window.fetch;
let waiting = 0;
const wait = (change) => {
    waiting += change;
    document.documentElement.toggleAttribute("data-waiting", waiting > 0);
};
window.fetch = async (url, ...rest) => {
    wait(1);
    // Until the page has shown the answer, and perhaps asked for more.
    const isShown = () => setTimeout(() => wait(-1), 300);
    const response = await fetchNow(url, ...rest).catch((error) => {
        isShown();
        throw error;
    });
    const name = order.find((name) => String(url).includes(name)) ?? "others";
    counts[name] = ((counts[name] ?? 0) + 1) %% 10;
    const place = name === "others" ? order.length : order.indexOf(name);
    await new Promise((done) => setTimeout(done, %d + 200 * (place + 1) + 60 * counts[name]));
    isShown();
    return response;
};
"""
"""Delay all responses by some time, and so that they arrive in an order."""

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
    dashboard.page.add_init_script(DELAY % (ORDERS[order], 0))
    page = dashboard.open(f"{BUSY}{query}")
    expect(page.locator(".tile-figure")).to_have_count(6)
    expect(page.locator(".panel .rows")).to_have_count(5)
    expect(page.locator(".live")).to_be_visible()
    page.wait_for_load_state("networkidle")
    shifts = page.evaluate("shifts")
    assert sum(shift["value"] for shift in shifts) < MOST, shifts


FILTERS: Final = (
    # What came before and after a page is shown above everything else.
    "path[eq]=/journal/slow-mornings",
    "path[contains]=journal",
    "path[eq]=/nowhere",
    "entry_page[eq]=/",
    "exit_page[eq]=/",
    "goal[eq]={goal}",
    "visit_referrer[eq]=Google",
    "visit_utm_source[eq]=newsletter",
    "referrer[eq]=Google",
    "utm_term[eq]=",
    "country[eq]=Germany",
    "language[eq]=German",
    "browser[eq]=Firefox",
    "os[eq]=Windows",
    "device[eq]=Mobile",
    "prop_name[eq]=author",
    "prop_value[contains]=a",
)


def jumps(page: Page) -> tuple[float, list[Any]]:
    """Wait until everything has been answered, and return how much has jumped until then."""
    expect(page.locator("html:not([data-waiting])")).to_have_count(1)
    expect(page.locator(".stale, .skeleton, [aria-busy=true]")).to_have_count(0)
    shifts = page.evaluate("shifts.splice(0)")
    return sum(shift["value"] for shift in shifts), shifts


@pytest.mark.parametrize(("width", "filters"), [(DESKTOP_WIDTH, FILTERS), (390, FILTERS[:6])])
def test_a_filtered_website_does_not_jump(
    width: int, filters: Sequence[str], demo: Client, dashboard_of: Make
) -> None:
    goal = demo.get(f"/api/{BUSY}/goals")[0]["id"]
    dashboard = dashboard_of(demo, fresh=True, viewport={"width": width, "height": 780})
    dashboard.page.add_init_script(WATCH)
    dashboard.page.add_init_script(DELAY % (ORDERS["figures last"], 0))
    for query in filters:
        page = dashboard.open(f"{BUSY}?{query.format(goal=goal)}")
        expect(page.locator(".chip")).to_have_count(1)
        expect(page.locator(".page-flow")).to_have_count(int(query.startswith("path[eq]")))
        total, shifts = jumps(page)
        assert total < MOST, (query, shifts)


PAST_INPUT_MS: Final = 600
"""What moves within half a second of a key or a click is expected, and not counted."""


@pytest.mark.parametrize("width", [DESKTOP_WIDTH, 390])
@pytest.mark.parametrize("place", [".tiles", ".panels"])
def test_nothing_jumps_from_view_to_view(
    place: str, width: int, demo: Client, dashboard_of: Make
) -> None:
    dashboard = dashboard_of(demo, fresh=True, viewport={"width": width, "height": 780})
    dashboard.page.add_init_script(WATCH)
    dashboard.page.add_init_script(DELAY % ([], PAST_INPUT_MS))
    page = dashboard.open(BUSY)
    jumps(page)

    def row(panel: str) -> Locator:
        return page.get_by_role("region", name=panel, exact=True).locator("tbody button").nth(1)

    moves: dict[str, Callable[[], object]] = {
        "a page": row("Pages").click,
        "a week": lambda: page.keyboard.press("w"),
        "without a filter": page.get_by_role("button", name="Remove: ").click,
        "a source": row("Referrers").click,
        "campaigns": page.get_by_role("tab", name="Campaigns").click,
        "a year": lambda: page.keyboard.press("x"),
        "a day": lambda: page.keyboard.press("t"),
        "back": page.go_back,
    }
    for name, move in moves.items():
        page.locator(place).first.evaluate("it => it.scrollIntoView()")
        move()
        page.evaluate("new Promise(then => requestAnimationFrame(() => setTimeout(then)))")
        _, shifts = jumps(page)
        # Rows may change places, and columns their widths.
        others = [shift for shift in shifts if not shift["ofRows"]]
        assert sum(shift["value"] for shift in others) < MOST, (name, others)


def test_the_map_comes_without_scrolling_to_it(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, viewport={"width": PHONE_WIDTH, "height": 700})
    page = dashboard.open(BUSY)
    expect(page.locator(".map path[data-step='5']")).to_have_count(1)
    assert page.evaluate("scrollY") == 0
