"""The head of a website's page: which website, when, how much, and the chart."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

import past
import pytest
from daemon import Client, Daemon
from dashboard import Dashboard
from past import Visit
from playwright.sync_api import Locator, Page, Request, expect

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

BUSY: Final = "websites/gardenpost.example"
THREE_DAYS: Final = f"websites/{past.HOSTNAME}?from=2025-03-10&to=2025-03-12&zone=UTC"
VISITS: Final = (
    Visit("2025-03-08T12:00:00Z", milliseconds=2_000),
    Visit("2025-03-08T13:00:00Z", milliseconds=30_000),
    Visit("2025-03-10T09:15:00Z"),
    Visit("2025-03-10T10:30:00Z", milliseconds=3_000),
    Visit("2025-03-11T09:00:00Z", "/about", milliseconds=40_000),
    Visit("2025-03-11T09:20:00Z", milliseconds=10_000, is_first=False),
    Visit("2025-03-12T12:05:00Z", milliseconds=60_000),
    # In Berlin, this one is of the 13th.
    Visit("2025-03-12T23:30:00Z", "/late"),
    Visit("2025-03-30T00:30:00Z"),
)
BERLIN: Final = ZoneInfo("Europe/Berlin")
LATE: Final = timedelta(seconds=90)
"""How far apart the page's now and the test's may be."""


@pytest.fixture(scope="module")
def owner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """The owner of the website that was visited in March 2025."""
    daemon = Daemon(tmp_path_factory.mktemp("past"), command=past.command(VISITS))
    daemon.start()
    yield daemon.client()
    daemon.stop()


def tile(page: Page, name: str) -> Locator:
    return page.locator(".tile").filter(has_text=name)


def figures(page: Page) -> list[str]:
    """Give the four figures, once they are there."""
    expect(page.locator(".tile-figure")).to_have_count(4)
    expect(page.locator(".tiles.stale")).to_have_count(0)
    return page.locator(".tile-figure").all_inner_texts()


def plain(text: str) -> str:
    """Give a text without what releases of the browser write differently in dates."""
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
    """Give the place on the page that lies at a share of the chart's width."""
    box = chart(page).locator(".u-over").bounding_box()
    assert box is not None
    return box["x"] + share * box["width"], box["y"] + box["height"] / 2


def tip(page: Page) -> Locator:
    return page.locator(".tip")


# Which website, and who is there.


