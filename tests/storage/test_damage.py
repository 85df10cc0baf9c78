"""Damage in a store is logged and left out; everything else is still served."""

import shutil
from collections.abc import Callable, Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from support.query.snapshots import ENDPOINTS, MadeSnapshot, answer, result
from support.storage.contents import (
    Row,
    agrees,
    durations,
    entries,
    in_order,
    keys_of,
    leaves,
    rows,
    settled,
    stored_rows,
)
from support.storage.hits import DAY_MS, NOW_MS, a_view, event, unload, views
from support.storage.log_lines import logged_warnings
from twisted.internet import reactor

from medamad.domain.dimensions import Dimension
from medamad.domain.websites import Website
from medamad.query.request import Gap
from medamad.storage.check import StoreCheck
from medamad.storage.compaction.planner import Sizes
from medamad.storage.dictionary.keys import code_key
from medamad.storage.drop_damaged import drop_damaged
from medamad.storage.environment.environment import open_as_guest, open_to_read
from medamad.storage.segments.format import COUNTER_KINDS, OF_VISITS, Column, header_key
from medamad.storage.segments.read import OpenMergedSegment, OpenSegment
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
Pieces = dict[int, tuple[list[Row], list[Row]]]

SIZES = Sizes(chunk_views=4, merged_members=2, counted_from=0)
LATER_MS = NOW_MS + 2 * DAY_MS
GROUP = 4
GROUPED = (1, 2)
CORRECTED = 3


async def fill(store: Store) -> Website:
    """Store a merged segment of two, one with corrections, and a memtable."""
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 8), event("b1"), event(""), unload(3, 700), unload(7, 9_000)])
    await store.maintain(NOW_MS + DAY_MS + 1)
    await store.append([*views(9, 12, LATER_MS), event("b9", LATER_MS), event("b90", LATER_MS)])
    await store.append(views(13, 17, LATER_MS + 1))
    await settled(store, LATER_MS + 2)
    await store.append([*views(18, 18, LATER_MS + 3), event("b18", LATER_MS + 3)])
    await store.append([unload(n, 1_000 * n, LATER_MS + 4) for n in (9, 12, 15)])
    await store.append(views(90, 90, LATER_MS + 5))
    await settled(store, LATER_MS + 6)
    return website


def by_segment(store: Store, website: Website) -> Pieces:
    """Return what each segment has, 0 for the memtable."""

    def question(snapshot: Snapshot) -> Pieces:
        numbers = [
            segment.number for segment in store.partitions.get_or_create(website.number).leaves()
        ]
        parts = list(leaves(snapshot.parts))
        flushed = zip(numbers, parts, strict=False)
        texts = snapshot.texts
        pieces = {number: rows(MadeSnapshot(texts=texts, parts=[part])) for number, part in flushed}
        memtable = MadeSnapshot(texts=texts, parts=parts[len(numbers) :], events=snapshot.events)
        return {**pieces, 0: rows(memtable)}

    return store.read(website, question)


def expected(pieces: Pieces, *, without: int = -1) -> tuple[list[Row], list[Row]]:
    views_there = [row for number in pieces if number != without for row in pieces[number][0]]
    events = [row for number in pieces if number != without for row in pieces[number][1]]
    return in_order(views_there), without_views(events)


def without_views(events: list[Row]) -> list[Row]:
    """Return the events without their views, since the view may be damaged."""
    return in_order({**row, "view": None} for row in events)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("filled")


@pytest_twisted.async_fixture(scope="module")
async def pieces(filled: Path) -> Pieces:
    store = start_store(filled, StoreSettings(map_size=64 << 20, min_free_disk=0), reactor, SIZES)
    found = by_segment(store, await fill(store))
    assert set(found) == {*GROUPED, CORRECTED, 0}
    assert len(expected(found)[0]) == 19
    assert len(expected(found)[1]) == 5
    await store.close()
    return found


@pytest.fixture(scope="module")
def sound_reports(
    filled: Path, pieces: Pieces, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, list[Any]]:
    """What each report says without each segment, 0 for none of them."""
    copy = tmp_path_factory.mktemp("sound") / "data"
    shutil.copytree(filled, copy)
    store = start_store(copy, StoreSettings(map_size=64 << 20, min_free_disk=0), reactor, SIZES)
    (website,) = store.websites.all()
    found = {
        number: store.read(
            website,
            lambda snapshot, number=number: reports_of(
                snapshot.without(frozenset({number} - {0, GROUP}))
            ),
        )
        for number in (0, *GROUPED, CORRECTED, GROUP)
    }
    store.environment.close()
    for number, reports in found.items():
        by_name = dict(zip(ENDPOINTS, reports, strict=True))
        views_there = len(expected(pieces, without=number or -1)[0])
        assert by_name["summary"]["current"]["pageviews"] == views_there
        assert sum(row["pageviews"] for row in by_name["pages"]) == views_there
        for name in ("browsers", "os", "referrers", "countries"):
            there = sum(row["visitors"] for row in by_name[name])
            assert there == by_name["summary"]["current"]["visitors"]
    return found


