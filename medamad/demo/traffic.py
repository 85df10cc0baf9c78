"""Invented visits: views, unloads and events by time, the same for the same seed; storing them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from heapq import merge
from itertools import count, islice
from random import Random
from typing import Final, Protocol

from attrs import define, evolve, field, frozen

from medamad.demo.flood import exclusions_of, flood_views
from medamad.demo.people import Person, Weighted, draw_person
from medamad.demo.robots import robots
from medamad.demo.sites import (
    NO_CAMPAIGN,
    REPORTS,
    SITES,
    Campaign,
    DemoAlert,
    DemoAnnotation,
    DemoWebsite,
)
from medamad.domain.alerts import Alerts
from medamad.domain.annotations import Annotation, Annotations
from medamad.domain.dimensions import WidthClass, major_version
from medamad.domain.goals import Definitions
from medamad.domain.hits import Event, Hit, Properties, Unload, View
from medamad.domain.subscriptions import Subscription, new_secret, new_subscription_id
from medamad.domain.website_settings import WebsiteSettings
from medamad.domain.websites import Website
from medamad.domain.zones import DAY_MS
from medamad.storage.followed_logs import LogCounts, LogPosition
from medamad.storage.request_totals import RequestCounts, merge_counts

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000
_MAX_VISIT_VIEWS: Final = 40
_HITS_AT_ONCE: Final = 2_000

_HOURS: Final = Weighted(
    {hour: 1.15 - math.cos((hour - 3.5) / 24 * math.tau) for hour in range(24)}
)
"""Visits by local hour, fewest at half past three in the morning."""
_WEEKDAYS: Final = (1.1, 1.15, 1.1, 1.05, 0.95, 0.7, 0.8)
_RETURN_PROBABILITY: Final = 0.18
_UNLOAD_PROBABILITY: Final = 0.88
_GLANCE_PROBABILITY: Final = 0.2
"""The probability that a page is left within five seconds."""
_PAUSE_PROBABILITY: Final = 0.05
"""The probability that a visitor pauses between two pages."""
_MAX_READING_MS: Final = 14 * _MINUTE_MS
_MAX_PAUSE_MS: Final = 14 * _MINUTE_MS
_NEXT_VISIT_MS: Final = 35 * _MINUTE_MS
"""How long after a visit the next one begins at the earliest: a visit ends after 30 minutes."""
_CAMPAIGN_BOUNCES: Final = 0.7
"""How many bounces visits from campaigns have, relative to those from elsewhere."""
_LIVE_FACTOR: Final = 6
_UNSEEN: Final = {"Firefox": 0.21, "Brave": 0.4, "Opera": 0.15, "Safari": 0.05}
_UNSEEN_BY_OTHERS: Final = 0.08
"""Page loads that the tracker does not see, for each that it does, by browser."""


_HOSTING_OF_256: Final = 8
"""How many people in 256 come from a network of a hosting provider."""


@frozen(kw_only=True)
class TrafficPlan:
    """How much traffic to invent: `views` views over the `days` days that end at `until_ms`."""

    until_ms: int
    days: int = 90
    views: int = 100_000
    seed: int = 1


def hits(
    plan: TrafficPlan, numbers: Mapping[str, int], sites: Sequence[DemoWebsite] = SITES
) -> Iterator[Hit]:
    """Yield the hits of a plan by time. `numbers` has the website number of each hostname.

    There are exactly `plan.views` views, fewer unloads (one in eight is never received) and some
    events. None is later than `plan.until_ms`.
    """
    pending: list[Hit] = []
    for ends_ms, visits in visits_by_day(plan, numbers, sites):
        pending += (hit for visit in visits for hit in visit.hits)
        pending.sort(key=_time)
        is_later = (n for n, hit in enumerate(pending) if hit.time_ms >= ends_ms)
        ready = next(is_later, len(pending))
        yield from pending[:ready]
        del pending[:ready]
    yield from (hit for hit in pending if hit.time_ms <= plan.until_ms)


@frozen
class DemoVisit:
    """A visit: its visitor, who is the same person throughout one day, and its hits."""

    visitor: int
    person: Person
    hits: list[Hit] = field(factory=list)
    """In the order in which they were made."""


def visits_by_day(
    plan: TrafficPlan, numbers: Mapping[str, int], sites: Sequence[DemoWebsite] = SITES
) -> Iterator[tuple[int, list[DemoVisit]]]:
    """Yield the end of each day of a plan, in Unix milliseconds, and the visits that begin on it.

    Their hits may be later than that.
    """
    random = Random(plan.seed)  # noqa: S311 - not used for security
    weighted_sites = Weighted({site: site.share for site in sites})
    visitors = count(1)
    for starts_ms, wanted in _days(plan):
        day = _Day(starts_ms, min(starts_ms + DAY_MS, plan.until_ms))
        visits: list[DemoVisit] = []
        views = 0
        while views < wanted:
            site = weighted_sites.draw(random)
            visitor = _Visitor(random, next(visitors), site, numbers[site.hostname], day)
            views += visitor.add_visits(visits, wanted - views)
        yield day.ends_ms, visits


def live_hits(
    plan: TrafficPlan, numbers: Mapping[str, int], sites: Sequence[DemoWebsite] = SITES
) -> Iterator[Hit]:
    """Yield the hits that follow those of a plan, by time and without end.

    There are more than before, so that nearly always somebody has a page open.
    """
    views = max(1, _LIVE_FACTOR * plan.views // plan.days)
    for day in count(1):
        until_ms = plan.until_ms + day * DAY_MS
        of_day = evolve(plan, until_ms=until_ms, days=1, views=views, seed=plan.seed + day)
        yield from hits(of_day, numbers, sites)


class GoalStore(Protocol):
    """The part of a store's goals and funnels that `fill` needs."""

    async def change(
        self, website: int, change: Callable[[Definitions], Definitions]
    ) -> Definitions:
        """Apply a change to the goals and funnels of a website."""


