"""The languages of the dashboard, and their formats of numbers and dates."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import pytest
from playwright.sync_api import Page, Route, expect
from support.browser.catalogues import LANGUAGES, translated
from support.browser.dashboard import Dashboard, loaded
from support.daemon import Client, Daemon

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


@pytest.mark.parametrize("spoken", LANGUAGES)
def test_numbers_and_dates_follow_the_language(
    spoken: str, demo: Client, dashboard_of: Make
) -> None:
    page = dashboard_of(demo).turn_to("settings/account")
    page.locator("select").select_option(spoken)
    expect(page.locator("html")).to_have_attribute("lang", spoken)
    expect(page.get_by_role("heading", level=1)).to_have_text(translated(spoken, "settings.title"))
    page.keyboard.type("gw")
    expect(page.get_by_role("heading", level=1)).to_have_text(translated(spoken, "websites.title"))
    page.locator("main li a").first.click()
    figures = loaded(page)
    names = [translated(spoken, f"measure.{name}") for name in ("visitors", "pageviews")]
    expect(page.locator(".tile-name").first).to_have_text(names[0])
    expect(page.locator(".tile-name").nth(2)).to_have_text(names[1])
    shown = figures.nth(2).get_attribute("title") or ""
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
    """Return what parts thousands: Spanish leaves four digits together."""
    if spoken == "es" and value < 10_000:
        return ""
    return {"de": ".", "es": ".", "fr": "\N{NARROW NO-BREAK SPACE}"}.get(spoken, ",")


def first_day(page: Page) -> str:
    """Return the day with which the last 30 days begin in the viewer's zone."""
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


def test_the_language_is_remembered(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    dashboard = dashboard_of(owner)
    page = dashboard.open("settings/account")
    for spoken in (*LANGUAGES[1:], "en"):
        page.locator("select").select_option(spoken)
        expect(
            page.get_by_role("status").filter(has_text=translated(spoken, "common.saved"))
        ).to_be_visible()
        assert owner.get("/api/user")["settings"]["language"] == spoken
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text(
            translated(spoken, "settings.title")
        )
        expect(page.locator("html")).to_have_attribute("lang", spoken)


def test_numbers_follow_the_browsers_region(new_daemon: Daemon, dashboard_of: Make) -> None:
    owner = new_daemon.client()
    owner.request("PATCH", "/api/user", {"settings": {"language": "de"}})
    owner.add_website("example.com")

    def view(number: int) -> int:
        load = {"e": "load", "u": "https://example.com/", "p": False, "q": False}
        return owner.request("POST", "/api/event/hit", load | {"b": f"b{number}"}).status

    # At once, since the disk may take its time for each.
    with ThreadPoolExecutor(16) as viewers:
        assert set(viewers.map(view, range(1_000))) == {HTTPStatus.NO_CONTENT}
    page = dashboard_of(owner, locale="de-CH").open("websites/example.com")
    expect(loaded(page).nth(2)).to_have_text(re.compile("1['\N{RIGHT SINGLE QUOTATION MARK}]000"))


@pytest.mark.parametrize(("locale", "spoken"), [("fr-CA", "fr"), ("zh-CN", "zh"), ("it", "en")])
def test_the_login_uses_the_browsers_language(
    locale: str, spoken: str, daemon: Daemon, dashboard_of: Make
) -> None:
    page = dashboard_of(Client(daemon.port), locale=locale).open()
    expect(page.get_by_role("heading", level=1)).to_have_text(translated(spoken, "login.title"))
    expect(page.locator("html")).to_have_attribute("lang", spoken)


def test_the_accounts_language_wins_over_a_later_one(
    new_daemon: Daemon, dashboard_of: Make
) -> None:
    owner = new_daemon.client()
    owner.request("PATCH", "/api/user", {"settings": {"language": "ja"}})
    dashboard = dashboard_of(owner)
    late: list[str] = []

    def answer(route: Route) -> None:
        response = route.fetch()
        if translated("en", "away.title") in response.text():
            dashboard.page.wait_for_timeout(1_000)
            late.append(route.request.url)
        route.fulfill(response=response)

    dashboard.page.route("**/assets/*.js", answer)
    page = dashboard.open("settings/account")
    expect(page.get_by_role("heading", level=1)).to_have_text(translated("ja", "settings.title"))
    expect(page.locator("html")).to_have_attribute("lang", "ja")
    assert late
