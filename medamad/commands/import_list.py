"""What was imported, by number: listed by `medamad import --list`."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from medamad.commands.import_report import counted, date_of_time
from medamad.model.websites import Website
from medamad.moves.day_rows import date_of
from medamad.store.batches import Batch
from medamad.store.offline import Guest, reading_beside


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


def list_imports(data_dir: Path, *, as_json: bool) -> int:
    """Write the list on standard output; gives the exit status."""
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
                first=first,
                last=last,
            )
            for website, batch in batches(guest)
            for first, last in [_dates(batch)]
        ]
    if as_json:
        print(msgspec.json.encode(found).decode())
    else:
        for each in found:
            print(_line(each))
    return 0


def batches(guest: Guest) -> Iterator[tuple[Website, Batch]]:
    """Give the imports of all websites, by number."""
    found = [(website, batch) for website in guest.websites() for batch in guest.batches(website)]
    yield from sorted(found, key=lambda pair: pair[1].number)


def _dates(batch: Batch) -> tuple[str, str]:
    """Give the first and the last date, as the import itself told them."""
    if batch.days is not None:
        return date_of(batch.days[0]), date_of(batch.days[1])
    return date_of_time(batch.first_ms), date_of_time(batch.last_ms)


def _line(each: Listed) -> str:
    return (
        f"{each.number}  {each.website}  {each.made}  {counted(each.views, 'view')}, "
        f"{counted(each.events, 'event')}, {each.first} to {each.last}: {each.source!r}"
    )
