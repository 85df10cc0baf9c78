"""Who is counted and for how long, and custom events."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.browser.example_site import Site, served
from support.browser.opt_out import COUNTED, IGNORED, REFUSED
from support.browser.tracker_traffic import tag, watched
from support.browser.visitors import Statistics, Visitor
from support.browser.waiting import comes
from support.daemon import Daemon, running

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]

HIDDEN = """
    Object.defineProperty(document, "hidden", {value: true, configurable: true});
    Object.defineProperty(document, "visibilityState", {value: "hidden", configurable: true});
"""


@pytest.fixture
def visitor(someone: Make) -> Visitor:
    return someone()


def test_time_is_the_sum_of_visible_phases(
    website: Statistics, daemon: Daemon, visitor: Visitor
) -> None:
    wire = watched(visitor.context)
    least_ms = most_ms = 0.0
    with served(tag(daemon.base)) as site:
        began = time.monotonic()
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        for _ in range(3):
            time.sleep(0.1)
            least_ms += 100
            visitor.hide()
            most_ms += (time.monotonic() - began) * 1000
            visitor.hide()
            time.sleep(0.2)
            began = time.monotonic()
            visitor.hide(hidden=False)
            visitor.hide(hidden=False)
        time.sleep(0.1)
        least_ms += 100
        visitor.hide()
        most_ms += (time.monotonic() - began) * 1000
        visitor.page.goto("about:blank")
    website.wait_for(1, timed_pages=1)
    comes(lambda: len(wire.of("unload")), 4)
    durations = [hit["m"] for hit in wire.of("unload")]
    assert durations == sorted(set(durations))
    assert {hit["b"] for hit in wire.of("unload")} == {hit["b"] for hit in wire.of("load")}
    comes(lambda: [row["duration"] for row in website.get("time")], durations[-1:])
    assert least_ms <= durations[-1] <= most_ms
    assert website.visitors_and_views == (1, 1)


def test_time_after_navigation_belongs_to_the_next_view(
    website: Statistics, site: Site, visitor: Visitor
) -> None:
    visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
    time.sleep(0.3)
    moved = time.monotonic()
    visitor.visit(lambda: visitor.page.evaluate("history.pushState({}, '', '/next')"))
    visitor.page.goto("about:blank")
    next_ms = (time.monotonic() - moved) * 1000
    website.wait_for(2, timed_pages=2)
    times = {row["path"]: row["duration"] for row in website.get("time")}
    assert times["/"] >= 300
    assert 0 < times["/next"] <= next_ms


def test_a_page_opened_in_the_background(website: Statistics, site: Site, visitor: Visitor) -> None:
    """It is a view when it is looked at, and none if it never is."""
    wire = watched(visitor.context)
    visitor.page.add_init_script(HIDDEN)
    visitor.page.goto(site.address(website.hostname), wait_until="networkidle")
    visitor.page.goto(site.address(website.hostname, "/about"))
    time.sleep(0.3)
    assert (wire.hits, wire.pings) == ([], [])
    shown = time.monotonic()
    visitor.visit(lambda: visitor.hide(hidden=False))
    visitor.hide()
    shown_ms = (time.monotonic() - shown) * 1000
    website.wait_for(1, timed_pages=1)
    (row,) = website.get("time")
    assert 0 < row["duration"] <= shown_ms
    assert website.pages == {"/about": (1, 1)}


def test_an_excluded_browser_is_not_counted(
    website: Statistics, site: Site, visitor: Visitor
) -> None:
    wire = watched(visitor.context)
    home = site.address(website.hostname)
    visitor.visit(lambda: visitor.page.goto(home))
    visitor.page.goto("about:blank")
    messages = visitor.messages()
    for times in (1, 2):
        visitor.page.goto(f"{home}#medamad-ignore")
        visitor.sees(lambda: list(messages), [IGNORED] * times)
        visitor.page.goto("about:blank")
    visitor.page.goto(home)
    visitor.page.get_by_text("About").click()
    visitor.page.evaluate("history.pushState({}, '', '/one')")
    visitor.hide()
    visitor.page.goto(home)
    tab = visitor.context.new_page()
    tab.goto(f"{home}about")
    tab.close()
    visitor.page.goto("about:blank")
    website.wait_for(1, timed_pages=1)
    assert wire.paths == ["/"]
    assert len(wire.pings) == 2
    visitor.visit(lambda: visitor.page.goto(f"{home}#medamad-count"))
    visitor.sees(lambda: messages[2:], [COUNTED])
    visitor.visit(lambda: visitor.page.get_by_text("About").click())
    visitor.page.goto("about:blank")
    website.wait_for(3, timed_pages=2)
    assert website.pages == {"/": (1, 2), "/about": (1, 1)}
    assert visitor.errors == []


def test_a_visitor_who_asks_not_to_be_counted_on_an_open_page(
    website: Statistics, site: Site, visitor: Visitor
) -> None:
    wire = watched(visitor.context)
    messages = visitor.messages()
    home = site.address(website.hostname)
    visitor.visit(lambda: visitor.page.goto(home))
    visitor.page.evaluate("location.hash = 'medamad-ignore'")
    website.wait_for(1, timed_pages=1)
    visitor.sees(lambda: list(messages), [IGNORED])
    visitor.page.evaluate("history.replaceState({}, '', location)")
    visitor.page.evaluate("history.pushState({}, '', '/one')")
    visitor.visit(
        lambda: visitor.page.evaluate("location.hash = 'medamad-count'"),
    )
    # Headings may have such names.
    visitor.page.evaluate("location.hash = 'medamad-ignores'")
    visitor.sees(lambda: list(messages), [IGNORED, COUNTED])
    visitor.page.goto("about:blank")
    website.wait_for(2, timed_pages=2)
    assert wire.paths == ["/", "/one"]


def test_excluding_a_browser_affects_one_website(
    website: Statistics, site: Site, someone: Make
) -> None:
    ada, ben = someone(), someone()
    messages = ada.messages()
    ada.page.goto(site.address(website.hostname, "/#medamad-ignore"))
    ada.sees(lambda: list(messages), [IGNORED])
    ada.page.goto(site.address(website.hostname))
    ben.visit(lambda: ben.page.goto(site.address(website.hostname)))
    assert ada.page.evaluate("Object.keys(localStorage).length") == 1
    assert ben.page.evaluate("Object.keys(localStorage).length") == 0
    assert ada.context.cookies() == ben.context.cookies() == []
    website.wait_for(1, timed_pages=0)


def test_a_page_without_storage(website: Statistics, site: Site, visitor: Visitor) -> None:
    """As with cookies and the like forbidden by the visitor: reading local storage throws."""
    visitor.page.add_init_script(
        """Object.defineProperty(window, "localStorage", {get() {
            throw new DOMException("Access is denied for this document.", "SecurityError");
        }});"""
    )
    visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
    messages = visitor.messages()
    visitor.visit(
        lambda: visitor.page.goto(site.address(website.hostname, "/about#medamad-ignore"))
    )
    visitor.sees(lambda: list(messages), [REFUSED])
    visitor.page.goto("about:blank")
    website.wait_for(2, timed_pages=2)
    assert website.visitors_and_views == (1, 2)
    assert visitor.errors == []


def test_a_sandboxed_frame(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    frame = {"/blank": '<iframe sandbox="allow-scripts" src="/inner"></iframe>'}
    with served(tag(daemon.base), frame) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/blank")))
        visitor.page.goto("about:blank")
    website.wait_for(1, timed_pages=1)
    assert website.pages == {"/inner": (1, 1)}
    assert visitor.errors == []


def test_global_privacy_control(
    website: Statistics, site: Site, tmp_path: Path, someone: Make
) -> None:
    objecting = {"extra_http_headers": {"Sec-GPC": "1"}}
    with running(tmp_path, configuration="[events]\nrespect_gpc = true\n") as strict:
        owner = strict.client()
        owner.add_website(website.hostname)
        respectful = Statistics(owner, website.hostname)
        with served(tag(strict.base)) as other:
            ada, ben = someone(**objecting), someone()
            answer = ada.visit(lambda: ada.page.goto(other.address(website.hostname)))
            assert answer.header_value("X-Medamad-Ignored") == "gpc"
            ben.visit(lambda: ben.page.goto(other.address(website.hostname)))
        assert respectful.visitors_and_views == (1, 1)
        reasons = [(row["reason"], row["hits"]) for row in respectful.get("ignored")]
        assert reasons == [("gpc", 1)]
    # Unless the operator says so, everybody is counted.
    ada.visit(lambda: ada.page.goto(site.address(website.hostname)))
    assert website.visitors_and_views == (1, 1)


def test_custom_events(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    wire = watched(visitor.context)
    early = '<script>addEventListener("DOMContentLoaded", () => medamad("opened"))</script>'
    with served(tag(daemon.base), {"/": early}) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        visitor.page.evaluate("medamad('signup', {plan: 'pro', seats: 3, isYearly: true})")
        visitor.page.evaluate("medamad('signup')")
        visitor.visit(lambda: visitor.page.evaluate("history.pushState({}, '', '/thanks')"))
        visitor.page.evaluate("medamad('signup', {plan: 'b;c=d \u00fc'})")
        visitor.visit(lambda: visitor.page.get_by_text("About").click())
        visitor.page.evaluate("medamad('left', {})")
        # The last one goes out with the page itself.
        visitor.page.evaluate("void (onpagehide = () => medamad('gone'))")
        visitor.page.goto("about:blank")
    website.wait_for_values("event", {"signup": 3, "opened": 1, "left": 1, "gone": 1})
    assert website.values("plan") == {"pro": 1, "b;c=d \u00fc": 1}
    assert website.values("seats") == {"3": 1}
    assert website.values("isYearly") == {"true": 1}
    assert website.values("event", **{"path[eq]": "/"}) == {"opened": 1, "signup": 2}
    assert website.values("event", **{"path[eq]": "/thanks"}) == {"signup": 1}
    assert website.values("event", **{"path[eq]": "/about"}) == {"left": 1, "gone": 1}
    assert website.visitors_and_views == (1, 3)
    assert wire.properties[:3] == [
        {"event": "opened"},
        {"event": "signup", "plan": "pro", "seats": 3, "isYearly": True},
        {"event": "signup"},
    ]
    assert {hit["g"] for hit in wire.of("custom")} == {website.hostname}
    assert visitor.errors == []


def test_an_event_before_the_view_is_known(
    website: Statistics, site: Site, visitor: Visitor
) -> None:
    """The pings are still under way when it happens, and when the visitor leaves."""
    visitor.page.route("**/event/ping*", lambda _route: None)
    visitor.page.goto(site.address(website.hostname, "/about"))
    visitor.page.evaluate("medamad('early')")
    visitor.page.goto("about:blank")
    website.wait_for_values("event", {"early": 1}, **{"path[eq]": "/about"})
    assert website.visitors_and_views == (1, 1)
