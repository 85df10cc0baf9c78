"""Leaving out of all figures what the filters of a page match, and counting it again."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import PHONE_WIDTH, Dashboard
from support.browser.known_website import HOSTNAME
from support.daemon import Client, Daemon, finished

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

FLOODED = "flooded.example"
PAGE = f"websites/{HOSTNAME}?period=7d"


def figure(page: Page) -> Locator:
    return page.locator(".tile").first.locator(".tile-figure")


def test_what_filters_match_is_left_out_and_counted_again(
    known: Client, dashboard_of: Make
) -> None:
    dashboard = dashboard_of(known)
    page = dashboard.turn_to(PAGE)
    expect(figure(page)).to_have_text("12")
    page = dashboard.turn_to(f"{PAGE}&path[eq]=/about")
    page.get_by_role("button", name="Leave out…").click()
    dialog = page.get_by_role("dialog", name=f"Left out of {HOSTNAME}")
    expect(dialog.get_by_label("Name")).to_have_value("Page is /about")
    dialog.get_by_label("Name").fill("About us")
    expect(dialog.get_by_text("Nothing is left out.")).to_be_visible()
    dialog.get_by_role("button", name="Leave out what matches these filters").click()
    expect(dialog.get_by_role("status")).to_have_text("About us is left out.")
    rule = dialog.get_by_role("listitem")
    expect(rule).to_contain_text("Page is /about")
    expect(rule).to_contain_text("views left out")
    dialog.get_by_role("button", name="Leave out what matches these filters").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    page.keyboard.press("Escape")
    expect(figure(page)).to_have_text("0")
    note = page.get_by_role("note").filter(has_text="What exclusions match is left out")
    expect(note).to_be_visible()
    page = dashboard.turn_to("settings/websites")
    page.get_by_role("button", name=f"Left out of {HOSTNAME}").click()
    dialog = page.get_by_role("dialog", name=f"Left out of {HOSTNAME}")
    dialog.get_by_role("button", name="Count About us again").click()
    expect(dialog.get_by_role("status")).to_have_text("About us counts again.")
    expect(dialog.get_by_role("listitem")).to_have_count(0)
    page = dashboard.turn_to(PAGE)
    expect(figure(page)).to_have_text("12")
    expect(note).to_have_count(0)


def test_readers_of_a_share_link_cannot_leave_out_anything(
    known: Client, dashboard_of: Make
) -> None:
    share = known.request("POST", f"/api/websites/{HOSTNAME}/shares", {"name": "club"}).json
    dashboard = dashboard_of(known)
    page = dashboard.turn_to(f"{PAGE}&path[eq]=/about")
    expect(page.get_by_role("button", name="Leave out…")).to_be_visible()
    base = page.url.partition("/dashboard")[0]
    page.goto(f"{base}/share/{share['id']}?period=7d&path[eq]=/about")
    expect(page.get_by_role("region", name="Filters")).to_be_visible()
    expect(page.get_by_role("button", name="Leave out…")).to_have_count(0)


def test_the_dialog_fits_a_phone(known: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(known, viewport={"width": PHONE_WIDTH, "height": 700})
    page = dashboard.turn_to(f"{PAGE}&path[eq]=/about")
    page.get_by_role("button", name="Leave out…").click()
    dialog = page.get_by_role("dialog")
    expect(
        dialog.get_by_role("button", name="Leave out what matches these filters")
    ).to_be_visible()
    assert dialog.evaluate("it => it.scrollWidth <= it.clientWidth")


def test_a_flood_is_suggested_and_left_out_once_confirmed(
    daemon: Daemon, owner: Client, tmp_path: Path, dashboard_of: Make
) -> None:
    owner.add_website(FLOODED)
    hour_ago = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=1)
    people = {hour_ago - timedelta(hours=back): 3 for back in range(24 * 8)}
    flood = {hour_ago - timedelta(hours=back): 150 for back in (49, 50)}
    lines = ["store,view,visit,time,path,first_today,browser,country"]
    for country, hours in (("DE", people), ("SG", flood)):
        for hour, visits in hours.items():
            for minute in range(visits):
                number = len(lines)
                moment = (hour + timedelta(seconds=20 * minute)).strftime("%Y-%m-%dT%H:%M:%SZ")
                lines.append(f"made,{number},{number},{moment},/,true,Chrome,{country}")
    file = tmp_path / "views.csv"
    file.write_text("\n".join(lines) + "\n", "utf-8")
    done = finished("import", daemon.data, "--website", FLOODED, str(file))
    assert done.returncode == 0, done.stderr
    dashboard = dashboard_of(owner)
    page = dashboard.turn_to(f"websites/{FLOODED}?period=30d")
    expect(figure(page)).to_have_text(f"{3 * 24 * 8 + 300}")
    page = dashboard.turn_to("settings/websites")
    page.get_by_role("button", name=f"Left out of {FLOODED}").click()
    dialog = page.get_by_role("dialog", name=f"Left out of {FLOODED}")
    suggested = dialog.get_by_role("region", name="Suggestions")
    expect(suggested.get_by_role("listitem")).to_have_count(1)
    expect(suggested).to_contain_text("Country is Singapore")
    expect(suggested).to_contain_text("300 visits (98% of all in these hours), 300 views")
    expect(suggested).to_contain_text("Usual number of such visits: 0")
    expect(dialog.get_by_text("Nothing is left out.")).to_be_visible()
    suggested.get_by_role("button", name="Review Country is Singapore").click()
    expect(dialog.get_by_label("Name")).to_be_focused()
    expect(dialog.get_by_label("Name")).to_have_value("Country is Singapore")
    assert owner.get(f"/api/websites/{FLOODED}/exclusions") == []
    dialog.get_by_role("button", name="Leave out what matches these filters").click()
    expect(dialog.get_by_role("status")).to_have_text("Country is Singapore is left out.")
    rule = dialog.get_by_role("listitem").filter(has_text="left out")
    expect(rule).to_contain_text("300 visits, 300 views left out")
    expect(suggested).to_have_text(re.compile("No unusual flood of visits in the last 30 days"))
    with page.expect_download() as downloading:
        dialog.get_by_role("link", name="Download").click()
    assert downloading.value.suggested_filename == f"{FLOODED}-exclusions.json"
    (exported,) = json.loads(downloading.value.path().read_text("utf-8"))["exclusions"]
    assert exported["name"] == "Country is Singapore"
    assert exported["filters"] == "country[eq]=Singapore"
    page = dashboard.turn_to(f"websites/{FLOODED}?period=30d")
    expect(figure(page)).to_have_text(f"{3 * 24 * 8}")
