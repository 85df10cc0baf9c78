"""International hostnames."""

from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.browser.known_website import Visit, send
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def encoded(client: Client, hostname: str) -> str:
    """Add a website; return its hostname in the API."""
    answer = client.request("POST", "/api/websites", {"hostname": hostname})
    assert answer.status == 201, answer
    name: str = answer.json["hostname"]
    assert "xn--" in name
    return name


def test_hostnames_are_shown_in_unicode(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    hostname = encoded(owner, "bücher.example")
    page = dashboard_of(owner).open()
    expect(page.get_by_role("heading", level=2)).to_have_text("bücher.example")
    page.get_by_role("link", name="bücher.example").click()
    expect(page).to_have_title("bücher.example · medamad")
    expect(page.get_by_role("heading", level=1)).to_contain_text("bücher.example")
    assert page.url.endswith(f"/websites/{hostname}")
    page.locator(".overview").get_by_role("link", name="Script and setup").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up bücher.example")
    visit = page.get_by_role("link", name="bücher.example")
    expect(visit).to_have_attribute("href", f"https://{hostname}/")


def test_referrers_and_paths_are_read_as_they_are_written(
    owner: Client, dashboard_of: Make
) -> None:
    hostname = "letters.example"
    owner.add_website(hostname)
    send(owner, hostname, Visit(quote("/שלום/עולם"), "https://xn--bcher-kva.example/xn--a"))
    page = dashboard_of(owner).open(f"websites/{hostname}?period=7d")
    referrer = page.get_by_role("button", name="bücher.example", exact=True)
    expect(referrer).to_have_attribute("title", "bücher.example (xn--bcher-kva.example)")
    # The slash that a path begins with stands at its left.
    path = page.get_by_role("button", name="/שלום/עולם")
    first_and_last = """it => [0, 1].map((place) => {
        const range = document.createRange();
        range.setStart(it.querySelector("bdi").firstChild, place);
        range.setEnd(it.querySelector("bdi").firstChild, place + 1);
        return range.getBoundingClientRect().x;
    })"""
    slash, letter = path.evaluate(first_and_last)
    assert slash < letter
    page.get_by_role("button", name="Show URLs of bücher.example").click()
    expect(page.get_by_role("button", name="bücher.example/xn--a", exact=True)).to_be_visible()
    page.get_by_role("button", name="bücher.example/xn--a", exact=True).click()
    page.wait_for_url("**referrer[eq]=xn--bcher-kva.example/xn--a")
    expect(page.locator(".chip-words")).to_contain_text("bücher.example/xn--a")
