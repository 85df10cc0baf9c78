"""The sums of visits, cached or not, compared with those of each visit and view by itself."""

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, product, zip_longest
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import pytest
import pytest_twisted
from attrs import frozen
from support.query.readers import reader_of
from support.storage.contents import idle
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewNumber
from medamad.domain.goals import Definitions, Funnel, Goal
from medamad.domain.hits import Event, Hit, Unload
from medamad.lookup.referrers import Sources
from medamad.query.embedded import goals, visit_figures
from medamad.query.embedded.aggregate import tally
from medamad.query.embedded.scan import Selection
from medamad.query.embedded.selection import select
from medamad.query.embedded.view_filter import ViewFilter
from medamad.query.embedded.visit_figures import pages_beside
from medamad.query.embedded.visit_groups import settled_in, visits_in_groups
from medamad.query.embedded.visit_sums import (
    Beginnings,
    FirstViews,
    Kind,
    LastPages,
    ReachedGoal,
    SeenPages,
    Totals,
    VisitSums,
    sum_visits,
)
from medamad.query.goal_reports import funnel_figures, goal_figures
from medamad.query.period import ALWAYS, Period
from medamad.query.reader import SeriesOptions
from medamad.query.reports import SummaryOptions, summary
from medamad.query.request import Cancellation, Filter, Query
from medamad.storage.compaction.planner import Sizes
from medamad.storage.segments.counters import SUMS, VIEWS, keys_of, sums_of
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_counters import VISITS
from medamad.storage.segments.visit_numbers import sequences_of, visit_numbers
from medamad.storage.store import Store

OpenStore = Callable[..., Store]

MINUTE_MS = 60_000
FIRST_SEED = 2
STEPS: Sequence[Literal[1, -1]] = (1, -1)
KINDS: Sequence[Kind] = (
    FirstViews(Dimension.PATH),
    FirstViews(Dimension.BROWSER),
    Beginnings(),
    Beginnings(900_000, VISITS),
    Totals(),
    Totals(VISITS),
    FirstViews(Dimension.BROWSER, VISITS),
    LastPages(),
    SeenPages(),
    ReachedGoal(Goal(id="a", name="A page", path="/1*"), Beginnings(900_000, VISITS)),
    ReachedGoal(Goal(id="b", name="An event", event="plan"), SeenPages()),
)


GOALS: Sequence[Goal] = (
    Goal(id="a", name="A page", path="/1*"),
    Goal(id="b", name="A paid plan", event="plan", value="pro", revenue="price", currency="EUR"),
)


def rows(sums: VisitSums) -> dict[int, list[int]]:
    columns = zip(sums.codes.tolist(), sums.sums.T.tolist(), strict=True)
    return {code: row for code, row in columns if any(row)}


@frozen
class EachView:
    """A view, and what it has."""

    number: int
    time_ms: int
    path: int
    browser: int
    duration_ms: int
    has_late_event: bool
    properties: frozenset[str]


def each_visit(selection: Selection) -> dict[int, list[EachView]]:
    """Return the views of each selected visit by its number, found view by view."""
    visits: dict[int, list[EachView]] = {}
    for visit, view in each_view(selection.snapshot):
        visits.setdefault(visit, []).append(view)
    selected: set[int] = set()
    for views in selection.all_candidates():
        selected |= set(visit_numbers(views.part, views.rows).tolist())
    return {
        number: found
        for number, found in visits.items()
        if number in selected
        and found[0].number == number
        and selection.period.mask(np.array([found[0].time_ms]))[0]
    }


def each_view(snapshot: Snapshot) -> Iterator[tuple[int, EachView]]:
    """Return each view that belongs to a visit, with the number of the visit."""
    events = list(each_event(snapshot))
    for part in snapshot.leaves():
        columns = zip(
            part.sequence.tolist(),
            part.numbers(ViewNumber.VISIT_OFFSET).tolist(),
            part.time_ms.tolist(),
            part.codes(Dimension.PATH).tolist(),
            part.codes(Dimension.BROWSER).tolist(),
            part.duration_ms.tolist(),
            strict=True,
        )
        for number, offset, time_ms, *further in columns:
            own = [event for event in events if event.view == number]
            late = any(each.number != number + 1 or each.time_ms > time_ms for each in own)
            texts = frozenset(each.text for each in own)
            if offset:
                yield number + 1 - offset, EachView(number, time_ms, *further, late, texts)


