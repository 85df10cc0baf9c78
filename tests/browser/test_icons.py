"""The icons beside the rows of lists."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import BUSY, Dashboard
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

TABS = ("Countries", "Operating systems", "Devices", "Browsers")


LEGIBLE = 4.5
"""The contrast of text, by WCAG 2.2."""


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour such as "rgb(15, 107, 92)"."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_icons_come_from_one_file_of_the_daemon_after_the_lists(
    demo: Client, dashboard_of: Make
) -> None:
    dashboard = dashboard_of(demo, fresh=True)
    asked: list[str] = []
    dashboard.page.on("request", lambda request: asked.append(request.url))
    page = dashboard.open(BUSY)
    google = page.get_by_role("button", name="Google", exact=True).first.locator("svg.mark")
    google.wait_for()
    for tab in TABS:
        page.get_by_role("tab", name=tab, exact=True).click()
        page.get_by_role("tabpanel", name=tab, exact=True).locator("svg.mark").first.wait_for()
    page.wait_for_load_state("networkidle")
    sprites = [url for url in asked if urlsplit(url).path.endswith(".svg") and "icons" in url]
    assert len(set(sprites)) == 1
    assert asked.index(sprites[0]) > asked.index(next(url for url in asked if "/referrers?" in url))
    assert {urlsplit(url).netloc for url in asked} == {urlsplit(dashboard.base).netloc}
    headers = page.request.get(sprites[0]).headers
    assert headers["content-type"].startswith("image/svg+xml")
    assert "immutable" in headers["cache-control"]
    # A symbol that is missing from the sprite would have no size.
    for symbol in page.locator("svg.mark use").all():
        assert symbol.evaluate("use => use.getBBox().width") > 0
    assert dashboard.complaints == []


def test_rows_have_space_for_icons_before_these_are_loaded(
    demo: Client, dashboard_of: Make
) -> None:
    dashboard = dashboard_of(demo, fresh=True)
    dashboard.page.route("**/icons-*.js", lambda route: route.abort())
    page = dashboard.open(BUSY)
    name = page.get_by_role("button", name="Google", exact=True).first
    without = name.locator("bdi").bounding_box()
    assert name.locator("span.mark").count() == 1
    page.unroute_all()
    page.reload()
    name.locator("svg.mark").wait_for()
    assert name.locator("bdi").bounding_box() == without


def test_letters_are_legible_and_logos_are_not_black_in_the_dark(
    demo: Client, dashboard_of: Make
) -> None:
    dashboard = dashboard_of(demo, color_scheme="dark")
    page = dashboard.open(BUSY)
    page.locator("[data-letter]").first.wait_for()
    page.get_by_role("tab", name="Operating systems", exact=True).click()
    apple = page.get_by_role("button", name="macOS", exact=True).locator("svg.mark")
    expect(apple).to_have_css("color", "rgb(232, 235, 239)")
    # Nothing examines the colours of what is decorative.
    colours = page.locator("[data-tone]").evaluate_all(
        "marks => marks.map((mark) => getComputedStyle(mark).backgroundColor)"
    )
    assert colours
    for colour in colours:
        assert 1.05 / (luminance(colour) + 0.05) >= LEGIBLE
