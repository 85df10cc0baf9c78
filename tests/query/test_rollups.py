"""Rollups: their figures are in the result, and what they lack is in its gaps."""

import copy
import random
import weakref
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import pytest
from attrs import define, evolve, field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from support.query.naive_filters import (
    ENTRIES,
    EXITS,
    Pairs,
    ParsedQuery,
    instant,
    microseconds,
)
from support.query.oracle import Entry, Oracle
from support.query.random_queries import GOALS, INTERVALS, MOMENTS, ZONES, RandomTraffic
from support.query.readers import reader_of
from support.query.snapshots import (
    GOAL_ENDPOINTS,
    SOURCES,
    STEPS,
    MadeDay,
    answer,
    result,
    snapshot_of,
)

from medamad.domain.dimensions import SETTLED_MS
from medamad.domain.zones import day_at, start_of_day
from medamad.query.period import Period
from medamad.query.request import Filter, Gap, Gaps, Query
from medamad.storage.segments.parts import (
    Rollup,
)
from medamad.storage.segments.snapshot import Snapshot

DAY_MS = 86_400_000
FILTERED_BY = {
    "pages": "path",
    "time": "path",
    "summary": "path",
    "referrers": "referrer",
    "sources": "utm_source",
    "mediums": "utm_medium",
    "campaigns": "utm_campaign",
    "terms": "utm_term",
    "contents": "utm_content",
    "browsers": "browser",
    "os": "os",
    "devices": "device",
    "countries": "country",
    "languages": "language",
}
"""The filter of each endpoint that rollups can be filtered by."""
ENDPOINTS = (*FILTERED_BY, "properties")
"""The statistics that rollups know without visits."""
ENDS = ("entries", "exits")
NEVER_ROLLED_UP = (*STEPS, *GOAL_ENDPOINTS, "hosting")
"""What only views and events know."""


