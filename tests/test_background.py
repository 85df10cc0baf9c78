import threading

import pytest
import pytest_twisted
from support.daemon import PATIENCE_S
from support.log_failures import LoggedFailures
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from medamad.daemon.thread_pool import Pool, repeat
from medamad.domain.errors import Unavailable


@pytest_twisted.ensureDeferred
async def test_work_is_done_in_another_thread() -> None:
    pool = Pool.start("work", 1, reactor)
    assert await pool(lambda: 7) == 7
    assert await pool(threading.get_ident) != threading.get_ident()
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_work_that_fails_tells_who_waits_for_it() -> None:
    pool = Pool.start("work", 1, reactor)
    with pytest.raises(ZeroDivisionError):
        await pool(lambda: 1 // 0)
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_so_much_is_asked_at_once_and_no_more() -> None:
    pool = Pool.start("work", 1, reactor, most=3)
    go_on = threading.Event()
    asked = [pool(go_on.wait) for _ in range(3)]
    with pytest.raises(Unavailable, match="too much is asked at once"):
        await pool(lambda: 7)
    go_on.set()
    for one in asked:
        assert await one
    assert await pool(lambda: 7) == 7
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_what_nobody_waits_for_is_not_begun_and_makes_room() -> None:
    pool = Pool.start("work", 1, reactor, most=2)
    go_on, done = threading.Event(), []
    first = pool(go_on.wait)
    for number in range(5):
        given_up = pool(lambda number=number: done.append(number))
        given_up.cancel()
        with pytest.raises(CancelledError):
            await given_up
    last = pool(lambda: done.append("last"))
    go_on.set()
    await first
    await last
    assert done == ["last"]
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_what_was_begun_ends_silently_when_nobody_waits_for_it() -> None:
    pool = Pool.start("work", 1, reactor)
    begun, go_on = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go_on.wait()
        raise ZeroDivisionError

    given_up = pool(work)
    begun.wait()
    given_up.cancel()
    with pytest.raises(CancelledError):
        await given_up
    go_on.set()
    assert await pool(lambda: 7) == 7
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_another_asker_finds_a_thread_that_is_free() -> None:
    pool = Pool.start("work", 3, reactor, at_once=2)
    go_on, done = threading.Event(), []

    def work() -> None:
        go_on.wait()
        done.append("share")

    many = [pool(work, asker=("share", "a")) for _ in range(20)]
    assert await pool(lambda: 7, asker=("owner", "a")) == 7
    assert done == []
    go_on.set()
    for one in many:
        await one
    assert len(done) == 20
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_where_too_much_is_asked_whoever_asks_most_gives_way() -> None:
    pool = Pool.start("work", 1, reactor, most=4)
    begun, go_on = threading.Event(), threading.Event()

    def work() -> int:
        begun.set()
        go_on.wait()
        return 1

    many = [pool(work, asker=("share", "a")) for _ in range(4)]
    begun.wait()
    other = pool(lambda: 7, asker=("owner", "a"))
    with pytest.raises(Unavailable, match="too much is asked at once"):
        await many.pop()
    another = pool(lambda: 8, asker=("owner", "a"))
    with pytest.raises(Unavailable, match="too much is asked at once"):
        await another
    go_on.set()
    assert await other == 7
    assert [await one for one in many] == [1, 1, 1]
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_a_stop_gives_up_what_waits_and_what_was_begun() -> None:
    pool = Pool.start("work", 1, reactor)
    begun, given_up, seen = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        seen.append(given_up.wait(PATIENCE_S))

    async def ask() -> None:
        try:
            await pool(work)
        finally:
            given_up.set()

    first = Deferred.fromCoroutine(ask())
    waiting = [pool(lambda: seen.append("begun")) for _ in range(20)]
    begun.wait()
    pool.stop()
    assert seen == [True], "what was begun had heard of it before it was waited for"
    for one in (first, *waiting):
        with pytest.raises(CancelledError):
            await one


def test_a_task_comes_again_until_it_is_stopped() -> None:
    clock, seen = Clock(), []

    async def task() -> None:
        seen.append(clock.seconds())

    loop = repeat(10, task, clock)
    clock.pump([5] * 6)
    loop.stop()
    clock.pump([5] * 6)
    assert seen == [10, 20, 30]


def test_a_task_under_way_ends_silently_with_the_stop() -> None:
    clock, seen = Clock(), []
    waits_for: Deferred[None] = Deferred()

    async def task() -> None:
        seen.append("begun")
        try:
            await waits_for
        finally:
            seen.append("ended")

    loop = repeat(10, task, clock)
    clock.pump([10, 10])
    assert seen == ["begun"]
    loop.stop()
    assert seen == ["begun", "ended"]
    clock.pump([10, 10])
    assert seen == ["begun", "ended"]
    assert clock.getDelayedCalls() == []


def test_a_task_that_is_cancelled_by_others_is_logged(logged_failures: LoggedFailures) -> None:
    clock, waits_for = Clock(), [Deferred[None](), Deferred[None]()]
    begun = iter(waits_for)

    async def task() -> None:
        await next(begun)

    loop = repeat(10, task, clock)
    clock.advance(10)
    waits_for[0].cancel()
    assert len(logged_failures.take(CancelledError)) == 1
    clock.advance(10)
    assert list(begun) == [], "it comes again"
    loop.stop()


def test_a_task_that_fails_is_logged_and_comes_again(logged_failures: LoggedFailures) -> None:
    clock, seen = Clock(), []

    async def task() -> None:
        seen.append(clock.seconds())
        raise LookupError("not today")

    repeat(10, task, clock)
    clock.pump([10, 10])
    assert seen == [10, 20]
    assert len(logged_failures.take(LookupError)) == 2
