"""The rule of silence, by tables and against a naive reading of it."""

from collections.abc import Iterable

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from support.query.hits import NOON
from support.query.oracle import Entry
from support.query.readers import reader_of
from support.query.snapshots import SOURCES, Cuts, MadeDay, query_from, snapshot_of

from medamad.alerts.silence import quiet_since as quiet_since_for
from medamad.alerts.silence import views_in
from medamad.query.embedded.reader import EmbeddedReader
from medamad.query.request import Cancellation, Filter, Query
from medamad.storage.segments.snapshot import Snapshot

QUARTER = 900_000
HOUR = 4 * QUARTER
DAY = 24 * HOUR
LONG_AGO = 0


def quiet_since(snapshot: Snapshot, now_ms: int, since_ms: int) -> int | None:
    return quiet_since_for(EmbeddedReader(snapshot, SOURCES, Cancellation()), now_ms, since_ms)


def snapshot(times: Iterable[int], cuts: Cuts = Cuts()) -> Snapshot:  # noqa: B008 - it is frozen
    views: list[Entry] = [
        {"id": number, "time_ms": time_ms, "p": True, "q": True, "duration_ms": 0}
        for number, time_ms in enumerate(sorted(times), 1)
    ]
    return snapshot_of(views, [], cuts)


def steady(
    last_ms: int = NOON, *, days: int = 8, per_hour: int = 8, hours: Iterable[int] = range(24)
) -> list[int]:
    """Return the times of views at a steady rate in some hours of the day, up to a last one."""
    wanted = set(hours)
    step = HOUR // per_hour
    first_ms = last_ms - days * DAY
    return [
        time_ms
        for time_ms in range(last_ms, first_ms, -step)
        if time_ms == last_ms or time_ms % DAY // HOUR in wanted
    ]


@pytest.mark.parametrize(
    ("times", "after_ms", "is_quiet"),
    [
        (steady(), 0, False),
        (steady(), 12 * QUARTER, False),
        (steady(), 13 * QUARTER, True),
        (steady(), 3 * DAY, True),
        (steady(), 30 * DAY, True),
        (steady(), 31 * DAY, False),
        # Little visited: only a longer silence tells, or none.
        (steady(per_hour=1), 13 * QUARTER, False),
        (steady(per_hour=1), 22 * HOUR, True),
        (steady(per_hour=4), 4 * HOUR, False),
        (steady(per_hour=4), 6 * HOUR, True),
        # By day alone: noon is missed in the afternoon, the evening not at night.
        (steady(hours=range(8, 18)), 4 * HOUR, True),
        (steady(NOON + 5 * HOUR, hours=range(8, 18)), 19 * HOUR, False),
        (steady(NOON + 5 * HOUR, hours=range(8, 18)), 24 * HOUR, True),
        # Known for less than seven days.
        (steady(days=7), 4 * HOUR, True),
        (steady(days=6), 4 * HOUR, False),
        ([], DAY, False),
    ],
)
def test_who_is_quiet(times: list[int], after_ms: int, is_quiet: bool) -> None:
    now_ms = NOON + after_ms
    found = quiet_since(snapshot(times), now_ms, LONG_AGO)
    assert found == (max(times) if is_quiet else None)


WEEK = 7 * DAY
MONDAY = 1_749_427_200_000
"""2025-06-09T00:00:00Z."""


