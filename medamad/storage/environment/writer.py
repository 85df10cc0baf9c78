"""The single writer thread: changes in order, each in a transaction; and a watch for stalls.

A change is a function of its transaction. What it registers to run after the commit publishes the
new state to queries; the caller's Deferred fires after that.
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
from medamad.storage.environment.files import DAMAGE, shortage_behind
from medamad.storage.environment.folder import StoreState, write_state
from medamad.storage.errors import Lost

SAME_FAILURE_S: Final = 60.0
"""Commits that fail for one reason within this time of each other are reported once."""
MOST_S: Final = 10.0
"""How long a change may take. Changes are short, but a slow disk may need seconds to sync one."""


@define(eq=False)
class StallWatch:
    """Whether the writer thread is stuck in a change. `begin` and `end` are for that thread.

    It is stuck when two looks in a row see the same change for longer than MOST_S. One look would
    also see that after the whole process was suspended.
    """

    _seconds: Callable[[], float] = time.monotonic
    _begun: float | None = None
    _seen: float | None = None
    """When the change began that the last look found too long."""
    _stuck: float | None = None
    """When the change began that two looks in a row found too long."""
    _is_reported: bool = False
    _log = Logger()

    def begin(self) -> None:
        """Record that a change begins."""
        self._begun = self._seconds()

    def end(self) -> None:
        """Record that it has ended."""
        self._begun = None

    @property
    def unavailable_reason(self) -> str:
        """Why no hits are stored: a change is stuck; "" otherwise. For any thread."""
        begun = self._begun
        if begun is None or begun != self._stuck:
            return ""
        return (
            f"a write into the store has not ended for {self._seconds() - begun:.0f} s, as its disk"
            " does not answer or another process holds the lock of the store"
        )

    def look(self) -> str:
        """Return `unavailable_reason` now; log when a change gets stuck and when it ends.

        Call it every second or so, in one thread.
        """
        begun = self._begun
        is_long = begun is not None and self._seconds() - begun >= MOST_S
        self._stuck = begun if is_long and begun == self._seen else None
        self._seen = begun if is_long else None
        reason = self.unavailable_reason
        if reason and not self._is_reported:
            self._log.error("hits are rejected, queries still work: {reason}", reason=reason)
        elif self._is_reported and not reason:
            self._log.info("writes to the store have resumed")
        self._is_reported = bool(reason)
        return reason


T = TypeVar("T")

_log: Final = Logger()
_RETRY_AFTER_S: Final = 10


class CallsFromThread(Protocol):
    """The part of a reactor that another thread may use."""

    def callFromThread(self, call: Callable[..., Any], /, *args: object) -> object:
        """Call `call` in the reactor's thread."""


@define(eq=False)
class Transaction:
    """A write transaction."""

    lmdb: Txn
    _after: list[Callable[[], None]] = field(factory=list)

    def after_commit(self, call: Callable[[], None]) -> None:
        """Call `call` in the writer thread after the commit, or never if the transaction fails."""
        self._after.append(call)


class Submit(Protocol):
    """Submits a change to the writer."""

    def __call__(self, change: Callable[[Transaction], T], /) -> "Deferred[T]":
        """Fire with what `change` returns once it is committed."""


@define(eq=False)
class _Submitted:
    """A change that waits for the writer thread."""

    change: Callable[[Transaction], Any]
    done: Deferred[Any]


@define(eq=False)
class Writer:
    """Owns the writer thread. `broken` gets the reason when the store can no longer be trusted."""

    _environment: Environment
    _reactor: CallsFromThread
    _broken: Callable[[str], None]
    commits: Timings = field(factory=Timings, init=False)
    """Durations of the committed changes."""
    failures: int = field(default=0, init=False)
    """How often commits began to fail."""
    stall_watch: StallWatch = field(factory=StallWatch, init=False)
    _seconds: Callable[[], float] = time.monotonic
    _failed: str = ""
    """Why the last commit that failed did so."""
    _failed_at: float = 0.0
    _submitted: SimpleQueue[_Submitted | None] = field(factory=SimpleQueue)
    _thread: Thread = field(init=False)
    _failure: str = ""
    _shortage: str = ""
    _is_stopped: bool = False

    def __attrs_post_init__(self) -> None:
        self._thread = Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def submit(self, change: Callable[[Transaction], T]) -> "Deferred[T]":
        """Submit a change; fire with what it returns once it is committed and synced.

        Fail with what the change raises, or with Unavailable when the store cannot take it or the
        writer is stuck. Then nothing of the change is kept.
        """
        refusal = "the store is closed" if self._is_stopped else self.stall_watch.unavailable_reason
        if refusal:
            return fail(Unavailable(refusal, retry_after=_RETRY_AFTER_S))
        done: Deferred[T] = Deferred()
        self._submitted.put(_Submitted(change, done))
        return done

    @property
    def unavailable_reason(self) -> str:
        """Why changes fail or are stuck; "" if the last one was stored."""
        return self._failure or self.stall_watch.unavailable_reason or self._shortage

    def stop(self, within_s: float | None = None) -> bool:
        """Finish all submitted changes and end the thread; return whether it ended in time.

        Blocks until then.
        """
        self._is_stopped = True
        self._submitted.put(None)
        self._thread.join(within_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (submitted := self._submitted.get()) is not None:
            self.stall_watch.begin()
            try:
                result: object = self._commit(submitted.change)
            except BaseException:  # noqa: BLE001 - the caller gets it, whatever it is
                result = Failure()
            self.stall_watch.end()
            self._reactor.callFromThread(_fire, submitted.done, result)

    def _commit(self, change: Callable[[Transaction], T]) -> T:
        if self._failure:
            raise Unavailable(self._failure, retry_after=_RETRY_AFTER_S)
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
        self._shortage = ""
        self.commits.add(time.perf_counter() - begun)
        try:
            for call in transaction._after:  # noqa: SLF001 - its own
                call()
            self._environment.keep_room()
        except BaseException as error:
            # It is on disk, but queries do not see it. Only a restart puts that right.
            self._fail(f"what was stored cannot be shown: {error!r}")
            raise
        return result

    def _refusal(self, error: lmdb.Error | OSError | Lost) -> Unavailable:
        reason = self._shortage_behind(error)
        if not reason:
            # After an I/O error the next commit may only appear to succeed.
            self._fail(f"the store has failed: {error}")
            if isinstance(error, DAMAGE):
                # A restart would fail the same way.
                with suppress(OSError):
                    write_state(self._environment.path.parent, StoreState.DAMAGED, str(error))
        self._shortage = reason
        self._report(reason or self._failure)
        return Unavailable(reason or self._failure, retry_after=_RETRY_AFTER_S)

    def _report(self, reason: str) -> None:
        """Log and count failing commits once: on a full disk, small ones succeed in between."""
        now = self._seconds()
        if reason != self._failed or now - self._failed_at > SAME_FAILURE_S:
            self.failures += 1
            _log.error("changes are not stored: {reason}", reason=reason)
        self._failed, self._failed_at = reason, now

    def _shortage_behind(self, error: lmdb.Error | OSError | Lost) -> str:
        """Return the shortage that caused an error, "" if it has another cause."""
        if isinstance(error, Lost) or self._has_given_up():
            return ""
        return shortage_behind(error, self._environment.path.parent)

    def _fail(self, reason: str) -> None:
        self._failure = reason
        self._reactor.callFromThread(self._broken, reason)

    def _has_given_up(self) -> bool:
        """Return whether LMDB refuses all further work, as after a failed write of a meta page."""
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
