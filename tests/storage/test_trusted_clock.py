"""Deletion uses the trusted time, which a jump of the clock cannot advance."""

from collections.abc import Callable
from typing import Any

import pytest
import pytest_twisted
from attrs import define
from support.storage.contents import idle, settled, stored_rows
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, unload, views
from support.storage.log_lines import logged_warnings
from twisted.internet.defer import Deferred, fail
from twisted.logger import LogLevel

from medamad.domain.errors import Unavailable
from medamad.storage.compaction.planner import Sizes
from medamad.storage.environment.environment import Environment
from medamad.storage.environment.meta import TRUSTED_TIME
from medamad.storage.environment.trusted_clock import TrustedClock, TrustedTime, write_trusted
from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome

OpenStore = Callable[..., Store]

MINUTE_MS = 60_000
YEAR_MS = 365 * DAY_MS
WARNING = (
    "the clock is {} hours ahead of what it showed last: until it has been so for a day, nothing"
    " is removed because of its age"
)
TRUSTED_AGAIN = "the clock is trusted again: retention continues"


@define
class Machine:
    """A machine whose clock can be set, with a daemon that reads it every minute."""

    environment: Environment
    store: Store
    now_ms: int = NOW_MS
    passed_ms: int = 0
    clock: TrustedClock | None = None

    def start(self) -> None:
        self.clock = TrustedClock(
            self.environment, self.store.writer.submit, lambda: self.passed_ms / 1000
        )

    async def run(self, minutes: int) -> int:
        """Run for so long; return the time that is trusted then."""
        assert self.clock is not None
        trusted_ms = 0
        for _ in range(minutes):
            self.now_ms += MINUTE_MS
            self.passed_ms += MINUTE_MS
            trusted_ms = self.clock.trusted_ms(self.now_ms)
            await self.clock.keep()
        return trusted_ms

    def is_off_for(self, ms: int) -> None:
        """Stop the daemon and start it so much later; its own clock stands still meanwhile."""
        self.now_ms += ms
        self.passed_ms = 7
        self.start()


@pytest.fixture
def machine(open_store: OpenStore) -> Any:
    store = open_store()
    with store.environment.lmdb.begin(write=True) as txn:
        write_trusted(txn, store.environment, TrustedTime(NOW_MS))
    made = Machine(store.environment, store)
    made.start()
    yield made
    pytest_twisted.blockon(Deferred.fromCoroutine(store.close()))


@pytest_twisted.ensureDeferred
async def test_the_clock_is_trusted_as_long_as_it_does_not_jump(machine: Machine) -> None:
    assert await machine.run(3) == machine.now_ms
    for ms in (HOUR_MS - 1, -MINUTE_MS, HOUR_MS, -YEAR_MS):
        machine.now_ms += ms
        assert await machine.run(1) == machine.now_ms
    machine.now_ms = -5 * MINUTE_MS
    assert await machine.run(1) == 0


@pytest_twisted.ensureDeferred
async def test_a_clock_ahead_for_less_than_a_day_is_not_trusted(machine: Machine) -> None:
    await machine.run(5)
    with logged_warnings(LogLevel.info) as lines:
        right_ms = machine.now_ms
        machine.now_ms += YEAR_MS
        assert await machine.run(24 * 60) == right_ms + DAY_MS
        assert lines == [WARNING.format(365 * 24)]
        machine.now_ms -= YEAR_MS
        assert await machine.run(1) == machine.now_ms
        assert lines == [WARNING.format(365 * 24), TRUSTED_AGAIN]
        machine.now_ms += YEAR_MS
        assert await machine.run(24 * 60) == machine.now_ms - YEAR_MS, "the clock is doubted again"


@pytest_twisted.ensureDeferred
async def test_a_machine_that_was_off_for_months_is_trusted_after_a_day(machine: Machine) -> None:
    machine.is_off_for(100 * DAY_MS)
    assert await machine.run(24 * 60) == machine.now_ms - 100 * DAY_MS
    assert await machine.run(1) == machine.now_ms
    assert await machine.run(100) == machine.now_ms


