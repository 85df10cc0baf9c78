"""Logging in and out."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.daemon import PASSWORD, USERNAME, Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def test_a_session_begins_and_ends(daemon: Daemon, dashboard_of: Make) -> None:
    dashboard = dashboard_of(Client(daemon.port))
    page, heading = dashboard.page, dashboard.page.get_by_role("heading", level=1)
    page.goto(f"{dashboard.base}/")
    expect(heading).to_have_text("Log in")
    assert page.url == f"{dashboard.base}/dashboard/"

    requested = "settings/about?from=here"
    dashboard.open(requested)
    password = page.get_by_label("Password", exact=True)
    expect(page.get_by_label("Username", exact=True)).to_be_focused()
    page.keyboard.type(USERNAME)
    page.keyboard.press("Tab")
    page.keyboard.type("not the password")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("Incorrect username or password.")
    expect(password).to_be_focused()
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(heading).to_have_text("Settings")
    assert page.url == f"{dashboard.base}/dashboard/{requested}"

    (cookie,) = (one for one in page.context.cookies() if one["httpOnly"] and one["path"] == "/")
    session = Client(daemon.port, f"{cookie['name']}={cookie['value']}")
    assert session.request("GET", "/api/user").status == 200
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("menuitem", name="Log out").click()
    expect(heading).to_have_text("Log in")
    assert session.request("GET", "/api/user").status == 401
    page.reload()
    expect(heading).to_have_text("Log in")


def test_an_expired_session(daemon: Daemon, dashboard_of: Make) -> None:
    client = daemon.client()
    page = dashboard_of(client).open("settings/about?from=here")
    assert client.request("POST", "/api/auth/logout").status == 204
    page.keyboard.type("gw")
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")


def test_a_rejected_cookie_is_explained(daemon: Daemon, dashboard_of: Make) -> None:
    # The daemon responds as through a proxy: over plain HTTP, under another name.
    dashboard = dashboard_of(
        Client(daemon.port), proxy={"server": f"http://127.0.0.1:{daemon.port}"}
    )
    page = dashboard.page
    page.goto("http://stats.example/dashboard/")
    page.get_by_label("Username", exact=True).fill(USERNAME)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Your browser rejected the login cookie")
    expect(alert).to_contain_text("https://stats.example")
    # COOP has no meaning over plain HTTP, and Chromium says so.
    dashboard.complaints = [text for text in dashboard.complaints if "Opener-Policy" not in text]
