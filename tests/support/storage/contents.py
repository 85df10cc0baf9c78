"""The content of a store as plain rows, and whether its counters agree with them."""

import struct
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from twisted.internet import reactor
from twisted.internet.task import deferLater

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewNumber, split_property
from medamad.domain.websites import Website
from medamad.storage.environment.environment import Environment
from medamad.storage.segments.counters import SLOT_MS, Counters
from medamad.storage.segments.format import (
    BOUNCE_MS,
    HOSTING,
    PAGE_VISITOR,
    VISITOR,
    decode_header,
    header_key,
)
from medamad.storage.segments.parts import (
    EventColumns,
    MergedSegment,
    Part,
    ViewColumns,
)
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.segments.visit_columns import visits_of
from medamad.storage.store import Store
from medamad.storage.wal.records import read_watermark, sequence_of, sound_rows
from medamad.storage.websites import tombstones

Row = dict[str, Any]
StoredRows = tuple[list[Row], list[Row]]
"""Views, and events with the path and time of their view, each in an order of no meaning."""

_KEY_OF_BLOCK = 16


def stored_rows(store: Store, website: Website) -> StoredRows:
    """Read all views and events of a website. The path of each view has to be its own."""
    return store.read(website, rows)


def rows(snapshot: Snapshot) -> StoredRows:
    views: dict[int, Row] = {}
    for part in leaves(snapshot.parts):
        for sequence, row in _views(part, snapshot):
            assert sequence not in views, "a view is there twice"
            views[sequence] = row
    events: dict[int, Row] = {}
    for part in leaves(snapshot.parts):
        sequence = part.sequence
        _gather(part.own, snapshot, lambda place, of=sequence: int(of[int(place)]), events, views)
        _gather(part.loose, snapshot, int, events, views)
    for piece in snapshot.events:
        _gather(piece, snapshot, int, events, views)
    for row in events.values():
        row["properties"] = sorted(row["properties"])
    return in_order(views.values()), in_order(events.values())


def in_order(found: Any) -> list[Row]:
    return sorted(found, key=lambda row: sorted((name, str(value)) for name, value in row.items()))


def leaves(parts: Any) -> Iterator[ViewColumns]:
    for part in parts:
        if isinstance(part, MergedSegment):
            yield from leaves(part.members)
        else:
            yield part


VISIT_COLUMNS = (
    *("offsets", "begins", "spans", "views", "duration_ms", "has_event"),
    *("repeats", "elsewhere"),
)


def check_visits(part: ViewColumns) -> None:
    """Check that the visits of a part are those that its views make."""
    visits, made_again = part.visits(), visits_of(part)
    for name in VISIT_COLUMNS:
        assert getattr(visits, name).tolist() == getattr(made_again, name).tolist(), name


def _views(part: ViewColumns, snapshot: Snapshot) -> Iterator[tuple[int, Row]]:
    check_visits(part)
    flags = part.flags
    columns: dict[str, list[Any]] = {
        "time_ms": part.time_ms.tolist(),
        "p": (flags & VISITOR != 0).tolist(),
        "q": (flags & PAGE_VISITOR != 0).tolist(),
        "hosting": (flags & HOSTING != 0).tolist(),
        "duration_ms": part.duration_ms.tolist(),
        **{number.attribute: part.numbers(number).tolist() for number in ViewNumber},
    }
    for dimension in VIEW_DIMENSIONS:
        texts = snapshot.texts(dimension)
        columns[dimension.attribute] = [texts[code] for code in part.codes(dimension)]
    sequences = part.sequence.tolist()
    assert sequences == sorted(sequences)
    assert {len(column) for column in columns.values()} <= {len(part)}
    for place, sequence in enumerate(sequences):
        yield sequence, {name: column[place] for name, column in columns.items()}


def _gather(
    piece: EventColumns,
    snapshot: Snapshot,
    view_of: Any,
    events: dict[int, Row],
    views: dict[int, Row],
) -> None:
    texts = snapshot.texts(Dimension.PROPERTY) if len(piece) else ()
    before: set[int] = set(events)
    columns = [column.tolist() for column in (piece.event, piece.time_ms, piece.view)]
    for event, time_ms, view, code in zip(*columns, piece.property.tolist(), strict=True):
        assert event not in before, "the rows of an event are in two places"
        sequence = view_of(view)
        row = {
            "time_ms": time_ms,
            "view": _named(views.get(sequence)) if sequence else None,
        }
        known = events.setdefault(event, {**row, "properties": []})
        assert {**known, **row} == known, "the rows of an event differ"
        known["properties"].append(split_property(texts[code]))


def _named(view: Row | None) -> tuple[str, int]:
    return (view["path"], view["time_ms"]) if view is not None else ("not there", 0)


# What is counted


