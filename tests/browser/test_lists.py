"""The full lists behind the panels."""

import csv
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from http import HTTPStatus
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser import rollup_website as summed
from support.browser.dashboard import PHONE_WIDTH, Dashboard
from support.browser.known_website import HOSTILE, HOSTNAME, LONG, RIGHT_TO_LEFT
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

UNKNOWN = "\N{EN DASH}"
PAGE = f"websites/{HOSTNAME}?period=7d"


def open_list(page: Page, panel: str, tab: str | None = None) -> Locator:
    region = page.get_by_role("region", name=panel, exact=True)
    if tab:
        region.get_by_role("tab", name=tab, exact=True).click()
    region.get_by_role("button", name="Show all").click()
    dialog = page.get_by_role("dialog")
    dialog.locator("tbody tr").first.wait_for()
    return dialog


def column(dialog: Locator, name: str) -> list[str]:
    heads = dialog.get_by_role("columnheader").all_inner_texts()
    cells = dialog.locator(f"tbody tr > :nth-child({heads.index(name) + 1})")
    return cells.locator("bdi").all_inner_texts()


def cells(dialog: Locator, value: str) -> list[str]:
    row = dialog.get_by_role("row").filter(has=dialog.page.get_by_role("button", name=value))
    return row.first.locator("bdi").all_inner_texts()


def read(file: Path) -> list[list[str]]:
    with file.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.reader(lines))


