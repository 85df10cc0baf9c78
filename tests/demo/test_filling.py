from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, takewhile

import pytest
from attrs import define, evolve, field

from medamad.demo.sites import SITES
from medamad.demo.traffic import LiveTraffic, TrafficPlan, fill, hits, live_hits
from medamad.domain.alerts import WEBSITE_KINDS, Alerts, checked_rule
from medamad.domain.annotations import Annotations
from medamad.domain.goals import Definitions
from medamad.domain.hits import Hit, View
from medamad.domain.subscriptions import Every, Subscription
from medamad.domain.website_settings import DEFAULTS, WebsiteSettings
from medamad.domain.websites import Website, changed_settings
from medamad.domain.zones import DAY_MS
from medamad.ingest.website_rules import WebsiteRules
from medamad.lookup.robots import public_list
from medamad.query.period import parse_period
from medamad.storage.followed_logs import LogCounts, LogPosition
from medamad.storage.request_totals import RequestCounts

PLAN = TrafficPlan(until_ms=1_790_000_000_123, days=4, views=3_000)


@define
class RecordedGoals:
    """Records the goals and funnels of each website by its number."""

    of: dict[int, Definitions] = field(factory=dict)

    async def change(
        self, website: int, change: Callable[[Definitions], Definitions]
    ) -> Definitions:
        self.of[website] = change(self.of.get(website, Definitions()))
        return self.of[website]


@define
class RecordedAlerts:
    """Records the alerts of each website by its number."""

    of: dict[int, Alerts] = field(factory=dict)

    async def change(self, website: int, change: Callable[[Alerts], Alerts]) -> Alerts:
        self.of[website] = change(self.of.get(website, Alerts()))
        return self.of[website]


@define
class RecordedAnnotations:
    """Records the annotations of each website by its number."""

    of: dict[int, Annotations] = field(factory=dict)

    async def change(
        self, website: int, change: Callable[[Annotations], Annotations]
    ) -> Annotations:
        self.of[website] = change(self.of.get(website, Annotations()))
        return self.of[website]


@define
class RecordedReports:
    """Records the reports that are mailed by their keys."""

    of: dict[bytes, Subscription] = field(factory=dict)

    async def add(self, key: bytes, report: Subscription) -> None:
        assert key == report.id.encode()
        self.of[key] = report


@define
class RecordedRobots:
    """Records what robots read."""

    counts: Mapping[tuple[int, int], RequestCounts] = field(factory=dict)

    async def add(self, counts: Mapping[tuple[int, int], RequestCounts]) -> None:
        self.counts = counts


@define
class Recording:
    """Records the websites, what is defined for them and the hits it receives."""

    websites: list[Website] = field(factory=list)
    goals: RecordedGoals = field(factory=RecordedGoals)
    alerts: RecordedAlerts = field(factory=RecordedAlerts)
    annotations: RecordedAnnotations = field(factory=RecordedAnnotations)
    reports: RecordedReports = field(factory=RecordedReports)
    robots: RecordedRobots = field(factory=RecordedRobots)
    loads: dict[int, dict[int, dict[str, dict[str, int]]]] = field(factory=dict)
    hits: list[Hit] = field(factory=list)
    batches: list[int] = field(factory=list)

    async def add_website(self, hostname: str, now: int) -> Website:
        self.websites.append(Website(len(self.websites) + 5, hostname, now, now))
        return self.websites[-1]

    async def change_website_settings(
        self, website: Website, change: Callable[[WebsiteSettings], WebsiteSettings], now: int
    ) -> Website:
        place = self.websites.index(website)
        changed = evolve(website, settings=change(website.settings), updated=now)
        self.websites[place] = changed
        return changed

    async def follow_log(self, to: LogPosition, counts: LogCounts) -> None:
        assert to.version == 1
        self.loads = counts.loads

    async def append(self, hits: Sequence[Hit]) -> None:
        self.batches.append(len(hits))
        self.hits.extend(hits)


def test_hits_are_stored_in_order_under_their_website() -> None:
    store = Recording()
    filling = fill(store, PLAN)
    with pytest.raises(StopIteration) as done:
        filling.send(None)
    assert [each.number for each in done.value.value] == [each.number for each in store.websites]
    assert [website.hostname for website in store.websites] == [site.hostname for site in SITES]
    numbers = {website.hostname: website.number for website in store.websites}
    assert store.hits == list(hits(PLAN, numbers))
    assert max(store.batches) <= 2_000
    assert [store.goals.of[website.number] for website in store.websites] == [
        site.definitions for site in SITES
    ]
    shop = store.websites[1]
    assert [(each.time, each.text) for each in store.annotations.of[shop.number].all] == [
        ("2026-08-19", "Spring catalogue"),
        ("2026-09-09T14:30:00Z", "Shop 2.4 deployed"),
        ("2026-09-09T15:05:00Z", "Shop 2.4.1 deployed"),
    ]
    ((number, alerts),) = store.alerts.of.items()
    assert number == numbers["shop.gardenpost.example"]
    assert [rule.kind for rule in alerts.rules] == ["quiet", "referrer", "no-goal"]
    assert all(checked_rule(rule, WEBSITE_KINDS) == rule for rule in alerts.rules)
    assert {rule.goal for rule in alerts.rules} <= {None, "order"}


