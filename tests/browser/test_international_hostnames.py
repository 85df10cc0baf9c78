"""International hostnames."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

CYRILLIC_A = "\N{CYRILLIC SMALL LETTER A}"


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


def test_a_website_is_renamed_and_deleted_by_its_unicode_name(
    new_daemon: Daemon, dashboard_of: Make
) -> None:
    owner = new_daemon.client()
    encoded(owner, "bücher.example")
    page = dashboard_of(owner).open("settings/websites")
    page.get_by_role("button", name="Rename bücher.example").click()
    field = page.get_by_role("dialog").get_by_label("Hostname")
    expect(field).to_have_value("bücher.example")
    field.fill("Bäume.example")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("bücher.example is now bäume.example.")
    page.get_by_role("button", name="Delete bäume.example").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Hostname").fill("bäume.example")
    dialog.get_by_role("button", name="Delete").click()
    expect(dialog).to_have_count(0)
    assert owner.get("/api/websites") == []


@pytest.mark.parametrize(
    ("hostname", "is_shown"),
    [
        ("παράδειγμα.example", True),
        ("日本語テストabc.example", True),
        ("한국.example", True),
        (f"{CYRILLIC_A}pple.example", False),
        (f"bücher.{CYRILLIC_A}pple.example", False),
    ],
)
def test_misleading_letters_are_shown_as_punycode(
    hostname: str, is_shown: bool, new_daemon: Daemon, dashboard_of: Make
) -> None:
    owner = new_daemon.client()
    name = encoded(owner, hostname)
    encoded(owner, "zürich.example")
    page = dashboard_of(owner).open()
    headings = page.get_by_role("heading", level=2)
    # This one tells that names are read by now.
    expect(headings.filter(has_text="zürich.example")).to_be_visible()
    shown = hostname if is_shown else name.replace("xn--bcher-kva", "bücher")
    expect(headings.filter(has_text=shown)).to_be_visible()
