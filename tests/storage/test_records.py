"""The records of the write-ahead log, and the watermark."""

from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.dimensions import VIEW_DIMENSIONS
from medamad.storage.environment.environment import open_environment
from medamad.storage.errors import Damaged
from medamad.storage.segments.format import header_key
from medamad.storage.wal.beacons import DIGEST_BYTES
from medamad.storage.wal.records import (
    Record,
    RecordKind,
    Row,
    describe_record,
    read_watermark,
    records_of,
    rows_of,
    sequence_of,
    sound_rows,
    sound_rows_of_websites,
    time_of,
    view_row,
    wal_key,
    wal_key_from,
    website_of,
    write_watermark,
)

TIME_MS = 1_790_000_000_123
SITE = 7
VIEW = view_row(
    (42, TIME_MS, b"\x80beacon\0", TIME_MS + 9_000),
    (True, False, True),
    (3, 70_000),
    range(len(VIEW_DIMENSIONS)),
)
ROWS: dict[RecordKind, Row] = {
    RecordKind.VIEW: VIEW,
    RecordKind.DURATION: (43, TIME_MS, 41, 86_400_000),
    RecordKind.PROPERTY: (44, TIME_MS, 44, 0, 9),
    RecordKind.BINDING: (45, TIME_MS, 44, 42),
}


def stored(kind: RecordKind, *rows: Row) -> list[Record]:
    return list(records_of(SITE, kind, rows))


RECORDS = {kind: stored(kind, row)[0] for kind, row in ROWS.items()}
(KEY, _) = RECORDS[RecordKind.VIEW]
SMALL = st.integers(0, (1 << 32) - 1) | st.integers(0, 300)


@st.composite
def rows_in_order(draw: st.DrawFn, kind: RecordKind) -> list[Row]:
    """Rows with any times, in order of their sequence numbers, that refer to earlier ones."""
    first = draw(st.integers(1, 1 << 60))
    steps = draw(st.lists(st.integers(1, 1 << 40) | st.integers(1, 3), min_size=1, max_size=150))
    times = st.integers(0, 1 << 50) | st.integers(TIME_MS - 5, TIME_MS + 5)
    return [
        (sequence, draw(times), *draw(_fields_of(kind, sequence)))
        for sequence in accumulate(steps, initial=first)
    ]


def _fields_of(kind: RecordKind, sequence: int) -> st.SearchStrategy[tuple]:
    earlier = st.integers(0, sequence)
    if kind is RecordKind.DURATION:
        return st.tuples(earlier, SMALL)
    if kind is RecordKind.PROPERTY:
        return st.tuples(earlier, earlier, SMALL)
    if kind is RecordKind.BINDING:
        return st.tuples(earlier, earlier)
    beacon = st.binary(min_size=DIGEST_BYTES, max_size=DIGEST_BYTES)
    small = st.integers(0, 255)
    codes = [SMALL] * len(VIEW_DIMENSIONS)
    return st.tuples(beacon, st.integers(0, 1 << 50), small, small, SMALL, *codes)


def test_keys_sort_by_website_then_sequence_then_time() -> None:
    places = [(1, 5, 9), (1, 6, 1), (1, 6, 2), (2, 0, 0), (256, 0, 0)]
    keys = [wal_key(*place) for place in places]
    assert keys == sorted(keys)
    assert [(sequence_of(key), time_of(key)) for key in keys] == [place[1:] for place in places]
    assert keys[0] < wal_key_from(1, 6) < keys[1] < keys[2] < wal_key_from(1, 7)


def test_a_view_round_trips_as_columns() -> None:
    rows = rows_of(RecordKind.VIEW, [VIEW, VIEW])
    assert len(rows) == 2
    assert rows["time_ms"].tolist() == [TIME_MS] * 2
    assert rows["arrived_ms"].tolist() == [TIME_MS + 9_000] * 2
    assert rows["sequence"].tolist() == [42, 42]
    assert rows["beacon"].tobytes() == VIEW[2] * 2
    assert rows["flags"].tolist() == [17, 17]
    assert rows["width_class"].tolist() == [3, 3]
    assert rows["visit_offset"].tolist() == [70_000, 70_000]
    assert rows["codes"][1].tolist() == list(range(len(VIEW_DIMENSIONS)))


@pytest.mark.parametrize("kind", RecordKind)
def test_a_row_alone_is_read_back(kind: RecordKind) -> None:
    rows, damaged = sound_rows([RECORDS[kind]])
    assert damaged == []
    assert {of: found.tobytes() for of, found in rows.items()} == {
        kind: rows_of(kind, [ROWS[kind]]).tobytes()
    }


@given(st.data())
def test_all_rows_are_read_back_in_order(data: st.DataObject) -> None:
    rows = {kind: data.draw(rows_in_order(kind)) for kind in RecordKind}
    records = sorted(record for kind in rows for record in stored(kind, *rows[kind]))
    found, damaged = sound_rows(records)
    assert damaged == []
    assert {kind: of_kind.tobytes() for kind, of_kind in found.items()} == {
        kind: rows_of(kind, of_kind).tobytes() for kind, of_kind in rows.items()
    }


def test_records_are_small_enough_for_four_to_share_a_page() -> None:
    page_bytes, of_page, of_node = 4_096, 16, 8 + 2
    for kind, row in ROWS.items():
        rows = [(sequence, *row[1:]) for sequence in range(50, 2_000)]
        sizes = [len(key) + len(value) for key, value in stored(kind, *rows)]
        assert 4 * (max(sizes) + of_node) <= page_bytes - of_page
        assert min(sizes[:-1]) > 900


