"""The tiles and the chart of a website's page."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from support.browser import past_visits as past
from support.browser.dashboard import Dashboard
from support.browser.overview import (
    THREE_DAYS,
    cells,
    chart,
    compared,
    figures,
    plain,
    point,
    table,
    tile,
    tip,
)
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def test_tiles_show_changes(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    assert figures(page) == ["5", "5", "6", "1.2", "80%", "31s"]
    changes = {
        "Visitors": ("▲150%", "good", "2 in the previous period"),
        "Views": ("▲200%", "good", "2 in the previous period"),
        "Visits": ("▲150%", "good", "2 in the previous period"),
        "Views per visit": ("▲20%", "good", "1 in the previous period"),
        "Bounce rate": ("▼20%", "good", "100% in the previous period"),
        "Time per visit": ("▲91%", "good", "16s in the previous period"),
    }
    for name, (shown, tone, title) in changes.items():
        change = tile(page, name).locator(".change")
        expect(change.locator("[aria-hidden]")).to_have_text(shown)
        expect(change).to_have_class(f"change {tone}")
        expect(change).to_have_attribute("title", title)
    expect(tile(page, "Visitors").locator(".hidden")).to_have_text(
        "150% more than in the previous period"
    )
    assert plain(page.locator(".chart-head p").inner_text()) == (
        "10-12 Mar 2025 · compared with 7-9 Mar 2025"
    )


def test_the_comparison_is_switched_off_and_on(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    compare = page.get_by_role("button", name="Compare")
    expect(compare).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".tiles .change")).to_have_count(6)
    tuesday = ["Tue 11 March 2025", "1", "1", "2", "2", "0%", "50s"]
    assert cells(page)[1] == [*tuesday, "Sat 8 March 2025", "2"]
    compare.click()
    expect(compare).to_have_attribute("aria-pressed", "false")
    expect(page.locator(".tiles .change")).to_have_count(0)
    expect(page.locator(".chart-head")).not_to_contain_text("compared with")
    assert cells(page)[1] == tuesday
    assert "compare=none" in page.url
    page.keyboard.press("c")
    expect(page.locator(".tiles .change")).to_have_count(6)
    assert "compare" not in page.url


def test_rows_tell_how_they_changed(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    pages = page.get_by_role("region", name="Pages", exact=True)
    changes = pages.locator("tbody tr td:nth-child(4)")
    expect(pages.get_by_role("columnheader").last).to_have_text("Change")
    # A page that had no visitors before has no percentage.
    rows = pages.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(changes.filter(has_text="▲")).to_have_count(1)
    first = rows.filter(has=page.get_by_role("button", name="/", exact=True))
    expect(first.locator(".change [aria-hidden]")).to_have_text("▲50%")
    expect(first.locator(".change")).to_have_attribute("title", "2 in the previous period")
    page.keyboard.press("c")
    expect(changes).to_have_count(0)


# The chart.


def test_each_measure_has_a_chart(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    compared(page)
    drawn: set[bytes] = set()
    expected = {
        "Visitors": "2 Visitors",
        "Views": "2 Views",
        "Visits": "2 Visits",
        "Views per visit": "1 Views per visit",
        "Bounce rate": "100% Bounce rate",
        "Time per visit": "12s Time per visit",
    }
    for name, words in expected.items():
        tile(page, name).click()
        expect(tile(page, name)).to_have_attribute("aria-pressed", "true")
        expect(page.get_by_role("group", name=f"Chart: {name}, By day")).to_be_visible()
        page.mouse.move(0, 0)
        expect(tip(page)).to_have_count(0)
        drawn.add(chart(page).locator("canvas").screenshot())
        page.mouse.move(*point(page, 0))
        expect(tip(page)).to_contain_text(words)
        expect(tip(page)).to_contain_text("10 March 2025")
    assert len(drawn) == len(expected) - 1, "there were as many visits as visitors"
    assert page.url.endswith("&measure=visit_duration")


def test_intervals(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    page.get_by_role("button", name="Interval: ").click()
    expect(page.get_by_role("menuitemradio")).to_have_text(["By hour", "By day"])
    page.get_by_role("menuitemradio", name="By hour").click()
    expect(table(page).locator("tbody tr")).to_have_count(72)
    compared(page)
    assert cells(page)[9] == [
        "Mon 10 Mar 9:00",
        *["1", "1", "1", "1", "100%", "20s"],
        *["Fri 7 Mar 9:00", "0"],
    ]
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
    days: str, interval: str, shown: tuple[int, str], march_owner: Client, dashboard_of: Make
) -> None:
    rows, second = shown
    page = dashboard_of(march_owner).turn_to(
        f"websites/{past.HOSTNAME}?{days}&zone=UTC&interval={interval}"
    )
    expect(table(page).locator("tbody tr")).to_have_count(rows)
    assert cells(page)[1][0] == second
    expect(page.get_by_role("group", name=f"Chart: Visitors, By {interval}")).to_be_visible()


def test_the_mouse_shows_values_and_zooms(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    compared(page)
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


def test_dragging_selects_a_range(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(f"{THREE_DAYS}&interval=hour")
    expect(table(page).locator("tbody tr")).to_have_count(72)
    compared(page)
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


def test_the_chart_works_with_the_keyboard(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    compared(page)
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


def test_the_table_behind_the_chart(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    region = page.get_by_role("region", name="By day")
    expect(region.get_by_role("columnheader")).to_have_text(
        [
            "Time",
            "Visitors",
            "Visits",
            "Views",
            "Views per visit",
            "Bounce rate",
            "Time per visit",
            "Previous period",
            "Visitors, Previous period",
        ]
    )
    rows = [
        ["Mon 10 March 2025", "2", "2", "2", "1", "100%", "12s", "Fri 7 March 2025", "0"],
        ["Tue 11 March 2025", "1", "1", "2", "2", "0%", "50s", "Sat 8 March 2025", "2"],
        ["Wed 12 March 2025", "2", "2", "2", "1", "100%", "40s", "Sun 9 March 2025", "0"],
    ]
    assert cells(page) == rows
    assert region.get_by_role("button").count() == 0, "nothing out of sight takes the focus"
    page.get_by_role("button", name="Show as table").click()
    expect(chart(page)).to_have_count(0)
    assert cells(page) == rows
    region.get_by_role("button", name="12 March 2025").click()
    page.wait_for_url("**?from=2025-03-12&to=2025-03-12&zone=UTC")
    expect(tile(page, "Visitors").locator(".tile-figure")).to_have_text("2")


def coloured(page: Page, share: float) -> int:
    """Count the pixels of the chart's line and points at a share of its width."""
    x, _y = point(page, share)
    count: int = page.locator(".chart canvas").evaluate(
        """(canvas, x) => {
          const scale = canvas.width / canvas.clientWidth;
          const left = Math.round((x - canvas.getBoundingClientRect().left) * scale);
          const strip = new OffscreenCanvas(1, canvas.height)
            .getContext("2d", { willReadFrequently: true });
          strip.drawImage(canvas, -left, 0);
          const { data } = strip.getImageData(0, 0, 1, canvas.height);
          let count = 0;
          for (let at = 0; at < data.length; at += 4) {
            const [red, green, blue] = data.subarray(at, at + 3);
            const isFull = data[at + 3] > 200;
            count += isFull && Math.max(red, green, blue) - Math.min(red, green, blue) > 60;
          }
          return count;
        }""",
        x,
    )
    return count


