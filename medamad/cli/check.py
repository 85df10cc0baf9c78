"""`medamad check`: read a whole store and report any damage."""

import json
from argparse import ArgumentParser, Namespace
from functools import partial
from pathlib import Path
from typing import Final

from medamad.cli.support import add_data, add_json, counted, on_data, print_error
from medamad.storage.check import StoreCheck
from medamad.storage.environment.environment import FILE_NAME, check_there, is_in_use, open_to_read
from medamad.storage.environment.files import check_is_store, check_readable
from medamad.storage.environment.tree_check import damage_of

EXAMPLES: Final = (
    ("medamad check --data /var/lib/medamad", "the store in this folder"),
    ("medamad check --data /var/lib/medamad --json", "the same, for programs"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_json(parser)
    add_data(parser)
    parser.epilog = (
        "Writes nothing, and can run alongside a daemon; meanwhile the daemon cannot\n"
        "reuse freed space, so its file may grow.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Check the store; the exit status is 1 if anything is wrong with it."""
    return on_data(arguments, partial(_check, as_json=arguments.json))


def _check(data_dir: Path, *, as_json: bool) -> int:
    if not as_json and is_in_use(data_dir):
        print(f"{data_dir}: a daemon is running on it; what it has stored so far is checked")
    check_there(data_dir)
    store = data_dir / FILE_NAME
    check_is_store(store)
    check_readable(store)
    if damage := damage_of(store):
        # Reading on could kill this process too.
        _report(store, damage, as_json=as_json)
        findings, counts = [damage], {"websites": 0, "views": 0, "blocks": 0, "days": 0}
    else:
        findings, counts = _findings(data_dir, as_json=as_json)
    if as_json:
        print(json.dumps({"store": str(store), "findings": findings, **counts}))
    else:
        print(f"{store}: {_summary(counts, len(findings))}")
    return 1 if findings else 0


def _findings(data_dir: Path, *, as_json: bool) -> tuple[list[str], dict[str, int]]:
    environment, txn = open_to_read(data_dir)
    check = StoreCheck(environment, txn)
    findings = []
    for finding in check.findings():
        findings.append(finding)
        _report(environment.path, finding, as_json=as_json)
    txn.abort()
    environment.close()
    return findings, {
        "websites": check.websites,
        "views": check.views,
        "blocks": check.segments,
        "days": check.days,
    }


def _report(store: Path, finding: str, *, as_json: bool) -> None:
    if not as_json:
        print_error(f"{store}: {finding}")


def _summary(counts: dict[str, int], findings: int) -> str:
    nouns = {"websites": "website", "views": "view", "blocks": "segment"}
    sound = ", ".join(counted(counts[name], noun) for name, noun in nouns.items())
    if counts["days"]:
        sound += f", daily totals of {counted(counts['days'], 'day')}"
    if findings:
        return f"{counted(findings, 'problem')} found ({sound} are undamaged)"
    return f"no problems found ({sound})"
