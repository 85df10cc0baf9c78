"""What a browser keeps, and sends, where visitors are not counted; see test_remembered_days.py."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from attrs import frozen
from playwright.sync_api import Page, expect
from support.browser.dashboard import PHONE_WIDTH, Dashboard
from support.browser.engines import Browsing, Profile, Proxy, browsing, noting_proxy
from support.browser.example_site import Site, served
from support.browser.waiting import comes
from support.daemon import Client, running

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

HOSTNAME: Final = "localhost"
NONE: Final = '[events]\nunique = "none"\n'
TAG: Final = '<script defer src="{base}/script.js"></script>'
PIXEL: Final = '<img src="{base}/api/event/pixel.gif" referrerpolicy="unsafe-url" alt="">'
MEDAMAS: Final = """<script>
const base = "{base}/api/event/";
const page = encodeURIComponent(location.host + location.pathname);
Promise.all(["ping?root", "ping?u=" + page].map(query => fetch(base + query)))
    .then(answers => Promise.all(answers.map(answer => answer.text())))
    .then(([today, here]) => navigator.sendBeacon(base + "hit", JSON.stringify(
        {{e: "load", b: "" + Math.random(), u: location.href,
            p: today === "0", q: here === "0"}})));
</script>"""


@frozen
class Visits:
    """A browser that visits a website of a daemon."""

    proxy: Proxy
    owner: Client
    browser: Browsing
    site: Site

    def visit(self, tag: str, path: str = "/") -> None:
        """Open a page with a tag, until its view has been counted."""
        self.site.tag = tag.format(base=self.proxy.base) + self.proxy.follow
        before = self.figures["pageviews"]
        self.browser.open(self.site.address(HOSTNAME, path))
        comes(lambda: self.figures["pageviews"], before + 1)

    @property
    def figures(self) -> dict[str, float]:
        """What is counted."""
        summary = self.owner.get(f"/api/website/{HOSTNAME}/summary", visits="true")
        current: dict[str, float] = summary["current"]
        return current

    @property
    def kept(self) -> set[str]:
        """The paths of the daemon that are in Chromium's cache on disk.

        It ends for that.
        """
        self.browser.end()
        # An entry begins with its key: the website by which the cache is divided, and the address.
        base = rb"_dk_\S+ \S+ " + re.escape(self.proxy.base.encode())
        return {
            path.decode()
            for file in (self.browser.profile.folder / "profile").rglob("Cache_Data/*")
            if file.is_file()
            for path in re.findall(base + rb"(/[\w./]+)", file.read_bytes())
            if path != b"/next"
        }


@contextmanager
def visits(folder: Path, configuration: str) -> Iterator[Visits]:
    with (
        running(folder, configuration=configuration) as daemon,
        noting_proxy(daemon.base) as proxy,
        served("") as site,
        browsing(Profile("chromium", folder), proxy) as browser,
    ):
        owner = daemon.client()
        owner.add_website(HOSTNAME)
        yield Visits(proxy, owner, browser, site)


def test_the_browser_keeps_the_script_alone(tmp_path: Path) -> None:
    with visits(tmp_path, NONE) as found:
        found.visit(TAG)
        found.visit(TAG, "/about")
        assert found.kept == {"/script.js"}
        profile = tmp_path / "profile"
        for file in (*profile.rglob("leveldb/*"), *profile.rglob("Cookies")):
            assert b"medamad" not in file.read_bytes().lower(), file


def test_otherwise_it_keeps_dates_too(tmp_path: Path) -> None:
    """So the test above would see them."""
    with visits(tmp_path, "") as found:
        found.visit(TAG)
        assert found.kept == {"/script.js", "/api/event/ping"}


def test_medamas_tracker_and_the_pixel_get_no_date(tmp_path: Path) -> None:
    with visits(tmp_path, NONE) as found:
        for tag in (MEDAMAS, MEDAMAS, PIXEL, PIXEL):
            found.visit(tag)
        assert [(ping.since, ping.tag) for ping in found.proxy.pings] == [(None, None)] * 4
        assert found.kept == set()
        figures = found.figures
        assert (figures["visitors"], figures["pageviews"], figures["visits"]) == (0, 4, 1)


def test_the_dashboard_and_a_share_link_show_visits(dashboard_of: Make, tmp_path: Path) -> None:
    with visits(tmp_path, NONE) as found:
        found.visit(TAG)
        found.visit(TAG, "/about")
        dashboard = dashboard_of(found.owner)
        page = dashboard.open()
        expect(page.get_by_role("listitem")).to_contain_text("1 visit in the last 24 hours")
        page = dashboard.open(f"websites/{HOSTNAME}?period=today")
        _shows_visits(page)
        assert not dashboard.is_wider_than_the_window()
        details = {"name": "club"}
        made = found.owner.request("POST", f"/api/websites/{HOSTNAME}/shares", details)
        reader = dashboard_of(Client(found.owner.port), fresh=True)
        reader.page.goto(f"{reader.base}/share/{made.json['id']}?period=today")
        _shows_visits(reader.page)
        reader.page.set_viewport_size({"width": PHONE_WIDTH, "height": 800})
        assert not reader.is_wider_than_the_window()


def _shows_visits(page: Page) -> None:
    """Check that a website's page begins with the only visit, and has no figure of visitors."""
    tiles = page.locator(".tile")
    expect(tiles).to_have_count(5)
    expect(tiles.first).to_contain_text("Visits1")
    expect(page.get_by_role("group", name="Chart: Visits,")).to_be_visible()
    pages = page.get_by_role("region", name="Pages").locator("tbody tr")
    expect(pages).to_have_count(2)
    expect(pages.first).to_contain_text("1")
    for words in ("Visitors", "Left within"):
        expect(page.get_by_text(words)).to_have_count(0)
