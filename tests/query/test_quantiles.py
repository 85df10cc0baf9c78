from fractions import Fraction
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.query.oracle import quantile

from medamad.query.embedded.quantiles import GroupedDurations, median
from medamad.query.sums import Quartiles
from medamad.storage.segments.format import SortedDurations

SIZES = (5, 20_000)
"""A few groups share narrow numbers with their durations, many do not."""


def quartiles_of(groups: list[np.ndarray], durations: list[np.ndarray], size: int) -> Quartiles:
    grouped = GroupedDurations(size)
    for piece, duration_ms in zip(groups, durations, strict=True):
        grouped.add(piece, duration_ms)
    return grouped.quartiles()


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
    assert median(pieces(values)) == quartiles[1]


def test_no_pieces() -> None:
    assert quartiles_of([], [], 2).quartile(2).tolist() == [0, 0]
    assert median([]) == 0


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


@given(st.lists(durations), st.lists(st.lists(durations.filter(bool)), max_size=3))
def test_a_median_of_sorted_and_other_pieces(loose: list[int], known: list[list[int]]) -> None:
    ascending = [SortedDurations.of(np.array(sorted(piece), np.uint32)) for piece in known]
    timed = [duration for duration in chain(loose, *known) if duration]
    expected = quantile(timed, Fraction(1, 2))
    assert median(pieces(loose), ascending) == expected
    narrow = [piece.astype(np.min_scalar_type(piece.max(initial=0))) for piece in pieces(loose)]
    assert median(narrow, ascending) == expected