def test_every_column_is_there(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    dialog = open_list(page, "Pages")
    assert dialog.get_by_role("columnheader").all_inner_texts() == [
        "Page",
        "Visitors",
        "% of visitors",
        "Visits",
        "Visit bounce rate",
        "Views",
        "% of views",
        "Left within 5 s",
        "Total time",
    ]
    assert cells(dialog, "/") == ["/", "4", "33%", "4", "100%", "4", "33%", "25%", "1m 3s"]
    page.keyboard.press("Escape")
    dialog = open_list(page, "Pages", "Time")
    heads = ["Page", "Median time", "Lower quartile", "Upper quartile", "% of time", "Visitors"]
    assert dialog.get_by_role("columnheader").all_inner_texts() == heads
    assert cells(dialog, "/about") == ["/about", "20s", "20s", "20s", "23%", "3"]
    page.keyboard.press("Escape")
    dialog = open_list(page, "Referrers")
    assert dialog.get_by_role("columnheader").all_inner_texts() == [
        "Referrer",
        "Visitors",
        "% of visitors",
        "Visits",
        "Visit bounce rate",
        "Views",
        "Left within 5 s",
        "Total time",
    ]
    assert cells(dialog, "blog.example") == [
        "blog.example",
        *["3", "25%", "3", "100%", "3", "0%", "1m 40s"],
    ]
    page.keyboard.press("Escape")
    dialog = open_list(page, "Properties")
    assert dialog.get_by_role("columnheader").all_inner_texts() == [
        "Property",
        "Events",
        "% of events",
    ]


def test_sorting(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    dialog = open_list(page, "Pages")
    visitors = dialog.get_by_role("columnheader", name="Visitors", exact=True)
    expect(visitors).to_have_attribute("aria-sort", "descending")
    dialog.get_by_role("button", name="Page", exact=True).click()
    head = dialog.get_by_role("columnheader", name="Page", exact=True)
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(visitors).to_have_attribute("aria-sort", "none")
    rising = column(dialog, "Page")
    page.keyboard.press("Enter")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert column(dialog, "Page") == rising[::-1]
    dialog.get_by_role("button", name="Total time").click()
    head = dialog.get_by_role("columnheader", name="Total time")
    expect(head).to_have_attribute("aria-sort", "descending")
    assert column(dialog, "Total time")[:3] == ["1m 3s", "1m 0s", "1m 0s"]
    assert column(dialog, "Page")[0] == "/"


def test_a_page_has_its_share_of_all_visitors(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    for visitor in range(2):
        for path in ("/", "/a", "/b")[: 3 - visitor]:
            load = {"e": "load", "b": f"{visitor}{path}", "u": f"https://example.com{path}"}
            load |= {"p": path == "/", "q": True}
            assert owner.request("POST", "/api/event/hit", load).status == HTTPStatus.NO_CONTENT
    page = dashboard_of(owner).open("websites/example.com?period=today")
    panel = page.get_by_role("region", name="Pages", exact=True)
    expect(panel.locator("tbody td:nth-child(3)")).to_have_text(["100%", "100%", "50%"])
    dialog = open_list(page, "Pages")
    expect(dialog.locator("tbody tr")).to_have_count(3)
    assert column(dialog, "% of visitors") == ["100%", "100%", "50%"]
    page.keyboard.press("Escape")
    # The visitor of /c saw another page first, and is none of the visitors under this filter.
    event = {"e": "load", "b": "x", "u": "https://example.com/c", "p": False, "q": True}
    event["d"] = {"plan": "pro"}
    assert owner.request("POST", "/api/event/hit", event).status == HTTPStatus.NO_CONTENT
    page = dashboard_of(owner).open("websites/example.com?period=today&prop_name[eq]=plan")
    panel = page.get_by_role("region", name="Pages", exact=True)
    expect(panel.locator("tbody td")).to_have_text(["1", UNKNOWN])


def test_search(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    dialog = open_list(page, "Pages")
    expect(dialog.get_by_role("status")).to_have_text("7 rows")
    expect(dialog.get_by_label("Search")).to_be_focused()
    page.keyboard.type("ABO")
    expect(dialog.get_by_role("status")).to_have_text("1 row")
    assert column(dialog, "Page") == ["/about"]
    assert column(dialog, "% of visitors") == ["25%"], "shares stay those of all"
    dialog.get_by_label("Search").fill("nowhere")
    expect(dialog).to_contain_text("No results for “nowhere”.")
    page.keyboard.press("Escape")


def test_a_row_is_a_filter(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    dialog = open_list(page, "Pages")
    dialog.get_by_role("button", name=HOSTILE).click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("region", name="Filters")).to_contain_text(f"Page is {HOSTILE}")
    expect(page.locator(".tile-figure").first).to_have_text("1")
    expect(page.get_by_role("button", name="Show all: Pages by visitors")).to_be_focused()


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


def test_unknown_values_are_not_shown_as_numbers(
    summed_owner: Client, dashboard_of: Make, tmp_path: Path
) -> None:
    page = dashboard_of(summed_owner).turn_to(
        f"websites/{summed.HOSTNAME}?from=2025-03-01&to=2025-03-02&zone=UTC"
    )
    dialog = open_list(page, "Pages")
    dialog.get_by_role("button", name="Left within 5 s").click()
    assert column(dialog, "Page") == ["/about", "/late", "/"]
    assert column(dialog, "Left within 5 s") == ["50%", "0%", UNKNOWN]
    assert column(dialog, "Total time") == ["30s", "10s", UNKNOWN]
    page.keyboard.press("Escape")
    dialog = open_list(page, "Locations", "Countries")
    assert column(dialog, "Left within 5 s") == ["20%", UNKNOWN]
    assert column(dialog, "Total time") == [UNKNOWN, UNKNOWN]
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download CSV").click()
    download.value.save_as(tmp_path / "countries.csv")
    assert read(tmp_path / "countries.csv")[1:] == [
        ["Germany", "4", "66.67", "", "", "9", "20", ""],
        ["France", "2", "33.33", "", "", "3", "", ""],
    ]


def test_the_download_matches_the_list(known: Client, dashboard_of: Make, tmp_path: Path) -> None:
    page = dashboard_of(known).turn_to(PAGE)
    page.get_by_role("region", name="Properties").get_by_role("button", name="plan").click()
    dialog = open_list(page, "Properties")
    dialog.get_by_role("button", name="Property value").click()
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download CSV").click()
    download.value.save_as(tmp_path / "values.csv")
    # A spreadsheet would take the first for a formula, and split it at the semicolon.
    assert read(tmp_path / "values.csv")[1:] == [["'=1+1;'=2", "1", "25"], ["pro", "3", "75"]]
    page.get_by_label("Search").fill("pro")
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Download CSV").click()
    download.value.save_as(tmp_path / "found.csv")
    assert read(tmp_path / "found.csv")[1:] == [["pro", "3", "75"]]


@pytest.fixture(scope="session")
def many(owner: Client) -> str:
    """A website with 5,100 values of 30 properties: 000 to 169 of each."""
    hostname = "many.example"
    owner.add_website(hostname)
    names = [f"p{number:02}" for number in range(30)]
    for number in range(170):
        event = {"e": "custom", "g": hostname, "d": dict.fromkeys(names, f"{number:03}")}
        answer = owner.request("POST", "/api/event/hit", event)
        assert answer.status == HTTPStatus.NO_CONTENT, answer
    return hostname


def test_paging(many: str, owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open(f"websites/{many}?period=7d&prop_name[in]=p00,p01")
    dialog = open_list(page, "Properties")
    before = dialog.get_by_role("button", name="Previous")
    after = dialog.get_by_role("button", name="Next")
    expect(dialog).to_contain_text(re.compile("1.100 of 340"))
    expect(dialog.locator("tbody tr")).to_have_count(100)
    assert cells(dialog, "000")[:2] == ["p00", "000"]
    expect(before).to_be_disabled()
    after.click()
    expect(dialog).to_contain_text(re.compile("101.200 of 340"))
    assert cells(dialog, "100")[:2] == ["p00", "100"]
    before.click()
    expect(dialog).to_contain_text(re.compile("1.100 of 340"))
    assert column(dialog, "Property value")[0] == "000"
    for _ in range(3):
        after.click()
    expect(dialog).to_contain_text(re.compile("301.340 of 340"))
    expect(dialog.locator("tbody tr")).to_have_count(40)
    expect(after).to_be_disabled()
    # Another order, and a search, begin at their beginning.
    dialog.get_by_role("button", name="Property value", exact=True).click()
    expect(dialog).to_contain_text(re.compile("1.100 of 340"))
    assert column(dialog, "Property value")[:3] == ["000", "000", "001"]
    after.click()
    dialog.get_by_label("Search").fill("p01")
    expect(dialog).to_contain_text(re.compile("1.100 of 170"))


def test_lists_longer_than_the_limit(many: str, owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).turn_to(f"websites/{many}?period=7d&prop_name[starts_with]=p")
    dialog = open_list(page, "Properties")
    expect(dialog.get_by_role("status")).to_have_text("5,000 rows")
    capped = dialog.get_by_text("These are the first 5,000 rows; there are more.")
    expect(capped).to_be_visible()
    # The values of p29 above 069 are not among them.
    dialog.get_by_label("Search").fill("169")
    expect(dialog.get_by_role("status")).to_have_text("30 rows")
    assert column(dialog, "Property")[-1] == "p29"
    # These are all, and their shares are still those of all 170 events of each property.
    expect(capped).to_have_count(0)
    assert set(column(dialog, "% of events")) == {"0.6%"}


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
