"""`medamad compact`: write the store anew, without what was deleted."""

import sys
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import Final

from medamad.cli.support import ProgressPhases, add_data, format_bytes, on_data, print_warning
from medamad.storage.compact import STILL_DELETING, ask_to_compact, compact
from medamad.storage.environment.environment import FILE_NAME
from medamad.storage.errors import StoreInUse

EXAMPLES: Final = (
    ("medamad compact --data /var/lib/medamad", "now, or at the next start of the daemon"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_data(parser)
    parser.epilog = (
        "What was deleted, by you or because it expired, stays readable in free space of the\n"
        "store's file until that is used again. This writes a file without it, and verifies it\n"
        "before it replaces the old one; meanwhile both need room on the disk. If a daemon runs,\n"
        "it does this at its next start, before it accepts hits; `medamad status` shows that.\n"
        "Backups, and the stores that restores have kept, stay as they are.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Compact the store, or have the daemon do so at its next start."""
    return on_data(arguments, partial(_compact, arguments))


def _compact(arguments: Namespace, data_dir: Path) -> int:
    phases = ProgressPhases(sys.stderr)
    store = arguments.base / data_dir / FILE_NAME
    try:
        done = compact(data_dir, phases.update)
    except StoreInUse:
        ask_to_compact(data_dir)
        print(f"{store}: a daemon uses it, and compacts it at its next start.")
        return 0
    finally:
        phases.end()
    print(f"{store}: {format_bytes(done.after_bytes)}, was {format_bytes(done.before_bytes)}")
    if done.is_deleting:
        print_warning(STILL_DELETING)
    return 0
