"""What a real browser does on a page with the script, and the resulting statistics."""

import time
from collections.abc import Callable

import pytest
from support.browser.example_site import Site, served
from support.browser.visitors import DESKTOP, PHONE, Statistics, Visitor
from support.daemon import PATIENCE_S, Client, Daemon, free_port

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]


def rows(website: Statistics, what: str, **parameters: str) -> dict[str, int]:
    """Return each row's value with its visitors."""
    given = website.get(what, **parameters)
    (name,) = {next(iter(row)) for row in given}
    return {row[name]: row["visitors"] for row in given}


def test_two_visitors(website: Statistics, site: Site, someone: Make) -> None:
    def at(path: str) -> str:
        return site.address(website.hostname, path)

    ada = someone(timezone_id="Europe/Berlin", locale="de-DE")
    ada.visit(lambda: ada.page.goto(at("/"), referer="https://www.google.com/"))
    time.sleep(0.3)
    ada.visit(lambda: ada.page.goto(at("/")))
    ada.visit(lambda: ada.page.get_by_text("About").click())
    ada.visit(lambda: ada.page.evaluate("history.pushState({}, '', '/app/one?tab=1')"))
    ada.page.evaluate("history.replaceState({}, '', '/app/one?tab=2')")
    ada.visit(lambda: ada.page.evaluate("history.replaceState({}, '', '/app/two')"))
    ada.visit(ada.page.go_back)
    ada.page.goto(at("/blank"))

    ben = someone(timezone_id="Asia/Calcutta", locale="en-GB", user_agent=PHONE)
    campaign = (
        "/about/?utm_source=letter&utm_medium=email&utm_campaign=May&utm_term=t&utm_content=c"
    )
    ben.visit(lambda: ben.page.goto(at(campaign)))
    ben.page.close(run_before_unload=True)

    website.wait_for(6, timed_pages=4, **{"country[eq]": "Germany"})
    website.wait_for(1, timed_pages=1, **{"country[eq]": "India"})
    website.wait_for(1, timed_pages=1, **{"referrer[eq]": "google.com"})
    current = website.get("summary")["current"]
    assert (current["visitors"], current["pageviews"]) == (2, 7)
    # Both left at once, if the machine has let them.
    first_ms = [
        row["duration"]
        for of in ({"referrer[eq]": "google.com"}, {"country[eq]": "India"})
        for row in website.get("time", **of)
    ]
    assert len(first_ms) == 2
    assert current["bounce_percentage"] == sum(ms <= 5_000 for ms in first_ms) / 2
    pages = {row["path"]: (row["visitors"], row["pageviews"]) for row in website.get("pages")}
    assert pages == {"/about": (2, 3), "/": (1, 2), "/app/one": (1, 1), "/app/two": (1, 1)}
    assert rows(website, "referrers") == {"Google": 1, "": 1}
    assert rows(website, "referrers", grouped="false") == {"google.com": 1, "": 1}
    assert rows(website, "sources") == {"": 1, "letter": 1}
    assert rows(website, "mediums") == {"": 1, "email": 1}
    assert rows(website, "campaigns") == {"": 1, "May": 1}
    assert rows(website, "terms") == {"": 1, "t": 1}
    assert rows(website, "contents") == {"": 1, "c": 1}
    assert rows(website, "countries") == {"Germany": 1, "India": 1}
    assert rows(website, "languages") == {"German": 1, "English": 1}
    assert rows(website, "languages", locale="true") == {
        "German (Germany)": 1,
        "British English": 1,
    }
    assert rows(website, "browsers") == {"Chrome": 2}
    assert rows(website, "os") == {"Linux": 1, "Android": 1}
    assert rows(website, "devices") == {"Desktop": 1, "Mobile": 1}
    assert rows(website, "pages", **{"country[eq]": "Germany"}) == {
        "/": 1,
        "/about": 1,
        "/app/one": 1,
        "/app/two": 1,
    }
    assert (ada.errors, ben.errors) == ([], [])


def test_time_is_the_visible_time(website: Statistics, site: Site, someone: Make) -> None:
    visitor = someone()
    began = time.monotonic()
    visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
    time.sleep(0.4)
    visitor.hide()
    hidden = time.monotonic()
    website.wait_for(1, timed_pages=1)
    (first,) = website.get("time")
    assert 400 <= first["duration"] <= (hidden - began) * 1000

    time.sleep(0.5)
    shown = time.monotonic()
    visitor.hide(hidden=False)
    time.sleep(0.3)
    visitor.page.goto("about:blank")
    left = time.monotonic()
    deadline = left + PATIENCE_S
    while website.get("time") == [first] and time.monotonic() < deadline:
        time.sleep(0.05)
    (second,) = website.get("time")
    seen_ms = (hidden - began + left - shown) * 1000
    assert first["duration"] + 300 <= second["duration"] <= seen_ms
    assert website.get("summary")["current"]["pageviews"] == 1


def test_coming_back_from_the_cache_is_a_view(
    website: Statistics, site: Site, someone_in_full_chromium: Make
) -> None:
    visitor = someone_in_full_chromium()
    visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/about")))
    visitor.page.evaluate("window.kept = true")
    visitor.page.goto(site.address(website.hostname, "/blank"))
    visitor.visit(lambda: visitor.page.evaluate("void history.back()"))
    assert visitor.page.evaluate("window.kept"), "Chromium did not keep the page"
    visitor.page.goto(site.address(website.hostname, "/blank"))
    website.wait_for(2, timed_pages=1)
    (row,) = website.get("pages")
    assert (row["path"], row["visitors"], row["pageviews"]) == ("/about", 1, 2)


