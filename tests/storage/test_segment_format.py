"""The encoding of columns and flags."""

from typing import Any

import numpy as np
import pytest
from attrs import fields_dict
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewFlag, ViewNumber
from medamad.domain.hits import NUMBERS_OF_HITS, StoredView
from medamad.storage.errors import Damaged
from medamad.storage.segments.format import (
    BOUNCED,
    PAGE_VISITOR,
    TIMED,
    VISITOR,
    Column,
    decode_column,
    encode_column,
    timed_flags,
)

KEY = b"some key"


def test_each_stored_field_of_a_view_has_its_own_column() -> None:
    numbers = [number.column for number in ViewNumber]
    columns = [*Dimension, *Column, *numbers]
    assert len(columns) == len(set(columns))
    assert all(36 <= column < 40 for column in numbers)
    names = [each.attribute for each in (*VIEW_DIMENSIONS, *NUMBERS_OF_HITS, *ViewFlag)]
    assert sorted(names) == sorted(fields_dict(StoredView))


WIDTHS = {np.uint8: 8, np.uint16: 16, np.uint32: 32, np.uint64: 64}

numbers = st.one_of(
    [st.lists(st.integers(0, (1 << bits) - 1), max_size=40) for bits in (1, 8, 9, 16, 17, 32, 64)]
)
columns = st.tuples(
    numbers,
    st.sampled_from([0, 0, 1, 255, 256, 1 << 32, 1_790_000_000_000]),
    st.sampled_from(["as it is", "ascending", "constant", "few", "even"]),
)


def made(column: tuple[list[int], int, str]) -> list[int]:
    values, base, order = column
    values = [base + value for value in values]
    if order == "even" and not values:
        return values
    if order == "ascending":
        return sorted(values)
    if order == "even":
        return list(range(values[0], values[0] + 12 * (values[0] % 300 + 1), values[0] % 300 + 1))
    if order == "few":
        return [0] * 300 + values + [0] * 9
    return values[:1] * len(values) if order == "constant" else values


def narrowest(values: list[int]) -> list[type[np.unsignedinteger[Any]]]:
    return [dtype for dtype, bits in WIDTHS.items() if max(values, default=0) < 1 << bits]


def decoded(key: bytes, value: bytes, dtype: Any) -> NDArray[Any]:
    return decode_column(key, memoryview(value), dtype, check=True)


@given(columns, st.booleans(), st.booleans(), st.data())
def test_a_round_trip_keeps_everything(
    column: tuple[list[int], int, str], deflate: bool, sparse: bool, data: st.DataObject
) -> None:
    values = made(column)
    assume(narrowest(values))
    written, read = (data.draw(st.sampled_from(narrowest(values))) for _ in range(2))
    value = encode_column(KEY, np.array(values, written), deflate=deflate, sparse=sparse)
    found = decoded(KEY, value, read)
    assert found.tolist() == values
    assert found.dtype.kind == "u"
    assert found.dtype.itemsize <= np.dtype(read).itemsize


@given(columns)
def test_times_may_be_negative(column: tuple[list[int], int, str]) -> None:
    values = [value % (1 << 62) for value in made(column)]
    value = encode_column(KEY, np.array(values, np.int64))
    assert decoded(KEY, value, np.int64).tolist() == values


