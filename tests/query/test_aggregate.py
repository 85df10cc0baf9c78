from functools import partial

import numpy as np
import pytest
from support.query.hits import NOON, view
from support.query.snapshots import Cuts, snapshot_of

from medamad.domain.dimensions import Dimension
from medamad.query.buckets import Buckets
from medamad.query.embedded.aggregate import repeatable, tally, tally_buckets
from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.scan import Selection, WantedColumns, no_value
from medamad.query.embedded.series import EVER
from medamad.query.embedded.view_filter import ViewFilter
from medamad.query.period import ALWAYS, Period
from medamad.query.request import NO_GAPS, Cancellation
from medamad.query.sums import Tally
from medamad.storage.segments.counters import VIEWS as VIEWS_ROW

VIEWS = [
    view(1, "pq", 5000, path="/a"),
    view(2, "pq", 5001, path="/b"),
    view(3, "q", 1, path="/a"),
    view(4, "p", 0, path="/c"),
    view(5, "", 86_400_000, path="/a"),
]
SUMS = {
    "views": [3, 1, 1],
    "visitors": [1, 1, 1],
    "page_visitors": [2, 1, 0],
    "timed_visitors": [1, 1, 0],
    "bounces": [1, 0, 0],
    "duration_ms": [86_405_001, 5001, 0],
}


def sums(counted: Tally) -> dict[str, list[int]]:
    return {
        "views": counted.views.tolist(),
        "visitors": counted.visitors(of_page=False).tolist(),
        "page_visitors": counted.visitors(of_page=True).tolist(),
        "timed_visitors": counted.timed_visitors.tolist(),
        "bounces": counted.bounces.tolist(),
        "duration_ms": counted.duration_ms.tolist(),
    }


CUTS = [
    Cuts(),
    Cuts((1,)),
    Cuts((1, 2, 3, 4), (True, False, True, True, False)),
    Cuts((2, 4), (True, True, True), grouped=2),
]


def selected(cuts: Cuts = CUTS[0], period: Period = ALWAYS, **masks: list[bool]) -> Selection:
    codes = {Dimension[name]: np.array(mask) for name, mask in masks.items()}
    return Selection(snapshot_of(VIEWS, [], cuts), period, ViewFilter(codes), Cancellation())


@pytest.mark.parametrize("cuts", CUTS)
def test_views_are_summed_by_code_over_any_parts(cuts: Cuts) -> None:
    counted = tally(selected(cuts), Dimension.PATH)
    # Code 0 is a text that no view has.
    assert sums(counted) == {name: [0, *each] for name, each in SUMS.items()}
    assert sums(Tally(tally_buckets(selected(cuts), EVER), NO_GAPS)) == {
        name: [sum(each)] for name, each in SUMS.items()
    }


@pytest.mark.parametrize("cuts", CUTS)
def test_only_selected_views_count(cuts: Cuts) -> None:
    only = {"PATH": [False, True, False, True]}
    assert tally(selected(cuts, **only), Dimension.PATH).views.tolist() == [0, 3, 0, 1]
    assert tally(selected(cuts, **only), Dimension.OS).views.tolist() == [0, 4]
    assert tally_buckets(selected(cuts, **only), EVER)[VIEWS_ROW].tolist() == [4]
    late = Period(NOON + 3000, NOON + 4000)
    assert tally(selected(cuts, late), Dimension.PATH).views.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("cuts", CUTS)
def test_durations_can_be_left_out(cuts: Cuts) -> None:
    counted = tally(selected(cuts), Dimension.PATH, with_durations=False)
    assert counted.visitors(of_page=True).tolist() == [0, 2, 1, 0]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(
    ("edges", "views"),
    [
        ((NOON - 900_000, NOON, NOON + 900_000, NOON + 1_800_000), [0, 5, 0]),
        ((NOON, NOON + 3000, NOON + 900_000), [2, 3]),
        ((NOON + 1000, NOON + 900_000), [5]),
    ],
)
def test_sums_of_a_series(cuts: Cuts, edges: tuple[int, ...], views: list[int]) -> None:
    buckets = Buckets(np.array(edges), [""] * (len(edges) - 1))
    assert tally_buckets(selected(cuts), buckets)[VIEWS_ROW].tolist() == views


@pytest.mark.parametrize("most_copies", [0, 5])
def test_views_for_several_passes_are_the_same_each_time(most_copies: int) -> None:
    selection = selected(CUTS[2], PATH=[False, True, False, True])
    wanted = WantedColumns(Dimension.PATH, flags=True, durations=True)
    views = partial(selection.part_views, wanted, no_value)
    batches = repeatable(views, selection.filter, most_copies)
    (batch,) = batches()
    assert all(each.mask is None for each in batch) == bool(most_copies)
    for _ in range(2):
        assert LOOPS.tally(batches(), 4)[0].tolist() == [0, 3, 0, 1]


def test_sums_of_groups() -> None:
    grouped = tally(selected(), Dimension.PATH).grouped(np.array([1, 0, 1, 0]), 2)
    assert sums(grouped) == {
        name: [first + third, second] for name, (first, second, third) in SUMS.items()
    }
