"""`medamad import`: takes what was exported into a website, or takes that back."""

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from medamad.commands.configured import add_data, on_data
from medamad.commands.import_plan import KnownDays, Plan, known_rows
from medamad.commands.import_report import date_of_time, nothing_in, report, tell_refused
from medamad.commands.telling import Telling
from medamad.config import load
from medamad.config_files import load_lists
from medamad.model.errors import BadRequest, NotFound
from medamad.model.websites import Website
from medamad.model.zones import day_at
from medamad.moves.day_survey import DaySurvey, are_of_days, survey_days
from medamad.moves.formats import SOURCE_NAMES
from medamad.moves.gathering import Known
from medamad.moves.survey import Given, Survey, digest_of, survey
from medamad.moves.visits import Into
from medamad.operator.client import Connection, NotDone, NotRunning, connect
from medamad.operator.imports import (
    BeginImport,
    Begun,
    Ended,
    FinishImport,
    HoldImport,
    Nothing,
    UndoImport,
)
from medamad.settings import rules
from medamad.store.batches import Batch, check_new, check_ranges
from medamad.store.offline import Guest, reading_beside
from medamad.store.origins import Span

_ANSWERS_WITHIN_S: Final = 300.0
"""A block is stored in far less, but the disk may be slow and others may be at work."""

