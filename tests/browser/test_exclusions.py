"""Leaving out of all figures what the filters of a page match, and counting it again."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import Dashboard
from support.browser.known_website import HOSTNAME
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

PAGE = f"websites/{HOSTNAME}?period=7d"


def figure(page: Page) -> Locator:
    return page.locator(".tile").first.locator(".tile-figure")


def test_what_filters_match_is_left_out_and_counted_again(
    known: Client, dashboard_of: Make
) -> None:
    dashboard = dashboard_of(known)
    page = dashboard.turn_to(PAGE)
    expect(figure(page)).to_have_text("12")
    page = dashboard.turn_to(f"{PAGE}&path[eq]=/about")
    page.get_by_role("button", name="Leave out…").click()
    dialog = page.get_by_role("dialog", name=f"Left out of {HOSTNAME}")
    expect(dialog.get_by_label("Name")).to_have_value("Page is /about")
    dialog.get_by_label("Name").fill("About us")
    expect(dialog.get_by_text("Nothing is left out.")).to_be_visible()
    dialog.get_by_role("button", name="Leave out what matches these filters").click()
    expect(dialog.get_by_role("status")).to_have_text("About us is left out.")
    rule = dialog.get_by_role("listitem")
    expect(rule).to_contain_text("Page is /about")
    expect(rule).to_contain_text("views left out")
    dialog.get_by_role("button", name="Leave out what matches these filters").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    page.keyboard.press("Escape")
    expect(figure(page)).to_have_text("0")
    note = page.get_by_role("note").filter(has_text="What exclusions match is left out")
    expect(note).to_be_visible()
    page = dashboard.turn_to("settings/websites")
    page.get_by_role("button", name=f"Left out of {HOSTNAME}").click()
    dialog = page.get_by_role("dialog", name=f"Left out of {HOSTNAME}")
    dialog.get_by_role("button", name="Count About us again").click()
    expect(dialog.get_by_role("status")).to_have_text("About us counts again.")
    expect(dialog.get_by_role("listitem")).to_have_count(0)
    page = dashboard.turn_to(PAGE)
    expect(figure(page)).to_have_text("12")
    expect(note).to_have_count(0)


def test_readers_of_a_share_link_cannot_leave_out_anything(
    known: Client, dashboard_of: Make
) -> None:
    share = known.request("POST", f"/api/websites/{HOSTNAME}/shares", {"name": "club"}).json
    dashboard = dashboard_of(known)
    page = dashboard.turn_to(f"{PAGE}&path[eq]=/about")
    expect(page.get_by_role("button", name="Leave out…")).to_be_visible()
    base = page.url.partition("/dashboard")[0]
    page.goto(f"{base}/share/{share['id']}?period=7d&path[eq]=/about")
    expect(page.get_by_role("region", name="Filters")).to_be_visible()
    expect(page.get_by_role("button", name="Leave out…")).to_have_count(0)
