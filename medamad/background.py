"""What runs beside the requests: pools of threads for slow work, and tasks that come again."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

from medamad.model.errors import Unavailable

T = TypeVar("T")

MOST: Final = 200
"""How much work may be under way in a pool, queued or begun: a dashboard asks for 14 at once."""
_RETRY_AFTER_S: Final = 1

_log: Final = Logger()


@frozen
class Pool:
    """Threads for slow work of one kind, and a bounded queue before them."""

    _reactor: Any
    _threads: ThreadPool
    _most: int
    _wanted: set[object] = field(factory=set)

    @classmethod
    def start(cls, name: str, threads: int, reactor: Any, most: int = MOST) -> "Pool":
        """Make a pool of up to `threads` threads, for `most` pieces of work at once."""
        pool = cls(reactor, ThreadPool(0, threads, name), most)
        pool._threads.start()
        return pool

    def __call__(self, work: Callable[[], T], /) -> "Deferred[T]":
        """Do `work` in one of the threads.

        Fails with Unavailable when there is too much. What is cancelled before it was begun is not
        done; what was begun runs to its end.
        """
        if len(self._wanted) >= self._most:
            return fail(Unavailable("too much is asked at once", retry_after=_RETRY_AFTER_S))
        this = object()
        self._wanted.add(this)

        def begin() -> T:
            if this not in self._wanted:
                raise CancelledError
            return work()

        def ended(result: Any) -> Any:
            self._wanted.discard(this)
            return result

        return deferToThreadPool(self._reactor, self._threads, begin).addBoth(ended)

    def stop(self) -> None:
        """Wait for the work that was begun, and end the threads."""
        self._threads.stop()


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
