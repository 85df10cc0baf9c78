"""The folder of dated backups: add one, remove the oldest, find the newest."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from attrs import frozen

from medamad.storage.backup import Note, clear_unfinished, dated_names
from medamad.storage.environment.folder import BACKUP_SUFFIX

_PREFIX: Final = "medamad-"
_NAME: Final = re.compile(
    rf"{_PREFIX}(?P<made>[0-9]{{8}}-[0-9]{{6}}Z)(-(?P<number>[0-9]+))?{re.escape(BACKUP_SUFFIX)}\Z"
)


@frozen
class Rotated:
    """The result of a rotation."""

    file: Path
    note: Note
    not_removed: tuple[OSError, ...]
    """Why old backups could not be removed."""


def rotate(folder: Path, keep: int, now: float, make: Callable[[Path], Note]) -> Rotated:
    """Write a dated backup into a folder, then remove all but the newest `keep`.

    `make` writes and verifies a backup, so an old one goes only when a new one is complete. Backups
    dated after `now`, as by a clock that was wrong, neither count nor go. Raises what `make` does,
    and OSError.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    clear_unfinished(folder, _PREFIX)
    names = dated_names(_PREFIX, BACKUP_SUFFIX, now)
    target = next(file for name in names if not (file := folder / name).exists())
    note = make(target)
    backups = sorted(backup for backup in _backups(folder) if backup[0] <= now)
    not_removed = []
    for _, _, file in backups[:-keep]:
        try:
            file.unlink()
        except OSError as error:
            not_removed.append(error)
    return Rotated(target, note, tuple(not_removed))


def newest_backup(folder: Path, now: float) -> int | None:
    """Return when the newest backup was made, in Unix seconds; None if there is none.

    Raises OSError where the folder exists and cannot be read.
    """
    return max((made for made, _, _ in _backups(folder) if made <= now), default=None)


def _backups(folder: Path) -> Iterator[tuple[int, int, Path]]:
    """Return when each backup was made, its number among those of that second, and its file."""
    try:
        files = list(folder.iterdir())
    except FileNotFoundError:
        return
    for file in files:
        if match := _NAME.match(file.name):
            try:
                made = datetime.strptime(match["made"], "%Y%m%d-%H%M%SZ").replace(tzinfo=UTC)
            except ValueError:  # no such day
                continue
            yield int(made.timestamp()), int(match["number"] or 1), file
