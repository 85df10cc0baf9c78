"""The pixel in <noscript>, in a real browser."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Response
from support.browser.example_site import Site, served
from support.browser.visitors import Statistics, Visitor
from support.daemon import Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]
TAG = (
    '<noscript><img src="{base}/api/event/pixel.gif" '
    'referrerpolicy="no-referrer-when-downgrade" alt=""></noscript>'
)


@pytest.fixture(scope="module")
def site(daemon: Daemon) -> Iterator[Site]:
    with served(TAG.format(base=daemon.base)) as site:
        yield site


def visit(visitor: Visitor, act: Callable[[], object]) -> Response:
    """Load a page; return the response to its pixel."""
    with visitor.page.expect_response(lambda response: "pixel.gif" in response.url) as answer:
        act()
    # The browser keeps it once it has all of it, and then asks whether it is still the same.
    answer.value.finished()
    return answer.value


def test_views_are_counted_without_a_script(website: Statistics, site: Site, someone: Make) -> None:
    visitor = someone(java_script_enabled=False, locale="de-DE")
    first = visit(visitor, lambda: visitor.page.goto(site.address(website.hostname)))
    assert (first.status, first.header_value("Content-Type")) == (200, "image/gif")
    visit(visitor, lambda: visitor.page.get_by_text("About").click())
    summary = website.get("summary")["current"]
    assert (summary["visitors"], summary["pageviews"]) == (1, 2)
    pages = {row["path"]: (row["visitors"], row["pageviews"]) for row in website.get("pages")}
    assert pages == {"/": (1, 1), "/about": (0, 1)}
    assert [row["language"] for row in website.get("languages")] == ["German"]
    another = someone(java_script_enabled=False)
    visit(another, lambda: another.page.goto(site.address(website.hostname, "/about")))
    summary = website.get("summary")["current"]
    assert (summary["visitors"], summary["pageviews"]) == (2, 3)


def test_a_browser_with_scripts_does_not_load_the_pixel(
    website: Statistics, site: Site, someone: Make
) -> None:
    visitor = someone()
    visitor.page.goto(site.address(website.hostname), wait_until="networkidle")
    assert website.get("summary")["current"]["pageviews"] == 0
