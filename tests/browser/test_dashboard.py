"""The page under /dashboard/, as a browser shows it."""

from collections.abc import Callable

import pytest
from daemon import Daemon
from playwright.sync_api import Page
from visiting import Visitor

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]


def paper(page: Page) -> tuple[int, ...]:
    """Give the colour behind the page: red, green and blue, 0 to 255."""
    text = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return tuple(int(part) for part in text.removeprefix("rgb(").removesuffix(")").split(","))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_it_shows_what_runs_here(scheme: str, width: int, daemon: Daemon, someone: Make) -> None:
    visitor = someone(color_scheme=scheme, viewport={"width": width, "height": 800})
    page = visitor.page
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    failed: list[str] = []
    page.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
    page.goto(f"{daemon.base}/")
    assert page.url == f"{daemon.base}/dashboard/"
    assert page.get_by_role("heading", level=1).inner_text() == "medamad"
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert (min(paper(page)) > 200) == (scheme == "light")
    assert page.evaluate("document.querySelector('header img').naturalWidth") > 0
    assert (complaints, failed, visitor.errors) == ([], [], [])


def test_its_links_lead_somewhere(daemon: Daemon, someone: Make) -> None:
    page = someone().page
    page.goto(f"{daemon.base}/dashboard/")
    links = page.evaluate("[...document.links].map(link => link.href)")
    assert links
    for link in links:
        assert page.request.get(link).status == 200, link