@given(columns, st.booleans(), st.booleans(), st.data())
def test_every_flipped_bit_is_detected(
    column: tuple[list[int], int, str], deflate: bool, sparse: bool, data: st.DataObject
) -> None:
    values = made(column)
    assume(narrowest(values))
    column_of = np.array(values, np.uint64)
    value = bytearray(encode_column(KEY, column_of, deflate=deflate, sparse=sparse))
    place = data.draw(st.integers(0, len(value) * 8 - 1))
    value[place // 8] ^= 1 << place % 8
    with pytest.raises(Damaged):
        decoded(KEY, bytes(value), np.uint64)


@pytest.mark.parametrize("deflate", [False, True])
@pytest.mark.parametrize(
    "values", [[], [7], [7] * 50, [3, 1, 2], [1_000, 1_001, 1_900], [1 << 40, 5], list(range(300))]
)
def test_truncation_and_another_key_are_detected(values: list[int], deflate: bool) -> None:
    value = encode_column(KEY, np.array(values, np.uint64), deflate=deflate)
    for length in range(len(value)):
        with pytest.raises(Damaged):
            decoded(KEY, value[:length], np.uint64)
    for key, stored in ((b"another key", value), (KEY, value + b"\0")):
        with pytest.raises(Damaged):
            decoded(key, stored, np.uint64)


DAY_OF_TIMES = np.arange(1_790_000_000_000, 1_790_000_000_000 + 86_400_000, 86_400, np.int64)
SHUFFLED = DAY_OF_TIMES[np.random.default_rng(1).permutation(1_000)]


@pytest.mark.parametrize(
    ("values", "bytes_each"),
    [
        (np.full(1_000, 9_999, np.uint64), 0),
        (np.full(1_000, 1 << 63, np.uint64), 0),
        (np.arange(1_000) % 2, 1),
        (np.arange(1_000) % 257, 2),
        (np.arange(70_000)[::-1], 4),
        (np.arange(70_000), 1 / 70_000),
        (np.cumsum(np.arange(1_000) % 200), 1),
        (np.cumsum(np.arange(200) % 100), 2),
        (DAY_OF_TIMES, 4 / 1_000),
        (DAY_OF_TIMES // 400, 1 / 1_000),
        (np.array([*DAY_OF_TIMES[1:], DAY_OF_TIMES[-1]]), 4),
        (np.array([*DAY_OF_TIMES[1:], DAY_OF_TIMES[-1]]) // 400, 1),
        (SHUFFLED, 4),
        (np.array([0, *SHUFFLED[1:]]), 8),
    ],
)
def test_a_column_uses_the_smallest_encoding(values: NDArray[Any], bytes_each: int) -> None:
    """Numbers of one or two bytes are stored as they are, which reading them needs no copy for."""
    value = encode_column(KEY, values.astype(np.uint64))
    header = len(encode_column(KEY, np.zeros(0, np.uint64)))
    assert len(value) == header + bytes_each * len(values)
    assert decoded(KEY, value, np.uint64).tolist() == values.tolist()


@pytest.mark.parametrize(
    ("length", "others", "bytes_of_other"),
    [(256, 10, 1 + 1), (257, 10, 2 + 1), (65_536, 600, 2 + 2), (65_537, 600, 4 + 2)],
)
def test_a_sparse_column_has_only_what_is_not_zero(
    length: int, others: int, bytes_of_other: int
) -> None:
    values = np.zeros(length, np.uint32)
    values[-others:] = np.arange(1, others + 1)
    value = encode_column(KEY, values, sparse=True)
    header = len(encode_column(KEY, np.zeros(0, np.uint64)))
    assert len(value) == header + others * bytes_of_other
    assert decoded(KEY, value, np.uint32).tolist() == values.tolist()


def test_zeros_are_only_left_out_where_that_is_shorter() -> None:
    values = np.arange(1_000) % 3
    assert encode_column(KEY, values, sparse=True) == encode_column(KEY, values)


def test_columns_are_compressed_only_if_that_makes_them_shorter() -> None:
    pattern = np.tile(np.arange(250, dtype=np.uint8), 40)
    noise = np.random.default_rng(1).integers(0, 256, 10_000, np.uint8)
    assert len(encode_column(KEY, pattern, deflate=True)) < len(pattern) / 10
    assert encode_column(KEY, noise, deflate=True) == encode_column(KEY, noise)


def test_plain_columns_are_borrowed_and_read_only() -> None:
    value = encode_column(KEY, np.arange(1_000, dtype=np.uint32) * 40 % 999)
    found = decoded(KEY, value, np.uint32)
    assert not found.flags.owndata
    assert not found.flags.writeable


@pytest.mark.parametrize(
    ("duration_ms", "added"),
    [(0, 0), (1, TIMED | BOUNCED), (5_000, TIMED | BOUNCED), (5_001, TIMED), (86_400_000, TIMED)],
)
@pytest.mark.parametrize("visit", [0, VISITOR, PAGE_VISITOR, VISITOR | PAGE_VISITOR])
@pytest.mark.parametrize("before", [0, TIMED, TIMED | BOUNCED])
def test_a_duration_sets_the_flags_that_depend_on_it(
    duration_ms: int, added: int, visit: int, before: int
) -> None:
    flags = np.array([visit | before], np.uint8)
    (after,) = timed_flags(flags, np.array([duration_ms], np.uint32))
    assert after == visit | added
    assert flags.tolist() == [visit | before]
