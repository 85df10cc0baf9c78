"""The optional features of the script."""

from collections.abc import Callable

import pytest
from support.browser.example_site import served
from support.browser.tracker_traffic import tag, watched
from support.browser.visitors import Statistics, Visitor
from support.daemon import Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]

BUTTONS = """
<button data-m:click="plan=pro; place=top">Buy</button>
<button data-m:click="sum=a=b&amp;c=d"><b><i>Deep</i></b></button>
<button data-m:click=" ; plan = free ;; =lost ; ">Try</button>
<button data-m:click="">Empty</button>
<button>Plain</button>
<a href="#here" data-m:click="link=there">Link</a>
"""


@pytest.fixture
def visitor(someone: Make) -> Visitor:
    return someone()


def press(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_text(name, exact=True).click()


def test_clicks(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    wire = watched(visitor.context)
    with served(tag(daemon.base, "click-events"), {"/buy": BUTTONS}) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/buy")))
        for name in ("Buy", "Deep", "Try", "Empty", "Plain", "Link", "Buy"):
            press(visitor, name)
        visitor.page.get_by_text("Buy", exact=True).focus()
        visitor.page.keyboard.press("Enter")
        visitor.page.get_by_text("Plain").click(button="right")
        visitor.page.get_by_text("Buy", exact=True).click(button="right")
    website.wait_for_values("plan", {"pro": 3, "free": 1})
    website.wait_for_values("place", {"top": 3})
    website.wait_for_values("sum", {"a=b&c=d": 1})
    website.wait_for_values("link", {"there": 1})
    both = {"plan": "pro", "place": "top"}
    deep, free, link = {"sum": "a=b&c=d"}, {"plan": "free"}, {"link": "there"}
    properties = [
        {name.strip(): value.strip() for name, value in hit.items()} for hit in wire.properties
    ]
    # An empty attribute is rejected.
    assert properties == [both, deep, free | {"": "lost"}, {}, link, both, both]
    # An event has what its view has.
    assert website.values("plan", **{"path[eq]": "/buy", "browser[eq]": "Chrome"}) == {
        "pro": 3,
        "free": 1,
    }
    assert website.visitors_and_views == (1, 1)
    assert visitor.errors == []


def test_clicks_on_elements_added_later(
    website: Statistics, daemon: Daemon, visitor: Visitor
) -> None:
    with served(tag(daemon.base, "click-events")) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        visitor.page.evaluate(
            """() => {
                const added = document.createElement("p");
                added.setAttribute("data-m:click", "name=added");
                added.innerHTML = "<span>Added</span>";
                document.body.append(added);
                // Nothing that the page does with the click keeps it from being counted.
                added.onclick = event => event.stopPropagation();
            }"""
        )
        press(visitor, "Added")
        visitor.page.evaluate("document.querySelector('p').setAttribute('data-m:click', 'name=2')")
        press(visitor, "Added")
    website.wait_for_values("name", {"added": 1, "2": 1})


def test_clicks_in_a_shadow_tree(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    shadow = """
    <div data-m:click="name=host"><template shadowrootmode="open"><b>Shadow</b></template></div>"""
    with served(tag(daemon.base, "click-events"), {"/": shadow}) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        press(visitor, "Shadow")
        visitor.page.evaluate(
            "[window, document].map(target => target.dispatchEvent(new Event('click')))"
        )
    website.wait_for_values("name", {"host": 1})
    assert visitor.errors == []


def test_pages_with_properties(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    contents = {
        "/": '<p data-m:load="author=ada; kind=text"></p><p data-m:load="formula=a=b"></p>',
        "/about": '<p data-m:load="author=ben"></p>',
    }
    wire = watched(visitor.context)
    with served(tag(daemon.base, "page-events"), contents) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        visitor.visit(lambda: visitor.page.get_by_text("About").click())
        visitor.page.evaluate("document.querySelector('p').remove()")
        visitor.visit(lambda: visitor.page.evaluate("history.pushState(null, '', '/other')"))
    website.wait_for_values("author", {"ada": 1, "ben": 1})
    website.wait_for_values("kind", {"text": 1})
    assert [hit.get("d", {}) for hit in wire.of("load")] == [
        {"author": "ada", " kind": "text", "formula": "a=b"},
        {"author": "ben"},
        {},
    ]
    assert wire.properties == []
    assert website.values("formula") == {"a=b": 1}
    assert website.values("author", **{"path[eq]": "/about"}) == {"ben": 1}
    assert website.visitors_and_views == (1, 3)


FILES = """
<a href="/files/report.pdf?version=2">Report</a>
<a href="/files/ARCHIVE.TAR.GZ" onclick="return false">Archive</a>
<a href="http://other.localhost:{port}/film.mp4" onclick="return false">Film</a>
<a href="http://other.localhost:{port}/page.html" onclick="return false">Page</a>
<a href="/files/pdf" onclick="return false">Folder</a>
"""


def test_file_downloads(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    wire = watched(visitor.context)
    contents: dict[str, str] = {}
    with served(tag(daemon.base, "outbound-links", "file-downloads"), contents) as site:
        contents["/"] = FILES.format(port=site.server_port)
        home = site.address(website.hostname)
        visitor.visit(lambda: visitor.page.goto(home))
        for name in ("Archive", "Film", "Page", "Folder", "Report"):
            press(visitor, name)
        visitor.page.wait_for_url("**/report.pdf*")
        own, other = (
            f"{host}:{site.server_port}" for host in (website.hostname, "other.localhost")
        )
    files = [f"{own}/files/ARCHIVE.TAR.GZ", f"{other}/film.mp4", f"{own}/files/report.pdf"]
    for file in files:
        website.wait_for_values("download", {file: 1}, **{"prop_value[eq]": file, "path[eq]": "/"})
    archive, film, report = ({"download": file} for file in files)
    left = [{"outbound": f"{other}/{file}"} for file in ("film.mp4", "page.html")]
    assert wire.properties == [archive, film, *left, report]


def test_pages_that_were_not_found(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    with served(tag(daemon.base, "not-found")) as site:
        lost = site.address(website.hostname, "/missing/page?why")
        visitor.visit(lambda: visitor.page.goto(lost))
        visitor.visit(lambda: visitor.page.evaluate("history.pushState(null, '', '/app')"))
        visitor.visit(lambda: visitor.page.get_by_text("About").click())
        visitor.visit(lambda: visitor.page.goto(lost))
    website.wait_for_values("404", {"/missing/page": 2})
    assert website.values("404", **{"path[eq]": "/missing/page"}) == {"/missing/page": 2}
    assert website.pages == {"/missing/page": (1, 2), "/app": (1, 1), "/about": (1, 1)}


def test_fragments_as_pages(website: Statistics, daemon: Daemon, visitor: Visitor) -> None:
    content = '<a href="#/cart">Cart</a> <a href="#/über uns">Us</a>'
    wire = watched(visitor.context)
    with served(tag(daemon.base, "hash-routing"), {"/app": content}) as site:
        address = site.address(website.hostname, "/app")
        visitor.visit(lambda: visitor.page.goto(f"{address}?utm_source=letter"))
        visitor.visit(lambda: press(visitor, "Cart"))
        press(visitor, "Cart")
        visitor.visit(lambda: press(visitor, "Us"))
        visitor.visit(visitor.page.go_back)
        visitor.visit(lambda: visitor.page.evaluate("location.hash = '/one'"))
        visitor.visit(lambda: visitor.page.evaluate("history.pushState(null, '', '#/two')"))
        visitor.visit(lambda: visitor.page.goto(f"{address}#/cart"))
        visitor.page.goto("about:blank")
    website.wait_for(7, timed_pages=5)
    assert wire.paths == [
        "/app",
        "/app%23/cart",
        "/app%23/%C3%BCber%20uns",
        "/app%23/cart",
        "/app%23/one",
        "/app%23/two",
        "/app%23/cart",
    ]
    assert website.pages == {
        "/app": (1, 1),
        "/app#/cart": (1, 3),
        "/app#/über uns": (1, 1),
        "/app#/one": (1, 1),
        "/app#/two": (1, 1),
    }
    assert website.visitors_and_views == (1, 7)
    assert {row["path"] for row in website.get("time")} == set(website.pages)


def test_the_chosen_features_are_in_the_script(
    website: Statistics, new_daemon: Daemon, visitor: Visitor
) -> None:
    owner = new_daemon.client()
    owner.add_website(website.hostname)
    website = Statistics(owner, website.hostname)
    script = f'<script defer src="{new_daemon.base}/script.js"></script>'
    choice = {"settings": {"script_type": ["click-events", "not-found"]}}
    assert owner.request("PATCH", "/api/user", choice).status == 200
    with served(script, {"/missing": BUTTONS}) as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname, "/missing")))
        press(visitor, "Buy")
    website.wait_for_values("place", {"top": 1})
    website.wait_for_values("404", {"/missing": 1})
