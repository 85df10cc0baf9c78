"""The filters of a website's page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import PHONE_WIDTH, Dashboard
from support.browser.known_website import HOSTNAME, VISITS, Visit, send
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

PAGE = f"websites/{HOSTNAME}?period=7d"

OPERATORS = {
    "is": ("eq", "/about", "3"),
    "is not": ("neq", "/about", "9"),
    "contains": ("contains", "BOUT", "3"),
    "does not contain": ("not_contains", "bout", "9"),
    "starts with": ("starts_with", "/a", "4"),
    "does not start with": ("not_starts_with", "/a", "8"),
    "ends with": ("ends_with", "b", "1"),
    "does not end with": ("not_ends_with", "b", "11"),
    "is one of": ("in", "/about,/", "7"),
    "is not one of": ("not_in", "/about,/", "5"),
}


def chips(page: Page) -> Locator:
    return page.get_by_role("region", name="Filters").get_by_role("listitem")


def visitors(page: Page) -> Locator:
    return page.locator(".tile").first.locator(".tile-figure")


def suggestions(editor: Locator) -> Locator:
    return editor.get_by_role("listbox").get_by_role("option")


def unfiltered(dashboard: Dashboard) -> Page:
    """Return the page without filters; where it is open, remove what a test has left."""
    page = dashboard.page
    if not page.url.startswith(f"{dashboard.base}/dashboard/{PAGE}&path"):
        return dashboard.turn_to(PAGE)
    chips(page).get_by_role("button", name="Remove").click()
    expect(visitors(page)).to_have_text(str(len(VISITS)))
    return page


def open_editor(page: Page) -> Locator:
    page.locator(".rows").first.wait_for()
    page.keyboard.press("f")
    editor = page.get_by_role("dialog", name="Add filter")
    editor.wait_for()
    return editor


@pytest.mark.parametrize("wording", list(OPERATORS))
def test_each_operator(wording: str, known: Client, dashboard_of: Make) -> None:
    operator, value, left = OPERATORS[wording]
    page = unfiltered(dashboard_of(known))
    editor = open_editor(page)
    editor.get_by_role("combobox", name="Condition").select_option(label=wording)
    editor.get_by_role("combobox", name="Value").fill(value)
    editor.get_by_role("button", name="Apply").click()
    expect(visitors(page)).to_have_text(left)
    expect(chips(page)).to_have_count(1)
    expect(chips(page)).to_contain_text(f"Page {wording} {value.replace(',', ' or ')}")
    assert page.url.endswith(f"path[{operator}]={value}")
    # Its opposite keeps all the others.
    excludes = operator == "neq" or operator.startswith("not_")
    inverse = "Include instead" if excludes else "Exclude instead"
    chips(page).get_by_role("button", name=inverse).click()
    expect(visitors(page)).to_have_text(str(len(VISITS) - int(left)))
    # It is read from the URL, too.
    page.go_back()
    expect(visitors(page)).to_have_text(left)
    expect(chips(page)).to_contain_text(f"Page {wording}")


def test_values_are_suggested(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    editor = open_editor(page)
    value = editor.get_by_role("combobox", name="Value")
    expect(value).to_be_focused()
    options = suggestions(editor)
    expect(options.first).to_have_text("/4")
    page.keyboard.type("abo")
    expect(options).to_have_text(["/about3"])
    page.keyboard.press("ArrowDown")
    expect(options.first).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Enter")
    expect(value).to_have_value("/about")
    page.keyboard.press("Enter")
    expect(editor).to_have_count(0)
    page.wait_for_url("**path[eq]=/about")
    # Under this filter the other fields have fewer values.
    editor = open_editor(page)
    editor.get_by_role("combobox", name="Filter by").select_option(label="Referrer")
    expect(suggestions(editor)).to_have_text(["Google2", "blog.example1"])
    editor.get_by_role("combobox", name="Filter by").select_option(label="Country")
    editor.get_by_role("combobox", name="Value").fill("nowhere")
    expect(editor).to_contain_text("No matches in this period")


def test_several_values(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(f"{PAGE}&country[in]=Germany,Singapore")
    expect(visitors(page)).to_have_text("11")
    chips(page).get_by_role("button", name="Country is one of Germany or Singapore").first.click()
    editor = page.get_by_role("dialog", name="Edit filter")
    expect(editor).to_contain_text("Commas separate the values of a list")
    editor.get_by_role("button", name="Remove Germany").click()
    expect(editor.get_by_role("combobox", name="Values")).to_be_focused()
    # What is there already is not suggested; its own filter does not hide the others.
    expect(suggestions(editor)).to_have_text(["Germany10", "United States1"])
    page.keyboard.type("united states,")
    expect(editor.get_by_role("button", name="Remove United States")).to_be_visible()
    page.keyboard.press("Enter")
    expect(visitors(page)).to_have_text("2")
    assert page.url.endswith("country[in]=Singapore,United+States")


def test_values_with_commas(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(f"{PAGE}&path[eq]=/a,b")
    expect(visitors(page)).to_have_text("1")
    chips(page).get_by_role("button", name="Page is /a,b").first.click()
    editor = page.get_by_role("dialog", name="Edit filter")
    expect(suggestions(editor)).to_have_text(["/a,b1"])
    editor.get_by_role("combobox", name="Condition").select_option(label="is one of")
    # Lists are parted by commas: a value that has one cannot be in them, nor is it suggested.
    expect(editor.get_by_role("button", name="Remove /a,b")).to_have_count(0)
    expect(editor.get_by_role("button", name="Apply")).to_be_disabled()
    expect(suggestions(editor)).to_have_count(6)
    expect(suggestions(editor).filter(has_text=",")).to_have_count(0)


def test_operators_are_changed(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(f"{PAGE}&browser[eq]=Firefox")
    expect(visitors(page)).to_have_text("2")
    changes = [
        ("Browser is Firefox", "is not one of", "browser[not_in]=Firefox", "10"),
        ("Browser is not one of Firefox", "starts with", "browser[starts_with]=Firefox", "2"),
        ("Browser starts with Firefox", "is not", "browser[neq]=Firefox", "10"),
    ]
    for words, wording, filtered, left in changes:
        chips(page).get_by_role("button", name=words).first.click()
        editor = page.get_by_role("dialog", name="Edit filter")
        editor.get_by_role("combobox", name="Condition").select_option(label=wording)
        editor.get_by_role("button", name="Apply").click()
        expect(visitors(page)).to_have_text(left)
        assert page.url.endswith(f"?period=7d&{filtered}")


def test_the_url_contains_the_filters(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(f"{PAGE}&country[in]=Germany,Singapore")
    page.get_by_role("button", name="Firefox", exact=True).click()
    chips(page).get_by_role("button", name="Exclude instead: Browser is Firefox").click()
    wording = ["Country is one of Germany or Singapore", "Browser is not Firefox"]
    expect(chips(page).locator(".chip-words")).to_have_text(wording)
    expect(visitors(page)).to_have_text("9")
    address = page.url.partition("/dashboard/")[2]
    other = dashboard_of(known).turn_to(address)
    expect(chips(other).locator(".chip-words")).to_have_text(wording)
    expect(visitors(other)).to_have_text("9")


def test_names_are_translated(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.request("PATCH", "/api/user", {"settings": {"language": "de"}})
    owner.add_website("example.com")
    send(owner, "example.com", Visit("/", language="de-DE"))
    send(owner, "example.com", Visit("/", zone="Asia/Tokyo", language="ja"))
    page = dashboard_of(owner, locale="de-DE").open("websites/example.com?period=7d")
    page.locator(".rows").first.wait_for()
    page.keyboard.press("f")
    editor = page.get_by_role("dialog", name="Filter hinzufügen")
    editor.get_by_role("combobox", name="Filtern nach").select_option(label="Land")
    expect(suggestions(editor)).to_have_text(["Deutschland1", "Japan1"])
    editor.get_by_role("combobox", name="Wert").fill("deutschl")
    expect(suggestions(editor)).to_have_text(["Deutschland1"])
    editor.get_by_role("combobox", name="Wert").fill("deutschland")
    editor.get_by_role("button", name="Anwenden").click()
    page.wait_for_url("**country[eq]=Germany")
    expect(visitors(page)).to_have_text("1")
    expect(page.locator(".chip-words")).to_have_text("Land ist Deutschland")
    page.locator(".chip-words").click()
    editor = page.get_by_role("dialog")
    expect(editor.get_by_role("combobox", name="Wert")).to_have_value("Deutschland")
    # Part of a name is compared with the English one, and a note says so.
    editor.get_by_role("combobox", name="Bedingung").select_option(label="enthält")
    expect(editor).to_contain_text("Wird mit dem englischen Namen verglichen.")


def test_empty_values(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    editor = open_editor(page)
    apply = editor.get_by_role("button", name="Apply")
    expect(apply).to_be_disabled()
    editor.get_by_role("combobox", name="Filter by").select_option(label="Referrer")
    expect(editor).to_contain_text("Leave empty to match views without a value.")
    editor.get_by_role("combobox", name="Condition").select_option(label="contains")
    expect(apply).to_be_disabled()
    editor.get_by_role("combobox", name="Condition").select_option(label="is")
    apply.click()
    expect(chips(page)).to_contain_text("Referrer is Direct / none")
    expect(visitors(page)).to_have_text("7")


def test_properties(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    editor = open_editor(page)
    editor.get_by_role("combobox", name="Filter by").select_option(label="Property")
    expect(suggestions(editor)).to_have_text(["plan4"])
    editor.get_by_role("combobox", name="Filter by").select_option(label="Property value")
    expect(suggestions(editor)).to_have_text(["pro3", "=1+1;=21"])
    suggestions(editor).first.click()
    editor.get_by_role("button", name="Apply").click()
    expect(chips(page)).to_contain_text("Property value is pro")
    expect(visitors(page)).to_have_text("3")


def test_filters_are_inverted_and_removed(known: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(known)
    page = dashboard.turn_to(f"{PAGE}&browser[eq]=Firefox&path[contains]=a")
    expect(visitors(page)).to_have_text("2")
    chips(page).get_by_role("button", name="Exclude instead: Browser is Firefox").click()
    expect(chips(page).first).to_contain_text("Browser is not Firefox")
    page.wait_for_url("**browser[neq]=Firefox&path[contains]=a")
    turned = chips(page).get_by_role("button", name="Include instead: Browser is not")
    expect(turned).to_be_focused()
    page.keyboard.press("Enter")
    expect(chips(page).first).to_contain_text("Browser is Firefox")
    chips(page).get_by_role("button", name="Remove: Browser is Firefox").click()
    expect(chips(page)).to_have_count(1)
    expect(chips(page).get_by_role("button", name="Remove: Page contains a")).to_be_focused()
    page.keyboard.press("Enter")
    expect(chips(page)).to_have_count(0)
    expect(page.get_by_role("button", name="Add filter")).to_be_focused()
    expect(visitors(page)).to_have_text("12")
    page.go_back()
    expect(chips(page)).to_have_count(1)
    page.go_back()
    expect(chips(page)).to_have_count(2)
    page.get_by_role("button", name="Clear all").click()
    expect(chips(page)).to_have_count(0)


def test_lists_of_one_field_are_merged(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(f"{PAGE}&path[in]=/&path[in]=/about,/")
    expect(chips(page)).to_have_count(1)
    expect(chips(page)).to_contain_text("Page is one of / or /about")
    expect(visitors(page)).to_have_text("7")


def test_invalid_filters_are_ignored(known: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(known)
    page = dashboard.turn_to(f"{PAGE}&path[like]=/&nothing[eq]=1&browser=Firefox")
    expect(chips(page)).to_have_count(1)
    expect(chips(page)).to_contain_text("Browser is Firefox")
    expect(visitors(page)).to_have_text("2")


def test_it_is_accessible(known: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(known, viewport={"width": PHONE_WIDTH, "height": 700})
    page = dashboard.open(f"{PAGE}&path[not_in]={'long-' * 200},/x&browser[eq]=Firefox")
    page.keyboard.press("f")
    editor = page.get_by_role("dialog", name="Add filter")
    suggestions(editor).first.wait_for()
    page.keyboard.press("Tab")
    editor.get_by_role("combobox", name="Condition").select_option(label="is one of")
    suggestions(editor).first.click()
    assert dashboard.violations_by_scheme() == {}
    page.keyboard.press("Escape")
    expect(editor).to_have_count(0)
    assert not dashboard.is_wider_than_the_window()


def test_values_are_compared_case_insensitively(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(f"{PAGE}&browser[eq]=firefox")
    technology = page.get_by_role("region", name="Technology")
    technology.get_by_role("tab", name="Browsers").click()
    row = technology.get_by_role("button", name="Firefox", exact=True)
    expect(row).to_have_attribute("aria-pressed", "true")
    row.click()
    expect(chips(page)).to_have_count(0)
