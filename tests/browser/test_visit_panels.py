"""What a website's page shows of visits, and of days whose visits are unknown."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser import rollup_website as summed
from support.browser.dashboard import Dashboard
from support.browser.overview import THREE_DAYS, cells, figures, tile
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
    pages.get_by_role("tab", name="Exit").click()
    assert texts(pages, 2) == ["/ 4 80%", "/late 1 20%"]
    pages.get_by_role("tab", name="Entry").click()
    assert texts(pages, 3) == ["/ 3 60%", "/about 1 20%", "/late 1 20%"]
    pages.get_by_role("button", name="Show all").click()
    assert texts(page.get_by_role("dialog"), 3)[1] == "/about 1 20% 2 0% 50s"
    page.keyboard.press("Escape")
    pages.get_by_role("button", name="/about", exact=True).click()
    page.wait_for_url("**entry_page[eq]=/about")
    expect(page.get_by_role("button", name="Entry page is /about", exact=True)).to_be_visible()
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("2")
    panel(page, "Referrers").get_by_role("button", name="Direct / none").click()
    page.wait_for_url("**entry_page[eq]=/about&visit_referrer[eq]=")
    expect(page.locator(".tiles.stale")).to_have_count(0)
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("2")


def test_what_came_before_and_after_a_page(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(f"{THREE_DAYS}&compare=none")
    figures(page)
    assert page.get_by_role("region", name="Before and after").count() == 0
    panel(page, "Pages").get_by_role("button", name="/", exact=True).click()
    assert texts(panel(page, "Came before"), 2) == ["Beginning of the visit 3 75%", "/about 1 25%"]
    assert texts(panel(page, "Came after"), 1) == ["End of the visit 4 100%"]
    panel(page, "Came before").get_by_role("button", name="/about", exact=True).click()
    page.wait_for_url("**path[eq]=/about")
    assert texts(panel(page, "Came after"), 1) == ["/ 1 100%"]


def test_visits_of_days_with_totals_alone_are_unknown(
    summed_owner: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(summed_owner).open(
        f"websites/{summed.HOSTNAME}?from=2025-03-01&to=2025-03-03&zone=UTC&compare=none"
    )
    assert figures(page) == ["6", "\N{EN DASH}", "12", *["\N{EN DASH}"] * 3]
    assert [row[:4] for row in cells(page)] == [
        ["Sat 1 March 2025", "4", "-", "9"],
        ["Sun 2 March 2025", "2", "-", "3"],
        ["Mon 3 March 2025", "0", "0", "0"],
    ]
    unknown = "For some days from 1 Mar 2025 to 2 Mar 2025, it isn’t known which views belong"
    expect(page.get_by_role("note").filter(has_text=unknown)).to_be_visible()
    pages = panel(page, "Pages")
    pages.get_by_role("tab", name="Entry").click()
    expect(pages.locator(".rows-empty")).to_have_text("The visits of this period aren’t known")
