"""The folder of the daemon's own backups: a program that makes one if it is due.

    python -m medamad.backup_folder DATA SPARE_BYTES TASK

The daemon itself never goes there: whoever does so waits, for as long as a disk or a share that has
gone does not answer.
"""

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from medamad.cli.support import ended_in_order
from medamad.daemon.logs import reason_of
from medamad.domain.backups import Done, Task
from medamad.storage.backup import clear_unfinished, dated_names, no_progress
from medamad.storage.environment.folder import BACKUP_SUFFIX
from medamad.storage.errors import StoreError
from medamad.storage.offline import make_backup

_BEGINNING: Final = "medamad-"
_NAME: Final = re.compile(
    rf"{_BEGINNING}(?P<made>[0-9]{{8}}-[0-9]{{6}}Z)(-[0-9]+)?{re.escape(BACKUP_SUFFIX)}\Z"
)
_GIVING_WAY: Final = 10
"""How much nicer than the daemon the process is."""


def do_task(task: Task, make: Callable[[Path], object]) -> Done:
    """Make a backup if one is due, and remove what is more than enough. Raises as `make`, OSError.

    `make` writes one into a file. What has the name of a backup is whole and was read again, so a
    new one is there before an old one goes.
    """
    folder = Path(task.folder)
    newest = max((made for made, _ in _made_in(folder) if made <= task.now), default=None)
    if newest is not None and newest >= task.due:
        return Done(newest=newest)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    clear_unfinished(folder, _BEGINNING)
    names = dated_names(_BEGINNING, BACKUP_SUFFIX, task.now)
    target = next(each for name in names if not (each := folder / name).exists())
    make(target)
    made = sorted(each for each in _made_in(folder) if each[0] <= task.trusted)
    stays = ""
    for _, old in made[: -task.keep]:
        try:
            old.unlink()
        except OSError as error:
            stays = reason_of(error)
    return Done(newest=int(task.now), made=str(target), stays=stays)


def main(arguments: Sequence[str]) -> int:
    """Do a task, write what was done, and give the exit status."""
    data_dir, spare_bytes, task = arguments
    with suppress(OSError):
        os.nice(_GIVING_WAY)

    def make(target: Path) -> None:
        make_backup(Path(data_dir), target, no_progress, int(spare_bytes))

    try:
        with ended_in_order():
            done = do_task(msgspec.json.decode(task, type=Task), make)
    except OSError as error:
        sys.stderr.write(reason_of(error))
        return 1
    except StoreError as error:
        sys.stderr.write(str(error))
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("it was told to end by a signal")
        return 1
    sys.stdout.write(msgspec.json.encode(done).decode())
    return 0


def _made_in(folder: Path) -> Iterator[tuple[int, Path]]:
    if not folder.exists():
        return
    for file in folder.iterdir():
        named = _NAME.match(file.name)
        if named:
            try:
                made = datetime.strptime(named["made"], "%Y%m%d-%H%M%SZ").replace(tzinfo=UTC)
            except ValueError:  # no such day
                continue
            yield int(made.timestamp()), file


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