def test_websites_are_switched(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(f"{BUSY}?period=7d&browser[eq]=Firefox")
    figures(page)
    page.get_by_role("button", name="Switch website").click()
    names = page.get_by_role("menu").get_by_role("menuitemradio")
    assert [name.strip() for name in names.all_inner_texts()] == [
        website["hostname"] for website in demo.get("/api/websites")
    ]
    expect(page.get_by_role("menuitemradio", checked=True)).to_be_focused()
    page.keyboard.press("d")
    expect(page.get_by_role("menuitemradio", name="docs.tinydaemon.example")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("docs.tinydaemon.example")
    expect(page).to_have_title("docs.tinydaemon.example · medamad")
    # The time goes along; what is asked of one website need not be there on another.
    assert page.url.endswith("/websites/docs.tinydaemon.example?period=7d")
    page.keyboard.press("s")
    page.get_by_role("menuitem", name="Script and setup").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Set up docs.tinydaemon.example")
    page.go_back()
    figures(page)
    page.keyboard.press("s")
    expect(page.get_by_role("menuitemradio", checked=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Switch website")).to_be_focused()
    page.keyboard.press("s")
    page.get_by_role("menuitem", name="Websites").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Websites")


def test_visitors_now(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    page = dashboard_of(owner).open("websites/example.com")
    expect(page.locator(".live")).to_have_text("0 visitors now")
    for beacon, said in (("one", "1 visitor now"), ("two", "2 visitors now")):
        load = {"e": "load", "b": beacon, "u": "https://example.com/", "p": True, "q": True}
        assert owner.request("POST", "/api/event/hit", load).status == 204
        page.keyboard.press(".")
        expect(page.locator(".live")).to_have_text(said)
    assert (
        owner.request("POST", "/api/event/hit", {"e": "unload", "b": "one", "m": 5}).status == 204
    )
    page.keyboard.press(".")
    expect(page.locator(".live")).to_have_text("1 visitor now")


def test_a_website_that_is_not_there(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open("websites/nowhere.example")
    expect(page.get_by_role("heading", level=1)).to_have_text(
        "No website nowhere.example is registered here."
    )
    page.get_by_role("link", name="To the websites").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Websites")


# When.


def midnight(days: int = 0, months: int = 0) -> datetime:
    """Give the local midnight that a day lies from today's."""
    today = datetime.now(BERLIN).replace(hour=0, minute=0, second=0, microsecond=0)
    month = today.month - 1 + months
    first = today.replace(year=today.year + month // 12, month=month % 12 + 1, day=1)
    following = (first + timedelta(days=32)).replace(day=1)
    last = (following - timedelta(days=1)).day
    return first.replace(day=min(today.day, last)) + timedelta(days=days)


def now() -> datetime:
    return datetime.now(UTC)


Named = tuple[str, str, Callable[[], datetime], Callable[[], datetime]]

PERIODS: Final[list[Named]] = [
    ("today", "Today", midnight, now),
    ("yesterday", "Yesterday", lambda: midnight(-1), midnight),
    ("24h", "Last 24 hours", lambda: now() - timedelta(days=1), now),
    ("7d", "Last 7 days", lambda: midnight(-6), now),
    ("", "Last 30 days", lambda: midnight(-29), now),
    ("90d", "Last 90 days", lambda: midnight(-89), now),
    ("6mo", "Last 6 months", lambda: midnight(1, months=-6), now),
    ("12mo", "Last 12 months", lambda: midnight(1, months=-12), now),
]


@pytest.mark.parametrize("period", PERIODS, ids=[period[1] for period in PERIODS])
def test_a_period(period: Named, demo: Client, dashboard_of: Make) -> None:
    name, label, start, end = period
    page = dashboard_of(demo).open(f"{BUSY}?period=yesterday&interval=minute&compare=none")
    figures(page)
    if name == "yesterday":
        choose(page, "Period", "Today")
        page.wait_for_url("**period=today**")

    def is_asked(request: Request) -> bool:
        asked = parse_qs(urlsplit(request.url).query)
        return "/summary?" in request.url and abs(moment(asked["start"]) - start()) < LATE

    def moment(texts: list[str]) -> datetime:
        return datetime.fromisoformat(texts[0])

    with page.expect_request(is_asked) as asking:
        choose(page, "Period", label)
    query = parse_qs(urlsplit(asking.value.url).query)
    assert abs(moment(query["end"]) - end()) < LATE
    assert query["timezone"] == ["Europe/Berlin"]
    answered = asking.value.response()
    assert answered is not None
    current = answered.json()["current"]
    expect(page.locator(".tile-figure").nth(1)).to_have_attribute(
        "title", f"{current['pageviews']:,}"
    )
    expect(page.get_by_role("button", name="Period: ")).to_contain_text(label)
    # The interval of the period before need not fit this one.
    assert page.url.endswith(f"?period={name}&compare=none" if name else "?compare=none")


def test_all_time_begins_with_the_first_visit(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(f"websites/{past.HOSTNAME}?zone=UTC")
    assert figures(page)[:2] == ["0", "0"]
    page.keyboard.press("a")
    expect(page.locator(".tile-figure").first).to_have_text("8")
    assert figures(page)[:2] == ["8", "9"]
    assert cells(page)[0][0].startswith("March 2025")
    assert page.url.endswith("?period=all&zone=UTC")
    expect(page.get_by_role("button", name="Compare")).to_be_disabled()


def test_a_range_of_the_calendar(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    figures(page)
    choose(page, "Period", "Choose days")
    dialog = page.get_by_role("dialog", name="Choose days")
    expect(dialog.get_by_label("First day")).to_have_value("2025-03-10")
    expect(dialog.get_by_label("Last day")).to_have_value("2025-03-12")
    dialog.get_by_role("button", name="7 March", exact=True).click()
    dialog.get_by_role("button", name="8 March", exact=True).click()
    expect(dialog.get_by_label("First day")).to_have_value("2025-03-07")
    expect(dialog.get_by_label("Last day")).to_have_value("2025-03-08")
    dialog.get_by_role("button", name="Show these days").click()
    page.wait_for_url("**from=2025-03-07&to=2025-03-08&zone=UTC")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("2")
    assert "7-8 Mar 2025" in plain(page.get_by_role("button", name="Period: ").inner_text())


def test_days_that_are_typed(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    figures(page)
    page.keyboard.press("r")
    dialog = page.get_by_role("dialog", name="Choose days")
    dialog.get_by_label("First day").fill("2025-03-13")
    expect(dialog.get_by_role("alert")).to_have_text("The last day lies before the first.")
    dialog.get_by_role("button", name="Show these days").click()
    expect(dialog).to_be_visible()
    dialog.get_by_label("First day").fill("2025-03-11")
    dialog.get_by_label("Last day").fill("2025-03-11")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("2")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("1")


def test_arrows_step_from_period_to_period(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    assert figures(page)[:2] == ["5", "6"]
    page.get_by_role("button", name="Earlier").click()
    page.wait_for_url("**from=2025-03-07&to=2025-03-09&zone=UTC")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("2")
    page.get_by_role("button", name="Later").click()
    page.wait_for_url("**from=2025-03-10&to=2025-03-12&zone=UTC")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("5")


def test_steps_end_at_now_and_know_the_names(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(f"websites/{past.HOSTNAME}?period=today")
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
def test_steps_come_back_to_where_they_began(
    period: str, owner: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(owner).open(f"websites/{past.HOSTNAME}?period={period}")
    for key in ("ArrowLeft", "ArrowLeft", "ArrowRight"):
        shown = page.url
        page.keyboard.press(key)
        page.wait_for_url(lambda url, shown=shown: url != shown)
        assert "?from=" in page.url
    page.keyboard.press("ArrowRight")
    page.wait_for_url(f"**?period={period}")


def test_whole_months_are_stepped_by_months(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(
        f"websites/{past.HOSTNAME}?from=2025-03-01&to=2025-03-31&zone=UTC"
    )
    assert figures(page)[0] == "8"
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**from=2025-02-01&to=2025-02-28&zone=UTC")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("0")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**from=2025-03-01&to=2025-03-31&zone=UTC")


# In which zone.


@pytest.mark.parametrize(
    ("zone", "visitors"), [("Europe/Berlin", "1"), ("America/New_York", "2"), ("Asia/Tokyo", "1")]
)
def test_days_are_those_of_the_viewers_zone(
    zone: str, visitors: str, owner: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(owner, timezone_id=zone).open(
        f"websites/{past.HOSTNAME}?from=2025-03-12&to=2025-03-12"
    )
    assert figures(page)[0] == visitors
    expect(page.get_by_role("button", name="Time zone: ")).to_contain_text(zone.replace("_", " "))


def test_another_zone_is_chosen(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(f"websites/{past.HOSTNAME}?from=2025-03-12&to=2025-03-12")
    assert figures(page)[0] == "1"
    assert [row[0] for row in cells(page) if row[1] != "0"] == ["Wed 12 Mar 13:00"]
    page.get_by_role("button", name="Time zone: ").click()
    dialog = page.get_by_role("dialog", name="Time zone")
    dialog.get_by_label("Show times in").fill("Nowhere/Atlantis")
    expect(dialog.get_by_role("status")).to_have_text("There is no time zone of this name.")
    expect(dialog.get_by_role("button", name="Use this zone")).to_be_disabled()
    dialog.get_by_label("Show times in").fill("America/New_York")
    dialog.get_by_role("button", name="Use this zone").click()
    page.wait_for_url("**&zone=America/New_York")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("2")
    assert [row[0] for row in cells(page) if row[1] != "0"] == [
        "Wed 12 Mar 8:00",
        "Wed 12 Mar 19:00",
    ]
    page.keyboard.press("z")
    dialog.get_by_role("button", name="Your own: Europe/Berlin").click()
    page.wait_for_url("**?from=2025-03-12&to=2025-03-12")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("1")


def test_the_hour_that_daylight_saving_takes(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(f"websites/{past.HOSTNAME}?from=2025-03-30&to=2025-03-30")
    hours = [(row[0].split()[-1], row[1]) for row in cells(page)]
    assert len(hours) == 23
    assert hours[:4] == [("0:00", "0"), ("1:00", "1"), ("3:00", "0"), ("4:00", "0")]


# How much, and compared with what.


def test_tiles_tell_how_figures_changed(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    assert figures(page) == ["5", "6", "20s", "20%"]
    changes = {
        "Visitors": ("▲150%", "good", "2 in the period before"),
        "Views": ("▲200%", "good", "2 in the period before"),
        "Time on page": ("▲25%", "good", "16s in the period before"),
        "Bounce rate": ("▼60%", "good", "50% in the period before"),
    }
    for name, (shown, tone, title) in changes.items():
        change = tile(page, name).locator(".change")
        expect(change.locator("[aria-hidden]")).to_have_text(shown)
        expect(change).to_have_class(f"change {tone}")
        expect(change).to_have_attribute("title", title)
    expect(tile(page, "Visitors").locator(".hidden")).to_have_text(
        "150% more than in the period before"
    )
    assert plain(page.locator(".chart-head p").inner_text()) == (
        "10-12 Mar 2025 · compared with 7-9 Mar 2025"
    )


def test_the_comparison_is_switched_off_and_on(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    figures(page)
    compare = page.get_by_role("button", name="Compare")
    expect(compare).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".change")).to_have_count(4)
    assert cells(page)[1] == ["Tue 11 March 2025", "1", "2", "25s", "0%", "Sat 8 March 2025", "2"]
    compare.click()
    expect(compare).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".change")).to_have_count(0)
    expect(page.locator(".chart-head")).not_to_contain_text("compared with")
    assert cells(page)[1] == ["Tue 11 March 2025", "1", "2", "25s", "0%"]
    assert "compare=none" in page.url
    page.keyboard.press("c")
    expect(page.locator(".change")).to_have_count(4)
    assert "compare" not in page.url


# The chart.


def test_each_measure_is_drawn(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    figures(page)
    drawn: set[bytes] = set()
    said = {
        "Visitors": "2 Visitors",
        "Views": "2 Views",
        "Time on page": "12s Time on page",
        "Bounce rate": "50% Bounce rate",
    }
    for name, words in said.items():
        tile(page, name).click()
        expect(tile(page, name)).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_role("group", name=f"Chart: {name}, By day")).to_be_visible()
        page.mouse.move(0, 0)
        expect(tip(page)).to_have_count(0)
        drawn.add(chart(page).locator("canvas").screenshot())
        page.mouse.move(*point(page, 0))
        expect(tip(page)).to_contain_text(words)
        expect(tip(page)).to_contain_text("10 March 2025")
    assert len(drawn) == len(said)
    assert page.url.endswith("&measure=bounce_percentage")


def test_intervals(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    page.get_by_role("button", name="Interval: ").click()
    offered = page.get_by_role("menuitemradio").all_inner_texts()
    assert [name.strip() for name in offered] == ["By hour", "By day"]
    page.get_by_role("menuitemradio", name="By hour").click()
    expect(table(page).locator("tbody tr")).to_have_count(72)
    assert cells(page)[9] == ["Mon 10 Mar 9:00", "1", "1", "20s", "0%", "Fri 7 Mar 9:00", "0"]
    assert page.url.endswith("&interval=hour")
    expect(page.get_by_role("group", name="Chart: Visitors, By hour")).to_be_visible()


@pytest.mark.parametrize(
    ("days", "interval", "shown"),
    [
        ("from=2025-03-10T09:00&to=2025-03-10T11:00", "minute", (120, "10 Mar 9:01")),
        ("from=2025-03-01&to=2025-03-31", "week", (6, "3-9 Mar 2025")),
        ("from=2025-01-01&to=2025-03-31", "month", (3, "February 2025")),
    ],
)
def test_an_interval_of_a_period(
    days: str, interval: str, shown: tuple[int, str], owner: Client, dashboard_of: Make
) -> None:
    rows, second = shown
    page = dashboard_of(owner).open(f"websites/{past.HOSTNAME}?{days}&zone=UTC&interval={interval}")
    expect(table(page).locator("tbody tr")).to_have_count(rows)
    assert cells(page)[1][0] == second
    expect(page.get_by_role("group", name=f"Chart: Visitors, By {interval}")).to_be_visible()


def test_the_mouse_tells_and_zooms(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    figures(page)
    page.mouse.move(*point(page, 0.5))
    expect(tip(page)).to_contain_text("1 Visitors")
    assert plain(tip(page).inner_text()).splitlines() == [
        "1 Visitors",
        "Tue 11 March 2025",
        "2 Sat 8 March 2025",
    ]
    page.mouse.click(*point(page, 0.5))
    page.wait_for_url("**?from=2025-03-11&to=2025-03-11&zone=UTC")
    expect(page.get_by_role("group", name="Chart: Visitors, By hour")).to_be_visible()
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("2")
    # The chart did not take the keys.
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**?from=2025-03-10&to=2025-03-10&zone=UTC")


def test_a_part_is_drawn_out(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(f"{THREE_DAYS}&interval=hour")
    expect(table(page).locator("tbody tr")).to_have_count(72)
    page.mouse.move(*point(page, 9 / 71))
    page.mouse.down()
    page.mouse.move(*point(page, 20 / 71))
    page.mouse.move(*point(page, 33 / 71))
    page.mouse.up()
    page.wait_for_url("**?from=2025-03-10T09:00&to=2025-03-11T10:00&zone=UTC")
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("4")
    expect(page.get_by_role("button", name="Period: ")).to_contain_text("10 Mar 2025")
    page.keyboard.press("ArrowRight")
    page.wait_for_url("**?from=2025-03-11T10:00&to=2025-03-12T11:00&zone=UTC")


def test_keys_move_along_the_chart(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    figures(page)
    chart(page).focus()
    page.keyboard.press("ArrowLeft")
    expect(tip(page)).to_contain_text("12 March 2025")
    page.keyboard.press("ArrowLeft")
    expect(tip(page)).to_contain_text("11 March 2025")
    page.keyboard.press("Home")
    expect(tip(page)).to_contain_text("10 March 2025")
    page.keyboard.press("ArrowLeft")
    expect(tip(page)).to_contain_text("10 March 2025")
    page.keyboard.press("End")
    expect(tip(page)).to_contain_text("12 March 2025")
    page.keyboard.press("Escape")
    expect(tip(page)).to_have_count(0)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**?from=2025-03-11&to=2025-03-11&zone=UTC")
    expect(chart(page)).to_be_focused()


def test_the_table_behind_the_chart(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    figures(page)
    region = page.get_by_role("region", name="By day")
    assert region.get_by_role("columnheader").all_text_contents() == [
        "Time",
        "Visitors",
        "Views",
        "Time on page",
        "Bounce rate",
        "Period before",
        "Visitors, Period before",
    ]
    rows = [
        ["Mon 10 March 2025", "2", "2", "12s", "50%", "Fri 7 March 2025", "0"],
        ["Tue 11 March 2025", "1", "2", "25s", "0%", "Sat 8 March 2025", "2"],
        ["Wed 12 March 2025", "2", "2", "40s", "0%", "Sun 9 March 2025", "0"],
    ]
    assert cells(page) == rows
    assert region.get_by_role("button").count() == 0, "nothing out of sight takes the focus"
    page.get_by_role("button", name="Show as a table").click()
    expect(chart(page)).to_have_count(0)
    assert cells(page) == rows
    region.get_by_role("button", name="12 March 2025").click()
    page.wait_for_url("**?from=2025-03-12&to=2025-03-12&zone=UTC")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("2")


# The address.


def test_back_and_forward(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    visitors = tile(page, "Visitors").locator(".tile-figure")
    expect(visitors).to_have_text("5")
    page.keyboard.press("ArrowLeft")
    expect(visitors).to_have_text("2")
    page.keyboard.press("c")
    expect(page.get_by_role("button", name="Compare")).to_have_attribute("aria-pressed", "false")
    page.go_back()
    expect(page.get_by_role("button", name="Compare")).to_have_attribute("aria-pressed", "true")
    page.go_back()
    expect(visitors).to_have_text("5")
    page.go_forward()
    expect(visitors).to_have_text("2")


def test_a_copied_link_shows_the_same(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(THREE_DAYS)
    figures(page)
    tile(page, "Views").click()
    choose(page, "Interval", "By hour")
    page.keyboard.press("c")
    page.locator(".panel").first.get_by_role("button", name="/about", exact=True).click()
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("1")
    expect(table(page).locator("tbody tr")).to_have_count(72)
    elsewhere = dashboard_of(owner, timezone_id="Asia/Tokyo")
    other = elsewhere.open(page.url.removeprefix(f"{elsewhere.base}/dashboard/"))
    expect(table(other).locator("tbody tr")).to_have_count(72)
    assert figures(other) == figures(page)
    assert cells(other) == cells(page)
    expect(tile(other, "Views")).to_have_attribute("aria-pressed", "true")
    expect(other.get_by_role("group", name="Chart: Views, By hour")).to_be_visible()
    expect(other.get_by_role("button", name="Remove: Page is /about")).to_be_visible()


@pytest.mark.parametrize(
    "query",
    [
        "period=fortnight",
        "from=2025-03-12&to=2025-03-10",
        "from=2025-02-30&to=2025-03-10",
        "from=2025-03-10",
        "from=2025-03-10T09:00&to=2025-03-10T09:00",
        "zone=Nowhere/Atlantis&measure=joy&interval=second&compare=all",
    ],
)
def test_what_an_address_cannot_mean(query: str, owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(f"websites/{past.HOSTNAME}?{query}")
    assert figures(page)[0] == "0"
    expect(page.get_by_role("button", name="Period: ")).to_contain_text("Last 30 days")
    expect(page.get_by_role("button", name="Time zone: ")).to_contain_text("Europe/Berlin")
    expect(page.get_by_role("button", name="Compare")).to_have_attribute("aria-pressed", "true")
    expect(tile(page, "Visitors")).to_have_attribute("aria-pressed", "true")


@pytest.mark.parametrize("query", ["", "?period=all", "?period=24h", "?period=12mo"])
def test_a_website_without_visits(query: str, owner: Client, dashboard_of: Make) -> None:
    owner.request("POST", "/api/websites", {"hostname": "empty.example"})
    page = dashboard_of(owner).open(f"websites/empty.example{query}")
    assert figures(page) == ["0", "0", "0s", "0%"]
    expect(page.locator(".overview").get_by_text("No visits in this period")).to_be_visible()
    expect(page.locator(".change")).to_have_count(0)
    expect(page.locator(".overview .skeleton")).to_have_count(0)


def test_a_range_that_has_not_begun_is_passed_over(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(f"{BUSY}?from=2999-11-20&to=2999-11-21")
    figures(page)
    expect(page.get_by_role("button", name="Period: ")).to_contain_text("Last 30 days")
    # There is no visit before these days.
    expect(page.locator(".overview")).not_to_contain_text("compared with")
