"""What tables and tiles look like in each language."""

from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import Page, expect
from support.browser.catalogues import LANGUAGES, translated
from support.browser.dashboard import DESKTOP_WIDTH, Dashboard, loaded
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

SHOP: Final = "websites/shop.gardenpost.example"
"""Its goals have revenue, which is one column more."""
WIDTHS: Final = (DESKTOP_WIDTH, 390)
BROKEN: Final = """tables => {
    const broken = [];
    const words = new Intl.Segmenter(document.documentElement.lang, { granularity: "word" });
    for (const head of tables.flatMap((table) => [...table.querySelectorAll("thead th")])) {
        const range = document.createRange();
        const texts = document.createTreeWalker(head, NodeFilter.SHOW_TEXT);
        for (let text = texts.nextNode(); text; text = texts.nextNode()) {
            for (const { index, segment, isWordLike } of words.segment(text.data)) {
                range.setStart(text, index);
                range.setEnd(text, index + segment.length);
                const lines = new Set([...range.getClientRects()].map(({ top }) => top));
                if (isWordLike && lines.size > 1) broken.push(`${segment} of ${text.data} breaks`);
            }
        }
        range.selectNodeContents(head);
        const [inside, cell] = [range, head].map((part) => part.getBoundingClientRect());
        if (inside.left < cell.left - 1 || inside.right > cell.right + 1) {
            broken.push(`${head.textContent} does not fit`);
        }
    }
    return broken;
}"""
"""Which headings break within a word, or are wider than their columns."""
LINES: Final = """lists => lists.map((list) => new Set(
    [...list.children].map((tab) => tab.getBoundingClientRect().top)).size)"""


@pytest.fixture(scope="module", params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    """One language after another: tests show the document of the test before."""
    return str(request.param)


def test_headings_do_not_break(language: str, demo: Client, dashboard_of: Make) -> None:
    page = tables(language, demo, dashboard_of)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.locator("table.rows").evaluate_all(BROKEN) == [], width
        # Tabs neither wrap nor are cut.
        tabs = page.locator(".tabs")
        assert set(tabs.evaluate_all(LINES)) == {1}, width
        cut = "lists => lists.filter((list) => list.scrollWidth > list.clientWidth).length"
        assert tabs.evaluate_all(cut) == 0, width


def test_tiles_are_of_one_height(language: str, demo: Client, dashboard_of: Make) -> None:
    page = tables(language, demo, dashboard_of)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        boxes = [tile.bounding_box() for tile in page.locator(".tile").all()]
        assert len({round(box["height"]) for box in boxes if box}) == 1, width
        figures = [figure.bounding_box() for figure in page.locator(".tile-figure").all()]
        for box, figure in zip(boxes, figures, strict=True):
            assert box is not None
            assert figure is not None
            assert figure["x"] + figure["width"] < box["x"] + box["width"], width


def test_full_lists_show_every_column(language: str, demo: Client, dashboard_of: Make) -> None:
    page = tables(language, demo, dashboard_of)

    def examine(panel: str, tab: str = "") -> None:
        region = page.get_by_role("region", name=translated(language, panel), exact=True)
        if tab:
            region.get_by_role("tab", name=translated(language, tab), exact=True).click()
        region.locator(".panel-foot button").click()
        table = page.locator(".details")
        table.locator("tbody tr").first.wait_for()
        assert table.evaluate("it => it.scrollWidth - it.clientWidth") == 0, (panel, tab)
        assert table.locator("table").evaluate_all(BROKEN) == [], (panel, tab)
        page.keyboard.press("Escape")
        expect(table).to_have_count(0)

    for panel, tab in (
        ("panels.pages", ""),
        ("panels.pages", "panels.tab.entries"),
        ("panels.pages", "panels.tab.time"),
        ("panels.referrers", ""),
        ("panels.referrers", "panels.tab.utm"),
        ("panels.places", "panels.tab.countries"),
        ("panels.properties", ""),
    ):
        examine(panel, tab)
    # With the columns of a goal.
    page.locator(".goal-rows tbody button[aria-pressed]").first.click()
    expect(page.locator(".rows.converted:not(.stale)").first).to_be_visible()
    for panel, tab in (
        ("panels.pages", "panels.tab.pages"),
        ("panels.referrers", "panels.tab.referrers"),
        ("panels.places", ""),
    ):
        examine(panel, tab)


def test_labels_of_the_usage_are_on_one_line(
    language: str, demo: Client, dashboard_of: Make
) -> None:
    page = speaking(language, demo, dashboard_of, "settings/usage")
    labels = page.locator(".meter-field span")
    expect(labels).to_have_count(8)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        heights = labels.evaluate_all("all => all.map((label) => label.offsetHeight)")
        assert max(heights) < 1.5 * min(heights), (width, labels.all_inner_texts())


def tables(language: str, demo: Client, dashboard_of: Make) -> Page:
    """Return a website's page in a language, with all its tables."""
    page = speaking(language, demo, dashboard_of, SHOP)
    loaded(page)
    expect(page.locator("table.rows")).to_have_count(5)
    expect(page.locator(".skeleton, [aria-busy=true]")).to_have_count(0)
    return page


def speaking(language: str, demo: Client, dashboard_of: Make, path: str) -> Page:
    """Return a page below /dashboard/ in a language."""
    dashboard = dashboard_of(demo)
    page = dashboard.page
    spoken = page.locator("html")
    if not dashboard.is_loaded or spoken.get_attribute("lang") != language:
        dashboard.open("settings/account")
        page.locator("select").select_option(language)
        expect(spoken).to_have_attribute("lang", language)
    if page.url != f"{dashboard.base}/dashboard/{path}":
        dashboard.turn_to(path)
    # A document that was loaded anew would speak the browser's language.
    expect(spoken).to_have_attribute("lang", language)
    return page
