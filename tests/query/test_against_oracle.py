"""Every statistic over random hits, periods, filters and parts, compared with the naive oracle."""

import random
from datetime import datetime
from zoneinfo import ZoneInfo

import attrs
import pytest
from attrs import evolve, field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from support.query.hits import NOON, event
from support.query.list_reader import ListReader, ListSelected
from support.query.oracle import Oracle
from support.query.random_queries import GOALS, INTERVALS, MOMENTS, ZONES, RandomTraffic
from support.query.readers import reader_of
from support.query.snapshots import (
    ENDPOINTS,
    GOAL_ENDPOINTS,
    SOURCES,
    Cuts,
    answer,
    query_from,
    snapshot_of,
)

from medamad.domain.dimensions import Dimension
from medamad.query.exclusions import left_out_by_day
from medamad.query.reader import Reader, Selected
from medamad.storage.dictionary.decode import CodeTexts, TextCache

FEW = 120
"""Up to so many views, another engine finds the same in plain Python."""


@frozen(eq=False)
class GrowingTexts:
    """Texts that have one more whenever they are asked for, as while hits arrive."""

    _texts: CodeTexts
    cache: TextCache = field(factory=TextCache)
    _added: dict[Dimension, list[str]] = field(factory=dict)

    def __call__(self, dimension: Dimension) -> list[str]:
        texts = self._added.setdefault(dimension, list(self._texts(dimension)))
        texts.append(f"new {len(texts)}")
        return texts


def check(
    traffic: RandomTraffic,
    sizes: tuple[int, int],
    cuts: Cuts,
    endpoint: str,
    *,
    texts_grow: bool = False,
    rules: int = 0,
) -> None:
    views = traffic.views(sizes[0])
    events = traffic.events(sizes[1], views)
    query, now_ms = traffic.query(endpoint), traffic.now_ms
    names = [None, *ZONES[:2], dict(query).get("timezone")]
    name = traffic.rng.choice(names)
    zone = None if name is None else ZoneInfo(name)
    oracle = Oracle(
        views,
        events,
        source_of=SOURCES.name_of,
        now_ms=now_ms,
        goals=GOALS,
        returning_zone=zone,
    )
    snapshot = snapshot_of(views, events, cuts)
    if texts_grow:
        snapshot = evolve(snapshot, texts=GrowingTexts(snapshot.texts))
    left_out = [traffic.rule() for _ in range(rules)]
    reader = reader_of(snapshot, SOURCES, list(map(query_from, left_out)))
    found = answer(reader, endpoint, query, now_ms=now_ms, returning_zone=zone)
    kept = oracle.without(left_out)
    assert found == kept.answer(endpoint, query)
    if not texts_grow and len(views) <= FEW:
        listed = ListReader(kept.views, kept.events, SOURCES)
        assert answer(listed, endpoint, query, now_ms=now_ms, returning_zone=zone) == found


