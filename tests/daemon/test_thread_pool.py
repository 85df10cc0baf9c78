"""Thread pools, their queue, and periodic tasks."""

import subprocess
import sys
import threading

import pytest
import pytest_twisted
from attrs import define, field
from support.daemon import PATIENCE_S
from support.log_failures import LoggedFailures
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock

from medamad.daemon.thread_pool import Client, Pool, repeat
from medamad.domain.errors import Unavailable


@pytest_twisted.ensureDeferred
async def test_work_is_done_in_another_thread() -> None:
    pool = Pool.start("work", 1, reactor)
    assert await pool(lambda: 7) == 7
    assert await pool(threading.get_ident) != threading.get_ident()
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_an_exception_is_raised_to_the_caller() -> None:
    pool = Pool.start("work", 1, reactor)
    with pytest.raises(ZeroDivisionError):
        await pool(lambda: 1 // 0)
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_the_work_of_a_pool_is_bounded() -> None:
    pool = Pool.start("work", 1, reactor, max_work=3)
    go_on = threading.Event()
    asked = [pool(go_on.wait) for _ in range(3)]
    with pytest.raises(Unavailable, match="too much is requested at once"):
        await pool(lambda: 7)
    go_on.set()
    for one in asked:
        assert await one
    assert await pool(lambda: 7) == 7
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_cancelled_work_is_not_begun_and_makes_room() -> None:
    pool = Pool.start("work", 1, reactor, max_work=2)
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
async def test_cancelled_work_that_was_begun_ends_silently() -> None:
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
async def test_a_thread_is_left_for_another_client() -> None:
    pool = Pool.start("work", 3, reactor, per_client=2)
    go_on, done = threading.Event(), []

    def work() -> None:
        go_on.wait()
        done.append("share")

    many = [pool(work, client=("share", "a")) for _ in range(20)]
    assert await pool(lambda: 7, client=("owner", "a")) == 7
    assert done == []
    go_on.set()
    for one in many:
        await one
    assert len(done) == 20
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_in_a_full_pool_the_client_with_most_work_loses_some() -> None:
    pool = Pool.start("work", 1, reactor, max_work=4)
    begun, go_on = threading.Event(), threading.Event()

    def work() -> int:
        begun.set()
        go_on.wait()
        return 1

    many = [pool(work, client=("share", "a")) for _ in range(4)]
    begun.wait()
    other = pool(lambda: 7, client=("owner", "a"))
    with pytest.raises(Unavailable, match="too much is requested at once"):
        await many.pop()
    another = pool(lambda: 8, client=("owner", "a"))
    with pytest.raises(Unavailable, match="too much is requested at once"):
        await another
    go_on.set()
    assert await other == 7
    assert [await one for one in many] == [1, 1, 1]
    pool.stop()


OWNER: Client = ("owner", "home")
SHARE: Client = ("share", "home")


@define
class Busy:
    """A pool of one thread, which is busy until `done` is awaited."""

    pool: Pool = field(factory=lambda: Pool.start("work", 1, reactor, max_work=100))
    asked: list[Deferred[object]] = field(factory=list)
    order: list[tuple[Client, int]] = field(factory=list)
    go_on: threading.Event = field(factory=threading.Event)

    def __attrs_post_init__(self) -> None:
        self.asked.append(self.pool(self.go_on.wait))

    def ask(self, client: Client, count: int = 1) -> list[Deferred[object]]:
        """Add work of a client that waits."""
        asked = [
            self.pool(lambda number=number: self.order.append((client, number)), client=client)
            for number in range(count)
        ]
        self.asked += asked
        return asked

    async def done(self) -> list[tuple[Client, int]]:
        """Return the clients and the numbers of their work, in the order in which it was done."""
        self.go_on.set()
        for one in self.asked:
            if not one.called:
                await one
        self.pool.stop()
        return self.order


@pytest_twisted.ensureDeferred
async def test_clients_alternate() -> None:
    busy = Busy()
    busy.ask(SHARE, 8)
    busy.ask(OWNER, 3)
    order = await busy.done()
    assert [client for client, _ in order] == [SHARE, OWNER] * 3 + [SHARE] * 5
    for client, count in ((SHARE, 8), (OWNER, 3)):
        assert [number for who, number in order if who == client] == list(range(count))


@pytest_twisted.ensureDeferred
async def test_the_networks_of_a_share_link_alternate() -> None:
    busy = Busy()
    crowd = [("share", f"network {number}") for number in range(20)]
    for client in crowd:
        busy.ask(client, 2)
    assert [client for client, _ in await busy.done()] == crowd * 2


@pytest_twisted.ensureDeferred
async def test_work_begins_of_the_link_of_which_least_runs() -> None:
    pool = Pool.start("work", 2, reactor)
    go_on, ends = threading.Event(), threading.Event()
    order: list[str] = []
    first = pool(go_on.wait, client=("share", "a"))
    second = pool(ends.wait, client=("share", "b"))
    last = pool(lambda: order.append("share"), client=("share", "c"))
    other = pool(lambda: order.append("owner"), client=OWNER)
    ends.set()
    for one in (second, other, last):
        await one
    assert order == ["owner", "share"]
    go_on.set()
    await first
    pool.stop()


@pytest_twisted.ensureDeferred
async def test_the_running_work_of_a_client_is_bounded_over_its_networks() -> None:
    pool = Pool.start("work", 3, reactor, per_client=2)
    go_on, begun = threading.Event(), threading.Semaphore(0)

    def work() -> None:
        begun.release()
        go_on.wait()

    many = [pool(work, client=("share", network)) for network in "abcd"]
    for _ in range(2):
        begun.acquire()
    assert await pool(lambda: 7, client=OWNER) == 7
    assert not begun.acquire(blocking=False)
    go_on.set()
    for one in many:
        await one
    pool.stop()


@pytest.mark.parametrize(
    ("waiting", "client", "loser"),
    [
        ((), OWNER, None),
        (((SHARE, 1),), OWNER, None),
        (((SHARE, 2),), OWNER, SHARE),
        (((SHARE, 9),), SHARE, None),
        (((SHARE, 9), (OWNER, 8)), OWNER, None),
        (((SHARE, 9), (OWNER, 7)), OWNER, SHARE),
        (((SHARE, 9), (OWNER, 7)), SHARE, None),
        (((("share", "a"), 4), (("share", "b"), 5), (OWNER, 6)), OWNER, ("share", "b")),
        (((("share", "a"), 4), (("share", "b"), 5), (OWNER, 6)), SHARE, ("share", "b")),
        (((("share", "a"), 1), (("share", "b"), 1), (OWNER, 1)), SHARE, None),
        (((SHARE, 9),), (), None),
        ((((), 2),), OWNER, ()),
    ],
)
@pytest_twisted.ensureDeferred
async def test_the_client_with_most_work_loses_the_latest(
    waiting: tuple[tuple[Client, int], ...], client: Client, loser: Client | None
) -> None:
    busy = Busy(Pool.start("work", 1, reactor, max_work=1 + sum(count for _, count in waiting)))
    asked = {one: busy.ask(one, count) for one, count in waiting}
    (newcomer,) = busy.ask(client)
    refused = newcomer if loser is None else asked[loser][-1]
    with pytest.raises(Unavailable, match="too much is requested at once"):
        await refused
    assert len(await busy.done()) == sum(count for _, count in waiting)


@pytest_twisted.ensureDeferred
async def test_stopping_cancels_what_waits_and_what_was_begun() -> None:
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
    assert seen == [True], "it was cancelled before the pool waited for it"
    for one in (first, *waiting):
        with pytest.raises(CancelledError):
            await one


def test_the_end_of_the_process_does_not_wait_for_work() -> None:
    program = """
from threading import Event
from twisted.internet import reactor
from medamad.daemon.thread_pool import Pool

begun = Event()
Pool.start("work", 1, reactor)(lambda: begun.set() or Event().wait())
begun.wait()
"""
    command = [sys.executable, "-c", program]
    subprocess.run(command, check=True, timeout=PATIENCE_S)


def test_a_periodic_task_runs_until_it_is_stopped() -> None:
    clock, seen = Clock(), []

    async def task() -> None:
        seen.append(clock.seconds())

    loop = repeat(10, task, clock)
    clock.pump([5] * 6)
    loop.stop()
    clock.pump([5] * 6)
    assert seen == [10, 20, 30]


def test_a_periodic_task_may_begin_at_once() -> None:
    clock, seen = Clock(), []

    async def task() -> None:
        seen.append(clock.seconds())

    repeat(10, task, clock, now=True)
    clock.advance(10)
    assert seen == [0, 10]


def test_stopping_cancels_a_running_task_silently() -> None:
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


def test_a_task_cancelled_by_others_is_logged(logged_failures: LoggedFailures) -> None:
    clock, waits_for = Clock(), [Deferred[None](), Deferred[None]()]
    begun = iter(waits_for)

    async def task() -> None:
        await next(begun)

    loop = repeat(10, task, clock)
    clock.advance(10)
    waits_for[0].cancel()
    assert len(logged_failures.take(CancelledError)) == 1
    clock.advance(10)
    assert list(begun) == [], "it runs again"
    loop.stop()


def test_a_failed_task_is_logged_and_runs_again(logged_failures: LoggedFailures) -> None:
    clock, seen = Clock(), []

    async def task() -> None:
        seen.append(clock.seconds())
        raise LookupError("not today")

    repeat(10, task, clock)
    clock.pump([10, 10])
    assert seen == [10, 20]
    assert len(logged_failures.take(LookupError)) == 2
