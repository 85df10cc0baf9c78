"""`medamad passwd`: change the account's password, whether the daemon runs or not."""

import sys
import time
from argparse import ArgumentParser, Namespace
from getpass import getpass
from pathlib import Path
from typing import Final

from medamad.accounts.credentials import check_password, hash_password
from medamad.accounts.first_login import remove_file
from medamad.cli.exit_statuses import INTERRUPTED_STATUS
from medamad.cli.signals import ignore_interrupts
from medamad.cli.support import add_data, on_data
from medamad.domain.errors import BadRequest
from medamad.storage.environment.environment import check_there
from medamad.storage.offline import change_password

EXAMPLES: Final = (
    ("medamad passwd --data /var/lib/medamad", "asks for the password twice"),
    ("medamad passwd --data /var/lib/medamad < password.txt", "reads the first line of a file"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_data(parser)
    parser.epilog = (
        "Asks for the password on a terminal, else reads one line of standard input.\n"
        f"Every login ends.\n\n{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Ask for a password and store it."""
    return on_data(arguments, _change)


def _change(data_dir: Path) -> int:
    try:
        password = check_password(_asked(data_dir) if sys.stdin.isatty() else _piped())
        password_hash = hash_password(password)
        ignore_interrupts()
    except (KeyboardInterrupt, EOFError) as ended:
        print("\nmedamad: the password was not changed", file=sys.stderr)
        return INTERRUPTED_STATUS if isinstance(ended, KeyboardInterrupt) else 1
    username = change_password(data_dir, password_hash, int(time.time()))
    remove_file(data_dir)
    print(f"The password of {username} was changed.")
    return 0


def _asked(data_dir: Path) -> str:
    check_there(data_dir)
    password = getpass("New password: ")
    if getpass("New password again: ") != password:
        raise BadRequest("password: the two passwords differ")
    return password


def _piped() -> str:
    return sys.stdin.readline().removesuffix("\n").removesuffix("\r")
