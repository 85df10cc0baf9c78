"""`medamad check`: reads all of a store and says what is wrong with it."""

import json
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import Final

from medamad.cli.support import add_data, add_json, on_data, tell_error
from medamad.storage.check import StoreCheck
from medamad.storage.environment.environment import FILE_NAME, check_there, is_in_use, open_to_read
from medamad.storage.environment.files import check_readable

EXAMPLES: Final = (
    ("medamad check --data /var/lib/medamad", "of the store in this folder"),
    ("medamad check --data /var/lib/medamad --json", "the same, for programs"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_json(parser)
    add_data(parser)
    parser.epilog = (
        "Writes nothing, and may be used beside a running daemon; meanwhile the daemon cannot use\n"
        "freed room again, so that its file may grow.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Check the store; the exit status is 1 if anything is wrong with it."""
    return on_data(arguments, partial(_check, as_json=arguments.json))


def _check(data_dir: Path, *, as_json: bool) -> int:
    if not as_json and is_in_use(data_dir):
        print(f"{data_dir}: a daemon runs on it; what it has stored by now is checked")
    check_there(data_dir)
    check_readable(data_dir / FILE_NAME)
    environment, txn = open_to_read(data_dir)
    checking = StoreCheck(environment, txn)
    findings = []
    for finding in checking.findings():
        findings.append(finding)
        if not as_json:
            tell_error(f"{environment.path}: {finding}")
    txn.abort()
    environment.close()
    if as_json:
        print(json.dumps(_told(environment.path, checking, findings)))
    else:
        print(f"{environment.path}: {_summed_up(checking, len(findings))}")
    return 1 if findings else 0


def _told(store: Path, checking: StoreCheck, findings: list[str]) -> dict[str, object]:
    return {
        "store": str(store),
        "findings": findings,
        "websites": checking.websites,
        "views": checking.views,
        "blocks": checking.segments,
        "days": checking.days,
    }


def _summed_up(checking: StoreCheck, wrong: int) -> str:
    seen = f"{checking.websites} websites, {checking.views} views, {checking.segments} blocks"
    if checking.days:
        seen += f", sums of {checking.days} days"
    if wrong:
        return f"{wrong} things are wrong with it ({seen} are sound)"
    return f"nothing is wrong with it ({seen})"