def test_a_day_with_unknown_values(march_owner: Client, dashboard_of: Make) -> None:
    """The 9th had none: its means are unknown, and no line leads through them."""
    page = dashboard_of(march_owner).turn_to(
        f"websites/{past.HOSTNAME}?from=2025-03-08&to=2025-03-12&zone=UTC&compare=none"
    )
    figures(page)
    assert cells(page)[1] == ["Sun 9 March 2025", "0", "0", "0", "-", "-", "-"]
    assert coloured(page, 1 / 8) > 0
    for name in ("Time per visit", "Bounce rate"):
        tile(page, name).click()
        expect(page.get_by_role("group", name=f"Chart: {name}, By day")).to_be_visible()
        assert coloured(page, 1 / 8) == coloured(page, 3 / 8) == 0
        # No line reaches the 8th, which is a single point.
        assert coloured(page, 0) > 0
        assert coloured(page, 5 / 8) > 0
        page.mouse.move(*point(page, 1 / 4))
        expect(tip(page)).to_contain_text(f"\N{EN DASH} {name}")


def test_unknown_values_are_not_compared(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(
        f"websites/{past.HOSTNAME}?from=2025-03-09&to=2025-03-09&zone=UTC"
    )
    assert figures(page) == ["0", "0", "0", *["\N{EN DASH}"] * 3]
    expect(tile(page, "Visitors").locator(".change")).to_have_count(1)
    expect(tile(page, "Bounce rate").locator(".change")).to_have_count(0)


@pytest.mark.parametrize(
    ("filters", "is_by_page"),
    [
        ("", False),
        ("&browser[eq]=Firefox", False),
        ("&path[eq]=/about", False),
        ("&path[contains]=a&path[eq]=/about", False),
        ("&path[contains]=a", True),
        ("&path[neq]=/", True),
        ("&path[in]=/,/about", True),
    ],
)
def test_visitors_of_several_matching_pages_are_explained(
    filters: str, is_by_page: bool, march_owner: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(march_owner).turn_to(f"{THREE_DAYS}{filters}")
    figures(page)
    note = page.locator(".overview").get_by_text("count once for each")
    expect(note).to_have_count(1 if is_by_page else 0)


@pytest.mark.parametrize(
    ("filters", "notes"),
    [
        ("", []),
        ("&browser[eq]=Firefox", []),
        ("&prop_name[eq]=plan", ["first view of the day"]),
        ("&prop_value[contains]=x&path[eq]=/about", ["first view of the page that day"]),
        (
            "&prop_value[neq]=x&path[contains]=a",
            ["count once for each", "first view of the page that day"],
        ),
    ],
)
def test_visitors_under_a_filter_on_events_are_explained(
    filters: str, notes: list[str], march_owner: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(march_owner).turn_to(f"{THREE_DAYS}{filters}")
    figures(page)
    expect(page.locator(".tiles-note")).to_have_count(len(notes))
    expect(page.locator(".tiles-note")).to_contain_text(notes)
