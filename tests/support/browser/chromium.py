"""The browsers of the tests: Chromium's headless shell, and Chromium as people run it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from playwright.sync_api import Browser, BrowserContext, Playwright, sync_playwright
from support.browser.visitors import DESKTOP
from support.daemon import PATIENCE_S

CHROMIUM: Final = "/usr/bin/chromium"
HEADLESS_SHELL: Final = "/usr/bin/chromium-headless-shell"
"""The same engine without windows, for half of the CPU. It has no back-forward cache."""
HEADLESS_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def usual_browser() -> str:
    """Return the path of the browser to test with: TEST_BROWSER, or the lightest installed one."""
    installed = HEADLESS_SHELL if Path(HEADLESS_SHELL).exists() else CHROMIUM
    return os.environ.get("TEST_BROWSER", installed)


def launch(playwright: Playwright, program: str) -> Browser:
    """Start a browser.

    Playwright would disable the back-forward cache. The user agent is set for the whole browser
    because requests sent while a page unloads do not carry the one set for the page.
    """
    return playwright.chromium.launch(
        executable_path=program,
        args=[*HEADLESS_FLAGS, f"--user-agent={DESKTOP}"],
        timeout=PATIENCE_S * 1000,
        ignore_default_args=["--disable-back-forward-cache"],
    )


@contextmanager
def chromium_running() -> Iterator[Browser]:
    """Run the usual browser by itself, outside of pytest."""
    with sync_playwright() as playwright:
        browser = launch(playwright, usual_browser())
        yield browser
        browser.close()


def close(context: BrowserContext) -> None:
    """Close a browser profile.

    What is still answered by its test when a page goes would fail the test that comes next.
    """
    for page in context.pages:
        page.unroute_all(behavior="ignoreErrors")
    context.close()
