"""The periods and time zones of a website's page."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Request, expect
from support.browser import past_visits as past
from support.browser.dashboard import Dashboard
from support.browser.overview import THREE_DAYS, cells, chart, choose, figures, plain, tile
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

BERLIN: Final = ZoneInfo("Europe/Berlin")
NOW: Final = datetime(2025, 3, 12, 15, 20, 30, tzinfo=BERLIN)
"""The page's time in tests of named periods."""
NEARLY: Final = timedelta(seconds=60)
"""What is shown until now begins and ends within the minute."""


def midnight(days: int = 0, months: int = 0) -> datetime:
    """Return the local midnight of a day relative to today."""
    today = NOW.replace(hour=0, minute=0, second=0, microsecond=0)
    month = today.month - 1 + months
    first = today.replace(year=today.year + month // 12, month=month % 12 + 1, day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    last = (following - timedelta(days=1)).day
    return first.replace(day=min(today.day, last)) + timedelta(days=days)


Named = tuple[str, str, datetime, datetime]

PERIODS: Final[list[Named]] = [
    ("today", "Today", midnight(), NOW),
    ("yesterday", "Yesterday", midnight(-1), midnight()),
    ("24h", "Last 24 hours", NOW - timedelta(days=1), NOW),
    ("7d", "Last 7 days", midnight(-6), NOW),
    ("", "Last 30 days", midnight(-29), NOW),
    ("90d", "Last 90 days", midnight(-89), NOW),
    ("6mo", "Last 6 months", midnight(1, months=-6), NOW),
    ("12mo", "Last 12 months", midnight(1, months=-12), NOW),
]


@pytest.mark.parametrize("period", PERIODS, ids=[period[1] for period in PERIODS])
def test_a_period(period: Named, march_owner: Client, dashboard_of: Make) -> None:
    name, label, start, end = period
    page = dashboard_of(march_owner, now=NOW).turn_to(
        f"websites/{past.HOSTNAME}?period=7d&interval=hour&compare=none"
    )
    figures(page)
    if name == "7d":
        choose(page, "Period", "Today")
        page.wait_for_url("**period=today**")

    def is_asked(request: Request) -> bool:
        asked = parse_qs(urlsplit(request.url).query)
        return "/summary?" in request.url and abs(moment(asked["start"]) - start) < NEARLY

    def moment(texts: list[str]) -> datetime:
        return datetime.fromisoformat(texts[0])

    with page.expect_request(is_asked) as asking:
        choose(page, "Period", label)
    query = parse_qs(urlsplit(asking.value.url).query)
    assert abs(moment(query["end"]) - end) < NEARLY
    assert query["timezone"] == ["Europe/Berlin"]
    answered = asking.value.response()
    assert answered is not None
    views = answered.json()["current"]["pageviews"]
    assert views > 0
    expect(page.locator(".tile-figure").nth(2)).to_have_attribute("title", f"{views:,}")
    expect(page.get_by_role("button", name="Period: ")).to_contain_text(label)
    # The interval of the period before need not fit this one.
    assert page.url.endswith(f"?period={name}&compare=none" if name else "?compare=none")


def test_all_time_begins_with_the_first_visit(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(f"websites/{past.HOSTNAME}?zone=UTC")
    assert figures(page)[:3:2] == ["0", "0"]
    page.keyboard.press("a")
    expect(page.locator(".tile-figure").first).to_have_text("8")
    assert figures(page)[:3:2] == ["8", "9"]
    assert cells(page)[0][0].startswith("March 2025")
    assert page.url.endswith("?period=all&zone=UTC")
    expect(page.get_by_role("button", name="Compare")).to_be_disabled()


def test_a_custom_range(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    choose(page, "Period", "Custom range")
    dialog = page.get_by_role("dialog", name="Custom range")
    expect(dialog.get_by_label("Start date")).to_have_value("2025-03-10")
    expect(dialog.get_by_label("End date")).to_have_value("2025-03-12")
    dialog.get_by_role("button", name="7 March", exact=True).click()
    dialog.get_by_role("button", name="8 March", exact=True).click()
    expect(dialog.get_by_label("Start date")).to_have_value("2025-03-07")
    expect(dialog.get_by_label("End date")).to_have_value("2025-03-08")
    dialog.get_by_role("button", name="Show this range").click()
    page.wait_for_url("**from=2025-03-07&to=2025-03-08&zone=UTC")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("2")
    assert "7-8 Mar 2025" in plain(page.get_by_role("button", name="Period: ").inner_text())


def test_the_range_dialog_keeps_and_restores_the_focus(
    march_owner: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    dialog = page.get_by_role("dialog", name="Custom range")
    for end in ("Escape", "Enter"):
        choose(page, "Period", "Custom range")
        expect(dialog.get_by_label("Start date")).to_be_focused()
        page.keyboard.press(end)
        expect(dialog).to_have_count(0)
        expect(page.get_by_role("button", name="Period: ")).to_be_focused()
    chart(page).focus()
    page.keyboard.press("r")
    dialog.get_by_role("button", name="Close").click()
    expect(chart(page)).to_be_focused()


def test_typed_dates(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    page.keyboard.press("r")
    dialog = page.get_by_role("dialog", name="Custom range")
    dialog.get_by_label("Start date").fill("2025-03-13")
    expect(dialog.get_by_role("alert")).to_have_text("The end date is before the start date.")
    dialog.get_by_role("button", name="Show this range").click()
    expect(dialog).to_be_visible()
    dialog.get_by_label("Start date").fill("2025-03-11")
    dialog.get_by_label("End date").fill("2025-03-11")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("2")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("1")


def test_arrows_step_from_period_to_period(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    assert figures(page)[:3:2] == ["5", "6"]
    page.get_by_role("button", name="Earlier").click()
    page.wait_for_url("**from=2025-03-07&to=2025-03-09&zone=UTC")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("2")
    page.get_by_role("button", name="Later").click()
    page.wait_for_url("**from=2025-03-10&to=2025-03-12&zone=UTC")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("5")


def test_steps_stop_at_now_and_use_the_names_of_periods(
    march_owner: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(march_owner, now=NOW).turn_to(f"websites/{past.HOSTNAME}?period=today")
    figures(page)
    expect(page.get_by_role("button", name="Later")).to_be_disabled()
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**period=yesterday")
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**?from=*&to=*")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**period=yesterday")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**period=today")
    page.keyboard.press("ArrowRight")
    assert page.url.endswith("period=today")


@pytest.mark.parametrize("period", ["yesterday", "7d", "90d", "6mo", "12mo"])
def test_steps_are_reversible(period: str, march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner, now=NOW).turn_to(f"websites/{past.HOSTNAME}?period={period}")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight"):
        shown = page.url
        page.keyboard.press(key)
        page.wait_for_url(lambda url, shown=shown: url != shown)
        assert "?from=" in page.url
    page.keyboard.press("ArrowRight")
    page.wait_for_url(f"**?period={period}")


def test_whole_months_are_stepped_by_months(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(
        f"websites/{past.HOSTNAME}?from=2025-03-01&to=2025-03-31&zone=UTC"
    )
    assert figures(page)[0] == "8"
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**from=2025-02-01&to=2025-02-28&zone=UTC")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("0")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**from=2025-03-01&to=2025-03-31&zone=UTC")


@pytest.mark.parametrize(
    ("zone", "visitors"), [("Europe/Berlin", "1"), ("America/New_York", "2"), ("Asia/Tokyo", "1")]
)
def test_days_are_those_of_the_viewers_zone(
    zone: str, visitors: str, march_owner: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(march_owner, timezone_id=zone).turn_to(
        f"websites/{past.HOSTNAME}?from=2025-03-12&to=2025-03-12"
    )
    assert figures(page)[0] == visitors
    expect(page.get_by_role("button", name="Time zone: ")).to_contain_text(zone.replace("_", " "))


def test_another_zone_is_chosen(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(
        f"websites/{past.HOSTNAME}?from=2025-03-12&to=2025-03-12"
    )
    assert figures(page)[0] == "1"
    assert [row[0] for row in cells(page) if row[1] != "0"] == ["Wed 12 Mar 13:00"]
    page.get_by_role("button", name="Time zone: ").click()
    dialog = page.get_by_role("dialog", name="Time zone")
    dialog.get_by_label("Show times in").fill("Nowhere/Atlantis")
    expect(dialog.get_by_role("status")).to_have_text("There’s no time zone with this name.")
    expect(dialog.get_by_role("button", name="Use this time zone")).to_be_disabled()
    dialog.get_by_label("Show times in").fill("America/New_York")
    dialog.get_by_role("button", name="Use this time zone").click()
    page.wait_for_url("**&zone=America/New_York")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("2")
    assert [row[0] for row in cells(page) if row[1] != "0"] == [
        "Wed 12 Mar 8:00",
        "Wed 12 Mar 19:00",
    ]
    page.keyboard.press("z")
    dialog.get_by_role("button", name="Browser’s time zone: Europe/Berlin").click()
    page.wait_for_url("**?from=2025-03-12&to=2025-03-12")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("1")


def test_the_hour_skipped_by_daylight_saving(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(
        f"websites/{past.HOSTNAME}?from=2025-03-30&to=2025-03-30"
    )
    hours = [(row[0].split()[-1], row[1]) for row in cells(page)]
    assert len(hours) == 23
    assert hours[:4] == [("0:00", "0"), ("1:00", "1"), ("3:00", "0"), ("4:00", "0")]
