"""Errors of the daemon, in the reader's language."""

from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, Route, expect
from support.browser.catalogues import translated
from support.browser.dashboard import BUSY, Dashboard
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

STATUSES: Final = {
    403: "refused.forbidden",
    404: "refused.gone",
    409: "refused.known",
    413: "refused.too-large",
    429: "refused.too-many",
    500: "refused.fault",
    503: "away.title",
}
WRONG: Final = {"username": "x", "password": "x", "settings": {"language": "tlh"}}


def refuse(page: Page, status: int, message: str) -> None:
    """Make every change of the account fail."""

    def answer(route: Route) -> None:
        if route.request.method == "PATCH":
            error = {"error": {"code": status, "message": message}}
            route.fulfill(status=status, json=error)
        else:
            route.continue_()

    page.unroute("**/api/user")
    page.route("**/api/user", answer)


def refused(page: Page) -> Locator:
    """Change the name; return the message."""
    form = page.locator("section").filter(has=page.locator("#account-name"))
    form.get_by_role("textbox").press("End")
    page.keyboard.type("x")
    form.get_by_role("button").click()
    return form.get_by_role("alert")


@pytest.mark.parametrize("spoken", ["en", "ja"])
def test_errors_are_shown_in_the_readers_language(
    spoken: str, new_daemon: Daemon, dashboard_of: Make
) -> None:
    owner = new_daemon.client()
    owner.request("PATCH", "/api/user", {"settings": {"language": spoken}})
    dashboard = dashboard_of(owner)
    page = dashboard.open("settings/account")
    for status, key in STATUSES.items():
        refuse(page, status, "words of the server")
        expect(refused(page)).to_have_text(translated(spoken, key))
    for name, value in WRONG.items():
        answer = owner.request("PATCH", "/api/user", {name: value})
        message = answer.json["error"]["message"]
        refuse(page, answer.status, message)
        if name == "settings":
            # Where there are no words of ours, those of the server say more.
            expect(refused(page)).to_have_text(f"{translated(spoken, 'refused.request')} {message}")
            expect(refused(page).locator("span")).to_have_attribute("lang", "en")
        else:
            expect(refused(page)).to_have_text(translated(spoken, f"refused.{name}"))
    assert dashboard.complaints
    dashboard.complaints.clear()


def test_rejected_queries(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    error = {"error": {"code": 400, "message": "language[eq]: not to be read"}}
    dashboard.page.route("**/languages?*", lambda route: route.fulfill(status=400, json=error))
    page = dashboard.open(BUSY)
    page.get_by_role("tab", name="Languages", exact=True).click()
    trouble = page.get_by_role("alert")
    expect(trouble).to_contain_text(
        "The server rejected this request. language[eq]: not to be read"
    )
