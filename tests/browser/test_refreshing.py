"""Data is refreshed by itself."""

from collections.abc import Callable
from typing import Final

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard, loaded
from support.browser.known_website import Visit, send
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

HOSTNAME: Final = "refreshed.example"
REFRESH_S: Final = 30


def test_new_visits_appear(owner: Client, dashboard_of: Make) -> None:
    owner.add_website(HOSTNAME)
    dashboard = dashboard_of(owner, fresh=True)
    dashboard.page.clock.install()
    page = dashboard.open(f"websites/{HOSTNAME}")
    expect(loaded(page).first).to_have_text("0")
    send(owner, HOSTNAME, Visit("/"))
    page.clock.fast_forward(REFRESH_S * 1000)
    expect(loaded(page).first).to_have_text("1")
