"""The intervals of the chart, and how they are compared with the previous period."""

from collections.abc import Callable, Iterator
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser import past_visits as past
from support.browser.dashboard import Dashboard
from support.browser.overview import UNPAIRED, compared, plain, visited
from support.browser.past_visits import Visit
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

VISITS: Final = (
    Visit("2025-09-30T12:00:00Z"),
    *(Visit(f"2025-10-{day}T12:00:00Z") for day in (13, 14, 21, 25, 31)),
    Visit("2025-10-25T00:30:00Z"),
    *(Visit(f"2025-10-26T00:{minute}:00Z") for minute in (10, 30)),
    Visit("2025-10-26T01:30:00Z"),
    Visit("2025-10-26T02:30:00Z"),
    *(Visit(f"2025-11-0{day}T12:00:00Z") for day in (1, 2, 4, 5)),
    Visit("2025-11-18T12:00:00Z"),
)
CLOCK_CHANGE: Final = "from=2025-10-26&to=2025-10-26&zone=Europe/Berlin"
FIRST: Final = "2025-10-26T02:00+02:00"
SECOND: Final = "2025-10-26T02:00+01:00"


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The owner of the website that was visited in autumn 2025."""
    with visited(tmp_path_factory.mktemp("autumn"), VISITS) as owner:
        yield owner


def opened(dashboard: Dashboard, query: str) -> Page:
    return dashboard.turn_to(f"websites/{past.HOSTNAME}?{query}")


def rows(page: Page) -> list[list[str]]:
    """Return the table behind the chart: time, visitors, the time compared with, its visitors."""
    lines = page.locator(".overview tbody tr")
    lines.first.wait_for(state="attached")
    texts = [line.locator("th, td").all_text_contents() for line in lines.all()]
    return [[plain(cell) for cell in (*row[:2], *row[7:])] for row in texts]


def press(page: Page, *keys: str) -> None:
    page.get_by_role("group", name="Chart: ").focus()
    for key in keys:
        page.keyboard.press(key)


def visitors(page: Page) -> Locator:
    """Return the visitors of what is shown now, once they are there."""
    expect(page.locator(".tiles.stale")).to_have_count(0)
    return page.locator(".tile-figure").first


def test_misaligned_weeks_are_not_compared(owner: Client, dashboard_of: Make) -> None:
    page = opened(
        dashboard_of(owner), "from=2025-11-01&to=2025-11-20&interval=week&zone=Europe/Berlin"
    )
    expect(page.get_by_text(UNPAIRED)).to_be_visible()
    assert rows(page) == [
        ["1-2 Nov 2025", "2"],
        ["3-9 Nov 2025", "2"],
        ["10-16 Nov 2025", "0"],
        ["17-20 Nov 2025", "1"],
    ]
    press(page, "Home")
    expect(page.locator(".tip")).to_contain_text("2 Visitors")
    expect(page.locator(".tip-before")).to_have_count(0)
    expect(page.locator(".change")).not_to_have_count(0)


def test_aligned_weeks_are_compared(owner: Client, dashboard_of: Make) -> None:
    page = opened(
        dashboard_of(owner), "from=2025-10-30&to=2025-11-19&interval=week&zone=Europe/Berlin"
    )
    compared(page)
    assert rows(page) == [
        ["30 Oct-2 Nov 2025", "3", "9-12 Oct 2025", "0"],
        ["3-9 Nov 2025", "2", "13-19 Oct 2025", "2"],
        ["10-16 Nov 2025", "0", "20-26 Oct 2025", "7"],
        ["17-19 Nov 2025", "1", "27-29 Oct 2025", "0"],
    ]
    expect(page.get_by_text(UNPAIRED)).to_have_count(0)


def test_months_cut_alike_are_compared(owner: Client, dashboard_of: Make) -> None:
    page = opened(
        dashboard_of(owner), "from=2025-11-01&to=2025-11-30&interval=day&zone=Europe/Berlin"
    )
    compared(page)
    assert rows(page)[0] == ["Sat 1 November 2025", "1", "Wed 1 October 2025", "0"]
    page = opened(
        dashboard_of(owner), "from=2025-10-01&to=2025-10-31&interval=day&zone=Europe/Berlin"
    )
    compared(page)
    assert rows(page)[29][2:] == ["Tue 30 September 2025", "1"]
    assert rows(page)[30][2:] == ["", ""]


def test_the_last_six_months_are_compared(owner: Client, dashboard_of: Make) -> None:
    page = opened(dashboard_of(owner, now="2026-04-10T12:00:00Z"), "period=6mo&zone=Europe/Berlin")
    expect(page.get_by_role("group", name="Chart: Visitors, By day")).to_be_visible()
    compared(page)
    expect(page.get_by_text(UNPAIRED)).to_have_count(0)


def test_hours_are_compared_by_the_clock(owner: Client, dashboard_of: Make) -> None:
    page = opened(dashboard_of(owner), CLOCK_CHANGE)
    compared(page)
    found = rows(page)
    assert len(found) == 25
    assert found[2:5] == [
        ["Sun 26 Oct 2:00", "2", "Sat 25 Oct 2:00", "1"],
        ["Sun 26 Oct 2:00", "1", "Sat 25 Oct 2:00", "1"],
        ["Sun 26 Oct 3:00", "1", "Sat 25 Oct 3:00", "0"],
    ]
    assert found[24][2] == "Sat 25 Oct 23:00"


@pytest.mark.parametrize(
    ("place", "times", "shown"),
    [(2, (FIRST, SECOND), "2"), (3, (SECOND, "2025-10-26T03:00"), "1")],
)
def test_a_repeated_hour_is_shown_separately(
    place: int, times: tuple[str, str], shown: str, owner: Client, dashboard_of: Make
) -> None:
    page = opened(dashboard_of(owner), CLOCK_CHANGE)
    compared(page)
    press(page, "Home", *["ArrowRight"] * place, "Enter")
    start, end = (time.replace("+", "%2B") for time in times)
    page.wait_for_url(f"**?from={start}&to={end}&zone=Europe/Berlin")
    expect(visitors(page)).to_have_text(shown)
    # In a zone that repeats nothing, there is an hour still.
    elsewhere = opened(dashboard_of(owner), f"from={start}&to={end}&zone=UTC")
    expect(visitors(elsewhere)).not_to_be_empty()


@pytest.mark.parametrize(
    ("key", "expected", "query"),
    [
        ("Home", ("6", "25-26 Oct 2025"), "from=2025-10-25&to=2025-10-26"),
        ("End", ("1", "17-20 Nov 2025"), "from=2025-11-17&to=2025-11-20"),
    ],
)
def test_a_partial_week_is_shown_as_counted(
    key: str, expected: tuple[str, str], query: str, owner: Client, dashboard_of: Make
) -> None:
    shown, label = expected
    page = opened(
        dashboard_of(owner), "from=2025-10-25&to=2025-11-20&interval=week&zone=Europe/Berlin"
    )
    compared(page)
    press(page, key)
    assert plain(page.locator(".tip").inner_text()).splitlines()[:2] == [f"{shown} Visitors", label]
    page.keyboard.press("Enter")
    page.wait_for_url(f"**?{query}&zone=Europe/Berlin")
    expect(visitors(page)).to_have_text(shown)


def test_a_partial_first_hour_is_shown_as_counted(owner: Client, dashboard_of: Make) -> None:
    page = opened(dashboard_of(owner, now="2025-10-26T12:20:30Z"), "period=24h")
    compared(page)
    assert rows(page)[0][:2] == ["Sat 25 Oct 14:21-15:00", "0"]
    press(page, "Home")
    expect(page.locator(".tip")).to_contain_text("14:21")
    page.keyboard.press("Enter")
    page.wait_for_url("**?from=2025-10-25T14:21&to=2025-10-25T15:00")
    expect(visitors(page)).to_have_text("0")


def test_stepping_returns_to_the_last_24_hours(owner: Client, dashboard_of: Make) -> None:
    page = opened(dashboard_of(owner), "period=24h")
    later = page.get_by_role("button", name="Later")
    expect(later).to_be_disabled()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**?from=*&to=*")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**?period=24h")
    expect(later).to_be_disabled()
    page.keyboard.press("ArrowRight")
    assert page.url.endswith("?period=24h")


def test_the_axis_labels_a_partial_first_week(owner: Client, dashboard_of: Make) -> None:
    """The 1st of October 2025 is a Wednesday; its week began in September."""
    dashboard = dashboard_of(owner, fresh=True)
    dashboard.page.add_init_script(
        """const { fillText } = CanvasRenderingContext2D.prototype;
        globalThis.written = [];
        CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
          written.push(text);
          return fillText.call(this, text, ...place);
        };"""
    )
    page = opened(dashboard, "from=2025-10-01&to=2025-10-31&zone=UTC&interval=week")
    rows(page)
    page.wait_for_function("written.includes('6 Oct')")
    written = page.evaluate("written")
    assert "1 Oct" in written
    assert "29 Sept" not in written
