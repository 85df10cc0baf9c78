"""The beacon index, and unloads and events that wait for their load."""

from collections.abc import Callable
from random import Random
from typing import cast

import pytest
import pytest_twisted
from attrs import define
from support.storage.contents import entries
from support.storage.hits import HOUR_MS, NOW_MS, a_view, event, unload

from medamad.domain.hits import Unload
from medamad.domain.zones import DAY_MS
from medamad.storage.compaction.planner import Sizes
from medamad.storage.environment.environment import Database, Environment, Txn
from medamad.storage.store import Store
from medamad.storage.wal.beacons import KEPT_MS, BeaconIndex, UnmatchedBeacons, ViewLocation
from medamad.storage.wal.digest_filter import DigestFilter
from medamad.storage.wal.log import Outcome

INDEX_NOW_MS = 480_000 * HOUR_MS


def new_beacons(environment: Environment, capacity: int = 100, listed: int = 1000) -> BeaconIndex:
    beacons = BeaconIndex(environment.databases, b"secret", capacity, DigestFilter(listed))
    with environment.reading() as txn:
        beacons.load(txn)
    return beacons


def store(environment: Environment, beacons: BeaconIndex, *times_ms: int) -> list[bytes]:
    digests = []
    with environment.lmdb.begin(write=True) as txn:
        for sequence, time_ms in enumerate(times_ms):
            digest = beacons.digest(f"{time_ms}-{sequence}")
            beacons._write(txn, digest, ViewLocation(1, time_ms, sequence).pack())
            beacons._remember(digest, ViewLocation(1, time_ms, sequence).pack())
            beacons._evict()
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
    digests = store(environment, beacons, INDEX_NOW_MS)
    for reader in (beacons, new_beacons(environment), new_beacons(environment, capacity=0)):
        assert found(environment, reader, digests, INDEX_NOW_MS) == [INDEX_NOW_MS]
        assert found(environment, reader, digests, INDEX_NOW_MS + DAY_MS) == [INDEX_NOW_MS]
        assert found(environment, reader, digests, INDEX_NOW_MS + DAY_MS + 1) == [None]


def test_a_beacon_evicted_from_memory_is_found_on_disk(environment: Environment) -> None:
    beacons = new_beacons(environment, capacity=3)
    times = [INDEX_NOW_MS + hour * HOUR_MS for hour in range(24)]
    digests = store(environment, beacons, *times)
    assert found(environment, beacons, digests, times[-1]) == times
    again = new_beacons(environment, capacity=3)
    assert found(environment, again, digests, times[-1]) == times


def test_an_hour_only_partly_in_memory_is_looked_up_on_disk(environment: Environment) -> None:
    times = [INDEX_NOW_MS + second * 1000 for second in range(20)]
    digests = store(environment, new_beacons(environment), *times)
    again = new_beacons(environment, capacity=7)
    assert found(environment, again, digests, times[-1]) == times


@pytest.mark.parametrize("ahead_ms", [2 * HOUR_MS, 365 * DAY_MS])
def test_a_beacon_stored_while_the_clock_was_ahead_is_found(
    environment: Environment, ahead_ms: int
) -> None:
    beacons = new_beacons(environment, capacity=3)
    times = [
        INDEX_NOW_MS - HOUR_MS,
        INDEX_NOW_MS + ahead_ms,
        *(INDEX_NOW_MS + hour * HOUR_MS for hour in range(5)),
    ]
    digests = store(environment, beacons, *times)
    for reader in (beacons, *(new_beacons(environment, capacity=most) for most in (0, 1, 5))):
        assert found(environment, reader, digests, times[-1]) == times
    with environment.lmdb.begin(write=True) as txn:
        beacons.expire_before(txn, INDEX_NOW_MS + 2 * HOUR_MS, 100)
    assert found(environment, beacons, digests[1:2], times[-1]) == [INDEX_NOW_MS + ahead_ms]


def test_the_last_stored_beacon_wins_even_if_the_clock_was_ahead(
    environment: Environment,
) -> None:
    """A visitor's count of views is stored under the same hash every time."""
    beacons = new_beacons(environment, capacity=0)
    digest = beacons.digest("visitor")
    for count, time_ms in enumerate(
        (INDEX_NOW_MS + HOUR_MS, INDEX_NOW_MS - HOUR_MS, INDEX_NOW_MS), 1
    ):
        with environment.lmdb.begin(write=True) as txn:
            beacons._write(txn, digest, ViewLocation(1, time_ms, count).pack())
        beacons._remember(digest, ViewLocation(1, time_ms, count).pack())
        beacons._evict()
    for reader in (beacons, *(new_beacons(environment, capacity) for capacity in (0, 5))):
        with environment.reading() as txn:
            assert reader.find(txn, digest, INDEX_NOW_MS) == ViewLocation(1, INDEX_NOW_MS, 3)


