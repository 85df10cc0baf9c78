"""What a browser keeps of its visits, and what it sends back on later days, in three engines."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import frozen
from support.browser.engines import (
    ENGINES,
    Browsing,
    Profile,
    Proxy,
    browsing,
    is_installed,
    noting_proxy,
)
from support.browser.example_site import Site, served
from support.daemon import Client, running
from support.durability.moving_clock import Clock, with_settable_clock

pytestmark = pytest.mark.browser

HOSTNAME = "localhost"
DAY_S: Final = 86_400
MIDDAY: Final = 43_200


@pytest.fixture(params=ENGINES)
def profile(request: pytest.FixtureRequest, tmp_path: Path) -> Profile:
    if not is_installed(request.param):
        pytest.skip(f"no browser with {request.param} is installed")
    return Profile(request.param, tmp_path)


class Days:
    """A browser that visits a website on days that a test chooses."""

    def __init__(self, clock: Clock, site: Site, browser: Browsing) -> None:
        self._clock, self._site, self.browser = clock, site, browser
        self._first_midnight = (int(time.time()) // DAY_S + 1) * DAY_S

    def visit(self, day: float, *, wrong_by_s: int = 0, path: str = "/") -> dict[str, Any]:
        """Visit at a time in days from the first midnight; return the load that was sent.

        The clock of the browser may be wrong.
        """
        moment = self._first_midnight + round(day * DAY_S)
        self._clock.set_to(moment)
        ahead_ms = (moment + wrong_by_s - time.time()) * 1000
        self._site.tag = (
            f"<script>(now => Date.now = () => now() + {ahead_ms:.0f})(Date.now)</script>"
            f'<script defer src="{self.proxy.base}/script.js"></script>{self.proxy.follow}'
        )
        self.proxy.clear()
        self.browser.open(self._site.address(HOSTNAME, path))
        return self.proxy.wait_for_load()

    @property
    def proxy(self) -> Proxy:
        return self.browser.proxy

    @property
    def owner(self) -> Client:
        return self._clock.daemon.client()

    @property
    def dates(self) -> list[str | None]:
        """The dates that the browser has sent with the last visit."""
        return [ping.since for ping in self.proxy.pings]


@contextmanager
def days_of(profile: Profile, configuration: str) -> Iterator[Days]:
    with (
        with_settable_clock(profile.folder, configuration) as clock,
        noting_proxy(clock.daemon.base) as proxy,
        served("") as site,
        browsing(profile, proxy) as browser,
    ):
        clock.daemon.client().add_website(HOSTNAME)
        yield Days(clock, site, browser)


def test_no_date_is_sent_on_a_later_day(profile: Profile) -> None:
    with days_of(profile, "[events]\nreturning = false\n") as days:
        first = days.visit(0.5)
        assert (first["p"], first["q"], first["n"]) == (True, True, 1)
        assert days.dates == [None, None]
        days.browser.end()
        again = days.visit(0.6)
        assert (again["p"], again["q"], again["n"]) == (False, False, 2)
        assert None not in days.dates
        later = days.visit(2.5)
        assert (later["p"], later["q"], later["n"]) == (True, True, 1)
        assert days.dates == [None, None]


def test_a_wrong_clock_counts_nobody_twice(profile: Profile) -> None:
    """Nor does a midnight: every day has one first view, whatever the browser's clock says."""
    ahead, behind = 2 * 3_600, -2 * 3_600
    with days_of(profile, "") as days:
        assert days.visit(0.9)["p"]
        # By its clock, the next day has begun; then it is set back.
        assert not days.visit(0.95, wrong_by_s=ahead)["p"]
        assert [ping.since for ping in days.proxy.pings].count(None) == 2
        assert not days.visit(0.97)["p"]
        # By its clock, the day has not ended yet. What it has of the day before is sent once.
        assert days.visit(1.02, wrong_by_s=behind)["p"]
        assert len(days.proxy.pings) == 4
        assert not days.visit(1.03, wrong_by_s=behind)["p"]
        asked = [(ping.query.partition("&")[0], ping.since) for ping in days.proxy.pings]
        of_the_day_before = min(day for day, _ in asked)
        assert [since for day, since in asked if day == of_the_day_before] == [None, None]
        assert not days.visit(1.5)["p"]


