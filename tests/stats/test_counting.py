import numpy as np
from stats.hits import view
from stats.made import snapshot_of

from medamad.model.dimensions import Dimension
from medamad.stats.counting import Tally, tally, tally_all, tally_by
from medamad.stats.selecting import Chosen

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


def test_sums_by_code_over_any_parts() -> None:
    for cuts in ((), (1,), (1, 2, 3, 4)):
        parts = snapshot_of(VIEWS, [], cuts).parts
        counted = tally_by(map(Chosen, parts), Dimension.PATH)
        # Code 0 is a text that no view has.
        assert sums(counted) == {name: [0, *each] for name, each in SUMS.items()}
        assert sums(tally_all(map(Chosen, parts))) == {
            name: [sum(each)] for name, each in SUMS.items()
        }


def test_only_chosen_views_count() -> None:
    (part,) = snapshot_of(VIEWS, []).parts
    assert tally_all([Chosen(part, np.array([1, 3]))]).views.tolist() == [2]


def test_a_least_size() -> None:
    (part,) = snapshot_of(VIEWS[:1], []).parts
    assert tally([(np.array([1]), Chosen(part))], 3).views.tolist() == [0, 1, 0]
    assert tally([], 2).views.tolist() == [0, 0]


def test_sums_of_groups() -> None:
    parts = snapshot_of(VIEWS, []).parts
    grouped = tally_by(map(Chosen, parts), Dimension.PATH).grouped(np.array([1, 0, 1, 0]), 2)
    assert sums(grouped) == {
        name: [first + third, second] for name, (first, second, third) in SUMS.items()
    }
