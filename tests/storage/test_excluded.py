"""What rules leave out of a store that grows, is flushed and merged, compared with the oracle."""

import random
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pytest
import pytest_twisted
from support.query.oracle import Entry, Oracle
from support.query.random_queries import GOALS
from support.query.readers import reader_of
from support.query.snapshots import GOAL_ENDPOINTS, SOURCES, answer, query_from
from support.storage.contents import idle
from support.storage.hits import HOUR_MS, NOW_MS, a_view

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, split_property
from medamad.domain.hits import Event, Hit, Unload
from medamad.query.embedded.excluded import ExcludedViews
from medamad.query.request import Cancellation
from medamad.storage.compaction.planner import Sizes
from medamad.storage.segments.format import PAGE_VISITOR, VISITOR
from medamad.storage.segments.read import OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_numbers import visit_numbers
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
    [("visit_bounce", "true"), ("browser", "Chrome")],
)
ENDPOINTS = (
    ("summary", [("visits", "true"), ("interval", "day")]),
    ("pages", []),
    ("time", []),
    ("browsers", [("visits", "true"), ("views", "true")]),
    ("entries", []),
    ("exits", []),
    ("properties", [("visits", "true")]),
    *((endpoint, []) for endpoint in GOAL_ENDPOINTS),
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


def agree(rules: Sequence[Pairs], now_ms: int, snapshot: Snapshot) -> tuple[int, int]:
    """Compare all answers; return how many views were left out, and how many masks found again."""
    views, events = entries_of(snapshot)
    whole = Oracle(views, events, source_of=SOURCES.name_of, now_ms=now_ms, goals=GOALS)
    oracle = whole.without(rules)
    queries = [query_from(rule) for rule in rules]
    for endpoint, parameters in ENDPOINTS:
        for filters in ([], [("browser", "Firefox")], [("exit_page", "/a")]):
            asked = [*parameters, *filters]
            reader = reader_of(snapshot, SOURCES, queries)
            found = answer(reader, endpoint, asked, now_ms=now_ms)
            assert found == oracle.answer(endpoint, asked), (endpoint, asked)
    again = 0
    one, other = (ExcludedViews(snapshot, queries, SOURCES, Cancellation()) for _ in range(2))
    for part in snapshot.leaves():
        if isinstance(part, OpenSegment):
            left_out = one.left_out(part)
            again += left_out is not None and left_out is other.left_out(part)
    return len(whole.views) - len(oracle.views), again


@pytest.mark.parametrize("seed", [6, *(pytest.param(n, marks=pytest.mark.slow) for n in range(12))])
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
                    Event(
                        website=website.number, time_ms=now_ms, properties=(carried,), beacon=late
                    )
                )
            else:
                beacons.append(f"b{len(beacons)}")
                hits.append(
                    a_view(
                        website.number,
                        beacon=beacons[-1],
                        time_ms=now_ms,
                        first_today=len(beacons) % 3 == 0,
                        path=rng.choice(("/", "/a", "/b/c")),
                        browser=rng.choice(("Firefox", "Chrome", "Safari")),
                        identity=rng.choice((b"", b"ann", b"bob", b"eve")),
                    )
                )
        await store.append(hits)
        if rng.random() < 0.4:
            now_ms += rng.choice((0, HOUR_MS, 13 * HOUR_MS, 27 * HOUR_MS))
            await store.maintain(now_ms)
            await idle(store)
        found = store.read(website, partial(agree, rules, now_ms))
        left_out, again = left_out + found[0], again + found[1]
        merged += store.read(website, lambda snapshot: any(s.members for s in snapshot.segments))
    assert left_out > 50
    assert again
    assert merged
    await store.close()
