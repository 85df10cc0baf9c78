"""`medamad settings`: export and import the settings of a website, beside a daemon or without."""

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any, Final

import msgspec
from attrs import asdict

from medamad.admin.client import NotRunning, connect
from medamad.admin.protocol import ImportSettings
from medamad.cli.grants import run_subcommand
from medamad.cli.support import add_data, add_json, counted
from medamad.domain.errors import BadRequest
from medamad.domain.exported_settings import ExportedSettings, Imported, check_members
from medamad.query.exclusions import check_exported
from medamad.storage.offline import add_settings, defined_for

EXAMPLES: Final = (
    ("medamad settings export example.com > settings.json", "print them as JSON"),
    ("medamad settings import example.org < settings.json", "add those that are missing"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    export = what.add_parser("export", help="print the settings of a website as JSON")
    importing = what.add_parser("import", help="add settings that export has printed")
    for each, work in ((export, _export), (importing, _import)):
        each.add_argument("hostname", metavar="HOSTNAME", help="the website")
        add_data(each)
        each.set_defaults(work=work)
    add_json(importing)
    parser.epilog = (
        "Settings are goals, funnels, exclusions, annotations and alerts, and what the website\n"
        "counts and stores. Of a webhook's URL only the host is exported, since the rest often is\n"
        "a secret: complete it in the file, or later in the dashboard. Reports by mail are left\n"
        "out, since their addresses are personal data.\n\n"
        "An import adds what is not there yet, all or nothing. It is refused if a goal, funnel or\n"
        "exclusion there has the same name and is different, and if a choice there is another\n"
        "one. An alert whose URL is a host alone is there if one of the same kind has a webhook\n"
        "of that host.\n\n"
        f"{parser.epilog}"
    )


run: Final = run_subcommand


def _export(arguments: Namespace, data_dir: Path) -> int:
    print(json.dumps(defined_for(data_dir, arguments.hostname).exported(), indent=1))
    return 0


def _import(arguments: Namespace, data_dir: Path) -> int:
    try:
        settings = parsed(sys.stdin.buffer.read())
    except msgspec.MsgspecError as error:
        raise BadRequest(
            f"standard input: expected what `medamad settings export` prints: {error}"
        ) from None
    added = add(data_dir, arguments.hostname, settings)
    if arguments.json:
        print(json.dumps(asdict(added), indent=1))
        return 0
    counts = (
        *(counted(added.goals, "goal"), counted(added.funnels, "funnel")),
        *(counted(added.exclusions, "exclusion"), counted(added.annotations, "annotation")),
        counted(added.alerts, "alert"),
    )
    print(f"Added {', '.join(counts)} and {counted(added.settings, 'setting')} of what counts.")
    if added.known:
        print(f"Were there already: {added.known:,}")
    if added.without_report:
        print(f"Alerts by mail left out, since their report is not there: {added.without_report:,}")
    return 0


def parsed(text: bytes) -> ExportedSettings:
    """Return exported settings. Raises MsgspecError and BadRequest."""
    members = msgspec.json.decode(text, type=dict[str, Any])
    settings = msgspec.convert(members, ExportedSettings)
    check_members(members)
    check_exported(settings)
    return settings


def add(data_dir: Path, hostname: str, settings: ExportedSettings) -> Imported:
    """Add settings; a daemon that runs has the websites in memory, so it does that itself.

    Raises BadRequest if there are too many, and what `Defined.with_imported` does.
    """
    try:
        with connect(data_dir) as daemon:
            return daemon.request(ImportSettings(hostname, settings), Imported)
    except NotRunning:
        return add_settings(data_dir, hostname, settings, int(time.time()))
    except ValueError as error:
        raise BadRequest(f"the settings are too large: {error}") from None
