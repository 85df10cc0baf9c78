"""`medamad import`: import files into a website, list imports, or undo one."""

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, Final

import msgspec

from medamad.admin.client import AdminConnection, NotRunning, RequestFailed, connect
from medamad.admin.import_requests import robots_requests
from medamad.admin.imports import (
    NO_DAYS_IN_CLUSTER,
    BeginImport,
    Begun,
    Ended,
    FinishImport,
    HoldImport,
    ImportFailed,
    Nothing,
    UndoImport,
)
from medamad.cli.import_report import (
    Gathered,
    Plan,
    date_of_time,
    nothing_in,
    print_rejected,
    report,
)
from medamad.cli.reading import reader_of
from medamad.cli.settings import add, parsed
from medamad.cli.support import (
    ProgressLine,
    add_data,
    counted,
    effective_config,
    on_data,
    print_error,
)
from medamad.config.lists import load_lists
from medamad.config.schema import Config
from medamad.config.settings import cluster_settings, retention, rules
from medamad.daemon.messages import reason_of
from medamad.domain.errors import ApiError, BadRequest, Conflict, NotFound
from medamad.domain.exported_settings import ExportedSettings
from medamad.domain.instants import day_as_text
from medamad.domain.websites import Website
from medamad.domain.zones import DAY_S, day_at
from medamad.ingest.website_rules import WebsiteRules
from medamad.lookup.referrers import Sources
from medamad.storage.compaction.retention import Cutoff, cutoff_of
from medamad.storage.environment.owner import is_of_owner
from medamad.storage.errors import DamagedSegment, StoreError
from medamad.storage.import_batches import ImportBatch, Span, check_new, check_ranges
from medamad.storage.offline import StoreReader, defined_for, open_reader
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.import_days import (
    DayGatherer,
    DaySurvey,
    are_day_files,
    existing_days,
    survey_days,
)
from medamad.transfer.import_rows import (
    NOTHING_ELSEWHERE,
    ExistingHits,
    HitsElsewhere,
    RowGatherer,
)
from medamad.transfer.import_survey import (
    ImportFile,
    Survey,
    digest_of,
    exclusions_in,
    survey_rows,
)
from medamad.transfer.registry import SOURCE_NAMES


class ListedImport(msgspec.Struct):
    """An import in the list."""

    number: int
    website: str
    source: str
    made: str
    views: int
    visitors: int
    events: int
    first: str
    last: str


def list_imports(data_dir: Path, *, as_json: bool) -> int:
    """Print the list; return the exit status."""
    with open_reader(data_dir) as reader:
        found = [
            ListedImport(
                number=batch.number,
                website=website.hostname,
                source=batch.source,
                made=datetime.fromtimestamp(batch.made, UTC).isoformat(),
                views=batch.views,
                visitors=batch.visitors,
                events=batch.events,
                first=first,
                last=last,
            )
            for website, batch in batches(reader)
            for first, last in [_dates(batch)]
        ]
    if as_json:
        print(msgspec.json.encode(found).decode())
    else:
        for each in found:
            print(_line(each))
    return 0


def batches(reader: StoreReader) -> Iterator[tuple[Website, ImportBatch]]:
    """Return the imports of all websites, by number."""
    found = [(website, batch) for website in reader.websites() for batch in reader.batches(website)]
    yield from sorted(found, key=lambda pair: pair[1].number)


def _dates(batch: ImportBatch) -> tuple[str, str]:
    """Return the first and the last date, as the import reported them."""
    if batch.days is not None:
        return day_as_text(batch.days[0]), day_as_text(batch.days[1])
    return date_of_time(batch.first_ms), date_of_time(batch.last_ms)


def _line(each: ListedImport) -> str:
    return (
        f"{each.number}  {each.website}  {each.made}  {counted(each.views, 'view')}, "
        f"{counted(each.events, 'event')}, {each.first} to {each.last}: {each.source!r}"
    )


_ANSWERS_WITHIN_S: Final = 300.0
"""A request usually takes far less, but the disk may be slow or busy."""

_NOTED_WITHIN_S: Final = 10.0
_LONGEST_REASON: Final = 300
"""Characters of the reason of a failure that alerts name."""

