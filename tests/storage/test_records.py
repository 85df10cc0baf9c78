"""The records of the write-ahead log, and the watermark."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.dimensions import VIEW_DIMENSIONS
from medamad.storage.environment.environment import open_environment
from medamad.storage.errors import Damaged
from medamad.storage.segments.format import header_key
from medamad.storage.wal.records import (
    Record,
    RecordKind,
    binding_record,
    describe_record,
    duration_record,
    property_record,
    read_watermark,
    rows_by_kind,
    sound_rows,
    view_record,
    wal_key,
    write_watermark,
)

KEY = wal_key(7, 1_790_000_000_123, 42)
VIEW = view_record(KEY, (True, False), (3, 70_000), range(len(VIEW_DIMENSIONS)))
RECORDS = {
    "view": VIEW,
    "unload": duration_record(KEY, 41, 86_400_000),
    "property": property_record(KEY, 40, 41, 9),
    "binding": binding_record(KEY, 40, 41),
}


def test_keys_sort_by_website_then_time_then_sequence() -> None:
    places = [(1, 5, 9), (1, 6, 1), (1, 6, 2), (2, 0, 0), (256, 0, 0)]
    keys = [wal_key(*place) for place in places]
    assert keys == sorted(keys)


def test_a_view_round_trips_as_columns() -> None:
    rows = rows_by_kind([VIEW, RECORDS["unload"], VIEW])[RecordKind.VIEW]
    assert len(rows) == 2
    assert rows.keys["website"].tolist() == [7, 7]
    assert rows.keys["time_ms"].tolist() == [1_790_000_000_123] * 2
    assert rows.keys["sequence"].tolist() == [42, 42]
    assert rows.values["flags"].tolist() == [1, 1]
    assert rows.values["width_class"].tolist() == [3, 3]
    assert rows.values["visit_offset"].tolist() == [70_000, 70_000]
    assert rows.values["codes"][1].tolist() == list(range(len(VIEW_DIMENSIONS)))


def test_the_other_kinds_round_trip_as_columns() -> None:
    rows = rows_by_kind(RECORDS.values())
    unload, event, binding = (
        rows[RecordKind.DURATION],
        rows[RecordKind.PROPERTY],
        rows[RecordKind.BINDING],
    )
    assert (unload.values["view"][0], unload.values["duration_ms"][0]) == (41, 86_400_000)
    assert [int(event.values[name][0]) for name in ("event", "view", "property")] == [40, 41, 9]
    assert [int(binding.values[name][0]) for name in ("event", "view")] == [40, 41]


@pytest.mark.parametrize("record", RECORDS.values(), ids=RECORDS)
def test_written_records_are_sound(record: Record) -> None:
    rows, damaged = sound_rows([record])
    ((kind, found),) = rows.items()
    assert (damaged, found.keys.tobytes(), found.values.tobytes()) == ([], *record)
    assert kind == record[1][0]


@given(st.sampled_from(sorted(RECORDS)), st.data())
def test_any_flipped_bit_is_detected(name: str, data: st.DataObject) -> None:
    key, value = RECORDS[name]
    whole = bytearray(key + value)
    bit = data.draw(st.integers(0, len(whole) * 8 - 1))
    whole[bit // 8] ^= 1 << bit % 8
    record = (bytes(whole[: len(key)]), bytes(whole[len(key) :]))
    assert sound_rows([record]) == ({}, [record[0]])


@given(st.binary(max_size=100))
def test_random_bytes_are_not_sound(value: bytes) -> None:
    assert sound_rows([(KEY, value)]) == ({}, [KEY])


def test_a_damaged_record_does_not_hide_the_others() -> None:
    view, unload = RECORDS["view"], RECORDS["unload"]
    damaged = (view[0], view[1][:-1] + b"x")
    rows, keys = sound_rows([view, damaged, unload, view])
    assert {kind: len(found) for kind, found in rows.items()} == {
        RecordKind.VIEW: 2,
        RecordKind.DURATION: 1,
    }
    assert keys == [view[0]]


def test_the_key_of_a_record_is_described() -> None:
    assert describe_record(KEY) == "website 7, time 1790000000123 ms, sequence 42"
    strange = KEY + b"x"
    assert describe_record(strange) == f"website 7, key {strange.hex()}"


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
