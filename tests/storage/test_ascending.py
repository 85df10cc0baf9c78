import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.storage.segments.format import SortedDurations

numbers = st.one_of(
    st.integers(0, 300), st.integers(0, 200_000), st.integers(65_530, 65_540), st.integers(0, 2**27)
)
ascending_lists = st.lists(numbers, max_size=50).map(sorted)


def made(values: list[int]) -> SortedDurations:
    return SortedDurations.of(np.array(values, np.uint32))


@given(ascending_lists, st.one_of(numbers, st.integers(0, 2**33)))
def test_as_many_are_below_as_a_count_says(values: list[int], number: int) -> None:
    ascending = made(values)
    assert len(ascending) == len(values)
    for each in (number, *values[:3], *(value + 1 for value in values[-3:])):
        assert ascending.below(each) == len([value for value in values if value < each])


@pytest.mark.parametrize("values", [[], [0], [86_400_000], [65_535, 65_536], [1, 1 << 31]])
def test_few_numbers(values: list[int]) -> None:
    ascending = made(values)
    for number in (0, 1, 2, 65_535, 65_536, 65_537, 86_400_000, 86_400_001, 1 << 31, 1 << 32):
        assert ascending.below(number) == len([value for value in values if value < number])
