"""A real Chromium, as people run it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, BrowserContext, sync_playwright
from support.browser.visitors import DESKTOP
from support.daemon import PATIENCE_S

_PROGRAM: Final = "/usr/bin/chromium"
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium_running() -> Iterator[Browser]:
    """Run it.

    Playwright would switch its back-forward cache off. The user agent is set for the whole
    browser, since what a page sends while it goes does not bear the one that was set for the page.
    """
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=_PROGRAM,
            args=[*_FLAGS, f"--user-agent={DESKTOP}"],
            timeout=PATIENCE_S * 1000,
            ignore_default_args=["--disable-back-forward-cache"],
        )
        yield browser
        browser.close()


def close(context: BrowserContext) -> None:
    """Close a browser profile.

    What is still answered by its test when a page goes would fail the test that comes next.
    """
    for page in context.pages:
        page.unroute_all(behavior="ignoreErrors")
    context.close()