def reports_of(snapshot: Snapshot) -> list[Any]:
    return [answer(snapshot, name, (), now_ms=LATER_MS) for name in ENDPOINTS]


def reports(store: Store, website: Website) -> list[Any]:
    """Return each report, on a snapshot of its own."""
    return [
        store.read(website, lambda snapshot, name=name: answer(snapshot, name, (), now_ms=LATER_MS))
        for name in ENDPOINTS
    ]


def partial_days(store: Store, website: Website) -> set[int]:
    """Return how many days the reports name as damaged; they agree, so it is one number."""
    return {
        len(
            store.read(website, lambda snapshot, name=name: result(snapshot, name, ())).gaps.days(
                Gap.DAMAGED
            )
        )
        for name in ENDPOINTS
    }


def check_reports(
    store: Store, website: Website, number: int, sound_reports: dict[int, list[Any]]
) -> None:
    """All reports leave the segment out once its damage is known, and none does before."""
    reports(store, website)
    known = store.partitions.get_or_create(website.number).damage.numbers
    assert known <= {number}
    assert reports(store, website) == sound_reports[number if known else 0]
    assert partial_days(store, website) == {1 if known - {GROUP} else 0}


@pytest.fixture(params=[6, pytest.param(1, marks=pytest.mark.slow)])
def copies(
    request: pytest.FixtureRequest, filled: Path, tmp_path: Path, pieces: Pieces
) -> Callable[[str], Iterator[bytes]]:
    """Yield keys of a sub-database, with a copy in `damaged` where each is damaged.

    Of columns and counters, these are every sixth of each segment or, where slow tests run, all.
    Neighbouring segments begin with another one, so that each kind comes.
    """
    assert pieces

    def one_by_one(database: str) -> Iterator[bytes]:
        guest = open_as_guest(filled)
        keys = keys_of(guest, database)[database]
        guest.close()
        for turn, key in enumerate(keys):
            if database in ("segments", "counters") and (segment_of(key) + key[-1]) % request.param:
                continue
            shutil.rmtree(tmp_path / "damaged", ignore_errors=True)
            shutil.copytree(filled, tmp_path / "damaged")
            damage(tmp_path / "damaged", database, key, turn)
            yield key

    return one_by_one


def damage(folder: Path, database: str, key: bytes, turn: int) -> None:
    """Flip a bit of a key's value; every seventh time, delete the key instead."""
    guest = open_as_guest(folder)
    chosen = getattr(guest.databases, database)
    with guest.lmdb.begin(write=True) as txn:
        value = bytearray(txn.get(key, db=chosen))
        value[(5 * turn + 1) % len(value)] ^= 1 << turn % 8
        if turn % 7 == 3 and database in ("segments", "counters"):
            txn.delete(key, db=chosen)
        else:
            txn.put(key, bytes(value), db=chosen)
    guest.close()


def segment_of(key: bytes) -> int:
    return int.from_bytes(key[12:16], "big")


@pytest_twisted.ensureDeferred
async def test_a_segment_with_a_damaged_column_is_left_out(
    open_store: OpenStore,
    copies: Callable[[str], Iterator[bytes]],
    pieces: Pieces,
    sound_reports: dict[int, list[Any]],
) -> None:
    met = set()
    for key in copies("segments"):
        number = segment_of(key)
        met.add(number)
        place = f"website 1, segment {number}, column {key[-1]}: it"
        with logged_warnings() as lines:
            store = open_store(sizes=SIZES, name="damaged")
            (website,) = store.websites.all()
            check_reports(store, website, number, sound_reports)
            for _ in range(3):
                found = stored_rows(store, website)
                store.read(website, agrees)
                # Hits go on to be corrected, those of that segment too.
                await store.append([unload(9, 10**6, LATER_MS + 9), unload(12, 1, LATER_MS + 9)])
            whole = expected(pieces, without=number)
            assert {row["path"] for row in found[0]} == {row["path"] for row in whole[0]}
            assert without_views(found[1]) == whole[1]
            assert durations(store, website).get("/9") == (None if number == CORRECTED else 10**6)
            await store.close()
        assert all(place in line for line in lines)
        assert len(lines) == 1
    assert met == {*GROUPED, CORRECTED}


