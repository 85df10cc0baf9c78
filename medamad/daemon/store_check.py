"""Read the trees of the store after an unclean shutdown; report a damaged store to commands."""

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from attrs import define
from twisted.logger import Logger

from medamad.admin.import_requests import ImportDays, ImportRows
from medamad.admin.imports import BeginImport, FinishImport, HoldImport, UndoImport
from medamad.admin.protocol import (
    AdminRequest,
    Configuration,
    DaemonState,
    GetConfiguration,
    Status,
)
from medamad.admin.server import Handlers, ReportProgress
from medamad.build import VERSION, commit
from medamad.config.schema import Config
from medamad.daemon.systemd import BUSY, Supervisor
from medamad.domain.errors import Unavailable
from medamad.storage.environment.environment import FILE_NAME, needs_check
from medamad.storage.environment.files import check_is_store
from medamad.storage.environment.folder import (
    STATE_NAME,
    StoreState,
    read_damage,
    read_state,
    write_state,
)
from medamad.storage.environment.tree_check import DamagedValue, TreeCheck
from medamad.storage.errors import DamagedStore, StoreError

CHECK_S: Final = 10.0
"""How long the start waits for the check, which then continues alongside the service."""
LOOK_S: Final = 1.0
"""How often the daemon polls a check alongside the service."""
_RETRY_AFTER_S: Final = 60

_log: Final = Logger()


async def check_trees(
    data_dir: Path,
    in_thread: Callable[[Callable[[], bool]], Awaitable[bool]],
    supervisor: Supervisor,
) -> TreeCheck | None:
    """Read the store if the last shutdown was not clean; return the check.

    It may not be finished. None if there was none, or it could not read the store.

    The start waits for CHECK_S, but for all of it where the daemon was killed once more before it
    had read the store: that may have been the damage. A store that could not be read for another
    reason, such as too little memory, is served, and stays unchecked. Raises DamagedStore, and
    WrongFormat for a file that is no store.
    """
    if not needs_check(data_dir):
        return None
    check_is_store(data_dir / FILE_NAME)
    state = read_state(data_dir)
    if state is StoreState.DAMAGED:
        again = f"delete {data_dir / STATE_NAME} to try again"
        raise DamagedStore(f"a write has failed: {read_damage(data_dir)} ({again})")
    is_second_time = state is StoreState.UNCHECKED
    _log.info("the last shutdown was not clean: the store is checked")
    supervisor.notify("STATUS=Checking the store after an unclean shutdown", BUSY)
    check = TreeCheck.start(data_dir / FILE_NAME)
    try:
        is_read = await in_thread(partial(check.wait, None if is_second_time else CHECK_S))
    except BaseException:
        check.stop()
        raise
    supervisor.notify("STATUS=")
    if not is_read:
        _log.info("the check continues alongside the service")
        write_state(data_dir, StoreState.UNCHECKED)
        return check
    try:
        damage = check.damage()
    except StoreError as error:
        _log.error("{error}", error=error)
        write_state(data_dir, StoreState.UNCHECKED)
        return None
    if damage:
        raise DamagedStore(damage)
    if is_second_time:
        write_state(data_dir, StoreState.OPEN)
    return check


class Checked(Protocol):
    """The part of a store that a check needs."""

    def add_damage(self, values: Iterable[DamagedValue]) -> None:
        """Leave segments that have a damaged value out of results."""

    def fail(self, reason: str) -> None:
        """Stop trusting the store."""


@define(eq=False)
class TreeCheckAlongside:
    """A check that continues alongside the service.

    Damage to the trees ends the daemon: the next start finds it.
    """

    _check: TreeCheck
    _store: Checked
    _data_dir: Path
    _is_finished: bool = False

    async def look(self) -> None:
        """End the check if it has finished."""
        if self._is_finished or not self._check.wait(0):
            return
        self._is_finished = True
        try:
            damage = self._check.damage()
        except StoreError as error:
            _log.error("{error}", error=error)
            return
        if damage:
            self._store.fail(what_to_do(damage, self._data_dir))
            return
        values = self._check.damaged_values()
        self._store.add_damage(values)
        if read_state(self._data_dir) is StoreState.UNCHECKED:
            write_state(self._data_dir, StoreState.OPEN)
        if not values:
            _log.info("the check of the store has finished: nothing is damaged")


def what_to_do(damage: str, data_dir: Path) -> str:
    """Return what is damaged and what to do about it."""
    return (
        f"the store is damaged: {damage}. `medamad check --data {data_dir}` reads all of it;"
        f" `medamad restore FILE --data {data_dir}` puts a backup in its place, once the daemon is"
        f" stopped; `medamad export HOSTNAME --data {data_dir}` saves what can still be read"
    )


def outage_handlers(
    reason: Callable[[], str],
    config: Config,
    started: int,
    listening: Sequence[str],
    data_dir: Path,
) -> Handlers:
    """Return the handlers of the operator's commands while no hits are taken, for a reason."""

    async def status(_request: Status, _report: ReportProgress) -> DaemonState:
        store = data_dir / FILE_NAME
        disk = os.statvfs(data_dir)
        return DaemonState(
            version=VERSION,
            commit=commit(),
            pid=os.getpid(),
            started=started,
            listening=tuple(listening),
            connections=0,
            websites=0,
            visitors=0,
            accepted=0,
            refused={},
            last_minute=0,
            waiting=0,
            commits=0,
            commit_seconds=0.0,
            store_bytes=store.stat().st_size if store.exists() else 0,
            store_max_bytes=int(config.store.map_size),
            disk_free_bytes=disk.f_bavail * disk.f_frsize,
            last_backup=None,
            unavailable_reasons=(reason(),),
            warnings=(),
        )

    async def configuration(_request: GetConfiguration, _report: ReportProgress) -> Configuration:
        return Configuration(
            file=None if config.file is None else str(config.file),
            timezone=str(config.events.timezone),
            min_free_disk=int(config.store.min_free_disk),
        )

    async def refuse(_request: AdminRequest, _report: ReportProgress) -> object:
        raise Unavailable(reason(), retry_after=_RETRY_AFTER_S)

    imports: dict[type[AdminRequest], Any] = dict.fromkeys(
        (BeginImport, HoldImport, ImportRows, ImportDays, FinishImport, UndoImport), refuse
    )
    return {Status: status, GetConfiguration: configuration, **imports}
