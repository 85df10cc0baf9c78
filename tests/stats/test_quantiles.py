from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stats.oracle import quantile

from medamad.stats.quantiles import by_group, median


def pieces(values: list[int]) -> list[np.ndarray]:
    middle = len(values) // 2
    return [np.array(half, np.uint32) for half in (values[:middle], values[middle:])]


@pytest.mark.parametrize(
    ("values", "quartiles"),
    [
        ([], (0, 0, 0)),
        ([7], (7, 7, 7)),
        ([1, 2], (1, 2, 2)),  # 1.25, 1.5 to even, 1.75
        ([2, 3], (2, 2, 3)),  # 2.25, 2.5 to even, 2.75
        ([1, 3, 3, 7], (2, 3, 4)),  # 2.5 to even, 3, 4
        ([3, 1, 2], (2, 2, 2)),  # 1.5 to even, 2, 2.5 to even
        ([86_400_000] * 3, (86_400_000,) * 3),
    ],
)
def test_quartiles(values: list[int], quartiles: tuple[int, int, int]) -> None:
    groups = [np.full(len(piece), 1, np.uint32) for piece in pieces(values)]
    spread = by_group(groups, pieces(values), 3)
    assert [spread.quartile(number).tolist() for number in (1, 2, 3)] == [
        [0, quartile, 0] for quartile in quartiles
    ]
    assert median(pieces(values)) == quartiles[1]


def test_no_pieces() -> None:
    assert by_group([], [], 2).quartile(2).tolist() == [0, 0]
    assert median([]) == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(1, 86_400_000))))
def test_each_group_has_its_own(timed: list[tuple[int, int]]) -> None:
    spread = by_group(
        pieces([group for group, _ in timed]), pieces([duration for _, duration in timed]), 5
    )
    for number in (1, 2, 3):
        assert spread.quartile(number).tolist() == [
            quantile([duration for of, duration in timed if of == group], Fraction(number, 4))
            for group in range(5)
        ]
