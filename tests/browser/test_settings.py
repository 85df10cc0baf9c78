"""The settings."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import Dashboard
from support.daemon import PASSWORD, USERNAME, Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def section(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=name, exact=True)


def go_to(page: Page, name: str) -> None:
    page.locator(".settings-nav").get_by_role("link", name=name).click()


def test_the_account_is_changed(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner, elsewhere = new_daemon.client(), new_daemon.client()
    page = dashboard_of(owner, color_scheme="light").open("settings")
    form = section(page, "Password")
    form.get_by_label("New password", exact=False).first.fill("another password")
    form.get_by_label("Repeat new password").fill("another password")
    form.get_by_role("button").click()
    expect(form.get_by_role("status")).to_have_text("Saved")
    assert owner.request("GET", "/api/user").status == 200
    assert elsewhere.request("GET", "/api/user").status == 401
    Client(new_daemon.port).log_in(password="another password")
    old = {"username": USERNAME, "password": PASSWORD}
    assert Client(new_daemon.port).request("POST", "/api/auth/login", old).status == 401

    name = section(page, "Username")
    name.get_by_role("textbox").fill("grace")
    name.get_by_role("button").click()
    expect(name.get_by_role("status")).to_have_text("Saved")
    assert owner.get("/api/user")["username"] == "grace"

    def paper() -> str:
        return str(page.evaluate("getComputedStyle(document.body).backgroundColor"))

    light = paper()
    page.get_by_role("radio").nth(2).check()
    assert paper() != light
    page.locator("select").select_option("de")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    assert owner.get("/api/user")["settings"] == {"language": "de", "script_type": ["default"]}
    page.reload()
    expect(page.get_by_role("radio").nth(2)).to_be_checked()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    assert paper() != light


def rename_and_delete(page: Page, owner: Client) -> None:
    page.get_by_role("button", name="Rename before.example").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Hostname")).to_be_focused()
    for name, reason in (
        ("two.example", "two.example has already been added."),
        ("192.0.2.1", "This isn’t a valid hostname. "),
    ):
        dialog.get_by_label("Hostname").fill(name)
        dialog.get_by_role("button", name="Rename", exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text(reason)
    dialog.get_by_label("Hostname").fill("after.example")
    dialog.get_by_role("button", name="Rename", exact=True).click()
    expect(page.get_by_role("status")).to_have_text("before.example is now after.example.")
    assert owner.request("GET", "/api/websites/before.example").status == 404
    page.get_by_role("button", name="Delete after.example").click()
    expect(dialog.get_by_role("textbox")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.get_by_role("button", name="Delete after.example").click()
    expect(dialog.get_by_role("textbox")).to_be_focused()
    page.keyboard.type("after.example")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_have_text("after.example has been deleted.")
    assert owner.get("/api/websites") == [{"hostname": "two.example"}]


def choose_features(page: Page, owner: Client) -> None:
    go_to(page, "Tracker")
    page.get_by_label("File downloads").check()
    page.get_by_label("Clicks on marked elements").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("Saved. Browsers will load the new script")).to_be_visible()
    chosen = owner.get("/api/user")["settings"]["script_type"]
    assert chosen == ["click-events", "file-downloads"]
    page.get_by_text("Different features for one website").click()
    tag = page.get_by_role("figure", name="Different features for one website").inner_text()
    address = re.search(r'src="http://localhost:\d+(/scripts/[^"]+)"', tag)
    assert address
    assert owner.request("GET", address[1]).status == 200


def see_a_refused_hit(page: Page, owner: Client) -> None:
    go_to(page, "Usage")
    hits = section(page, "Hits in the last 24 hours")
    expect(hits).to_contain_text("No hits yet.")
    for name in ("CPU", "Memory", "Disk", "Stored data"):
        assert 0 <= float(page.get_by_role("meter", name=name).get_attribute("value") or -1) <= 1
    load = {"e": "load", "b": "one", "u": "https://unknown.example/", "p": True, "q": True}
    assert owner.request("POST", "/api/event/hit", load).status == 404
    row = hits.get_by_role("row").nth(1)
    expect(row).to_contain_text("The page’s hostname isn’t one of your websites.")
    expect(page.get_by_role("link", name="Add unknown.example")).to_be_visible()


def test_the_server_is_changed(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    for hostname in ("before.example", "two.example"):
        owner.add_website(hostname)
    page = dashboard_of(owner).open("settings/websites")
    rename_and_delete(page, owner)
    choose_features(page, owner)
    see_a_refused_hit(page, owner)
    go_to(page, "About")
    service = owner.get("/api/user/usage")["service"]
    facts = [service["version"], service["commit"], service["licence"]]
    expect(page.locator("dd")).to_have_text(facts)
    link = page.get_by_role("link", name="The OpenAPI document").get_attribute("href")
    assert owner.request("GET", str(link)).status == 200
    page.reload()
    expect(page.locator("nav [aria-current=page]")).to_have_text("About")


def send_view(owner: Client, path: str) -> None:
    load = {"e": "load", "b": path, "u": f"https://example.com{path}", "p": True, "q": True}
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
    answer = owner.request("POST", "/api/event/hit", load, {"User-Agent": agent})
    assert answer.status == 204


def test_what_counts_on_a_website_is_chosen(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    path = "/api/websites/example.com/settings"
    assert owner.request("PATCH", path, {"redact_uuids": False}).status == 200
    send_view(owner, "/reset/kQ2pX9s")
    page = dashboard_of(owner).open("settings/websites")
    page.get_by_role("button", name="Counting: example.com").click()
    dialog = page.get_by_role("dialog", name="Counting: example.com")
    dialog.get_by_label("Pages").fill("/admin/*")
    dialog.get_by_label("Parts of paths").fill("reset/*")
    dialog.get_by_label("UUIDs").check()
    dialog.get_by_role("button", name="Preview").click()
    refusal = "redacted_paths: expected paths that begin with a slash"
    expect(dialog.get_by_role("alert")).to_contain_text(refusal)
    dialog.get_by_label("Parts of paths").fill("/reset/*")
    expect(dialog.get_by_role("alert")).to_have_count(0)
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog.get_by_role("listitem")).to_have_text(["/reset/kQ2pX9s → /reset/…"])
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_text("What counts on example.com has been saved.")).to_be_visible()
    settings = owner.get(path)
    assert (settings["excluded_paths"], settings["redacted_paths"]) == (["/admin/*"], ["/reset/*"])
    assert settings["redact_uuids"] is True
    send_view(owner, "/reset/another")
    send_view(owner, "/admin/users")
    rows = owner.get("/api/website/example.com/pages")
    assert sorted(row["path"] for row in rows) == ["/reset/kQ2pX9s", "/reset/…"]
