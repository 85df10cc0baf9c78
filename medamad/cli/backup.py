"""`medamad backup`: writes a backup of the store, whether the daemon runs or not."""

import os
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from medamad.cli.support import (
    Phases,
    add_data,
    add_json,
    min_free_disk,
    on_data,
    refuse_own,
    size,
    told_bytes,
)
from medamad.domain.errors import BadRequest
from medamad.storage.offline import make_backup

_GIVING_WAY: Final = 10
"""How much nicer the process is where it is to give way."""

EXAMPLES: Final = (
    ("medamad backup /mnt/medamad.mdb.zst --data /var/lib/medamad", "the daemon goes on meanwhile"),
    ("medamad backup --nice --json FILE --config /etc/medamad/medamad.toml", "by a timer"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", type=Path, metavar="FILE", help="the file that is written")
    parser.add_argument(
        "--nice", action="store_true", help="give way to whatever else the machine does"
    )
    parser.add_argument(
        "--min-free-disk",
        type=size,
        metavar="SIZE",
        help='how much of the store\'s disk stays free, such as "1 GiB", whatever the configuration'
        " says",
    )
    add_json(parser)
    add_data(parser)
    parser.epilog = (
        "Writes what the store holds at one moment into one compressed file, and reads that again\n"
        "before it gets its name; for a while it takes as much of its disk as the store. May be\n"
        "used beside a running daemon; meanwhile the daemon cannot use freed room again, so that\n"
        "its file may grow. `medamad restore` puts it back; `zstd -d` gives the store's file.\n"
        "Keep it as safe as the store: account, tokens and share links are in it.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Write the backup."""
    return on_data(arguments, lambda data_dir: _back_up(data_dir, arguments))


def _back_up(data_dir: Path, arguments: Namespace) -> int:
    target = _target(arguments.file, data_dir)
    if arguments.nice:
        with suppress(OSError):
            os.nice(_GIVING_WAY)
    spare_bytes = arguments.min_free_disk
    if spare_bytes is None:
        spare_bytes = min_free_disk(data_dir, arguments.config)
    phases = Phases(sys.stderr)
    note = make_backup(data_dir, target, phases.tell, spare_bytes)
    phases.end()
    if arguments.json:
        told = {"file": str(arguments.file), **msgspec.structs.asdict(note)}
        print(msgspec.json.encode(told).decode())
    else:
        packed, whole = told_bytes(note.packed_bytes), told_bytes(note.bytes)
        print(f"{arguments.file}: {packed}, of a store of {whole}")
    return 0


def _target(file: Path, data_dir: Path) -> Path:
    """Return the file to write, where its links lead: a backup takes the place of a file alone."""
    if file.name == "-":
        raise BadRequest("FILE: expected a file, not -: what is written is read again")
    target = Path(os.path.realpath(file))
    # What a link of /proc leads to may have no name, and a link may lead to itself.
    if (file.exists() and not file.is_file()) or target.is_symlink():
        raise BadRequest(f"{file}: there is something else than a file")
    refuse_own(file, data_dir)
    return target