EXAMPLES: Final = (
    ("medamad import --website example.com --dry-run views.csv", "what would come in"),
    ("medamad import --website example.com views.csv events.csv", "both as one import"),
    ("medamad import --website example.com access.log.1.gz access.log", "logs of a web server"),
    ("medamad import --website example.com plausible.zip", "what Plausible exported"),
    ("medamad import --list", "what was imported, by number"),
    ("medamad import --undo 1", "takes back import 1"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="what is imported")
    parser.add_argument("--website", metavar="HOSTNAME", help="the website that it goes into")
    parser.add_argument(
        "--from",
        dest="source",
        choices=SOURCE_NAMES,
        help="what the files are (without: told by how they begin)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would come in, and store nothing"
    )
    parser.add_argument(
        "--skip-refused", action="store_true", help="import without the rows that are refused"
    )
    parser.add_argument(
        "--overlapping",
        action="store_true",
        help="take hits of other programs also of times that were counted",
    )
    parser.add_argument("--list", action="store_true", help="list what was imported")
    parser.add_argument(
        "--undo", type=int, metavar="NUMBER", help="remove what was imported as that number"
    )
    parser.add_argument("--json", action="store_true", help="write JSON on standard output")
    add_data(parser)
    parser.epilog = (
        "Needs a running daemon, but for --dry-run and --list. All files of one call become one\n"
        "import, which is seen when it is whole, and counts once: hits that the website has\n"
        "already are left out, and the same files are refused a second time. Hits that another\n"
        "program has counted are left out from the first on that was counted here, and between\n"
        "the first and the last of an earlier import, and of days that it has added up those of\n"
        "which there is anything; --overlapping takes them all the same.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Import, list or undo; the exit status is 1 when nothing came in that was to."""
    return on_data(arguments, lambda data_dir: _run(data_dir, arguments))


def _run(data_dir: Path, arguments: Namespace) -> int:
    try:
        if arguments.list:
            return _list(data_dir, arguments)
        if arguments.undo is not None:
            return _undo(data_dir, arguments)
        return _import(data_dir, arguments)
    except (NotRunning, NotDone) as error:
        print(f"medamad: {error}", file=sys.stderr)
        return 1


def _import(data_dir: Path, arguments: Namespace) -> int:
    if not arguments.files:
        raise BadRequest("FILE: expected at least one file")
    if arguments.website is None:
        raise BadRequest("--website: expected the website that it goes into")
    telling = Telling("rows looked through", sys.stderr)
    with reading_beside(data_dir) as guest:
        website = guest.website(arguments.website)
        batches = guest.batches(website)
    # The files may be long or slow: no transaction waits for them.
    config = load(arguments.config)
    into = Into(website.hostname, rules(config, load_lists(config)))
    files = [Given.of(path, arguments.source, into) for path in arguments.files]
    digest = digest_of(files)
    newest = max((batch.number for batch in batches), default=0)
    check_new(batches, digest, newest)
    found = Survey()
    for found in survey_days(files) if are_of_days(files) else survey(files):
        telling.tell(found.rows, 0)
    telling.end()
    check_ranges(found.ranges)
    with reading_beside(data_dir) as guest:
        known: Known | KnownDays
        if isinstance(found, DaySurvey):
            zone = into.rules.zone
            today = day_at(zone, int(time.time()))
            known = KnownDays.of(guest, website, zone, today, overlapping=arguments.overlapping)
        else:
            known = known_rows(guest, website, found, overlapping=arguments.overlapping)
    plan = Plan(website, files, digest, found, newest, known)
    if arguments.dry_run:
        return _dry_run(plan, arguments)
    if found.refused_rows and not arguments.skip_refused:
        tell_refused(found)
        told = f"{found.refused_rows:,} of {found.rows:,} rows are refused, and nothing was stored"
        print(f"medamad: {told}; --skip-refused imports the others", file=sys.stderr)
        return 1
    with connect(data_dir, _ANSWERS_WITHIN_S) as daemon, connect(data_dir) as holding:
        return _send(plan, daemon, holding, arguments)


def _dry_run(plan: Plan, arguments: Namespace) -> int:
    spans = {store: Span(store, first, last, 1) for store, first, last in plan.survey.ranges}
    gathering = plan.gathering(spans)
    telling = Telling("rows", sys.stderr)
    for _ in plan.requests(gathering, 0):
        telling.tell(gathering.rows, plan.survey.rows)
    telling.end()
    report(plan, gathering, None, as_json=arguments.json)
    return 0


def _send(plan: Plan, daemon: Connection, holding: Connection, arguments: Namespace) -> int:
    begun = daemon.ask(
        BeginImport(
            website=plan.website.hostname,
            source=", ".join(given.path.name for given in plan.files),
            digest=plan.digest,
            ranges=tuple(plan.survey.ranges),
            newest=plan.newest,
        ),
        Begun,
    )
    # If this process ends before the import does, the daemon takes back what came in.
    holding.send(HoldImport(begun.number))
    spans = {span.store: span for span in begun.spans}
    gathering = plan.gathering(spans)
    telling = Telling("rows", sys.stderr)
    with _undone_on_failure(plan, daemon, begun.number):
        for request in plan.requests(gathering, begun.number):
            if request is not None:
                daemon.ask(request, Nothing)
            telling.tell(gathering.rows, plan.survey.rows)
        telling.end()
        if not gathering.views + gathering.events:
            raise NotDone(nothing_in(gathering))
        ended = daemon.ask(FinishImport(begun.number), Ended)
    report(plan, gathering, ended, as_json=arguments.json)
    return 0


@contextmanager
def _undone_on_failure(plan: Plan, daemon: Connection, number: int) -> Iterator[None]:
    try:
        yield
    except (NotDone, BadRequest, OSError) as error:
        # A daemon that has gone removes it when it starts again.
        with suppress(NotDone):
            daemon.ask(UndoImport(plan.website.hostname, number), Ended)
        raise error from None


class Listed(msgspec.Struct):
    """An import, as it is listed."""

    number: int
    website: str
    source: str
    made: str
    views: int
    visitors: int
    events: int
    first: str
    last: str


def _list(data_dir: Path, arguments: Namespace) -> int:
    with reading_beside(data_dir) as guest:
        found = [
            Listed(
                number=batch.number,
                website=website.hostname,
                source=batch.source,
                made=datetime.fromtimestamp(batch.made, UTC).isoformat(),
                views=batch.views,
                visitors=batch.visitors,
                events=batch.events,
                first=date_of_time(batch.first_ms),
                last=date_of_time(batch.last_ms),
            )
            for website, batch in _batches(guest)
        ]
    if arguments.json:
        print(msgspec.json.encode(found).decode())
        return 0
    for each in found:
        print(
            f"{each.number}  {each.website}  {each.made}  {each.views:,} views, "
            f"{each.events:,} events, {each.first} to {each.last}: {each.source!r}"
        )
    return 0


def _batches(guest: Guest) -> Iterator[tuple[Website, Batch]]:
    found = [(website, batch) for website in guest.websites() for batch in guest.batches(website)]
    yield from sorted(found, key=lambda pair: pair[1].number)


def _undo(data_dir: Path, arguments: Namespace) -> int:
    number = arguments.undo
    with reading_beside(data_dir) as guest:
        of = [website for website, batch in _batches(guest) if batch.number == number]
    if not of:
        raise NotFound(f"--undo: nothing was imported as number {number}")
    with connect(data_dir, _ANSWERS_WITHIN_S) as daemon:
        gone = daemon.ask(UndoImport(of[0].hostname, number), Ended)
    told: dict[str, Any] = {"website": of[0].hostname} | msgspec.to_builtins(gone)
    if arguments.json:
        print(msgspec.json.encode(told).decode())
    else:
        print(
            f"{of[0].hostname}: removed {gone.views:,} views and {gone.events:,} events "
            f"that were imported as number {number}"
        )
    return 0
