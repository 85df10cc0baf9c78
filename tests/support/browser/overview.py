"""The head of a website's page, and a website that was visited in March 2025."""

import re
from collections.abc import Iterator
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser import past_visits as past
from support.browser.past_visits import Visit
from support.daemon import Client, Daemon

THREE_DAYS: Final = f"websites/{past.HOSTNAME}?from=2025-03-10&to=2025-03-12&zone=UTC"
VISITS: Final = (
    Visit("2025-03-08T12:00:00Z", milliseconds=2_000),
    Visit("2025-03-08T13:00:00Z", milliseconds=30_000),
    Visit("2025-03-10T09:15:00Z"),
    Visit("2025-03-10T10:30:00Z", milliseconds=3_000),
    Visit("2025-03-11T09:00:00Z", "/about", milliseconds=40_000, visit="tuesday"),
    Visit("2025-03-11T09:20:00Z", milliseconds=10_000, is_first=False, visit="tuesday"),
    Visit("2025-03-12T12:05:00Z", milliseconds=60_000),
    # In Berlin, this one is of the 13th.
    Visit("2025-03-12T23:30:00Z", "/late"),
    Visit("2025-03-30T00:30:00Z"),
)


@pytest.fixture(scope="session")
def march_owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The owner of the website that was visited in March 2025."""
    daemon = Daemon(tmp_path_factory.mktemp("march"), command=past.command(VISITS))
    daemon.start()
    yield daemon.client()
    daemon.stop()


def tile(page: Page, name: str) -> Locator:
    return page.locator(".tile").filter(has=page.get_by_text(name, exact=True))


def figures(page: Page) -> list[str]:
    """Return the figures of the tiles, once they are there."""
    expect(page.locator(".tile-figure")).to_have_count(6)
    expect(page.locator(".tiles.stale")).to_have_count(0)
    return page.locator(".tile-figure").all_inner_texts()


def compared(page: Page) -> None:
    """Wait for the previous period: when it arrives, the chart is redrawn."""
    expect(table(page).locator("thead th").nth(7)).to_be_attached()


def plain(text: str) -> str:
    """Return a text without what releases of the browser write differently in dates."""
    dashed = re.sub("\\s*\N{EN DASH}\\s*", "-", text)
    return re.sub(r"\b0(\d:\d\d)", r"\1", dashed.replace(",", ""))


def table(page: Page) -> Locator:
    """The table behind the chart, which is there whether it is shown or not."""
    return page.locator(".overview table")


def cells(page: Page) -> list[list[str]]:
    table(page).locator("tbody tr").first.wait_for(state="attached")
    rows = table(page).locator("tbody tr").all()
    return [[plain(text) for text in row.locator("th, td").all_text_contents()] for row in rows]


def choose(page: Page, menu: str, choice: str) -> None:
    page.get_by_role("button", name=f"{menu}: ").click()
    page.get_by_role("menuitemradio", name=choice).click()


def chart(page: Page) -> Locator:
    return page.get_by_role("group", name="Chart: ")


def point(page: Page, share: float) -> tuple[float, float]:
    """Return the place on the page that lies at a share of the chart's width."""
    box = chart(page).locator(".u-over").bounding_box()
    assert box is not None
    return box["x"] + share * box["width"], box["y"] + box["height"] / 2


def tip(page: Page) -> Locator:
    return page.locator(".tip")
