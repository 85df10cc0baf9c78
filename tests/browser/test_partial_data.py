"""Notes about days that are kept as totals only."""

from collections.abc import Callable
from http import HTTPStatus

import pytest
from playwright.sync_api import Route, expect
from support.browser import rollup_website as summed
from support.browser.dashboard import Dashboard
from support.browser.overview import THREE_DAYS, cells, figures
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]
NOTE = "only daily totals remain, so some statistics leave them out."


def test_days_missing_from_statistics_are_named(march_owner: Client, dashboard_of: Make) -> None:
    partial = (
        'figures="2025-03-01/2025-03-08", durations="2025-02-09/2025-02-10", '
        'damaged="2025-01-05/2025-01-06"'
    )

    def answer(route: Route) -> None:
        found = route.fetch()
        headers = {**found.headers, "x-medamad-partial": partial} if partial else found.headers
        route.fulfill(response=found, headers=headers)

    dashboard = dashboard_of(march_owner)
    dashboard.page.route("**/website/past.example/pages?*", answer)
    page = dashboard.open(THREE_DAYS)
    figures(page)
    note = page.get_by_role("note")
    expect(note).to_contain_text(NOTE)
    assert "9 Feb 2025" in note.inner_text()
    assert "8 Mar 2025" in note.inner_text()
    damaged = page.get_by_text("is damaged and left out of all figures")
    expect(damaged).to_contain_text("Some data from 5 Jan 2025 to 6 Jan 2025 is damaged")
    expect(damaged).to_have_role("alert")
    partial = ""
    page.get_by_role("button", name="Earlier").click()
    figures(page)
    expect(note).to_have_count(0)
    expect(damaged).to_have_count(0)


def test_visits_of_days_with_totals_alone_are_unknown(
    summed_owner: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(summed_owner).open(
        f"websites/{summed.HOSTNAME}?from=2025-03-01&to=2025-03-03&zone=UTC&compare=none"
    )
    assert figures(page) == ["6", "\N{EN DASH}", "12", *["\N{EN DASH}"] * 3]
    assert cells(page) == [
        ["Sat 1 March 2025", "4", "-", "9", "-", "-", "-"],
        ["Sun 2 March 2025", "2", "-", "3", "-", "-", "-"],
        ["Mon 3 March 2025", "0", "0", "0", "-", "-", "-"],
    ]
    unknown = "For some days from 1 Mar 2025 to 2 Mar 2025, it isn’t known which views belong"
    expect(page.get_by_role("note").filter(has_text=unknown)).to_be_visible()


def test_visits_of_some_days_are_not_compared(march_owner: Client, dashboard_of: Make) -> None:
    def answer(route: Route) -> None:
        found = route.fetch()
        partial = {"x-medamad-partial": 'visits="2025-03-10/2025-03-10"'}
        route.fulfill(response=found, headers={**found.headers, **partial})

    dashboard = dashboard_of(march_owner)
    dashboard.page.route("**/website/past.example/summary?*", answer)
    page = dashboard.open(THREE_DAYS)
    assert figures(page) == ["5", "5", "6", "1.2", "80%", "31s"]
    expect(page.locator(".tiles .change")).to_have_count(2)
    expect(page.get_by_role("note")).to_contain_text("For some days from 10 Mar 2025 to 10 Mar")


def test_a_server_that_keeps_no_visits(march_owner: Client, dashboard_of: Make) -> None:
    def answer(route: Route) -> None:
        if "visits=true" not in route.request.url:
            route.continue_()
            return
        body = {"error": {"code": 400, "message": "visits: this server keeps none"}}
        route.fulfill(status=HTTPStatus.BAD_REQUEST, json=body)

    dashboard = dashboard_of(march_owner)
    dashboard.page.route("**/website/past.example/*", answer)
    page = dashboard.open(THREE_DAYS)
    expect(page.locator(".tile-name")).to_have_text(
        ["Visitors", "Views", "Left within 5 s", "Median time"]
    )
    expect(page.locator(".tile-figure")).to_have_text(["5", "6", "20%", "20s"])
    expect(page.locator(".tiles .change")).to_have_count(4)
