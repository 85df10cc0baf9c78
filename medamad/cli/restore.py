"""`medamad restore`: replace the store with a backup."""

import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from medamad.accounts.first_login import FILE_NAME
from medamad.cli.signals import ignore_interrupts
from medamad.cli.support import ProgressPhases, add_data, from_data, on_data, print_warning
from medamad.storage.environment.environment import FILE_NAME as STORE_NAME
from medamad.storage.errors import StoreInUse
from medamad.storage.restore import Restored, restore

EXAMPLES: Final = (
    ("medamad restore /mnt/medamad.mdb.zst --data /var/lib/medamad", "while the daemon is stopped"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="a file written by `medamad backup`"
    )
    add_data(parser)
    parser.epilog = (
        "Stop the daemon first, together with its socket, which would start it again (systemctl\n"
        "stop medamad.socket medamad). The whole file is verified before it replaces the store.\n"
        "The old store is kept beside it under another name; rename it to get it back. Every\n"
        "login ends. Password, tokens and share links are those of the backup: what has been\n"
        "revoked since must be revoked again.\n"
        "A backup of a store in another format is rejected: restore it with the build that made\n"
        "it, then export and import.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Replace the store."""
    return on_data(arguments, lambda data_dir: _restore(data_dir, arguments))


def _restore(data_dir: Path, arguments: Namespace) -> int:
    phases = ProgressPhases(sys.stderr)
    try:
        restored = restore(
            from_data(arguments, arguments.file), data_dir, phases.update, ignore_interrupts
        )
    except StoreInUse as error:
        raise StoreInUse(
            f"{error}; stop it first, with its socket: systemctl stop medamad.socket medamad"
        ) from error
    phases.end()
    _keep_login(data_dir, restored)
    made = datetime.fromtimestamp(restored.note.made, UTC)
    store = arguments.base / data_dir / STORE_NAME
    print(f"{store}: restored the store of {made:%Y-%m-%d %H:%M:%S} UTC.")
    if restored.replaced is not None:
        kept = arguments.base / restored.replaced
        print(f"The old store is kept as {kept}; delete it when you no longer need it.")
    if restored.damage:
        print_warning(
            f"damaged data is in the backup too: {restored.damage};"
            " `medamad check --drop-damaged` removes it"
        )
    print("All logins have ended. Revoke again the tokens and share links that were revoked since.")
    return 0


def _keep_login(data_dir: Path, restored: Restored) -> None:
    """Rename the replaced store's first password with it: it does not belong to this store."""
    login = data_dir / FILE_NAME
    if restored.replaced is not None and login.exists():
        login.rename(f"{login}{restored.replaced.suffix}")
