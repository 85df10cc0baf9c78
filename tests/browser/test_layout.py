"""How pages are laid out on a wide screen."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, expect
from support.browser.dashboard import BUSY, PHONE_WIDTH, Dashboard, loaded
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def sides(locator: Locator) -> tuple[float, float]:
    box = locator.bounding_box()
    assert box is not None
    return box["x"], box["x"] + box["width"]


def test_the_header_is_as_wide_as_the_page(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).turn_to(BUSY)
    loaded(page)
    links = page.locator(".bar").get_by_role("link", name="Settings")
    for width in (PHONE_WIDTH, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 900})
        left, right = sides(page.locator(".overview"))
        assert sides(page.locator(".brand"))[0] == pytest.approx(left, abs=1), width
        assert sides(page.locator(".bar .menu svg"))[1] == pytest.approx(right, abs=2), width
        expect(links).to_be_visible(visible=width > PHONE_WIDTH)
    links.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Settings")
    expect(links).to_have_attribute("aria-current", "true")


def test_the_tip_of_the_chart_stays_inside_it(demo: Client, dashboard_of: Make) -> None:
    """On every day, also the last one, with the day before below it."""
    page = dashboard_of(demo).turn_to(f"{BUSY}?period=30d")
    loaded(page)
    chart = page.locator(".chart")
    for width in (PHONE_WIDTH, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        over = page.locator(".u-over").bounding_box()
        assert over is not None
        left, right = sides(chart)
        for part in (0.001, 0.25, 0.45, 0.55, 0.75, 0.999):
            page.mouse.move(over["x"] + over["width"] * part, over["y"] + over["height"] / 2)
            tip = page.locator(".tip")
            expect(tip).to_be_visible()
            box = tip.bounding_box()
            assert box is not None
            assert left - 1 <= box["x"]
            assert box["x"] + box["width"] <= right + 1, (width, part)
            assert box["width"] > 120, (width, part)
            # An annotation of the day takes a line more.
            assert box["height"] < 140, (width, part, tip.inner_text())


def test_names_in_the_settings_do_not_break(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.add_website("a-rather-long-name-of-a-website.example.com")
    page = dashboard_of(owner).open("settings/websites")
    name = page.locator(".sites-name")
    for width in (1280, 1000, 800, 600):
        page.set_viewport_size({"width": width, "height": 800})
        lines = (
            "it => it.getBoundingClientRect().height / parseFloat(getComputedStyle(it).lineHeight)"
        )
        assert name.evaluate(lines) < 1.5, width


CONTRAST = """it => {
    const light = (name) => {
        const probe = document.createElement("i");
        probe.style.color = `var(${name})`;
        it.append(probe);
        const [r, g, b] = getComputedStyle(probe).color.match(/[0-9.]+/g).map((part) => {
            const share = part / 255;
            return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        probe.remove();
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const [one, other] = [light("--before"), light("--card")];
    return Math.max(one, other) / Math.min(one, other);
}"""


def test_the_line_of_the_previous_period_is_visible(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).turn_to(f"{BUSY}?period=7d")
    loaded(page)
    for scheme, least in (("light", 4), ("dark", 6)):
        page.emulate_media(color_scheme=scheme)
        assert page.locator(".overview").evaluate(CONTRAST) >= least, scheme


def test_days_are_chosen_in_two_months_where_they_fit(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).turn_to(BUSY)
    loaded(page)
    page.keyboard.press("r")
    months = page.get_by_role("dialog").locator("calendar-month")
    expect(months).to_have_count(2)
    assert page.get_by_role("dialog").evaluate("it => it.scrollWidth <= it.clientWidth")
    # Both ends of the last 30 days are there.
    for part in ("range-start", "range-end"):
        expect(months.locator(f"[part~={part}]").first).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.set_viewport_size({"width": PHONE_WIDTH, "height": 800})
    page.keyboard.press("r")
    expect(months).to_have_count(1)
