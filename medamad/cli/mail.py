"""`medamad mail`: let the daemon send a test mail, and show what the mail server says."""

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

from medamad.admin.client import connect
from medamad.admin.protocol import SendTestMail
from medamad.cli.grants import run_subcommand
from medamad.cli.support import add_data

_PATIENCE_S: Final = 600.0
"""Longer than the daemon waits for a mail server."""

EXAMPLES: Final = (
    ("medamad mail test ada@example.com", "with the daemon's settings, from the section [mail]"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    test = what.add_parser("test", help="send a test mail")
    test.add_argument("address", metavar="ADDRESS", help="where to send it")
    add_data(test)
    test.set_defaults(work=_test)


run: Final = run_subcommand


def _test(arguments: Namespace, data_dir: Path) -> int:
    with connect(data_dir, _PATIENCE_S) as connection:
        connection.request(SendTestMail(arguments.address), type(None))
    print("The mail server has accepted the mail.")
    return 0