def split(
    views: list[Entry], events: list[Entry], zone: ZoneInfo, chosen: random.Random
) -> tuple[Snapshot, dict[int, MadeDay]]:
    """Return a snapshot with rollups of random days, and those days.

    Where the views of visits are in the order of their times, the visits expire that began until
    one of the days. What else there is of these days stays.
    """
    numbers = sorted({day_at(zone, each["time_ms"] // 1000) for each in (*views, *events)})
    last = chosen.choice(numbers) if numbers and in_order(views) else None
    chosen_days = {number for number in numbers if chosen.random() < 0.6}
    view_of = {view["id"]: view for view in views}

    def day_of(entry: Entry) -> int:
        return day_at(zone, entry["time_ms"] // 1000)

    def is_gone(hit: Entry) -> bool:
        view = view_of.get(hit["view"], hit) if "view" in hit else hit
        if last is not None:
            return day_of(view_of.get(view.get("visit"), view)) <= last
        if day_of(hit) not in chosen_days:
            return False
        # An event stays as long as its view.
        return view is hit or day_of(view) in chosen_days

    gone_views, gone_events = ([*filter(is_gone, hits)] for hits in (views, events))
    days = {
        number: MadeDay(
            number,
            (start_of_day(zone, number) * 1000, start_of_day(zone, number + 1) * 1000 - 1),
            [view for view in gone_views if day_of(view) == number],
            [event for event in gone_events if day_of(event) == number],
            chosen.choice(("all", "all", "all", "sums", "views")),
        )
        for number in sorted({day_of(hit) for hit in (*gone_views, *gone_events)})
    }
    kept_views, kept_events = (
        [hit for hit in hits if not is_gone(hit)] for hits in (views, events)
    )
    return snapshot_of(kept_views, kept_events, days=days.values()), days


def in_order(views: list[Entry]) -> bool:
    return all(one["time_ms"] <= other["time_ms"] for one, other in pairwise(views))


def put_in_order(views: list[Entry]) -> None:
    """Let the views of a visit come one after the other; it may go on for days."""
    for view, time_ms in zip(views, sorted(view["time_ms"] for view in views), strict=True):
        view["time_ms"] = time_ms


def put_after_their_views(events: list[Entry], views: list[Entry], chosen: random.Random) -> None:
    """Let the events of a view come within 25 hours of it, as they do; that may be another day."""
    loaded_ms = {view["id"]: view["time_ms"] for view in views}
    for event in events:
        if event["view"] in loaded_ms:
            later_ms = chosen.choice((0, chosen.randint(0, SETTLED_MS)))
            event["time_ms"] = loaded_ms[event["view"]] + later_ms


@frozen
class Facts:
    """The hits of a website, and the gaps of a result."""

    views: list[Entry]
    events: list[Entry]
    days: dict[int, MadeDay]
    without: dict[Gap, list[int]]
    now_ms: int

    def expected(self, endpoint: str, query: Pairs) -> Any:
        """Return what the oracle expects of the days that are not gaps."""
        if endpoint in NEVER_ROLLED_UP:
            return self._oracle(Gap.FIGURES).answer(endpoint, query)
        if endpoint in ENDS:
            return self._oracle().answer(endpoint, query)
        if endpoint == "time":
            return self._oracle(Gap.FIGURES, Gap.DURATIONS).answer(endpoint, query)
        if endpoint != "summary":
            return self._figures(endpoint, query, Gap.FIGURES)
        found = self._figures(endpoint, query, Gap.FIGURES)
        if "interval" in found:
            in_parts = self._figures(endpoint, query, Gap.FIGURES, Gap.INTERVAL)
            found["interval"] = in_parts["interval"]
        return found

    def _figures(self, endpoint: str, query: Pairs, *missing: Gap) -> Any:
        """Return the figures, with bounces and durations of the days of which they are known."""
        found = self._oracle(*missing, quiet=Gap.BOUNCES).answer(endpoint, query)
        timed = self._oracle(*missing, quiet=Gap.DURATIONS).answer(endpoint, query)
        found = with_figure("duration", found, timed)
        # Rollups know the durations of visits where they lack those of single views.
        return with_figure("visit_duration", found, self._oracle(*missing).answer(endpoint, query))

    def _oracle(self, *missing: Gap, quiet: Gap | None = None) -> Oracle:
        """Return an oracle without some days, and without the durations of `quiet` ones."""
        gone = [self.days[number] for each in missing for number in self.without[each]]
        gone_views = [view for day in gone for view in day.views]
        gone_events = [event for day in gone for event in day.events]
        days = [] if quiet is None else self.without[quiet]
        quiet_views = [view for number in days for view in self.days[number].views]
        unknown = {
            view["id"] for number in self.without[Gap.VISITS] for view in self.days[number].views
        }
        return Oracle(
            [
                {
                    **view,
                    "duration_ms": 0 if view in quiet_views else view["duration_ms"],
                    "visit": 0 if view.get("visit") in unknown else view.get("visit"),
                }
                for view in self.views
                if view not in gone_views
            ],
            [event for event in self.events if event not in gone_events],
            source_of=SOURCES.name_of,
            now_ms=self.now_ms,
            goals=GOALS,
            gone=[view["id"] for view in gone_views],
        )


def with_figure(figure: str, found: Any, others: Any) -> Any:
    """Return rows with a figure of other rows."""
    if isinstance(found, list):
        return [with_figure(figure, *rows) for rows in zip(found, others, strict=True)]
    if figure in found:
        return {**found, figure: others[figure]}
    return {
        name: with_figure(figure, each, others[name]) if isinstance(each, dict | list) else each
        for name, each in found.items()
    }


def needs_views(name: str) -> bool:
    """Return whether a parameter is about what only the views of visits know."""
    behaviour = ("visit_bounce", "visit_views", "visit_duration")
    filters = ("conversions", "goal", "visitor", *behaviour, *ENTRIES, *EXITS)
    return name.partition("[")[0] in filters


def is_about_visits(pair: tuple[str, str]) -> bool:
    return "visits" in pair


def start_of_series(traffic: RandomTraffic, views: list[Entry], query: Pairs) -> int:
    """Return a start for a series that would begin with its first view.

    Of a day that has a rollup, only the day's beginning is known.
    """
    times_ms = [view["time_ms"] for view in views]
    if end := instant(dict(query).get("end")):
        times_ms.append(microseconds(end) // 1000)
    return min(times_ms, default=traffic.now_ms)


def days_with_views(days: dict[int, MadeDay], query: Pairs) -> set[int]:
    """Return the days that have views in the period of a query."""
    has = ParsedQuery(query).has
    return {
        number for number, day in days.items() if any(has(view["time_ms"]) for view in day.views)
    }


def days_with_selected_views(
    days: dict[int, MadeDay], events: list[Entry], query: Pairs
) -> set[int]:
    """Return the days that have views which a query without filters on visits selects."""
    filters = [pair for pair in query if pair[0] not in ("limit", "offset")]
    return {
        number
        for number, day in days.items()
        if Oracle(day.views, events, source_of=SOURCES.name_of, now_ms=0).answer("hosting", filters)
    }


def check(
    traffic: RandomTraffic, endpoint: str, query: list[tuple[str, str]], zone: ZoneInfo
) -> Gaps:
    rng = traffic.rng
    views = traffic.views(rng.randint(0, 25))
    events = traffic.events(rng.randint(0, 10), views)
    if endpoint in (*ENDS, "properties"):
        # They have no such parameter.
        query = [pair for pair in query if pair[0] != "conversions"]
    is_of_views = endpoint in NEVER_ROLLED_UP or any(needs_views(name) for name, _ in query)
    if "start" not in dict(query) and "interval" in dict(query):
        query.append(("start", traffic.written(start_of_series(traffic, views, query))))
    if endpoint == "properties" and not is_of_views:
        query = [pair for pair in query if not is_about_visits(pair)]
    if is_of_views or endpoint in ENDS or any(is_about_visits(pair) for pair in query):
        put_in_order(views)
        if "interval" in dict(query) and "end" not in dict(query):
            # What comes after now is not in a series.
            ends_ms = [view["time_ms"] for view in views]
            if start := instant(dict(query).get("start")):
                ends_ms.append(microseconds(start) // 1000)
            query.append(("end", traffic.written(max(ends_ms, default=0) + 1000)))
    put_after_their_views(events, views, rng)
    snapshot, days = split(views, events, zone, rng)
    found = result(snapshot, endpoint, query, now_ms=traffic.now_ms)
    without = {gap: found.gaps.days(gap) for gap in Gap}
    if is_of_views:
        missing = {*without[Gap.FIGURES], *without[Gap.VISITS]}
        # Rollups know that no view has some text, but not which views are from which networks.
        if endpoint == "hosting" and not any(needs_views(name) for name, _ in query):
            assert days_with_selected_views(days, events, query) <= missing
        else:
            assert days_with_views(days, query) <= missing
    elif (
        without[Gap.FIGURES]
        or without[Gap.INTERVAL]
        or (endpoint == "time" and without[Gap.DURATIONS])
    ):
        # The visits of these days may go on, and those of others may have views on these.
        query = [pair for pair in query if not is_about_visits(pair)]
        found = result(snapshot, endpoint, query, now_ms=traffic.now_ms)
    # Views that belong to no visit are gaps too, but nothing of them is missing.
    rollups = result(evolve(snapshot, parts=()), endpoint, query, now_ms=traffic.now_ms)
    without[Gap.VISITS] = [*days] if is_of_views else rollups.gaps.days(Gap.VISITS)
    expected = Facts(views, events, days, without, traffic.now_ms).expected(endpoint, query)
    assert msgspec.to_builtins(found.content, builtin_types=(Decimal,)) == expected
    return found.gaps


random_traffic = st.builds(
    RandomTraffic,
    rng=st.randoms(use_true_random=False),
    moment=st.sampled_from(MOMENTS),
    interval=st.sampled_from(INTERVALS[2:]),
)


zones = st.sampled_from(ZONES).map(ZoneInfo)
quickly = settings(max_examples=settings.default.max_examples * 6 // 5)


@given(
    traffic=random_traffic,
    zone=zones,
    endpoint=st.sampled_from(
        (*ENDPOINTS, *ENDS, *NEVER_ROLLED_UP, "summary", "summary", "time", "pages")
    ),
)
@quickly
def test_a_result_is_exact_except_for_its_gaps(
    traffic: RandomTraffic, zone: ZoneInfo, endpoint: str
) -> None:
    check(traffic, endpoint, traffic.query(endpoint), zone)


@pytest.mark.parametrize("queries", [60, pytest.param(160, marks=pytest.mark.slow)])
def test_random_queries_have_every_kind_of_gap_and_often_none(queries: int) -> None:
    rng = random.Random(5)  # noqa: S311
    counts: Counter[Gap | None] = Counter()
    for number in range(queries):
        traffic = RandomTraffic(rng, rng.choice(MOMENTS), rng.choice(INTERVALS[2:]))
        endpoint = ("summary", "pages", "time", "properties", "entries")[number % 5]
        zone = ZoneInfo(rng.choice(ZONES))
        gaps = check(traffic, endpoint, traffic.query(endpoint), zone)
        counts.update([each for each in Gap if gaps.days(each)] or [None])
    kinds = {*Gap} - {Gap.DAMAGED, Gap.EXCLUSIONS}
    assert min(counts[each] for each in kinds | {None}) > queries // 200, counts


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("entry_page[neq]", "any"), ("exit_page[contains]", "any"), ("goal", "any")),
        *(("visit_bounce", "false"), ("visit_views[gte]", "0"), ("visit_duration[gte]", "0")),
        *(("duration[gte]", "0"), ("hosting", "false")),
    ],
)
def test_days_that_have_rollups_are_gaps_under_filters_on_visits_durations_and_networks(
    name: str, value: str
) -> None:
    traffic = RandomTraffic(random.Random(7), MOMENTS[0], "day")  # noqa: S311
    views = traffic.views(25)
    snapshot, days = split(views, [], ZoneInfo("UTC"), traffic.rng)
    with_views = sorted(number for number, day in days.items() if day.views)
    assert with_views
    # A filter on views leaves nothing out of the properties of days without events.
    unaffected = {"next", "previous"}
    unaffected |= {"properties"} if name in ("duration[gte]", "hosting") else set()
    for endpoint in {*ENDPOINTS} - unaffected:
        gaps = result(snapshot, endpoint, [(name, value)], now_ms=traffic.now_ms).gaps
        missing = {*gaps.days(Gap.FIGURES), *gaps.days(Gap.VISITS), *gaps.days(Gap.DURATIONS)}
        assert {*with_views} <= missing, endpoint


def test_gaps_of_visits_include_those_of_the_period_before() -> None:
    *_, gone, kept = RandomTraffic(random.Random(7), MOMENTS[0], "day").views(9)  # noqa: S311
    gone["time_ms"], kept["time_ms"] = 5 * DAY_MS, 6 * DAY_MS
    day = MadeDay(5, (5 * DAY_MS, 6 * DAY_MS - 1), [{**gone, "visit": 0}], [])
    snapshot = snapshot_of([{**kept, "visit": kept["id"]}], [], days=[day])
    query = [("start", "1970-01-07T00:00:00Z"), ("end", "1970-01-07T23:59:59Z")]
    query.append(("previous", "true"))
    assert result(snapshot, "summary", query).gaps.days(Gap.VISITS) == []
    query.append(("visits", "true"))
    assert result(snapshot, "summary", query).gaps.days(Gap.VISITS) == [5]


@pytest.mark.parametrize("endpoint", ["pages", "time", "browsers"])
def test_conversions_are_a_share_of_the_visits_that_still_have_views(endpoint: str) -> None:
    view = RandomTraffic(random.Random(7), MOMENTS[0], "day").views(1)[0]  # noqa: S311
    gone, kept = (
        {**view, "id": day, "visit": day, "path": "/a", "duration_ms": 5, "time_ms": day * DAY_MS}
        for day in (5, 6)
    )
    day = MadeDay(5, (5 * DAY_MS, 6 * DAY_MS - 1), [gone], [])
    snapshot = snapshot_of([kept], [], days=[day])
    (row,) = answer(snapshot, endpoint, [("conversions", "a"), ("goal", "a")])
    assert (row["conversions"], row["conversion_percentage"]) == (1, 1)


def test_visits_by_network_are_a_share_of_the_visits_that_still_have_views() -> None:
    view = RandomTraffic(random.Random(7), MOMENTS[0], "day").views(1)[0]  # noqa: S311
    gone, kept = ({**view, "id": day, "visit": day, "time_ms": day * DAY_MS} for day in (5, 6))
    day = MadeDay(5, (5 * DAY_MS, 6 * DAY_MS - 1), [gone], [])
    snapshot = snapshot_of([kept], [], days=[day])
    (row,) = answer(snapshot, "hosting", [("visits", "true")])
    assert (row["visits"], row["visits_percentage"]) == (1, 1)


def test_days_are_gaps_under_a_filter_on_properties_that_their_views_got_after_midnight() -> None:
    view = RandomTraffic(random.Random(7), MOMENTS[0], "day").views(1)[0]  # noqa: S311
    views = [{**view, "id": day, "visit": day, "time_ms": day * DAY_MS - 1000} for day in (3, 6)]
    event = {
        "time_ms": 6 * DAY_MS + 1000,
        "view": 6,
        "of_load": False,
        "number": 7,
        "properties": [("plan", "pro")],
    }
    of_days = {2: (views[:1], []), 5: (views[1:], []), 6: ([], [event])}
    days = [
        MadeDay(number, (number * DAY_MS, (number + 1) * DAY_MS - 1), *hits)
        for number, hits in of_days.items()
    ]
    snapshot = snapshot_of([], [], days=days)
    # The day after may be outside the period.
    end = ("end", "1970-01-06T23:59:59Z")
    for endpoint in ("pages", "browsers", "time", "summary", "hosting"):
        for query in ([], [end], [end, ("path", view["path"])]):
            gaps = result(snapshot, endpoint, [*query, ("prop_name", "plan")]).gaps
            assert gaps.days(Gap.FIGURES) == [5], endpoint
        assert not result(snapshot, endpoint, [("prop_name", "other")]).gaps.days(Gap.FIGURES)


def whole_days(traffic: RandomTraffic, zone: ZoneInfo, name: str) -> list[tuple[str, str]]:
    """Return the parameters of a query of whole days of a zone, or of all time."""
    first, last = sorted(day_at(zone, traffic.time_ms() // 1000) for _ in range(2))
    start = datetime.fromtimestamp(start_of_day(zone, first), UTC)
    end = datetime.fromtimestamp(start_of_day(zone, last + 1), UTC) - timedelta(seconds=1)
    query = [("start", start.isoformat()), ("end", end.isoformat())]
    query = [pair for pair in query if traffic.rng.random() < 0.8]
    if name == "summary" and "start" in dict(query):
        query += [("interval", traffic.interval), ("timezone", zone.key)]
    if name in FILTERED_BY and traffic.rng.random() < 0.7:
        field = FILTERED_BY[name]
        operator = traffic.rng.choice(("eq", "neq", "contains", "in"))
        query.append((f"{field}[{operator}]", traffic.value_of(field, operator)))
    return query


@given(traffic=random_traffic, zone=zones, endpoint=st.sampled_from(ENDPOINTS))
@quickly
def test_queries_of_whole_days_by_the_filtered_dimension_have_no_gaps(
    traffic: RandomTraffic, zone: ZoneInfo, endpoint: str
) -> None:
    gaps = check(traffic, endpoint, whole_days(traffic, zone, endpoint), zone)
    assert gaps.days(Gap.FIGURES) == []
    assert gaps.days(Gap.INTERVAL) == []


@given(traffic=random_traffic, zone=zones)
@quickly
def test_rollups_answer_property_values_of_whole_days(
    traffic: RandomTraffic, zone: ZoneInfo
) -> None:
    query = [*whole_days(traffic, zone, "properties"), ("prop_name[contains]", "")]
    gaps = check(traffic, "properties", query, zone)
    assert gaps.days(Gap.FIGURES) == []


@define(eq=False)
class Opened:
    """Rollups that are opened when they are iterated over, like those of a store."""

    days: Sequence[Rollup]
    opened: list["weakref.ref[Rollup]"] = field(factory=list)
    most_open: int = 0

    def __iter__(self) -> Iterator[Rollup]:
        for number in range(len(self.days)):
            self.most_open = max(self.most_open, sum(ref() is not None for ref in self.opened))
            day = copy.copy(self.days[number])
            self.opened.append(weakref.ref(day))
            yield day
            del day


def test_rollups_are_opened_a_few_at_a_time() -> None:
    rng = random.Random(5)  # noqa: S311
    traffic = RandomTraffic(rng, MOMENTS[0], "day")
    views = traffic.views(40)
    for number, view in enumerate(views):
        view["time_ms"] = number // 2 * DAY_MS
    of_days = [views[place : place + 2] for place in range(0, len(views), 2)]
    days = [
        MadeDay(number, (number * DAY_MS, (number + 1) * DAY_MS - 1), of_day, [], known)
        for number, (of_day, known) in enumerate(zip(of_days, ("all", "sums") * 10, strict=True))
    ]
    snapshot = snapshot_of([], [], days=days)
    for endpoint in (*ENDPOINTS, "summary", "properties", "time", "pages"):
        opened = Opened(list(snapshot.rollups))
        answer(evolve(snapshot, rollups=opened), endpoint, [], now_ms=traffic.now_ms)
        assert opened.most_open <= 3, endpoint
        assert len(opened.opened) >= len(days)


def test_exclusions_do_not_apply_to_days_of_rollups_and_these_are_named() -> None:
    view = RandomTraffic(random.Random(7), MOMENTS[0], "day").views(1)[0]  # noqa: S311
    gone, kept = ({**view, "id": day, "visit": day, "time_ms": day * DAY_MS} for day in (5, 6))
    day = MadeDay(5, (5 * DAY_MS, 6 * DAY_MS - 1), [gone], [])
    snapshot = snapshot_of([kept], [], days=[day])
    for rule, named, views in (
        (Query(), [5], 1),
        (Query(Period(6 * DAY_MS, None)), [], 1),
        (Query(Period(None, 6 * DAY_MS - 1)), [5], 2),
        # Visits that began in the period may go on after it.
        (Query(Period(None, 5 * DAY_MS - 1)), [5], 2),
        (Query(Period(None, 4 * DAY_MS - 1)), [], 2),
        (Query(filters=(Filter("path", "eq", ("/none",)),)), [5], 2),
    ):
        for endpoint in ("summary", "pages", "properties"):
            reader = reader_of(snapshot, SOURCES, [rule])
            found = result(reader, endpoint, [("views", "true")])
            assert found.gaps.days(Gap.EXCLUSIONS) == named
            assert not found.gaps.days(Gap.FIGURES)
            if endpoint == "summary":
                current = answer(reader, endpoint, [])["current"]
                assert current["pageviews"] == views
            assert not result(snapshot, endpoint, []).gaps.days(Gap.EXCLUSIONS)