@pytest_twisted.ensureDeferred
async def test_a_segment_with_a_damaged_counter_is_not_counted(
    open_store: OpenStore,
    copies: Callable[[str], Iterator[bytes]],
    pieces: Pieces,
    sound_reports: dict[int, list[Any]],
) -> None:
    """A merged segment is split into its members instead; nothing is left out."""
    met = set()
    for key in copies("counters"):
        number = segment_of(key)
        if number == CORRECTED and key[-1] >= OF_VISITS:
            # Nobody reads them: its visits are counted by its columns while it has corrections.
            continue
        met.add(number)
        place = f"website 1, segment {number}, counter {key[-1]}: it"

        def count(snapshot: Snapshot) -> int:
            agrees(snapshot)
            parts = chain(snapshot.parts, leaves(snapshot.parts))
            for part, kind in product(parts, COUNTER_KINDS):
                if isinstance(part, OpenSegment | OpenMergedSegment):
                    part.visit_counters(kind)
            return sum(map(len, leaves(snapshot.parts)))

        with logged_warnings() as lines:
            store = open_store(sizes=SIZES, name="damaged")
            (website,) = store.websites.all()
            whole = expected(pieces)
            for _ in range(2):
                views_there, events = stored_rows(store, website)
                assert (views_there, without_views(events)) == whole
                whole = expected(pieces, without=number)
                assert store.read(website, count) == len(whole[0])
            assert reports(store, website) == sound_reports[number]
            assert partial_days(store, website) == {0 if number == GROUP else 1}
            await store.close()
        assert len(lines) == 1
        assert place in lines[0]
    assert met == {*GROUPED, CORRECTED, GROUP}


@pytest_twisted.ensureDeferred
async def test_a_segment_with_a_damaged_header_is_left_out(
    open_store: OpenStore,
    copies: Callable[[str], Iterator[bytes]],
    pieces: Pieces,
    sound_reports: dict[int, list[Any]],
) -> None:
    for key in copies("headers"):
        number = int.from_bytes(key[4:], "big")
        with logged_warnings() as lines:
            store = open_store(sizes=SIZES, name="damaged")
            (website,) = store.websites.all()
            assert reports(store, website) == sound_reports[number]
            assert partial_days(store, website) == {1 if number in (*GROUPED, CORRECTED) else 0}
            for _ in range(2):
                whole = expected(pieces, without=number or -1)
                views_there, events = stored_rows(store, website)
                assert (views_there, without_views(events)) == whole
                store.read(website, agrees)
                await settled(store, LATER_MS + 7)
            await store.close()
        assert len(lines) == 1
        assert (f"segment {number}, header" if number else "website 1, watermark") in lines[0]


@pytest_twisted.ensureDeferred
async def test_a_website_works_without_its_watermark(
    open_store: OpenStore, copies: Callable[[str], Iterator[bytes]]
) -> None:
    assert next(copies("headers")) == header_key(1, 0)
    with logged_warnings():
        store = open_store(sizes=SIZES, name="damaged")
    (website,) = store.websites.all()
    await store.append([unload(9, 10**6, LATER_MS + 9), *views(20, 22, LATER_MS + 9)])
    await settled(store, LATER_MS + 10)
    for _ in range(2):
        assert durations(store, website)["/9"] == 10**6
        assert len(durations(store, website)) == 22
        await store.close()
        store = open_store(sizes=SIZES, name="damaged")
    await settled(store, LATER_MS + 10 + DAY_MS)
    assert len(durations(store, website)) == 22
    assert entries(store, "wal") == [0]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_damaged_correction_is_left_out(
    open_store: OpenStore, copies: Callable[[str], Iterator[bytes]], pieces: Pieces
) -> None:
    whole = expected(pieces)
    for key in copies("corrections"):
        with logged_warnings() as lines:
            store = open_store(sizes=SIZES, name="damaged")
            (website,) = store.websites.all()
            views_there, events = stored_rows(store, website)
            assert without_views(events) == whole[1]
            changed = [row for row in views_there if row not in whole[0]]
            assert len(changed) == (key[4] == 1)
            assert [row["duration_ms"] for row in changed] == [0] * len(changed)
            await store.close()
        place = f"website {website.number}, correction {key.hex()}"
        (line,) = lines
        assert line.startswith(f"damaged data is left out of results: {place}: it is damaged (")


@pytest_twisted.ensureDeferred
async def test_a_damaged_segment_is_kept_and_compaction_continues(
    open_store: OpenStore, copies: Callable[[str], Iterator[bytes]], pieces: Pieces
) -> None:
    """A damaged segment is not rewritten, and does not stop folding and merging."""
    months_later_ms = LATER_MS + 60 * DAY_MS
    for key in copies("segments"):
        if key[-1] >= Column.VISIT_ROWS:
            # A fold makes the columns of visits anew from the views.
            continue
        number = segment_of(key)
        with logged_warnings():
            store = open_store(sizes=SIZES, name="damaged")
            (website,) = store.websites.all()
            await store.append(views(30, 42, months_later_ms))
            await settled(store, months_later_ms + 3 * DAY_MS)
            whole = {row["path"] for row in expected(pieces, without=number)[0]}
            expected_paths = whole | {f"/{n}" for n in range(30, 43)}
            assert set(durations(store, website)) == expected_paths
            store.read(website, agrees)
            if number == CORRECTED:
                headers = keys_of(store.environment, "headers")["headers"]
                assert header_key(1, number) in headers
                assert entries(store, "corrections")[0] > 0
            assert entries(store, "wal", "purge_queue") == [0, 0]
            await store.close()


