"""Share links: created in the settings, opened by others, embedded in frames."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import PHONE_WIDTH, Dashboard, loaded
from support.browser.example_site import served
from support.browser.known_website import HOSTNAME
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

SHARES = f"/api/websites/{HOSTNAME}/shares"
PASSWORD = "open sesame"


def shared(owner: Client, **details: Any) -> str:
    """Create a share link and return the path of its page."""
    made = owner.request("POST", SHARES, {"name": "club"} | details)
    assert made.status == HTTPStatus.CREATED, made
    return f"/share/{made.json['id']}"


def test_a_link_is_created_opened_and_revoked(known: Client, dashboard_of: Make) -> None:
    page = dashboard_of(known).open("settings/websites")
    page.get_by_role("button", name=f"Share links for {HOSTNAME}").click()
    dialog = page.get_by_role("dialog", name=f"Share links for {HOSTNAME}")
    dialog.get_by_label("Name").fill("for the board")
    dialog.get_by_role("button", name="Create link").click()
    address = dialog.locator("li", has_text="for the board").get_by_role("figure", name="Link")
    href = address.inner_text()
    dashboard = dashboard_of(Client(known.port), fresh=True)
    reader = dashboard.page
    asked: list[str] = []
    reader.on("request", lambda request: asked.append(urlsplit(request.url).path))
    reader.goto(href)
    figures = loaded(reader)
    expect(reader.get_by_role("heading", level=1)).to_have_text(HOSTNAME)
    expect(reader).to_have_title(f"{HOSTNAME} · medamad")
    expect(figures.first).to_have_text("12")
    expect(reader.get_by_role("button", name="Switch website")).to_have_count(0)
    # But for its head, the page is that of a website.
    assert dashboard.violations("all but colours", without=".panel") == []
    assert dashboard.violations("colours", within=".view-head") == []
    reader.set_viewport_size({"width": PHONE_WIDTH, "height": 800})
    assert not dashboard.is_wider_than_the_window()
    reader.emulate_media(color_scheme="dark")
    assert dashboard.violations(within=".view-head") == []
    reader.get_by_role("button", name="Period:").click()
    reader.get_by_role("menuitemradio", name="Last 7 days").click()
    expect(reader).to_have_url(f"{href}?period=7d")
    loaded(reader)
    api = {path for path in asked if path.startswith("/api/")}
    annotations = f"/api/websites/{HOSTNAME}/annotations"
    allowed = (f"/api/website/{HOSTNAME}/", annotations, "/api/shared/")
    assert api
    assert {path for path in api if not path.startswith(allowed)} == set()
    dialog.get_by_role("button", name="Revoke for the board").click()
    asking = page.get_by_role("dialog", name="Revoke for the board")
    asking.get_by_role("button", name="Revoke", exact=True).click()
    expect(asking).to_have_count(0)
    expect(dialog.locator(".saved")).to_have_text("for the board has been revoked.")
    reader.reload()
    expect(reader.get_by_role("heading", level=1)).to_have_text(
        "This link doesn’t exist or has been revoked."
    )


def test_a_password_opens_a_link_in_a_tab(known: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(Client(known.port))
    page = dashboard.page
    address, other = (dashboard.base + shared(known, password=PASSWORD) for _ in range(2))
    page.goto(address)
    field = page.get_by_label("Password")
    expect(field).to_be_focused()
    assert HOSTNAME not in page.content()
    assert dashboard.violations() == []
    field.fill("wrong")
    page.get_by_role("button", name="View statistics").click()
    expect(page.get_by_role("alert")).to_have_text("Incorrect password.")
    field.fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(loaded(page).first).to_have_text("12")
    assert page.context.cookies() == []
    page.reload()
    expect(loaded(page).first).to_have_text("12")
    expect(page).to_have_url(address)
    tab = page.context.new_page()
    tab.goto(address)
    expect(tab.get_by_label("Password")).to_be_visible()
    tab.close()
    # Nor does it open it after the time for which the daemon made it.
    page.evaluate(
        "for (const [name, key] of Object.entries(sessionStorage))"
        " sessionStorage.setItem(name, key.replace(/[.][0-9]+[.]/, '.1.'))"
    )
    page.reload()
    field.fill(PASSWORD)
    page.keyboard.press("Enter")
    loaded(page)
    page.goto(other)
    expect(field).to_be_visible()
    page.goto(address)
    loaded(page)


def test_the_owner_sees_what_others_see(known: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(known)
    page = dashboard.page
    page.goto(dashboard.base + shared(known, password=PASSWORD))
    expect(page.get_by_label("Password")).to_be_visible()


def test_it_is_shown_in_allowed_frames(known: Client, dashboard_of: Make) -> None:
    with served("") as site:
        origin = site.address("friend.localhost", "").removesuffix("/")
        dashboard = dashboard_of(Client(known.port))
        page = dashboard.page
        address = dashboard.base + shared(known, embed=[origin])
        contents = f'<iframe src="{address}" title="figures" width="900" height="700"></iframe>'
        site.contents = {"/": contents}
        page.goto(f"{origin}/")
        figures = page.frame_locator("iframe").locator(".tile-figure")
        expect(figures.first).to_have_text("12")
        with page.expect_console_message(lambda message: "frame-ancestors" in message.text):
            page.goto(site.address("visitor.localhost"))
        page.locator("iframe").wait_for()
        page.wait_for_load_state("networkidle")
        expect(page.frame_locator("iframe").locator(".tile-figure")).to_have_count(0)
        assert any("frame-ancestors" in text for text in dashboard.complaints)
        dashboard.complaints.clear()
