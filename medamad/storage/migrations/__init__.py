"""Bring the store of an earlier build up to date, one format after the other.

A module turns a store of an earlier format into the next, or the one after. It writes in
transactions of its own, each of which leaves a store of the earlier format that can be read, and
that the same module can go on with: only the last transaction states the new format. So a kill, or
a full disk, costs nothing but the time since the last one. Hits are taken once all is done.

Before the first one begins, the disk and the map have to have room for all: without, the build that
wrote the store can still serve it. A start that goes on with it asks for the rest.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Protocol

from attrs import evolve
from twisted.logger import Logger

from medamad.storage.backup import BackupProgress, no_progress
from medamad.storage.environment.environment import (
    FILE_NAME,
    Environment,
    Txn,
    open_environment,
    open_to_read,
)
from medamad.storage.environment.files import check_room, store_errors
from medamad.storage.environment.meta import FORMAT
from medamad.storage.errors import StoreError
from medamad.storage.migrations import sorted_durations, table_of_visits, visits_of_a_day


class _Step(Protocol):
    """A module that turns a store of the format before into one of its own."""

    @property
    def FORMAT(self) -> int:
        """The format that it makes, of the one that the step before makes or a later one."""

    def room_bytes(self, environment: Environment, txn: Txn) -> int:
        """Return how much of the disk it takes at most, from what it has written so far on."""

    def migrate(self, environment: Environment, progress: BackupProgress) -> None:
        """Turn the store into one of its format; go on where a run that was ended has stopped.

        Its last transaction states the format, as nothing else it writes may count before.
        `progress` is called before each piece of work; what it raises ends the run.
        """


_STEPS: Final[Sequence[_Step]] = (visits_of_a_day, table_of_visits, sorted_durations)
"""In the order of their formats."""
_ROOM_BYTES: Final = 64 << 20
"""What the transactions take at most besides what they write of views."""
_WORK: Final = "bringing this store up to date"
_log: Final = Logger()


def is_outdated(directory: Path) -> bool:
    """Return whether there is a store in a directory that an earlier build wrote.

    Raises StoreError, OSError.
    """
    if not (directory / FILE_NAME).exists():
        return False
    environment, txn = open_to_read(directory)
    txn.abort()
    environment.close()
    return environment.format < FORMAT


def migrate_store(directory: Path, map_size: int, progress: BackupProgress) -> None:
    """Bring the store in a directory up to date.

    `progress` is called often; what it raises ends the work. Raises StoreInUse while a daemon runs
    there, other StoreErrors, OSError.
    """
    with store_errors(directory / FILE_NAME):
        migrate(open_environment(directory, map_size), progress).close()


def migrate(environment: Environment, progress: BackupProgress = no_progress) -> Environment:
    """Bring an open store up to date, as `migrate_store`; return it, or close it on failure.

    Raises StoreError if the disk or `store.map_size` has no room for it.
    """
    steps = [step for step in _STEPS if environment.format < step.FORMAT]
    try:
        if steps:
            with environment.lmdb.begin() as txn:
                room_bytes = sum(step.room_bytes(environment, txn) for step in steps)
            _check_room(environment, _ROOM_BYTES + room_bytes)
        for step in steps:
            step.migrate(environment, _logging(progress))
            _log.info("the store has format {new} now", new=step.FORMAT)
    except BaseException:
        environment.close()
        raise
    return evolve(environment, format=FORMAT)


def _check_room(environment: Environment, needed: int) -> None:
    check_room(environment.path.parent, needed, f"{_WORK} takes")
    allowed, size = environment.lmdb.info()["map_size"], environment.file_bytes() + needed
    if allowed < size:
        raise StoreError(
            f"{environment.path}: store.map_size allows {allowed >> 20} MiB, and {_WORK} takes"
            f" {-(-size >> 20)} MiB: raise it"
        )
    _log.info(
        "bringing the store from format {old} to {new}: there is room for the {mib} MiB"
        " that this may take",
        old=environment.format,
        new=FORMAT,
        mib=-(-needed >> 20),
    )


def _logging(progress: BackupProgress) -> BackupProgress:
    """Return what also logs when each further quarter of a phase is done."""
    logged: set[tuple[str, int]] = set()

    def report(phase: str, done: int, total: int) -> None:
        progress(phase, done, total)
        quarters = 4 * done // max(total, 1)
        if quarters and done < total and (phase, quarters) not in logged:
            logged.add((phase, quarters))
            _log.info(
                "bringing the store up to date: {phase} ({share} %)",
                phase=phase,
                share=100 * done // total,
            )

    return report
