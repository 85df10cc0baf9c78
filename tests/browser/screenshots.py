"""Take pictures of every page and dialog: python tests/browser/screenshots.py FOLDER [NAME …].

On a desktop and on a phone, light and dark. With names, of those scenes alone.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

sys.path.append(str(Path(__file__).parents[1]))

from attrs import frozen
from playwright.sync_api import Page
from support.browser.chromium import chromium_running
from support.browser.dashboard import BUSY, demonstration, opened, settle
from support.browser.known_website import Visit, send
from support.daemon import Client, running

WIDTHS: Final[dict[str, dict[str, Any]]] = {
    "desktop": {"viewport": {"width": 1280, "height": 800}},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "device_scale_factor": 2,
        "has_touch": True,
        "is_mobile": True,
    },
}
SCHEMES: Final = ("light", "dark")
TODAY: Final = datetime.now(UTC).date()
SHOP: Final = "websites/shop.gardenpost.example"
FORTNIGHT: Final = f"from={TODAY - timedelta(14)}&to={TODAY - timedelta(1)}"
_PAST_ANIMATIONS_MS: Final = 400


@frozen
class Places:
    """Whom the scenes ask."""

    demo: Client
    owner: Client
    beginner: Client


@frozen
class Scene:
    """A page, or what becomes of it by `act`. `whole` is the page in its full height."""

    who: Callable[[Places], Client]
    path: str
    act: Callable[[Page], object] = lambda _page: None
    whole: bool = True


def demo(places: Places) -> Client:
    return places.demo


def owner(places: Places) -> Client:
    return places.owner


def press(name: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_role("button", name=name).first.click()


def tab(name: str) -> Callable[[Page], None]:
    return lambda page: page.get_by_role("tab", name=name, exact=True).click()


def change_of_visits(page: Page) -> None:
    page.locator(".tile .change").nth(1).click()
    page.locator(".changes-said p").first.wait_for()


def new_goal(page: Page) -> None:
    press("New goal")(page)
    page.get_by_role("combobox", name="Page", exact=True).fill("/shop/*")


def new_funnel(page: Page) -> None:
    tab("Funnels")(page)
    press("New funnel")(page)
    for place in (1, 1):
        page.get_by_label("Add a step").select_option(index=place)


def choose_a_goal(page: Page) -> None:
    page.locator(".goal-rows button[aria-pressed]").first.click()


def open_the_funnel(page: Page) -> None:
    tab("Funnels")(page)
    page.locator(".funnel h3 a").first.click()


def key(name: str) -> Callable[[Page], None]:
    return lambda page: page.keyboard.press(name)


def point_at_the_chart(page: Page) -> None:
    box = page.locator(".chart-body canvas").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.5 * box["height"])


def show_parts(page: Page) -> None:
    """Show other tabs of the panels."""
    for tab in ("Entry", "Campaigns", "Countries", "Operating systems"):
        page.get_by_role("tab", name=tab, exact=True).click()
    page.locator(".panel").last.locator("tbody button").first.click()
    page.evaluate("scrollTo(0, 0)")


def write_a_list(page: Page) -> None:
    page.get_by_role("button", name="Add filter").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Filter by").select_option("country")
    dialog.get_by_label("Condition").select_option("in")
    for name in ("Germany", "France"):
        dialog.get_by_label("Values").fill(name)
        page.keyboard.press("Enter")


def be_wrong(page: Page) -> None:
    page.get_by_label("Username").fill("ada")
    page.get_by_label("Password", exact=True).fill("wrong")
    page.keyboard.press("Enter")
    page.get_by_role("alert").first.wait_for()


def lose_the_daemon(page: Page) -> None:
    page.context.set_offline(True)
    page.keyboard.press(".")
    page.locator(".away").wait_for()


SCENES: Final = {
    "login": Scene(lambda places: Client(places.demo.port), ""),
    "login-wrong": Scene(lambda places: Client(places.demo.port), "", be_wrong),
    "websites": Scene(demo, ""),
    "websites-none": Scene(lambda places: places.beginner, ""),
    "website": Scene(demo, BUSY),
    "website-fortnight": Scene(demo, f"{BUSY}?{FORTNIGHT}"),
    "website-first-sight": Scene(demo, f"{BUSY}?{FORTNIGHT}", whole=False),
    "website-alone": Scene(demo, f"{BUSY}?period=7d&compare=none&measure=pageviews"),
    "website-today": Scene(demo, f"{BUSY}?period=today", point_at_the_chart, whole=False),
    "website-parts": Scene(demo, BUSY, show_parts),
    "website-filtered": Scene(
        demo, f"{BUSY}?browser[in]=Chrome,Firefox&path[not_starts_with]=/blog&device[eq]=Desktop"
    ),
    "website-page": Scene(demo, f"{BUSY}?path[eq]=/journal/slow-mornings"),
    "website-source": Scene(demo, f"{BUSY}?visit_referrer[eq]=Google", show_parts),
    "website-goals": Scene(demo, SHOP),
    "website-funnels": Scene(demo, SHOP, tab("Funnels")),
    "website-funnel": Scene(demo, SHOP, open_the_funnel),
    "website-goal": Scene(demo, SHOP, choose_a_goal),
    "goal": Scene(demo, SHOP, new_goal, whole=False),
    "funnel": Scene(demo, SHOP, new_funnel, whole=False),
    "website-table": Scene(demo, f"{BUSY}?period=7d", press("Show as table")),
    "website-quiet": Scene(owner, "websites/waiting.example"),
    "website-unknown": Scene(demo, "websites/nowhere.example"),
    "website-away": Scene(demo, BUSY, lose_the_daemon, whole=False),
    "menu": Scene(demo, BUSY, press("Menu"), whole=False),
    "menu-websites": Scene(demo, BUSY, press("Switch website"), whole=False),
    "menu-campaigns": Scene(demo, BUSY, press("Campaigns by: "), whole=False),
    "menu-periods": Scene(demo, BUSY, press("Period"), whole=False),
    "list": Scene(demo, BUSY, press("Show all"), whole=False),
    "filter": Scene(demo, BUSY, press("Add filter"), whole=False),
    "filter-list": Scene(demo, BUSY, write_a_list, whole=False),
    "days": Scene(demo, BUSY, key("r"), whole=False),
    "zone": Scene(demo, BUSY, key("z"), whole=False),
    "shortcuts": Scene(demo, BUSY, key("?"), whole=False),
    "live": Scene(demo, BUSY, key("l"), whole=False),
    "what-changed": Scene(demo, BUSY, change_of_visits, whole=False),
    "add": Scene(owner, "add"),
    "setup-waiting": Scene(owner, "websites/waiting.example/setup"),
    "setup-puzzled": Scene(owner, "websites/puzzled.example/setup"),
    "setup-done": Scene(owner, "websites/example.com/setup"),
    "settings-account": Scene(owner, "settings/account"),
    "settings-websites": Scene(owner, "settings/websites"),
    "settings-counting": Scene(owner, "settings/websites", press("Counting"), whole=False),
    "settings-rename": Scene(owner, "settings/websites", press("Rename"), whole=False),
    "settings-delete": Scene(owner, "settings/websites", press("Delete"), whole=False),
    "settings-alerts": Scene(owner, "settings/alerts"),
    "settings-tracker": Scene(owner, "settings/tracker"),
    "settings-usage": Scene(owner, "settings/usage"),
    "settings-about": Scene(owner, "settings/about"),
    "settings-demo": Scene(demo, "settings/account"),
    "no-page": Scene(demo, "nowhere"),
}


@contextmanager
def places() -> Iterator[Places]:
    """Run a demonstration, a daemon with three websites, and one with none."""
    with (
        TemporaryDirectory() as one,
        TemporaryDirectory() as other,
        demonstration() as demo,
        running(Path(one)) as daemon,
        running(Path(other)) as beginning,
    ):
        owner = daemon.client()
        for hostname in ("example.com", "puzzled.example", "waiting.example"):
            owner.add_website(hostname)
        send(owner, "example.com", Visit("/"))
        send(owner, "puzzled.example", Visit("/", agent="Googlebot/2.1"))
        yield Places(demo, owner, beginning.client())


def main(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with places() as asked, chromium_running() as chromium:
        for name, scene in SCENES.items():
            if names and name not in names:
                continue
            for width, options in WIDTHS.items():
                for scheme in SCHEMES:
                    client = scene.who(asked)
                    dashboard = opened(chromium, client, color_scheme=scheme, **options)
                    page = dashboard.open(scene.path)
                    settle(page)
                    scene.act(page)
                    page.wait_for_timeout(_PAST_ANIMATIONS_MS)
                    file = folder / f"{name}-{width}-{scheme}.png"
                    page.screenshot(path=file, full_page=scene.whole)
                    page.context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
