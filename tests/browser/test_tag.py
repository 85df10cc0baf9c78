"""The script tag: its attributes and names."""

from collections.abc import Callable
from pathlib import Path

import pytest
from support.browser.example_site import Site, served
from support.browser.tracker_traffic import tag, watched
from support.browser.visitors import Statistics, Visitor
from support.daemon import Client, Daemon, running

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]


@pytest.fixture
def visitor(someone: Make) -> Visitor:
    return someone()


INSERTED = """<script>
    const script = document.createElement("script");
    script.src = "{base}/script.js";
    {more}
    document.head.append(script);
</script>"""
WAYS = {
    "at-once": '<script src="{base}/script.js"></script>',
    "async": '<script async src="{base}/script.js"></script>',
    "inserted": INSERTED.replace("{more}", ""),
    "inserted-in-order": INSERTED.replace("{more}", "script.async = false;"),
    "inserted-with-address": INSERTED.replace(
        "{more}", 'script.dataset.api = "127.0.0.1:{port}/api";'
    ),
    "scheme-of-the-page": '<script defer src="//127.0.0.1:{port}/script.js"></script>',
    "module": '<script type="module" src="{base}/script.js"></script>',
    "module-among-others": """<script type="module">window.own = 1</script>
        <script type="module" src="data:text/javascript," data-api="/elsewhere"></script>
        <script type="module" src="{base}/scripts/outbound-links.js"></script>""",
    "module-with-address": """<script type="module" src="//127.0.0.1:{port}/script.js?version=1"
        data-api="http://127.0.0.1:{port}/api"></script>""",
    "inserted-module": INSERTED.replace("{more}", 'script.type = "module";'),
    "twice": '<script defer src="{base}/script.js"></script>' * 2,
    "twice-with-other-features": """<script defer src="{base}/script.js"></script>
        <script type="module" src="{base}/scripts/outbound-links.js"></script>""",
    "query": '<script defer src="{base}/script.js?version=1#part"></script>',
}


@pytest.mark.parametrize("way", WAYS)
def test_supported_attributes(way: str, daemon: Daemon, owner: Client, visitor: Visitor) -> None:
    website = Statistics(owner, f"carried-{way}.localhost")
    owner.add_website(website.hostname)
    wire = watched(visitor.context)
    script = WAYS[way].replace("{base}", daemon.base).replace("{port}", str(daemon.port))
    with served(script) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        visitor.visit(lambda: visitor.page.evaluate("history.pushState({}, '', '/two')"))
        visitor.page.evaluate("medamad('signup')")
        visitor.page.goto("about:blank")
    website.wait_for(2, timed_pages=2)
    website.wait_for_values("event", {"signup": 1})
    assert website.pages == {"/": (1, 1), "/two": (1, 1)}
    assert wire.addresses == {f"{daemon.base}/api/event/{each}" for each in ("ping", "hit")}
    assert visitor.errors == []


