"""The dashboard in a browser, as its owner sees it."""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Final, Literal

import pytest
from attrs import define, field
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    expect,
)
from playwright.sync_api import (
    TimeoutError as NotInTime,
)
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
_USUAL: Final[dict[str, Any]] = {
    "color_scheme": "light",
    "locale": "en-GB",
    "reduced_motion": "reduce",
    "timezone_id": "Europe/Berlin",
    "viewport": {"width": DESKTOP_WIDTH, "height": 800},
}
_FOLLOW: Final = """(path) => {
    if (location.pathname + location.search === path) return;
    document.querySelector("h1")?.setAttribute("data-left", "");
    const link = document.createElement("a");
    link.href = path;
    document.body.append(link);
    link.click();
    link.remove();
}"""
"""Follow a link within the document, and mark the heading of the page that is left."""
_TURNED_WITHIN_MS: Final = 10_000
_CHANGEABLE: Final = ("color_scheme", "reduced_motion", "viewport")
"""What a browser profile can have one after another."""
BUSY = "websites/gardenpost.example"
"""The page of a website of the demonstration that has most visits."""
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")

Rules = Literal["all", "colours", "all but colours"]
_RULES: Final[dict[Rules, dict[str, Any]]] = {
    # An experimental rule: what is said to a voice control is what is read.
    "all": {"rules": {"label-content-name-mismatch": {"enabled": True}}},
    # By category, axe would also run rules that are off otherwise.
    "colours": {"runOnly": {"type": "rule", "values": ["color-contrast"]}},
    "all but colours": {"rules": {"color-contrast": {"enabled": False}}},
}
"""The options of axe. Colours take most of its CPU."""


@define(slots=False)  # Playwright puts marks on objects whose methods it calls.
class Dashboard:
    """The dashboard in a browser profile of its own; `complaints` is what went wrong in it."""

    page: Page
    client: Client
    is_loaded: bool = False
    """Whether there is a document of this client's."""
    complaints: list[str] = field(factory=list)

    @property
    def base(self) -> str:
        return f"http://localhost:{self.client.port}"

    def open(self, path: str = "") -> Page:
        """Open a page below /dashboard/ and wait for its heading."""
        self.page.goto(f"{self.base}/dashboard/{path}")
        self.page.get_by_role("heading", level=1).first.wait_for()
        self.is_loaded = True
        return self.page

    def turn_to(self, path: str) -> Page:
        """Show a page below /dashboard/ as `open` does, but in the document of the test before.

        That takes less CPU. Data that the document has read before is shown at first, so this is
        for websites whose data does not change; and nothing tells when it has read all.
        """
        if not (self.is_loaded and self.page.url.startswith(f"{self.base}/dashboard/")):
            return self.open(path)
        # Between them a page without state, so that the next one has none of the last one's.
        for address in ("nowhere", path):
            self.page.evaluate(_FOLLOW, f"/dashboard/{address}")
            # A function to wait for would be refused by the content security policy.
            heading = self.page.locator("h1:not([data-left])").first
            try:
                heading.wait_for(state="attached", timeout=_TURNED_WITHIN_MS)
            except NotInTime:
                # The next page may have taken over the marked heading.
                return self.open(path)
        return self.page

    def log_in(self) -> None:
        """Log in as the client is, or out."""
        context = self.page.context
        context.clear_cookies()
        if self.client.cookie is not None:
            name, _, value = self.client.cookie.partition("=")
            context.add_cookies([{"name": name, "value": value, "url": self.base}])

    def begin_again(self, client: Client, **options: Any) -> None:
        """Remove what the test before has left, but for its document."""
        page, wanted = self.page, _USUAL | options
        page.unroute_all(behavior="ignoreErrors")
        if page.url.startswith("http"):
            page.evaluate("localStorage.clear(); sessionStorage.clear()")
        page.mouse.move(0, 0)
        if page.viewport_size != wanted["viewport"]:
            page.set_viewport_size(wanted["viewport"])
        page.emulate_media(
            color_scheme=wanted["color_scheme"], reduced_motion=wanted["reduced_motion"]
        )
        if client != self.client:
            self.client, self.is_loaded = client, False
        self.log_in()
        self.complaints.clear()

    def violations(self, rules: Rules = "all", *, within: str = "", without: str = "") -> list[str]:
        """Return what axe finds, now that the page stands still.

        `within` is a selector of all that it examines, `without` of what it does not.
        """
        self.page.wait_for_load_state("networkidle")
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(Axe().axe_script)
        options = {"resultTypes": ["violations"]} | _RULES[rules]
        context = {"include": [within or "html"], "exclude": [without] if without else []}
        run = """([context, options]) => axe.run(context, options)
            .then(({violations}) => violations)"""
        results = self.page.evaluate(run, [context, options])
        return [f"{found['id']}: {node['html']}" for found in results for node in found["nodes"]]

    def violations_by_scheme(self) -> dict[str, list[str]]:
        """Return what axe finds in dark, of colours alone, and in light, where there is anything.

        A page differs in nothing else in the dark.
        """
        found = {}
        for scheme in reversed(SCHEMES):
            self.page.emulate_media(color_scheme=scheme)
            found[scheme] = self.violations("colours" if scheme == "dark" else "all")
        return {scheme: violations for scheme, violations in found.items() if violations}

    def is_wider_than_the_window(self) -> bool:
        """Return whether the page scrolls sideways, even when its charts have been redrawn."""
        try:
            self.page.wait_for_function(
                "document.documentElement.scrollWidth <= innerWidth", timeout=5_000
            )
        except NotInTime:
            return True
        return False

    def hear(self, message: ConsoleMessage) -> None:
        """Note an error or a fault of the daemon.

        What it refuses is no complaint: pages ask who is logged in.
        """
        is_refused = "Failed to load resource" in message.text and "status of 5" not in message.text
        if message.type in ("error", "warning") and not is_refused:
            self.complaints.append(f"{message.text} {message.location['url']}")


