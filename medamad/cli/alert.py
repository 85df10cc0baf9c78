"""`medamad alert`: define, list or remove alerts, whether the daemon runs or not."""

import json
import sys
from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from medamad.cli.grants import run_subcommand
from medamad.cli.support import add_data, add_json, print_table
from medamad.domain.alerts import (
    FORMATS,
    SERVICE_KINDS,
    WEBSITE_KINDS,
    Rule,
    checked_rule,
    shown,
)
from medamad.domain.errors import NotFound
from medamad.domain.goals import new_id
from medamad.storage.grants import REPORTS
from medamad.storage.offline import change_value, list_grants, value_of
from medamad.storage.website_values import ALL_ALERTS, GOALS_AND_FUNNELS

EXAMPLES: Final = (
    (
        "medamad alert add quiet --website example.com --url https://hooks.example.com/alerts",
        "when a website has gone quiet",
    ),
    (
        (
            "medamad alert add drop --threshold 50 --website example.com --format slack --url -"
            " < slack-url"
        ),
        "when an hour has half as many views as usual; the URL is a secret",
    ),
    (
        (
            "medamad alert add no-goal --goal x7Kq2mVd --hours 24 --website example.com"
            " --url https://hooks.example.com/alerts"
        ),
        "when a goal was not reached for a day",
    ),
    (
        "medamad alert add disk --threshold 5 --format ntfy --url https://ntfy.example.com/medamad",
        "when the disk of the store has less than 5 GiB left",
    ),
    ("medamad alert list --website example.com", "list those of a website"),
    ("medamad alert list", "list those of the service"),
    ("medamad alert remove ID --website example.com", "the list shows the ID"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    add = what.add_parser("add", help="define an alert")
    add.add_argument(
        "kind",
        metavar="KIND",
        help=f"{', '.join(WEBSITE_KINDS)}; of the service: {', '.join(SERVICE_KINDS)}",
    )
    add.add_argument(
        "--threshold",
        metavar="NUMBER",
        type=int,
        help="percent for spike and drop, visits for referrer, times for goal, GiB for disk",
    )
    add.add_argument("--goal", metavar="ID", help="the ID of a goal, for goal and no-goal")
    add.add_argument(
        "--hours", metavar="NUMBER", type=int, help="how many hours goal and no-goal look at"
    )
    add.add_argument(
        "--url", metavar="URL", default="", help='the webhook; "-" reads it from standard input'
    )
    add.add_argument(
        "--report",
        metavar="ID",
        help="with the format mail, the ID of a mailed report, whose address gets the mails",
    )
    add.add_argument(
        "--format",
        metavar="FORMAT",
        default=FORMATS[0],
        help=f"{', '.join(FORMATS)} (default: {FORMATS[0]})",
    )
    listing = what.add_parser("list", help="list the alerts of a website or the service")
    remove = what.add_parser("remove", help="remove an alert")
    remove.add_argument("id", metavar="ID", help="the ID shown by list")
    for each in (add, listing, remove):
        each.add_argument(
            "--website", metavar="HOSTNAME", help="the website (default: the service)"
        )
    for each, work in ((add, _add), (listing, _list), (remove, _remove)):
        add_data(each)
        each.set_defaults(work=work)
    for each in (add, listing):
        add_json(each)


run: Final = run_subcommand


def _add(arguments: Namespace, data_dir: Path) -> int:
    url = sys.stdin.readline() if arguments.url == "-" else arguments.url
    rule = Rule(
        id=new_id(),
        kind=arguments.kind,
        threshold=arguments.threshold,
        goal=arguments.goal,
        hours=arguments.hours,
        url=url,
        report=arguments.report,
        format=arguments.format,
    )
    rule = checked_rule(rule, SERVICE_KINDS if arguments.website is None else WEBSITE_KINDS)
    if rule.goal is not None:
        value_of(data_dir, GOALS_AND_FUNNELS, arguments.website).goal(rule.goal)
    if rule.report is not None:
        reports = list_grants(data_dir, REPORTS).grants
        if rule.report not in [report.id for _, report in reports]:
            raise NotFound(f"there is no report {rule.report}")
    change_value(data_dir, ALL_ALERTS, arguments.website, lambda old: old.with_rule(rule))
    if arguments.json:
        print(json.dumps(shown(rule), indent=1))
    else:
        print(f"Added the alert {rule.kind} (ID {rule.id}), sent to {_receiver(rule)}")
    return 0


def _list(arguments: Namespace, data_dir: Path) -> int:
    rules = value_of(data_dir, ALL_ALERTS, arguments.website).rules
    if arguments.json:
        print(json.dumps([shown(rule) for rule in rules], indent=1))
    elif rules:
        heads = ("ID", "KIND", "THRESHOLD", "GOAL", "HOURS", "URL", "FORMAT", "LAST FIRED")
        print_table([heads, *map(_row, rules)])
    else:
        print("There are no alerts.")
    return 0


def _receiver(rule: Rule) -> str:
    return rule.shown_url if rule.url else f"report {rule.report}"


def _row(rule: Rule) -> tuple[str, ...]:
    fired = "-" if rule.fired is None else f"{datetime.fromtimestamp(rule.fired, UTC):%F %R} UTC"
    members = (rule.threshold, rule.goal, rule.hours, _receiver(rule), rule.format, fired)
    return (rule.id, rule.kind, *("-" if each is None else str(each) for each in members))


def _remove(arguments: Namespace, data_dir: Path) -> int:
    change_value(
        data_dir, ALL_ALERTS, arguments.website, lambda old: old.without_rule(arguments.id)
    )
    print(f"The alert {arguments.id} is removed.")
    return 0
