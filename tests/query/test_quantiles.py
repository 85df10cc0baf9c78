from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.query.oracle import quantile

from medamad.query.embedded.kernel import LOOPS
from medamad.query.embedded.loops import Groups, PartViews
from medamad.query.sums import Quartiles

SIZES = (5, 200_000)
"""A few groups are counted at once, many in turns."""


def quartiles_of(groups: list[np.ndarray], durations: list[np.ndarray], size: int) -> Quartiles:
    batch = [
        PartViews(0, len(piece), None, piece, duration_ms=duration_ms)
        for piece, duration_ms in zip(groups, durations, strict=True)
    ]
    numbers = np.arange(size + 1, dtype=np.uint32)
    return LOOPS.quartiles(lambda: [batch], Groups(numbers, size))


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
    spread = quartiles_of(groups, pieces(values), 3)
    assert [spread.quartile(number).tolist() for number in (1, 2, 3)] == [
        [0, quartile, 0] for quartile in quartiles
    ]


def test_no_pieces() -> None:
    assert quartiles_of([], [], 2).quartile(2).tolist() == [0, 0]


durations = st.sampled_from((0, 1, (1 << 19) - 1, 1 << 19, 86_400_000)) | st.integers(0, 86_400_000)


@given(st.lists(st.tuples(st.integers(0, 4), durations)), st.sampled_from(SIZES))
def test_each_group_has_its_own_quartiles(timed: list[tuple[int, int]], size: int) -> None:
    spread = quartiles_of(
        pieces([group for group, _ in timed]), pieces([duration for _, duration in timed]), size
    )
    assert spread.counts.sum() == sum(duration > 0 for _, duration in timed)
    for number in (1, 2, 3):
        assert spread.quartile(number)[:5].tolist() == [
            quantile(
                [duration for of, duration in timed if of == group and duration],
                Fraction(number, 4),
            )
            for group in range(5)
        ]
