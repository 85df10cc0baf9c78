"""What runs beside the requests: pools of threads for slow work, and tasks that come again."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from attrs import frozen
from twisted.internet.defer import Deferred
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


def repeat(seconds: float, task: Callable[[], Awaitable[None]], reactor: Any) -> LoopingCall:
    """Do a task every so many seconds, until the result is told to stop.

    One that fails is logged and comes again.
    """

    async def once() -> None:
        try:
            await task()
        except Exception:  # noqa: BLE001 - whatever it is, the next time may go well
            _log.failure("a periodic task failed")

    loop = LoopingCall(lambda: Deferred.fromCoroutine(once()))
    loop.clock = reactor
    loop.start(seconds, now=False)
    return loop