@given(
    traffic=st.builds(
        RandomTraffic,
        rng=st.randoms(use_true_random=False),
        moment=st.sampled_from(MOMENTS),
        interval=st.sampled_from(INTERVALS),
    ),
    sizes=st.tuples(st.integers(0, 25), st.integers(0, 10)),
    cuts=st.builds(
        Cuts,
        places=st.lists(st.integers(1, 24), max_size=3).map(tuple),
        counted=st.tuples(*[st.booleans()] * 4),
        grouped=st.integers(0, 3),
        in_parts=st.integers(0, 4),
    ),
    endpoint=st.sampled_from(
        (*ENDPOINTS, *GOAL_ENDPOINTS, "goals", "summary", "properties", "time", "pages")
    ),
    rules=st.integers(0, 2),
)
# 90 by default, a thousand in the slow form.
@settings(max_examples=settings.default.max_examples**2 // 10)
def test_random_queries_over_few_hits_match_the_oracle(
    traffic: RandomTraffic, sizes: tuple[int, int], cuts: Cuts, endpoint: str, rules: int
) -> None:
    check(traffic, sizes, cuts, endpoint, rules=rules)


@pytest.mark.parametrize("moments", [1, pytest.param(len(MOMENTS), marks=pytest.mark.slow)])
@pytest.mark.parametrize("endpoint", [*ENDPOINTS, *GOAL_ENDPOINTS])
def test_random_queries_over_many_hits_match_the_oracle(endpoint: str, moments: int) -> None:
    rng = random.Random(endpoint)  # noqa: S311 - the same each time
    for moment in random.Random(endpoint).sample(MOMENTS, moments):  # noqa: S311
        for cuts in (
            Cuts((100, 101, 400)),
            Cuts((100, 101, 400), (True,) * 4, in_parts=4),
            Cuts((100, 200, 300, 400), (True, True, False, True, False), grouped=3, in_parts=3),
        ):
            check(RandomTraffic(rng, moment, "day"), (600, 200), cuts, endpoint)


@pytest.mark.parametrize("rules", [1, 3])
@pytest.mark.parametrize("endpoint", [*ENDPOINTS, *GOAL_ENDPOINTS])
def test_what_rules_leave_out_is_in_no_statistic(endpoint: str, rules: int) -> None:
    rng = random.Random(f"{endpoint} {rules}")  # noqa: S311
    for cuts in (
        Cuts((100, 101, 200)),
        Cuts((50, 100, 150, 200), (True, True, False, True, False), grouped=3, in_parts=3),
    ):
        for _ in range(3):
            traffic = RandomTraffic(rng, MOMENTS[0], "day")
            check(traffic, (300, 100), cuts, endpoint, rules=rules)


def test_engines_agree_on_what_each_rule_leaves_out() -> None:
    rng, left_out = random.Random(3), 0  # noqa: S311
    for _ in range(30):
        traffic = RandomTraffic(rng, rng.choice(MOMENTS[:-1]), "day")
        views = traffic.views(60)
        snapshot = snapshot_of(views, [], Cuts((20, 40), (True, True, False), grouped=2))
        oracle = Oracle(views, [], source_of=SOURCES.name_of, now_ms=0, goals=GOALS)
        listed = ListReader(oracle.views, [], SOURCES)
        engines: list[Reader] = [reader_of(snapshot, SOURCES), listed]
        rule = traffic.rule()
        zone, query = ZoneInfo(rng.choice(ZONES)), query_from(rule)
        found, again = (left_out_by_day(each, query, zone, has_visits=True) for each in engines)
        assert found == again
        assert found["views"] == len(oracle.views) - len(oracle.without([rule]).views)
        last_ms, last_again_ms = (each.last_counted_ms(query.period) for each in engines)
        assert last_ms == last_again_ms
        left_out += found["views"]
    assert left_out


def test_the_engine_over_lists_lacks_no_method() -> None:
    for protocol, made in ((Reader, ListReader), (Selected, ListSelected)):
        asked = {name for name in vars(protocol) if not name.startswith("_")}
        fields = {each.name for each in attrs.fields(made)}
        assert asked <= {*vars(made), *fields}


@pytest.mark.parametrize("endpoint", ["properties", "goals"])
@pytest.mark.parametrize(
    ("rule", "left"),
    [
        ([("prop_value", "pro")], 1),
        ([("start", "2024-01-01T12:00:02Z")], 1),
        ([("path[neq]", "/a")], 0),
        ([("path", "/a")], 3),
        ([("path", ""), ("prop_name", "plan")], 0),
        ([("visit_views[gte]", "1")], 3),
    ],
)
def test_events_without_a_view_are_left_out_one_by_one(
    endpoint: str, rule: list[tuple[str, str]], left: int
) -> None:
    # The view of the last one is unknown.
    events = [event(1, plan="free", other="x"), event(2, plan="pro"), event(3, 10**9, plan="pro")]
    now_ms = NOON + 10_000
    oracle = Oracle([], events, source_of=SOURCES.name_of, now_ms=now_ms, goals=GOALS)
    reader = reader_of(snapshot_of([], events, Cuts()), SOURCES, [query_from(rule)])
    found = answer(reader, endpoint, [], now_ms=now_ms)
    assert found == oracle.without([rule]).answer(endpoint, [])
    if endpoint == "properties":
        assert sum(row["events"] for row in found if row["name"] == "plan") == left


@pytest.mark.parametrize("endpoint", [*ENDPOINTS, *GOAL_ENDPOINTS])
def test_queries_match_the_oracle_while_texts_are_added(endpoint: str) -> None:
    rng = random.Random(endpoint)  # noqa: S311
    cuts = Cuts((30, 60, 90), (True, True, False, True), grouped=2, in_parts=2)
    for _ in range(5):
        check(RandomTraffic(rng, MOMENTS[0], "day"), (120, 40), cuts, endpoint, texts_grow=True)


def test_many_random_queries_have_results() -> None:
    """Filters and periods that select nothing would test nothing."""
    rng = random.Random(1)  # noqa: S311
    filled = 0
    for endpoint in ENDPOINTS * 10:
        traffic = RandomTraffic(rng, datetime.fromisoformat("2018-03-25T01:00:00Z"), "day")
        views = traffic.views(100)
        answered = answer(snapshot_of(views, []), endpoint, traffic.query(endpoint))
        filled += bool(answered if endpoint != "summary" else answered["current"]["pageviews"])
    assert filled > len(ENDPOINTS) * 10 / 3