@frozen
class EachEvent:
    """A property of an event."""

    number: int
    time_ms: int
    view: int
    text: str


def each_event(snapshot: Snapshot) -> Iterator[EachEvent]:
    """Return each property of an event that belongs to a view."""
    texts = snapshot.texts(Dimension.PROPERTY)
    pieces = [
        *((events, events.view.tolist()) for events in snapshot.loose_events()),
        *(
            (part.own, part.sequence[part.own.view.astype(np.intp)].tolist())
            for part in snapshot.leaves()
        ),
    ]
    for events, views in pieces:
        columns = (events.event.tolist(), events.time_ms.tolist(), views, events.property.tolist())
        for event, time_ms, view, code in zip(*columns, strict=True):
            yield EachEvent(event, time_ms, view, texts[code])


def sums_of_each(visits: dict[int, list[EachView]]) -> list[dict[int, list[int]]]:
    """Return the sums of KINDS."""
    found: list[dict[int, list[int]]] = []
    for kind in KINDS:
        sums: dict[int, list[int]] = {}
        for views in visits.values():
            for code, row in rows_of_kind(kind, views):
                sums[code] = [
                    a + b for a, b in zip(sums.get(code, [0] * len(row)), row, strict=True)
                ]
        found.append(sums)
    return found


def rows_of_kind(kind: Kind, views: Sequence[EachView]) -> list[tuple[int, list[int]]]:
    """Return the codes under which a visit counts, and what is added up."""
    first = views[0]
    bounced = len(views) == 1 and not first.has_late_event
    sums = [1, len(views), int(bounced), sum(view.duration_ms for view in views)]
    match kind:
        case FirstViews(dimension=dimension, last=last):
            code = first.path if dimension is Dimension.PATH else first.browser
            return [(code, sums[: last + 1])]
        case Beginnings(slot_ms=slot_ms, last=last):
            return [(first.time_ms // slot_ms, sums[: last + 1])]
        case Totals(last=last):
            return [(0, sums[: last + 1])]
        case LastPages():
            return [(views[-1].path, [1])]
        case SeenPages():
            return [(code, [1]) for code in {view.path for view in views}]
        case ReachedGoal(goal=goal, kind=of_visits):
            reached = any(has_reached(goal, view) for view in views)
            return rows_of_kind(of_visits, views) if reached else []
    raise AssertionError(kind)


def has_reached(goal: Goal, view: EachView) -> bool:
    if goal.path is not None:
        return view.path in CODES_OF_GOAL
    return any(text.startswith(f"{goal.event}\0") for text in view.properties)


CODES_OF_GOAL: set[int] = set()
"""The codes of the paths of the goal on a page, in the store of the test."""


def codes_of_goal(snapshot: Snapshot) -> set[int]:
    texts = snapshot.texts(Dimension.PATH)
    return {code for code, text in enumerate(texts) if text.startswith("/1")}


NOBODY = Sources({})
FIREFOX = (Filter("browser", "eq", ("Firefox",)),)
ANY_BROWSER = (Filter("browser", "neq", ("Netscape",)),)
"""Matches all views, so that nothing is taken from what is cached for all of them."""
SOME_EXITS = (Filter("exit_page", "neq", ("/1",)),)
FUNNEL = Funnel(id="f", name="A funnel", goals=("a", "b"))


def agree_under_filters(period: Period, snapshot: Snapshot) -> None:
    """Check the sums of visits part by part, and that a filter which matches all changes none."""
    for filters in (FIREFOX, ANY_BROWSER, SOME_EXITS):
        selection = select(snapshot, Query(period, filters), NOBODY, Cancellation())
        exact = each_visit(selection)
        assert [rows(sums) for sums in sum_visits(selection, KINDS)] == sums_of_each(exact)
        groups = [
            sequences_of(visits.part, visits.begins).tolist()
            for visits in visits_in_groups(selection)
        ]
        assert sorted(chain(*groups)) == sorted(exact)

    def answers(filters: tuple[Filter, ...]) -> list[Any]:
        query = Query(period, filters, with_visits=True)
        options = SummaryOptions(now_ms=NOW_MS, previous=True, interval="day")
        reader = reader_of(snapshot)
        definitions = Definitions(goals=tuple(GOALS), funnels=(FUNNEL,))
        of_goals = goal_figures(reader, query, goals=GOALS, options=SeriesOptions(now_ms=NOW_MS))
        return [
            summary(reader, query, options=options).content,
            # Conversions without a visit count without filters only.
            {row["id"]: (row["visits"], row["visits_percentage"]) for row in of_goals.content},
            funnel_figures(reader, query, funnel=FUNNEL, definitions=definitions).content,
        ]

    assert answers(()) == answers(ANY_BROWSER) == answers(())
    # Of many views, when goals were reached is not cached.
    with patch.object(goals, "MOST_CACHED", 0):
        assert answers(()) == answers(ANY_BROWSER) == answers(())


def agree(periods: Sequence[Period], snapshot: Snapshot) -> int:
    """Check the sums of visits in some periods; return how many there were of visits."""
    visits = 0
    for period in periods:
        selection = Selection(snapshot, period, ViewFilter({}), Cancellation())
        exact = each_visit(selection)
        for _ in range(2):
            assert [rows(sums) for sums in sum_visits(selection, KINDS)] == sums_of_each(exact)
        visits += len(exact)
    return visits


def count_settled(periods: Sequence[Period], snapshot: Snapshot) -> int:
    """Return of how many periods the sums of visits are cached."""
    return sum(settled_in(snapshot, each, Cancellation()) is not None for each in periods)


def agree_on_views(periods: Sequence[Period], snapshot: Snapshot) -> None:
    """Check the sums of views in some periods by the codes of each dimension."""
    for period, dimension in product(periods, VIEW_DIMENSIONS):
        selection = Selection(snapshot, period, ViewFilter({}), Cancellation())
        size = len(snapshot.texts(dimension))
        exact = np.zeros((SUMS, size), np.int64)
        for views in selection.all_candidates():
            part, rows = views.part, views.rows
            keys = keys_of(part.codes(dimension)[rows], part.flags[rows])
            exact += sums_of(keys, part.duration_ms[rows], size)
        for _ in range(2):
            found = tally(selection, dimension)
            assert [
                column.tolist()
                for column in (
                    found.views,
                    found.day_visitors,
                    found.page_visitors,
                    found.timed_visitors,
                    found.bounces,
                    found.duration_ms,
                )
            ] == exact.tolist()
        brief = tally(selection, dimension, with_durations=False)
        assert brief.views.tolist() == exact[VIEWS].tolist()


def agree_on_goals(period: Period, snapshot: Snapshot) -> None:
    """Check the conversions and the revenue of a period, which are those of its hours together."""
    query = Query(period, with_visits=True)
    options = SeriesOptions(now_ms=NOW_MS, interval="hour")
    for _ in range(2):
        found = goal_figures(
            reader_of(snapshot),
            query,
            goals=GOALS,
            options=options,
        )
        for row in found.content:
            hours = row["interval"]
            for name in ("conversions", "visits"):
                assert row[name] == sum(hour[name] for hour in hours)
            if "revenue" in row:
                assert row["revenue"]["sum"] == sum(hour["revenue"]["sum"] for hour in hours)


def agree_on_pages_beside(periods: Sequence[Period], snapshot: Snapshot) -> None:
    """Check which pages come next after a page, and before, view by view."""
    visits: dict[int, list[EachView]] = {}
    for visit, view in each_view(snapshot):
        visits.setdefault(visit, []).append(view)
    texts = list(snapshot.texts(Dimension.PATH))
    for period, filters, step in product(periods, ((), FIREFOX), STEPS):
        selection = select(snapshot, Query(period, filters), NOBODY, Cancellation())
        selected = {
            number
            for views in selection.all_candidates()
            for number in views.part.sequence[views.rows]
        }
        exact = [0] * (len(texts) + 1)
        for views_of_visit in visits.values():
            in_order = views_of_visit[::step]
            for view, beside in zip_longest(in_order, in_order[1:]):
                if texts[view.path] == "/1" and view.number in selected:
                    exact[-1 if beside is None else beside.path] += 1
        for _ in range(2):
            assert pages_beside(selection, "/1", step).tolist() == exact


@pytest.mark.parametrize(
    ("seed", "batches"),
    [(FIRST_SEED, 12), *(pytest.param(n, 24, marks=pytest.mark.slow) for n in range(12))],
)
@pytest_twisted.ensureDeferred
async def test_sums_are_those_of_each_visit(open_store: OpenStore, seed: int, batches: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same each time
    sizes = Sizes(chunk_views=rng.randint(3, 8), merged_members=2, counted_from=0)
    store = open_store(sizes=sizes)
    website = await store.add_website("example.com", 1)
    now_ms, compared, merged, settled = NOW_MS, 0, 0, 0
    beacons: list[str] = []
    earlier: list[Period] = []
    for place in range(batches):
        is_last = place == batches - 1
        batch: list[Hit] = []
        for _ in range(rng.randint(1, 12)):
            now_ms += rng.choice((0, 700, MINUTE_MS, 9 * MINUTE_MS, 25 * MINUTE_MS))
            late = rng.choice(beacons[-40:]) if beacons else "none"
            kind = rng.random()
            if kind < 0.2:
                batch.append(Unload(time_ms=now_ms, beacon=late, duration_ms=rng.randint(1, 9_000)))
            elif kind < 0.4:
                plan, price = rng.choice(("free", "pro")), rng.choice(("5", "7.50", "12"))
                properties = (("plan", plan), ("price", price))
                event = Event(
                    website=website.number, time_ms=now_ms, properties=properties, beacon=late
                )
                batch.append(event)
            else:
                beacons.append(f"b{len(beacons)}")
                batch.append(
                    a_view(
                        website.number,
                        beacon=beacons[-1],
                        time_ms=now_ms,
                        first_today=len(beacons) % 3 == 0,
                        path=f"/{rng.randint(1, 12)}",
                        browser=rng.choice(("Firefox", "Chrome")),
                        identity=rng.choice((b"", b"ann", b"bob", b"eve")),
                    )
                )
        await store.append(batch)
        later_ms = [rng.choice((0, HOUR_MS, 13 * HOUR_MS, 27 * HOUR_MS))] * (rng.random() < 0.3)
        # In the end, all is flushed, corrected and merged.
        for added_ms in [27 * HOUR_MS] * 3 if is_last else later_ms:
            now_ms += added_ms
            await store.maintain(now_ms)
            await idle(store)
        starts_ms = [rng.randint(NOW_MS - HOUR_MS, now_ms) for _ in range(2)]
        periods = [
            ALWAYS,
            *(Period(start, start + rng.randint(1, 3 * DAY_MS)) for start in starts_ms),
        ]
        # What was cached of a period must not stay when something of its visits arrives.
        periods += rng.sample(earlier, min(3, len(earlier)))
        earlier += periods[1:3]
        settled += store.read(website, partial(count_settled, periods))
        CODES_OF_GOAL.clear()
        CODES_OF_GOAL.update(store.read(website, codes_of_goal))
        compared += store.read(website, partial(agree, periods))
        store.read(website, partial(agree_on_pages_beside, periods))
        store.read(website, partial(agree_on_views, periods))
        store.read(website, partial(agree_on_goals, periods[1]))
        store.read(website, partial(agree_under_filters, periods[2]))
        merged += store.read(website, lambda snapshot: any(s.members for s in snapshot.segments))
    assert compared > 4 * batches
    assert merged
    # Of few hits, the memtable has something of most periods.
    assert settled or seed != FIRST_SEED
    await store.close()


@pytest_twisted.ensureDeferred
async def test_what_arrives_later_changes_what_was_cached(open_store: OpenStore) -> None:
    store = open_store(sizes=Sizes(chunk_views=2, merged_members=2, counted_from=0))
    website = await store.add_website("example.com", 1)

    def view(beacon: str, minute: int, identity: bytes) -> Hit:
        time_ms = NOW_MS + minute * MINUTE_MS
        return a_view(
            website.number,
            beacon=beacon,
            time_ms=time_ms,
            identity=identity,
            first_today=beacon != "d",
        )

    async def fill(name: str, minute: int) -> None:
        """Let others come, so that what was there before is written into segments."""
        for number in range(6):
            beacon = f"{name}{number}"
            await store.append([view(beacon, minute, beacon.encode())])
        await idle(store)

    period = Period(NOW_MS, NOW_MS + MINUTE_MS)

    def found(snapshot: Snapshot) -> tuple[bool, list[int]]:
        """Return whether the sums are cached, and the visits, their views and the bounces."""
        selection = Selection(snapshot, period, ViewFilter({}), Cancellation())
        (sums,), (again,) = (sum_visits(selection, [FirstViews(Dimension.PATH)]) for _ in range(2))
        assert rows(sums) == rows(again)
        is_cached = settled_in(snapshot, period, Cancellation()) is not None
        return is_cached, sums.sums.sum(axis=1).tolist()[:3]

    await store.append([view("a", 0, b"ann"), view("b", 0, b"bob")])
    assert store.read(website, found) == (False, [2, 2, 2])
    await fill("c", 5)
    assert store.read(website, found) == (True, [2, 2, 2])
    await store.append([view("d", 20, b"ann")])
    assert store.read(website, found) == (False, [2, 3, 1])
    await fill("e", 60)
    assert store.read(website, found) == (True, [2, 3, 1])
    event = Event(
        website=website.number,
        time_ms=NOW_MS + HOUR_MS,
        properties=(("plan", "pro"),),
        beacon="b",
    )
    await store.append([event])
    assert store.read(website, found) == (False, [2, 3, 0])
    await store.close()


LONG_VISITS = (Filter("visit_duration", "gte", ("5",)),)


@pytest_twisted.ensureDeferred
async def test_what_comes_next_is_cached_for_merged_segments(open_store: OpenStore) -> None:
    store = open_store(sizes=Sizes(chunk_views=2, merged_members=2, counted_from=0))
    website = await store.add_website("example.com", 1)
    for number in range(12):
        time_ms, identity = NOW_MS + number * MINUTE_MS, f"{number}".encode()
        await store.append([a_view(website.number, time_ms=time_ms, identity=identity)])
    await idle(store)
    await store.maintain(NOW_MS + 2 * DAY_MS)
    await idle(store)

    def find(numbers: list[int], snapshot: Snapshot) -> tuple[int, int]:
        """Return how many views of visits of other numbers there are, and how many are counted."""
        selection = select(snapshot, Query(), NOBODY, Cancellation())
        counted, count_beside = 0, visit_figures.count_beside

        def count(selection: Selection, *arguments: Any) -> VisitSums:
            nonlocal counted
            counted += sum(len(views.rows) for views in selection.all_candidates())
            return count_beside(selection, *arguments)

        with patch.object(visit_figures, "count_beside", count):
            found = list(visit_figures.cached_beside(selection, np.array(numbers, np.int64), 1))
        return sum(int(each.visits.sum()) for each in found), counted

    assert store.read(website, partial(find, [])) == (12, 12)
    views, counted = store.read(website, partial(find, []))
    assert views == 12
    assert counted < 12
    # Other visits may go on elsewhere.
    assert store.read(website, partial(find, [1])) == (11, 12)
    assert store.read(website, partial(find, [1])) == (11, counted)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_what_filters_select_is_cached_until_it_may_change(open_store: OpenStore) -> None:
    store = open_store(sizes=Sizes(chunk_views=2, merged_members=2, counted_from=0))
    website = await store.add_website("example.com", 1)
    for number in range(12):
        time_ms, identity = NOW_MS + number * MINUTE_MS, f"{number}".encode()
        view = a_view(
            website.number,
            beacon=f"b{number}",
            time_ms=time_ms,
            identity=identity,
            path="/2",
            browser="Firefox",
        )
        await store.append([view])
    await idle(store)

    def select_twice(filters: tuple[Filter, ...], snapshot: Snapshot) -> tuple[int, int]:
        """Return how many visits are found, and in how many parts they were found again."""
        query = Query(filters=filters)
        groups = [
            list(visits_in_groups(select(snapshot, query, NOBODY, Cancellation())))
            for _ in range(2)
        ]
        again = sum(
            one.chosen is other.chosen and one.pages() is other.pages()
            for one, other in zip(*groups, strict=True)
        )
        return sum(map(len, groups[0])), again

    for filters in ((), FIREFOX, SOME_EXITS):
        visits, again = store.read(website, partial(select_twice, filters))
        assert visits == 12
        assert again
    assert store.read(website, partial(select_twice, LONG_VISITS)) == (0, 0)
    await store.append([Unload(time_ms=NOW_MS + HOUR_MS, beacon="b0", duration_ms=9_000)])
    # The view is in a segment that now has a correction.
    assert store.read(website, partial(select_twice, LONG_VISITS)) == (1, 0)
    await store.close()
