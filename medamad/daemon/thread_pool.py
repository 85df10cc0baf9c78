"""What runs beside the requests: pools of threads for slow work, and tasks that come again."""

from collections.abc import Awaitable, Callable
from threading import Lock
from typing import Any, Final, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from medamad.daemon.fair_queue import Asker, FairQueue
from medamad.domain.errors import Unavailable

T = TypeVar("T")

MOST: Final = 200
"""How much work may be under way in a pool, queued or begun: a dashboard asks for 14 at once."""
_RETRY_AFTER_S: Final = 1

_log: Final = Logger()


@frozen(eq=False)
class _Work:
    do: Callable[[], Any]
    asker: Asker
    done: Deferred[Any]


@define(eq=False)
class Pool:
    """Threads for slow work of one kind, and a bounded queue before them."""

    _reactor: Any
    _threads: ThreadPool
    _most: int
    _queue: FairQueue[_Work]
    _lock: Lock = field(factory=Lock)
    """Of the queue: all else belongs to the reactor's thread."""
    _wanted: dict[_Work, None] = field(factory=dict)

    @classmethod
    def start(
        cls,
        name: str,
        threads: int,
        reactor: Any,
        most: int = MOST,
        at_once: int | None = None,
    ) -> "Pool":
        """Make a pool of up to `threads` threads, for `most` pieces of work at once.

        Of one asker no more than `at_once` are done at a time: where that is less than `threads`,
        there is a thread for another one.
        """
        queue: FairQueue[_Work] = FairQueue(threads if at_once is None else at_once)
        pool = cls(reactor, ThreadPool(0, threads, name), most, queue)
        pool._threads.start()
        return pool

    def __call__(self, work: Callable[[], T], /, asker: Asker = ()) -> "Deferred[T]":
        """Do `work` in one of the threads, when it is the turn of `asker`.

        Fails with Unavailable when there is too much; whoever asks most hears of it first. What is
        cancelled before it was begun is not done; what was begun runs to its end, and counts as
        its asker's until then.
        """
        if len(self._wanted) >= self._most and not self._make_room(asker):
            return fail(_too_much())
        this = _Work(work, asker, Deferred(lambda _: self._forget(this)))
        self._wanted[this] = None
        with self._lock:
            self._queue.add(this)
        self._threads.callInThread(self._begin)
        return this.done

    def stop(self) -> None:
        """Cancel all work, wait for what was begun, and end the threads."""
        for work in list(self._wanted):
            work.done.cancel()
        self._threads.stop()

    def _make_room(self, asker: Asker) -> bool:
        with self._lock:
            work = self._queue.to_give_way(asker)
        if work is None:
            return False
        self._forget(work)
        work.done.errback(_too_much())
        return True

    def _forget(self, work: _Work) -> None:
        self._wanted.pop(work, None)
        with self._lock:
            self._queue.remove(work)

    def _begin(self) -> None:
        """Do what may be begun, one piece after the other. Called in a thread."""
        while True:
            with self._lock:
                work = self._queue.begin()
            if work is None:
                return
            self._do(work)

    def _do(self, work: _Work) -> None:
        try:
            result = work.do()
        except BaseException:  # noqa: BLE001 - whatever it is, whoever waits for it hears of it
            result = Failure()
        with self._lock:
            self._queue.ended(work)
        self._reactor.callFromThread(self._ended, work, result)

    def _ended(self, work: _Work, result: Any) -> None:
        if work in self._wanted:
            del self._wanted[work]
            work.done.callback(result)


def _too_much() -> Unavailable:
    return Unavailable("too much is asked at once", retry_after=_RETRY_AFTER_S)


@define(eq=False)
class Repeated:
    """A task that comes again. One that fails is logged and comes again."""

    _task: Callable[[], Awaitable[None]]
    _loop: LoopingCall = field(init=False)
    _under_way: Deferred[None] | None = None

    def __attrs_post_init__(self) -> None:
        self._loop = LoopingCall(self._begin)

    def start(self, seconds: float, reactor: Any) -> None:
        """Do the task every so many seconds from now on."""
        self._loop.clock = reactor
        self._loop.start(seconds, now=False)

    def stop(self) -> None:
        """Do it no more; where it is under way, it ends at what it waits for, and says nothing."""
        self._loop.stop()
        if self._under_way is not None:
            self._under_way.cancel()

    def _begin(self) -> Deferred[None]:
        self._under_way = Deferred.fromCoroutine(self._once())
        return self._under_way

    async def _once(self) -> None:
        try:
            await self._task()
        except CancelledError:
            if self._loop.running:
                _log.failure("a periodic task was cancelled")
        except Exception:  # noqa: BLE001 - whatever it is, the next time may go well
            _log.failure("a periodic task failed")


def repeat(seconds: float, task: Callable[[], Awaitable[None]], reactor: Any) -> Repeated:
    """Do a task every so many seconds, until the result is told to stop."""
    repeated = Repeated(task)
    repeated.start(seconds, reactor)
    return repeated
