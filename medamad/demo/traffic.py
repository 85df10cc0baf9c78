"""Invented visits: views, unloads and events by time, the same for the same seed; storing them."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count, islice
from random import Random
from typing import Final, Protocol

from attrs import define, evolve, field, frozen

from medamad.demo.people import Person, Weighted, draw_person
from medamad.demo.sites import NO_CAMPAIGN, SITES, DemoWebsite
from medamad.domain.dimensions import WidthClass, major_version
from medamad.domain.hits import Event, Hit, Unload, View
from medamad.domain.websites import Website

DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
_MAX_VISIT_VIEWS: Final = 40
_HITS_AT_ONCE: Final = 2_000

_HOURS: Final = Weighted(
    {hour: 1.15 - math.cos((hour - 3.5) / 24 * math.tau) for hour in range(24)}
)
"""Visits by local hour, fewest at half past three in the morning."""
_WEEKDAYS: Final = (1.1, 1.15, 1.1, 1.05, 0.95, 0.7, 0.8)
_RETURN_PROBABILITY: Final = 0.18
_UNLOAD_PROBABILITY: Final = 0.88
_BOUNCE_PROBABILITY: Final = 0.28
_LIVE_FACTOR: Final = 6


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


class HitStore(Protocol):
    """The part of a store that `fill` needs."""

    async def add_website(self, hostname: str, now: int) -> Website:
        """Register a website at a time in Unix seconds."""

    async def append(self, hits: Sequence[Hit]) -> object:
        """Store hits in order."""


async def fill(
    store: HitStore, plan: TrafficPlan, sites: Sequence[DemoWebsite] = SITES
) -> list[Website]:
    """Register the invented websites and store their hits. Return the websites."""
    began = (plan.until_ms - plan.days * DAY_MS) // 1000
    websites = [await store.add_website(site.hostname, began) for site in sites]
    numbers = {website.hostname: website.number for website in websites}
    invented = hits(plan, numbers, sites)
    while some := list(islice(invented, _HITS_AT_ONCE)):
        await store.append(some)
    return websites


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
    _host: str = field(init=False)
    _pages_today: set[str] = field(factory=set)
    _today: int = 0
    _views_today: int = 0
    _from_page: str | None = None

    def __attrs_post_init__(self) -> None:
        self.person = draw_person(self.random)
        self._host = self.random.choice(self.site.hosts or (self.site.hostname,))

    def add_visits(self, visits: list[DemoVisit], max_views: int) -> int:
        """Add this visitor's visits, with at most `max_views` views. Return the number of views."""
        moments = [self._moment()]
        while self.random.random() < _RETURN_PROBABILITY:
            moments.append(self._moment())
        views, free_ms = 0, 0
        for moment in sorted(moments):
            if views < max_views and max(moment, free_ms) < self.day.ends_ms:
                visits.append(DemoVisit(self.number, self.person))
                hits = visits[-1].hits
                added, free_ms = self._visit(hits, max(moment, free_ms), max_views - views)
                views += added
        return views

    def _visit(self, hits: list[Hit], now_ms: int, max_views: int) -> tuple[int, int]:
        """Add one visit. Return its number of views, and when it ended."""
        random, site = self.random, self.site
        path, is_first, views = site.landing_pages.draw(random), True, 0
        self._from_page = None
        while views < min(max_views, _MAX_VISIT_VIEWS) and now_ms < self.day.ends_ms:
            beacon = f"{random.getrandbits(80):x}"
            hits.append(self._view(now_ms, path, beacon, is_first=is_first))
            views += 1
            seen_ms = self._reading_ms()
            left_ms = now_ms + seen_ms
            if random.random() < site.event_probability:
                hits.append(self._event(random.randrange(now_ms, left_ms), beacon))
            if random.random() < _UNLOAD_PROBABILITY:
                hits.append(Unload(time_ms=left_ms, beacon=beacon, duration_ms=seen_ms))
            now_ms, is_first = left_ms + random.randrange(200, 1500), False
            if random.random() < 1 / site.depth:
                break
            self._from_page = path
            path = site.pages.draw(random)
        return views, now_ms

    def _moment(self) -> int:
        """Return when a visit begins: within the day, by the local hour."""
        hour = _HOURS.draw(self.random) - self.person.place.hours_ahead + self.random.random()
        offset_ms = int(hour * _HOUR_MS) - self.day.starts_ms % DAY_MS
        return min(self.day.starts_ms + offset_ms % DAY_MS, self.day.ends_ms - 1)

    def _reading_ms(self) -> int:
        random = self.random
        if random.random() < _BOUNCE_PROBABILITY:
            return random.randrange(300, 5_000)
        reading_ms = random.lognormvariate(math.log(self.site.reading_ms), 0.9)
        return max(1_000, min(DAY_MS, round(reading_ms)))

    def _view(self, now_ms: int, path: str, beacon: str, *, is_first: bool) -> View:
        random, site, person = self.random, self.site, self.person
        if now_ms // DAY_MS != self._today:
            self._today = now_ms // DAY_MS
            self._views_today = 0
            self._pages_today.clear()
        campaign = site.campaigns.draw(random) if is_first else NO_CAMPAIGN
        source, medium, name, term, content = campaign
        self._views_today += 1
        view = View(
            website=self.website,
            time_ms=now_ms,
            beacon=beacon,
            first_today=self._views_today == 1,
            first_of_page=path not in self._pages_today,
            path=path,
            referrer=site.referrers.draw(random) if is_first else "",
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
            width_class=WidthClass.of(person.width_px),
            properties=site.view_properties.draw(random),
            identity=b"%d" % self.number,
            number_today=self._views_today,
            width_px=person.width_px,
            from_page=self._from_page,
        )
        self._pages_today.add(path)
        return view

    def _event(self, now_ms: int, beacon: str) -> Event:
        return Event(
            website=self.website,
            time_ms=now_ms,
            properties=self.site.events.draw(self.random),
            beacon=beacon,
        )
