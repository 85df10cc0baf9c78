"""Links to other websites, as the script counts them."""

from collections.abc import Callable

import pytest
from support.browser.example_site import served
from support.browser.tracker_traffic import tag, watched
from support.browser.visitors import Statistics, Visitor
from support.daemon import Daemon

pytestmark = pytest.mark.browser

LINKS = """
<a href="http://other.localhost:{port}/blank?secret=1#part">Other</a>
<a href="http://other.localhost:{port}/blank" target="_blank"><b>Window</b></a>
<a href="http://other.localhost:{port}/blank"><span>Child</span></a>
<a href="mailto:ada@example.com" onclick="return false">Mail</a>
<a href="javascript:void 0">Nothing</a>
<a name="here">Anchor</a>
<a href="/blank">Inside</a>
<a href="#here">Fragment</a>
<svg width="50" height="20"><a href="/blank"><text y="15">Drawn</text></a></svg>
"""


def press(visitor: Visitor, name: str) -> None:
    visitor.page.get_by_text(name, exact=True).click()


def test_links_to_other_websites(
    website: Statistics, daemon: Daemon, someone_in_full_chromium: Callable[..., Visitor]
) -> None:
    visitor = someone_in_full_chromium()
    wire = watched(visitor.context)
    contents: dict[str, str] = {}
    with served(tag(daemon.base, "outbound-links"), contents) as site:
        contents["/"] = LINKS.format(port=site.server_port)
        home = site.address(website.hostname)
        followed = f"other.localhost:{site.server_port}/blank"
        visitor.visit(lambda: visitor.page.goto(home))
        for name in ("Mail", "Nothing", "Anchor", "Fragment"):
            press(visitor, name)
        with visitor.context.expect_page():
            press(visitor, "Window")
        with visitor.context.expect_page():
            visitor.page.get_by_text("Other").click(button="middle")
        press(visitor, "Inside")
        visitor.page.wait_for_url("**/blank")
        visitor.visit(lambda: visitor.page.goto(home))
        visitor.page.get_by_text("Child").focus()
        press(visitor, "Child")
        visitor.page.wait_for_url("http://other.localhost*/**")
    website.wait_for_values("outbound", {followed: 3})
    assert wire.properties == [{"outbound": followed}] * 3
    assert website.values("outbound", **{"path[eq]": "/"}) == {followed: 3}
    assert website.visitors_and_views == (1, 2)
    assert visitor.errors == []
