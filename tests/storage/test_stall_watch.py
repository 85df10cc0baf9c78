from collections.abc import Callable

import pytest
import pytest_twisted
from attrs import define
from support.daemon import PATIENCE_S
from support.storage.hits import NOW_MS, a_view
from support.storage.log_lines import logged_warnings
from support.storage.stalled_write import StalledWrite
from support.storage.visible_hits import paths, seen
from twisted.internet.defer import Deferred
from twisted.logger import LogLevel

from medamad.domain.errors import Unavailable
from medamad.storage.environment.writer import MOST_S, StallWatch
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome

OpenStore = Callable[..., Store]


@define
class Time:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_stalled_write_is_logged_once_when_it_begins_and_ends() -> None:
    time = Time()
    stall_watch = StallWatch(time)
    with logged_warnings(LogLevel.info) as lines:
        assert stall_watch.look() == ""
        stall_watch.begin()
        time.now += MOST_S - 1
        assert stall_watch.look() == ""
        stall_watch.end()
        time.now += MOST_S
        stall_watch.begin()
        assert stall_watch.look() == ""
        time.now += MOST_S
        # Looked at once, all of the process may have been halted meanwhile.
        assert stall_watch.look() == stall_watch.unavailable_reason == ""
        stall_watch.end()
        stall_watch.begin()
        time.now += MOST_S
        assert stall_watch.look() == stall_watch.unavailable_reason == ""
        assert stall_watch.look().startswith("a write into the store has not ended for 10 s")
        time.now += 15
        assert stall_watch.look() == stall_watch.unavailable_reason
        assert stall_watch.unavailable_reason.startswith(
            "a write into the store has not ended for 25 s"
        )
        stall_watch.end()
        assert stall_watch.unavailable_reason == ""
        assert [stall_watch.look(), stall_watch.look()] == ["", ""]
    lack, again = lines
    assert lack == (
        "hits are rejected, queries still work: a write into the store has not ended for 10 s, as"
        " its disk does not answer or another process holds the lock of the store"
    )
    assert again == "writes to the store have resumed"


@pytest_twisted.ensureDeferred
async def test_a_stalled_store_rejects_hits_until_it_recovers(
    open_store: OpenStore,
) -> None:
    store, time = open_store(), Time()
    website = await store.add_website("example.com", 1)
    store.writer.stall_watch = StallWatch(time)
    stuck = StalledWrite.in_writer(store)
    time.now += MOST_S - 1
    waiting = Deferred.fromCoroutine(store.append([a_view(path="/waits")]))
    assert store.unavailable_reason() == ""
    time.now += 1
    assert [store.stall_watch.look(), store.stall_watch.look()] == ["", store.unavailable_reason()]
    assert store.unavailable_reason().startswith("a write into the store has not ended for 10 s")
    for change in (store.append([a_view()]), store.add_website("other.example", 1)):
        with pytest.raises(Unavailable, match="has not ended for 10 s") as refused:
            await change
        assert refused.value.retry_after == 10
    with pytest.raises(Unavailable, match="has not ended for 10 s"):
        await store.maintain(NOW_MS)
    assert paths(seen(store, website)) == []
    stuck.is_released.set()
    assert await stuck.done
    assert await waiting == [Outcome.STORED]
    assert store.unavailable_reason() == ""
    assert await store.append([a_view(path="/later", beacon="l")]) == [Outcome.STORED]
    await store.maintain(NOW_MS)
    assert paths(seen(store, website)) == ["/waits", "/later"]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_stalled_write_does_not_delay_closing(open_store: OpenStore) -> None:
    store = open_store()
    stuck = StalledWrite.in_writer(store)
    with logged_warnings() as lines:
        await store.close(within_s=0.01)
    [line] = lines
    assert line == (
        f"{store.environment.path} is left open, as a write does not end;"
        " everything acknowledged is stored"
    )
    stuck.is_released.set()
    assert await stuck.done
    assert store.writer.stop(PATIENCE_S)
    store.environment.close()
    await open_store().close()
