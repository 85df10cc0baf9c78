"""Under every kind of filter, the panels of a website's page add up to its tiles."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, Request, expect
from support.browser.dashboard import BUSY, Dashboard, loaded
from support.browser.overview import figures
from support.daemon import Client

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]

HOSTNAME: Final = BUSY.removeprefix("websites/")
TABS: Final = (
    ("Pages", "Entry"),
    ("Pages", "Exit"),
    ("Locations", "Countries"),
    ("Locations", "Languages"),
    ("Technology", "Operating systems"),
    ("Technology", "Devices"),
)
"""The tabs that are not shown at first."""
OF_VISITS: Final = ("referrers", "entries", "exits")
OF_VISITORS: Final = ("browsers", "os", "devices", "countries", "languages")
FILTERS: Final = (
    *("", "path[eq]={path}", "path[contains]=a", "entry_page[eq]={path}", "exit_page[eq]={path}"),
    *("visit_referrer[eq]={referrer}", "visit_referrer[eq]=", "referrer[eq]={referrer}"),
    *("visit_utm_source[eq]={source}", "utm_source[eq]={source}", "utm_campaign[neq]={campaign}"),
    *("country[eq]={country}", "language[eq]={language}", "browser[eq]={browser}"),
    *("os[in]={os}", "device[neq]={device}", "prop_name[eq]={name}"),
    *("goal[eq]={goal}", "goal[eq]={goal}&path[eq]={path}", "browser[eq]={browser}&path[neq]=/"),
)


@pytest.fixture(scope="module")
def values(demo: Client) -> Mapping[str, str]:
    """A value of each field, by the name of its column."""
    found = {
        column: _statistic(demo, f"{statistic}?{urlencode(_period())}")[1][column]
        for statistic, column in (
            *(("pages", "path"), ("referrers", "referrer"), ("sources", "source")),
            *(("campaigns", "campaign"), ("countries", "country"), ("languages", "language")),
            *(("browsers", "browser"), ("os", "os"), ("devices", "device")),
        )
    }
    (named, *_) = _statistic(demo, f"properties?{urlencode(_period())}")
    (goal, *_) = _statistic(demo, f"goals?{urlencode(_period())}")
    return {**found, "name": named["name"], "goal": goal["id"]}


def _period() -> dict[str, str]:
    """Return a past week as parameters of the statistics."""
    return {"start": f"{_day(-9)}T00:00:00Z", "end": f"{_day(-2)}T00:00:00Z"}


def _day(offset: int) -> str:
    return f"{datetime.now(UTC).date() + timedelta(days=offset)}"


def _statistic(demo: Client, query: str) -> Any:
    return demo.get(f"/api/website/{HOSTNAME}/{query}")


def _asked(page: Page) -> dict[str, str]:
    """Return the dictionary of what the page will have requested, queries by statistic."""
    asked: dict[str, str] = {}

    def note(request: Request) -> None:
        address = urlsplit(request.url)
        if address.path.startswith(f"/api/website/{HOSTNAME}/"):
            asked[address.path.rpartition("/")[2]] = address.query

    page.on("request", note)
    return asked


@pytest.mark.parametrize("filters", FILTERS)
def test_panels_add_up_to_the_tiles(
    demo: Client, dashboard_of: Make, values: Mapping[str, str], filters: str
) -> None:
    dashboard = dashboard_of(demo)
    asked = _asked(dashboard.page)
    query = filters.format_map({name: urlencode({"": text})[1:] for name, text in values.items()})
    page = dashboard.turn_to(f"{BUSY}?from={_day(-9)}&to={_day(-3)}&zone=UTC&compare=none&{query}")
    loaded(page)
    names = page.locator(".tile-name").all_inner_texts()
    tiles = {
        name: int(text.replace(",", ""))
        for name, text in zip(names, figures(page), strict=True)
        if name in {"Visitors", "Visits", "Views"}
    }
    for region, tab in TABS:
        panel = page.get_by_role("region", name=region, exact=True)
        panel.get_by_role("tab", name=tab, exact=True).click()
        expect(panel.locator(".stale, .skeleton")).to_have_count(0)
    expect(page.locator(".stale, .skeleton")).to_have_count(0)

    def rows(statistic: str) -> list[dict[str, Any]]:
        """Return all rows of a statistic, as the page has requested it."""
        limits = {"limit": "5000", "offset": "0"}
        parameters = [item for item in parse_qsl(asked[statistic], True) if item[0] not in limits]
        found: list[dict[str, Any]] = _statistic(
            demo, f"{statistic}?{urlencode([*parameters, *limits.items()])}"
        )
        return found

    assert tiles["Visits"] > 0
    sums = {name: sum(row["visits"] for row in rows(name)) for name in OF_VISITS}
    sums |= {name: sum(row["visitors"] for row in rows(name)) for name in OF_VISITORS}
    assert sums == dict.fromkeys(OF_VISITS, tiles["Visits"]) | dict.fromkeys(
        OF_VISITORS, tiles["Visitors"]
    )
    reached = {row["id"]: row["visits"] for row in rows("goals")}
    assert max(reached.values()) <= tiles["Visits"]
    if "goal[" in filters:
        assert names[0] == "Visits"
        assert reached[values["goal"]] == tiles["Visits"]
