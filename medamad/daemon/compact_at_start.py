"""Compact the store at a start that was asked to."""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

from attrs import define, field
from twisted.logger import Logger

from medamad.daemon.messages import reason_of
from medamad.daemon.systemd import BUSY, Supervisor
from medamad.domain.errors import Unavailable
from medamad.storage.compact import (
    STILL_DELETING,
    Compacted,
    ask_to_compact,
    compact,
    compaction_asked,
)
from medamad.storage.errors import DamagedStore, NoStore, StoreError, StoreInUse

_NOTIFY_EVERY_S: Final = 60.0
_log: Final = Logger()


async def compact_if_asked(
    data_dir: Path,
    in_thread: Callable[[Callable[[], Compacted]], Awaitable[Compacted]],
    supervisor: Supervisor,
) -> None:
    """Compact the store if it was asked for. Raises DamagedStore, StoreInUse.

    If it fails for another reason, the store is served as it is and the next start tries again.
    """
    if compaction_asked(data_dir) is None:
        return
    _log.info("the store is compacted, as was asked for")
    work = _Work(supervisor)
    try:
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
    finally:
        work.is_cancelled.set()
        supervisor.notify("STATUS=")


@define(eq=False)
class _Work:
    """Reports the progress to the supervisor, and ends the work when the start is cancelled."""

    _supervisor: Supervisor
    is_cancelled: Event = field(factory=Event)
    _notified_at: float = float("-inf")

    def report(self, phase: str, done: int, total: int) -> None:
        """Take a step of the work, in its thread. Raises Unavailable when cancelled."""
        if self.is_cancelled.is_set():
            raise Unavailable("the daemon stops", retry_after=1)
        now = time.monotonic()
        if now - self._notified_at >= _NOTIFY_EVERY_S:
            self._notified_at = now
            share = f" ({100 * done // total} %)" if total else ""
            self._supervisor.notify(f"STATUS=Compacting the store: {phase}{share}", BUSY)
