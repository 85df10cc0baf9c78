from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from medamad.storage.errors import Damaged
from medamad.storage.segments.counters import (
    Change,
    Counters,
    changed,
    count_views,
    decode_counters,
    encode_counters,
    merge,
)
from medamad.storage.segments.format import PAGE_VISITOR, VISITOR, timed_flags

KEY = b"some key"

Naive = dict[int, list[int]]
View = tuple[int, bool, bool, int]
"""Number, p, q, duration."""

_durations = st.sampled_from([0, 0, 1, 4_999, 5_000, 5_001, 90_000, 86_400_000])
_numbers = st.one_of(st.integers(0, 5), st.integers(250, 260), st.integers(0, 2_200_000))
view_lists = st.lists(st.tuples(_numbers, st.booleans(), st.booleans(), _durations), max_size=40)


def naive(views: list[View]) -> Naive:
    sums: Naive = {}
    for number, p, q, ms in views:
        added = (1, p, q, p and ms > 0, p and 0 < ms <= 5_000, ms)
        sums[number] = [a + b for a, b in zip(sums.get(number, [0] * 6), added, strict=True)]
    return sums


def as_dict(counters: Counters) -> Naive:
    codes = counters.codes.tolist()
    assert codes == sorted(set(codes))
    assert [len(row) for row in counters.sums] == [len(counters)] * 6
    return {code: [int(row[place]) for row in counters.sums] for place, code in enumerate(codes)}


def columns(views: list[View]) -> tuple[NDArray[Any], NDArray[np.uint8], NDArray[np.uint32]]:
    numbers = np.array([view[0] for view in views], np.uint64)
    duration_ms = np.array([view[3] for view in views], np.uint32)
    flags = np.array([VISITOR * view[1] | PAGE_VISITOR * view[2] for view in views], np.uint8)
    return numbers, timed_flags(flags, duration_ms), duration_ms


def counted(views: list[View]) -> Counters:
    numbers, flags, duration_ms = columns(views)
    greatest = int(numbers.max(initial=0))
    # Columns are read in the narrowest type that holds them.
    return count_views(numbers.astype(np.min_scalar_type(greatest)), flags, duration_ms)


def through_the_store(counters: Counters) -> Counters:
    return decode_counters(KEY, memoryview(encode_counters(KEY, counters)), check=True)


@given(view_lists)
def test_views_are_counted_by_code(views: list[View]) -> None:
    assert as_dict(counted(views)) == naive(views)


@given(view_lists)
def test_a_round_trip_keeps_everything(views: list[View]) -> None:
    assert as_dict(through_the_store(counted(views))) == naive(views)


def test_large_sums_are_kept() -> None:
    """64-bit sums stay integers when others are added."""
    greatest = (1 << 62) + 1
    sums = tuple(np.array([1, value], np.int64) for value in (2, 300, 70_000, 1 << 33, 0, greatest))
    kept = through_the_store(Counters(np.array([3, 9], np.uint32), sums))
    assert as_dict(kept)[9] == [2, 300, 70_000, 1 << 33, 0, greatest]
    assert as_dict(merge([kept, kept]))[3] == [2] * 6
    assert [(row + np.ones(2, np.int64)).dtype.kind for row in kept.sums] == ["i"] * 6


@given(st.lists(view_lists, min_size=1, max_size=5), st.data())
def test_merged_counters_are_those_of_all_views(pieces: list[list[View]], data: Any) -> None:
    parts = [counted(piece) for piece in pieces]
    parts = [through_the_store(part) if data.draw(st.booleans()) else part for part in parts]
    whole = [view for piece in pieces for view in piece]
    assert as_dict(merge(parts)) == naive(whole)
    assert as_dict(through_the_store(merge(parts))) == naive(whole)


@given(view_lists.filter(bool), st.data())
def test_counters_differ_if_views_differ(views: list[View], data: Any) -> None:
    counters = through_the_store(counted(views))
    places = sorted(data.draw(st.sets(st.integers(0, len(views) - 1))))
    raised = [views[place][3] + data.draw(st.integers(1, 6_000)) for place in places]
    after = list(views)
    for place, ms in zip(places, raised, strict=True):
        after[place] = (*views[place][:3], ms)
    numbers, flags, duration_ms = columns(views)
    new_ms = np.array(raised, np.uint32)
    old_flags = flags[places]
    change = Change(
        old_flags, timed_flags(old_flags, new_ms), new_ms.astype(np.int64) - duration_ms[places]
    )
    before = as_dict(counters)
    assert as_dict(changed(counters, numbers[places], change)) == naive(after)
    assert as_dict(counters) == before == naive(views)


@given(view_lists, st.data())
def test_every_flipped_bit_is_detected(views: list[View], data: Any) -> None:
    value = bytearray(encode_counters(KEY, counted(views)))
    place = data.draw(st.integers(0, len(value) * 8 - 1))
    value[place // 8] ^= 1 << place % 8
    with pytest.raises(Damaged):
        decode_counters(KEY, memoryview(value), check=True)


def test_truncation_and_another_key_are_detected() -> None:
    value = encode_counters(KEY, counted([(3, True, True, 7), (500, True, False, 0)]))
    for length in range(len(value)):
        with pytest.raises(Damaged):
            decode_counters(KEY, memoryview(value[:length]), check=True)
    with pytest.raises(Damaged):
        decode_counters(b"another key", memoryview(value), check=True)
