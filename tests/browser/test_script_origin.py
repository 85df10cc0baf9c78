"""Where events go if the tag does not say."""

from collections.abc import Callable

import pytest
from support.browser.example_site import served
from support.browser.tracker_traffic import watched
from support.browser.visitors import Statistics, Visitor
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]


@pytest.mark.parametrize("name", ["default", "not-found", "click-events.outbound-links"])
def test_events_go_to_the_scripts_origin(
    name: str, daemon: Daemon, owner: Client, someone: Make
) -> None:
    website = Statistics(owner, f"{name.replace('.', '-')}.localhost")
    owner.add_website(website.hostname)
    visitor = someone()
    wire = watched(visitor.context)
    with served(f'<script defer src="{daemon.base}/scripts/{name}.js"></script>') as site:
        visitor.visit(lambda: visitor.page.goto(site.address(website.hostname)))
        visitor.page.goto("about:blank")
    website.wait_for(1, timed_pages=1)
    assert wire.addresses == {f"{daemon.base}/api/event/{each}" for each in ("ping", "hit")}


def test_an_empty_address_is_ignored(website: Statistics, daemon: Daemon, someone: Make) -> None:
    visitor = someone()
    with served(f'<script defer src="{daemon.base}/script.js" data-api=""></script>') as site:
        visitor.page.goto(site.address(website.hostname), wait_until="networkidle")
        visitor.page.goto("about:blank")
    assert visitor.errors == []
    website.wait_for(1, timed_pages=1)
