"""What is behind the change of a tile: sentences, and the parts that changed."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser import past_visits as past
from support.browser.dashboard import DESKTOP_WIDTH, PHONE_WIDTH, SCHEMES, Dashboard
from support.browser.past_visits import Visit
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

MONDAY: Final = datetime(2025, 3, 10, 9, tzinfo=UTC)
WEEK: Final = f"websites/{past.HOSTNAME}?from=2025-03-10&to=2025-03-16&zone=UTC"
GOOGLE: Final = "www.google.com"


def visits_of(week: int) -> list[Visit]:
    """Return the visits of a week, nearly as many as of any other but that of MONDAY."""
    begin = MONDAY + week * timedelta(weeks=1)
    of_guide = 8 if week == 0 else 60 + 3 * (week % 3)
    return [
        Visit(begin.isoformat(), "/guide", referrer=GOOGLE, times=of_guide, paid="20.50"),
        Visit((begin + timedelta(days=1)).isoformat(), referrer=GOOGLE, times=40),
        Visit((begin + timedelta(days=2)).isoformat(), times=80 + week % 4),
    ]


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The owner of a website that lost most visits from Google to /guide in a week."""
    visits = [visit for week in range(-14, 1) for visit in visits_of(week)]
    daemon = Daemon(tmp_path_factory.mktemp("changed"), command=past.command(visits))
    daemon.start()
    owner = daemon.client()
    goal = {"name": "Order", "event": "paid", "revenue": "paid", "currency": "EUR"}
    owner.request("POST", f"/api/websites/{past.HOSTNAME}/goals", goal)
    yield owner
    daemon.stop()


def opened(page: Page, measure: str = "Visits") -> Locator:
    """Open the dialog behind the change of a tile, and wait for what it says."""
    tile = page.locator(".tile").filter(has=page.get_by_text(measure, exact=True))
    tile.locator(".change").click()
    dialog = page.get_by_role("dialog", name="What changed")
    expect(dialog.locator(".changes-said p")).not_to_have_count(0)
    return dialog


def rows(dialog: Locator, name: str) -> list[str]:
    rows = dialog.get_by_role("table", name=name).locator("tbody tr").all()
    return [" ".join(row.inner_text().split()) for row in rows]


def test_sentences_and_parts_say_what_changed(changed: Client, dashboard_of: Make) -> None:
    page = dashboard_of(changed).open(WEEK)
    dialog = opened(page)
    expect(dialog.locator(".changes-said p")).to_have_text(
        [
            "Visits: down by 61, from 189 to 128.",
            "What stands out: source “Google” and entry page “/guide”, down by 58, from 66 to 8.",
        ]
    )
    assert rows(dialog, "What stands out") == ["Source Google Entry page /guide 66 8 -58"]
    assert rows(dialog, "Source") == [
        "Google 106 48 -58",
        "Direct / none 83 80 ≈ About as before -3",
    ]
    # The tile is not chosen by what opens its change.
    assert "measure" not in page.url
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.locator(".tile .change").nth(1)).to_be_focused()


def test_revenue_and_conversions_of_goals(changed: Client, dashboard_of: Make) -> None:
    dialog = opened(dashboard_of(changed).open(WEEK))
    dialog.get_by_label("Figure").select_option("Revenue: Order")
    said = dialog.locator(".changes-said p")
    expect(said.first).to_have_text("Revenue: Order: down by €1,189.00, from €1,353.00 to €164.00.")
    dialog.get_by_label("Figure").select_option("Conversions: Order")
    expect(said.first).to_have_text("Conversions: Order: down by 58, from 66 to 8.")
    # The list of goals counts all of them.
    expect(dialog.get_by_text("Conversions are counted once per visit here.")).to_be_visible()
    dialog.get_by_label("Figure").select_option("Visits")
    expect(dialog.get_by_text("once per visit")).to_have_count(0)


def test_what_does_not_add_up_is_said(changed: Client, dashboard_of: Make) -> None:
    dialog = opened(dashboard_of(changed).open(WEEK), "Bounce rate")
    expect(dialog).to_contain_text("Bounce rate can’t be split")
    expect(dialog.get_by_label("Figure")).to_have_value("visitors")


def test_the_whole_tile_chooses_its_chart(changed: Client, dashboard_of: Make) -> None:
    page = dashboard_of(changed).open(WEEK)
    tile = page.locator(".tile").nth(2)
    expect(tile.locator(".change")).to_be_visible()
    box = tile.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] - 4, box["y"] + box["height"] - 4)
    expect(tile.get_by_role("button", name="Views")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("width", [DESKTOP_WIDTH, PHONE_WIDTH])
def test_it_is_accessible_and_fits(width: int, changed: Client, dashboard_of: Make) -> None:
    viewport = {"width": width, "height": 800}
    dashboard = dashboard_of(changed, viewport=viewport)
    page = dashboard.open(WEEK)
    opened(page)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert dashboard.violations(within="dialog") == []
        assert dashboard.violations(within=".tiles") == []
    assert not dashboard.is_wider_than_the_window()


@pytest.mark.parametrize("language", ["de", "fr", "es", "ja", "zh"])
def test_it_speaks_every_language(language: str, changed: Client, dashboard_of: Make) -> None:
    page = dashboard_of(changed, locale=language, fresh=True).open(WEEK)
    page.locator(".tile .change").nth(1).click()
    said = page.locator(".changes-said p")
    expect(said).to_have_count(2)
    expect(said.last).to_contain_text("/guide")
    for number in ("58", "66", "8"):
        expect(said.last).to_contain_text(number)
