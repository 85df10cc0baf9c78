"""Tokens in the settings."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def status(client: Client, token: str, path: str) -> int:
    return client.request("GET", path, headers={"Authorization": f"Bearer {token}"}).status


def test_a_token_is_created_shown_once_and_revoked(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    for hostname in ("a.example", "b.example"):
        owner.add_website(hostname)
    page = dashboard_of(owner).open("settings/tokens")
    form = page.get_by_role("region", name="Create token")
    form.get_by_label("Name").fill("weekly report")
    form.get_by_role("combobox", name="Websites").select_option("b.example")
    form.get_by_label("Expires").select_option(label="After 30 days")
    form.get_by_role("button", name="Create token").click()
    token = form.get_by_role("figure", name="Token").inner_text()
    visitor = Client(owner.port)
    assert status(visitor, token, "/api/website/b.example/summary") == 200
    assert status(visitor, token, "/api/website/a.example/summary") == 403
    listed = page.get_by_role("region", name="Tokens", exact=True).get_by_role("listitem")
    expect(listed).to_contain_text(["weekly report"])
    expect(listed).to_contain_text(["Read statistics · b.example"])
    page.reload()
    expect(listed).to_contain_text(["weekly report"])
    assert token not in page.content()
    page.get_by_role("button", name="Revoke weekly report").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke", exact=True).click()
    expect(page.get_by_text("weekly report has been revoked.")).to_be_visible()
    expect(listed).to_have_count(0)
    assert status(visitor, token, "/api/website/b.example/summary") == 401