class AlertStore(Protocol):
    """The part of a store's alerts that `fill` needs."""

    async def change(self, website: int, change: Callable[[Alerts], Alerts]) -> Alerts:
        """Apply a change to the alerts of a website."""


class AnnotationStore(Protocol):
    """The part of a store's annotations that `fill` needs."""

    async def change(
        self, website: int, change: Callable[[Annotations], Annotations]
    ) -> Annotations:
        """Apply a change to the annotations of a website."""


class ReportStore(Protocol):
    """The part of a store's mailed reports that `fill` needs."""

    async def add(self, key: bytes, report: Subscription, /) -> object:
        """Store another report."""


class RobotStore(Protocol):
    """The part of a store's robots that `fill` needs."""

    async def add(self, counts: Mapping[tuple[int, int], RequestCounts]) -> None:
        """Add counts by website and day."""


class HitStore(Protocol):
    """The part of a store that is needed to add hits."""

    async def append(self, hits: Sequence[Hit]) -> object:
        """Store hits in order."""


class WebsiteStore(HitStore, Protocol):
    """The part of a store that `fill` needs."""

    @property
    def goals(self) -> GoalStore:
        """The goals and funnels of all websites."""

    @property
    def alerts(self) -> AlertStore:
        """The alerts of all websites."""

    @property
    def annotations(self) -> AnnotationStore:
        """The annotations of all websites."""

    @property
    def reports(self) -> ReportStore:
        """The reports that are mailed."""

    @property
    def robots(self) -> RobotStore:
        """The robots of all websites."""

    async def follow_log(self, to: LogPosition, counts: LogCounts) -> object:
        """Store what some lines of a log count."""

    async def add_website(self, hostname: str, now: int) -> Website:
        """Register a website at a time in Unix seconds."""

    async def change_website_settings(
        self, website: Website, change: Callable[[WebsiteSettings], WebsiteSettings], now: int
    ) -> Website:
        """Change the settings of a website."""


