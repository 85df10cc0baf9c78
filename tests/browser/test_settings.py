"""The settings."""

import re
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import Dashboard
from support.browser.held_requests import HeldRequests
from support.daemon import PASSWORD, USERNAME, Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

SECTIONS = ("account", "websites", "tokens", "tracker", "usage", "about")


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def test_each_section_has_its_own_url(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open()
    page.keyboard.type("gs")
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
    for name in SECTIONS:
        page.locator(".settings-nav").get_by_role("link", name=name.capitalize()).click()
        current = page.locator("nav [aria-current=page]")
        expect(current).to_have_text(name.capitalize())
        assert page.url.endswith(f"/dashboard/settings/{name}")
        expect(page).to_have_title(f"{name.capitalize()} · Settings · medamad")
        page.locator(".settings-content h2").first.wait_for()
    page.reload()
    expect(page.locator("nav [aria-current=page]")).to_have_text("About")


def test_the_name_is_changed(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    page = dashboard_of(owner).open("settings")
    name = section(page, "Username")
    expect(name.get_by_role("textbox")).to_have_value(USERNAME)
    expect(name.get_by_role("button")).to_be_disabled()
    name.get_by_role("textbox").fill("grace")
    name.get_by_role("button").click()
    expect(name.get_by_role("status")).to_have_text("Saved")
    assert owner.get("/api/user")["username"] == "grace"


def test_the_password_is_changed(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner, elsewhere = new_daemon.client(), new_daemon.client()
    page = dashboard_of(owner).open("settings/account")
    form = section(page, "Password")
    form.get_by_label("New password", exact=False).first.fill("another password")
    form.get_by_label("Repeat new password").fill("another pasword")
    form.get_by_role("button").click()
    expect(form.get_by_role("alert")).to_have_text("The passwords don’t match.")
    form.get_by_label("Repeat new password").fill("another password")
    form.get_by_role("button").click()
    expect(form.get_by_role("status")).to_have_text("Saved")
    assert owner.request("GET", "/api/user").status == 200
    assert elsewhere.request("GET", "/api/user").status == 401
    Client(new_daemon.port).log_in(password="another password")
    old = {"username": USERNAME, "password": PASSWORD}
    assert Client(new_daemon.port).request("POST", "/api/auth/login", old).status == 401


def test_language_and_theme(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    page = dashboard_of(owner, color_scheme="light").open("settings/account")
    languages = page.locator("select")
    expect(languages.locator("option")).to_have_text(
        ["English", "Deutsch", "Français", "Español", "日本語", "中文"]
    )
    languages.select_option("de")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    expect(page.get_by_role("status").filter(has_text=re.compile("."))).to_have_count(1)
    assert owner.get("/api/user")["settings"] == {"language": "de", "script_type": ["default"]}
    page.reload()
    expect(page.locator("html")).to_have_attribute("lang", "de")

    def paper() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    page.get_by_role("radio").first.wait_for()
    light = paper()
    page.get_by_role("radio").nth(2).check()
    assert paper() != light
    page.reload()
    expect(page.get_by_role("radio").nth(2)).to_be_checked()
    assert paper() != light


def test_websites_are_renamed_and_deleted(owner: Client, dashboard_of: Make) -> None:
    owner.add_website("before.example")
    page = dashboard_of(owner).open("settings/websites")
    page.get_by_role("button", name="Rename before.example").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Hostname")).to_be_focused()
    dialog.get_by_label("Hostname").fill("https://after.example/")
    dialog.get_by_role("button", name="Rename", exact=True).click()
    expect(page.get_by_role("link", name="after.example", exact=True)).to_be_visible()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("status")).to_have_text("before.example is now after.example.")
    assert owner.request("GET", "/api/websites/before.example").status == 404

    page.get_by_role("button", name="Delete after.example").click()
    delete = dialog.get_by_role("button", name="Delete", exact=True)
    expect(delete).to_be_disabled()
    expect(dialog.get_by_role("textbox")).to_be_focused()
    page.keyboard.type("after.exampl")
    page.keyboard.press("Enter")
    expect(delete).to_be_disabled()
    page.keyboard.type("e")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("after.example has been deleted.")
    expect(page.get_by_role("link", name="after.example", exact=True)).to_have_count(0)
    assert owner.request("GET", "/api/websites/after.example").status == 404


def test_a_rename_that_is_refused(owner: Client, dashboard_of: Make) -> None:
    owner.add_website("one.example")
    owner.add_website("two.example")
    page = dashboard_of(owner).open("settings/websites")
    page.get_by_role("button", name="Rename one.example").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Hostname").fill("two.example")
    dialog.get_by_role("button", name="Rename", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_text("two.example has already been added.")
    dialog.get_by_label("Hostname").fill("192.0.2.1")
    dialog.get_by_role("button", name="Rename", exact=True).click()
    expect(dialog.get_by_role("alert")).to_contain_text("This isn’t a valid hostname. ")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert owner.request("GET", "/api/websites/one.example").status == 200


def test_the_tracker_has_the_selected_features(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    page = dashboard_of(owner).open("settings/tracker")
    save = page.get_by_role("button", name="Save")
    expect(save).to_be_disabled()
    page.get_by_label("File downloads").check()
    page.get_by_label("Clicks on marked elements").check()
    page.get_by_text("Different features for one website").click()
    base = f"http://localhost:{new_daemon.port}"
    expect(page.get_by_role("figure", name="Different features for one website")).to_have_text(
        f'<script defer src="{base}/scripts/click-events.file-downloads.js"></script>'
    )
    save.click()
    expect(page.get_by_text("Saved. Browsers will load the new script")).to_be_visible()
    chosen = owner.get("/api/user")["settings"]["script_type"]
    assert chosen == ["click-events", "file-downloads"]
    assert owner.request("GET", "/scripts/click-events.file-downloads.js").status == 200
    page.reload()
    expect(page.get_by_label("File downloads")).to_be_checked()
    page.get_by_label("File downloads").uncheck()
    page.get_by_label("Clicks on marked elements").uncheck()
    save.click()
    expect(page.get_by_text("Saved. Browsers will load the new script")).to_be_visible()
    assert owner.get("/api/user")["settings"]["script_type"] == ["default"]


def test_usage_shows_hits_as_they_arrive(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    page = dashboard_of(owner).open("settings/usage")
    hits = section(page, "Hits in the last 24 hours")
    expect(hits).to_contain_text("Every hit was counted.")
    for name in ("CPU", "Memory", "Disk", "Stored data"):
        assert 0 <= float(page.get_by_role("meter", name=name).get_attribute("value") or -1) <= 1
    load = {"e": "load", "b": "one", "u": "https://unknown.example/", "p": True, "q": True}
    assert owner.request("POST", "/api/event/hit", load).status == 404
    row = hits.get_by_role("row").nth(1)
    expect(row).to_contain_text("The page’s hostname isn’t one of your websites.")
    expect(row.get_by_role("cell").first).to_have_text("1")
    page.get_by_role("link", name="Add unknown.example").click()
    expect(page.get_by_label("Hostname")).to_have_value("unknown.example")


def test_slow_usage_data_is_waited_for(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, fresh=True)
    usage, asked = HeldRequests(dashboard.page, "**/api/user/usage"), list[str]()
    dashboard.page.clock.install()
    dashboard.page.on("request", lambda request: asked.append(urlsplit(request.url).path))
    with dashboard.page.expect_request("**/api/user/usage"):
        page = dashboard.open("settings/usage")
    expect(page.locator(".settings-content .skeleton")).to_be_visible()
    # Earlier requests have been reported after such a call.
    page.evaluate("fetch('/api/event/ping')")
    begun = asked.count("/api/user/usage")
    page.clock.fast_forward(20_000)
    page.evaluate("fetch('/api/event/ping')")
    assert asked.count("/api/user/usage") == begun
    usage.let_go()
    expect(page.get_by_role("meter", name="Memory")).to_be_visible()
    with page.expect_request("**/api/user/usage"):
        page.clock.fast_forward(5_000)


def test_about(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open("settings/about")
    service = demo.get("/api/user/usage")["service"]
    facts = [service["version"], service["commit"], service["licence"]]
    expect(page.locator("dd")).to_have_text(facts)
    link = page.get_by_role("link", name="The OpenAPI document").get_attribute("href")
    assert demo.request("GET", str(link)).status == 200


def test_the_language_of_a_demo_is_disabled_until_known(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    usage = HeldRequests(dashboard.page, "**/api/user/usage")
    page = dashboard.open("settings/account")
    expect(page.locator("select")).to_be_disabled()
    usage.let_go()
    page.locator("select").select_option("de")
    expect(page.locator("html")).to_have_attribute("lang", "de")


def test_a_demo_cannot_be_changed(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open("settings/account")
    expect(page.get_by_text("This is a demo, so nothing can be changed.")).to_be_visible()
    for name in ("Change username", "Change password"):
        expect(page.get_by_role("button", name=name)).to_be_disabled()
    page.locator("select").select_option("fr")
    expect(page.locator("html")).to_have_attribute("lang", "fr")
    page.locator("select").select_option("en")
    page.get_by_role("link", name="Tracker").click()
    page.get_by_label("File downloads").check()
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.locator(".settings-nav").get_by_role("link", name="Websites").click()
    buttons = page.get_by_role("button", name=re.compile("Rename|Delete"))
    buttons.first.wait_for()
    for button in buttons.all():
        expect(button).to_be_disabled()
