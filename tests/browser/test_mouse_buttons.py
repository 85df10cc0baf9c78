"""Clicks with other mouse buttons."""

from collections.abc import Callable

import pytest
from support.browser.example_site import served
from support.browser.tracker_traffic import tag, watched
from support.browser.visitors import Statistics, Visitor
from support.daemon import Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]

BUTTON = '<button data-m:click="plan=pro">Buy</button>'


@pytest.fixture
def visitor(someone: Make) -> Visitor:
    return someone()


def test_middle_clicks_count(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    wire = watched(visitor.context)
    with served(tag(daemon.base, "click-events"), {"/": BUTTON}) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        visitor.page.get_by_text("Buy").click(button="middle")
        visitor.page.get_by_text("Buy").click()
    website.wait_for_values("plan", {"pro": 2})
    assert wire.properties == [{"plan": "pro"}] * 2


def test_opening_a_context_menu_does_not_count(
    website: Statistics, daemon: Daemon, visitor: Visitor
) -> None:
    wire = watched(visitor.context)
    links = """
        <a href="http://other.localhost/">Other</a>
        <a href="/report.pdf">Report</a>
        <button data-m:click="name=event">Event</button>"""
    features = tag(daemon.base, "click-events", "outbound-links", "file-downloads")
    with served(features, {"/": links}) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        for name in ("Other", "Report", "Event"):
            visitor.page.get_by_text(name).click(button="right")
        visitor.page.get_by_text("Event").click()
    website.wait_for_values("name", {"event": 1})
    assert wire.properties == [{"name": "event"}]