@pytest_twisted.ensureDeferred
async def test_a_minute_ahead_does_not_shorten_the_days_of_doubt(
    machine: Machine,
) -> None:
    machine.is_off_for(100 * DAY_MS)
    await machine.run(24 * 60 - 1)
    machine.now_ms += YEAR_MS
    right_ms = machine.now_ms - YEAR_MS
    assert await machine.run(3) == right_ms + 3 * MINUTE_MS
    machine.now_ms -= YEAR_MS
    assert await machine.run(1) == machine.now_ms


@pytest_twisted.ensureDeferred
async def test_the_clock_of_a_machine_off_each_night_is_trusted_days_later(
    machine: Machine,
) -> None:
    for _ in range(12):
        machine.is_off_for(16 * HOUR_MS)
        trusted_ms = await machine.run(8 * 60)
        assert machine.now_ms - 7 * DAY_MS < trusted_ms <= machine.now_ms
    assert trusted_ms > NOW_MS + 5 * DAY_MS


@pytest_twisted.ensureDeferred
async def test_a_clock_starting_in_1970_each_day_is_trusted_days_later(
    machine: Machine,
) -> None:
    with logged_warnings(LogLevel.info) as lines:
        for _ in range(12):
            machine.is_off_for(16 * HOUR_MS)
            right_ms, machine.now_ms = machine.now_ms, 0
            assert await machine.run(15) == machine.now_ms == 15 * MINUTE_MS
            machine.now_ms += right_ms
            trusted_ms = await machine.run(8 * 60)
            assert machine.now_ms - 7 * DAY_MS < trusted_ms <= machine.now_ms
    assert trusted_ms > NOW_MS + 5 * DAY_MS
    assert set(lines) <= {WARNING.format(hours) for hours in range(200)} | {TRUSTED_AGAIN}


@pytest_twisted.ensureDeferred
async def test_a_clock_behind_for_a_day_and_then_ahead_is_in_doubt(
    machine: Machine,
) -> None:
    machine.now_ms -= YEAR_MS
    for _ in range(3):
        machine.is_off_for(0)
        assert await machine.run(9 * 60) == machine.now_ms
    machine.now_ms += YEAR_MS
    assert await machine.run(24 * 60) == machine.now_ms - YEAR_MS


@pytest_twisted.ensureDeferred
async def test_a_restarted_daemon_keeps_its_trusted_time(machine: Machine) -> None:
    await machine.run(60)
    machine.is_off_for(40 * MINUTE_MS)
    assert await machine.run(1) == machine.now_ms
    await machine.run(60)
    machine.is_off_for(HOUR_MS + MINUTE_MS)
    assert await machine.run(1) < machine.now_ms
    for _ in range(5):
        trusted_ms = await machine.run(6 * 60)
        machine.is_off_for(0)
    assert trusted_ms == machine.now_ms, "what has been doubted for is lost"


@pytest_twisted.ensureDeferred
async def test_without_a_stored_time_the_clock_is_trusted_silently_after_a_day(
    machine: Machine,
) -> None:
    with machine.environment.lmdb.begin(write=True) as txn:
        txn.delete(TRUSTED_TIME, db=machine.environment.databases.meta)
    machine.start()
    with logged_warnings() as lines:
        assert await machine.run(24 * 60) == DAY_MS
        assert await machine.run(1) == machine.now_ms
    assert lines == []


@pytest_twisted.ensureDeferred
async def test_a_damaged_trusted_time_is_ignored(machine: Machine) -> None:
    for damaged in (b"", b"\0" * 28):
        with machine.environment.lmdb.begin(write=True) as txn:
            txn.put(TRUSTED_TIME, damaged, db=machine.environment.databases.meta)
        with logged_warnings() as lines:
            machine.start()
        place = "the time that was trusted last: its checksum does not match"
        assert lines == [f"a damaged part of the store is ignored: {place}"]
        assert await machine.run(1) == MINUTE_MS


