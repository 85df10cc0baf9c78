"""A page that reports events must not break where nothing is counted."""

from collections.abc import Callable

import pytest
from support.browser.example_site import served
from support.browser.tracker_traffic import tag, watched
from support.browser.visitors import Statistics, Visitor
from support.daemon import Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]


def test_an_ignored_visitors_page_may_report_events(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    wire = watched(visitor.context)
    content = "<button onclick=\"medamad('signup'); document.title = 'done'\">Sign up</button>"
    with served(tag(daemon.base), {"/": content}) as site:
        visitor.page.goto(site.address(website.hostname, "/#medamad-ignore"))
        visitor.page.get_by_text("Sign up").click()
        assert visitor.page.title() == "done"
    assert wire.hits == []
    assert website.values("event") == {}
    assert visitor.errors == []


def test_a_page_made_ready_unseen_may_report_events(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    visitor.page.add_init_script(
        """Object.defineProperty(document, "prerendering", {value: true, configurable: true});
        Object.defineProperty(document, "hidden", {value: true, configurable: true});"""
    )
    with served(tag(daemon.base)) as site:
        visitor.page.goto(site.address(website.hostname))
        visitor.page.evaluate("void medamad('ready')")
        visitor.page.evaluate(
            "void Object.defineProperty(document, 'prerendering', {value: false})"
        )
        visitor.visit(lambda: visitor.hide(hidden=False))
    website.wait_for(1, timed_pages=0)
    assert visitor.errors == []
