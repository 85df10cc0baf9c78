"""The dashboard in a browser, as its owner sees it."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Literal

import pytest
from attrs import define, evolve, field
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Locator,
    Page,
    expect,
)
from playwright.sync_api import Error as PlaywrightError
from support.browser.chromium import close
from support.daemon import (
    MEDAMAD,
    PASSWORD,
    PATIENCE_S,
    USERNAME,
    Client,
    Daemon,
    free_port,
    running,
)

PHONE_WIDTH = 360
DESKTOP_WIDTH = 1280
BUSY = "websites/gardenpost.example"
"""The page of a website of the demonstration that has most visits."""
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")
USUAL: Final[dict[str, Any]] = {
    "color_scheme": "light",
    "locale": "en-GB",
    "reduced_motion": "reduce",
    "timezone_id": "Europe/Berlin",
    "viewport": {"width": DESKTOP_WIDTH, "height": 800},
}
"""The options of a browser profile."""
LOOKS: Final = ("color_scheme", "reduced_motion", "viewport")
"""Those that can be changed while a page is open."""
USUAL_PROFILE: Final = "[]"
"""The key of a profile that has no other options of its own."""


@define(slots=False)  # Playwright puts marks on objects whose methods it calls.
class Dashboard:
    """The dashboard in a browser profile of its own; `complaints` is what went wrong in it."""

    page: Page
    base: str
    complaints: list[str] = field(factory=list)
    client: Client | None = None

    def open(self, path: str = "") -> Page:
        """Open a page below /dashboard/ and wait for its heading."""
        self.page.goto(f"{self.base}/dashboard/{path}")
        self.page.get_by_role("heading", level=1).first.wait_for()
        return self.page

    def violations(self, *, of_colours_alone: bool = False, without: str = "") -> list[str]:
        """Return what axe finds, now that the page stands still.

        `without` is a selector of what it does not examine.
        """
        self.page.wait_for_load_state("networkidle")
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(Axe().axe_script)
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if of_colours_alone:
            # By category, it would also run rules that are off otherwise.
            options["runOnly"] = {"type": "rule", "values": ["color-contrast"]}
        context = {"exclude": [without]} if without else None
        run = """([context, options]) => axe.run(context ?? document, options)
            .then(({violations}) => violations)"""
        results = self.page.evaluate(run, [context, options])
        return [f"{found['id']}: {node['html']}" for found in results for node in found["nodes"]]

    def violations_by_scheme(self) -> dict[str, list[str]]:
        """Return what axe finds in light, and of colours alone in dark, where there is anything.

        A page differs in nothing else in the dark.
        """
        found = {}
        for scheme in SCHEMES:
            self.page.emulate_media(color_scheme=scheme)
            found[scheme] = self.violations(of_colours_alone=scheme == "dark")
        return {scheme: violations for scheme, violations in found.items() if violations}

    def is_wider_than_the_window(self) -> bool:
        """Return whether the page scrolls sideways."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))

    def hear(self, message: ConsoleMessage) -> None:
        """Note an error, or a fault of the daemon.

        What the daemon refuses is no complaint: pages ask who is logged in.
        """
        if message.type not in ("error", "warning"):
            return
        if "Failed to load resource" not in message.text:
            self.complaints.append(message.text)
        elif "a status of 5" in message.text:
            self.complaints.append(f"{message.text} {message.location['url']}")

    def catch(self, error: PlaywrightError) -> None:
        """Note an error that the page did not catch."""
        self.complaints.append(str(error))


def opened(
    chromium: Browser, client: Client, *, now: datetime | str | None = None, **options: Any
) -> Dashboard:
    """Create a browser profile for a client, logged in if the client is.

    Nothing moves in it: what moves would be looked at as it is at that moment. If there is a `now`,
    its clock stands still at that.
    """
    context = chromium.new_context(**(USUAL | options))
    page = context.new_page()
    if now is not None:
        page.clock.set_fixed_time(now)
    dashboard = Dashboard(page, "")
    log_in(dashboard, client)
    return dashboard


def log_in(dashboard: Dashboard, client: Client) -> None:
    """Make the dashboard that of a client's daemon, logged in if the client is."""
    dashboard.base = f"http://localhost:{client.port}"
    dashboard.client = evolve(client)
    if client.cookie is not None:
        name, _, value = client.cookie.partition("=")
        context = dashboard.page.context
        context.add_cookies([{"name": name, "value": value, "url": dashboard.base}])