@pytest_twisted.ensureDeferred
async def test_the_trusted_time_is_stored_regularly_and_later_if_full(machine: Machine) -> None:
    stored: list[object] = []
    full = [True]

    def submit(change: Any) -> "Deferred[Any]":
        if full:
            return fail(Unavailable("full", retry_after=1))
        stored.append(change)
        return machine.store.writer.submit(change)

    machine.clock = TrustedClock(machine.environment, submit, lambda: machine.passed_ms / 1000)
    assert await machine.run(15) == machine.now_ms
    full.clear()
    await machine.run(1)
    assert len(stored) == 1
    await machine.run(30)
    assert len(stored) == 4
    machine.is_off_for(0)
    assert await machine.run(1) == machine.now_ms


@pytest_twisted.ensureDeferred
async def test_hits_and_beacons_expire_by_the_trusted_time(open_store: OpenStore) -> None:
    store = open_store(retention=Retention(others=Keep(90, "nothing")))
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 3))
    ahead_ms = NOW_MS + YEAR_MS
    await store.maintain(ahead_ms, NOW_MS + MINUTE_MS)
    await store.append(views(4, 5, ahead_ms))
    await settled_by(store, ahead_ms, NOW_MS + MINUTE_MS)
    later_ms = NOW_MS + 2 * MINUTE_MS
    assert await store.append(views(1, 3, later_ms)) == [Outcome.REPEATED] * 3
    assert await store.append([unload(1, 7_000, later_ms)]) == [Outcome.STORED]
    assert sum(row["duration_ms"] for row in stored_rows(store, website)[0]) == 7_000
    assert len(stored_rows(store, website)[0]) == 5
    await settled(store, NOW_MS + 92 * DAY_MS)
    assert [row["time_ms"] for row in stored_rows(store, website)[0]] == [ahead_ms] * 2
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_flush_of_a_full_memtable_uses_the_trusted_time(
    open_store: OpenStore,
) -> None:
    store = open_store(
        sizes=Sizes(chunk_views=8, merged_members=2, counted_from=0),
        retention=Retention(others=Keep(90, "nothing")),
    )
    website = await store.add_website("example.com", 1)
    await store.append(views(1, 8))
    await store.append(views(9, 80, NOW_MS + YEAR_MS))
    await idle(store)
    assert len(store.partitions.get_or_create(website.number).leaves()) > 0, "nothing was tended"
    assert len(stored_rows(store, website)[0]) == 80
    await settled_by(store, NOW_MS + YEAR_MS, NOW_MS)
    await store.append(views(81, 160, NOW_MS + YEAR_MS))
    await idle(store)
    assert len(stored_rows(store, website)[0]) == 160
    await store.close()


@pytest_twisted.ensureDeferred
async def test_delayed_retention_is_logged_once(open_store: OpenStore) -> None:
    store = open_store(retention=Retention(others=Keep(90, "nothing")))
    passed_ms = [0]

    def clock() -> TrustedClock:
        return TrustedClock(store.environment, store.writer.submit, lambda: passed_ms[0] / 1000)

    store.clock = clock()
    await store.add_website("example.com", 1)
    await store.append(views(1, 3))
    later_ms = NOW_MS + YEAR_MS
    with logged_warnings() as lines:
        await settled_by(store, NOW_MS + 2 * DAY_MS, 0)
        assert store.retention_waits_ms(NOW_MS + 2 * DAY_MS) == 0
        assert lines == []
        store.clock = clock()
        for _ in range(2):
            await settled_by(store, later_ms, 0)
    assert lines == [
        (
            "the clock is not trusted yet: [retention] removes nothing until the daemon has run"
            " for 24 more hours"
        )
    ]
    passed_ms[0] += HOUR_MS
    assert store.retention_waits_ms(later_ms) == 23 * HOUR_MS
    passed_ms[0] += DAY_MS
    assert store.retention_waits_ms(later_ms) == 0
    await store.close()


async def settled_by(store: Store, now_ms: int, trusted_ms: int) -> None:
    await store.maintain(now_ms, trusted_ms)
    await idle(store)
