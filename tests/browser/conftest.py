"""A real browser, the real daemon and a small website with the daemon's script."""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Browser, BrowserContext, Playwright, expect, sync_playwright
from support.browser.chromium import CHROMIUM, close, launch, usual_browser
from support.browser.dashboard import dashboard_of, demo, kept_dashboards, new_daemon
from support.browser.example_site import Site, served
from support.browser.known_website import known
from support.browser.overview import march_owner
from support.browser.rollup_website import summed_owner
from support.browser.visitors import DESKTOP, Statistics, Visitor
from support.daemon import Client, Daemon, running

# pytest finds fixtures by their names here.
__all__ = (
    "dashboard_of",
    "demo",
    "kept_dashboards",
    "known",
    "march_owner",
    "new_daemon",
    "summed_owner",
)

A_WHILE: Final = timedelta(minutes=1)
"""As long as hardly any test takes."""

# Other tests run at the same time, so expectations need as much patience as clicks.
expect.set_options(timeout=30_000)


@pytest.fixture(autouse=True)
def no_midnight() -> None:
    """Wait if a day is about to end, in UTC or in the time zone of the pages."""
    for zone in (UTC, ZoneInfo("Europe/Berlin")):
        now = datetime.now(zone)
        if (now + A_WHILE).day != now.day:
            time.sleep(A_WHILE.total_seconds())


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """The browser of nearly every test."""
    browser = launch(playwright, usual_browser())
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def full_chromium(playwright: Playwright) -> Iterator[Browser]:
    """Chromium as people run it, for what the headless shell lacks."""
    browser = launch(playwright, CHROMIUM)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("daemon")) as started:
        yield started


@pytest.fixture(scope="session")
def owner(daemon: Daemon) -> Client:
    """The owner of the account, logged in."""
    return daemon.client()


@pytest.fixture(scope="session")
def site(daemon: Daemon) -> Iterator[Site]:
    with served(f'<script defer src="{daemon.base}/script.js"></script>') as site:
        yield site


@pytest.fixture
def someone(chromium: Browser) -> Iterator[Callable[..., Visitor]]:
    """Return a function that creates visitors, each with their own browser profile."""
    yield from _visitors(chromium)


@pytest.fixture
def someone_in_full_chromium(full_chromium: Browser) -> Iterator[Callable[..., Visitor]]:
    """Return a function that creates visitors whose browser has a back-forward cache."""
    yield from _visitors(full_chromium)


def _visitors(browser: Browser) -> Iterator[Callable[..., Visitor]]:
    contexts: list[BrowserContext] = []

    def make(**options: Any) -> Visitor:
        context = browser.new_context(**({"user_agent": DESKTOP} | options))
        contexts.append(context)
        visitor = Visitor(context, context.new_page(), [])
        visitor.page.on("pageerror", lambda error: visitor.errors.append(str(error)))
        return visitor

    yield make
    for context in contexts:
        close(context)


@pytest.fixture
def website(owner: Client, request: pytest.FixtureRequest) -> Statistics:
    """A website that this test alone visits, registered under a hostname of its own."""
    hostname = f"{request.node.originalname.replace('_', '-')[:60].strip('-')}.localhost"
    owner.add_website(hostname)
    return Statistics(owner, hostname)