def test_a_page_with_a_base_element(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    contents: dict[str, str] = {}
    features = tag(daemon.base, "outbound-links")
    script = f'<script defer src="{daemon.base}/script.js"></script>'
    with served(f'<base href="/deep/er/">{script}') as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/one")))
        visitor.visit(lambda: visitor.page.evaluate("history.pushState({}, '', 'two')"))
        visitor.page.goto("about:blank")
    with served(features, contents) as site:
        contents["/three"] = (
            f'<base href="http://other.localhost:{site.server_port}/deep/"><a href="x">Link</a>'
        )
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/three")))
        visitor.page.get_by_text("Link").click()
    website.wait_for_values("outbound", {f"other.localhost:{site.server_port}/deep/x": 1})
    assert website.pages == {"/one": (1, 1), "/deep/er/two": (1, 1), "/three": (1, 1)}
    assert visitor.errors == []


def test_a_page_in_a_frame(
    website: Statistics, owner: Client, daemon: Daemon, visitor: Visitor
) -> None:
    guest = Statistics(owner, f"guest-{website.hostname}")
    owner.add_website(guest.hostname)
    contents: dict[str, str] = {}
    with served(tag(daemon.base), contents) as site:
        embedded = (site.address(website.hostname, "/own"), site.address(guest.hostname, "/widget"))
        contents["/"] = "".join(f'<iframe src="{address}"></iframe>' for address in embedded)
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        website.wait_for(2, timed_pages=0)
        guest.wait_for(1, timed_pages=0)
        visitor.page.goto("about:blank")
    website.wait_for(2, timed_pages=2)
    guest.wait_for(1, timed_pages=1)
    assert website.pages == {"/": (1, 1), "/own": (1, 1)}
    assert website.visitors_and_views == (1, 2)
    assert guest.pages == {"/widget": (1, 1)}
    referrers = guest.get("referrers", grouped="false")
    assert [row["referrer"] for row in referrers] == [website.hostname]
    assert visitor.errors == []


def test_other_names(website: Statistics, tmp_path: Path, visitor: Visitor) -> None:
    names = '[server]\nscript_name = "lib.js"\nevent_name = "pulse"\n'
    wire = watched(visitor.context)
    with running(tmp_path, configuration=names) as renamed:
        owner = renamed.client()
        owner.add_website(website.hostname)
        website = Statistics(owner, website.hostname)
        base = renamed.base
        forms = (
            f'<script defer src="{base}/lib.js"></script>',
            f'<script defer src="{base}/lib.js" data-api="127.0.0.1:{renamed.port}/api/"></script>',
            f'<script defer src="{base}/lib.js" data-api="127.0.0.1:{renamed.port}/api"></script>',
        )
        for number, script in enumerate(forms, 1):
            with served(script) as site:
                visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
                visitor.page.evaluate("medamad('named')")
                visitor.page.goto("about:blank")
            website.wait_for(number, timed_pages=1)
            website.wait_for_values("event", {"named": number})
        assert {address.replace("/api//", "/api/") for address in wire.addresses} == {
            f"{base}/api/pulse/{each}" for each in ("ping", "hit")
        }


def test_the_requests(website: Statistics, site: Site, someone: Make) -> None:
    visitor = someone(
        viewport={"width": 777, "height": 500}, timezone_id="Asia/Tokyo", locale="ja-JP"
    )
    wire = watched(visitor.context)
    host = f"{website.hostname}:{site.server_port}"
    for path in ("/", "/about", "/", "/about?b=1"):
        visitor.visit(lambda path=path: visitor.page.goto(site.address(website.hostname, path)))  # type: ignore[misc]
    visitor.page.set_viewport_size({"width": 333, "height": 500})
    visitor.visit(lambda: visitor.page.evaluate("history.pushState({}, '', '/five')"))
    website.wait_for(5, timed_pages=2)
    loads = wire.of("load")
    assert [(hit["n"], hit["p"], hit["q"], hit["w"]) for hit in loads] == [
        (1, True, True, 777),
        (2, False, True, 777),
        (3, False, False, 777),
        (4, False, False, 777),
        (5, False, True, 333),
    ]
    assert {hit["t"] for hit in loads} == {"Asia/Tokyo"}
    assert [hit["u"] for hit in loads] == [
        f"http://{host}{path}" for path in ("/", "/about", "/", "/about?b=1", "/five")
    ]
    assert wire.pings == [
        ping for path in ("/", "/about", "/", "/about", "/five") for ping in (host, f"{host}{path}")
    ]
    beacons = {hit["b"] for hit in loads}
    assert len(beacons) == 5
    assert all(0 < len(beacon) <= 64 for beacon in beacons)
    # Nothing is sent that was not announced.
    assert {name for hit in wire.hits for name in hit} <= set("ebuprqtnwm")
    assert [row["country"] for row in website.get("countries")] == ["Japan"]
    assert website.pages == {"/": (1, 2), "/about": (1, 2), "/five": (1, 1)}
    assert website.visitors_and_views == (1, 5)


def test_a_content_security_policy(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    """The page's own policy keeps the script from the daemon: nothing is thrown into the page."""
    policy = {"Content-Security-Policy": f"script-src {daemon.base}; connect-src 'self'"}
    script = f'<script defer src="{daemon.base}/script.js"></script>'
    with served(script, headers=policy) as site:
        visitor.page.goto(site.address(website.hostname), wait_until="networkidle")
        visitor.page.get_by_text("About").click()
        visitor.page.wait_for_url("**/about")
        visitor.page.goto("about:blank")
    assert visitor.errors == []
    assert website.get("summary")["current"]["pageviews"] == 0


def test_a_server_on_another_host(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    """It responds to everything with its own page."""
    wire = watched(visitor.context)
    with served("", headers={"Access-Control-Allow-Origin": "*"}) as wrong:
        address = f"127.0.0.1:{wrong.server_port}/api"
        script = f'<script defer src="{daemon.base}/script.js" data-api="{address}"></script>'
        with served(script) as site:
            visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
            visitor.visit(lambda: visitor.page.evaluate("history.pushState({}, '', '/two')"))
            assert visitor.page.evaluate("location.pathname") == "/two"
            visitor.page.goto("about:blank")
    assert [(hit["p"], hit["q"], hit.get("n")) for hit in wire.of("load")] == [
        (True, True, None),
        (False, False, None),
    ]
    assert visitor.errors == []


def test_both_names_of_a_website(website: Statistics, site: Site, visitor: Visitor) -> None:
    """Under www. the browser knows nothing of the visit without it."""
    visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
    visitor.visit(lambda: visitor.page.goto(site.address(f"www.{website.hostname}", "/about")))
    visitor.page.goto("about:blank")
    website.wait_for(2, timed_pages=2)
    assert website.pages == {"/": (1, 1), "/about": (1, 1)}