def workdays(last_ms: int, weeks: int = 8) -> list[int]:
    """Return the times of 500 views on each workday from 8 to 18 h, and of 5 on other days."""
    found = []
    for day in range(-7 * weeks, 14):
        count = 500 if day % 7 < 5 else 5
        begin_ms = MONDAY + day * DAY + 8 * HOUR
        found += [begin_ms + 10 * HOUR * number // count for number in range(count)]
    return [time_ms for time_ms in found if time_ms <= last_ms]


@pytest.mark.parametrize(
    ("last_ms", "after_ms", "is_quiet"),
    [
        # Monday noon; Friday evening: missed on Monday and not before; Sunday night.
        (12 * HOUR, 2 * HOUR, False),
        (12 * HOUR, 4 * HOUR, True),
        (12 * HOUR, 10 * HOUR, True),
        (4 * DAY + 18 * HOUR, 2 * DAY + 13 * HOUR, False),
        (4 * DAY + 18 * HOUR, 2 * DAY + 16 * HOUR, True),
        (6 * DAY + 20 * HOUR, 11 * HOUR, False),
        (6 * DAY + 20 * HOUR, 14 * HOUR, True),
    ],
)
def test_websites_without_views_at_weekends_are_compared_by_week(
    last_ms: int, after_ms: int, is_quiet: bool
) -> None:
    times = workdays(MONDAY + last_ms)
    found = quiet_since(snapshot(times), MONDAY + last_ms + after_ms, LONG_AGO)
    assert found == (max(times) if is_quiet else None)


@pytest.mark.parametrize(
    ("a_week", "weeks", "after_ms", "is_quiet"),
    [
        (105, 9, DAY, False),
        (105, 9, 2 * DAY, True),
        (105, 9, 29 * DAY, True),
        (105, 9, 31 * DAY, False),
        (105, 2, 10 * DAY, False),
        (105, 4, 10 * DAY, True),
        (21, 9, 6 * DAY, False),
        (21, 9, 8 * DAY, True),
        (11, 9, 9 * DAY, False),
        (11, 9, 15 * DAY, True),
        (9, 9, 15 * DAY, False),
    ],
)
def test_websites_with_few_views_are_compared_by_longer_periods(
    a_week: int, weeks: int, after_ms: int, is_quiet: bool
) -> None:
    times = [NOON - WEEK * number // a_week for number in range(a_week * weeks)]
    found = quiet_since(snapshot(times), NOON + after_ms, LONG_AGO)
    assert found == (NOON if is_quiet else None)


@pytest.mark.parametrize("cuts", [Cuts(), Cuts((400, 1_000), (True, True, True))])
def test_what_is_left_out_does_not_break_a_silence(cuts: Cuts) -> None:
    flood = steady(NOON + 4 * HOUR, days=1)
    views: list[Entry] = [
        {"id": number, "visit": number, "time_ms": time_ms, "path": path, "p": True, "q": True,
         "duration_ms": 0}
        for number, (time_ms, path) in enumerate(
            sorted([*((each, "/") for each in steady()), *((each, "/flood") for each in flood)]), 1
        )
    ]  # fmt: skip
    made, now_ms = snapshot_of(views, [], cuts), NOON + 4 * HOUR
    assert quiet_since(made, now_ms, LONG_AGO) is None
    rule = Query(filters=(Filter("path", "eq", ("/flood",)),))
    assert quiet_since_for(reader_of(made, SOURCES, (rule,)), now_ms, LONG_AGO) == NOON


def test_a_day_of_rest_is_no_silence() -> None:
    """A website without views on one of the seven days is not quiet at these hours."""
    rest = NOON - 3 * DAY
    times = [time_ms for time_ms in steady(days=9) if not rest <= time_ms < rest + DAY]
    assert quiet_since(snapshot(times), NOON + 4 * HOUR, LONG_AGO) is None


@pytest.mark.parametrize(
    ("since_ms", "after_ms", "is_quiet"),
    [
        (5 * HOUR, 6 * HOUR, False),
        (5 * HOUR, 5 * HOUR + 13 * QUARTER, True),
        (2 * DAY, 2 * DAY + HOUR, False),
        (2 * DAY, 2 * DAY + 13 * QUARTER, True),
        (3 * DAY - 7 * HOUR, 3 * DAY, True),
    ],
)
def test_hours_in_which_the_daemon_did_not_run_are_no_silence(
    since_ms: int, after_ms: int, is_quiet: bool
) -> None:
    found = quiet_since(snapshot(steady()), NOON + after_ms, NOON + since_ms)
    assert found == (NOON if is_quiet else None)


def test_after_a_break_by_night_the_evening_is_no_silence() -> None:
    evening = NOON + 5 * HOUR
    quiet = snapshot(steady(evening, hours=range(8, 18)))
    assert quiet_since(quiet, evening + 12 * HOUR, evening + 6 * HOUR) is None
    assert quiet_since(quiet, evening + 20 * HOUR, evening + 6 * HOUR) == evening


@pytest.mark.parametrize(
    "cuts",
    [
        Cuts(places=(100, 700), counted=(True, False, True)),
        Cuts(places=(300, 900), counted=(True, True, True), grouped=2),
    ],
)
def test_views_count_wherever_they_are(cuts: Cuts) -> None:
    assert quiet_since(snapshot(steady(), cuts), NOON + 4 * HOUR, LONG_AGO) == NOON
    assert quiet_since(snapshot(steady(days=6), cuts), NOON + 4 * HOUR, LONG_AGO) is None


@pytest.mark.parametrize(
    "cuts",
    [
        Cuts(places=(700,), counted=(True, True)),
        Cuts(places=(300, 700), counted=(True, True, True), grouped=2),
    ],
)
def test_a_website_with_imported_views_alone_is_never_quiet(cuts: Cuts) -> None:
    """As from a web server's log each day. The views before a silence may be imported."""
    seen = snapshot(steady(), cuts)
    *earlier, latest = seen.parts
    imported = [evolve(part, import_batch=1) for part in earlier]
    now_ms = NOON + 4 * HOUR
    of_logs = evolve(seen, parts=[*imported, evolve(latest, import_batch=2)])
    assert quiet_since(of_logs, now_ms, LONG_AGO) is None
    assert quiet_since(evolve(seen, parts=[*imported, latest]), now_ms, LONG_AGO) == NOON
    assert quiet_since(evolve(of_logs, parts=[latest, *imported]), now_ms, LONG_AGO) == NOON


@pytest.mark.parametrize(
    "cuts",
    [
        Cuts(),
        Cuts(places=(100, 700), counted=(True, False, True)),
        Cuts(places=(300, 900), counted=(True, True, True), grouped=2),
        Cuts(places=(300, 900), counted=(True, True, True), grouped=3),
    ],
)
def test_views_in_the_future_do_not_count(cuts: Cuts) -> None:
    for now_ms in (NOON + 4 * HOUR, NOON + 2 * DAY):
        times = [*steady(), now_ms + 1, NOON + 365 * DAY]
        assert quiet_since(snapshot(times, cuts), now_ms, LONG_AGO) == NOON
    assert quiet_since(snapshot([NOON + 365 * DAY], cuts), NOON, LONG_AGO) is None


def naive(times: list[int], now_ms: int, since_ms: int) -> int | None:
    """Apply the rule word by word."""
    times = [time_ms for time_ms in times if time_ms <= now_ms]
    quarters = [time_ms // QUARTER for time_ms in times]
    if not quarters or now_ms // QUARTER - max(quarters) > 30 * 96:
        return None
    begin = max(*quarters, since_ms // QUARTER) + 1
    silent = list(range(begin, now_ms // QUARTER))
    if len(silent) < 12:
        return None
    for days, before in ((1, 7), (7, 3), (14, 3)):
        period = 96 * days
        shift = 0
        while begin - 1 - period * shift > max(quarters):
            shift += 1
        times_before = [
            {quarter - period * (number + shift) for quarter in silent[:period]}
            for number in range(1, before + 1)
        ]
        if all(sum(quarter in same for quarter in quarters) >= 20 for same in times_before):
            return max(times)
    return None


@given(
    profile=st.lists(st.sampled_from((0, 1, 2, 8)), min_size=24, max_size=24),
    days=st.one_of(st.integers(6, 9), st.integers(20, 50)),
    after=st.one_of(st.integers(-200, 400), st.integers(400, 3_000)),
    since=st.integers(-50, 300),
    cuts=st.builds(
        Cuts,
        places=st.just((40, 200)),
        counted=st.tuples(st.booleans(), st.booleans(), st.booleans()),
    ),
)
@settings(max_examples=60, deadline=None)
def test_the_rule_against_a_naive_reading(
    profile: list[int], days: int, after: int, since: int, cuts: Cuts
) -> None:
    times = [
        NOON - day * DAY - hour * HOUR - number * QUARTER // 2
        for day in range(days)
        for hour, count in enumerate(profile)
        for number in range(count)
    ]
    now_ms, since_ms = NOON + after * QUARTER, NOON + since * QUARTER
    expected = naive(times, now_ms, since_ms)
    assert quiet_since(snapshot(times, cuts), now_ms, since_ms) == expected


def test_views_that_are_no_longer_kept_do_not_count() -> None:
    """Of days whose views are gone there are sums alone."""
    times = sorted(steady())
    views: list[Entry] = [
        {"id": number, "time_ms": time_ms, "p": True, "q": True, "duration_ms": 0}
        for number, time_ms in enumerate(times, 1)
    ]
    first = NOON // DAY - 8
    for gone, found in ((0, NOON), (3, None)):
        days = [
            MadeDay(
                number,
                (number * DAY, (number + 1) * DAY - 1),
                [view for view in views if view["time_ms"] // DAY == number],
                [],
            )
            for number in range(first, first + gone)
        ]
        kept = [view for view in views if view["time_ms"] // DAY >= first + gone]
        seen = snapshot_of(kept, [], days=days)
        assert quiet_since(seen, NOON + 4 * HOUR, LONG_AGO) == found


def test_a_day_to_which_exclusions_do_not_apply_is_unknown() -> None:
    begin_ms = NOON // DAY * DAY
    bounds = (begin_ms, begin_ms + DAY - 1)
    view = {"id": 1, "time_ms": NOON, "p": True, "q": True, "duration_ms": 0}
    made = snapshot_of([], [], Cuts(), [MadeDay(NOON // DAY, bounds, [view], [])])
    assert views_in(reader_of(made, SOURCES), begin_ms, DAY) == 1
    rule = query_from([("path", "/flood")])
    assert views_in(reader_of(made, SOURCES, [rule]), begin_ms, DAY) is None