@pytest.fixture
def spoil(filled: Path, pieces: Pieces, tmp_path: Path) -> Callable[[str], None]:
    """Copy the store and damage a page's text, or its code, in the copy."""
    assert pieces

    def spoil_copy(database: str) -> None:
        shutil.copytree(filled, tmp_path / "damaged")
        spoil_path(tmp_path / "damaged", database, b"/2")

    return spoil_copy


@pytest_twisted.ensureDeferred
async def test_a_damaged_text_is_hidden_and_repaired_by_the_next_hit(
    open_store: OpenStore, spoil: Callable[[str], None]
) -> None:
    spoil("dictionary")
    with logged_warnings() as lines:
        store = open_store(sizes=SIZES, name="damaged")
        (website,) = store.websites.all()
        assert {"/2", "/3", "(damaged)"} & set(durations(store, website)) == {"/3", "(damaged)"}
        await store.append([a_view(path="/2", time_ms=LATER_MS + 9)])
        await store.close()
    messages = [line.partition(":")[0] for line in lines]
    assert messages == [
        "a text is damaged and not shown",
        "a damaged dictionary entry was repaired",
    ]
    await agrees_with_paths(open_store)


@pytest_twisted.ensureDeferred
async def test_a_damaged_code_is_repaired_by_the_next_hit(
    open_store: OpenStore, spoil: Callable[[str], None]
) -> None:
    """The hit must not be counted for another page."""
    spoil("codes")
    with logged_warnings() as lines:
        store = open_store(sizes=SIZES, name="damaged")
        await store.append([a_view(path="/2", time_ms=LATER_MS + 9)])
        await store.close()
    assert [line.partition(":")[0] for line in lines] == ["a damaged code is replaced"]
    await agrees_with_paths(open_store)


async def agrees_with_paths(open_store: OpenStore) -> None:
    """Return whether nothing changed except one more view of the damaged page."""
    with logged_warnings() as lines:
        store = open_store(sizes=SIZES, name="damaged")
        (website,) = store.websites.all()
        paths = [row["path"] for row in stored_rows(store, website)[0]]
        await store.close()
    assert sorted(paths) == sorted(["/2", "/90", *(f"/{n}" for n in range(1, 19))])
    assert lines == []


def spoil_path(folder: Path, database: str, path: bytes) -> None:
    """Flip the last bit of a page's text, or of its code."""
    guest = open_as_guest(folder)
    with guest.lmdb.begin(write=True) as txn:
        chosen = getattr(guest.databases, database)
        key = code_key((1, Dimension.PATH), path.decode())
        if database == "dictionary":
            key = key[:5] + txn.get(key, db=guest.databases.codes)
        value = txn.get(key, db=chosen)
        txn.put(key, value[:-1] + bytes((value[-1] ^ 1,)), db=chosen)
    guest.close()


@pytest.mark.parametrize("database", ["segments", "counters", "headers", "corrections"])
def test_dropping_what_is_damaged_makes_the_store_whole(
    copies: Callable[[str], Iterator[bytes]], pieces: Pieces, tmp_path: Path, database: str
) -> None:
    """At most the views of the segment are lost, and none with a merged segment."""
    whole = len(expected(pieces)[0])
    for key in copies(database):
        if key == header_key(1, 0):
            continue
        number = {"headers": int.from_bytes(key[4:], "big"), "corrections": -1}.get(
            database, segment_of(key)
        )
        lost = len(pieces[number][0]) if number in pieces else 0
        foreseen = drop_damaged(tmp_path / "damaged", is_dry_run=True)
        assert findings_in(tmp_path / "damaged")[0]
        dropped = drop_damaged(tmp_path / "damaged", is_dry_run=False)
        assert dropped == foreseen
        assert len(dropped) == (number != GROUP)
        if database in ("segments", "counters"):
            assert sum(each.views or 0 for each in dropped) == lost
        findings, views_left = findings_in(tmp_path / "damaged")
        assert findings == []
        assert views_left == whole - lost


def findings_in(folder: Path) -> tuple[list[str], int]:
    environment, txn = open_to_read(folder)
    check = StoreCheck(environment, txn)
    findings = list(check.findings())
    txn.abort()
    environment.close()
    return findings, check.views
