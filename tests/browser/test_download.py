"""Downloading a website's data in the settings."""

import csv
from collections.abc import Callable

import pytest
from playwright.sync_api import Download, Locator, Page, expect
from support.browser import past_visits as past
from support.browser import rollup_website as summed
from support.browser.dashboard import PHONE_WIDTH, Dashboard
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

DOCS = "docs.tinydaemon.example"


def dialog_of(dashboard: Dashboard, hostname: str) -> Locator:
    page = dashboard.open("settings/websites")
    page.get_by_role("button", name=f"Download data of {hostname}").click()
    return page.get_by_role("dialog", name=f"Download data of {hostname}")


def choose(dialog: Locator, **choices: str) -> None:
    for label, choice in choices.items():
        dialog.get_by_role("combobox", name=label.capitalize()).select_option(label=choice)


def downloaded(page: Page) -> Download:
    with page.expect_download() as downloading:
        page.get_by_role("dialog").get_by_role("link", name="Download").click()
    return downloading.value


def rows(page: Page) -> list[dict[str, str]]:
    text = downloaded(page).path().read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def test_a_file_is_downloaded(demo: Client, dashboard_of: Make) -> None:
    dialog = dialog_of(dashboard_of(demo), DOCS)
    file = downloaded(dialog.page)
    assert file.suggested_filename == f"{DOCS}-views.csv"
    lines = file.path().read_bytes().splitlines()
    assert lines[0].startswith(b"store,view,visit,time,path")
    assert len(lines) > 10
    choose(dialog, data="Statistics", format="Parquet")
    file = downloaded(dialog.page)
    assert file.suggested_filename == f"{DOCS}-statistics.parquet"
    assert file.path().read_bytes().startswith(b"PAR1")


def test_a_period_uses_the_daemons_days(march_owner: Client, dashboard_of: Make) -> None:
    dialog = dialog_of(dashboard_of(march_owner), past.HOSTNAME)
    page = dialog.page
    choose(dialog, period="Custom range")
    dialog.get_by_label("Start date").fill("2025-03-10")
    dialog.get_by_label("End date").fill("2025-03-12")
    # In the zone of the browser, the last one is of the 13th.
    expect(dialog.get_by_text("(UTC)")).to_contain_text("Mar 2025")
    times = [row["time"] for row in rows(page)]
    assert len(times) == 6
    assert {time[:10] for time in times} == {"2025-03-10", "2025-03-11", "2025-03-12"}
    choose(dialog, data="Statistics")
    days = [row for row in rows(page) if row["report"] == "days"]
    assert [(row["date"][:10], row["pageviews"]) for row in days] == [
        ("2025-03-10", "2"),
        ("2025-03-11", "2"),
        ("2025-03-12", "2"),
    ]


def test_days_kept_as_totals_are_named(summed_owner: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(summed_owner)
    dialog = dialog_of(dashboard, summed.HOSTNAME)
    note = dialog.get_by_role("note")
    expect(note).to_have_text(
        "For some days from 1 Mar 2025 to 2 Mar 2025, only daily totals remain."
        " They aren’t in this file, but the statistics include them."
    )
    choose(dialog, period="Custom range")
    dialog.get_by_label("Start date").fill("2025-03-02")
    expect(note).to_contain_text("from 2 Mar 2025 to 2 Mar 2025")
    dialog.page.set_viewport_size({"width": PHONE_WIDTH, "height": 800})
    assert dashboard.violations() == []
    assert not dashboard.is_wider_than_the_window()
    assert rows(dialog.page) == []
    choose(dialog, data="Statistics")
    expect(note).to_have_text(
        "For some days from 2 Mar 2025 to 2 Mar 2025, only daily totals remain."
        " Some statistics leave them out."
    )
    (summary,) = (row for row in rows(dialog.page) if row["report"] == "summary")
    assert summary["pageviews"] == "3"
