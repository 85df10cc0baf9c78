"""What the panels of a website's page show of visits."""

import re
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from support.browser import rollup_website as summed
from support.browser.dashboard import Dashboard
from support.browser.overview import THREE_DAYS, figures, tile
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def panel(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def texts(rows: Locator, count: int) -> list[str]:
    """Return the texts of a list's rows, once there are that many."""
    expect(rows.locator("tbody tr")).to_have_count(count)
    found = [" ".join(row.split()) for row in rows.locator("tbody tr").all_inner_texts()]
    return [re.sub(" Open .* in a new tab", "", row) for row in found]


def test_entry_and_exit_pages(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(f"{THREE_DAYS}&compare=none")
    pages = panel(page, "Pages")
    pages.get_by_role("tab", name="Entry").click()
    assert texts(pages, 3) == ["/ 3 60%", "/about 1 20%", "/late 1 20%"]
    pages.get_by_role("button", name="Show all").click()
    heads = page.get_by_role("dialog").get_by_role("columnheader")
    expect(heads).to_have_text(
        [
            "Entry page",
            "Visits",
            "% of visits",
            "Views per visit",
            "Visit bounce rate",
            "Time per visit",
        ]
    )
    assert texts(page.get_by_role("dialog"), 3)[1] == "/about 1 20% 2 0% 50s"
    page.keyboard.press("Escape")
    pages.get_by_role("tab", name="Exit").click()
    assert texts(pages, 2) == ["/ 4 80%", "/late 1 20%"]
    pages.get_by_role("tab", name="Entry").click()
    pages.get_by_role("button", name="/about", exact=True).click()
    page.wait_for_url("**entry_page[eq]=/about")
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("2")
    chip = page.get_by_role("button", name="Entry page is /about", exact=True)
    expect(chip).to_be_visible()


def test_unknown_visits_have_no_entry_pages(summed_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(summed_owner).open(
        f"websites/{summed.HOSTNAME}?from=2025-03-01&to=2025-03-02&zone=UTC"
    )
    pages = panel(page, "Pages")
    pages.get_by_role("tab", name="Entry").click()
    expect(pages.locator(".rows-empty")).to_have_text("The visits of this period aren’t known")


def test_what_came_before_and_after_a_page(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(f"{THREE_DAYS}&compare=none")
    figures(page)
    assert page.get_by_role("region", name="Before and after").count() == 0
    panel(page, "Pages").get_by_role("button", name="/", exact=True).click()
    assert texts(panel(page, "Came before"), 2) == ["Beginning of the visit 3 75%", "/about 1 25%"]
    assert texts(panel(page, "Came after"), 1) == ["End of the visit 4 100%"]
    assert panel(page, "Came after").locator("tbody").get_by_role("button").count() == 0
    before = panel(page, "Came before").get_by_role("button", name="/about", exact=True)
    before.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**path[eq]=/about")
    assert texts(panel(page, "Came after"), 1) == ["/ 1 100%"]


def test_choosing_a_source_shows_all_that_its_visits_did(owner: Client, dashboard_of: Make) -> None:
    hostname = "sources.example"
    owner.add_website(hostname)
    landing: dict[str, Any] = {"b": "one", "u": f"https://{hostname}/", "p": True, "q": True}
    further = {"b": "two", "u": f"https://{hostname}/pricing", "p": False, "q": True}
    landing["r"] = "https://news.example/today"
    further["r"] = f"https://{hostname}/"
    for load in (landing, further):
        answer = owner.request("POST", "/api/event/hit", {"e": "load", **load})
        assert answer.status == HTTPStatus.NO_CONTENT
    page = dashboard_of(owner).open(f"websites/{hostname}?period=7d")
    row = panel(page, "Referrers").get_by_role("button", name="news.example", exact=True)
    row.click()
    page.wait_for_url("**?period=7d&visit_referrer[eq]=news.example")
    expect(row).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_text("All views of the matching visits are included")).to_be_visible()
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("2")
    expect(panel(page, "Pages").locator("tbody tr")).to_have_count(2)
    row.click()
    expect(page.get_by_text("All views of the matching visits are included")).to_have_count(0)
    assert "visit" not in page.url


def test_a_source_of_unknown_visits_is_that_of_views(
    march_owner: Client, dashboard_of: Make
) -> None:
    def answer(route: Route) -> None:
        found = route.fetch()
        summary = found.json()
        summary["current"]["visits"] = 0
        partial = {"x-medamad-partial": 'visits="2025-03-10/2025-03-12"'}
        route.fulfill(response=found, json=summary, headers={**found.headers, **partial})

    dashboard = dashboard_of(march_owner)
    dashboard.page.route("**/website/past.example/summary?*", answer)
    page = dashboard.open(THREE_DAYS)
    figures(page)
    panel(page, "Referrers").get_by_role("button", name="Direct / none").click()
    page.wait_for_url("**&referrer[eq]=")
