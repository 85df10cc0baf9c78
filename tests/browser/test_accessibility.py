"""Accessibility by axe-core: each page, light and dark, on a desktop and on a phone."""

from collections.abc import Callable
from http import HTTPStatus
from itertools import product
from typing import Final

import pytest
from attrs import frozen
from playwright.sync_api import Page, expect
from support.browser.dashboard import BUSY, DESKTOP_WIDTH, PHONE_WIDTH, SCHEMES, Dashboard, loaded
from support.browser.known_website import HOSTNAME as KNOWN_HOSTNAME
from support.daemon import USERNAME, Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

LOOKS: Final = (("light", DESKTOP_WIDTH), ("dark", PHONE_WIDTH))
"""Schemes differ in colours alone, widths in everything else."""
ALL_LOOKS: Final = tuple(product(SCHEMES, (DESKTOP_WIDTH, PHONE_WIDTH)))
LONG_HOSTNAME: Final = "a-name-that-is-long-enough-not-to-fit-onto-a-phone.example"
KNOWN: Final = f"websites/{KNOWN_HOSTNAME}?period=today"


@frozen
class Scene:
    """A page, and what is done before it is looked at."""

    path: str
    act: Callable[[Page], object] = lambda _page: None
    new: str = ""
    """What no other scene has. Its colours alone are examined."""
    whose: str = "demo"
    looks: tuple[tuple[str, int], ...] = LOOKS
    """The schemes and widths that it is examined in."""


PANELS: Final = ".panel:not(:has(dialog))"
MENU: Final = ":has(> [role=menu])"
TIP: Final = ".tip"
DIALOG: Final = "dialog"
ALIKE: Final = "tbody tr:nth-child(n+6), .map path:nth-child(n+4), [role=option]:nth-child(n+6)"
"""The others look like the first ones."""


def refused(page: Page) -> None:
    page.get_by_label("Username", exact=True).fill(USERNAME)
    page.get_by_label("Password", exact=True).fill("not the password")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("Incorrect username or password.").wait_for()


def figures(page: Page) -> None:
    """Wait for all of a website's page: its lists and its map come when they are scrolled to."""
    loaded(page)
    for panel in page.locator(".panel").all():
        panel.scroll_into_view_if_needed()
        panel.locator("tbody tr, .map path").first.wait_for()


def chosen(page: Page) -> None:
    panel = page.get_by_role("region", name="Technology")
    panel.scroll_into_view_if_needed()
    panel.get_by_role("tab", name="Browsers").click()
    panel.locator("[aria-pressed=true]").first.wait_for()


def table(page: Page) -> None:
    loaded(page)
    page.get_by_role("button", name="Show as table").click()
    page.locator(".chart-table td").first.wait_for()


def tip(page: Page) -> None:
    loaded(page)
    # The chart is redrawn when the previous period arrives.
    page.wait_for_load_state("networkidle")
    page.get_by_role("group", name="Chart: ").focus()
    page.keyboard.press("Home")
    page.locator(".tip").wait_for()


def full_list(page: Page) -> None:
    page.get_by_role("region", name="Pages").get_by_role("button", name="Show all").click()
    page.get_by_role("dialog").locator("tbody tr").first.wait_for()


def editor(page: Page) -> None:
    page.get_by_role("button", name="Add filter").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("combobox", name="Condition").select_option(label="is one of")
    dialog.locator("[role=option]").first.click()
    dialog.locator("[role=option]").first.wait_for()


