"""The language of the dashboard."""

from collections.abc import Callable

import pytest
from playwright.sync_api import expect
from support.browser.catalogues import translated
from support.browser.dashboard import Dashboard
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def test_the_language_is_remembered(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open("settings/account")
    page.locator("select").select_option("ja")
    saved = page.get_by_role("status").filter(has_text=translated("ja", "common.saved"))
    expect(saved).to_be_visible()
    assert owner.get("/api/user")["settings"]["language"] == "ja"
    page.evaluate("localStorage.clear()")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text(translated("ja", "settings.title"))
    expect(page.locator("html")).to_have_attribute("lang", "ja")
    owner.request("PATCH", "/api/user", {"settings": {"language": "en"}})
