from collections import Counter
from itertools import pairwise

import pytest

from medamad.demo.sites import SITES
from medamad.demo.traffic import TrafficPlan, hits, visits_by_day
from medamad.domain.hits import Event, Hit, Unload, View
from medamad.domain.zones import DAY_MS

UNTIL_MS = 1_790_000_000_123
NUMBERS = {site.hostname: number for number, site in enumerate(SITES, start=1)}


@pytest.fixture(scope="module")
def sample() -> list[Hit]:
    return list(hits(TrafficPlan(until_ms=UNTIL_MS, days=10, views=6000), NUMBERS))


@pytest.fixture(scope="module")
def views(sample: list[Hit]) -> list[View]:
    return [hit for hit in sample if isinstance(hit, View)]


def test_the_same_seed_gives_the_same_hits() -> None:
    plan = TrafficPlan(until_ms=UNTIL_MS, days=3, views=200, seed=7)
    assert list(hits(plan, NUMBERS)) == list(hits(plan, NUMBERS))


def test_another_seed_gives_other_hits() -> None:
    seven, eight = (TrafficPlan(until_ms=UNTIL_MS, days=3, views=200, seed=seed) for seed in (7, 8))
    assert list(hits(seven, NUMBERS)) != list(hits(eight, NUMBERS))


@pytest.mark.parametrize(("days", "wanted"), [(1, 1), (1, 137), (30, 29), (7, 2500)])
def test_the_number_of_views_is_as_planned(days: int, wanted: int) -> None:
    plan = TrafficPlan(until_ms=UNTIL_MS, days=days, views=wanted)
    assert sum(isinstance(hit, View) for hit in hits(plan, NUMBERS)) == wanted


def test_hits_are_in_order_of_time_within_the_period(sample: list[Hit]) -> None:
    times = [hit.time_ms for hit in sample]
    assert all(one <= other for one, other in pairwise(times))
    assert times[0] >= UNTIL_MS - 10 * DAY_MS
    assert times[-1] <= UNTIL_MS


def test_each_day_has_traffic(views: list[View]) -> None:
    days = Counter((UNTIL_MS - view.time_ms) // DAY_MS for view in views)
    assert set(days) == set(range(10))
    assert min(days.values()) > 100


def test_beacons_are_unique_and_unloads_follow_their_views(
    sample: list[Hit], views: list[View]
) -> None:
    begun = {view.beacon: view for view in views}
    assert len(begun) == len(views)
    left = [hit for hit in sample if isinstance(hit, Unload)]
    assert len({leaving.beacon for leaving in left}) == len(left)
    for leaving in left:
        assert leaving.time_ms == begun[leaving.beacon].time_ms + leaving.duration_ms
        assert 0 < leaving.duration_ms <= DAY_MS


def test_events_happen_within_their_view(sample: list[Hit], views: list[View]) -> None:
    begun = {view.beacon: view for view in views}
    events = [hit for hit in sample if isinstance(hit, Event)]
    assert events
    for event in events:
        assert event.properties
        assert event.website == begun[event.beacon].website
        assert event.time_ms >= begun[event.beacon].time_ms


def test_the_first_view_of_a_day_is_also_the_first_of_its_page(views: list[View]) -> None:
    for view in views:
        assert view.first_of_page or not view.first_today
    assert 0.2 < sum(view.first_today for view in views) / len(views) < 0.5


def test_every_website_and_device_type_occurs(views: list[View]) -> None:
    assert {view.website for view in views} == set(NUMBERS.values())
    assert {view.device for view in views} >= {"Desktop", "Mobile", "Tablet", "TV", "Console"}
    for attribute, least in (("browser", 6), ("os", 6), ("country", 15), ("locale", 20)):
        assert len({getattr(view, attribute) for view in views}) >= least
    for attribute in ("referrer", "utm_source", "utm_term", "properties"):
        assert len({getattr(view, attribute) for view in views}) > 2


def test_some_people_come_from_hosting_networks_always(views: list[View]) -> None:
    assert 0.005 < sum(view.hosting for view in views) / len(views) < 0.1
    by_person: dict[bytes, set[bool]] = {}
    for view in views:
        by_person.setdefault(view.identity, set()).add(view.hosting)
    assert max(map(len, by_person.values())) == 1


def test_few_pages_have_most_of_the_views(views: list[View]) -> None:
    counts = sorted(Counter((view.website, view.path) for view in views).values(), reverse=True)
    assert sum(counts[: len(counts) // 4]) > len(views) / 2


def test_a_visitor_has_one_first_view_a_day_and_stays_the_same_person() -> None:
    first_views: Counter[tuple[int, int]] = Counter()
    people: dict[int, set[str]] = {}
    # Days of the plan begin at midnight, like those of visitors.
    plan = TrafficPlan(until_ms=UNTIL_MS // DAY_MS * DAY_MS, days=5, views=2000)
    days = list(visits_by_day(plan, NUMBERS))
    for visit in (visit for _, visits in days for visit in visits):
        for view in (hit for hit in visit.hits if isinstance(hit, View)):
            first_views[visit.visitor, view.time_ms // DAY_MS] += view.first_today
            people.setdefault(visit.visitor, set()).add(f"{view.browser} {view.locale}")
    assert set(first_views.values()) == {1}
    assert all(len(agents) == 1 for agents in people.values())
    assert sum(len(visits) for _, visits in days) > len(people)