def test_the_shop_shows_what_settings_can_do() -> None:
    store = Recording()
    with pytest.raises(StopIteration):
        fill(store, PLAN).send(None)
    garden, shop = (website.settings for website in store.websites[:2])
    assert set(garden.made) == {"redact_uuids", "redact_hexadecimal", "redact_emails"}
    assert {"bots", "blocked_networks", "excluded_paths", "redacted_paths"} <= set(shop.made)
    assert changed_settings(DEFAULTS, shop.made) == shop
    rules = WebsiteRules.of(shop)
    paths = {hit.path for hit in store.hits if isinstance(hit, View)}
    assert not any(map(rules.excludes, paths))
    assert all(rules.stored_path(path, f"https://a.example{path}") == path for path in paths)


def test_there_are_reports_that_would_be_mailed() -> None:
    store = Recording()
    with pytest.raises(StopIteration):
        fill(store, PLAN).send(None)
    numbers = {website.hostname: website.number for website in store.websites}
    weekly, monthly = store.reports.of.values()
    assert (weekly.every, weekly.confirmed) == (Every.WEEK, 1_790_000_000)
    assert weekly.websites == (numbers["gardenpost.example"], numbers["shop.gardenpost.example"])
    assert (monthly.every, monthly.confirmed) == (Every.MONTH, None)
    assert weekly.secret != monthly.secret
    garden = [site for site in SITES if site.hostname == "gardenpost.example"]
    alone = Recording()
    with pytest.raises(StopIteration):
        fill(alone, PLAN, garden).send(None)
    assert alone.reports.of == {}


def test_robots_of_the_public_list_read_pages_of_each_website_on_each_day() -> None:
    stores = Recording(), Recording()
    for store in stores:
        with pytest.raises(StopIteration):
            fill(store, PLAN).send(None)
    counts = stores[0].robots.counts
    assert counts == stores[1].robots.counts
    last = PLAN.until_ms // DAY_MS
    numbers = [website.number for website in stores[0].websites]
    assert set(counts) == {(number, last - age) for number in numbers for age in range(4)}
    names = {crawler.name for crawler in public_list()} | {"Unknown"}
    for of_day in counts.values():
        assert of_day
        assert of_day.keys() <= names
    requests = sum(sum(by.values()) for of_day in counts.values() for by in of_day.values())
    assert 0.3 * PLAN.views < requests < 0.8 * PLAN.views


def test_a_flood_is_there_and_left_out() -> None:
    plan = evolve(PLAN, days=7)
    store = Recording()
    with pytest.raises(StopIteration):
        fill(store, plan).send(None)
    numbers = {website.hostname: website.number for website in store.websites}
    people = list(hits(plan, numbers))
    beacons = {hit.beacon for hit in people}
    flood = [hit for hit in store.hits if isinstance(hit, View) and hit.beacon not in beacons]
    assert len(store.hits) == len(people) + len(flood)
    assert len(flood) >= 0.02 * plan.views
    times = [hit.time_ms for hit in store.hits]
    assert times == sorted(times)
    photos = numbers["adas-photos.example"]
    assert {(view.website, view.country, view.hosting) for view in flood} == {(photos, "SG", True)}
    (rule,) = store.goals.of[photos].exclusions
    assert rule.filters == (("country[eq]", "Singapore"), ("hosting[eq]", "true"))
    period = parse_period(rule.start, rule.end)
    assert all(period.contains(view.time_ms, view.time_ms) for view in flood)
    assert not any(isinstance(hit, View) and hit.country == "SG" for hit in people)


def test_page_loads_are_those_of_robots_and_some_more_than_there_are_views() -> None:
    store = Recording()
    with pytest.raises(StopIteration):
        fill(store, PLAN).send(None)
    loads = [
        (browser, sum(by_path.values()))
        for days in store.loads.values()
        for of_day in days.values()
        for browser, by_path in of_day.items()
    ]
    robots = sum(
        sum(by_path.values())
        for of_day in store.robots.counts.values()
        for by_path in of_day.values()
    )
    assert sum(count for browser, count in loads if not browser) == robots
    people = sum(count for browser, count in loads if browser)
    assert 1.03 * PLAN.views < people < 1.3 * PLAN.views


def test_websites_are_created_at_their_first_hit() -> None:
    store = Recording()
    with pytest.raises(StopIteration):
        fill(store, PLAN).send(None)
    assert {website.created for website in store.websites} == {1_790_000_000 - 4 * 86_400}


def test_live_traffic_continues_at_the_planned_rate() -> None:
    numbers = {site.hostname: number for number, site in enumerate(SITES)}
    until_ms = PLAN.until_ms + 3 * DAY_MS
    later = list(takewhile(lambda hit: hit.time_ms < until_ms, live_hits(PLAN, numbers)))
    assert later[0].time_ms >= PLAN.until_ms
    assert all(one.time_ms <= other.time_ms for one, other in pairwise(later))
    views = sum(isinstance(hit, View) for hit in later)
    assert 3 * 6 * 749 <= views <= 3 * 6 * 750


def test_live_hits_are_stored_when_due() -> None:
    numbers = {site.hostname: number for number, site in enumerate(SITES)}
    store, now_ms = Recording(), [PLAN.until_ms]
    live = LiveTraffic(store, live_hits(PLAN, numbers), lambda: now_ms[0])
    for hour in range(1, 5):
        now_ms[0] = PLAN.until_ms + hour * DAY_MS // 24
        with pytest.raises(StopIteration):
            live.store_due().send(None)
        assert PLAN.until_ms <= store.hits[-1].time_ms <= now_ms[0]
        assert len(store.batches) == hour
    due = takewhile(lambda hit: hit.time_ms <= now_ms[0], live_hits(PLAN, numbers))
    assert store.hits == list(due)
