"""What is a view: navigation within a page, several tabs, prerendered pages."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.browser.example_site import Site, served
from support.browser.tracker_traffic import tag, watched
from support.browser.visitors import DESKTOP, Statistics, Visitor
from support.daemon import PATIENCE_S, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]


BACK = """new Promise(done => {
    addEventListener("popstate", done, {once: true});
    history.back();
})"""


@pytest.fixture
def visitor(someone: Make) -> Visitor:
    return someone()


def test_moves_within_a_page_are_not_views(
    website: Statistics, daemon: Daemon, visitor: Visitor
) -> None:
    wire = watched(visitor.context)
    content = {"/about": '<a href="#below">Below</a><h2 id="below">Below this</h2>'}
    with served(tag(daemon.base), content) as site:
        address = site.address(website.hostname, "/about")
        visitor.visit(lambda: visitor.page.goto(f"{address}?a=1#top"))
        visitor.page.get_by_role("link", name="Below").click()
        for code in (
            "(location.hash = 'other')",
            BACK,
            "history.pushState({}, '')",
            "history.pushState({}, '', location.href)",
            "history.pushState({}, '', '/about')",
            "history.pushState({}, '', '?a=2')",
            "history.replaceState({state: 1}, '')",
            "history.replaceState({}, '', '/about?a=3#there')",
            BACK,
            "dispatchEvent(new PopStateEvent('popstate'))",
        ):
            visitor.page.evaluate(f"(async () => {{ await {code} }})()")
        assert visitor.page.evaluate("location.pathname") == "/about"
        visitor.visit(lambda: visitor.page.evaluate("history.pushState({}, '', '/next?b=1')"))
        visitor.page.goto("about:blank")
    website.wait_for(2, timed_pages=2)
    assert website.pages == {"/about": (1, 1), "/next": (1, 1)}
    assert website.visitors_and_views == (1, 2)
    assert wire.paths == ["/about", "/next"]
    assert [urlsplit(hit["u"]).query for hit in wire.of("load")] == ["a=1", "b=1"]


def test_navigation_without_loading_is_a_view(
    website: Statistics, daemon: Daemon, visitor: Visitor
) -> None:
    wire = watched(visitor.context)

    def move(how: str) -> None:
        visitor.visit(lambda: visitor.page.evaluate(f"void {how}"))

    with served(tag(daemon.base)) as site:
        home = site.address(website.hostname)
        visitor.visit(lambda: visitor.page.goto(home, referer="https://news.example/today"))
        move("history.pushState({}, '', '/one')")
        move("history.replaceState({}, '', new URL('/two', location))")
        move("history.pushState({}, '', 'three')")
        move("history.back()")
        move("history.forward()")
        move("history.go(-2)")
        visitor.page.goto("about:blank")
    website.wait_for(7, timed_pages=4)
    paths = ["/", "/one", "/two", "/three", "/two", "/three", "/"]
    assert wire.paths == paths
    assert website.pages == {"/": (1, 2), "/one": (1, 1), "/two": (1, 2), "/three": (1, 2)}
    assert website.visitors_and_views == (1, 7)
    # Each view comes from the one before it, the first one from elsewhere.
    origin = home.removesuffix("/")
    assert [hit["r"] for hit in wire.of("load")] == [
        "https://news.example/today",
        *(origin + path for path in paths[:-1]),
    ]
    referrers = website.get("referrers", grouped="false")
    assert {row["referrer"]: row["visitors"] for row in referrers} == {
        "news.example/today": 1,
        "": 0,
    }
    assert len({hit["b"] for hit in wire.of("load")}) == 7
    assert visitor.errors == []


def test_the_pages_own_use_of_history_still_works(
    website: Statistics, daemon: Daemon, visitor: Visitor
) -> None:
    with served(tag(daemon.base)) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        visitor.visit(
            lambda: visitor.page.evaluate("history.pushState({kept: [1]}, 'title', '/one')")
        )
        assert visitor.page.evaluate("history.state") == {"kept": [1]}
        assert visitor.page.evaluate("history.length") == 3
        refused = "try { history.pushState({}, '', 'https://example.com/') } catch (e) { e.name }"
        assert visitor.page.evaluate(refused) == "SecurityError"
        visitor.page.goto("about:blank")
    website.wait_for(2, timed_pages=2)
    assert website.pages == {"/": (1, 1), "/one": (1, 1)}


def test_coming_back_to_a_pushed_address(
    website: Statistics, site: Site, someone_in_full_chromium: Make
) -> None:
    visitor = someone_in_full_chromium()
    visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
    visitor.visit(lambda: visitor.page.evaluate("history.pushState({}, '', '/moved')"))
    visitor.page.goto(site.address(website.hostname, "/blank"))
    visitor.visit(lambda: visitor.page.evaluate("void history.back()"))
    visitor.visit(lambda: visitor.page.evaluate("void history.back()"))
    visitor.page.goto("about:blank")
    website.wait_for(4, timed_pages=2)
    assert website.pages == {"/": (1, 2), "/moved": (1, 2)}
    assert website.visitors_and_views == (1, 4)


def test_a_reload_is_a_view(website: Statistics, site: Site, visitor: Visitor) -> None:
    wire = watched(visitor.context)
    visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
    visitor.visit(visitor.page.reload)
    website.wait_for(2, timed_pages=1)
    assert website.pages == {"/": (1, 2)}
    assert [(hit["p"], hit["q"], hit["n"]) for hit in wire.of("load")] == [
        (True, True, 1),
        (False, False, 2),
    ]


def test_several_tabs(website: Statistics, site: Site, visitor: Visitor) -> None:
    wire = watched(visitor.context)
    second = Visitor(visitor.context, visitor.context.new_page(), visitor.errors)
    began = time.monotonic()
    visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
    visitor.hide()
    first_ms = (time.monotonic() - began) * 1000
    second.visit(lambda: second.page.goto(site.address(website.hostname, "/about")))
    time.sleep(first_ms / 1000 + 0.3)
    second.hide()
    second.page.close()
    visitor.page.close()
    website.wait_for(2, timed_pages=2)
    assert website.pages == {"/": (1, 1), "/about": (1, 1)}
    assert website.visitors_and_views == (1, 2)
    assert [hit.get("n") for hit in wire.of("load")] == [1, 2]
    times = {row["path"]: row["duration"] for row in website.get("time")}
    assert 0 < times["/"] <= first_ms < times["/about"]


def test_tabs_opened_at_once(website: Statistics, site: Site, visitor: Visitor) -> None:
    wire = watched(visitor.context)
    visitor.page.goto(site.address(website.hostname, "/blank"))
    visitor.page.evaluate("for (const path of '/123') open(path === '/' ? path : `/${path}`)")
    website.wait_for(4, timed_pages=0)
    assert website.visitors_and_views == (1, 4)
    assert website.pages == dict.fromkeys(("/", "/1", "/2", "/3"), (1, 1))
    assert sorted(hit["n"] for hit in wire.of("load")) == [1, 2, 3, 4]


READY_MADE = """
<script>
    const ready = document.prerendering;
    addEventListener("DOMContentLoaded", () => localStorage.setItem(location.pathname, ready));
    document.addEventListener("prerenderingchange", () => setTimeout(() => {
        medamad("shown");
        setTimeout(() => location = "/blank", 50);
    }));
