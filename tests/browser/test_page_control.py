"""What a page decides about its views: excluded paths, a function before sending, manual views."""

from collections.abc import Callable

import pytest
from support.browser.example_site import served
from support.browser.tracker_traffic import tag, watched
from support.browser.visitors import Statistics, Visitor
from support.daemon import Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]


def controlled(base: str, attributes: str, feature: str = "page-control") -> str:
    return tag(base, feature).replace("<script ", f"<script {attributes} ", 1)


def go(visitor: Visitor, path: str) -> None:
    visitor.page.evaluate("path => history.pushState(null, '', path)", path)


def test_excluded_pages_send_nothing(website: Statistics, daemon: Daemon, someone: Make) -> None:
    visitor = someone()
    wire = watched(visitor.context)
    with served(controlled(daemon.base, 'data-exclude="^/admin(/|$)"')) as site:
        visitor.page.goto(site.address(website.hostname, "/admin"))
        visitor.page.evaluate("medamad('clicked')")
        visitor.visit(lambda: go(visitor, "/administration"))
        go(visitor, "/admin/users")
        visitor.page.evaluate("medamad('clicked')")
        visitor.visit(lambda: go(visitor, "/b"))
        visitor.page.evaluate("medamad('counted')")
        visitor.page.goto("about:blank")
    website.wait_for(2, timed_pages=2)
    assert [hit["u"].partition("localhost")[2].partition("/")[2] for hit in wire.of("load")] == [
        "administration",
        "b",
    ]
    assert website.values("event") == {"counted": 1}
    assert visitor.errors == []


def test_a_page_after_an_excluded_one_is_a_view_and_times_are_its_own(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    wire = watched(visitor.context)
    with served(controlled(daemon.base, 'data-exclude="^/admin"')) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/a")))
        go(visitor, "/admin/b")
        visitor.visit(visitor.page.go_back)
        visitor.visit(lambda: visitor.page.evaluate("medamad.view('/step')"))
        # The view before ends here, not when the next one begins.
        visitor.page.evaluate("medamad.view('/admin/step')")
        visitor.page.evaluate("medamad('clicked')")
        visitor.sees(lambda: len(wire.of("unload")), 3)
        visitor.visit(lambda: go(visitor, "/c"))
        visitor.page.goto("about:blank")
    website.wait_for(4, timed_pages=3)
    assert {path: views for path, (_, views) in website.pages.items()} == {
        "/a": 2, "/step": 1, "/c": 1
    }  # fmt: skip
    assert wire.properties == []
    assert visitor.errors == []


def test_views_of_other_paths_leave_the_next_address_alone(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    with served(controlled(daemon.base, "")) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/a")))
        visitor.visit(lambda: visitor.page.evaluate("medamad.view('/a/step')"))
        visitor.visit(lambda: go(visitor, "/b"))
        visitor.page.goto("about:blank")
    website.wait_for(3, timed_pages=3)
    assert list(website.pages) == ["/a", "/a/step", "/b"]
    assert visitor.errors == []


def test_events_before_the_first_manual_view_are_excluded_by_the_address(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    wire = watched(visitor.context)
    with served(controlled(daemon.base, 'data-manual data-exclude="^/admin"')) as site:
        visitor.page.goto(site.address(website.hostname, "/admin"))
        visitor.page.evaluate("medamad('clicked')")
        visitor.page.evaluate("medamad.view()")
        go(visitor, "/b")
        visitor.visit(lambda: visitor.page.evaluate("medamad.view()"))
        visitor.page.evaluate("medamad('counted')")
    website.wait_for(1, timed_pages=0)
    website.wait_for_values("event", {"counted": 1})
    assert wire.properties == [{"event": "counted"}]
    assert visitor.errors == []


def test_a_function_may_change_and_drop_hits(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    wire = watched(visitor.context)
    define = """<script>
    function checked(hit) {
      if (hit.u) hit.u = hit.u.replace("/secret", "/hidden");
      if (!(hit.d && hit.d.event === "dropped")) return hit;
    }
    </script>"""
    script = define + controlled(daemon.base, 'data-before-send="checked"')
    with served(script) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/secret?a=b")))
        visitor.page.evaluate("medamad('dropped'); medamad('kept')")
        visitor.page.goto("about:blank")
    website.wait_for(1, timed_pages=1)
    assert {path: views for path, (_, views) in website.pages.items()} == {"/hidden": 1}
    website.wait_for_values("event", {"kept": 1})
    assert wire.properties == [{"event": "kept"}]
    assert visitor.errors == []


def test_without_the_function_nothing_is_sent(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    wire = watched(visitor.context)
    with served(controlled(daemon.base, 'data-before-send="missing"')) as site:
        visitor.page.goto(site.address(website.hostname))
        visitor.page.evaluate("medamad('a')")
        visitor.page.goto("about:blank")
    assert wire.hits == []
    assert visitor.errors == []


def test_manual_views(website: Statistics, daemon: Daemon, someone: Make) -> None:
    visitor = someone()
    wire = watched(visitor.context)
    with served(controlled(daemon.base, "data-manual")) as site:
        visitor.page.goto(site.address(website.hostname, "/a"))
        go(visitor, "/b")
        assert wire.hits == []
        visitor.visit(lambda: visitor.page.evaluate("medamad.view()"))
        go(visitor, "/c")
        visitor.visit(lambda: visitor.page.evaluate("medamad.view('/virtual')"))
        visitor.visit(lambda: visitor.page.evaluate("medamad.view('/virtual')"))
        visitor.page.goto("about:blank")
    website.wait_for(3, timed_pages=2)
    assert {path: views for path, (_, views) in website.pages.items()} == {"/b": 1, "/virtual": 2}
    assert visitor.errors == []


def test_any_value_means_manual(website: Statistics, daemon: Daemon, someone: Make) -> None:
    visitor = someone()
    wire = watched(visitor.context)
    with served(controlled(daemon.base, 'data-manual="true"')) as site:
        visitor.page.goto(site.address(website.hostname, "/a"))
        go(visitor, "/b")
        assert wire.hits == []
        visitor.visit(lambda: visitor.page.evaluate("medamad.view()"))
    website.wait_for(1, timed_pages=0)
    assert list(website.pages) == ["/b"]
    assert visitor.errors == []


def test_the_usual_script_ignores_the_attributes(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    attributes = 'data-manual data-exclude="." data-before-send="missing"'
    with served(controlled(daemon.base, attributes, "default")) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/a")))
    website.wait_for(1, timed_pages=0)
    assert visitor.page.evaluate("typeof medamad.view") == "undefined"
    assert visitor.errors == []
