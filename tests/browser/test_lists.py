"""The full lists behind the panels."""

import csv
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import PHONE_WIDTH, Dashboard
from support.browser.known_website import HOSTILE, HOSTNAME, LONG, RIGHT_TO_LEFT
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

PAGE = f"websites/{HOSTNAME}?period=7d"
HEADS = {
    ("Pages", "Top"): [
        *("Page", "Visitors", "% of visitors", "Visits", "Visit bounce rate", "Views"),
        *("% of views", "Left within 5 s", "Total time"),
    ],
    ("Pages", "Time"): [
        *("Page", "Total time", "Median time", "Lower quartile", "Upper quartile", "% of time"),
        "Visitors",
    ],
    ("Referrers", "Referrers"): [
        *("Referrer", "Visitors", "% of visitors", "Visits", "Visit bounce rate", "Views"),
        *("Left within 5 s", "Total time"),
    ],
}
FIRST_ROWS = {
    ("Pages", "Top"): ["/", "4", "33%", "4", "100%", "4", "33%", "25%", "1m 3s"],
    ("Pages", "Time"): ["/", "1m 3s", "20s", "16s", "20s", "24%", "4"],
    ("Referrers", "Referrers"): ["Direct / none", "7", "58%", "7", "100%", "7", "14%", "2m 3s"],
}


def open_list(page: Page, panel: str, tab: str | None = None) -> Locator:
    region = page.get_by_role("region", name=panel, exact=True)
    if tab:
        region.get_by_role("tab", name=tab, exact=True).click()
    region.get_by_role("button", name="Show all").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("tbody tr").first.wait_for()
    return dialog


def read(file: Path) -> list[list[str]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.reader(lines))


def test_a_list_has_every_figure(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    for (panel, tab), heads in HEADS.items():
        dialog = open_list(page, panel, tab)
        assert dialog.get_by_role("columnheader").all_inner_texts() == heads
        first = dialog.locator("tbody tr").first.locator("bdi")
        assert first.all_inner_texts() == FIRST_ROWS[panel, tab]
        expect(dialog.get_by_label("Search")).to_be_focused()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
    page.get_by_role("region", name="Pages").get_by_role("tab", name="Top").click()
    dialog = open_list(page, "Pages")
    page.keyboard.type("ALERT")
    expect(dialog.get_by_role("status")).to_have_text("1 row")
    dialog.get_by_role("button", name=HOSTILE).click()
    expect(dialog).to_have_count(0)
    expect(page.locator(".tile-figure").first).to_have_text("1")
    expect(page.get_by_role("button", name="Show all: Pages")).to_be_focused()


def test_the_download(known: Client, dashboard_of: Make, tmp_path: Path) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    dialog = open_list(page, "Pages")
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download CSV").click()
    today = datetime.now(ZoneInfo("Europe/Berlin")).date()
    first = today - timedelta(days=6)
    assert download.value.suggested_filename == f"{HOSTNAME}-pages-{first}-{today}.csv"
    file = tmp_path / "pages.csv"
    download.value.save_as(file)
    assert file.read_bytes().startswith(b"\xef\xbb\xbf"), "Excel takes it for UTF-8 by this alone"
    assert read(file) == [
        [
            "Page",
            "Visitors",
            "% of visitors",
            "Visits",
            "Visit bounce rate",
            "Views",
            "% of views",
            "Left within 5 s",
            "Total time (s)",
        ],
        ["/", "4", "33.33", "4", "100", "4", "33.33", "25", "63"],
        ["/about", "3", "25", "3", "100", "3", "25", "0", "60"],
        *(
            [path, "1", "8.33", "1", "100", "1", "8.33", "0", seconds]
            for path, seconds in (
                (HOSTILE, "20"),
                ("/=1+1", "20"),
                ("/a,b", "60"),
                (LONG, "20"),
                (RIGHT_TO_LEFT, "20"),
            )
        ),
    ]


def test_a_phone_shows_columns_and_whole_paths(known: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(known, viewport={"width": PHONE_WIDTH, "height": 700})
    dialog = open_list(dashboard.turn_to(PAGE), "Pages")
    assert not dashboard.is_wider_than_the_window()
    box = dialog.bounding_box()
    shown = [head.bounding_box() for head in dialog.get_by_role("columnheader").all()[:3]]
    assert box is not None
    assert all(head and head["x"] + head["width"] <= box["x"] + box["width"] for head in shown)
    # A shadow says that there are more, and the names stay while those are scrolled to.
    table = dialog.locator(".details")
    assert "gradient" in table.evaluate("it => getComputedStyle(it).backgroundImage")
    table.evaluate("it => it.scrollTo({left: 1000})")
    name = dialog.get_by_role("button", name="/about")
    expect(name).to_be_in_viewport(ratio=1)
    long = dialog.get_by_role("button", name=LONG)
    long.evaluate("it => it.scrollTo({top: 100_000})")
    end = """it => {
        const range = document.createRange();
        const text = it.querySelector("bdi").firstChild;
        range.setStart(text, text.length - 1);
        range.setEnd(text, text.length);
        return range.getBoundingClientRect().bottom - it.getBoundingClientRect().bottom;
    }"""
    assert long.evaluate(end) <= 1
