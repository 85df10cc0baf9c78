"""The filters of a website's page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import Dashboard
from support.browser.known_website import HOSTNAME
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

PAGE = f"websites/{HOSTNAME}?period=7d"

# Each matches the views with the plan pro, and their visits.
FIELDS = (
    *("path[eq]=/", "entry_page[eq]=/", "exit_page[eq]=/"),
    *("visit_referrer[eq]=", "visit_utm_source[eq]=", "visit_utm_medium[eq]="),
    *("visit_utm_campaign[eq]=", "referrer[eq]=", "utm_source[eq]=", "utm_medium[eq]="),
    *("utm_campaign[eq]=", "utm_term[eq]=", "utm_content[eq]=", "country[eq]=Germany"),
    *("language[eq]=German", "browser[eq]=Chrome", "os[eq]=Linux", "device[eq]=Desktop"),
    *("prop_name[eq]=plan", "prop_value[eq]=pro", "visit_bounce[eq]=true"),
    *("visit_views[gte]=1", "visit_views[lte]=99", "visit_duration[gte]=0"),
)
OPERATORS = (
    *("os[eq]=linux", "os[neq]=x", "os[contains]=INU", "os[not_contains]=z", "os[starts_with]=l"),
    *("os[not_starts_with]=i", "os[ends_with]=x", "os[not_ends_with]=u", "os[in]=x,Linux"),
    "os[not_in]=x,y",
)


def chips(page: Page) -> Locator:
    return page.get_by_role("region", name="Filters").get_by_role("listitem")


def visitors(page: Page) -> Locator:
    return page.locator(".tile").first.locator(".tile-figure")


def suggestions(editor: Locator) -> Locator:
    return editor.get_by_role("listbox").get_by_role("option")


def open_editor(page: Page) -> Locator:
    page.locator(".rows").first.wait_for()
    page.keyboard.press("f")
    editor = page.get_by_role("dialog", name="Add filter")
    editor.wait_for()
    return editor


def test_filters_are_added_edited_and_taken_back(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    editor = open_editor(page)
    value = editor.get_by_role("combobox", name="Value")
    expect(value).to_be_focused()
    options = suggestions(editor)
    editor.get_by_role("combobox", name="Filter by").select_option(label="Property value")
    expect(options).to_have_text(["pro3", "=1+1;=21"])
    editor.get_by_role("combobox", name="Filter by").select_option(label="Page")
    value.focus()
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
    expect(visitors(page)).to_have_text("3")
    # Under this filter the other fields have fewer values.
    editor = open_editor(page)
    editor.get_by_role("combobox", name="Filter by").select_option(label="Referrer")
    expect(suggestions(editor)).to_have_text(["Google2", "blog.example1"])
    page.keyboard.press("Escape")
    expect(editor).to_have_count(0)
    chips(page).get_by_role("button", name="Page is /about").first.click()
    editor = page.get_by_role("dialog", name="Edit filter")
    editor.get_by_role("combobox", name="Condition").select_option(label="is not one of")
    editor.get_by_role("button", name="Apply").click()
    page.wait_for_url("**path[not_in]=/about")
    expect(visitors(page)).to_have_text("9")
    page.go_back()
    expect(visitors(page)).to_have_text("3")
    expect(chips(page)).to_contain_text("Page is /about")
    page.go_forward()
    expect(visitors(page)).to_have_text("9")


def test_the_daemon_knows_every_field_and_operator(known: Client, dashboard_of: Make) -> None:
    filters = [*FIELDS, *OPERATORS]
    page = dashboard_of(known).turn_to(f"{PAGE}&{'&'.join(filters)}")
    expect(visitors(page)).to_have_text("3")
    # Of two that differ only in case, one is kept.
    expect(chips(page)).to_have_count(len(filters) - 1)
