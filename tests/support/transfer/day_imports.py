"""Files of days on their way into a store, and what its statistics are then."""

import json
from collections.abc import Iterable
from datetime import UTC, date, tzinfo
from pathlib import Path
from typing import Any

from attrs import frozen
from support.transfer.round_trips import exported

from medamad.admin.import_requests import days_request
from medamad.admin.imports import (
    MAX_PENDING_BYTES,
    BeginImport,
    Ended,
    FinishImport,
    ImportHandlers,
)
from medamad.domain.websites import Website
from medamad.domain.zones import start_of_day
from medamad.ingest.pipeline import Rules
from medamad.storage.store import Store
from medamad.transfer.export import ExportRequest
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.import_days import (
    DayGatherer,
    DaySurvey,
    are_day_files,
    existing_days,
    survey_days,
)
from medamad.transfer.import_survey import ImportFile, digest_of

EPOCH = date(1970, 1, 1)
TODAY = (date(2024, 6, 1) - EPOCH).days
END_MS = start_of_day(UTC, TODAY) * 1000


@frozen
class Taken:
    ended: Ended | None
    gathering: DayGatherer
    survey: DaySurvey
    waiting: int


async def take_days(
    store: Store,
    website: Website,
    paths: Iterable[Path],
    *,
    zone: tzinfo = UTC,
    today: int = TODAY,
    most_bytes: int = MAX_PENDING_BYTES,
    is_finished: bool = True,
) -> Taken:
    """Import files, as the command does."""
    target = ImportTarget(website.hostname, Rules(zone=zone))
    files = [ImportFile.of(path, None, target) for path in paths]
    assert are_day_files(files)
    *_, found = survey_days(files)
    with store.snapshot(website) as snapshot:
        gathering = DayGatherer(found.days, zone, today, existing_days(snapshot, zone))
    handlers = ImportHandlers(store, lambda: 7, most_bytes)
    begun = await handlers.begin(
        BeginImport(
            website=website.hostname, source="days", digest=digest_of(files), ranges=(), newest=99
        ),
        ignore,
    )
    waiting = 0
    for piece in gathering.gather():
        if piece is not None:
            await handlers.days(days_request(begun.number, piece), ignore)
            waiting = max(waiting, len(handlers._incoming[begun.number].days))
    ended = await handlers.finish(FinishImport(begun.number), ignore) if is_finished else None
    return Taken(ended, gathering, found, waiting)


def ignore(_: object) -> None:
    """Ignore progress."""


def statistics(store: Store, website: Website) -> list[dict[str, Any]]:
    found = exported(store, website, ExportRequest(what="statistics", format="ndjson"))
    return [json.loads(line) for line in found.splitlines()]