def menu(name: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        page.get_by_role("button", name=name).click()
        page.get_by_role("menu").wait_for()

    return act


def key(name: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        loaded(page)
        page.keyboard.press(name)
        page.get_by_role("dialog").wait_for()

    return act


def edited(page: Page) -> None:
    page.get_by_role("listitem").get_by_role("button", name="Edit: ").first.click()
    page.get_by_role("dialog").locator("select").first.wait_for()


def counting(page: Page) -> None:
    page.get_by_role("button", name="Counting").first.click()
    page.get_by_role("dialog").locator("textarea").first.wait_for()


def live(page: Page) -> None:
    key("l")(page)
    page.get_by_role("dialog").locator("tbody tr").first.wait_for()


def robots(page: Page) -> None:
    for panel in page.locator(".panel").all():
        panel.locator("tbody tr").first.wait_for()
    page.get_by_role("button", name="AI training").click()
    page.get_by_role("button", name="Count all robots").wait_for()


def section(page: Page) -> None:
    page.locator(".settings-content h2").first.wait_for()
    for summary in page.locator("summary").all():
        summary.click()


def alert(page: Page) -> None:
    page.get_by_role("button", name="Try it now: ").first.click()
    # The webhook cannot be reached.
    page.get_by_text("Not delivered: ").first.wait_for()
    page.locator("summary").first.click()


def token(page: Page) -> None:
    form = page.get_by_role("region", name="Create token")
    form.get_by_role("textbox", name="Name").fill("weekly report")
    form.get_by_role("button", name="Create token").click()
    form.get_by_role("figure", name="Token").wait_for()
    page.get_by_role("button", name="Revoke weekly report").first.wait_for()


def dialog_of(doing: str) -> Callable[[Page], None]:
    def act(page: Page) -> None:
        page.get_by_role("button", name=f"{doing} {KNOWN_HOSTNAME}").click()
        page.get_by_role("dialog").wait_for()

    return act


def shares(page: Page) -> None:
    dialog_of("Share links for")(page)
    page.get_by_role("dialog").locator("li").first.wait_for()


def waiting(page: Page) -> None:
    for summary in page.locator("summary").all():
        summary.click()
    page.get_by_text(f"Hits are arriving for other.{LONG_HOSTNAME}").wait_for()


SCENES: Final = {
    "login": Scene("", refused, whose="nobody"),
    "websites": Scene("", lambda page: page.locator(".curve svg").first.wait_for()),
    "order of websites": Scene("", menu("Sort"), MENU),
    "menu": Scene("", menu("Menu"), MENU),
    "website": Scene(BUSY, figures),
    "chart's tip": Scene(BUSY, tip, TIP),
    "chart's table": Scene(BUSY, table, ".chart-table"),
    "switcher": Scene(BUSY, menu("Switch website"), MENU),
    "no visits": Scene(f"{BUSY}?from=2020-01-01&to=2020-01-01"),
    "periods": Scene(f"{BUSY}?from=2020-01-01&to=2020-01-01", menu("Period:"), MENU),
    "campaigns": Scene(BUSY, menu("Campaigns by: "), MENU),
    "setup": Scene(f"{BUSY}/setup"),
    "a demo's account": Scene("settings/account", section),
    "robots": Scene(f"{BUSY}/robots?period=7d", robots, ".robots-page section"),
    "no page": Scene("nowhere"),
    "adding a website": Scene("add", whose="owner"),
    **{
        f"settings: {name}": Scene(f"settings/{name}", section, whose="owner")
        for name in ("account", "websites", "reports", "tracker", "usage", "about")
    },
    "settings: alerts": Scene("settings/alerts", alert, whose="owner"),
    "alert dialog": Scene("settings/alerts", edited, DIALOG, whose="owner"),
    "report dialog": Scene("settings/reports", edited, DIALOG),
    "settings: tokens": Scene("settings/tokens", token, whose="owner"),
    "setup, waiting": Scene(f"websites/{LONG_HOSTNAME}/setup", waiting, whose="owner"),
    "filtered": Scene(
        f"{KNOWN}&browser[eq]=Firefox&path[not_in]={'long-' * 200},/x",
        chosen,
        ".filters, .panel tr:has([aria-pressed=true])",
        whose="owner",
    ),
    # The background of a list's first column depends on the width.
    "full list": Scene(KNOWN, full_list, DIALOG, whose="owner", looks=ALL_LOOKS),
    "filter editor": Scene(KNOWN, editor, DIALOG, whose="owner"),
    "days": Scene(KNOWN, key("r"), DIALOG, whose="owner"),
    "zones": Scene(KNOWN, key("z"), DIALOG, whose="owner"),
    "keys": Scene(KNOWN, key("?"), DIALOG, whose="owner"),
    "live": Scene(KNOWN, live, DIALOG, whose="owner"),
    **{
        f"{doing} dialog": Scene("settings/websites", dialog_of(doing), DIALOG, whose="owner")
        for doing in ("Rename", "Delete")
    },
    "what counts": Scene("settings/websites", counting, DIALOG, whose="owner"),
    "share links": Scene("settings/websites", shares, DIALOG, whose="owner"),
}


@pytest.fixture(scope="module")
def furnished_owner(known: Client) -> Client:
    """The owner of a website with a share link, of one that waits for a visit, and of an alert."""
    link = {"name": "club", "embed": ["https://www.example.com"], "password": "open sesame"}
    made = known.request("POST", f"/api/websites/{KNOWN_HOSTNAME}/shares", link)
    assert made.status == HTTPStatus.CREATED, made
    alert = {"kind": "disk", "threshold": 5, "url": "http://127.0.0.1/"}
    assert known.request("POST", "/api/user/alerts", alert).status == HTTPStatus.CREATED
    known.add_website(LONG_HOSTNAME)
    load = {"e": "load", "b": "one", "u": f"https://{LONG_HOSTNAME}/", "p": True, "q": True}
    crawler = {"User-Agent": "Googlebot/2.1"}
    assert known.request("POST", "/api/event/hit", load, crawler).status == HTTPStatus.NO_CONTENT
    elsewhere = load | {"u": f"https://other.{LONG_HOSTNAME}/"}
    assert known.request("POST", "/api/event/hit", elsewhere).status == HTTPStatus.NOT_FOUND
    return known


def shown(dashboard: Dashboard, scene: Scene) -> Page:
    """Close what the scene before has opened, and open a page unless that scene has left it."""
    page = dashboard.page
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator("dialog, [role=menu], .tip")).to_have_count(0)
    if scene.new and page.url == f"{dashboard.base}/dashboard/{scene.path}":
        return page
    return dashboard.turn_to(scene.path)


@pytest.mark.parametrize(
    "every_rule", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["", "every rule"]
)
@pytest.mark.parametrize("scene", SCENES.values(), ids=SCENES)
def test_axe_finds_nothing(
    scene: Scene, demo: Client, furnished_owner: Client, dashboard_of: Make, *, every_rule: bool
) -> None:
    clients = {"demo": demo, "owner": furnished_owner, "nobody": Client(demo.port)}
    dashboard = dashboard_of(clients[scene.whose])
    page = shown(dashboard, scene)
    scene.act(page)
    is_part = bool(scene.new) and not every_rule
    without = "" if every_rule else f"{PANELS}, {ALIKE}" if is_part else ALIKE
    found = {}
    if is_part:
        found["the whole page"] = dashboard.violations("all but colours", without=without)
    for scheme, width in ALL_LOOKS if every_rule else scene.looks:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size({"width": width, "height": 800})
        if scene.new == TIP:
            # It goes when the chart is drawn again.
            page.evaluate("new Promise(then => requestAnimationFrame(() => setTimeout(then)))")
            scene.act(page)
        found[f"{scheme}, {width} pixels wide"] = dashboard.violations(
            "colours" if is_part and (scheme, width) == LOOKS[0] else "all",
            within=scene.new if is_part else "",
            without=without,
        )
    assert not any(found.values()), found
    # What was opened in a wide window lies where it did there.
    assert scene.new in (MENU, TIP) or not dashboard.is_wider_than_the_window()
