"""What runs beside the requests: pools of threads for slow work, and tasks that come again."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import LoopingCall
from twisted.internet.threads import deferToThreadPool
from twisted.logger import Logger
from twisted.python.threadpool import ThreadPool

T = TypeVar("T")

_log: Final = Logger()


@frozen
class Pool:
    """Threads for slow work of one kind."""

    _reactor: Any
    _threads: ThreadPool

    @classmethod
    def start(cls, name: str, threads: int, reactor: Any) -> "Pool":
        """Make a pool of up to `threads` threads."""
        pool = cls(reactor, ThreadPool(0, threads, name))
        pool._threads.start()
        return pool

    def __call__(self, work: Callable[[], T], /) -> "Deferred[T]":
        """Do `work` in one of the threads."""
        return deferToThreadPool(self._reactor, self._threads, work)

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
