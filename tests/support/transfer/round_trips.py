"""Exports and imports of stores in this process, without a daemon."""

from collections.abc import Iterable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from attrs import frozen
from support.query.readers import reader_of
from support.storage.hits import DAY_MS, NOW_MS

from medamad.admin.import_requests import rows_request
from medamad.admin.imports import (
    MAX_PENDING_BYTES,
    BeginImport,
    Ended,
    FinishImport,
    ImportHandlers,
)
from medamad.domain.websites import Website
from medamad.ingest.pipeline import Rules
from medamad.lookup.referrers import Sources
from medamad.query.buckets import INTERVALS
from medamad.query.period import Period
from medamad.query.reports import SummaryOptions, summary
from medamad.query.request import Filter, Query
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.store import Store
from medamad.transfer.export import ExportRequest, ExportSource
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.import_rows import ExistingHits, RowGatherer
from medamad.transfer.import_survey import ImportFile, Survey, digest_of, survey_rows

SOURCES = Sources({"google.com": "Google"})
LATER_MS = NOW_MS + 9 * DAY_MS


def exported(
    store: Store, website: Website, request: ExportRequest, *, has_visits: bool = True
) -> bytes:
    """Return a whole file."""
    with store.snapshot(website) as snapshot:
        source = ExportSource(
            snapshot=snapshot,
            origins=store.imports.origins(website),
            sources=SOURCES,
            period=request.period,
            has_visits=has_visits,
        )
        pieces = list(request.encoded(source, LATER_MS))
    assert all(one.done <= other.done for one, other in pairwise(pieces))
    assert pieces[-1].done == pieces[-1].total
    return b"".join(piece.data for piece in pieces)


def files_of(store: Store, website: Website, folder: Path, format_name: str) -> list[Path]:
    """Write the views and the events of a website into files."""
    folder.mkdir(exist_ok=True)
    paths = []
    for what in ("views", "events"):
        path = folder / f"{what}.{format_name}"
        path.write_bytes(exported(store, website, ExportRequest(what=what, format=format_name)))
        paths.append(path)
    return paths


@frozen
class Taken:
    ended: Ended
    gathering: RowGatherer
    survey: Survey
    waiting: int
    """How many pieces were not stored at once, at most."""


async def take_in(
    store: Store,
    website: Website,
    paths: Iterable[Path],
    most_bytes: int = MAX_PENDING_BYTES,
    *,
    overlapping: bool = False,
    rules: Rules = Rules(),  # noqa: B008 - it is frozen
) -> Taken:
    """Import files, as the command does."""
    handlers = ImportHandlers(store, lambda: 7, most_bytes)
    waiting = 0
    files = [ImportFile.of(path, None, ImportTarget(website.hostname, rules)) for path in paths]
    *_, found = survey_rows(files)
    origins = store.imports.origins(website)
    batches = store.imports.batches(website)
    with store.snapshot(website) as snapshot:
        known = ExistingHits.of(snapshot, origins, batches, found.ranges, overlapping=overlapping)

    def ignore(_: object) -> None:
        pass

    begun = await handlers.begin(
        BeginImport(
            website=website.hostname,
            source="files",
            digest=digest_of(files),
            ranges=tuple(found.ranges),
            newest=99,
        ),
        ignore,
    )
    gathering = RowGatherer(known, found, begun.spans)
    done = 0
    for piece in gathering.gather(files):
        assert done <= gathering.rows
        done = gathering.rows
        if piece is not None:
            await handlers.rows(rows_request(begun.number, piece), ignore)
            waiting = max(waiting, len(handlers._incoming[begun.number].pieces))
    assert done == found.rows, "progress reaches its end"
    ended = await handlers.finish(FinishImport(begun.number), ignore)
    return Taken(ended, gathering, found, waiting)


FILTERS = (
    (),
    (Filter("path", "contains", ("1",)),),
    (Filter("browser", "neq", ("one",)), Filter("country", "neq", ("Germany",))),
    (Filter("prop_name", "eq", ("plan",)),),
    (Filter("prop_value", "in", ("a", "v")), Filter("path", "not_contains", ("2",))),
    (Filter("language", "eq", ("English",)),),
)
PERIODS = (Period(), Period(NOW_MS - 9 * DAY_MS + 40_000_000, NOW_MS + 7))


def answers(store: Store, website: Website) -> list[Any]:
    """Return every report, with several filters, periods and intervals."""
    found: list[Any] = []
    for period in PERIODS:
        for filters in FILTERS:
            request = ExportRequest(
                what="statistics", format="ndjson", period=period, filters=filters
            )
            # A cell of visits is empty where a whole segment has none, and an import makes others.
            found.append(exported(store, website, request, has_visits=False).decode())
        found += [
            store.read(website, partial(_over_time, period, interval))
            for interval in INTERVALS
            if interval != "minute" or period.start_ms is not None
        ]
    return found


def _over_time(period: Period, interval: str, snapshot: Snapshot) -> str:
    options = SummaryOptions(now_ms=LATER_MS, interval=interval)
    found = summary(reader_of(snapshot, SOURCES), Query(period, with_visits=True), options=options)
    return repr(found.content)
