"""What filters match in segments, which is cached, compared with each view by itself."""

import random
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import pytest_twisted
from support.query.readers import reader_of
from support.storage.contents import idle
from support.storage.hits import HOUR_MS, NOW_MS, a_view

from medamad.domain.dimensions import Dimension
from medamad.domain.hits import Event, Hit, View
from medamad.lookup.referrers import Sources
from medamad.query.embedded.aggregate import tally
from medamad.query.embedded.selection import select
from medamad.query.reports import events_by_property
from medamad.query.request import Cancellation, Filter, Query
from medamad.storage.compaction.planner import Sizes
from medamad.storage.segments.read import OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.store import Store

OpenStore = Callable[..., Store]

FIREFOX = Filter("browser", "eq", ("Firefox",))
PLAN = Filter("prop_name", "eq", ("plan",))
PRO = Filter("prop_value", "eq", ("pro",))
NOBODY = Sources({})


def matches(filters: Sequence[Filter], browser: str, values: set[str]) -> bool:
    """Return whether a view matches that has events with some values of `plan`."""
    return (FIREFOX not in filters or browser == "Firefox") and (
        "pro" in values if PRO in filters else bool(values) or PLAN not in filters
    )


def agree(views: Sequence[View], values: dict[str, set[str]], snapshot: Snapshot) -> int:
    """Compare what filters match with each view; return how many masks were found again."""
    found_again = 0
    for filters in ((FIREFOX,), (PLAN,), (PLAN, PRO), (FIREFOX, PLAN), (FIREFOX, PLAN, PRO)):
        selection, other = (
            select(snapshot, Query(filters=filters), NOBODY, Cancellation()) for _ in range(2)
        )
        counts = tally(selection, Dimension.PATH).views
        texts = snapshot.texts(Dimension.PATH)
        found = {texts[code]: int(count) for code, count in enumerate(counts) if count}
        assert found == {
            view.path: 1
            for view in views
            if matches(filters, view.browser, values.get(view.beacon, set()))
        }
        for part in snapshot.parts:
            if isinstance(part, OpenSegment):
                first = selection.filter.matching(part, snapshot)
                found_again += first is other.filter.matching(part, snapshot)
    return found_again


def count_events(snapshot: Snapshot, filters: tuple[Filter, ...]) -> dict[str, int]:
    content: Any = events_by_property(
        reader_of(snapshot, NOBODY), Query(filters=filters), by_value=True
    ).content
    rows = msgspec.to_builtins(content)
    return {row["value"]: row["events"] for row in rows if row["name"] == "plan"}


@pytest_twisted.ensureDeferred
async def test_what_is_kept_of_segments_is_what_their_views_match(open_store: OpenStore) -> None:
    rng = random.Random(4)  # noqa: S311 - the same each time
    store = open_store(sizes=Sizes(chunk_views=5, merged_members=2, counted_from=0))
    website = await store.add_website("example.com", 1)
    now_ms, found_again, merged = NOW_MS, 0, 0
    views: list[View] = []
    values: dict[str, set[str]] = {}
    of_events: list[tuple[str, str]] = []
    for batch in range(24):
        hits: list[Hit] = []
        for _ in range(rng.randint(1, 9)):
            now_ms += rng.choice((0, 700, 90_000))
            carried: tuple[tuple[str, str], ...] = ()
            if rng.random() < 0.5:
                carried = (("plan", rng.choice(("free", "pro"))), ("other", "x"))
            if rng.random() < 0.4 and views:
                beacon = rng.choice(views[-20:]).beacon
                carried = carried or (("other", "y"),)
                hits.append(
                    Event(website=website.number, time_ms=now_ms, properties=carried, beacon=beacon)
                )
            else:
                browser = rng.choice(("Firefox", "Chrome"))
                beacon, path = f"b{len(views)}", f"/{len(views)}"
                view = a_view(
                    website.number,
                    beacon=beacon,
                    path=path,
                    time_ms=now_ms,
                    browser=browser,
                    properties=carried,
                )
                hits.append(view)
                views.append(view)
            for name, value in carried:
                if name == "plan":
                    values.setdefault(beacon, set()).add(value)
                    of_events.append((beacon, value))
        await store.append(hits)
        if batch % 4 == 3:
            now_ms += rng.choice((0, 2 * HOUR_MS, 27 * HOUR_MS))
            await store.maintain(now_ms)
            await idle(store)
        found_again += store.read(website, partial(agree, views, values))
        merged += store.read(website, lambda snapshot: any(s.members for s in snapshot.segments))
        browsers = {view.beacon: view.browser for view in views}
        expected = {
            value: sum(
                value == other and browsers[beacon] == "Firefox" for beacon, other in of_events
            )
            for value in ("free", "pro")
        }
        for _ in range(2):
            found = store.read(website, partial(count_events, filters=(FIREFOX, PLAN)))
            assert found == {value: count for value, count in expected.items() if count}
    assert found_again
    assert merged
    await store.close()