def damaged_in_a_bit(data: st.DataObject, record: Record) -> Record:
    key, value = record
    whole = bytearray(key + value)
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    whole[bit // 8] ^= 1 << bit % 8
    return bytes(whole[: len(key)]), bytes(whole[len(key) :])


@given(st.sampled_from(RecordKind), st.data())
def test_any_flipped_bit_is_detected(kind: RecordKind, data: st.DataObject) -> None:
    record = damaged_in_a_bit(data, RECORDS[kind])
    assert sound_rows([record]) == ({}, [record[0]])


@given(st.binary(max_size=100))
def test_random_bytes_are_not_sound(value: bytes) -> None:
    assert sound_rows([(KEY, value)]) == ({}, [KEY])


def odd_values() -> Iterator[bytes]:
    value = RECORDS[RecordKind.DURATION][1][:-4]
    yield value + b"\0"
    yield value[:-1]
    yield value[:-1] + b"\x80"
    yield bytes((value[0], 0)) + value[2:]
    yield bytes((value[0], 2)) + value[2:]
    yield bytes((RecordKind.VIEW, 200)) + value[2:]
    yield bytes((9, 1)) + value[2:]


@pytest.mark.parametrize("value", list(odd_values()))
def test_a_record_that_is_not_what_it_says_is_damaged(value: bytes) -> None:
    sound = RECORDS[RecordKind.DURATION]
    crc = crc32(value, crc32(KEY)).to_bytes(4, "little")
    rows, damaged = sound_rows([sound, (KEY, value + crc), sound])
    assert damaged == [KEY]
    assert {kind: len(found) for kind, found in rows.items()} == {RecordKind.DURATION: 2}


def test_a_damaged_record_does_not_hide_the_others() -> None:
    view, unload = RECORDS[RecordKind.VIEW], RECORDS[RecordKind.DURATION]
    damaged = (view[0], view[1][:-1] + b"x")
    rows, keys = sound_rows([view, damaged, unload, view])
    assert {kind: len(found) for kind, found in rows.items()} == {
        RecordKind.VIEW: 2,
        RecordKind.DURATION: 1,
    }
    assert keys == [view[0]]


def test_records_of_several_websites_are_decoded_together() -> None:
    kinds = (RecordKind.VIEW, RecordKind.DURATION)
    records = [
        record
        for website in (1, 3, 300)
        for kind in (kinds if website != 3 else kinds[:1])
        for record in records_of(website, kind, [ROWS[kind]] * website)
    ]
    key, value = records[0]
    found, damaged = sound_rows_of_websites([*records, (key, value[:-1] + b"x")])
    assert damaged == [key]
    assert list(map(website_of, damaged)) == [1]
    for website, rows in found.items():
        expected, _ = sound_rows(record for record in records if website_of(record[0]) == website)
        assert rows.keys() == expected.keys()
        for kind in rows:
            assert rows[kind].tobytes() == expected[kind].tobytes()
    assert list(found) == [1, 3, 300]
    assert sound_rows_of_websites([]) == ({}, [])


@pytest.mark.parametrize("kind", RecordKind)
def test_many_records_are_read_back_without_the_damaged_ones(kind: RecordKind) -> None:
    rows = [(sequence, *ROWS[kind][1:]) for sequence in range(100, 700)]
    records = [record for row in rows for record in stored(kind, row)]
    odd = [0, 130, 131, 599]
    for place in odd:
        key, value = records[place]
        cut = value[:-5]
        records[place] = key, cut + crc32(cut, crc32(key)).to_bytes(4, "little")
    found, damaged = sound_rows(records)
    assert damaged == [records[place][0] for place in odd]
    whole = [row for place, row in enumerate(rows) if place not in odd]
    assert found[kind].tobytes() == rows_of(kind, whole).tobytes()


def test_the_key_of_a_record_is_described() -> None:
    assert describe_record(KEY) == f"website {SITE}, time {TIME_MS} ms, sequence 42"
    strange = KEY + b"x"
    assert describe_record(strange) == f"website {SITE}, key {strange.hex()}"


def test_each_website_has_its_own_watermark(tmp_path: Path) -> None:
    env = open_environment(tmp_path, 16 << 20)
    with env.lmdb.begin(write=True) as txn:
        assert read_watermark(txn, env, 1) == 0
        write_watermark(txn, env, 1, 77)
        write_watermark(txn, env, 2, (1 << 64) - 1)
        write_watermark(txn, env, 1, 78)
        assert [read_watermark(txn, env, website) for website in (1, 2, 3)] == [
            78,
            (1 << 64) - 1,
            0,
        ]
    env.close()


def test_a_changed_or_misplaced_watermark_is_damaged(tmp_path: Path) -> None:
    env = open_environment(tmp_path, 16 << 20)
    with env.lmdb.begin(write=True) as txn:
        write_watermark(txn, env, 1, 77)
        stored = txn.get(header_key(1, 0), db=env.databases.headers)
        assert stored is not None
        txn.put(header_key(2, 0), stored, db=env.databases.headers)
        with pytest.raises(Damaged):
            read_watermark(txn, env, 2)
        for changed in (bytes([stored[0] ^ 1]) + stored[1:], stored[:-1], b""):
            txn.put(header_key(1, 0), changed, db=env.databases.headers)
            with pytest.raises(Damaged):
                read_watermark(txn, env, 1)
    env.close()
