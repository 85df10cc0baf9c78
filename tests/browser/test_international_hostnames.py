"""International hostnames."""

from collections.abc import Callable, Iterator
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.browser.known_website import Visit, send
from support.daemon import Client, Daemon, running

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

CYRILLIC_A = "\N{CYRILLIC SMALL LETTER A}"

APPLE_IN_CYRILLIC = "\u0430\u0440\u0440\u04cf\u0435.example"


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


IS_SHOWN: Final = {
    "παράδειγμα.example": True,
    "日本語テストabc.example": True,
    "한국.example": True,
    f"{CYRILLIC_A}pple.example": False,
    f"bücher.{CYRILLIC_A}pple.example": False,
    "пример.example": True,
    # Of one script, and yet they look like apple, kaviar and google.
    APPLE_IN_CYRILLIC: False,
    "καυιαρ.example": False,
    "\N{LATIN SMALL LETTER SCRIPT G}oogle.example": False,
}


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Client, dict[str, str]]]:
    """The owner of websites with such names, and the names in the API."""
    with running(tmp_path_factory.mktemp("letters")) as daemon:
        owner = daemon.client()
        names = {hostname: encoded(owner, hostname) for hostname in IS_SHOWN}
        encoded(owner, "zürich.example")
        yield owner, names


@pytest.mark.parametrize("hostname", list(IS_SHOWN))
def test_misleading_letters_are_shown_as_punycode(
    hostname: str, letters: tuple[Client, dict[str, str]], dashboard_of: Make
) -> None:
    owner, names = letters
    page = dashboard_of(owner).turn_to("")
    headings = page.get_by_role("heading", level=2)
    # This one tells that names are read by now.
    expect(headings.filter(has_text="zürich.example")).to_be_visible()
    punycode = names[hostname].replace("xn--bcher-kva", "bücher")
    shown = hostname if IS_SHOWN[hostname] else punycode
    expect(headings.filter(has=page.get_by_text(shown, exact=True))).to_be_visible()


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
