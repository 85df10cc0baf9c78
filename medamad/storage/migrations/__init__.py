"""Bring the store of an earlier build up to date, one format after the other.

A module for each format turns a store of the one before into it. It writes in transactions of its
own, each of which leaves a store of the earlier format that can be read, and that the same module
can go on with: only the last transaction states the new format. So a kill, or a full disk, costs
nothing but the time. Hits are taken once all is done.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from attrs import evolve
from twisted.logger import Logger

from medamad.storage.backup import BackupProgress, no_progress
from medamad.storage.environment.environment import (
    FILE_NAME,
    Environment,
    open_environment,
    open_to_read,
)
from medamad.storage.environment.files import store_errors
from medamad.storage.environment.meta import FORMAT, write_format
from medamad.storage.migrations import table_of_visits, visits_of_a_day

_STEPS: Final[Mapping[int, Callable[[Environment, BackupProgress], None]]] = {
    11: visits_of_a_day.migrate,
    13: table_of_visits.migrate,
}
"""By the format that each makes, of which the store then has all earlier ones."""

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
    """Bring an open store up to date, as `migrate_store`; return it, or close it on failure."""
    try:
        for number in (each for each in _STEPS if each > environment.format):
            _log.info("the store is brought to format {new}", new=number)
            _STEPS[number](environment, progress)
            with environment.lmdb.begin(write=True) as txn:
                write_format(txn, environment.databases.meta, number)
            _log.info("the store has format {new} now", new=number)
    except BaseException:
        environment.close()
        raise
    return evolve(environment, format=FORMAT)
