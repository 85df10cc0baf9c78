"""Logging in and out."""

import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from support.browser.dashboard import Dashboard
from support.browser.held_requests import HeldRequests
from support.daemon import PASSWORD, USERNAME, Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

LONG_ENOUGH_S = 8
"""What a busy machine may need to let a request go that is there."""


def fill_in(page: Page, password: str = PASSWORD) -> None:
    page.get_by_label("Username", exact=True).fill(USERNAME)
    page.get_by_label("Password", exact=True).fill(password)


def enter(page: Page, password: str = PASSWORD) -> None:
    fill_in(page, password)
    page.get_by_role("button", name="Log in").click()


def test_the_root_redirects_to_the_login(daemon: Daemon, dashboard_of: Make) -> None:
    dashboard = dashboard_of(Client(daemon.port))
    dashboard.page.goto(f"{dashboard.base}/")
    expect(dashboard.page.get_by_role("heading", level=1)).to_have_text("Log in")
    assert dashboard.page.url == f"{dashboard.base}/dashboard/"
    expect(dashboard.page.get_by_text("first-login.txt")).to_be_visible()


def test_it_continues_to_the_requested_page(demo: Client, dashboard_of: Make) -> None:
    hostname = demo.get("/api/websites")[0]["hostname"]
    dashboard = dashboard_of(Client(demo.port))
    page = dashboard.open(f"websites/{hostname}?period=7d")
    enter(page, "not the password")
    expect(page.get_by_role("alert")).to_have_text("Incorrect username or password.")
    expect(page.get_by_label("Password", exact=True)).to_be_focused()
    enter(page)
    expect(page.get_by_role("heading", level=1)).to_contain_text(hostname)
    assert page.url == f"{dashboard.base}/dashboard/websites/{hostname}?period=7d"


def test_the_password_can_be_shown(daemon: Daemon, dashboard_of: Make) -> None:
    page = dashboard_of(Client(daemon.port)).open()
    password = page.get_by_label("Password", exact=True)
    password.fill("secret")
    assert password.get_attribute("type") == "password"
    page.get_by_role("button", name="Show password").click()
    expect(password).to_have_attribute("type", "text")
    assert password.input_value() == "secret"
    page.get_by_role("button", name="Hide password").click()
    expect(password).to_have_attribute("type", "password")


def test_the_keyboard_is_enough(daemon: Daemon, dashboard_of: Make) -> None:
    page = dashboard_of(Client(daemon.port)).open()
    expect(page.get_by_label("Username", exact=True)).to_be_focused()
    page.keyboard.type(USERNAME)
    page.keyboard.press("Tab")
    page.keyboard.type(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Websites")


def test_a_rejected_cookie_is_explained(daemon: Daemon, dashboard_of: Make) -> None:
    # The daemon responds as through a proxy: over plain HTTP, under another name.
    dashboard = dashboard_of(
        Client(daemon.port), proxy={"server": f"http://127.0.0.1:{daemon.port}"}
    )
    page = dashboard.page
    page.goto("http://stats.example/dashboard/")
    enter(page)
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("Your browser rejected the login cookie")
    expect(alert).to_contain_text("https://stats.example")
    # COOP has no meaning over plain HTTP, and Chromium says so.
    dashboard.complaints = [text for text in dashboard.complaints if "Opener-Policy" not in text]


def test_too_many_failures_are_throttled(new_daemon: Daemon, dashboard_of: Make) -> None:
    visitor = Client(new_daemon.port)
    dashboard = dashboard_of(visitor, fresh=True)
    dashboard.page.clock.install(time="2025-03-04T05:00:00Z")
    page = dashboard.open()
    held = HeldRequests(page, "**/api/auth/login")
    with page.expect_request("**/api/auth/login"):
        enter(page)
    # The page counts down the wait, but not while its clock is stopped.
    page.clock.pause_at("2025-03-04T06:00:00Z")
    wait_s = 0
    while wait_s < LONG_ENOUGH_S:
        answer = visitor.request("POST", "/api/auth/login", {"username": "x", "password": "y"})
        wait_s = int(answer.headers.get("retry-after", "0"))
        if 0 < wait_s < LONG_ENOUGH_S:
            time.sleep(wait_s)
    held.let_go()
    expect(page.get_by_role("alert")).to_have_text("Too many failed attempts from your network.")
    expect(page.get_by_text("Try again in")).to_be_visible()
    expect(page.get_by_role("button", name="Log in")).to_be_disabled()


def test_an_unreachable_server_that_comes_back(new_daemon: Daemon, dashboard_of: Make) -> None:
    dashboard = dashboard_of(Client(new_daemon.port))
    page = dashboard.open()
    new_daemon.stop()
    enter(page)
    expect(page.get_by_role("alert")).to_have_text("The server isn’t responding")
    new_daemon.start()
    enter(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Websites")


def test_logging_out_ends_the_session(daemon: Daemon, dashboard_of: Make) -> None:
    client = daemon.client()
    page = dashboard_of(client).open()
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("menuitem", name="Log out").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    assert client.request("GET", "/api/user").status == 401
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
