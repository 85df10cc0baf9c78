"""`medamad check`: read a whole store and report any damage."""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from medamad.cli.exit_statuses import USAGE_STATUS
from medamad.cli.support import add_data, add_json, counted, on_data, print_error, report_damage
from medamad.storage.check import StoreCheck
from medamad.storage.drop_damaged import Dropped, drop_damaged
from medamad.storage.environment.environment import FILE_NAME, check_there, is_in_use, open_to_read
from medamad.storage.environment.files import check_is_store, check_readable
from medamad.storage.environment.tree_check import TreeCheck, read_store
from medamad.storage.errors import StoreInUse

_NEEDED: Final = frozenset({"websites", "import_batches"})
"""The databases whose values cannot be removed without what depends on them."""
EXAMPLES: Final = (
    ("medamad check --data /var/lib/medamad", "the store in this folder"),
    ("medamad check --data /var/lib/medamad --json", "the same, for programs"),
    (
        "medamad check --data /var/lib/medamad --drop-damaged --dry-run",
        "what would be lost if damaged segments were removed",
    ),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--drop-damaged",
        action="store_true",
        help="remove damaged segments, and say what is lost; the daemon must be stopped",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="with --drop-damaged: only say what would be lost",
    )
    add_json(parser)
    add_data(parser)
    parser.epilog = (
        "Writes nothing without --drop-damaged, and can run alongside a daemon; meanwhile the\n"
        "daemon cannot reuse freed space, so its file may grow. For --drop-damaged, stop the\n"
        "daemon together with its socket (systemctl stop medamad.socket medamad). What is lost\n"
        "may be in a backup: `medamad restore` puts one in the place of the store.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Check the store; the exit status is 1 if anything is wrong with it."""
    if arguments.dry_run and not arguments.drop_damaged:
        print_error("--dry-run: only with --drop-damaged")
        return USAGE_STATUS
    if arguments.drop_damaged:
        return on_data(arguments, partial(_drop, arguments))
    return on_data(arguments, partial(_check, arguments))


def _read(data_dir: Path) -> TreeCheck:
    check_there(data_dir)
    store = data_dir / FILE_NAME
    check_is_store(store)
    check_readable(store)
    return read_store(store)


def _drop(arguments: Namespace, data_dir: Path) -> int:
    """Remove what is damaged; the exit status is 1 if some of it cannot be removed."""
    is_dry_run: bool = arguments.dry_run
    read = _read(data_dir)
    store = arguments.base / data_dir / FILE_NAME
    if damage := read.damage():
        print_error(f"{store}: {damage}: this cannot be removed; `medamad restore` a backup")
        return 1
    needed = [value.place for value in read.damaged_values() if value.database in _NEEDED]
    for place in needed:
        print_error(f"{store}: {place}: this cannot be removed; `medamad restore` a backup")
    try:
        dropped = drop_damaged(data_dir, is_dry_run=is_dry_run)
    except StoreInUse as error:
        raise StoreInUse(
            f"{error}; stop it first, with its socket: systemctl stop medamad.socket medamad"
        ) from error
    if arguments.json:
        found = [
            {
                "hostname": each.hostname,
                "what": each.what,
                "views": each.views,
                "days": _days_of(each),
            }
            for each in dropped
        ]
        print(json.dumps({"store": str(store), "dry_run": is_dry_run, "dropped": found}))
        return 1 if needed else 0
    for each in dropped:
        print(f"{each.hostname}: {_loss(each)}")
    if not dropped:
        print(f"{store}: nothing to remove")
    elif is_dry_run:
        print(f"{store}: nothing was removed, as this was a dry run")
    else:
        print(f"{store}: removed; `medamad check` reads it again")
    return 1 if needed else 0


def _days_of(dropped: Dropped) -> list[str]:
    """Return the first and the last day, in UTC; nothing if it has no time."""
    if dropped.span_ms is None or dropped.span_ms[0] > dropped.span_ms[1]:
        return []
    return [
        datetime.fromtimestamp(time_ms / 1000, UTC).date().isoformat()
        for time_ms in dropped.span_ms
    ]


def _loss(dropped: Dropped) -> str:
    views = (
        "an unknown number of views" if dropped.views is None else counted(dropped.views, "view")
    )
    days = _days_of(dropped)
    when = f" from {days[0]} to {days[-1]}" if days else ""
    return f"{dropped.what}: {views}{when}"


def _check(arguments: Namespace, data_dir: Path) -> int:
    folder = arguments.base / data_dir
    store = folder / FILE_NAME
    if not arguments.json and is_in_use(data_dir):
        print(f"{folder}: in use by a running daemon; checking what it has stored so far")
    read = _read(data_dir)

    def report(finding: str) -> None:
        if not arguments.json:
            print_error(f"{store}: {finding}")

    if damage := read.damage():
        # Reading on could kill this process too.
        report(damage)
        findings, counts = [damage], {"websites": 0, "views": 0, "blocks": 0, "days": 0}
    else:
        if values := read.damaged_values():
            report_damage(data_dir, values)
        findings, counts = _findings(data_dir, report)
    if arguments.json:
        print(json.dumps({"store": str(store), "findings": findings, **counts}))
    else:
        print(f"{store}: {_summary(counts, len(findings))}")
    return 1 if findings else 0


def _findings(data_dir: Path, report: Callable[[str], None]) -> tuple[list[str], dict[str, int]]:
    environment, txn = open_to_read(data_dir)
    check = StoreCheck(environment, txn)
    findings = []
    for finding in check.findings():
        findings.append(finding)
        report(finding)
    txn.abort()
    environment.close()
    return findings, {
        "websites": check.websites,
        "views": check.views,
        "blocks": check.segments,
        "days": check.days,
    }


def _summary(counts: dict[str, int], findings: int) -> str:
    nouns = {"websites": "website", "views": "view", "blocks": "segment"}
    sound = ", ".join(counted(counts[name], noun) for name, noun in nouns.items())
    if counts["days"]:
        sound += f", daily totals of {counted(counts['days'], 'day')}"
    if findings:
        return f"{counted(findings, 'problem')} found ({sound} are undamaged)"
    return f"no problems found ({sound})"
