"""What holds on every page: theme, keys, languages, fresh figures, trouble, a new build."""

import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from daemon import Client, Daemon
from dashboard import PHONE_WIDTH, Dashboard
from known import Visit, send
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Locator, Page, Request, Route, expect

import medamad

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

BUSY: Final = "websites/gardenpost.example"
CATALOGUES: Final = Path(medamad.__file__).parent / "frontend" / "dashboard" / "i18n"
LANGUAGES: Final = ("en", "de", "fr", "es", "ja", "zh")
REFRESH_S: Final = 30
RETRY_S: Final = 5
BRIGHT: Final = 200


def said(language: str, key: str) -> str:
    """Give a short text of a catalogue."""
    files = (
        (CATALOGUES / "en").glob("*.ts") if language == "en" else [CATALOGUES / f"{language}.ts"]
    )
    source = "\n".join(file.read_text("utf-8") for file in files)
    found = re.search(rf'"{re.escape(key)}":\s*"([^"]+)"', source)
    assert found, key
    return found[1]


def loaded(page: Page) -> Locator:
    """Give the figures of a website's page, once they are there."""
    figures = page.locator(".tile-figure")
    expect(figures).to_have_count(4)
    return figures


def is_dark(page: Page) -> bool:
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return all(int(part) < BRIGHT for part in re.findall(r"\d+", paper))


# The theme.


def test_the_theme_is_that_of_the_system(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo, color_scheme="light").open(BUSY)
    loaded(page)
    light = page.locator(".chart canvas").evaluate("canvas => canvas.toDataURL()")
    assert not is_dark(page)
    page.emulate_media(color_scheme="dark")
    assert is_dark(page)
    page.wait_for_function(
        "light => document.querySelector('.chart canvas')?.toDataURL() !== light", arg=light
    )


@pytest.mark.parametrize(("system", "chosen"), [("light", "Dark"), ("dark", "Light")])
def test_another_theme_is_chosen(
    system: str, chosen: str, demo: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(demo, color_scheme=system).open()

    def choose(name: str) -> None:
        page.get_by_role("button", name="Menu").click()
        page.get_by_role("menuitemradio", name=name).click()

    choose(chosen)
    assert is_dark(page) == (chosen == "Dark")
    page.reload()
    page.get_by_role("heading", level=1).wait_for()
    assert is_dark(page) == (chosen == "Dark")
    page.emulate_media(color_scheme="light" if system == "dark" else "dark")
    assert is_dark(page) == (chosen == "Dark")
    choose("As the system")
    assert is_dark(page) == (system == "light")


def test_the_chosen_theme_is_there_before_the_page_is(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, color_scheme="light")
    page = dashboard.open()
    page.evaluate("localStorage.setItem('medamad.theme', 'dark')")
    page.route("**/api/**", lambda _route: None)
    page.reload(wait_until="domcontentloaded")
    assert is_dark(page)


# Keys.


def dialog(name: str) -> Callable[[Page], None]:
    def check(page: Page) -> None:
        expect(page.get_by_role("dialog", name=name)).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)

    return check


def address(end: str) -> Callable[[Page], None]:
    return lambda page: page.wait_for_url(re.compile(rf"{re.escape(end)}$"))


def heading(name: str) -> Callable[[Page], None]:
    def check(page: Page) -> None:
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        page.go_back()
        loaded(page)

    return check


def switcher(page: Page) -> None:
    expect(page.get_by_role("menuitemradio", checked=True)).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)


KEYS: Final[dict[str, Callable[[Page], None]]] = {
    "?": dialog("Keyboard shortcuts"),
    "g w": heading("Websites"),
    "g s": heading("Settings"),
    "s": switcher,
    "y": address("?period=yesterday"),
    "t": address("?period=today"),
    "d": address("?period=24h"),
    "q": address("?period=90d"),
    "m": address(BUSY),
    "w": address("?period=7d"),
    "h": address("?period=6mo"),
    "a": address("?period=all"),
    "x": address("?period=12mo"),
    "r": dialog("Choose days"),
    "c": address("?period=12mo&compare=none"),
    "z": dialog("Time zone"),
    "f": dialog("Add a filter"),
    ".": lambda _page: None,
    "←": lambda page: page.wait_for_url("**?from=*&to=*&compare=none"),
    "→": address("?period=12mo&compare=none"),
}
"""Each key of a website's page, one after the other, and what shows that it did its work."""