def test_back_without_a_kept_page_and_a_reload_are_views_of_the_same_visitor(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    contents: dict[str, str] = {}
    tag = f'<script defer src="{daemon.base}/script.js"></script>'
    with served(tag, contents, {"Cache-Control": "no-store"}) as site:
        contents["/"] = f'<a href="{site.address("other.localhost", "/blank")}">Elsewhere</a>'
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        for _ in range(3):
            visitor.page.get_by_text("Elsewhere").click()
            visitor.page.wait_for_url("**/blank")
            visitor.visit(visitor.page.go_back)
        visitor.visit(visitor.page.reload)
        visitor.page.goto("about:blank")
    website.wait_for(5, timed_pages=1)
    assert website.visitors_and_views == (1, 5)


@pytest.mark.parametrize("beacon", ["undefined", "() => false"])
def test_a_browser_that_sends_no_beacons(
    beacon: str, daemon: Daemon, owner: Client, someone: Make
) -> None:
    website = Statistics(owner, f"beacon-{'false' if '>' in beacon else 'missing'}.localhost")
    owner.add_website(website.hostname)
    visitor = someone()
    visitor.page.add_init_script(
        f"Object.defineProperty(navigator, 'sendBeacon', {{value: {beacon}}})"
    )
    with served(f'<script defer src="{daemon.base}/script.js"></script>') as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        visitor.page.evaluate("medamad('signup')")
        visitor.page.goto("about:blank")
    website.wait_for(1, timed_pages=1)
    website.wait_for_values("event", {"signup": 1})
    assert visitor.errors == []


def test_an_unreachable_server_without_beacons_does_no_harm(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    visitor.page.add_init_script("navigator.sendBeacon = () => false")
    api = f"127.0.0.1:{free_port()}/api"
    with served(f'<script defer src="{daemon.base}/script.js" data-api="{api}"></script>') as site:
        with visitor.page.expect_event("requestfailed", lambda request: "/hit" in request.url):
            visitor.page.goto(site.address(website.hostname))
        visitor.page.evaluate("0")
    assert visitor.errors == []


def test_leaving_before_the_response_to_the_ping(
    website: Statistics, site: Site, someone: Make
) -> None:
    visitor = someone()
    visitor.page.route("**/event/ping*", lambda _route: None)
    visitor.page.goto(site.address(website.hostname))
    time.sleep(0.2)
    with visitor.page.expect_request(lambda request: "/event/ping?" in request.url):
        visitor.page.get_by_text("About").click()
    time.sleep(0.2)
    visitor.page.goto("about:blank")
    website.wait_for(2, timed_pages=2)
    assert website.get("summary")["current"]["visitors"] == 1
    assert rows(website, "pages") == {"/": 1, "/about": 0}


def test_an_unreachable_server_does_no_harm(
    website: Statistics, daemon: Daemon, someone: Make
) -> None:
    visitor = someone()
    api = f"127.0.0.1:{free_port()}/api"
    with served(f'<script defer src="{daemon.base}/script.js" data-api="{api}"></script>') as site:
        with visitor.page.expect_event("requestfailed", lambda request: "/ping" in request.url):
            visitor.page.goto(site.address(website.hostname))
        with visitor.page.expect_event("requestfailed", lambda request: "/hit" in request.url):
            visitor.page.evaluate("history.pushState({}, '', '/elsewhere')")
        assert visitor.page.evaluate("location.pathname") == "/elsewhere"
        visitor.page.goto("about:blank")
    assert visitor.errors == []


@pytest.mark.parametrize("form", ["{}/api", "{}/api/", "{}", "{}/", "http://{}/api", "//{}"])
def test_a_tag_may_name_the_server(form: str, daemon: Daemon, owner: Client, someone: Make) -> None:
    hostname = f"tag-{abs(hash(form))}.localhost"
    owner.add_website(hostname)
    api = form.format(f"127.0.0.1:{daemon.port}")
    visitor = someone()
    tag = f'<script defer src="{daemon.base}/script.js" data-api="{api}"></script>'
    with served(tag) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(hostname)))
        visitor.page.goto("about:blank")
    Statistics(owner, hostname).wait_for(1, timed_pages=1)
    assert visitor.errors == []


def test_a_headless_browser_is_recognised(website: Statistics, site: Site, someone: Make) -> None:
    visitor = someone(user_agent=DESKTOP.replace("Chrome/", "HeadlessChrome/"))
    answer = visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
    assert answer.status == 204
    assert answer.header_value("X-Medamad-Ignored") == "bot"
    assert website.get("summary")["current"]["pageviews"] == 0
    assert [(row["reason"], row["hits"]) for row in website.get("ignored")] == [("bot", 1)]


def test_subdomains_count_visitors_separately(
    website: Statistics, owner: Client, site: Site, someone: Make
) -> None:
    sibling = Statistics(owner, f"sibling.{website.hostname}")
    owner.add_website(sibling.hostname)
    visitor = someone()
    for name in (website.hostname, sibling.hostname, website.hostname):
        visitor.visit(lambda name=name: visitor.page.goto(site.address(name)))  # type: ignore[misc]
    for statistics, views in ((website, 2), (sibling, 1)):
        assert rows(statistics, "pages") == {"/": 1}
        assert statistics.get("summary")["current"]["pageviews"] == views
