"""The oracle's hits as rows of our tables: shuffled, some twice, some first without duration."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from support.query.hits import HIT_OF_ITS_OWN
from support.query.oracle import Entry, pairs_of

from medamad.clickhouse import tables
from medamad.clickhouse.client import Client
from medamad.clickhouse.tables import EVENTS, TEXTS, VIEWS, Table, day_of, number_at
from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, property_text

Row = Mapping[str, Any]

AWKWARD: Final = (
    "",
    'it\'s "quoted" `so`',
    "back\\slash \\N \\x00 \\' \\",
    "NUL\x00 in \x00 between",
    "tab\tline\nend\r\n",
    "emoji 👩‍👩‍👧‍👦 and é",
    "مرحبا بالعالم \u202e right to left",
    '--boundary\r\nContent-Disposition: form-data; name="query"\r\n\r\nSELECT 2',
    "{p:String} ? %s %00 &a=b#c set0",
    "not UTF-8, as it is stored: \ufffd",
    "long " * 13_000,
)
"""Texts that something between a filter and a table might take for something else."""


def send(
    client: Client,
    website: int,
    views: Sequence[Entry],
    events: Sequence[Entry],
    rng: random.Random,
    *,
    collector: int = 1,
) -> None:
    """Send the hits of a website as a shipper might: in pieces, in any order, more than once."""
    by_id = {view["id"]: view for view in views}
    rows = [_view(website, collector, view, by_id) for view in views]
    of_events = [
        row
        for number, event in enumerate(events, 1)
        for row in _event(website, collector, number, event, by_id)
    ]
    texts = {
        (int(dimension), row[dimension.attribute]) for row in rows for dimension in VIEW_DIMENSIONS
    }
    texts |= {
        (int(Dimension.PROPERTY), property_text(row["name"], row["value"])) for row in of_events
    }
    keys = ("website", "dimension", "text")
    _insert(client, TEXTS, [dict(zip(keys, (website, *text), strict=True)) for text in texts])
    early = [{**row, "duration_ms": 0} for row in rows if rng.random() < 0.5]
    for table, all_rows in ((VIEWS, [*rows, *early]), (EVENTS, of_events)):
        sent = [*all_rows, *(row for row in all_rows if rng.random() < 0.3)]
        rng.shuffle(sent)
        cut = rng.randint(0, len(sent))
        for piece in (sent[:cut], sent[cut:]):
            _insert(client, table, piece)


def _insert(client: Client, table: Table, rows: Iterable[Row]) -> None:
    rows = list(rows)
    if rows:
        tables.insert(client, table, {name: [row[name] for row in rows] for name in table.types})


def _view(website: int, collector: int, view: Entry, by_id: Mapping[int, Entry]) -> Row:
    visit = view.get("visit") or view["id"]
    return {
        "website": website,
        # The first views that are deleted are those of the first days.
        "visit_day": day_of(by_id[visit]["time_ms"]) if visit in by_id else 0,
        "visit": number_at(collector, view.get("visit") or 0),
        "view": number_at(collector, view["id"]),
        "time_ms": view["time_ms"],
        "first_today": view["p"],
        "first_of_page": view["q"],
        "hosting": view.get("hosting", False),
        "width_class": 0,
        "duration_ms": view["duration_ms"],
        "batch": 0,
        **{each.attribute: view.get(each.attribute, "") for each in VIEW_DIMENSIONS},
    }


def _event(
    website: int, collector: int, number: int, event: Entry, by_id: Mapping[int, Entry]
) -> Iterable[Row]:
    view = by_id.get(event["view"])
    of_view = {} if view is None else _view(website, collector, view, by_id)
    number = event.get("number", HIT_OF_ITS_OWN + number)
    for place, (name, value) in enumerate(pairs_of(event)):
        yield {
            "website": website,
            "visit_day": of_view.get("visit_day", day_of(event["time_ms"])),
            "visit": of_view.get("visit", 0),
            "view": of_view.get("view", 0),
            "event": number_at(collector, number),
            "place": place,
            "late": _is_late(view, event, number),
            "time_ms": event["time_ms"],
            "batch": 0,
            "name": name,
            "value": value,
        }


def _is_late(view: Entry | None, event: Entry, number: int) -> bool:
    """Whether an event is not of its view's load, as `storage.segments.parts.are_late` says it."""
    if view is None:
        return True
    return bool(number != view["id"] + 1 or event["time_ms"] > view["time_ms"])