</script>
"""
BEFORE = """
<script type="speculationrules">
    {"prerender": [{"source": "list", "urls": ["/next", "/never"], "eagerness": "immediate"}]}
</script>
<script>
    const waiting = setInterval(() => {
        if (["/next", "/never"].every(path => localStorage.getItem(path) === "true")) {
            clearInterval(waiting);
            location = "/next";
        }
    }, 50);
</script>
"""


def test_a_prerendered_page_counts_once_it_is_shown(
    website: Statistics, daemon: Daemon, tmp_path: Path
) -> None:
    # Chromium makes no page ready while it is driven, so this one drives itself.
    contents = {"/": BEFORE, "/next": READY_MADE, "/never": READY_MADE}
    with served(tag(daemon.base), contents) as site:
        browser = subprocess.Popen(
            [
                "/usr/bin/chromium",
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--no-first-run",
                "--disable-background-networking",
                f"--user-agent={DESKTOP}",
                f"--user-data-dir={tmp_path}",
                site.address(website.hostname),
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            website.wait_for_values("event", {"shown": 1}, **{"path[eq]": "/next"})
            website.wait_for(2, timed_pages=2)
        finally:
            browser.terminate()
            browser.wait(PATIENCE_S)
    # It may be left before the pings are answered, so it may not count as new.
    assert {path: views for path, (_visitors, views) in website.pages.items()} == {
        "/": 1,
        "/next": 1,
    }
    assert website.visitors_and_views == (1, 2)
    assert website.values("event") == {"shown": 1}


def test_the_time_of_a_prerendered_page_begins_once_it_is_shown(
    website: Statistics, site: Site, visitor: Visitor
) -> None:
    wire = watched(visitor.context)
    visitor.page.add_init_script(
        """Object.defineProperty(document, "prerendering", {value: true, configurable: true});
        Object.defineProperty(document, "hidden", {value: true, configurable: true});"""
    )
    visitor.page.goto(site.address(website.hostname))
    time.sleep(0.4)
    visitor.page.evaluate("history.replaceState({}, '', '/ready')")
    assert (wire.hits, wire.pings) == ([], [])
    shown = time.monotonic()
    visitor.visit(
        lambda: visitor.page.evaluate(
            """() => {
                Object.defineProperty(document, "prerendering", {value: false});
                Object.defineProperty(document, "hidden", {value: false, configurable: true});
                document.dispatchEvent(new Event("prerenderingchange", {bubbles: false}));
                document.dispatchEvent(new Event("visibilitychange", {bubbles: true}));
            }"""
        )
    )
    visitor.page.goto("about:blank")
    left_ms = (time.monotonic() - shown) * 1000
    website.wait_for(1, timed_pages=1)
    (row,) = website.get("time")
    assert row["path"] == "/ready"
    assert 0 < row["duration"] <= left_ms
    assert visitor.errors == []
