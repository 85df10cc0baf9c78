"""`medamad backup`: write a backup of the store, whether the daemon runs or not."""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from medamad.cli.support import (
    ProgressPhases,
    add_data,
    add_json,
    format_bytes,
    from_data,
    load_named,
    min_free_disk,
    on_data,
    print_error,
    reject_own_file,
    report_damage,
    size,
)
from medamad.config.settings import backup_folder
from medamad.daemon.messages import reason_of
from medamad.domain.errors import BadRequest
from medamad.storage.backup import DamagedData, Note, rotate
from medamad.storage.environment.owner import as_invoker
from medamad.storage.offline import make_backup

_NICE: Final = 10

EXAMPLES: Final = (
    ("medamad backup /mnt/medamad.mdb.zst --data /var/lib/medamad", "while the daemon runs"),
    (
        "medamad backup --rotate --nice --config /etc/medamad/medamad.toml",
        "a dated backup, and no more of them than [backup] keep; for a timer or cron",
    ),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("file", nargs="?", type=Path, metavar="FILE", help="the file to write")
    target.add_argument(
        "--rotate",
        action="store_true",
        help="write a dated file into the folder of [backup] instead, and remove the oldest ones",
    )
    parser.add_argument("--nice", action="store_true", help="run at a low priority")
    parser.add_argument(
        "--min-free-disk",
        type=size,
        metavar="SIZE",
        help='how much of the store\'s disk to leave free, such as "1 GiB"; overrides the'
        " configuration",
    )
    add_json(parser)
    add_data(parser)
    parser.epilog = (
        "Writes a snapshot of the store into one compressed file and verifies it before the file\n"
        "gets its name; meanwhile it needs as much of its disk as the store. The daemon may keep\n"
        "running, but cannot reuse freed pages while the backup is written, so its file may grow.\n"
        "`medamad restore` puts it back; `zstd -d` extracts the store's file. Protect it like the\n"
        "store: it contains the account, tokens and share links.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Write the backup."""
    return on_data(
        arguments, lambda data_dir: _back_up(data_dir, arguments), by_file=arguments.rotate
    )


def _back_up(data_dir: Path, arguments: Namespace) -> int:
    config = load_named(arguments.config) if arguments.rotate else None
    named = arguments.file if config is None else backup_folder(config, data_dir)
    named = from_data(arguments, named)
    rights = partial(as_invoker, named, data_dir)
    with rights():
        target = _target(named, data_dir) if config is None else named
    if arguments.nice:
        with suppress(OSError):
            os.nice(_NICE)
    spare_bytes = arguments.min_free_disk
    if spare_bytes is None:
        spare_bytes = min_free_disk(data_dir, arguments.config)
    phases = ProgressPhases(sys.stderr)

    def make(file: Path) -> Note:
        try:
            return make_backup(data_dir, file, phases.update, spare_bytes, rights)
        except DamagedData as error:
            report_damage(data_dir, error.values)
            raise

    not_removed: tuple[OSError, ...] = ()
    if config is None:
        file, note = named, make(target)
    else:
        rotated = rotate(target, config.backup.keep, time.time(), make, rights)
        file, note, not_removed = rotated.file, rotated.note, rotated.not_removed
    file = arguments.base / file
    phases.end()
    if arguments.json:
        print(msgspec.json.encode({"file": str(file), **msgspec.structs.asdict(note)}).decode())
    else:
        packed, whole = format_bytes(note.packed_bytes), format_bytes(note.bytes)
        print(f"{file}: {packed}, of a store of {whole}")
    for error in not_removed:
        print_error(f"an old backup could not be removed: {reason_of(error)}")
    return 1 if not_removed else 0


def _target(file: Path, data_dir: Path) -> Path:
    """Return the path to write, with links resolved. Raises BadRequest for anything but a file."""
    if file.name == "-":
        raise BadRequest("FILE: expected a file, not -: a backup is verified after it is written")
    target = Path(os.path.realpath(file)) if file.is_symlink() else file
    # A link in /proc may lead to something without a name, and a link may lead to itself.
    if (file.exists() and not file.is_file()) or target.is_symlink():
        raise BadRequest(f"{file}: not a regular file")
    reject_own_file(file, data_dir)
    return target
