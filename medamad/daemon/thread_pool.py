"""Pools of threads for slow work, and periodic tasks."""

from collections import Counter
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from threading import Thread
from typing import Any, Final, TypeAlias, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from medamad.domain.errors import Unavailable
from medamad.domain.fair_queue import FairQueue

T = TypeVar("T")

MAX_WORK: Final = 200
"""How many pieces of work may be queued or running in a pool: a dashboard sends 14 at once."""
_RETRY_AFTER_S: Final = 1

_log: Final = Logger()


Client: TypeAlias = tuple[Hashable, ...]
"""Whose work it is: a caller (`web.auth.Caller.identity`), and the network that it calls from.

The empty tuple is the daemon itself.
"""


@frozen(eq=False)
class _Work:
    do: Callable[[], Any]
    client: Client
    done: Deferred[Any]


@define(eq=False)
class Pool:
    """Threads for slow work of one kind, and a bounded queue in which clients take turns.

    Used in the reactor's thread.
    """

    _reactor: Any
    _threads: ThreadPool
    _max_work: int
    _per_client: int
    _waiting: FairQueue[_Work] = field(factory=FairQueue)
    _running: list[_Work] = field(factory=list)

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

        At most `per_client` of a client, by its first part, run at a time: if that is less than
        `threads`, a thread is left for other clients.
        """
        pool = cls(reactor, ThreadPool(0, threads, name), max_work, per_client or threads)
        # So that only `stop` waits for them, not the end of the process.
        factory = partial(Thread, daemon=True)
        pool._threads.threadFactory = factory  # type: ignore[assignment] # need not be a class
        pool._threads.start()
        return pool

    @property
    def size(self) -> int:
        """How many pieces of work wait or run."""
        return len(self._waiting) + len(self._running)

    def __call__(self, work: Callable[[], T], /, client: Client = ()) -> "Deferred[T]":
        """Run `work` in one of the threads, when it is the client's turn.

        Fails with Unavailable if there is too much; work of the client that has most is dropped
        first. Cancelled work that has not begun is not run; any other runs to its end, and counts
        as its client's until then.
        """
        if self.size >= self._max_work and not self._make_room(client):
            return fail(_too_much())
        this = _Work(work, client, Deferred(lambda _: self._waiting.remove(this)))
        self._waiting.add(client, this)
        self._begin()
        return this.done

    def stop(self) -> None:
        """Cancel all work, wait for what has begun, and end the threads."""
        for work in (*self._waiting.pop_all(), *self._running):
            work.done.cancel()
        self._threads.stop()

    def _make_room(self, client: Client) -> bool:
        """Drop the latest work of the client that has most, unless that is this one."""
        waiting = Counter([*(work.client for work in self._waiting), client])
        by_first_part: Counter[Client] = Counter()
        for one, count in waiting.items():
            by_first_part[one[:1]] += count

        def weight(one: Client) -> tuple[int, int]:
            return by_first_part[one[:1]], waiting[one]

        most = max(waiting, key=weight)
        if not client or weight(most) <= weight(client):
            return False
        self._waiting.pop_latest(most).done.errback(_too_much())
        return True

    def _begin(self) -> None:
        """Run the work that may begin, that of the tokens and links of which least runs first."""
        while self._waiting and len(self._running) < self._threads.max:
            running = [work.client[:1] for work in self._running]
            client = min(self._waiting.owners(), key=lambda one: running.count(one[:1]))
            if running.count(client[:1]) >= self._per_client:
                return
            work = self._waiting.pop_of(client)
            self._running.append(work)
            self._threads.callInThreadWithCallback(partial(self._return, work), work.do)

    def _return(self, work: _Work, _ok: bool, result: Any) -> None:
        self._reactor.callFromThread(self._ended, work, result)

    def _ended(self, work: _Work, result: Any) -> None:
        self._running.remove(work)
        self._begin()
        if not work.done.called:
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