async def fill(
    store: WebsiteStore, plan: TrafficPlan, sites: Sequence[DemoWebsite] = SITES
) -> list[Website]:
    """Register the invented websites with what is defined for them, and store their hits.

    Return the websites.
    """
    began = (plan.until_ms - plan.days * DAY_MS) // 1000
    websites = [await store.add_website(site.hostname, began) for site in sites]
    for site, website in zip(sites, websites, strict=True):
        exclusions = exclusions_of(site, plan.until_ms, plan.days)
        definitions = evolve(site.definitions, exclusions=exclusions)
        await store.goals.change(website.number, partial(_with_definitions, definitions))
        if site.alerts:
            with_alerts = partial(_with_alerts, site.alerts, plan.until_ms)
            await store.alerts.change(website.number, with_alerts)
        await store.change_website_settings(website, partial(_replaced, site.settings), began)
        annotated = partial(_with_annotations, site.annotations, plan.until_ms)
        await store.annotations.change(website.number, annotated)
    numbers = {website.hostname: website.number for website in websites}
    for report in _reports(numbers, began, plan.until_ms // 1000):
        await store.reports.add(report.id.encode("ascii"), report)
    floods = (
        flood_views(site, numbers[site.hostname], plan.until_ms, plan.days, plan.views)
        for site in sites
    )
    invented = merge(hits(plan, numbers, sites), *floods, key=_time)
    loads: dict[int, dict[int, dict[str, dict[str, int]]]] = {}
    while some := list(islice(invented, _HITS_AT_ONCE)):
        await store.append(some)
        _add_loads(loads, some)
    read = robots(plan.until_ms, plan.days, plan.views, numbers, sites)
    await store.robots.add(read)
    for (number, day), by_name in read.items():
        for by_path in by_name.values():
            merge_counts(loads.setdefault(number, {}).setdefault(day, {}), {"": by_path})
    followed = LogPosition("the demonstration's log", 1)
    await store.follow_log(followed, LogCounts(loads=loads))
    return websites


def _replaced(settings: WebsiteSettings, _old: WebsiteSettings) -> WebsiteSettings:
    return settings


def _reports(numbers: Mapping[str, int], began: int, now: int) -> Iterator[Subscription]:
    """Return the reports of websites that are all there. None is due yet."""
    for each in REPORTS:
        if numbers.keys() >= set(each.hostnames):
            yield Subscription(
                id=new_subscription_id(),
                secret=new_secret(),
                address=each.address,
                websites=tuple(numbers[hostname] for hostname in each.hostnames),
                every=each.every,
                day=each.day,
                hour=each.hour,
                timezone=each.timezone,
                language=each.language,
                created=began,
                confirmed=now if each.is_confirmed else None,
            )


def _add_loads(loads: dict[int, dict[int, dict[str, dict[str, int]]]], some: Sequence[Hit]) -> None:
    """Count page loads as a web server's log has them: some more than there are views."""
    for hit in some:
        if isinstance(hit, View):
            of_day = loads.setdefault(hit.website, {}).setdefault(hit.time_ms // DAY_MS, {})
            unseen = _UNSEEN.get(hit.browser, _UNSEEN_BY_OTHERS)
            count = 1 + (int(hit.beacon[-4:], 16) < unseen * 0x1_0000)
            merge_counts(of_day, {hit.browser: {hit.path: count}})


def _with_definitions(added: Definitions, definitions: Definitions) -> Definitions:
    for goal in added.goals:
        definitions = definitions.with_goal(goal)
    for funnel in added.funnels:
        definitions = definitions.with_funnel(funnel)
    for exclusion in added.exclusions:
        definitions = definitions.with_exclusion(exclusion)
    return definitions


def _with_alerts(added: Sequence[DemoAlert], until_ms: int, alerts: Alerts) -> Alerts:
    for each in added:
        fired = (until_ms - each.days_ago * DAY_MS) // 1000
        alerts = alerts.with_rule(evolve(each.rule, fired=fired))
    return alerts


def _with_annotations(
    added: Sequence[DemoAnnotation], until_ms: int, annotations: Annotations
) -> Annotations:
    for number, each in enumerate(added):
        ms = until_ms - each.days_ago * DAY_MS
        day = datetime.fromtimestamp(ms / 1000, UTC).date().isoformat()
        time = f"{day}T{each.clock}Z" if each.clock else day
        annotations = annotations.with_annotation(
            Annotation(id=f"note-{number}", time=time, text=each.text, link=each.link)
        )
    return annotations


@define(eq=False)
class LiveTraffic:
    """Stores hits when their time has come."""

    _store: HitStore
    _hits: Iterator[Hit]
    _now_ms: Callable[[], float]
    _next: Hit = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._next = next(self._hits)

    async def store_due(self) -> None:
        """Store the hits up to now."""
        due: list[Hit] = []
        while self._next.time_ms <= self._now_ms():
            due.append(self._next)
            self._next = next(self._hits)
        if due:
            await self._store.append(due)


def _time(hit: Hit) -> int:
    return hit.time_ms


def _days(plan: TrafficPlan) -> Iterator[tuple[int, int]]:
    """Yield each day's first millisecond and its views: more on workdays, and slowly growing."""
    begins = [plan.until_ms - (plan.days - n) * DAY_MS for n in range(plan.days)]
    weights = [
        _WEEKDAYS[datetime.fromtimestamp(begin / 1000, UTC).weekday()] * (1 + n / plan.days / 2)
        for n, begin in enumerate(begins)
    ]
    total = sum_so_far = 0.0
    for begin, weight in zip(begins, weights, strict=True):
        sum_so_far += weight
        total_by_now = round(plan.views * sum_so_far / sum(weights))
        yield begin, total_by_now - round(total)
        total = total_by_now


@frozen
class _Day:
    starts_ms: int
    ends_ms: int


@define
class _Visitor:
    """A visitor to one website on one day, who may come more than once."""

    random: Random
    number: int
    site: DemoWebsite
    website: int
    day: _Day
    person: Person = field(init=False)
    _identity: bytes = field(init=False)
    _host: str = field(init=False)
    _pages_today: set[str] = field(factory=set)
    _today: int = 0
    _views_today: int = 0

    def __attrs_post_init__(self) -> None:
        self.person = draw_person(self.random)
        self._identity = self.random.randbytes(16)
        self._host = self.random.choice(self.site.hosts or (self.site.hostname,))

    def add_visits(self, visits: list[DemoVisit], max_views: int) -> int:
        """Add this visitor's visits, with at most `max_views` views. Return the number of views."""
        moments = [self._moment()]
        while self.random.random() < _RETURN_PROBABILITY:
            moments.append(self._moment())
        views, free_ms = 0, 0
        for moment in sorted(moments):
            begins_ms = max(moment, free_ms)
            if views < max_views and begins_ms < self.day.ends_ms:
                visit = _Visit(self, begins_ms)
                views += visit.go_on(max_views - views)
                visits.append(DemoVisit(self.number, self.person, visit.hits))
                free_ms = visit.now_ms + _NEXT_VISIT_MS
        return views

    def _moment(self) -> int:
        """Return when a visit begins: within the day, by the local hour."""
        hour = _HOURS.draw(self.random) - self.person.place.hours_ahead + self.random.random()
        offset_ms = int(hour * _HOUR_MS) - self.day.starts_ms % DAY_MS
        return min(self.day.starts_ms + offset_ms % DAY_MS, self.day.ends_ms - 1)

    def view(
        self, now_ms: int, beacon: str, path: str, from_page: str | None, campaign: Campaign
    ) -> View:
        """Return this visitor's next view."""
        random, site, person = self.random, self.site, self.person
        if now_ms // DAY_MS != self._today:
            self._today = now_ms // DAY_MS
            self._views_today = 0
            self._pages_today.clear()
        source, medium, name, term, content = campaign
        self._views_today += 1
        view = View(
            website=self.website,
            time_ms=now_ms,
            beacon=beacon,
            first_today=self._views_today == 1,
            first_of_page=path not in self._pages_today,
            path=path,
            referrer=site.referrers.draw(random) if from_page is None else "",
            utm_source=source,
            utm_medium=medium,
            utm_campaign=name,
            utm_term=term,
            utm_content=content,
            browser=person.browser.name,
            browser_version=major_version(person.browser.version),
            os=person.browser.os,
            os_version=major_version(person.browser.os_version),
            device=person.browser.device,
            country=person.place.country,
            locale=person.locale,
            host=self._host,
            hosting=self._identity[0] < _HOSTING_OF_256,
            width_class=WidthClass.of(person.width_px),
            properties=site.view_properties.draw(random),
            identity=self._identity,
            number_today=self._views_today,
            width_px=person.width_px,
            from_page=from_page,
        )
        self._pages_today.add(path)
        return view


@define
class _Visit:
    """One visit, whose gaps are all shorter than 30 minutes."""

    visitor: _Visitor
    now_ms: int
    hits: list[Hit] = field(factory=list)
    _cart: list[str] = field(factory=list)
    """The pages of the products in the cart."""
    _step: int = 0
    """How many steps from the cart to the order have been taken."""

    def go_on(self, max_views: int) -> int:
        """Add views, with their events and unloads, until the visit ends. Return how many."""
        visitor = self.visitor
        random, site, ends_ms = visitor.random, visitor.site, visitor.day.ends_ms
        campaign = site.campaigns.draw(random)
        bounces = _CAMPAIGN_BOUNCES if campaign != NO_CAMPAIGN else 1.0
        goes_on = random.random() >= site.bounce_probability * bounces
        path: str | None = site.landing_pages.draw(random)
        before, views = None, 0
        while path is not None and views < min(max_views, _MAX_VISIT_VIEWS):
            beacon = f"{random.getrandbits(80):x}"
            self.hits.append(visitor.view(self.now_ms, beacon, path, before, campaign))
            views += 1
            self._read(path, beacon, has_events=goes_on)
            before, campaign = path, NO_CAMPAIGN
            path = self._next_page(path, views) if goes_on and self.now_ms < ends_ms else None
        return views

    def _read(self, path: str, beacon: str, *, has_events: bool) -> None:
        """Add what happens on a page; go on to when the visitor has turned to the next."""
        random = self.visitor.random
        seen_ms = self._reading_ms()
        left_ms = self.now_ms + seen_ms
        if has_events:
            events = [
                Event(
                    website=self.visitor.website,
                    time_ms=random.randrange(self.now_ms + 1, left_ms),
                    properties=properties,
                    beacon=beacon,
                )
                for properties in self._events(path)
            ]
            self.hits += sorted(events, key=_time)
        if random.random() < _UNLOAD_PROBABILITY:
            self.hits.append(Unload(time_ms=left_ms, beacon=beacon, duration_ms=seen_ms))
        self.now_ms = left_ms + random.randrange(200, 1500)
        if random.random() < _PAUSE_PROBABILITY:
            self.now_ms += random.randrange(_MINUTE_MS, _MAX_PAUSE_MS)

    def _events(self, path: str) -> Iterator[Properties]:
        """Yield what a visitor does on a page."""
        random, site = self.visitor.random, self.visitor.site
        shop = site.shop
        if shop is not None:
            if self._cart and self._step == len(shop.steps):
                yield shop.order(self._cart)
                self._cart.clear()
            if path in shop.prices and random.random() < shop.add_probability:
                self._cart.append(path)
                yield shop.added(path)
        if random.random() < site.event_probability:
            yield site.events.draw(random)

    def _next_page(self, path: str, views: int) -> str | None:
        """Return which page the visitor goes on to, None if the visit ends."""
        random, site = self.visitor.random, self.visitor.site
        if site.shop is not None and self._cart:
            step, probability = site.shop.steps[self._step]
            if random.random() < probability:
                self._step += 1
                return step
        if self._step:
            self._step = 0
            self._cart.clear()
        if views > 1 and random.random() < 1 / (site.depth - 1):
            return None
        while (following := site.pages.draw(random)) == path:
            pass
        return following

    def _reading_ms(self) -> int:
        """Return how long a page is visible."""
        random = self.visitor.random
        if random.random() < _GLANCE_PROBABILITY:
            return random.randrange(300, 5_000)
        reading_ms = random.lognormvariate(math.log(self.visitor.site.reading_ms), 0.9)
        return max(1_000, min(_MAX_READING_MS, round(reading_ms)))