def loaded(page: Page) -> Locator:
    """Return the figures of a website's page, once they are there."""
    figures = page.locator(".tile-figure")
    expect(figures).to_have_count(4)
    return figures


@pytest.fixture(scope="session")
def idle_dashboards() -> Iterator[dict[str, list[Dashboard]]]:
    """Return the dashboards that no test has at the moment, by the options of their profiles."""
    idle: dict[str, list[Dashboard]] = {}
    yield idle
    for dashboard in chain.from_iterable(idle.values()):
        close(dashboard.page.context)


@pytest.fixture
def dashboard_of(
    chromium: Browser, idle_dashboards: dict[str, list[Dashboard]]
) -> Iterator[Callable[..., Dashboard]]:
    """Return a function that creates dashboards, logged in if the client is.

    Each has a browser profile of its own. It may be one that an earlier test had and that has been
    cleared since, which takes half of the CPU. A test asks for a fresh one if what it does to
    the page would stay, such as scripts that it adds.

    A test fails when the browser complained of anything that it did not clear.
    """
    used: list[tuple[Dashboard, str | None]] = []

    def make(client: Client, *, fresh: bool = False, **options: Any) -> Dashboard:
        profile = {name: value for name, value in options.items() if name not in LOOKS}
        key = repr(sorted(profile.items()))
        if not fresh and idle_dashboards.get(key):
            dashboard = idle_dashboards[key].pop()
            clear(dashboard, client)
            log_in(dashboard, client)
        else:
            dashboard = opened(chromium, client, **profile)
            dashboard.page.on("console", dashboard.hear)
            dashboard.page.on("pageerror", dashboard.catch)
        used.append((dashboard, None if fresh else key))
        looks = USUAL | options
        dashboard.page.set_viewport_size(looks["viewport"])
        dashboard.page.emulate_media(
            color_scheme=looks["color_scheme"], reduced_motion=looks["reduced_motion"]
        )
        return dashboard

    yield make
    complaints = [dashboard.complaints.copy() for dashboard, _ in used]
    for dashboard, key in used:
        if key is None or not can_be_kept(dashboard):
            close(dashboard.page.context)
            continue
        if key != USUAL_PROFILE:
            # It may stay idle for long, in which it would go on asking its daemon.
            clear(dashboard, None)
        idle_dashboards.setdefault(key, []).append(dashboard)
    assert [texts for texts in complaints if texts] == []


def can_be_kept(dashboard: Dashboard) -> bool:
    """Close what else the test opened, and return whether the page can be cleared for others."""
    for tab in dashboard.page.context.pages:
        tab.unroute_all(behavior="ignoreErrors")
        if tab != dashboard.page:
            tab.close()
    return dashboard.page.url.startswith((f"{dashboard.base}/", "about:blank"))


def clear(dashboard: Dashboard, following: Client | None) -> None:
    """Remove what the test before has left, but for a document of the client that follows."""
    page = dashboard.page
    if page.url != "about:blank":
        page.evaluate("localStorage.clear(); sessionStorage.clear()")
    if dashboard.client != following:
        # Daemons on one host share cookies: an answer to one could replace that of the next.
        page.goto("about:blank")
    page.context.clear_cookies()
    page.mouse.move(0, 0)
    dashboard.complaints.clear()


@pytest.fixture
def new_daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon of the test's own, without a website."""
    with running(tmp_path) as started:
        yield started


@pytest.fixture(scope="session")
def demo() -> Iterator[Client]:
    with demonstration() as client:
        yield client


@contextmanager
def demonstration() -> Iterator[Client]:
    """Run a demonstration with traffic on four websites; gives a client that is logged in."""
    port = free_port()
    with NamedTemporaryFile() as output:
        process = subprocess.Popen(
            [*MEDAMAD, "demo", "--listen", f"tcp:{port}:interface=127.0.0.1", "--views", "20000"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"MEDAMAD_USERNAME": USERNAME, "MEDAMAD_PASSWORD": PASSWORD},
        )

        def printed() -> str:
            return Path(output.name).read_text("utf-8", "replace")

        try:
            client = Client(port)
            deadline = time.monotonic() + PATIENCE_S
            while client.cookie is None:
                assert process.poll() is None, f"the demonstration stopped:\n{printed()}"
                assert time.monotonic() < deadline, f"the demonstration is silent:\n{printed()}"
                try:
                    client.log_in()
                except OSError:
                    time.sleep(0.05)
            yield client
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