def test_every_key_that_is_listed_works(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(BUSY)
    loaded(page)
    page.keyboard.press("?")
    rows = page.locator(".keys-row")
    listed = [" ".join(row.locator("kbd").all_inner_texts()) for row in rows.all()]
    assert sorted(listed) == sorted(KEYS)
    assert all(text.strip() for text in page.locator(".keys-row dd").all_inner_texts())
    page.keyboard.press("Escape")
    for keys, check in KEYS.items():
        expect(page.get_by_role("dialog")).to_have_count(0)
        for key in keys.replace("←", "ArrowLeft").replace("→", "ArrowRight").split():
            page.keyboard.press(key)
        check(page)


def test_a_key_refreshes(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(BUSY)
    loaded(page)
    page.wait_for_load_state("networkidle")
    with page.expect_response("**/summary?*"), page.expect_response("**/live"):
        page.keyboard.press(".")


def test_a_key_adds_a_website(owner: Client, dashboard_of: Make) -> None:
    page = dashboard_of(owner).open()
    page.get_by_role("link", name="Add a website").first.wait_for()
    page.keyboard.press("?")
    expect(page.locator(".keys-row").filter(has_text="Add a website").locator("kbd")).to_have_text(
        "n"
    )
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", level=1)).to_have_text("Add a website")


def test_keys_are_letters_where_something_is_typed(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(BUSY)
    loaded(page)
    page.keyboard.press("f")
    value = page.get_by_role("combobox", name="Value")
    expect(value).to_be_focused()
    page.keyboard.type("ty?")
    expect(value).to_have_value("ty?")
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+y")
    page.keyboard.press("c")
    page.wait_for_url("**?compare=none")


# Languages.


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_figures_and_dates_are_written_as_in_the_language(
    spoken: str, demo: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(demo).open("settings/account")
    page.locator("select").select_option(spoken)
    expect(page.locator("html")).to_have_attribute("lang", spoken)
    expect(page.get_by_role("heading", level=1)).to_have_text(said(spoken, "settings.title"))
    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page.get_by_role("heading", level=1)).to_have_text(said(spoken, "websites.title"))
    page.locator("main li a").first.click()
    figures = loaded(page)
    names = [said(spoken, f"measure.{name}") for name in ("visitors", "pageviews")]
    expect(page.locator(".tile-name").first).to_have_text(names[0])
    expect(page.locator(".tile-name").nth(1)).to_have_text(names[1])
    shown = figures.nth(1).get_attribute("title") or ""
    views = int(re.sub(r"\D", "", shown))
    assert views > 1_000
    assert shown == f"{views:,}".replace(",", thousands(spoken, views))
    month = re.compile("月") if spoken in ("ja", "zh") else re.compile(r"[^\W\d]{3}")
    expect(page.locator(".overview tbody th").first).to_have_text(month)
    day = page.locator(".overview tbody th").first.text_content() or ""
    assert day == page.evaluate(
        """([locale, date]) => new Intl.DateTimeFormat(locale, {
          weekday: "short", day: "numeric", month: "long", year: "numeric", timeZone: "UTC",
        }).format(new Date(date))""",
        ["en-GB" if spoken == "en" else spoken, first_day(page)],
    )


def thousands(spoken: str, value: int) -> str:
    """Give what parts thousands: Spanish leaves four digits together."""
    if spoken == "es" and value < 10_000:
        return ""
    return {"de": ".", "es": ".", "fr": "\N{NARROW NO-BREAK SPACE}"}.get(spoken, ",")


def first_day(page: Page) -> str:
    """Give the day with which the last 30 days begin in the viewer's zone."""
    return str(
        page.evaluate(
            """() => {
              const day = new Date();
              day.setDate(day.getDate() - 29);
              return [day.getFullYear(), day.getMonth() + 1, day.getDate()]
                .map((part) => String(part).padStart(2, "0")).join("-");
            }"""
        )
    )


def test_a_language_is_kept(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    dashboard = dashboard_of(owner)
    page = dashboard.open("settings/account")
    for spoken in (*LANGUAGES[1:], "en"):
        page.locator("select").select_option(spoken)
        expect(
            page.get_by_role("status").filter(has_text=said(spoken, "common.saved"))
        ).to_be_visible()
        assert owner.get("/api/user")["settings"]["language"] == spoken
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text(said(spoken, "settings.title"))
        expect(page.locator("html")).to_have_attribute("lang", spoken)


def test_figures_are_written_as_in_the_viewers_region(
    new_daemon: Daemon, dashboard_of: Make
) -> None:
    owner = new_daemon.client()
    owner.request("PATCH", "/api/user", {"settings": {"language": "de"}})
    owner.add_website("example.com")
    for _ in range(1_000):
        load = {"e": "load", "u": "https://example.com/", "p": False, "q": False}
        owner.request("POST", "/api/event/hit", load | {"b": f"b{_}"})
    page = dashboard_of(owner, locale="de-CH").open("websites/example.com")
    expect(loaded(page).nth(1)).to_have_text(re.compile("1['\N{RIGHT SINGLE QUOTATION MARK}]000"))


@pytest.mark.parametrize(("locale", "spoken"), [("fr-CA", "fr"), ("zh-CN", "zh"), ("it", "en")])
def test_the_login_speaks_as_the_browser(
    locale: str, spoken: str, daemon: Daemon, dashboard_of: Make
) -> None:
    page = dashboard_of(Client(daemon.port), locale=locale).open()
    expect(page.get_by_role("heading", level=1)).to_have_text(said(spoken, "login.title"))
    expect(page.locator("html")).to_have_attribute("lang", spoken)


# Figures that are on their way.


class Held:
    """Requests that wait until they are let go."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._waiting: list[Route] | None = []
        page.route(pattern, self._take)

    def _take(self, route: Route) -> None:
        if self._waiting is None:
            route.continue_()
        else:
            self._waiting.append(route)

    def let_go(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        for route in waiting:
            # What was asked anew in the meantime has been given up by the page.
            with suppress(PlaywrightError):
                route.continue_()


def test_skeletons_stand_in_for_what_is_loading(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    held = Held(dashboard.page, "**/api/website/**")
    page = dashboard.open(BUSY)
    expect(page.locator(".tile .skeleton")).to_have_count(4)
    expect(page.locator(".chart-body .skeleton")).to_be_visible()
    expect(page.locator(".panel .skeleton").first).to_be_visible()
    held.let_go()
    loaded(page)
    page.locator(".panel tbody tr").first.wait_for()
    expect(page.locator(".overview .skeleton")).to_have_count(0)


def test_the_last_figures_stay_while_others_are_read(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(BUSY)
    before = loaded(page).all_inner_texts()
    page.wait_for_load_state("networkidle")
    held = Held(page, "**/api/website/**")
    with page.expect_request("**/summary?*"):
        page.keyboard.press(".")
    expect(page.locator(".overview")).to_have_attribute("aria-busy", "true")
    assert loaded(page).all_inner_texts() == before
    # Those of another period are shown as what they are: old.
    page.keyboard.press("y")
    expect(page.locator(".tiles.stale")).to_be_visible()
    assert loaded(page).all_inner_texts() == before
    expect(page.locator(".skeleton")).to_have_count(0)
    held.let_go()
    expect(page.locator(".stale")).to_have_count(0)
    assert loaded(page).all_inner_texts() != before
    expect(page.locator(".overview")).to_have_attribute("aria-busy", "false")
    # What was read before is there at once.
    held = Held(page, "**/api/website/**")
    page.keyboard.press("m")
    expect(loaded(page)).to_have_text(before)
    expect(page.locator(".tiles.stale")).to_have_count(0)
    held.let_go()


# Trouble.


def abort(route: Route) -> None:
    route.abort("connectionrefused")


def test_a_daemon_that_goes_away_and_comes_back(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    dashboard.page.clock.install()
    page = dashboard.open(BUSY)
    before = loaded(page).all_inner_texts()
    page.wait_for_load_state("networkidle")
    page.context.set_offline(True)
    page.keyboard.press(".")
    away = page.get_by_role("alert")
    expect(away).to_contain_text("The server does not answer")
    expect(away).to_contain_text("These are the last figures that were read.")
    assert loaded(page).all_inner_texts() == before
    page.context.set_offline(False)
    away.get_by_role("button", name="Try again").click()
    expect(away).to_have_count(0)
    # It is asked again without our doing, too.
    page.context.set_offline(True)
    page.keyboard.press(".")
    expect(away).to_be_visible()
    page.context.set_offline(False)
    page.clock.fast_forward(RETRY_S * 1000)
    expect(away).to_have_count(0)
    assert loaded(page).all_inner_texts() == before


def test_a_daemon_that_is_away_from_the_start(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    page = dashboard.page
    page.clock.install()
    page.route("**/api/**", abort)
    page.goto(f"{dashboard.base}/dashboard/{BUSY}")
    expect(page.get_by_role("alert")).to_have_text("The server does not answer")
    page.unroute("**/api/**")
    page.clock.fast_forward(RETRY_S * 1000)
    loaded(page)
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_fault_is_told_where_it_is(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    fault = {"error": {"code": 500, "message": "an internal fault"}}
    dashboard.page.route("**/summary?*", lambda route: route.fulfill(status=500, json=fault))
    page = dashboard.open(BUSY)
    trouble = page.locator(".overview").get_by_role("alert")
    expect(trouble).to_contain_text("That did not work")
    page.locator(".panel tbody tr").first.wait_for()
    page.unroute("**/summary?*")
    trouble.get_by_role("button", name="Try again").click()
    loaded(page)
    expect(trouble).to_have_count(0)
    assert dashboard.complaints
    dashboard.complaints.clear()


def test_no_old_figures_stand_for_others_that_failed(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    page = dashboard.open(f"{BUSY}?period=yesterday")
    loaded(page)
    page.locator(".panel tbody tr").first.wait_for()
    page.wait_for_load_state("networkidle")
    fault = {"error": {"code": 500, "message": "an internal fault"}}
    page.route("**/api/website/**", lambda route: route.fulfill(status=500, json=fault))
    page.keyboard.press("t")
    trouble = page.locator(".overview").get_by_role("alert")
    expect(trouble).to_contain_text("That did not work")
    expect(page.locator(".panel").first.get_by_role("alert")).to_be_visible()
    expect(page.locator(".tile-figure, .overview tbody tr, .panel tbody tr")).to_have_count(0)
    # Those of the period that was read are still there.
    page.keyboard.press("y")
    loaded(page)
    page.keyboard.press("a")
    expect(trouble).to_be_visible()
    expect(page.locator(".tile-figure")).to_have_count(0)
    page.unroute("**/api/website/**")
    page.route("**/api/**", abort)
    page.keyboard.press("w")
    expect(trouble).to_contain_text("The server does not answer")
    expect(page.locator(".tile-figure")).to_have_count(0)
    page.unroute("**/api/**")
    trouble.get_by_role("button", name="Try again").click()
    loaded(page)
    dashboard.complaints.clear()


def test_a_part_that_cannot_be_fetched(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(BUSY)
    loaded(page)
    page.route("**/assets/days-dialog-*.js", abort)
    page.keyboard.press("r")
    trouble = page.get_by_role("alert")
    expect(trouble).to_contain_text("The server does not answer")
    page.unroute("**/assets/days-dialog-*.js")
    trouble.get_by_role("button", name="Try again").click()
    loaded(page)
    page.keyboard.press("r")
    expect(page.get_by_role("dialog", name="Choose days")).to_be_visible()


def test_a_login_that_has_ended(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    page = dashboard_of(owner).open("websites/example.com?period=7d")
    loaded(page)
    assert owner.request("POST", "/api/auth/logout").status == 204
    page.keyboard.press(".")
    expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
    assert page.url.endswith("/websites/example.com?period=7d")


@pytest.mark.parametrize("path", ["nowhere/at/all", "settings/nope"])
def test_an_address_without_a_page(path: str, demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open(path)
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no such page.")
    page.get_by_role("link", name="To the websites").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Websites")


# Fresh figures.


def hide(page: Page, is_hidden: bool) -> None:
    """Have the page believe that its tab went into the background, or came back."""
    page.evaluate(
        """(isHidden) => {
          Object.defineProperty(document, "hidden", { get: () => isHidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        }""",
        is_hidden,
    )


def test_figures_are_refreshed_while_the_page_is_seen(
    new_daemon: Daemon, dashboard_of: Make
) -> None:
    owner = new_daemon.client()
    owner.add_website("example.com")
    dashboard = dashboard_of(owner)
    page = dashboard.page
    page.clock.install()
    asked: list[str] = []

    def note(request: Request) -> None:
        if "/api/website/" in request.url:
            asked.append(request.url)

    page.on("request", note)
    dashboard.open("websites/example.com")
    expect(loaded(page).first).to_have_text("0")
    page.wait_for_load_state("networkidle")
    send(owner, "example.com", Visit("/"))
    asked.clear()
    # The page's clock goes on meanwhile: there is time left for a machine that is slow.
    page.clock.fast_forward(REFRESH_S * 1000 - 15_000)
    assert asked == []
    page.clock.fast_forward(15_000)
    expect(loaded(page).first).to_have_text("1")
    page.wait_for_load_state("networkidle")

    hide(page, True)
    send(owner, "example.com", Visit("/"))
    asked.clear()
    page.clock.fast_forward(10 * REFRESH_S * 1000)
    page.evaluate("fetch('/api/event/ping')")
    assert asked == []
    expect(loaded(page).first).to_have_text("1")
    hide(page, False)
    expect(loaded(page).first).to_have_text("2")


# A new build.


class Builds:
    """Answers of other builds of the daemon.

    Of two names, the first answer to each page bears one and all others the other, by turns.
    """

    def __init__(self, page: Page, *names: str) -> None:
        self.names = names
        self.pages = 0
        page.route("**/api/**", self._answer)

    def _answer(self, route: Route) -> None:
        # Who is logged in is asked first, and once.
        is_first = route.request.url.endswith("/api/user")
        self.pages += is_first
        name = self.names[(self.pages + is_first) % len(self.names)]
        with suppress(PlaywrightError):  # the page is loaded anew before all have their answer
            answer = route.fetch()
            route.fulfill(response=answer, headers=answer.headers | {"x-api-commit": name})


def refresh(page: Page) -> None:
    with page.expect_response("**/live"):
        page.keyboard.press(".")


def test_a_new_build_is_loaded_once(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    builds = Builds(dashboard.page, "one")
    page = dashboard.open(BUSY)
    loaded(page)
    refresh(page)
    assert builds.pages == 1
    for name, loads in (("two", 2), ("three", 3)):
        builds.names = (name,)
        with page.expect_event("load"):
            page.keyboard.press(".")
        loaded(page)
        for _ in range(3):
            refresh(page)
        assert builds.pages == loads


def test_two_builds_by_turns_make_no_loop(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    builds = Builds(dashboard.page, "one", "two")
    page = dashboard.page
    page.goto(f"{dashboard.base}/dashboard/{BUSY}")
    expect(page.locator(".panel tbody tr").first).to_be_visible()
    for _ in range(5):
        loaded(page)
        refresh(page)
    assert 2 <= builds.pages <= 3


# Motion and width.


def moving(page: Page) -> list[str]:
    """Name what moves or would move."""
    names: list[str] = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((element) => {
          const style = getComputedStyle(element);
          return style.animationName !== "none"
            || style.transitionDuration.split(", ").some((time) => time !== "0s");
        }).map((element) => element.className)"""
    )
    return names


def test_nothing_moves_for_those_who_want_it_so(demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo)
    held = Held(dashboard.page, "**/api/website/**")
    page = dashboard.open(BUSY)
    expect(page.locator(".tile .skeleton")).to_have_count(4)
    assert moving(page)
    page.emulate_media(reduced_motion="reduce")
    assert moving(page) == []
    held.let_go()


PHONE: Final = {"viewport": {"width": PHONE_WIDTH, "height": 700}}


@pytest.mark.parametrize(
    "path",
    [
        "",
        BUSY,
        f"{BUSY}?period=12mo&interval=week&measure=duration&browser[in]=Chrome,Firefox",
        f"{BUSY}?from=2025-03-10T09:00&to=2025-03-11T10:00&zone=America/Argentina/ComodRivadavia",
        f"{BUSY}/setup",
        "settings/account",
        "settings/websites",
        "settings/tracker",
        "settings/usage",
        "settings/about",
        "add",
        "nowhere",
    ],
)
def test_a_phone_scrolls_down_alone(path: str, demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, **PHONE)
    page = dashboard.open(path)
    page.wait_for_load_state("networkidle")
    assert not dashboard.is_wider_than_the_window()
    for button in page.locator("[aria-haspopup=menu]").all():
        button.click()
        page.get_by_role("menu").wait_for()
        assert not dashboard.is_wider_than_the_window()
        page.keyboard.press("Escape")


@pytest.mark.parametrize("key", ["?", "r", "z", "f"])
def test_dialogs_fit_a_phone(key: str, demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, **PHONE)
    page = dashboard.open(BUSY)
    loaded(page)
    page.keyboard.press(key)
    box = page.get_by_role("dialog").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= PHONE_WIDTH
    assert not dashboard.is_wider_than_the_window()
    assert page.get_by_role("dialog").evaluate("it => it.scrollWidth <= it.clientWidth")


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_every_language_fits_a_phone(spoken: str, demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(demo, **PHONE)
    page = dashboard.open("settings/account")
    page.locator("select").select_option(spoken)
    expect(page.locator("html")).to_have_attribute("lang", spoken)
    for name in ("websites", "tracker", "usage", "about", "account"):
        page.locator(f".settings-nav a[href$={name}]").click()
        expect(page.locator(f".settings-nav a[href$={name}]")).to_have_attribute(
            "aria-current", "page"
        )
        page.locator(".settings-content h2").first.wait_for()
        assert not dashboard.is_wider_than_the_window()
    page.keyboard.press("g")
    page.keyboard.press("w")
    page.locator("main li a").first.click()
    loaded(page)
    page.wait_for_load_state("networkidle")
    assert not dashboard.is_wider_than_the_window()
