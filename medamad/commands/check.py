"""`medamad check`: reads all of a store and says what is wrong with it."""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from medamad.commands.configured import add_data, on_data
from medamad.store.checking import Checking
from medamad.store.environment import is_in_use, open_to_read


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_data(parser)
    parser.epilog = (
        "Writes nothing, and may be used beside a running daemon; meanwhile the daemon cannot use\n"
        "freed room again, so that its file may grow.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Check the store; the exit status is 1 if anything is wrong with it."""
    return on_data(arguments, _check)


def _check(data_dir: Path) -> int:
    if is_in_use(data_dir):
        print(f"{data_dir}: a daemon runs on it; what it has stored by now is checked")
    environment, txn = open_to_read(data_dir)
    checking = Checking(environment, txn)
    count = 0
    for finding in checking.findings():
        count += 1
        print(f"medamad: {environment.path}: {finding}", file=sys.stderr)
    txn.abort()
    environment.close()
    seen = f"{checking.websites} websites, {checking.views} views, {checking.blocks} blocks"
    if checking.days:
        seen += f", sums of {checking.days} days"
    if count:
        print(f"{environment.path}: {count} things are wrong with it ({seen} are sound)")
        return 1
    print(f"{environment.path}: nothing is wrong with it ({seen})")
    return 0
