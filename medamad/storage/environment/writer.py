"""The single writer thread: changes in order, each a transaction; and a watch for stalls.

A change is a function of the transaction. It may register what is to happen once it is committed
and synced: that is where the state that questions see is replaced, before the caller is told.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final, Protocol, TypeVar, cast

import lmdb
from attrs import define, field
from twisted.internet.defer import Deferred, fail
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.domain.errors import ApiError, Unavailable
from medamad.domain.timings import Timings
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.files import DAMAGE, lack_behind
from medamad.storage.environment.state_file import StoreState, write_state
from medamad.storage.errors import Lost

MOST_S: Final = 10.0
"""How long a change may take: it is a short step, but a slow disk may need seconds to sync it."""


@define(eq=False)
class StallWatch:
    """The writer thread notes when it begins a change and when it has ended; any thread may ask.

    It stands still when `tell` has found it at the same change twice for so long: once alone is how
    it looks after all of the process was halted.
    """

    _seconds: Callable[[], float] = time.monotonic
    _begun: float | None = None
    _seen: float | None = None
    """When the change began that has taken too long, as `tell` saw last."""
    _stuck: float | None = None
    """When the change began that it saw twice."""
    _is_told: bool = False
    _log = Logger()

    def begin(self) -> None:
        """Note that a change begins."""
        self._begun = self._seconds()

    def end(self) -> None:
        """Note that it has ended."""
        self._begun = None

    @property
    def lack(self) -> str:
        """Say that the change under way does not end, "" when none has taken too long."""
        begun = self._begun
        if begun is None or begun != self._stuck:
            return ""
        return (
            f"a write into the store has not ended for {self._seconds() - begun:.0f} s, as its disk"
            " does not answer or another process holds the lock of the store"
        )

    def tell(self) -> str:
        """Look, give `lack`, and log it: once when it begins, once when it is over.

        To be called every second or so, in one thread.
        """
        begun = self._begun
        is_long = begun is not None and self._seconds() - begun >= MOST_S
        self._stuck = begun if is_long and begun == self._seen else None
        self._seen = begun if is_long else None
        lack = self.lack
        if lack and not self._is_told:
            self._log.error("no hits are taken, reading goes on: {lack}", lack=lack)
        elif self._is_told and not lack:
            self._log.info("the store is written to again")
        self._is_told = bool(lack)
        return lack


T = TypeVar("T")

_log: Final = Logger()
_RETRY_AFTER_S: Final = 10


class CallsFromThread(Protocol):
    """The part of a reactor that lets another thread speak to it."""

    def callFromThread(self, call: Callable[..., Any], /, *args: object) -> object:
        """Have `call` made in the reactor's thread."""


@define(eq=False)
class Transaction:
    """A write transaction. What is registered with `after_commit` runs in the writer thread."""

    lmdb: Txn
    _after: list[Callable[[], None]] = field(factory=list)

    def after_commit(self, call: Callable[[], None]) -> None:
        """Have `call` made once the transaction is committed; not at all if it fails."""
        self._after.append(call)


class Submit(Protocol):
    """Hands a change to the writer."""

    def __call__(self, change: Callable[[Transaction], T], /) -> "Deferred[T]":
        """Fire with what `change` returns once it is committed."""


@define(eq=False)
class _Job:
    change: Callable[[Transaction], Any]
    done: Deferred[Any]


@define(eq=False)
class Writer:
    """Owns the writer thread. `broken` is told why when the store can no longer be trusted."""

    _environment: Environment
    _reactor: CallsFromThread
    _broken: Callable[[str], None]
    commits: Timings = field(factory=Timings, init=False)
    """How long each change took that was committed."""
    stall_watch: StallWatch = field(factory=StallWatch, init=False)
    _jobs: SimpleQueue[_Job | None] = field(factory=SimpleQueue)
    _thread: Thread = field(init=False)
    _fault: str = ""
    _lack: str = ""
    _is_stopped: bool = False

    def __attrs_post_init__(self) -> None:
        self._thread = Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(self, change: Callable[[Transaction], T]) -> "Deferred[T]":
        """Have a change made. Fires with what it returned once it is committed and synced.

        Fails with what the change raised, or with Unavailable when the store cannot take it, or
        stands still; either way nothing of it is kept.
        """
        refusal = "the store is closed" if self._is_stopped else self.stall_watch.lack
        if refusal:
            return fail(Unavailable(refusal, retry_after=_RETRY_AFTER_S))
        done: Deferred[T] = Deferred()
        self._jobs.put(_Job(change, done))
        return done

    @property
    def lack(self) -> str:
        """Why changes fail, or do not end, "" when the last one did not."""
        return self._fault or self.stall_watch.lack or self._lack

    def stop(self, within_s: float | None = None) -> bool:
        """Finish all changes submitted so far, then end the thread. Segments until it has ended.

        Returns False when it has not within a time.
        """
        self._is_stopped = True
        self._jobs.put(None)
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            self.stall_watch.begin()
            try:
                result: object = self._make(job.change)
            except BaseException:  # noqa: BLE001 - the caller gets it, whatever it is
                result = Failure()
            self.stall_watch.end()
            self._reactor.callFromThread(_fire, job.done, result)

    def _make(self, change: Callable[[Transaction], T]) -> T:
        if self._fault:
            raise Unavailable(self._fault, retry_after=_RETRY_AFTER_S)
        begun = time.perf_counter()
        try:
            with self._environment.lmdb.begin(write=True) as txn:
                self._environment.check_is_ours(txn)
                transaction = Transaction(txn)
                result = change(transaction)
        except ApiError:
            raise
        except (lmdb.Error, OSError, Lost) as error:
            raise self._refusal(error) from error
        self._lack = ""
        self.commits.add(time.perf_counter() - begun)
        try:
            for call in transaction._after:  # noqa: SLF001 - its own
                call()
            self._environment.keep_room()
        except BaseException as error:
            # It is on disk, and questions do not see it: only a new start puts that right.
            self._fail(f"what was stored cannot be shown: {error!r}")
            raise
        return result

    def _refusal(self, error: lmdb.Error | OSError | Lost) -> Unavailable:
        lack = self._lack_behind(error)
        if not lack:
            # After an I/O error the next commit can appear to succeed: go on no longer.
            self._fail(f"the store has failed: {error}")
            if isinstance(error, DAMAGE):
                # A restart would lead here again.
                with suppress(OSError):
                    write_state(self._environment.path.parent, StoreState.DAMAGED, str(error))
        elif lack != self._lack:
            _log.error("changes are not stored: {lack}", lack=lack)
        self._lack = lack
        return Unavailable(lack or self._fault, retry_after=_RETRY_AFTER_S)

    def _lack_behind(self, error: lmdb.Error | OSError | Lost) -> str:
        """Return what there is too little of, "" when that is not what is wrong."""
        if isinstance(error, Lost) or self._has_given_up():
            return ""
        return lack_behind(error, self._environment.path.parent)

    def _fail(self, reason: str) -> None:
        self._fault = reason
        self._reactor.callFromThread(self._broken, reason)

    def _has_given_up(self) -> bool:
        """Return whether LMDB does nothing more, as after a write to the file's first two pages."""
        try:
            self._environment.lmdb.begin().abort()
        except lmdb.Error as error:
            return isinstance(error, lmdb.PanicError)
        return False


def _fire(done: "Deferred[Any]", result: object) -> None:
    if isinstance(result, Failure):
        done.errback(result)
    else:
        done.callback(cast("Any", result))