EXAMPLES: Final = (
    ("medamad import --website example.com --dry-run views.csv", "what would be imported"),
    ("medamad import --website example.com views.csv events.csv", "both as one import"),
    ("medamad import --website example.com access.log.1.gz access.log", "logs of a web server"),
    ("medamad import --website example.com plausible.zip", "an export of Plausible"),
    ("medamad import --list", "list imports by number"),
    ("medamad import --undo 1", "remove what import 1 added"),
)


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="a file to import")
    parser.add_argument("--website", metavar="HOSTNAME", help="the website to import into")
    parser.add_argument(
        "--from",
        dest="source",
        choices=SOURCE_NAMES,
        help="the source of the files (default: recognized by their contents)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be imported; store nothing"
    )
    parser.add_argument(
        "--skip-refused", action="store_true", help="import without the rows that are rejected"
    )
    parser.add_argument(
        "--overlapping",
        action="store_true",
        help="also import hits of times that were counted here or imported before",
    )
    parser.add_argument("--list", action="store_true", help="list imports")
    parser.add_argument(
        "--undo", type=int, metavar="NUMBER", help="remove what the import with this number added"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_data(parser)
    parser.set_defaults(misused=parser.error)
    parser.epilog = (
        "Needs a running daemon, except for --dry-run and --list. All files of one command\n"
        "become one import, which becomes visible when it is complete. Nothing is counted twice:\n"
        "hits that the website already has are left out, even if only daily totals remain, and\n"
        "the same files cannot be imported again. Hits counted by another program are left out\n"
        "from the first hit counted here on, and between the first and the last hit of an\n"
        "earlier import; so are the daily totals of another program for days that already have\n"
        "data. --overlapping imports them anyway.\n\n"
        "A file of `medamad export --what exclusions` adds the exclusions that are not there yet,\n"
        "with the goals that they name; --undo leaves them there.\n\n"
        f"{parser.epilog}"
    )


def run(arguments: Namespace) -> int:
    """Import, list or undo; the exit status is 1 if not everything was imported."""
    if (wrong := _misuse(arguments)) is not None:
        arguments.misused(wrong)
    by_file = not arguments.list and arguments.undo is None
    return on_data(arguments, lambda data_dir: _run(data_dir, arguments), by_file=by_file)


def _misuse(arguments: Namespace) -> str | None:
    """Return what is wrong with the arguments, if anything is."""
    alone = "--list" if arguments.list else "--undo" if arguments.undo is not None else ""
    others = {
        "FILE": arguments.files,
        "--website": arguments.website is not None,
        "--from": arguments.source is not None,
        "--dry-run": arguments.dry_run,
        "--skip-refused": arguments.skip_refused,
        "--overlapping": arguments.overlapping,
        "--undo": arguments.list and arguments.undo is not None,
    }
    if alone:
        wrong = next((name for name, is_there in others.items() if is_there), None)
        return wrong and f"{wrong}: not expected with {alone}"
    if not arguments.files:
        return "FILE: expected at least one file"
    if arguments.website is None:
        return "--website: expected the website to import into"
    return None


def _run(data_dir: Path, arguments: Namespace) -> int:
    try:
        if arguments.list:
            return list_imports(data_dir, as_json=arguments.json)
        if arguments.undo is not None:
            return _undo(data_dir, arguments)
        if arguments.dry_run:
            return _import(data_dir, arguments)
        with _failure_reported(data_dir, arguments.website):
            return _import(data_dir, arguments)
    except (NotRunning, RequestFailed) as error:
        print_error(str(error))
        return 1


@contextmanager
def _failure_reported(data_dir: Path, hostname: str) -> Iterator[None]:
    """Let the daemon know of an import that fails, for its alerts, if it is running."""
    try:
        yield
    except (ApiError, OSError, StoreError, RequestFailed) as error:
        reason = reason_of(error) if isinstance(error, OSError) else str(error)
        with (
            suppress(NotRunning, RequestFailed, OSError),
            connect(data_dir, _NOTED_WITHIN_S) as daemon,
        ):
            daemon.request(ImportFailed(hostname, reason[:_LONGEST_REASON]), Nothing)
        raise


def _import(data_dir: Path, arguments: Namespace) -> int:
    progress = ProgressLine("rows read", sys.stderr)
    with open_reader(data_dir) as reader:
        website = reader.website(arguments.website)
        before = reader.batches(website)
        others = {each.hostname: WebsiteRules.of(each.settings) for each in reader.websites()}
    # The files may be long or slow: they are read without a transaction.
    effective = effective_config(data_dir, arguments.config)
    effective.check_zone()
    config = effective.config
    latest_ms = round((time.time() + DAY_S) * 1000)
    into = ImportTarget(
        website.hostname,
        rules(config, load_lists(config)),
        latest_ms,
        WebsiteRules.of(website.settings),
        others,
    )
    for path in arguments.files:
        if is_of_owner(path, data_dir):
            raise BadRequest(
                f"{path}: expected a file outside the data directory, in which its owner may put"
                " links; or import it as that user"
            )
    exclusions, paths = _divided(arguments.files)
    files = [ImportFile.of(path, arguments.source, into) for path in paths]
    digest = digest_of(files)
    newest = max((batch.number for batch in before), default=0)
    check_new(before, digest, newest)
    found = Survey()
    for found in survey_days(files) if are_day_files(files) else survey_rows(files):
        progress.update(found.rows)
    progress.end()
    check_ranges(found.ranges)
    now_ms = round(time.time() * 1000)
    before_import = defined_for(data_dir, website.hostname)
    missing = before_import.with_imported(exclusions, ())[1].exclusions
    with open_reader(data_dir) as reader:
        kept = retention(effective.of_daemon())
        keep = kept.of(website.hostname, {each.hostname for each in reader.websites()})
        cutoff = cutoff_of(keep, kept.zone, now_ms)
        waits_ms = reader.doubt_left_ms(now_ms)
        gathering = _gathering(
            reader,
            website,
            found,
            into.rules.zone,
            cutoff,
            overlapping=arguments.overlapping,
            elsewhere=_elsewhere(effective.config, reader, website, found),
        )
    plan = Plan(
        *(website, files, digest, found, newest, gathering, cutoff, waits_ms, exclusions, missing)
    )
    if arguments.dry_run:
        return _dry_run(plan, arguments)
    if found.rejected_rows and not arguments.skip_refused:
        print_rejected(found)
        raise BadRequest(_unskipped(found, "and nothing was stored"))
    with connect(data_dir, _ANSWERS_WITHIN_S) as daemon, connect(data_dir) as holding:
        return _send(data_dir, plan, daemon, holding, arguments)


def _divided(paths: Sequence[Path]) -> tuple[ExportedSettings, Sequence[Path]]:
    """Return the exclusions in one of the files, if it has some, and the other files."""
    texts = {path: text for path in paths if (text := exclusions_in(path)) is not None}
    if not texts:
        return ExportedSettings(), paths
    path, *others = texts
    if others:
        raise BadRequest(f"{others[0]}: expected one file of exclusions, besides {path}")
    hits = [each for each in paths if each != path]
    if not hits:
        raise BadRequest(
            f"{path}: expected views or events beside exclusions; `medamad settings import` adds"
            " exclusions alone"
        )
    try:
        return parsed(texts[path]), hits
    except (msgspec.MsgspecError, BadRequest) as error:
        raise BadRequest(f"{path}: not valid exclusions: {error}") from None


def _gathering(
    reader: StoreReader,
    website: Website,
    found: Survey,
    zone: tzinfo,
    cutoff: Cutoff | None,
    *,
    overlapping: bool,
    elsewhere: HitsElsewhere,
) -> Callable[[Sequence[Span]], Gathered]:
    """Return what begins to gather what the website does not have. Raises Conflict."""
    snapshot = reader.snapshot(website, _damaged)
    before_ms = 0 if cutoff is None else cutoff.before_ms
    if isinstance(found, DaySurvey):
        there = set() if overlapping else existing_days(snapshot, zone)
        today = day_at(zone, int(time.time()))
        if cutoff is not None and cutoff.keeps_rollups:
            before_ms = 0
        return lambda _: DayGatherer(found.days, zone, today, there, before_ms)
    existing = ExistingHits.of(
        snapshot,
        reader.origins(website),
        reader.batches(website),
        found.ranges,
        overlapping=overlapping,
        elsewhere=elsewhere,
    )
    return lambda spans: RowGatherer(existing, found, spans, before_ms)


def _elsewhere(
    config: Config, store: StoreReader, website: Website, found: Survey
) -> HitsElsewhere:
    """Return the hits that are in a cluster.

    Raises Conflict if the new ones are daily totals, which it cannot have, or if the configuration
    does not name it; ConfigError; and Unavailable if it does not answer.
    """
    cluster = cluster_settings(config, os.environ)
    if cluster is None:
        store.check_is_whole()
        return NOTHING_ELSEWHERE
    if isinstance(found, DaySurvey):
        raise Conflict(NO_DAYS_IN_CLUSTER)
    # Only with a cluster.
    from medamad.query.clickhouse.reader import ClickHouseReader  # noqa: PLC0415
    from medamad.transfer.cluster_import import hits_in_cluster  # noqa: PLC0415

    with reader_of(config, store, website, Sources({})) as reader:
        if not isinstance(reader, ClickHouseReader):
            raise TypeError("not a reader of a cluster")
        return hits_in_cluster(
            reader,
            cluster.collector,
            store.origins(website),
            store.batches(website),
            found.ranges,
        )


def _damaged(error: DamagedSegment) -> None:
    raise Conflict(f"the store is damaged, so existing data cannot be compared: {error}")


def _dry_run(plan: Plan, arguments: Namespace) -> int:
    spans = [Span(store, first, last, 1) for store, first, last in plan.survey.ranges]
    gathering = plan.gathering(spans)
    progress = ProgressLine("rows", sys.stderr)
    for _ in plan.requests(gathering, 0):
        progress.update(gathering.rows, plan.survey.rows)
    progress.end()
    report(plan, gathering, None, as_json=arguments.json)
    if plan.survey.rejected_rows and not arguments.skip_refused:
        print_error(_unskipped(plan.survey, "and nothing would be stored"))
        return 1
    if _is_nothing(plan, gathering):
        print_error(nothing_in(plan, gathering))
        return 1
    return 0


def _is_nothing(plan: Plan, gathering: Gathered) -> bool:
    """Return whether there is nothing to store: a log may have requests of robots alone."""
    return not (gathering.views + gathering.events or plan.survey.robots)


def _unskipped(found: Survey, what: str) -> str:
    return (
        f"{found.rejected_rows:,} of {found.rows:,} rows are rejected, {what};"
        " --skip-refused imports the others"
    )


def _send(
    data_dir: Path,
    plan: Plan,
    daemon: AdminConnection,
    holding: AdminConnection,
    arguments: Namespace,
) -> int:
    begun = daemon.request(
        BeginImport(
            website=plan.website.hostname,
            source=", ".join(given.path.name for given in plan.files),
            digest=plan.digest,
            ranges=tuple(plan.survey.ranges),
            newest=plan.newest,
        ),
        Begun,
    )
    # If this process ends before the import does, the daemon removes what it has added.
    holding.send(HoldImport(begun.number))
    gathering = plan.gathering(begun.spans)
    progress = ProgressLine("rows", sys.stderr)
    with _undone_on_failure(plan, daemon, begun.number):
        for request in plan.requests(gathering, begun.number):
            if request is not None:
                daemon.request(request, Nothing)
            progress.update(gathering.rows, plan.survey.rows)
        progress.end()
        if _is_nothing(plan, gathering):
            raise RequestFailed(nothing_in(plan, gathering))
        for request in robots_requests(begun.number, plan.survey.robots):
            daemon.request(request, Nothing)
        # Before the hits can be seen, what exclusions leave out of figures is left out.
        add(data_dir, plan.website.hostname, plan.exclusions)
        ended = daemon.request(FinishImport(begun.number), Ended)
    report(plan, gathering, ended, as_json=arguments.json)
    return 0


@contextmanager
def _undone_on_failure(plan: Plan, daemon: AdminConnection, number: int) -> Iterator[None]:
    try:
        yield
    except (RequestFailed, BadRequest, OSError) as error:
        # If the daemon is gone, it removes the import at its next start.
        with suppress(RequestFailed):
            daemon.request(UndoImport(plan.website.hostname, number), Ended)
        raise error from None


def _undo(data_dir: Path, arguments: Namespace) -> int:
    number = arguments.undo
    with open_reader(data_dir) as reader:
        of = [website for website, batch in batches(reader) if batch.number == number]
    if not of:
        raise NotFound(f"--undo: nothing was imported as number {number}")
    with connect(data_dir, _ANSWERS_WITHIN_S) as daemon:
        removed = daemon.request(UndoImport(of[0].hostname, number), Ended)
    if arguments.json:
        found: dict[str, Any] = {"website": of[0].hostname} | msgspec.to_builtins(removed)
        print(msgspec.json.encode(found).decode())
    else:
        print(
            f"{of[0].hostname}: removed {counted(removed.views, 'view')} and "
            f"{counted(removed.events, 'event')} that were imported as number {number}"
        )
    return 0
