"""What rules leave out of a store that grows, is flushed and merged, compared with the oracle."""

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import cycle
from typing import Any

import msgspec
import numpy as np
import pytest
import pytest_twisted
from attrs import evolve
from support.query.oracle import Entry, Oracle
from support.query.random_queries import GOALS
from support.query.readers import reader_of
from support.query.snapshots import GOAL_ENDPOINTS, SOURCES, answer, query_from, result
from support.storage.contents import idle
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, split_property
from medamad.domain.goals import Definitions, Exclusion, Goal
from medamad.domain.hits import Event, Hit, Unload
from medamad.domain.websites import Website
from medamad.query.embedded.aggregate import sum_parts, tally
from medamad.query.embedded.excluded import ExcludedViews, find_left_out, number_of
from medamad.query.embedded.scan import Selection, divide
from medamad.query.embedded.view_filter import ViewFilter
from medamad.query.exclusions import left_out_by_day, rule_of, rules_of
from medamad.query.period import ALWAYS
from medamad.query.request import Cancellation, Gap
from medamad.storage.check import StoreCheck
from medamad.storage.compaction.planner import Sizes
from medamad.storage.compaction.retention import cutoff_of
from medamad.storage.segments.format import HOSTING, PAGE_VISITOR, VISITOR
from medamad.storage.segments.read import OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import visit_numbers
from medamad.storage.settings import Keep
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
MINUTE_MS = 60_000
Pairs = list[tuple[str, str]]

RULES: Sequence[Pairs] = (
    [("browser", "Firefox"), ("path", "/a")],
    [("visit_views[gte]", "4")],
    [("visit_duration[gte]", "6000")],
    [("duration[gte]", "7000")],
    [("prop_value", "pro")],
    [("entry_page", "/b/c"), ("exit_page[neq]", "/a")],
    [("goal", "login")],
    [("visit_bounce", "true"), ("hosting", "true")],
)
BEGINNING = [
    (name, datetime.fromtimestamp((NOW_MS + offset_ms) / 1000, UTC).isoformat())
    for name, offset_ms in (("start", 0), ("end", 4 * HOUR_MS))
]
"""A period that gets no more hits, while rules change."""
ENDPOINTS = (
    ("entries", BEGINNING),
    ("exits", BEGINNING),
    ("summary", [("visits", "true"), ("interval", "day")]),
    ("summary", BEGINNING),
    ("pages", []),
    ("time", []),
    ("browsers", [("visits", "true"), ("views", "true")]),
    ("hosting", [("visits", "true"), ("views", "true")]),
    ("entries", []),
    ("exits", []),
    ("properties", [("visits", "true")]),
    *((endpoint, []) for endpoint in GOAL_ENDPOINTS),
)
FILTERS: Sequence[Pairs] = (
    [],
    [("browser", "Firefox"), ("hosting", "false")],
    [("exit_page", "/a")],
)


def entries_of(snapshot: Snapshot) -> tuple[list[Entry], list[Entry]]:
    """Return the views and the events of a snapshot, as the oracle takes them."""
    views: list[Entry] = []
    rows: list[tuple[int, int, int, int]] = []
    texts = {dimension: snapshot.texts(dimension) for dimension in VIEW_DIMENSIONS}
    for part in snapshot.leaves():
        numbers = part.sequence.tolist()
        visits = visit_numbers(part, np.arange(len(part))) if part.first_visit else [0] * len(part)
        for row, number in enumerate(numbers):
            view = {
                "id": number,
                "time_ms": int(part.time_ms[row]),
                "p": bool(part.flags[row] & VISITOR),
                "q": bool(part.flags[row] & PAGE_VISITOR),
                "hosting": bool(part.flags[row] & HOSTING),
                "duration_ms": int(part.duration_ms[row]),
                "visit": int(visits[row]),
            }
            for dimension, its_texts in texts.items():
                view[dimension.attribute] = its_texts[int(part.codes(dimension)[row])]
            views.append(view)
        own = part.own
        of_own = [numbers[row] for row in own.view.astype(np.intp).tolist()]
        columns = (own.event.tolist(), own.time_ms.tolist(), of_own, own.property.tolist())
        rows += zip(*columns, strict=True)
    for events in snapshot.loose_events():
        columns = (events.event.tolist(), events.time_ms.tolist())
        rows += zip(*columns, events.view.tolist(), events.property.tolist(), strict=True)
    properties = snapshot.texts(Dimension.PROPERTY)
    found: dict[int, Entry] = {}
    for number, time_ms, of_view, code in sorted(rows):
        event = {"number": number, "time_ms": time_ms, "view": of_view or None, "properties": []}
        name, value = split_property(properties[code])
        found.setdefault(number, event)["properties"].append((name, value))
    return sorted(views, key=lambda view: view["id"]), list(found.values())


