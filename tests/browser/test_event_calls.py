"""A page that reports events must not break if nothing is counted."""

from collections.abc import Callable

import pytest
from support.browser.example_site import served
from support.browser.opt_out import IGNORED
from support.browser.tracker_traffic import tag, watched
from support.browser.visitors import Statistics, Visitor
from support.daemon import Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]


def test_events_of_an_excluded_browser_do_not_throw(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    wire = watched(visitor.context)
    content = "<button onclick=\"medamad('signup'); document.title = 'done'\">Sign up</button>"
    with served(tag(daemon.base), {"/": content}) as site:
        messages = visitor.messages()
        visitor.page.goto(site.address(website.hostname, "/#medamad-ignore"))
        visitor.sees(lambda: list(messages), [IGNORED])
        visitor.page.get_by_text("Sign up").click()
        assert visitor.page.title() == "done"
    assert wire.hits == []
    assert website.values("event") == {}
    assert visitor.errors == []


def test_events_of_a_prerendered_page_do_not_throw(
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


UNFIT = """{
    plan: "pro", seats: 3, share: -0.5, isYearly: true, isTrial: false, note: "",
    nothing: null, list: ["a"], object: {a: 1}, none: undefined, ratio: 0 / 0, endless: 1 / 0,
    large: 1n, call: () => 1, bare: Object.create(null), mark: Symbol.iterator,
}"""


def test_a_property_that_no_event_can_have_is_dropped(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    wire = watched(visitor.context)
    warnings: list[str] = []
    visitor.page.on(
        "console",
        lambda message: warnings.append(message.text) if message.type == "warning" else None,
    )
    with served(tag(daemon.base)) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        visitor.page.evaluate(f"window.given = {UNFIT}; medamad('signup', given)")
        assert visitor.page.evaluate("given.nothing === null"), "the page's object was changed"
        website.wait_for_values("event", {"signup": 1})
    assert wire.properties == [
        {"event": "signup", "plan": "pro", "seats": 3, "share": -0.5}
        | {"isYearly": True, "isTrial": False, "note": ""}
    ]
    assert website.values("share") == {"-0.5": 1}
    dropped = "nothing list object none ratio endless large call bare mark".split()  # noqa: SIM905
    assert [text.split()[:3] for text in warnings] == [
        ["medamad", "drops", name] for name in dropped
    ]
    assert visitor.errors == []
