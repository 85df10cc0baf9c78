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


def test_figures_and_their_changes_are_shown(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    assert figures(page) == ["5", "5", "6", "1.2", "80%", "31s"]
    compared(page)
    expect(page.locator(".tiles .change [aria-hidden]")).to_have_text(
        ["▲150%", "▲150%", "▲200%", "▲20%", "▼20%", "▲91%"]
    )
    assert plain(page.locator(".chart-head p").inner_text()) == (
        "10-12 Mar 2025 · compared with 7-9 Mar 2025"
    )
    tuesday = ["Tue 11 March 2025", "1", "1", "2", "2", "0%", "50s", "Sat 8 March 2025", "2"]
    assert cells(page)[1] == tuesday
    rows = page.get_by_role("region", name="Pages", exact=True).locator("tbody tr")
    first = rows.filter(has=page.get_by_role("button", name="/", exact=True))
    expect(first.locator(".change [aria-hidden]")).to_have_text("▲50%")


# The chart.


def test_the_mouse_shows_values_and_zooms(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    compared(page)
    visitors = chart(page).locator("canvas").screenshot()
    page.mouse.move(*point(page, 0.5))
    expect(tip(page)).to_contain_text("1 Visitors")
    assert plain(tip(page).inner_text()).splitlines() == [
        "1 Visitors",
        "Tue 11 March 2025",
        "2 ▼50%",
        "50% less than in the comparison period",
        "Sat 8 March 2025",
    ]
    tile(page, "Time per visit").click()
    expect(page.get_by_role("group", name="Chart: Time per visit, By day")).to_be_visible()
    expect(tip(page)).to_have_count(0)
    assert chart(page).locator("canvas").screenshot() != visitors
    page.mouse.move(*point(page, 0.5))
    expect(tip(page)).to_contain_text("50s Time per visit")
    page.mouse.click(*point(page, 0.5))
    page.wait_for_url("**?from=2025-03-11&to=2025-03-11&zone=UTC&measure=visit_duration")
    expect(page.get_by_role("group", name="Chart: Time per visit, By hour")).to_be_visible()
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("2")
    # The chart did not take the keys.
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**?from=2025-03-10&to=2025-03-10&zone=UTC&measure=visit_duration")


def test_dragging_selects_a_range(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(f"{THREE_DAYS}&interval=hour")
    expect(table(page).locator("tbody tr")).to_have_count(72)
    compared(page)
    assert cells(page)[9] == [
        "Mon 10 Mar 9:00",
        *["1", "1", "1", "1", "100%", "20s"],
        *["Fri 7 Mar 9:00", "0"],
    ]
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
