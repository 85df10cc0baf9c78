"""What a start does with the whole store before it opens it: bring it up to date, compact it."""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final, TypeAlias

from attrs import define, field
from twisted.logger import Logger

from medamad.daemon.messages import reason_of
from medamad.daemon.systemd import BUSY, Supervisor
from medamad.domain.errors import Unavailable
from medamad.storage.compact import (
    STILL_DELETING,
    ask_to_compact,
    compact,
    compaction_asked,
)
from medamad.storage.errors import DamagedStore, NoStore, StoreError, StoreInUse
from medamad.storage.migrations import is_outdated, migrate_store

InThread: TypeAlias = Callable[[Callable[[], Any]], Awaitable[Any]]
_NOTIFY_EVERY_S: Final = 60.0
_log: Final = Logger()


@define(eq=False)
class StoreWork:
    """Work of a start on the whole store: says how far it is, and ends when it is cancelled."""

    _supervisor: Supervisor
    text: str = ""
    """What is being done, and how much of it has been."""
    _title: str = ""
    _is_cancelled: Event = field(factory=Event)
    _notified_at: float = float("-inf")

    @contextmanager
    def during(self, title: str) -> Iterator[None]:
        """Begin some work, which ends with the context even if its thread goes on."""
        self.text = self._title = title
        try:
            yield
        except BaseException:
            self._is_cancelled.set()
            raise
        finally:
            self.text = ""
            self._notified_at = float("-inf")
            self._supervisor.notify("STATUS=")

    def report(self, phase: str, done: int, total: int) -> None:
        """Take a step of the work, in its thread. Raises Unavailable when cancelled."""
        if self._is_cancelled.is_set():
            raise Unavailable("the daemon stops", retry_after=1)
        share = f" ({100 * done // total} %)" if total else ""
        self.text = f"{self._title}: {phase}{share}"
        now = time.monotonic()
        if now - self._notified_at >= _NOTIFY_EVERY_S:
            self._notified_at = now
            self._supervisor.notify(f"STATUS={self.text}", BUSY)


async def bring_up_to_date(
    data_dir: Path, map_size: int, in_thread: InThread, work: StoreWork
) -> None:
    """Bring the store of an earlier build up to date. Raises StoreError, OSError."""
    if not is_outdated(data_dir):
        return
    with work.during("Bringing the store up to date"):
        await in_thread(partial(migrate_store, data_dir, map_size, work.report))


async def compact_if_asked(data_dir: Path, in_thread: InThread, work: StoreWork) -> None:
    """Compact the store if it was asked for. Raises DamagedStore, StoreInUse.

    If it fails for another reason, the store is served as it is and the next start tries again.
    """
    if compaction_asked(data_dir) is None:
        return
    _log.info("the store is compacted, as was asked for")
    try:
        with work.during("Compacting the store"):
            done = await in_thread(partial(compact, data_dir, work.report))
    except (NoStore, StoreInUse, DamagedStore):
        raise
    except (StoreError, OSError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        _log.error("the store could not be compacted: {reason}", reason=reason)
        # A disk may have no room for the reason either.
        with suppress(OSError):
            ask_to_compact(data_dir, reason)
    else:
        _log.info(
            "the store was compacted: {after} bytes instead of {before}",
            after=done.after_bytes,
            before=done.before_bytes,
        )
        if done.is_deleting:
            _log.warn("{warning}", warning=STILL_DELETING)