def test_an_unknown_beacon_is_not_found(environment: Environment) -> None:
    beacons = new_beacons(environment, capacity=1)
    store(environment, beacons, INDEX_NOW_MS, INDEX_NOW_MS)
    assert found(environment, beacons, [beacons.digest("other")], INDEX_NOW_MS) == [None]


@define
class CountingTxn:
    """A transaction that counts what is looked up in it."""

    txn: Txn
    lookups: int = 0

    def get(self, key: bytes, *, db: Database) -> bytes | None:
        self.lookups += 1
        return self.txn.get(key, db=db)


def lookups(environment: Environment, beacons: BeaconIndex, digest: bytes, now_ms: int) -> int:
    with environment.reading() as txn:
        counting = CountingTxn(txn)
        beacons.find(cast("Txn", counting), digest, now_ms)
    return counting.lookups


def test_a_new_beacon_is_not_looked_up_on_disk(environment: Environment) -> None:
    beacons = new_beacons(environment, capacity=3)
    times = [INDEX_NOW_MS + hour * HOUR_MS for hour in range(24)]
    digests = store(environment, beacons, *times)
    for reader in (beacons, new_beacons(environment, capacity=3)):
        assert lookups(environment, reader, digests[0], times[-1]) > 0
        assert lookups(environment, reader, reader.digest("new"), times[-1]) == 0


