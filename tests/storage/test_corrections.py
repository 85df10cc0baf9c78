import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.storage.environment.environment import Environment
from medamad.storage.segments.corrections import (
    Corrected,
    Correction,
    Values,
    delete_correction,
    read_corrections,
    write_correction,
)

DURATION = Correction(Corrected.DURATION, 7, 86_400_000)
VIEW = Correction(Corrected.VIEW, 7, (1 << 64) - 1)
FAR = Correction(Corrected.DURATION, (1 << 64) - 1, 1)


def write(environment: Environment, website: int, *corrections: Correction) -> None:
    with environment.lmdb.begin(write=True) as txn:
        for correction in corrections:
            write_correction(txn, environment.databases.corrections, website, correction)


def read(environment: Environment, website: int) -> list[Correction | str]:
    with environment.reading() as txn:
        return list(read_corrections(txn, environment.databases.corrections, website))


def test_each_website_has_its_own_corrections(environment: Environment) -> None:
    write(environment, 1, VIEW, DURATION, FAR)
    write(environment, 2, FAR)
    assert read(environment, 1) == [DURATION, FAR, VIEW]
    assert read(environment, 2) == [FAR]
    assert read(environment, 3) == []


def test_a_later_correction_replaces_an_earlier_one(environment: Environment) -> None:
    write(environment, 1, DURATION, VIEW, DURATION._replace(value=5))
    assert read(environment, 1) == [DURATION._replace(value=5), VIEW]
    with environment.lmdb.begin(write=True) as txn:
        delete_correction(txn, environment.databases.corrections, 1, DURATION)
    assert read(environment, 1) == [VIEW]


@pytest.mark.parametrize("bit", range(12 * 8))
def test_every_flipped_bit_is_detected(environment: Environment, bit: int) -> None:
    write(environment, 1, DURATION, VIEW)
    database = environment.databases.corrections
    with environment.lmdb.begin(write=True) as txn:
        cursor = txn.cursor(db=database)
        assert cursor.first()
        key, value = cursor.key(), bytearray(cursor.value())
        value[bit // 8] ^= 1 << bit % 8
        txn.put(key, bytes(value), db=database)
    assert read(environment, 1) == [f"website 1, correction {key.hex()}", VIEW]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"\0\0\0\1\1", bytes(12)),
        (b"\0\0\0\1\1" + bytes(9), bytes(12)),
        (b"\0\0\0\1\1" + bytes(8), b""),
    ],
)
def test_malformed_corrections_are_reported(
    environment: Environment, key: bytes, value: bytes
) -> None:
    with environment.lmdb.begin(write=True) as txn:
        txn.put(key, value, db=environment.databases.corrections)
    assert read(environment, 1) == [f"website 1, correction {key.hex()}"]


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9), st.booleans())))
def test_values_are_found_by_range(steps: list[tuple[int, int, bool]]) -> None:
    values, plain = Values(), {}
    for sequence, value, removes in steps:
        if removes and sequence in plain:
            values.remove([sequence])
            del plain[sequence]
        else:
            values.put(sequence, value)
            plain[sequence] = value
    assert list(values.all()) == sorted(plain)
    assert values.within(5, 12) == sorted((n, v) for n, v in plain.items() if 5 <= n <= 12)
    assert [values.get(n) for n in range(21)] == [plain.get(n, 0) for n in range(21)]
