"""`medamad import`: takes what was exported into a website, or takes that back."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from attrs import frozen

from medamad.commands.configured import add_data, on_data
from medamad.commands.telling import Telling
from medamad.config import load
from medamad.config_files import load_lists
from medamad.model.errors import BadRequest, Conflict, NotFound
from medamad.model.websites import Website
from medamad.moves.formats import SOURCES
from medamad.moves.gathering import Gathering, Known, gather
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
    rows_request,
)
from medamad.settings import rules
from medamad.store.batches import Batch, check_new, check_ranges
from medamad.store.errors import DamagedBlock
from medamad.store.offline import Guest, reading_beside
from medamad.store.origins import Span

_ANSWERS_WITHIN_S: Final = 300.0
"""A block is stored in far less, but the disk may be slow and others may be at work."""

EXAMPLES: Final = (
    ("medamad import --website example.com --dry-run views.csv", "what would come in"),
    ("medamad import --website example.com views.csv events.csv", "both as one import"),
    ("medamad import --website example.com access.log.1.gz access.log", "logs of a web server"),
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
        choices=tuple(SOURCES),
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
        "the first and the last of an earlier import; --overlapping takes them all the same.\n\n"
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


class Report(msgspec.Struct, kw_only=True):
    """What came in, or would."""

    website: str
    number: int | None
    """Of the import, None where it was none."""
    dry_run: bool
    files: list[str]
    views: int
    visitors: int
    events: int
    first: str | None
    last: str | None
    """The days of the first and of the last row, in UTC."""
    already_there: int
    refused: int
    reasons: list[str]
    """Why rows were refused: the first of them."""


@frozen(eq=False)
class _Plan:
    """What is to be imported, and what the website has."""

    website: Website
    files: list[Given]
    digest: str
    survey: Survey
    batches: list[Batch]
    known: Known


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
    check_new(batches, digest, max((batch.number for batch in batches), default=0))
    found = Survey()
    for found in survey(files):
        telling.tell(found.rows, 0)
    telling.end()
    check_ranges(found.ranges)
    with reading_beside(data_dir) as guest:
        known = _known(guest, website, found, overlapping=arguments.overlapping)
        plan = _Plan(website, files, digest, found, batches, known)
    if arguments.dry_run:
        return _dry_run(plan, arguments)
    if found.refused_rows and not arguments.skip_refused:
        _tell_refused(found)
        told = f"{found.refused_rows:,} of {found.rows:,} rows are refused, and nothing was stored"
        print(f"medamad: {told}; --skip-refused imports the others", file=sys.stderr)
        return 1
    with connect(data_dir, _ANSWERS_WITHIN_S) as daemon, connect(data_dir) as holding:
        return _send(plan, daemon, holding, arguments)


def _known(guest: Guest, website: Website, found: Survey, *, overlapping: bool) -> Known:
    def damaged(error: DamagedBlock) -> None:
        raise Conflict(f"the store is damaged, and it cannot be told what is there: {error}")

    held, origins = guest.hold(website, damaged), guest.origins(website)
    return Known.of(held, origins, found.ranges, overlapping=overlapping)


def _dry_run(plan: _Plan, arguments: Namespace) -> int:
    spans = {store: Span(store, first, last, 1) for store, first, last in plan.survey.ranges}
    gathering = Gathering(plan.known, plan.survey, spans)
    telling = Telling("rows", sys.stderr)
    for _ in gather(plan.files, gathering):
        telling.tell(gathering.rows, plan.survey.rows)
    telling.end()
    _report(plan, gathering, None, arguments)
    return 0


def _send(plan: _Plan, daemon: Connection, holding: Connection, arguments: Namespace) -> int:
    begun = daemon.ask(
        BeginImport(
            website=plan.website.hostname,
            source=", ".join(given.path.name for given in plan.files),
            digest=plan.digest,
            ranges=tuple(plan.survey.ranges),
            newest=max((batch.number for batch in plan.batches), default=0),
        ),
        Begun,
    )
    # If this process ends before the import does, the daemon takes back what came in.
    holding.send(HoldImport(begun.number))
    spans = {span.store: span for span in begun.spans}
    gathering = Gathering(plan.known, plan.survey, spans)
    telling = Telling("rows", sys.stderr)
    with _undone_on_failure(plan, daemon, begun.number):
        for piece in gather(plan.files, gathering):
            if piece is not None:
                daemon.ask(rows_request(begun.number, piece), Nothing)
            telling.tell(gathering.rows, plan.survey.rows)
        telling.end()
        if not gathering.views + gathering.events:
            raise NotDone("nothing was imported: the website has all of it already")
        ended = daemon.ask(FinishImport(begun.number), Ended)
    _report(plan, gathering, ended, arguments)
    return 0


@contextmanager
def _undone_on_failure(plan: _Plan, daemon: Connection, number: int) -> Iterator[None]:
    try:
        yield
    except (NotDone, BadRequest, OSError) as error:
        # A daemon that has gone removes it when it starts again.
        with suppress(NotDone):
            daemon.ask(UndoImport(plan.website.hostname, number), Ended)
        raise error from None


def _report(plan: _Plan, gathering: Gathering, ended: Ended | None, arguments: Namespace) -> None:
    found = plan.survey
    report = Report(
        website=plan.website.hostname,
        number=None if ended is None else ended.number,
        dry_run=ended is None,
        files=[str(given.path) for given in plan.files],
        views=gathering.views,
        visitors=gathering.visitors,
        events=gathering.events,
        first=_day(found.first_ms) if found.last_ms >= 0 else None,
        last=_day(found.last_ms) if found.last_ms >= 0 else None,
        already_there=gathering.there,
        refused=found.refused_rows,
        reasons=list(_reasons(found)),
    )
    if arguments.json:
        print(msgspec.json.encode(report).decode())
        return
    if ended is None:
        print(f"{report.website}: this would come in, and nothing was stored:")
    else:
        print(f"{report.website}: imported as number {report.number}:")
    print(f"  {report.views:,} views of {report.visitors:,} visitors, {report.events:,} events")
    if report.first is not None:
        print(f"  from {report.first} to {report.last}")
    if report.already_there:
        print(f"  {report.already_there:,} views and events are there already, and left out")
    if report.refused:
        print(f"  {report.refused:,} rows are refused:")
        _tell_refused(found)
    if ended is not None:
        print(f"`medamad import --undo {report.number}` removes them again.")


def _reasons(found: Survey) -> Iterator[str]:
    for file, row in found.refused:
        line = f", line {row.line}" if row.line else ""
        yield f"{file}{line}: {row.field}: {row.reason}"


def _tell_refused(found: Survey) -> None:
    for reason in _reasons(found):
        print(f"medamad: {reason}", file=sys.stderr)
    if found.refused_rows > len(found.refused):
        print(f"medamad: and {found.refused_rows - len(found.refused):,} more", file=sys.stderr)


def _day(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms // 1000, UTC).date().isoformat()


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
                first=_day(batch.first_ms),
                last=_day(batch.last_ms),
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
