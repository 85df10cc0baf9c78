"""What a website's page is compared with, and how the chart shows it."""

import re
from collections.abc import Callable, Sequence
from typing import Final, Literal
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, Request, expect
from support.browser import past_visits as past
from support.browser.dashboard import BUSY, Dashboard, loaded
from support.browser.overview import (
    THREE_DAYS,
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

COMPARISONS: Final = ("", "&compare=year", "&compare=2025-01-01..2025-01-30", "&weekdays=false")
VISIONS: Final = {
    "usual": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
"""Linear RGB as it is seen (Machado, Oliveira and Fernandes, 2009)."""
TO_XYZ: Final = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))
WHITE: Final = (0.9505, 1.0, 1.089)
TOLD_APART: Final = 30.0
"""A difference in CIELAB; the grey of the previous period used to be at 8 from the accent."""


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_every_figure_is_compared_with_the_same_span(
    demo: Client, dashboard_of: Make, comparison: str
) -> None:
    spans: dict[str, set[str]] = {}

    def note(request: Request) -> None:
        address = urlsplit(request.url)
        query = dict(parse_qsl(address.query))
        if "start" in query:
            spans.setdefault(address.path.split("/")[-1], set()).add(query["start"])

    dashboard = dashboard_of(demo)
    page = dashboard.page
    page.on("request", note)
    dashboard.turn_to(f"{BUSY}?period=last-week&zone=UTC{comparison}")
    loaded(page)
    page.wait_for_load_state("networkidle")
    starts = set().union(*spans.values())
    assert {"summary", "pages", "referrers", "countries", "browsers"} <= set(spans)
    assert len(starts) == 2, spans
    assert spans["summary"] == spans["pages"] == spans["referrers"] == starts


def test_a_range_of_its_own_is_compared(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    page.keyboard.press("v")
    page.keyboard.press("r")
    dialog = page.get_by_role("dialog", name="Custom comparison")
    expect(dialog.get_by_label("Start date")).to_have_value("2025-03-07")
    dialog.get_by_label("Start date").fill("2025-03-08")
    dialog.get_by_label("End date").fill("2025-03-08")
    dialog.get_by_role("button", name="Compare").click()
    page.wait_for_url("**?from=2025-03-10&to=2025-03-12&zone=UTC&compare=2025-03-08..2025-03-08")
    expect(tile(page, "Visitors").locator(".change")).to_have_text(re.compile("▲150%"))
    expect(page.locator(".chart-head p")).to_have_text(re.compile("compared with 8 Mar"))
    cells = table(page).locator("tbody tr").all()
    assert [plain(row.locator("td").nth(-2).inner_text()) for row in cells] == [
        "Sat 8 March 2025",
        "",
        "",
    ]
    # Another period has another one before it.
    page.keyboard.press("ArrowLeft")
    page.wait_for_url("**?from=2025-03-07&to=2025-03-09&zone=UTC")


def test_what_is_under_way_is_compared_until_the_same_time(
    demo: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(demo).turn_to(f"{BUSY}?period=30d")
    loaded(page)
    compared(page)
    last = table(page).locator("tbody tr").last
    until = re.compile(r", until \d?\d:\d\d$")
    expect(last.locator("td").nth(-2)).to_have_text(until)
    expect(last.locator("th")).not_to_have_text(until)
    expect(table(page).locator("tbody tr").nth(-2).locator("td").nth(-2)).not_to_have_text(until)
    expect(page.locator(".chart-head p")).to_have_text(until)
    page.mouse.move(*point(page, 0.999))
    expect(tip(page).locator(".tip-before div")).to_have_text(until)
    # Sundays are beside Sundays.
    weekdays = [
        [row.locator("th, td").nth(place).inner_text()[:3] for place in (0, -2)]
        for row in table(page).locator("tbody tr").all()
    ]
    assert len(weekdays) == 30
    assert all(now == before for now, before in weekdays), weekdays


def test_the_crosshair_is_on_a_point(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(THREE_DAYS)
    figures(page)
    compared(page)
    for share, day in ((0.4, 1), (0.6, 1), (0.8, 2), (0.1, 0)):
        page.mouse.move(*point(page, share))
        expect(tip(page)).to_contain_text(f"{10 + day} March")
        line = chart(page).locator(".u-cursor-x").bounding_box()
        assert line is not None
        x, _y = point(page, day / 2)
        assert abs(line["x"] - x) <= 1, share


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_two_lines_have_two_colours(
    march_owner: Client, dashboard_of: Make, scheme: Literal["light", "dark"]
) -> None:
    page = dashboard_of(march_owner, color_scheme=scheme).turn_to(THREE_DAYS)
    figures(page)
    compared(page)
    keys = page.locator(".chart-head .line-key")
    expect(keys).to_have_count(2)
    first, second = (
        key.evaluate("key => getComputedStyle(key).borderTopColor") for key in keys.all()
    )
    assert drawn(page, first) > 100
    assert drawn(page, second) > 100
    for name, vision in VISIONS.items():
        apart = distance(seen(channels(first), vision), seen(channels(second), vision))
        assert apart > TOLD_APART, name


def drawn(page: Page, colour: str) -> int:
    """Count the pixels of the chart that have a colour."""
    count: int = page.locator(".chart canvas").evaluate(
        """(canvas, colour) => {
          const copy = new OffscreenCanvas(canvas.width, canvas.height)
            .getContext("2d", { willReadFrequently: true });
          copy.drawImage(canvas, 0, 0);
          const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
          const sought = colour.match(/\\d+/g).map(Number);
          let count = 0;
          for (let at = 0; at < data.length; at += 4) {
            const isNear = sought.every((part, place) => Math.abs(data[at + place] - part) < 12);
            count += isNear && data[at + 3] > 200;
          }
          return count;
        }""",
        colour,
    )
    return count


def channels(colour: str) -> list[float]:
    """Return a colour such as rgb(15, 107, 92) as linear RGB."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def times(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    return [sum(one * other for one, other in zip(row, vector, strict=True)) for row in matrix]


def seen(colour: Sequence[float], vision: Sequence[Sequence[float]]) -> tuple[float, float, float]:
    """Return a colour in CIELAB as it is seen."""
    visible = [min(max(part, 0), 1) for part in times(vision, colour)]
    x, y, z = (
        part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116
        for part in (
            part / white for part, white in zip(times(TO_XYZ, visible), WHITE, strict=True)
        )
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: Sequence[float], other: Sequence[float]) -> float:
    return float(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5)


def test_calendar_periods_step_and_return(march_owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(march_owner).turn_to(f"websites/{past.HOSTNAME}?zone=UTC")
    for keys, name in (("W", "week"), ("M", "month"), ("Q", "quarter"), ("Y", "year")):
        page.keyboard.press(keys)
        page.wait_for_url(f"**?period={name}&zone=UTC")
        page.keyboard.press("ArrowLeft")
        page.wait_for_url(f"**?period=last-{name}&zone=UTC")
        page.keyboard.press("ArrowLeft")
        page.wait_for_url("**?from=*&to=*&zone=UTC")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.wait_for_url(f"**?period={name}&zone=UTC")
    page.keyboard.press("j")
    page.wait_for_url("**?period=ytd&zone=UTC")
