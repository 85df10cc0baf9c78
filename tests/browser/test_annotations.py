"""Annotations on a website's page."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from itertools import count
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect
from support.browser.dashboard import Dashboard
from support.browser.visitors import DESKTOP
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

_hostnames: Final[Iterator[int]] = count()


@pytest.fixture
def annotated(owner: Client) -> str:
    """A website with a view; returns its hostname."""
    hostname = f"annotated-{next(_hostnames)}.example"
    owner.add_website(hostname)
    hit = {"e": "load", "b": hostname, "u": f"https://{hostname}/", "p": True, "q": True}
    answer = owner.request("POST", "/api/event/hit", hit, {"User-Agent": DESKTOP})
    assert answer.status == HTTPStatus.NO_CONTENT
    return hostname


def path_of(hostname: str) -> str:
    return f"/api/websites/{hostname}/annotations"


def annotate(owner: Client, hostname: str, **members: Any) -> None:
    made = owner.request("POST", path_of(hostname), members)
    assert made.status == HTTPStatus.CREATED, made


def tip(page: Page) -> list[str]:
    """Return the annotations in the tip of the chart's last interval."""
    page.get_by_role("group", name="Chart:").press("End")
    return page.locator(".tip-note").all_inner_texts()


def picture(page: Page) -> str:
    """Return what the chart has drawn, as the URL of an image."""
    return str(page.locator(".chart canvas").evaluate("canvas => canvas.toDataURL()"))


def test_one_is_added_shown_changed_and_deleted(
    owner: Client, annotated: str, dashboard_of: Make
) -> None:
    dashboard = dashboard_of(owner)
    page = dashboard.open(f"websites/{annotated}?period=7d&interval=day&zone=UTC&compare=none")
    page.locator(".chart canvas").wait_for()
    page.get_by_role("button", name="Annotations").press("Enter")
    dialog = page.get_by_role("dialog", name="Annotations")
    expect(dialog).to_contain_text("No annotations in this period")
    assert dashboard.violations(within="dialog") == []
    before = picture(page)
    dialog.get_by_role("button", name="New annotation").press("Enter")
    dialog = page.get_by_role("dialog", name="New annotation")
    text = dialog.get_by_label("What happened")
    expect(text).to_be_focused()
    text.fill("New prices")
    dialog.get_by_label("Link").fill("javascript:alert(1)")
    page.keyboard.press("Enter")
    assert owner.get(path_of(annotated)) == []
    dialog.get_by_label("Link").fill("https://example.com/prices")
    assert dashboard.violations(within="dialog") == []
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Annotations")
    expect(dialog.get_by_role("link", name="New prices")).to_have_attribute(
        "href", "https://example.com/prices"
    )
    expect(dialog.get_by_role("button", name="New annotation")).to_be_focused()
    assert dashboard.violations(within="dialog") == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Annotations")).to_be_focused()
    (made,) = owner.get(path_of(annotated))
    assert made == made | {"text": "New prices", "link": "https://example.com/prices"}
    assert len(made["time"]) == len("2026-01-31")
    assert picture(page) != before
    assert tip(page) == ["New prices"]
    assert dashboard.violations_by_scheme() == {}
    page.get_by_role("button", name="Show as table").click()
    table = page.get_by_role("region", name="By day").get_by_role("table")
    expect(table.get_by_role("columnheader", name="Annotations")).to_be_visible()
    expect(table.locator("tbody tr").last.get_by_role("link")).to_have_text("New prices")
    assert dashboard.violations(within=".chart-table") == []
    page.get_by_role("button", name="Annotations").click()
    page.get_by_role("button", name="Edit: New prices").click()
    dialog = page.get_by_role("dialog", name="Edit: New prices")
    dialog.get_by_label("What happened").fill("Newer prices")
    dialog.get_by_label("Time").fill("00:00")
    dialog.get_by_role("button", name="Save").click()
    page.get_by_role("button", name="Edit: Newer prices").click()
    assert owner.get(path_of(annotated)) == [
        made | {"text": "Newer prices", "time": f"{made['time']}T00:00:00Z"}
    ]
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Press again to delete").click()
    expect(page.get_by_role("dialog")).to_contain_text("No annotations in this period")
    assert owner.get(path_of(annotated)) == []
    page.keyboard.press("Escape")
    expect(page.get_by_role("columnheader", name="Annotations")).to_have_count(0)


def test_only_those_of_the_period_are_shown(
    owner: Client, annotated: str, dashboard_of: Make
) -> None:
    now = datetime.now(UTC)
    long_ago = (now - timedelta(days=40)).date().isoformat()
    annotate(owner, annotated, text="Launch", time=long_ago)
    annotate(owner, annotated, text="Deploy")
    page = dashboard_of(owner).open(f"websites/{annotated}?period=7d&interval=day")
    page.locator(".chart canvas").wait_for()
    expect(page.locator(".notes bdi")).to_have_text(["Deploy"])
    assert tip(page) == ["Deploy"]


def test_who_has_a_share_link_reads_them(owner: Client, annotated: str, dashboard_of: Make) -> None:
    annotate(owner, annotated, text="Launch", link="https://example.com/launch")
    shares = f"/api/websites/{annotated}/shares"
    made = owner.request("POST", shares, {"name": "club"})
    assert made.status == HTTPStatus.CREATED
    dashboard = dashboard_of(Client(owner.port))
    page = dashboard.page
    page.goto(f"{dashboard.base}/share/{made.json['id']}?period=7d")
    page.get_by_role("button", name="Annotations").click()
    dialog = page.get_by_role("dialog", name="Annotations")
    expect(dialog.get_by_role("link", name="Launch")).to_be_visible()
    expect(dialog.get_by_role("button")).to_have_count(1)


def test_a_phone_shows_form_and_table_without_scrolling_the_page(
    owner: Client, annotated: str, dashboard_of: Make
) -> None:
    annotate(owner, annotated, text="A long text without an end " * 7, link="https://example.com/a")
    dashboard = dashboard_of(owner)
    page = dashboard.open(f"websites/{annotated}?period=7d")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".chart canvas").wait_for()
    assert not dashboard.is_wider_than_the_window()
    page.get_by_role("button", name="Show as table").click()
    expect(page.locator(".notes a")).to_be_visible()
    assert not dashboard.is_wider_than_the_window()
    page.get_by_role("button", name="Annotations").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Edit: A long text").click()
    expect(dialog.get_by_label("What happened")).to_be_visible()
    assert dialog.evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth")