def agrees(snapshot: Snapshot) -> int:
    """Recount each part that has counters; return how many there were."""
    counted = 0
    for part in every(snapshot.parts):
        within = list(leaves([part]))
        slots = part.slots()
        counted += slots is not None
        if slots is not None:
            numbers = np.concatenate([views.time_ms // SLOT_MS for views in within])
            assert sums_by_code(slots) == recount(numbers, within)
        for dimension in VIEW_DIMENSIONS:
            counters = part.counters(dimension)
            assert (counters is None) == (slots is None)
            if counters is not None:
                numbers = np.concatenate([views.codes(dimension) for views in within])
                assert sums_by_code(counters) == recount(numbers, within), dimension
        _events_agree(part, within, snapshot)
        _bounds_agree(part, within)
    return counted


def every(parts: Any) -> Iterator[Part]:
    for part in parts:
        yield part
        if isinstance(part, MergedSegment):
            yield from every(part.members)


def sums_by_code(counters: Counters) -> dict[int, list[int]]:
    codes = counters.codes.tolist()
    assert codes == sorted(set(codes))
    columns = [row.tolist() for row in counters.sums]
    return {code: [column[place] for column in columns] for place, code in enumerate(codes)}


def recount(numbers: NDArray[Any], parts: list[ViewColumns]) -> dict[int, list[int]]:
    """Count views one by one, by a number that each has."""
    flags = np.concatenate([part.flags for part in parts]).tolist()
    durations = np.concatenate([part.duration_ms for part in parts]).tolist()
    sums: dict[int, list[int]] = {}
    for number, flag, ms in zip(numbers.tolist(), flags, durations, strict=True):
        p, q = bool(flag & VISITOR), bool(flag & PAGE_VISITOR)
        added = (1, p, q, p and ms > 0, p and 0 < ms <= BOUNCE_MS, ms)
        sums[number] = [a + b for a, b in zip(sums.get(number, [0] * 6), added, strict=True)]
    return sums


def _events_agree(part: Part, within: list[ViewColumns], snapshot: Snapshot) -> None:
    pairs = [
        pair
        for views in within
        for piece in (views.own, views.loose)
        for pair in zip(piece.event.tolist(), piece.property.tolist(), strict=True)
    ]
    counts = part.event_counts()
    if counts is None:
        return
    texts = snapshot.texts(Dimension.PROPERTY) if pairs else ()
    names = [(event, split_property(texts[code])[0]) for event, code in pairs]
    assert len(set(names)) == len(names), "an event carries a name twice"
    assert counts.total == len({event for event, _ in pairs})
    found = dict(zip(counts.codes.tolist(), counts.events.tolist(), strict=True))
    assert found == dict(Counter(code for _, code in pairs))


def _bounds_agree(part: Part, within: list[ViewColumns]) -> None:
    def bounds(found: list[int]) -> tuple[int, int]:
        return (min(found), max(found)) if found else (1 << 62, -1)

    of_views = [ms for views in within for ms in views.time_ms.tolist()]
    assert part.time_bounds == bounds(of_views)
    of_events = [
        ms for views in within for of in (views.own, views.loose) for ms in of.time_ms.tolist()
    ]
    assert part.event_time_bounds == bounds(of_events)
    sequences = [number for views in within for number in views.sequence.tolist()]
    if sequences:
        assert part.sequence_bounds == bounds(sequences)
    for views in within:
        assert not views.ascends or views.time_ms.tolist() == sorted(views.time_ms.tolist())


# What is left behind


def orphans(environment: Environment) -> list[str]:
    """Return every orphaned key. Once all is settled there must be none."""
    databases = environment.databases
    found = []
    with environment.reading() as txn:
        websites = {key for key, _ in txn.cursor(db=databases.websites)}
        found += [f"tombstone {number}" for number in tombstones(txn, databases.meta)]
        headers = set()
        for key, value in txn.cursor(db=databases.headers):
            if key[:4] not in websites:
                found.append(f"header {key.hex()}")
            elif key[4:] != bytes(4):
                first_ms = decode_header(key, value).key_ms
                headers.add(key[:4] + struct.pack(">Q", first_ms) + key[4:])
        for name in ("segments", "counters"):
            found += [
                f"{name} {key.hex()}"
                for key, _ in txn.cursor(db=getattr(databases, name))
                if key[:_KEY_OF_BLOCK] not in headers
            ]
        found += [f"purge_queue {key.hex()}" for key, _ in txn.cursor(db=databases.purge_queue)]
        for name in ("dictionary", "codes", "corrections"):
            found += [
                f"{name} {key.hex()}"
                for key, _ in txn.cursor(db=getattr(databases, name))
                if key[:4] not in websites
            ]
        for key, _ in txn.cursor(db=databases.wal):
            website = struct.unpack(">I", key[:4])[0]
            watermark = read_watermark(txn, environment, website)
            if key[:4] not in websites or sequence_of(key) <= watermark:
                found.append(f"wal {key.hex()}")
    return found


def keys_of(environment: Environment, *names: str) -> dict[str, list[bytes]]:
    """Return the keys of some sub-databases."""
    with environment.reading() as txn:
        return {
            name: [key for key, _ in txn.cursor(db=getattr(environment.databases, name))]
            for name in names
        }


def segments_and_merged(environment: Environment) -> tuple[int, int]:
    """Count the segments, merged ones too, that have a header."""
    with environment.reading() as txn:
        headers = [
            decode_header(key, value)
            for key, value in txn.cursor(db=environment.databases.headers)
            if key != header_key(int.from_bytes(key[:4], "big"), 0)
        ]
    groups = sum(bool(header.members) for header in headers)
    return len(headers) - groups, groups


async def settled(store: Store, now_ms: int) -> None:
    """Run everything that is due, and wait for background work."""
    await store.maintain(now_ms)
    async with store.maintenance.segments_lock:
        pass
    environment = store.environment
    for _ in range(100_000):
        with environment.reading() as txn:
            if not list(tombstones(txn, environment.databases.meta)):
                return
        await deferLater(reactor, 0.001)
    raise AssertionError("a deleted website is still there")


def logged_rows(store: Store) -> int:
    """Count the rows of all records in the write-ahead log."""
    environment = store.environment
    with environment.reading() as txn:
        rows, damaged = sound_rows(txn.cursor(db=environment.databases.wal))
    assert damaged == []
    return sum(map(len, rows.values()))


def durations(store: Store, website: Website) -> dict[str, int]:
    return {row["path"]: row["duration_ms"] for row in stored_rows(store, website)[0]}


def entries(store: Store, *names: str) -> list[int]:
    return [len(keys) for keys in keys_of(store.environment, *names).values()]


async def idle(store: Store) -> None:
    """Wait for background work."""
    async with store.maintenance.segments_lock:
        pass