def agree(rules: Sequence[Pairs], now_ms: int, turn: int, snapshot: Snapshot) -> tuple[int, int]:
    """Compare answers; return how many views were left out, and how many masks found again.

    Every endpoint is asked under one filter, which in other turns is another one.
    """
    views, events = entries_of(snapshot)
    whole = Oracle(views, events, source_of=SOURCES.name_of, now_ms=now_ms, goals=GOALS)
    oracle = whole.without(rules)
    queries = [query_from(rule) for rule in rules]
    for number, (endpoint, parameters) in enumerate(ENDPOINTS):
        asked = [*parameters, *FILTERS[(number + turn) % len(FILTERS)]]
        reader = reader_of(snapshot, SOURCES, queries)
        found = answer(reader, endpoint, asked, now_ms=now_ms)
        assert found == oracle.answer(endpoint, asked), (endpoint, asked)
    again = 0
    one, other = (ExcludedViews(snapshot, queries, SOURCES, Cancellation()) for _ in range(2))
    for part in snapshot.leaves():
        if isinstance(part, OpenSegment):
            left_out = one.left_out(part)
            again += left_out is not None and left_out is other.left_out(part)
    first, second = (
        Selection(snapshot, ALWAYS, ViewFilter({}, visits=each), Cancellation())
        for each in (one, other)
    )
    tally(first, Dimension.PATH)
    covered, _ = divide(snapshot, ALWAYS)
    if covered.segments:
        key = (sum_parts, Dimension.PATH, second.filter.state_of(covered.segments))
        assert covered.find_cached(key) is not None
    return len(whole.views) - len(oracle.views), again


def random_hits(
    rng: random.Random, website: Website, now_ms: int, beacons: list[str]
) -> tuple[list[Hit], int]:
    """Return some hits from a moment on, and when they end; add the beacons of their views."""
    hits: list[Hit] = []
    for _ in range(rng.randint(1, 12)):
        now_ms += rng.choice((0, 700, MINUTE_MS, 9 * MINUTE_MS, 25 * MINUTE_MS))
        late = rng.choice(beacons[-40:]) if beacons else "none"
        kind = rng.random()
        if kind < 0.2:
            hits.append(Unload(time_ms=now_ms, beacon=late, duration_ms=rng.randint(1, 9_000)))
        elif kind < 0.4:
            carried = rng.choice((("plan", "free"), ("plan", "pro"), ("logged_in", "x")))
            hits.append(
                Event(website=website.number, time_ms=now_ms, properties=(carried,), beacon=late)
            )
        else:
            beacons.append(f"b{len(beacons)}")
            hits.append(
                a_view(
                    website.number,
                    beacon=beacons[-1],
                    time_ms=now_ms,
                    first_today=len(beacons) % 3 == 0,
                    hosting=len(beacons) % 4 < 2,
                    path=rng.choice(("/", "/a", "/b/c")),
                    browser=rng.choice(("Firefox", "Chrome", "Safari")),
                    identity=rng.choice((b"", b"ann", b"bob", b"eve")),
                )
            )
    return hits, now_ms


