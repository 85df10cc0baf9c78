"""`medamad annotate`: the annotations of a website, whether the daemon runs or not."""

import json
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Final

import msgspec
from attrs import evolve

from medamad.cli.grants import run_subcommand
from medamad.cli.support import add_data, add_json, counted, print_table
from medamad.domain.annotations import Annotation
from medamad.domain.errors import BadRequest
from medamad.domain.goals import members_of, new_id
from medamad.domain.instants import second_as_text
from medamad.storage.offline import change_value, value_of
from medamad.storage.website_values import ALL_ANNOTATIONS

EXAMPLES: Final = (
    ('medamad annotate add example.com "Deploy 1.4"', "now"),
    (
        (
            'medamad annotate add example.com "New prices" --time 2026-01-31'
            " --link https://example.com/news/prices"
        ),
        "on a day, with a link",
    ),
    ("medamad annotate list example.com", "list them"),
    ("medamad annotate list example.com --json > annotations.json", "export them"),
    ("medamad annotate import example.com < annotations.json", "import those that are missing"),
    ('medamad annotate change example.com ID --text "Deploy 1.4.1"', "the list shows the ID"),
    ("medamad annotate remove example.com ID", "remove one"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    add = what.add_parser("add", help="add an annotation")
    add.add_argument("hostname", metavar="HOSTNAME", help="the website")
    add.add_argument("text", metavar="TEXT", help="what happened, in up to 200 characters")
    listing = what.add_parser("list", help="list the annotations of a website, by time")
    listing.add_argument("hostname", metavar="HOSTNAME", help="the website")
    importing = what.add_parser("import", help="add annotations that list --json has printed")
    importing.add_argument("hostname", metavar="HOSTNAME", help="the website")
    importing.epilog = (
        "Reads them from standard input. What is there already, with the same time, text and link,"
        " is not added again."
    )
    change = what.add_parser("change", help="change an annotation")
    remove = what.add_parser("remove", help="remove an annotation")
    for each in (change, remove):
        each.add_argument("hostname", metavar="HOSTNAME", help="the website")
        each.add_argument("id", metavar="ID", help="the ID shown by list")
    change.add_argument("--text", metavar="TEXT", help="what happened (default: as before)")
    for each, default in ((add, "now"), (change, "as before")):
        each.add_argument(
            "--time",
            metavar="TIME",
            help="a day such as 2026-01-31, or a time such as 2026-01-31T18:00:00Z"
            f" (default: {default})",
        )
        each.add_argument("--link", metavar="URL", help="the address of a page about it")
    for each in (add, listing, change):
        add_json(each)
    for each, work in (
        (add, _add),
        (listing, _list),
        (importing, _import),
        (change, _change),
        (remove, _remove),
    ):
        add_data(each)
        each.set_defaults(work=work)


run: Final = run_subcommand


def _add(arguments: Namespace, data_dir: Path) -> int:
    new = Annotation(
        id=new_id(),
        time=second_as_text(int(time.time())) if arguments.time is None else arguments.time,
        text=arguments.text,
        link=arguments.link,
    )
    annotations = change_value(
        data_dir, ALL_ANNOTATIONS, arguments.hostname, lambda old: old.with_annotation(new)
    )
    _print("Added", annotations.annotation(new.id), as_json=arguments.json)
    return 0


def _change(arguments: Namespace, data_dir: Path) -> int:
    wanted = {name: getattr(arguments, name) for name in ("text", "time", "link")}
    members = {name: value for name, value in wanted.items() if value is not None}
    annotations = change_value(
        data_dir,
        ALL_ANNOTATIONS,
        arguments.hostname,
        lambda old: old.with_changed(arguments.id, lambda each: evolve(each, **members)),
    )
    _print("Changed", annotations.annotation(arguments.id), as_json=arguments.json)
    return 0


def _print(done: str, annotation: Annotation, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(members_of(annotation), indent=1))
    else:
        print(f"{done} the annotation {annotation.text} (ID {annotation.id}) at {annotation.time}.")


def _list(arguments: Namespace, data_dir: Path) -> int:
    listed = value_of(data_dir, ALL_ANNOTATIONS, arguments.hostname).all
    if arguments.json:
        print(json.dumps([members_of(each) for each in listed], indent=1))
    elif listed:
        rows = [(each.id, each.time, each.text, each.link or "-") for each in listed]
        print_table([("ID", "TIME", "TEXT", "LINK"), *rows])
    else:
        print("There are no annotations.")
    return 0


class _Listed(msgspec.Struct, forbid_unknown_fields=True):
    """An annotation as it is listed; it gets another ID."""

    time: str
    text: str
    link: str | None = None
    id: str = ""


def _import(arguments: Namespace, data_dir: Path) -> int:
    try:
        listed = msgspec.json.decode(sys.stdin.buffer.read(), type=list[_Listed])
    except msgspec.DecodeError as error:
        raise BadRequest(
            f"standard input: expected what `medamad annotate list --json` prints: {error}"
        ) from None
    others = [
        Annotation(id=new_id(), time=each.time, text=each.text, link=each.link) for each in listed
    ]
    ids = {each.id for each in others}
    annotations = change_value(
        data_dir, ALL_ANNOTATIONS, arguments.hostname, lambda old: old.with_those_of(others)
    )
    added = sum(each.id in ids for each in annotations.all)
    print(f"Added {counted(added, 'annotation')}; {len(others) - added:,} were there already.")
    return 0


def _remove(arguments: Namespace, data_dir: Path) -> int:
    change_value(
        data_dir, ALL_ANNOTATIONS, arguments.hostname, lambda old: old.without(arguments.id)
    )
    print(f"The annotation {arguments.id} is removed.")
    return 0
