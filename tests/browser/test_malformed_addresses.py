"""Pages with malformed addresses."""

from collections.abc import Callable

import pytest
from support.browser.example_site import Site, served
from support.browser.tracker_traffic import tag, watched
from support.browser.visitors import Statistics, Visitor
from support.daemon import Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]


@pytest.fixture
def visitor(someone: Make) -> Visitor:
    return someone()


def test_invalid_escapes(website: Statistics, site: Site, visitor: Visitor) -> None:
    """Browsers ask for such paths as they stand; each is a page like any other."""
    wire = watched(visitor.context)
    paths = ("/100%", "/%E4rger", "/100%")
    for path in paths:
        visitor.visit(lambda path=path: visitor.page.goto(site.address(website.hostname, path)))  # type: ignore[misc]
    website.wait_for(3, timed_pages=2)
    assert website.visitors_and_views == (1, 3)
    assert website.pages == {"/100%": (1, 2), "/%E4rger": (1, 1)}
    assert [hit.get("n") for hit in wire.of("load")] == [1, 2, 3]


def test_a_fragment_with_a_percent_sign(
    website: Statistics, daemon: Daemon, visitor: Visitor
) -> None:
    with served(tag(daemon.base, "hash-routing")) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/#/100%")))
        visitor.page.goto("about:blank")
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/#/100%")))
    website.wait_for(2, timed_pages=1)
    assert website.visitors_and_views == (1, 2)
    assert website.pages == {"/#/100%": (1, 2)}