@pytest.mark.parametrize(
    "seed", [6, 7, *(pytest.param(n, marks=pytest.mark.slow) for n in range(12) if n not in (6, 7))]
)
@pytest_twisted.ensureDeferred
async def test_what_rules_leave_out_stays_exact_while_hits_arrive(
    open_store: OpenStore, seed: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same each time
    store = open_store(sizes=Sizes(chunk_views=8, merged_members=2, counted_from=0))
    website = await store.add_website("example.com", 1)
    now_ms, left_out, again, merged = NOW_MS, 0, 0, 0
    beacons: list[str] = []
    rules = rng.sample(RULES, 2)
    for batch in range(16):
        if batch % 4 == 0:
            rules = rng.sample(RULES, 2)
        hits, now_ms = random_hits(rng, website, now_ms, beacons)
        await store.append(hits)
        if rng.random() < 0.4:
            now_ms += rng.choice((0, HOUR_MS, 13 * HOUR_MS, 27 * HOUR_MS))
            await store.maintain(now_ms)
            await idle(store)
        found = store.read(website, partial(agree, rules, now_ms, batch))
        left_out, again = left_out + found[0], again + found[1]
        merged += store.read(website, lambda snapshot: any(s.members for s in snapshot.segments))
    # All of the beginning is in segments now.
    now_ms += 60 * HOUR_MS
    await store.maintain(now_ms)
    await idle(store)
    for rules in ([RULES[0]], [RULES[5]], [RULES[1], RULES[7]]):
        for turn in range(len(FILTERS)):
            left_out += store.read(website, partial(agree, rules, now_ms, turn))[0]
    assert left_out > 50
    assert again
    assert merged
    await store.close()


PERIODS: Sequence[dict[str, str]] = (
    {},
    {"start": "2026-09-23T00:00:00Z"},
    {"end": "2026-09-22T20:00:00Z"},
    {},
)
OF_ROLLUPS = (
    ("summary", [("visits", "true"), ("interval", "day"), ("start", "2026-09-21T00:00:00Z")]),
    ("pages", [("visits", "true"), ("views", "true")]),
    ("time", []),
    ("browsers", [("visits", "true"), ("views", "true")]),
    ("entries", []),
    ("exits", []),
    ("properties", []),
)
LAST = 3
"""The one of four rules that is made after the days have expired."""


def exclusions(rules: Sequence[Pairs]) -> tuple[Exclusion, ...]:
    names = (f"rule {number}" for number in range(len(rules)))
    return tuple(
        Exclusion(id=name, name=name, filters=tuple(filters), created=1, **of_period)
        for name, filters, of_period in zip(names, rules, PERIODS, strict=False)
    )


def answers(rules: Sequence[Exclusion], now_ms: int, snapshot: Snapshot) -> dict[Any, Any]:
    """Return the answers that rollups can give under some rules, and of which days they are not.

    And what each of the rules leaves out.
    """
    definitions = evolve(GOALS, exclusions=tuple(rules))
    reader = reader_of(snapshot, SOURCES, rules_of(definitions))
    found: dict[Any, Any] = {
        rule.name: (left_out_by_day(reader, rule_of(rule, definitions), UTC, has_visits=True), {})
        for rule in rules
    }
    for endpoint, parameters in OF_ROLLUPS:
        for filters in ([], [("path", "/a")]):
            report = result(reader, endpoint, [*parameters, *filters], now_ms=now_ms)
            gaps = {gap: days for gap in Gap if (days := report.gaps.days(gap))}
            found[endpoint, *filters] = (msgspec.to_builtins(report.content), gaps)
    return found


@pytest.mark.parametrize("seed", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in range(12))])
@pytest_twisted.ensureDeferred
async def test_days_that_expire_keep_apart_what_each_rule_leaves_out(
    open_store: OpenStore, seed: int
) -> None:
    """After each step of each day, with a new process, whatever rules are in force."""
    rng = random.Random(seed)  # noqa: S311 - the same each time
    sizes = Sizes(chunk_views=8, merged_members=2, counted_from=0)
    open_again = partial(open_store, sizes=sizes, find_left_out=partial(find_left_out, SOURCES))
    store = open_again()
    website = await store.add_website("example.com", 1)
    made = exclusions(rng.sample(RULES, 4))
    known = made[:LAST]
    await store.goals.change(website.number, lambda _: evolve(GOALS, exclusions=known))
    now_ms, beacons = NOW_MS, list[str]()
    while now_ms < NOW_MS + 2 * DAY_MS:
        hits, now_ms = random_hits(rng, website, now_ms, beacons)
        await store.append(hits)
        now_ms += rng.choice((0, HOUR_MS))
    now_ms = NOW_MS + 6 * DAY_MS
    await store.maintain(now_ms)
    again = evolve(known[1], id="again", name="added again", filters=known[1].filters[::-1])
    in_force = [(), known, *((rule,) for rule in known), (again, known[2])]
    before = [store.read(website, partial(answers, rules, now_ms)) for rules in in_force]
    compared, turns = 0, cycle(range(len(in_force)))
    for raw_days in (5, 4, 3):
        cutoff = cutoff_of(Keep(raw_days), UTC, now_ms)
        await idle(store)
        while await store.compactor.run_next(*store.partitions.all(), now_ms, cutoff) is not None:
            await store.close()
            store = open_again()
            await idle(store)
            turn = next(turns)
            after = store.read(website, partial(answers, in_force[turn], now_ms))
            for asked, (found, gaps) in after.items():
                assert Gap.EXCLUSIONS not in gaps, asked
                if not gaps:
                    assert (found, {}) == before[turn][asked], (asked, turn)
                    compared += 1
    assert compared > 100
    days = store.read(
        website, lambda snapshot: [each.header.day for each in snapshot.rollup_segments]
    )
    assert {len(day.left_out_by) for day in days} >= {0, 1}
    found = store.read(website, partial(answers, made, now_ms))
    counted = {day.number for day in days if not day.left_out_by}
    assert found["summary",][1][Gap.EXCLUSIONS] == sorted(counted)
    with store.environment.reading() as txn:
        assert list(StoreCheck(store.environment, txn).findings()) == []
    await store.close()


def test_a_rule_is_the_same_whatever_its_name() -> None:
    (goal,) = (each for each in GOALS.goals if each.id == "login")

    def number(goal: Goal, start: str | None, *filters: tuple[str, str]) -> int:
        rule = Exclusion(id="a", name="a", filters=filters, start=start, created=1)
        return number_of(rule_of(rule, Definitions(goals=(goal,))))

    path, browser = ("path[in]", "/a,/b"), ("browser", "Firefox")
    reached = ("goal", "login")
    same = number(goal, None, path, reached)
    assert same == number(evolve(goal, name="another"), None, reached, path)
    others = (
        number(goal, None, path),
        number(goal, None, path, browser),
        number(goal, None, ("path[in]", "/a"), reached),
        number(goal, None, ("path[neq]", "/a"), reached),
        number(goal, "2026-09-23T00:00:00Z", path, reached),
        number(evolve(goal, event="another"), None, path, reached),
        number(evolve(goal, value="another"), None, path, reached),
    )
    assert len({same, *others}) == len(others) + 1
    # Stores have it.
    assert number(goal, None, path) == 5637267697021076782
