"""Pools of threads for slow work, and periodic tasks."""

from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from threading import Lock, Thread
from typing import Any, Final, TypeAlias, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure
from twisted.python.threadpool import ThreadPool

from medamad.domain.errors import Unavailable
from medamad.domain.fair_queue import FairQueue

T = TypeVar("T")

MAX_WORK: Final = 200
"""How many pieces of work may be queued or running in a pool: a dashboard sends 14 at once."""
_RETRY_AFTER_S: Final = 1

_log: Final = Logger()


Client: TypeAlias = tuple[Hashable, ...]
"""Whose work it is: a token or share link, and the network from which it is used.

Tokens and links alternate, and so do the networks of each. The empty tuple is the daemon itself,
whose work comes first.
"""


@frozen(eq=False)
class _Work:
    do: Callable[[], Any]
    client: Client
    done: Deferred[Any]


@define
class WorkQueue:
    """The waiting work, and how much of each client is running.

    At most `per_client` pieces of a client, by its first part, run at a time.
    """

    per_client: int
    _waiting: OrderedDict[Client, FairQueue[_Work]] = field(factory=OrderedDict)
    """By the first part of the client; the next to be served first."""
    _under_way: Counter[Client] = field(factory=Counter)

    def add(self, work: _Work) -> None:
        """Add work."""
        who = work.client[:1]
        if who not in self._waiting:
            self._waiting[who] = FairQueue()
            if not who:
                self._waiting.move_to_end(who, last=False)
        self._waiting[who].add(work.client, work)

    def remove(self, work: _Work) -> None:
        """Remove work, if it waits."""
        who = work.client[:1]
        if who in self._waiting:
            self._waiting[who].remove(work)
            self._forget_empty(who)

    def begin(self) -> _Work | None:
        """Take the next work that may begin, None for none. Call `ended` afterwards."""
        for who, works in self._waiting.items():
            if self._under_way[who] < self.per_client:
                work = works.pop()
                self._under_way[who] += 1
                if who:
                    self._waiting.move_to_end(who)
                self._forget_empty(who)
                return work
        return None

    def ended(self, work: _Work) -> None:
        """Count work as running no more."""
        self._under_way -= Counter({work.client[:1]: 1})

    def pop_excess(self, client: Client) -> _Work | None:
        """Remove and return the work to drop for new work of `client`; None if none should be.

        It is the latest work of the client that has most. None if that is the same client.
        """
        if not client:
            return None
        who = client[:1]
        own = self._waiting.get(who, FairQueue[_Work]())
        largest = max(self._waiting, key=lambda one: len(self._waiting[one]), default=who)
        works = self._waiting.get(largest, own)
        if len(works) <= len(own) + 1:
            largest, works = who, own
        most = max(works.owners(), key=works.count, default=client)
        if works is own and works.count(most) <= works.count(client) + 1:
            return None
        work = works.pop_latest(most)
        self._forget_empty(largest)
        return work

    def _forget_empty(self, who: Client) -> None:
        if not self._waiting[who]:
            del self._waiting[who]


@define(eq=False)
class Pool:
    """Threads for slow work of one kind, and a bounded queue before them."""

    _reactor: Any
    _threads: ThreadPool
    _max_work: int
    _queue: WorkQueue
    _lock: Lock = field(factory=Lock)
    """Of the queue: all else belongs to the reactor's thread."""
    _unfinished: dict[_Work, None] = field(factory=dict)

    @classmethod
    def start(
        cls,
        name: str,
        threads: int,
        reactor: Any,
        max_work: int = MAX_WORK,
        per_client: int | None = None,
    ) -> "Pool":
        """Start a pool of up to `threads` threads, for `max_work` pieces of work at a time.

        At most `per_client` of a client run at a time: if that is less than `threads`, a thread is
        left for other clients.
        """
        queue = WorkQueue(threads if per_client is None else per_client)
        pool = cls(reactor, ThreadPool(0, threads, name), max_work, queue)
        # So that only `stop` waits for them, not the end of the process.
        factory = partial(Thread, daemon=True)
        pool._threads.threadFactory = factory  # type: ignore[assignment] # need not be a class
        pool._threads.start()
        return pool

    @property
    def size(self) -> int:
        """How many pieces of work wait or run."""
        return len(self._unfinished)

    def __call__(self, work: Callable[[], T], /, client: Client = ()) -> "Deferred[T]":
        """Run `work` in one of the threads, when it is the client's turn.

        Fails with Unavailable if there is too much; work of the client that has most is dropped
        first. Cancelled work that has not begun is not run; any other runs to its end, and counts
        as its client's until then.
        """
        if self.size >= self._max_work and not self._make_room(client):
            return fail(_too_much())
        this = _Work(work, client, Deferred(lambda _: self._forget(this)))
        self._unfinished[this] = None
        with self._lock:
            self._queue.add(this)
        self._threads.callInThread(self._begin)
        return this.done

    def stop(self) -> None:
        """Cancel all work, wait for what has begun, and end the threads."""
        for work in list(self._unfinished):
            work.done.cancel()
        self._threads.stop()

    def _make_room(self, client: Client) -> bool:
        with self._lock:
            work = self._queue.pop_excess(client)
        if work is None:
            return False
        del self._unfinished[work]
        work.done.errback(_too_much())
        return True

    def _forget(self, work: _Work) -> None:
        self._unfinished.pop(work, None)
        with self._lock:
            self._queue.remove(work)

    def _begin(self) -> None:
        """Run all work that may begin. Called in a thread."""
        while True:
            with self._lock:
                work = self._queue.begin()
            if work is None:
                return
            self._do(work)

    def _do(self, work: _Work) -> None:
        try:
            result = work.do()
        except BaseException:  # noqa: BLE001 - any error is passed on to the caller
            result = Failure()
        with self._lock:
            self._queue.ended(work)
        self._reactor.callFromThread(self._ended, work, result)

    def _ended(self, work: _Work, result: Any) -> None:
        if work in self._unfinished:
            del self._unfinished[work]
            work.done.callback(result)


def _too_much() -> Unavailable:
    return Unavailable("too much is requested at once", retry_after=_RETRY_AFTER_S)


@define(eq=False)
class Repeated:
    """A periodic task. A failure is logged, and the task runs again the next time."""

    _task: Callable[[], Awaitable[None]]
    _loop: LoopingCall = field(init=False)
    _under_way: Deferred[None] | None = None

    def __attrs_post_init__(self) -> None:
        self._loop = LoopingCall(self._begin)

    def start(self, seconds: float, reactor: Any, *, now: bool) -> None:
        """Run the task at an interval, `now` or after the first one."""
        self._loop.clock = reactor
        self._loop.start(seconds, now=now)

    def stop(self) -> None:
        """Stop the repetition; cancel the task silently if it is running."""
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
        except Exception:  # noqa: BLE001 - the next time may go well
            _log.failure("a periodic task failed")


def repeat(
    seconds: float, task: Callable[[], Awaitable[None]], reactor: Any, *, now: bool = False
) -> Repeated:
    """Run a task at an interval, until the returned object is stopped."""
    repeated = Repeated(task)
    repeated.start(seconds, reactor, now=now)
    return repeated