def opened(
    chromium: Browser, client: Client, *, now: datetime | str | None = None, **options: Any
) -> Dashboard:
    """Create a browser profile for a client, logged in if the client is.

    Nothing moves in it: what moves would be looked at as it is at that moment. If there is a `now`,
    its clock stands still at that.
    """
    page = chromium.new_context(**(_USUAL | options)).new_page()
    if now is not None:
        page.clock.set_fixed_time(now)
    dashboard = Dashboard(page, client)
    dashboard.log_in()
    return dashboard


def loaded(page: Page) -> Locator:
    """Return the figures of a website's page, once they are there."""
    figures = page.locator(".tile-figure")
    expect(figures).to_have_count(6)
    return figures


def settle(page: Page) -> None:
    """Wait until everything has come, also what comes when it is scrolled to."""
    page.wait_for_load_state("networkidle")
    height = page.evaluate("document.documentElement.scrollHeight")
    for y in range(0, height, 400):
        page.evaluate(f"scrollTo(0, {y})")
    page.wait_for_load_state("networkidle")
    page.evaluate("scrollTo(0, 0)")


@pytest.fixture(scope="module")
def kept_dashboards() -> Iterator[dict[str, Dashboard]]:
    """Return the dashboards that the tests of a module have one after another."""
    kept: dict[str, Dashboard] = {}
    yield kept
    for dashboard in kept.values():
        close(dashboard.page.context)


@pytest.fixture
def dashboard_of(
    chromium: Browser, kept_dashboards: dict[str, Dashboard]
) -> Iterator[Callable[..., Dashboard]]:
    """Return a function that creates dashboards, logged in if the client is.

    The tests of a module use one browser profile after another, which takes less CPU than a profile
    for each, and a test that asks for several has them beside each other. A test asks for a fresh
    one if what it does to the page would stay, such as scripts that it adds.

    A test fails when the browser complained of anything that it did not clear.
    """
    contexts: list[BrowserContext] = []
    used: dict[str, Dashboard] = {}

    def make(client: Client, *, fresh: bool = False, **options: Any) -> Dashboard:
        key = repr({name: value for name, value in options.items() if name not in _CHANGEABLE})
        is_shared = not fresh and key not in used
        if is_shared and key in kept_dashboards:
            used[key] = dashboard = kept_dashboards[key]
            dashboard.begin_again(client, **options)
            return dashboard
        dashboard = opened(chromium, client, **options)
        dashboard.page.on("console", dashboard.hear)
        dashboard.page.on("pageerror", lambda error: dashboard.complaints.append(str(error)))
        if is_shared:
            kept_dashboards[key] = used[key] = dashboard
        else:
            contexts.append(dashboard.page.context)
            used[f"{len(contexts)}"] = dashboard
        return dashboard

    yield make
    for context in contexts:
        close(context)
    assert [dashboard.complaints for dashboard in used.values() if dashboard.complaints] == []


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
            [*MEDAMAD, "demo", "--read-only", "--listen", str(port), "--views", "20000"],
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
