import pytest

from medamad.storage.environment.environment import Environment
from medamad.storage.wal.dedup import DAY_MS, BeaconIndex, ViewLocation

HOUR_MS = 3_600_000
NOW_MS = 480_000 * HOUR_MS


def new_beacons(environment: Environment, capacity: int = 100) -> BeaconIndex:
    beacons = BeaconIndex(environment.databases.beacons, b"secret", capacity)
    with environment.reading() as txn:
        beacons.load(txn)
    return beacons


def store(environment: Environment, beacons: BeaconIndex, *times_ms: int) -> list[bytes]:
    digests = []
    with environment.lmdb.begin(write=True) as txn:
        for sequence, time_ms in enumerate(times_ms):
            digest = beacons.digest(f"{time_ms}-{sequence}")
            beacons.write(txn, digest, ViewLocation(1, time_ms, sequence))
            beacons.remember(digest, ViewLocation(1, time_ms, sequence))
            digests.append(digest)
    return digests


def found(
    environment: Environment, beacons: BeaconIndex, digests: list[bytes], now_ms: int
) -> list:
    with environment.reading() as txn:
        places = [beacons.find(txn, digest, now_ms) for digest in digests]
    return [None if place is None else place.time_ms for place in places]


def test_a_beacon_is_known_for_24_hours(environment: Environment) -> None:
    beacons = new_beacons(environment)
    digests = store(environment, beacons, NOW_MS)
    for reader in (beacons, new_beacons(environment), new_beacons(environment, capacity=0)):
        assert found(environment, reader, digests, NOW_MS) == [NOW_MS]
        assert found(environment, reader, digests, NOW_MS + DAY_MS) == [NOW_MS]
        assert found(environment, reader, digests, NOW_MS + DAY_MS + 1) == [None]


def test_what_leaves_memory_is_found_on_disk(environment: Environment) -> None:
    beacons = new_beacons(environment, capacity=3)
    times = [NOW_MS + hour * HOUR_MS for hour in range(24)]
    digests = store(environment, beacons, *times)
    assert found(environment, beacons, digests, times[-1]) == times
    again = new_beacons(environment, capacity=3)
    assert found(environment, again, digests, times[-1]) == times


def test_an_hour_that_is_in_memory_in_part_is_looked_up(environment: Environment) -> None:
    times = [NOW_MS + second * 1000 for second in range(20)]
    digests = store(environment, new_beacons(environment), *times)
    again = new_beacons(environment, capacity=7)
    assert found(environment, again, digests, times[-1]) == times


@pytest.mark.parametrize("ahead_ms", [2 * HOUR_MS, 365 * DAY_MS])
def test_what_was_stored_while_the_clock_was_ahead_is_found(
    environment: Environment, ahead_ms: int
) -> None:
    beacons = new_beacons(environment, capacity=3)
    times = [NOW_MS - HOUR_MS, NOW_MS + ahead_ms, *(NOW_MS + hour * HOUR_MS for hour in range(5))]
    digests = store(environment, beacons, *times)
    for reader in (beacons, *(new_beacons(environment, capacity=most) for most in (0, 1, 5))):
        assert found(environment, reader, digests, times[-1]) == times
    with environment.lmdb.begin(write=True) as txn:
        beacons.forget_before(txn, NOW_MS + 2 * HOUR_MS, 100)
    assert found(environment, beacons, digests[1:2], times[-1]) == [NOW_MS + ahead_ms]


def test_what_was_stored_last_is_found_first_though_the_clock_was_ahead(
    environment: Environment,
) -> None:
    """As the count of a visitor's views, which is stored under the same hash again and again."""
    beacons = new_beacons(environment, capacity=0)
    digest = beacons.digest("visitor")
    for count, time_ms in enumerate((NOW_MS + HOUR_MS, NOW_MS - HOUR_MS, NOW_MS), 1):
        with environment.lmdb.begin(write=True) as txn:
            beacons.write(txn, digest, ViewLocation(1, time_ms, count))
        beacons.remember(digest, ViewLocation(1, time_ms, count))
    for reader in (beacons, *(new_beacons(environment, capacity) for capacity in (0, 5))):
        with environment.reading() as txn:
            assert reader.find(txn, digest, NOW_MS) == ViewLocation(1, NOW_MS, 3)


def test_an_unknown_beacon_is_not_found(environment: Environment) -> None:
    beacons = new_beacons(environment, capacity=1)
    store(environment, beacons, NOW_MS, NOW_MS)
    assert found(environment, beacons, [beacons.digest("other")], NOW_MS) == [None]


def test_old_hours_are_forgotten_in_steps(environment: Environment) -> None:
    beacons = new_beacons(environment)
    digests = store(environment, beacons, *[NOW_MS] * 5, NOW_MS + HOUR_MS)
    with environment.lmdb.begin(write=True) as txn:
        steps = [beacons.forget_before(txn, NOW_MS + HOUR_MS + 1, 3) for _ in range(3)]
    assert steps == [3, 2, 0]
    assert found(environment, beacons, digests, NOW_MS) == [None] * 5 + [NOW_MS + HOUR_MS]


def test_the_id_itself_is_not_stored(environment: Environment) -> None:
    other = BeaconIndex(environment.databases.beacons, b"another secret", 10)
    assert new_beacons(environment).digest("id") != other.digest("id")