def test_a_year_begins_with_the_first_visit(profile: Profile) -> None:
    with days_of(profile, "[events]\nreturning = true\n") as days:
        assert days.visit(0.5)["since"] == "new"
        (of_host,) = (ping for ping in days.proxy.pings if ping.query.startswith("v="))
        assert (of_host.since, of_host.tag) == (None, None)
        days.browser.end()
        for day, since in ((200.5, "month"), (364.5, "month"), (365.5, "new"), (366.5, "")):
            load = days.visit(day)
            assert load["p"]
            assert load["since"] == since or not since
            (of_host,) = (ping for ping in days.proxy.pings if ping.query.startswith("v="))
            assert of_host.since is not None
            assert of_host.tag is not None
            others = [ping.since for ping in days.proxy.pings if ping is not of_host]
            assert others == [None]
        assert load["since"] != "new"


def test_nothing_is_kept_where_visitors_are_not_counted(profile: Profile) -> None:
    """The script itself is, which is the same for everybody."""
    with days_of(profile, '[events]\nunique = "none"\n') as days:
        for moment, path in ((0.5, "/"), (0.501, "/"), (0.502, "/about"), (1.5, "/")):
            load = days.visit(moment, path=path)
            assert (load["p"], load["q"], "n" in load, "since" in load) == (False,) * 4
            assert load["w"] > 0
            assert days.proxy.pings == []
        summary = days.owner.get(f"/api/website/{HOSTNAME}/summary", visits="true")
        figures = summary["current"]
        assert (figures["visitors"], figures["pageviews"], figures["visits"]) == (0, 4, 2)


ASK: Final = """<script>
const asked = {requests};
const answers = [];
const ask = async () => {{
    for (const [query, cache] of asked) {{
        const answer = await fetch("{base}/api/event/ping?" + query, {{cache}});
        answers.push([await answer.text(), answer.headers.get("Last-Modified")]);
    }}
    await fetch("{base}/report", {{method: "POST", body: JSON.stringify(answers)}});
}};
ask();
</script>"""


@frozen
class Asking:
    """Pages that ask, in one browser."""

    site: Site
    browser: Browsing

    def ask(self, hostname: str, *requests: tuple[str, str]) -> Any:
        """Let a page ask; return the answers and their dates."""
        proxy = self.browser.proxy
        named = [(query.format(port=self.site.server_port), cache) for query, cache in requests]
        page = ASK.format(requests=[list(each) for each in named], base=proxy.base)
        self.site.contents = {"/blank": page + proxy.follow}
        proxy.clear()
        self.browser.open(self.site.address(hostname, "/blank"))
        return proxy.wait_for_report()


@pytest.fixture
def asking(profile: Profile) -> Iterator[Asking]:
    if profile.engine == "webkit":
        pytest.skip("it knows no names below localhost")
    with (
        running(profile.folder) as daemon,
        noting_proxy(daemon.base) as proxy,
        served("") as site,
        browsing(profile, proxy) as browser,
    ):
        yield Asking(site, browser)


def test_a_page_of_another_host_learns_nothing(asking: Asking) -> None:
    """It is of the same site, so it shares the cache of the browser."""
    own, other = "www.shop.localhost", "blog.shop.localhost"
    queries = [f"{form}={own}:{{port}}/a" for form in ("n", "u")]
    counts = asking.ask(own, *((query, "no-cache") for query in queries for _ in range(2)))
    assert [count for count, _ in counts] == ["0", "1"] * 2
    caches = ("force-cache", "default", "no-cache")
    answers = asking.ask(other, *((query, cache) for query in queries for cache in caches))
    assert answers == [["0", None]] * 6


def test_a_page_asks_as_medamas_tracker_does(asking: Asking) -> None:
    own = "www.shop.localhost"
    queries = ("root", f"u={own}%3A{{port}}%2Fa")
    for expected in ("0", "1", "1"):
        answers = asking.ask(own, *((query, "default") for query in queries))
        assert [count for count, _ in answers] == [expected] * 2
        if expected == "0":
            asking.browser.end()
