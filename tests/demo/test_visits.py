"""The visits, goals and orders of the demonstration: as a store finds them, and as generated."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Any

import pytest
import pytest_twisted
from attrs import frozen
from support.fast_hashing import fast_hashing
from support.web.client import Browser
from support.web.daemon_in_memory import Server, build_server
from twisted.internet.defer import Deferred

from medamad.demo.sites import SITES
from medamad.demo.traffic import DemoVisit, TrafficPlan, fill, live_hits, visits_by_day
from medamad.domain.hits import Event, Unload, View
from medamad.domain.zones import DAY_MS

# pytest finds fixtures by their names here.
__all__ = ("fast_hashing",)

PLAN = TrafficPlan(until_ms=1_790_000_000_123, days=5, views=6_000)
TIMEOUT_MS = 30 * 60_000
SHOP = "shop.gardenpost.example"
HOSTNAMES = [site.hostname for site in SITES]


@frozen
class Demonstration:
    """A store with the traffic of the plan, and the visits that were generated for it."""

    owner: Browser
    generated: dict[str, list[DemoVisit]]

    async def get(self, path: str) -> Any:
        """Return the response to a request."""
        answer = await self.owner.ask("GET", path)
        assert answer.status == 200, answer.body
        return answer.json


async def filled(server: Server) -> Demonstration:
    websites = await fill(server.store, PLAN)
    hostnames = {website.number: website.hostname for website in websites}
    numbers = {website.hostname: website.number for website in websites}
    generated = defaultdict(list)
    for _, visits in visits_by_day(PLAN, numbers):
        for visit in visits:
            generated[hostnames[views_of(visit)[0].website]].append(visit)
    return Demonstration(await server.owner(), generated)


@pytest.fixture(scope="module")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demonstration]:
    building = build_server(tmp_path_factory.mktemp("demonstration"))
    server = pytest_twisted.blockon(Deferred.fromCoroutine(building))
    yield pytest_twisted.blockon(Deferred.fromCoroutine(filled(server)))
    pytest_twisted.blockon(Deferred.fromCoroutine(server.store.close()))


def views_of(visit: DemoVisit) -> list[View]:
    return [hit for hit in visit.hits if isinstance(hit, View)]


def events_of(visit: DemoVisit) -> list[dict[str, str]]:
    return [
        dict(hit.properties)
        for hit in visit.hits
        if isinstance(hit, Event) and hit.time_ms <= PLAN.until_ms
    ]


def bounced(visit: DemoVisit) -> bool:
    return len(views_of(visit)) == 1 and not events_of(visit)


def seen_ms(visit: DemoVisit) -> int:
    return sum(
        hit.duration_ms
        for hit in visit.hits
        if isinstance(hit, Unload) and hit.time_ms <= PLAN.until_ms
    )


@pytest.mark.parametrize("hostname", HOSTNAMES)
@pytest_twisted.ensureDeferred
async def test_the_visits_counted_are_those_generated(
    demonstration: Demonstration, hostname: str
) -> None:
    visits = demonstration.generated[hostname]
    figures = (await demonstration.get(f"/website/{hostname}/summary?visits=true"))["current"]
    views = sum(len(views_of(visit)) for visit in visits)
    assert figures["pageviews"] == views
    assert figures["visits"] == len(visits)
    assert figures["views_per_visit"] == round(views / len(visits), 2)
    assert figures["visit_bounce_percentage"] == pytest.approx(
        sum(map(bounced, visits)) / len(visits), abs=1e-4
    )
    assert figures["visit_duration"] == pytest.approx(
        sum(map(seen_ms, visits)) / len(visits), abs=0.5
    )


@pytest.mark.parametrize("hostname", HOSTNAMES)
@pytest_twisted.ensureDeferred
async def test_visits_begin_at_the_pages_where_they_were_generated(
    demonstration: Demonstration, hostname: str
) -> None:
    entries = await demonstration.get(f"/website/{hostname}/entries")
    assert {row["path"]: row["visits"] for row in entries} == Counter(
        views_of(visit)[0].path for visit in demonstration.generated[hostname]
    )


@pytest_twisted.ensureDeferred
async def test_visits_reach_the_goals_that_were_generated(demonstration: Demonstration) -> None:
    shop = demonstration.generated[SHOP]

    def saw(path: str) -> int:
        return sum(any(view.path == path for view in views_of(visit)) for visit in shop)

    reached = {
        goal: (await demonstration.get(f"/website/{SHOP}/summary?visits=true&goal[eq]={goal}"))[
            "current"
        ]["visits"]
        for goal in ("cart", "checkout", "order")
    }
    ordered = [
        visit for visit in shop if any(event.get("action") == "order" for event in events_of(visit))
    ]
    assert reached == {"cart": saw("/cart"), "checkout": saw("/checkout"), "order": len(ordered)}
    assert len(shop) * 0.2 > reached["cart"] > reached["checkout"] > reached["order"] > 5


@pytest_twisted.ensureDeferred
async def test_every_website_has_goals_and_the_shop_a_funnel(demonstration: Demonstration) -> None:
    names = {}
    for hostname in HOSTNAMES:
        goals = await demonstration.get(f"/websites/{hostname}/goals")
        assert goals, hostname
        names |= {goal["id"]: goal["name"] for goal in goals}
    (order,) = [
        goal
        for goal in await demonstration.get(f"/websites/{SHOP}/goals")
        if goal["name"] == "Order"
    ]
    assert (order["revenue"], order["currency"]) == ("total", "EUR")
    (funnel,) = await demonstration.get(f"/websites/{SHOP}/funnels")
    steps = [names[goal] for goal in funnel["goals"]]
    assert steps == ["Product", "Cart", "Checkout", "Order"]


def test_an_order_has_the_price_of_what_was_put_in_the_cart(demonstration: Demonstration) -> None:
    (prices,) = [site.shop.prices for site in SITES if site.shop is not None]
    for visit in demonstration.generated[SHOP]:
        cart: list[str] = []
        for event in events_of(visit):
            if event["action"] == "add to cart":
                cart.append(f"/shop/{event['product']}")
            elif event["action"] == "order":
                assert cart
                expected = sum(prices[path] for path in cart[-int(event["items"]) :])
                assert round(float(event["total"]) * 100) == expected
                cart.clear()


@pytest.mark.parametrize("hostname", HOSTNAMES)
def test_visits_are_plausible(demonstration: Demonstration, hostname: str) -> None:
    visits = demonstration.generated[hostname]
    sizes = Counter(len(views_of(visit)) for visit in visits)
    assert 0.4 <= sum(map(bounced, visits)) / len(visits) <= 0.56
    assert 1.5 < sum(size * times for size, times in sizes.items()) / len(visits) < 5
    assert sizes[1] > sizes[2] > sizes[6] > 0
    entries = Counter(views_of(visit)[0].path for visit in visits)
    assert len(entries) > 10
    assert len({views_of(visit)[0].referrer for visit in visits}) > 5
    returned = len(visits) - len({visit.visitor for visit in visits})
    assert returned > len(visits) / 20


def test_gaps_within_visits_are_short_and_those_between_long(demonstration: Demonstration) -> None:
    pauses = 0
    for visits in demonstration.generated.values():
        last_ms: dict[int, int] = {}
        for visit in visits:
            views = views_of(visit)
            gaps = [later.time_ms - earlier.time_ms for earlier, later in pairwise(views)]
            assert max(gaps, default=0) < TIMEOUT_MS
            pauses += sum(gap > 5 * 60_000 for gap in gaps)
            if visit.visitor in last_ms:
                assert views[0].time_ms - last_ms[visit.visitor] > TIMEOUT_MS
            last_ms[visit.visitor] = max(hit.time_ms for hit in visit.hits)
    assert pauses > 20


def test_views_have_what_assigns_them_to_visits(demonstration: Demonstration) -> None:
    for visits in demonstration.generated.values():
        for visit in visits:
            views = views_of(visit)
            assert views[0].from_page is None
            for earlier, later in pairwise(views):
                assert later.from_page == earlier.path != later.path
                assert later.identity == earlier.identity != b""
                assert later.width_px == earlier.width_px
                is_next_day = later.time_ms // DAY_MS > earlier.time_ms // DAY_MS
                assert later.number_today == (1 if is_next_day else earlier.number_today + 1)


def test_nobody_before_comes_again_while_it_runs(demonstration: Demonstration) -> None:
    numbers = {hostname: number for number, hostname in enumerate(HOSTNAMES, start=1)}
    before = {
        view.identity
        for visits in demonstration.generated.values()
        for visit in visits
        for view in views_of(visit)
    }
    live = islice(live_hits(PLAN, numbers), 2_000)
    assert not before & {hit.identity for hit in live if isinstance(hit, View)}
