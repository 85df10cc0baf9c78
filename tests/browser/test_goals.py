"""Goals and funnels on a website's page."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from itertools import count
from typing import Any, Final

import pytest
from playwright.sync_api import Locator, Page, expect
from support.browser.dashboard import Dashboard
from support.browser.overview import figures, tile
from support.browser.visitors import DESKTOP
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

OTHER_AGENT: Final = DESKTOP.replace("Chrome/", "Chrome/9")
_hostnames: Final[Iterator[int]] = count()


@pytest.fixture
def shop(owner: Client) -> str:
    """A website with two visits, one of which buys for 12.50; returns its hostname."""
    hostname = f"shop-{next(_hostnames)}.example"
    owner.add_website(hostname)
    home = f"https://{hostname}/"
    loads: list[tuple[str, dict[str, Any]]] = [
        (DESKTOP, {"u": home, "p": True}),
        (DESKTOP, {"u": f"{home}thanks", "p": False, "r": home, "d": {"total": "12.50"}}),
        (OTHER_AGENT, {"u": home, "p": True}),
    ]
    for place, (agent, load) in enumerate(loads):
        hit = {"e": "load", "b": f"{hostname}-{place}", "q": True, **load}
        answer = owner.request("POST", "/api/event/hit", hit, {"User-Agent": agent})
        assert answer.status == HTTPStatus.NO_CONTENT
    return hostname


def define(owner: Client, hostname: str, what: str, **members: Any) -> str:
    """Define a goal or a funnel; returns its id."""
    made = owner.request("POST", f"/api/websites/{hostname}/{what}", members)
    assert made.status == HTTPStatus.CREATED, made
    return str(made.json["id"])


def goals(page: Page) -> Locator:
    return page.get_by_role("region", name="Goals", exact=True)


def rows(panel: Locator) -> list[str]:
    panel.locator("tbody tr").first.wait_for()
    texts = panel.locator("tbody tr").all()
    return [
        " ".join([row.locator("bdi").inner_text(), *row.locator("td").all_inner_texts()]).strip()
        for row in texts
    ]


def previewed(dialog: Locator) -> Locator:
    """Return the figures that a dialog previews."""
    return dialog.locator(".preview dd")


def test_a_goal_is_made_chosen_renamed_and_deleted(
    owner: Client, shop: str, dashboard_of: Make
) -> None:
    dashboard = dashboard_of(owner)
    page = dashboard.open(f"websites/{shop}?period=7d")
    expect(goals(page)).to_contain_text("No goals yet")
    goals(page).get_by_role("button", name="New goal").click()
    dialog = page.get_by_role("dialog", name="New goal")
    dialog.get_by_role("combobox", name="Page", exact=True).fill("/th")
    expect(dialog.locator("[role=option]")).to_have_count(1)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("combobox", name="Page", exact=True)).to_have_value("/thanks")
    expect(previewed(dialog)).to_have_text(["1", "1 (50%)"])
    dialog.get_by_label("Revenue property").fill("total")
    dialog.get_by_label("Currency").fill("eur")
    expect(previewed(dialog)).to_have_text(["1", "1 (50%)", "€12.50"])
    assert dashboard.violations(within="dialog") == []
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    assert rows(goals(page)) == ["/thanks 1 50% €12.50"]
    row = goals(page).get_by_role("button", name="/thanks", exact=True)
    row.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**goal[eq]=*")
    expect(row).to_have_attribute("aria-pressed", "true")
    expect(tile(page, "Visits").locator(".tile-figure")).to_have_text("1")
    expect(tile(page, "Views").locator(".tile-figure")).to_have_text("2")
    expect(page.get_by_role("button", name="Remove: Goal is /thanks")).to_be_visible()
    pages = page.get_by_role("region", name="Pages")
    expect(pages.get_by_role("columnheader")).to_have_text(
        ["Page", "Visitors", "Conversions", "Rate"]
    )
    # Until they come, the rows of before remain.
    expect(pages.locator("tbody td").nth(2)).to_have_text("50%")
    assert rows(pages) == ["/ 1 1 50%", "/thanks 1 1 100%"]
    pages.get_by_role("button", name="Show all").click()
    heads = page.get_by_role("dialog").get_by_role("columnheader")
    expect(heads.nth(-1)).to_have_text("Conversion rate")
    expect(page.get_by_role("dialog").get_by_role("cell").nth(-1)).to_have_text("100%")
    page.keyboard.press("Escape")
    row.click()
    goals(page).get_by_role("button", name="Edit: /thanks").click()
    dialog = page.get_by_role("dialog", name="Edit: /thanks")
    dialog.get_by_label("Name").fill("Order")
    dialog.get_by_role("button", name="Save").click()
    expect(goals(page).get_by_role("button", name="Order", exact=True)).to_be_visible()
    assert rows(goals(page)) == ["Order 1 50% €12.50"]
    goals(page).get_by_role("button", name="Edit: Order").click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Press again to delete").click()
    expect(goals(page)).to_contain_text("No goals yet")
    assert owner.get(f"/api/websites/{shop}/goals") == []


def test_a_funnel_shows_its_steps(owner: Client, shop: str, dashboard_of: Make) -> None:
    define(owner, shop, "goals", name="Home", path="/")
    define(owner, shop, "goals", name="Order", event="total")
    dashboard = dashboard_of(owner)
    page = dashboard.open(f"websites/{shop}?period=7d")
    goals(page).get_by_role("tab", name="Funnels").click()
    expect(goals(page)).to_contain_text("No funnels yet")
    goals(page).get_by_role("button", name="New funnel").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Purchase")
    for name in ("Home", "Order"):
        dialog.get_by_label("Add a step").select_option(name)
    steps = dialog.locator(".funnel-goals li")
    expect(steps.locator(".soft")).to_have_text(["2 (100%)", "1 (50%)"])
    assert dashboard.violations(within="dialog") == []
    dialog.get_by_role("button", name="Move up: Order").press("Enter")
    expect(steps.locator("bdi")).to_have_text(["Order", "Home"])
    expect(steps.locator(".soft")).to_have_text(["1 (100%)", "0 (0%)"])
    expect(dialog.get_by_role("button", name="Move up: Order")).to_be_focused()
    dialog.get_by_role("button", name="Move down: Order").press("Enter")
    dialog.get_by_role("button", name="Save").click()
    funnel = page.get_by_role("region", name="Purchase")
    assert rows(funnel) == ["Home 2 100%", "Order 1 50% 1 (50%)"]
    assert dashboard.violations(within=".funnel") == []
    funnel.get_by_role("link", name="Purchase").press("Enter")
    page.wait_for_url(f"**/dashboard/websites/{shop}/funnels/*?period=7d")
    steps = page.get_by_role("region", name="Steps")
    expect(steps.locator(".funnel-total")).to_have_text("1 of 2 visits reached the last step (50%)")
    expect(steps.locator(".funnel-line")).to_have_text(["Home2100%", "Order150%"])
    assert dashboard.violations_by_scheme() == {}
    page.set_viewport_size({"width": 390, "height": 844})
    assert not dashboard.is_wider_than_the_window()
    page.get_by_role("button", name="Edit: Purchase").click()
    dialog.get_by_label("Name").fill("Checkout")
    dialog.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", name="Checkout")).to_be_visible()
    page.get_by_role("link", name=shop).click()
    page.wait_for_url(f"**/dashboard/websites/{shop}?period=7d")


def test_a_share_link_shows_goals_and_changes_none(
    owner: Client, shop: str, dashboard_of: Make
) -> None:
    first = define(owner, shop, "goals", name="Home", path="/")
    second = define(owner, shop, "goals", name="Order", path="/thanks")
    define(owner, shop, "funnels", name="Purchase", goals=[first, second])
    made = owner.request("POST", f"/api/websites/{shop}/shares", {"name": "club"})
    dashboard = dashboard_of(Client(owner.port))
    page = dashboard.page
    page.goto(f"{dashboard.base}/share/{made.json['id']}?period=7d")
    figures(page)
    assert rows(goals(page)) == ["Home 2 100%", "Order 1 50%"]
    goals(page).get_by_role("tab", name="Funnels").click()
    funnel = page.get_by_role("region", name="Purchase")
    assert rows(funnel) == ["Home 2 100%", "Order 1 50% 1 (50%)"]
    funnel.get_by_role("link", name="Purchase").click()
    page.wait_for_url("**/share/*/funnels/*?period=7d")
    steps = page.get_by_role("region", name="Steps")
    for _ in range(2):
        expect(steps.locator(".funnel-line")).to_have_text(["Home2100%", "Order150%"])
        expect(page.get_by_role("button", name="Edit: Purchase")).to_have_count(0)
        page.reload()
    page.get_by_role("button", name="Period:").click()
    page.get_by_role("menuitemradio", name="Today").click()
    page.wait_for_url("**/share/*/funnels/*?period=today")
    page.get_by_role("link", name=shop).click()
    page.wait_for_url("**/share/*?period=today")
    for name in ("New", "Edit"):
        expect(goals(page).get_by_role("button", name=name)).to_have_count(0)
