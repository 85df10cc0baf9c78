"""Files of days on their way into a store, and what its statistics are then."""

import json
from collections.abc import Iterable
from datetime import UTC, date, tzinfo
from pathlib import Path
from typing import Any

from attrs import frozen
from support.transfer.round_trips import exported

from medamad.admin.import_requests import days_request
from medamad.admin.imports import MOST_BYTES, BeginImport, Ended, FinishImport, ImportDesk
from medamad.domain.websites import Website
from medamad.domain.zones import start_of_day
from medamad.ingest.pipeline import Rules
from medamad.storage.store import Store
from medamad.transfer.day_survey import (
    DayGathering,
    DaySurvey,
    are_of_days,
    days_there,
    survey_days,
)
from medamad.transfer.export import Asked
from medamad.transfer.survey import Given, digest_of
from medamad.transfer.visitors import Into

EPOCH = date(1970, 1, 1)
TODAY = (date(2024, 6, 1) - EPOCH).days
END_MS = start_of_day(UTC, TODAY) * 1000


@frozen
class Taken:
    ended: Ended | None
    gathering: DayGathering
    survey: DaySurvey
    waiting: int


async def take_days(
    store: Store,
    website: Website,
    paths: Iterable[Path],
    *,
    zone: tzinfo = UTC,
    today: int = TODAY,
    most_bytes: int = MOST_BYTES,
    is_finished: bool = True,
) -> Taken:
    """Import files, as the command does."""
    into = Into(website.hostname, Rules(zone=zone))
    files = [Given.of(path, None, into) for path in paths]
    assert are_of_days(files)
    *_, found = survey_days(files)
    with store.snapshot(website) as snapshot:
        gathering = DayGathering(found.days, zone, today, days_there(snapshot, zone))
    desk = ImportDesk(store, lambda: 7, most_bytes)
    begun = await desk.begin(
        BeginImport(
            website=website.hostname, source="days", digest=digest_of(files), ranges=(), newest=99
        ),
        tell,
    )
    waiting = 0
    for piece in gathering.pieces():
        if piece is not None:
            await desk.days(days_request(begun.number, piece), tell)
            waiting = max(waiting, len(desk._incoming[begun.number].days))
    ended = await desk.finish(FinishImport(begun.number), tell) if is_finished else None
    return Taken(ended, gathering, found, waiting)


def tell(_: object) -> None:
    """Tell nobody."""


def statistics(store: Store, website: Website) -> list[dict[str, Any]]:
    found = exported(store, website, Asked(what="statistics", format="ndjson"))
    return [json.loads(line) for line in found.splitlines()]