@pytest.mark.parametrize("listed", [1, 2, 5, 19])
def test_beacons_beyond_the_filter_are_found_on_disk(environment: Environment, listed: int) -> None:
    beacons = new_beacons(environment, capacity=3, listed=listed)
    times = [INDEX_NOW_MS + hour * HOUR_MS // 3 for hour in range(60)]
    digests = store(environment, beacons, *times)
    for reader in (beacons, new_beacons(environment, capacity=3, listed=listed)):
        assert found(environment, reader, digests, times[-1]) == times
        assert 0 < lookups(environment, reader, reader.digest("new"), times[-1]) < 20


def test_the_filter_has_all_that_was_added_and_little_else() -> None:
    random = Random(1)  # noqa: S311 - the same each time
    known = [random.randbytes(8) for _ in range(20_000)]
    digests = DigestFilter(capacity=15_000)
    digests.add_all(known[:10_000], latest_hour=1)
    for digest in known[10_000:]:
        digests.add(digest, hour=2)
    assert all(digest in digests for digest in known)
    assert sum(random.randbytes(8) in digests for _ in range(10_000)) < 10
    assert digests.since_hour == 0


def test_the_filter_says_which_hours_it_no_longer_knows() -> None:
    digests = DigestFilter(capacity=10)
    for hour in range(40):
        digests.add(hour.to_bytes(8, "big"), hour)
    assert digests.since_hour == 20
    assert all(hour.to_bytes(8, "big") in digests for hour in range(20, 40))


def test_the_filter_forgets_what_nobody_looks_up_any_more() -> None:
    digests = DigestFilter()
    for hour in range(49):
        digests.add(hour.to_bytes(8, "big"), hour)
    assert digests.since_hour == 24
    assert not any(hour.to_bytes(8, "big") in digests for hour in range(1, 24))
    assert all(hour.to_bytes(8, "big") in digests for hour in range(24, 49))


def test_old_hours_are_deleted_in_steps(environment: Environment) -> None:
    beacons = new_beacons(environment)
    digests = store(environment, beacons, *[INDEX_NOW_MS] * 5, INDEX_NOW_MS + HOUR_MS)
    with environment.lmdb.begin(write=True) as txn:
        steps = [beacons.expire_before(txn, INDEX_NOW_MS + HOUR_MS + 1, 3) for _ in range(3)]
    assert steps == [3, 2, 0]
    assert found(environment, beacons, digests, INDEX_NOW_MS) == [None] * 5 + [
        INDEX_NOW_MS + HOUR_MS
    ]


def test_the_beacon_itself_is_not_stored(environment: Environment) -> None:
    other = BeaconIndex(environment.databases, b"another secret", 10)
    assert new_beacons(environment).digest("id") != other.digest("id")


OpenStore = Callable[..., Store]


async def known(store: Store, beacons: list[str], now_ms: int = NOW_MS) -> list[bool]:
    """Return of which beacons an unload finds the view, which does not depend on its duration."""
    unloads = [Unload(time_ms=now_ms, beacon=beacon, duration_ms=1) for beacon in beacons]
    return [outcome is Outcome.STORED for outcome in await store.append(unloads)]


@pytest.mark.parametrize("capacity", [0, 3, 100])
@pytest_twisted.ensureDeferred
async def test_the_beacons_of_unflushed_views_are_read_from_the_log(
    open_store: OpenStore, capacity: int
) -> None:
    store = open_store(recent_beacons=capacity)
    for number in (1, 2):
        await store.add_website(f"{number}.example", 1)
    beacons = [f"b{number}" for number in range(40)]
    for number, beacon in enumerate(beacons):
        if number in (10, 30):
            await store.close()
            store = open_store(recent_beacons=capacity)
        site = 1 + number % 2
        happened_ms = NOW_MS - 30 * HOUR_MS
        await store.append([a_view(site, beacon=beacon, happened_ms=happened_ms)])
    assert entries(store, "beacons") == [0 if capacity > len(beacons) else 39]
    for _ in range(2):
        assert len(store.wal.beacons) <= max(capacity, 1)
        assert all(await known(store, beacons))
        assert not any(await known(store, beacons, NOW_MS + DAY_MS + 1))
        repeated = [a_view(1, beacon=beacon) for beacon in beacons]
        assert set(await store.append(repeated)) == {Outcome.REPEATED}
        await store.close()
        store = open_store(recent_beacons=capacity)
    await store.close()


@pytest.mark.parametrize("seed", range(4))
@pytest_twisted.ensureDeferred
async def test_beacons_stay_known_while_views_are_flushed(open_store: OpenStore, seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - the same each time
    settings = {"sizes": Sizes(chunk_views=20), "recent_beacons": rng.choice((0, 5, 60, 1_000))}
    store = open_store(**settings)
    for number in (1, 2):
        await store.add_website(f"{number}.example", 1)
    sent: dict[str, int] = {}
    for step in range(60):
        now_ms = NOW_MS + step * 45 * 60_000
        some = [f"b{len(sent) + place}" for place in range(rng.randrange(1, 12))]
        sites = rng.choices((1, 2), weights=(9, 1), k=len(some))
        await store.append(
            [
                a_view(site, beacon=beacon, time_ms=now_ms)
                for site, beacon in zip(sites, some, strict=True)
            ]
        )
        sent |= dict.fromkeys(some, now_ms)
        if rng.random() < 0.3:
            await store.maintain(now_ms)
        if rng.random() < 0.2:
            await store.close()
            store = open_store(**settings)
        asked = rng.sample(sorted(sent), min(len(sent), 10))
        expected = [now_ms - sent[beacon] <= DAY_MS for beacon in asked]
        assert await known(store, asked, now_ms) == expected
    assert store.figures().segments > 1
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_beacon_may_be_used_again_a_day_later(open_store: OpenStore) -> None:
    store = open_store(recent_beacons=1)
    await store.add_website("example.com", 1)
    for day in range(3):
        now_ms = NOW_MS + day * (DAY_MS + 1)
        assert await store.append([a_view(beacon="b", time_ms=now_ms)]) == [Outcome.STORED]
        await store.append([a_view(time_ms=now_ms)])
        assert await known(store, ["b"], now_ms + DAY_MS) == [True]
    await store.close()


SITE = 1
LET_GO_MS = KEPT_MS + HOUR_MS + 1


def test_the_longest_duration_and_all_events_wait_for_the_load() -> None:
    unmatched = UnmatchedBeacons(10)
    unmatched.add_unload(b"b", NOW_MS, 300)
    unmatched.add_unload(b"b", NOW_MS + 1, 200)
    unmatched.add_event(b"b", NOW_MS + 2, SITE, 77)
    unmatched.add_event(b"b", NOW_MS + 2, 2, 78)
    unmatched.add_event(b"b", NOW_MS + 2, SITE, 79)
    assert unmatched.duration_ms(b"b", SITE, NOW_MS + 3) == 300
    assert unmatched.events(b"b", SITE, NOW_MS + 3) == [77, 79]
    unmatched.drop([b"b"])
    assert (
        unmatched.duration_ms(b"b", SITE, NOW_MS + 3),
        unmatched.events(b"b", SITE, NOW_MS + 3),
    ) == (
        0,
        [],
    )


def test_unloads_and_events_wait_for_60_seconds() -> None:
    unmatched = UnmatchedBeacons(10)
    unmatched.add_unload(b"b", NOW_MS, 300)
    unmatched.add_event(b"b", NOW_MS, SITE, 7)
    unmatched.add_unload(b"b", NOW_MS + 50_000, 200)
    unmatched.add_event(b"b", NOW_MS + 50_000, SITE, 8)
    for after_ms, duration_ms, events in (
        (50_000, 300, [7, 8]),
        (KEPT_MS, 300, [7, 8]),
        (KEPT_MS + 1, 200, [8]),
        (KEPT_MS + 50_000, 200, [8]),
        (KEPT_MS + 50_001, 0, []),
    ):
        assert unmatched.duration_ms(b"b", SITE, NOW_MS + after_ms) == duration_ms
        assert unmatched.events(b"b", SITE, NOW_MS + after_ms) == events


def test_setting_the_clock_back_a_little_loses_nothing() -> None:
    unmatched = UnmatchedBeacons(10)
    unmatched.add_unload(b"b", NOW_MS, 300)
    unmatched.add_event(b"b", NOW_MS, SITE, 7)
    assert unmatched.duration_ms(b"b", SITE, NOW_MS - KEPT_MS) == 300
    assert unmatched.events(b"b", SITE, NOW_MS - KEPT_MS) == [7]
    assert unmatched.duration_ms(b"b", SITE, NOW_MS - KEPT_MS - 1) == 0


def test_an_unload_waits_only_for_websites_that_its_page_may_be_of() -> None:
    unmatched = UnmatchedBeacons(10)
    unmatched.add_unload(b"b", NOW_MS, 100)
    unmatched.add_unload(b"b", NOW_MS, 200, frozenset({SITE, 3}))
    unmatched.add_unload(b"b", NOW_MS, 300, frozenset({2, 3}))
    found = {site: unmatched.duration_ms(b"b", site, NOW_MS) for site in (SITE, 2, 3, 4)}
    assert found == {SITE: 200, 2: 300, 3: 300, 4: 100}


def test_the_memory_of_waiting_hits_is_bounded() -> None:
    unmatched = UnmatchedBeacons(3)
    for number in range(10):
        unmatched.add_unload(bytes([number]), NOW_MS, 1)
    unmatched.add_unload(bytes([7]), NOW_MS, 1)
    unmatched.add_unload(bytes([10]), NOW_MS, 1)
    kept = [number for number in range(11) if unmatched.duration_ms(bytes([number]), SITE, NOW_MS)]
    assert kept == [7, 9, 10]
    for number in range(100):
        unmatched.add_event(b"\x09", NOW_MS, SITE, number)
    assert unmatched.events(b"\x09", SITE, NOW_MS) == list(range(70, 100))


def test_hits_without_a_load_expire_in_steps() -> None:
    unmatched = UnmatchedBeacons(10)
    for number in range(5):
        unmatched.add_unload(bytes([number]), NOW_MS, 1)
    unmatched.add_event(b"\0", NOW_MS + LET_GO_MS, SITE, 7)
    assert unmatched.expire(NOW_MS + LET_GO_MS - 1, 2) == 0
    assert [unmatched.expire(NOW_MS + LET_GO_MS, 2) for _ in range(3)] == [2, 2, 0]
    assert len(unmatched) == 1
    assert unmatched.events(b"\0", SITE, NOW_MS + LET_GO_MS) == [7]


def test_hits_that_arrived_while_the_clock_was_an_hour_ahead_are_found() -> None:
    unmatched = UnmatchedBeacons(10)
    unmatched.add_event(b"b", NOW_MS, SITE, 7)
    unmatched.expire(NOW_MS + HOUR_MS, 10)
    assert unmatched.events(b"b", SITE, NOW_MS) == [7]


@pytest_twisted.ensureDeferred
async def test_maintenance_expires_hits_without_a_load(
    open_store: Callable[..., Store],
) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    await store.append([*(unload(number, 1) for number in range(1_000)), event("e")])
    counts = []
    for after_ms in (0, LET_GO_MS - 1, LET_GO_MS):
        await store.maintain(NOW_MS + after_ms)
        counts.append(len(store.wal.unmatched))
    assert counts == [1_001, 1_001, 0]
    await store.close()
