"""Hostile text in hits is shown as text."""

from collections.abc import Callable
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect
from support.browser.dashboard import Dashboard
from support.browser.known_website import Visit, send
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

HOSTNAME = "hostile.example"
PAGE = f"websites/{HOSTNAME}?period=7d"

MARKUP = "<img src=x onerror=document.title='broken'>"
PATH = f"/{MARKUP}"
REFERRER = f'blog.example/"><script>document.title="broken"</script>{MARKUP}'
SOURCE = f"</bdi></button>{MARKUP}"
NAME = f"<b>{MARKUP}"
VALUE = f"javascript:document.title='broken'//{MARKUP}"
ODD = "/100%/a,b&path[eq]=c#d+e?f=g;h  i"
FILTERS = {
    "path": (PATH, "Page"),
    "utm_source": (SOURCE, "UTM source"),
    "referrer": (REFERRER, "Referrer"),
    "prop_name": (NAME, "Property"),
    "prop_value": (VALUE, "Property value"),
}
UNSAFE = ("javascript:document.title='broken'", "data:text/html,broken")


@pytest.fixture(scope="session")
def hostile(owner: Client) -> Client:
    owner.add_website(HOSTNAME)
    visits = [
        Visit(
            f"{quote(PATH)}?utm_source={quote(SOURCE)}",
            f"https://{quote(REFERRER)}",
            properties={NAME: VALUE, "__proto__": "constructor"},
        ),
        Visit(quote(ODD)),
        *(Visit("/", referrer) for referrer in UNSAFE),
    ]
    for visit in visits:
        send(owner, HOSTNAME, visit)
    return owner


def row(page: Page, panel: str, text: str) -> None:
    region = page.get_by_role("region", name=panel, exact=True)
    expect(region.locator("tbody th button bdi").filter(has_text=text).first).to_have_text(text)


def assert_nothing_ran(page: Page) -> None:
    assert page.title() != "broken"
    assert page.locator("main img, main script, main b, dialog img").count() == 0
    addresses = page.locator("main a").evaluate_all("links => links.map(link => link.href)")
    assert all(address.startswith(("https://", "http://localhost:")) for address in addresses)


def test_in_panels_and_lists(hostile: Client, dashboard_of: Make) -> None:
    page = dashboard_of(hostile).turn_to(PAGE)
    row(page, "Pages", PATH)
    referrers = page.get_by_role("region", name="Referrers", exact=True)
    expect(referrers.locator("tbody tr")).to_have_count(2)
    referrers.get_by_role("button", name="Show URLs of blog.example").click()
    row(page, "Referrers", REFERRER)
    assert_nothing_ran(page)
    referrers.get_by_role("tab", name="Campaigns").click()
    row(page, "Referrers", SOURCE)
    properties = page.get_by_role("region", name="Properties", exact=True)
    row(page, "Properties", "__proto__")
    properties.get_by_role("button", name=NAME).click()
    row(page, "Properties", VALUE)
    assert_nothing_ran(page)
    properties.get_by_role("button", name="Show all").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("heading")).to_contain_text(NAME)
    expect(dialog.locator("tbody th bdi")).to_have_text(VALUE)
    assert_nothing_ran(page)


def test_in_filters(hostile: Client, dashboard_of: Make) -> None:
    query = "&".join(f"{field}[eq]={quote(value)}" for field, (value, _) in FILTERS.items())
    page = dashboard_of(hostile).turn_to(f"{PAGE}&{query}")
    expect(page.locator(".tile-figure").first).to_have_text("1")
    chips = page.get_by_role("region", name="Filters").get_by_role("listitem")
    words = [f"{label} is {value}" for value, label in FILTERS.values()]
    expect(chips.locator("button:first-child")).to_have_text(words)
    page.locator(".rows").first.wait_for()
    assert_nothing_ran(page)
    chips.first.get_by_role("button").first.click()
    editor = page.get_by_role("dialog", name="Edit filter")
    expect(editor.get_by_role("combobox", name="Value", exact=True)).to_have_value(PATH)
    editor.get_by_role("listbox").wait_for()
    assert_nothing_ran(page)
    page.keyboard.press("Escape")


def test_a_row_with_special_characters_is_a_filter(hostile: Client, dashboard_of: Make) -> None:
    page = dashboard_of(hostile).turn_to(PAGE)
    pages = page.get_by_role("region", name="Pages", exact=True)
    pages.get_by_role("button", name=ODD, exact=True).click()
    expect(pages.locator("tbody tr")).to_have_count(1)
    expect(page.locator(".tile-figure").first).to_have_text("1")
    expect(pages.locator("tbody th button")).to_have_text(ODD)
    assert pages.locator("a").get_attribute("href") == f"https://{HOSTNAME}{quote(ODD, '/,&=+;[]')}"
