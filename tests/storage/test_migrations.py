"""A store of an earlier build is brought up to date, whatever happens meanwhile."""

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import pytest_twisted
from attrs import evolve
from msgspec.structs import replace
from support.storage.backups import SIZES
from support.storage.bulk_loads import load, made
from support.storage.contents import StoredRows, settled, stored_rows
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view
from support.storage.kill_at_each_step import killed
from support.storage.log_lines import logged_warnings
from twisted.logger import LogLevel

from medamad.build import VERSION
from medamad.domain.hits import View
from medamad.domain.websites import Website
from medamad.storage.backup import BackupProgress, no_progress
from medamad.storage.check import StoreCheck
from medamad.storage.compaction import job
from medamad.storage.environment import files
from medamad.storage.environment.environment import (
    FILE_NAME,
    Environment,
    Txn,
    open_as_guest,
    open_environment,
    open_to_read,
)
from medamad.storage.environment.meta import FORMAT, PROGRAM, with_checksum, write_format
from medamad.storage.errors import StoreError, WrongFormat
from medamad.storage.migrations import (
    is_outdated,
    migrate_store,
    sorted_durations,
    table_of_visits,
    visits_of_a_day,
)
from medamad.storage.migrations.headers import has_views, sound_headers
from medamad.storage.offline import make_backup
from medamad.storage.restore import restore
from medamad.storage.segments import read, visit_limit
from medamad.storage.segments.build import Put, encode_segment, merged_visit_puts
from medamad.storage.segments.counters import Counters, decode_counters, encode_counters
from medamad.storage.segments.format import (
    OF_VISITS,
    SLOTS,
    Column,
    Day,
    SegmentHeader,
    encode_column,
    encode_header,
    header_key,
    number_of,
    segment_key,
    website_of,
)
from medamad.storage.segments.parts import ViewColumns
from medamad.storage.segments.read import OpenMergedSegment, OpenSegment
from medamad.storage.segments.visit_columns import MadeVisits, visits_of
from medamad.storage.store import Store
from medamad.storage.wal import visits

OpenStore = Callable[..., Store]
MAP_SIZE = 256 << 20
MINUTES_MS = 60_000
END_MS = NOW_MS + 60 * HOUR_MS


def hits(website: Website) -> list[View]:
    """Return what people send who stay for 60 hours, for some minutes, and who come every hour."""
    every_min = {b"stays": 20, b"stays too": 25, b"returns": 61}
    return sorted(
        (
            a_view(
                website.number,
                path=f"/{who.decode()}/{minute}",
                identity=who,
                first_today=minute == 0,
                time_ms=NOW_MS + minute * MINUTES_MS,
            )
            for who, every in every_min.items()
            for minute in range(0, 60 * 60, every)
        ),
        key=lambda view: view.time_ms,
    )


async def filled(store: Store) -> Website:
    """Send hits, of which some are in segments, some of these merged, and some in the log."""
    website = await store.add_website("example.com", 1)
    sent = hits(website)
    for begin in range(0, len(sent), 10):
        await store.append(sent[begin : begin + 10])
        if begin % 100 == 0:
            await settled(store, sent[begin + 9].time_ms)
    # A visit that lasts for 50 hours, over several segments.
    bulk = made(1, 300, 0)
    times = NOW_MS - 9 * DAY_MS + np.arange(300) * 10 * MINUTES_MS
    await load(store, website, evolve(bulk, time_ms=times, visit_offset=np.arange(1, 301)))
    return website


def sorted_durations_of(guest: Environment, txn: Txn) -> list[bytes]:
    """Return the keys under which merged segments had the sorted durations of their views."""
    return [
        segment_key(website_of(key), header, number_of(key)) + bytes((column,))
        for key, header in sound_headers(guest, txn)
        for column in (56, 57)
        if header.members
    ]


@pytest.fixture
def without_limit(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let visits last as long as earlier builds did, and segments have none of them."""
    for module in (visits, visit_limit):
        monkeypatch.setattr(module, "VISIT_MS", 1 << 50)
    monkeypatch.setattr(job, "encode_segment", partial(encode_segment, with_visits=False))
    return monkeypatch


@pytest.fixture(scope="module")
def of_format_10() -> list[tuple[bytes, StoredRows]]:
    """The store of the first format that is brought up to date, once a test has made it."""
    return []


@pytest_twisted.async_fixture
async def before(
    open_store: OpenStore,
    without_limit: pytest.MonkeyPatch,
    of_format_10: list[tuple[bytes, StoredRows]],
    tmp_path: Path,
) -> StoredRows:
    """What a store has that is of the first format that is brought up to date."""
    if not of_format_10:
        store = open_store(sizes=SIZES)
        rows = stored_rows(store, await filled(store))
        await store.close()
        guest = open_as_guest(tmp_path / "data")
        with guest.lmdb.begin(write=True) as txn:
            for key in sorted_durations_of(guest, txn):
                value = encode_column(key, np.arange(9, dtype=np.uint32))
                txn.put(key, value, db=guest.databases.segments)
            write_format(txn, guest.databases.meta, 10)
        guest.close()
        of_format_10.append(((tmp_path / "data" / FILE_NAME).read_bytes(), rows))
    without_limit.undo()
    ((content, rows),) = of_format_10
    shutil.rmtree(tmp_path / "data", ignore_errors=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / FILE_NAME).write_bytes(content)
    return rows


class Stopped(Exception):
    """The migration was stopped, as by a kill."""


def stop_at(phase: str, place: int = 0) -> BackupProgress:
    """Return what stops a migration at a place of a phase."""

    def report(what: str, done: int, _total: int) -> None:
        if what == phase and done >= place:
            raise Stopped

    return report


def migrate_until(folder: Path, phase: str, place: int = 0) -> None:
    """Migrate a store up to a place in a phase, as if the daemon were killed there."""
    with pytest.raises(Stopped):
        migrate_store(folder, MAP_SIZE, stop_at(phase, place))


ON_ITS_WAY = [
    ("visits end after 24 hours", 1, 10),
    ("visits become rows", 64, 11),
    ("visits of merged segments", 1, 11),
    ("sorted durations", 1, 13),
]
"""Where a migration can be stopped: the phases, a place at which some of each is done, and the
format that the store has then."""


def findings(folder: Path) -> list[str]:
    """Return what a check finds."""
    environment, txn = open_to_read(folder)
    with txn:
        found = list(StoreCheck(environment, txn).findings())
    environment.close()
    return found


def format_of(folder: Path) -> int:
    """Return the format of a store."""
    environment, txn = open_to_read(folder)
    txn.abort()
    environment.close()
    return environment.format


async def rows_of(open_store: OpenStore) -> StoredRows:
    """Open the store, and return what it has."""
    store = open_store(map_size=MAP_SIZE, sizes=SIZES)
    (website,) = store.websites.all()
    found = stored_rows(store, website)
    await store.close()
    return found


@pytest_twisted.ensureDeferred
async def test_visits_are_those_of_hits_sent_to_this_build(
    open_store: OpenStore, before: StoredRows, tmp_path: Path
) -> None:
    assert is_outdated(tmp_path / "data")
    now = await rows_of(open_store)
    assert not is_outdated(tmp_path / "data")
    fresh = open_store(sizes=SIZES, name="fresh")
    assert now == stored_rows(fresh, await filled(fresh))
    await fresh.close()
    # A third of 328 live views and of 300 imported ones stay as they were.
    visit_of = [[view["visit_offset"] for view in views] for views, _ in (before, now)]
    assert sum(map(int.__ne__, *visit_of)) > 300
    # Nothing changes at the next start, and all that is derived from views is as it would be now.
    assert await rows_of(open_store) == now
    assert findings(tmp_path / "data") == []
    environment, txn = open_to_read(tmp_path / "data")
    with txn:
        keys = sorted_durations_of(environment, txn)
        assert keys
        assert not any(txn.get(key, db=environment.databases.segments) for key in keys)
    environment.close()


@pytest_twisted.ensureDeferred
async def test_a_visit_begins_exactly_24_hours_after_the_one_before(open_store: OpenStore) -> None:
    store = open_store(sizes=SIZES)
    website = await filled(store)
    found, _ = stored_rows(store, website)
    await store.close()
    stays = [row for row in found if row["path"].startswith("/stays/")]
    begins = [
        (row["time_ms"] - NOW_MS) // HOUR_MS
        for row in sorted(stays, key=lambda row: row["time_ms"])
        if row["visit_offset"] == 1
    ]
    assert begins == [0, 24, 48]


@pytest.mark.usefixtures("before")
@pytest_twisted.ensureDeferred
async def test_a_kill_leaves_a_store_that_the_next_start_continues_with(
    open_store: OpenStore, tmp_path: Path
) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / FILE_NAME).write_bytes((tmp_path / "data" / FILE_NAME).read_bytes())
    migrate_store(tmp_path / "whole", MAP_SIZE, no_progress)
    assert killed("migrate", tmp_path / "data", every=12) == {
        *("visits end after 24 hours", "written", "visits become rows"),
        *("visits of merged segments", "sorted durations"),
    }
    whole = open_store(sizes=SIZES, name="whole")
    expected = stored_rows(whole, whole.websites.all()[0])
    await whole.close()
    assert await rows_of(open_store) == expected


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize(("phase", "place", "number"), ON_ITS_WAY)
def test_only_damage_is_found_in_a_store_on_its_way(
    tmp_path: Path, phase: str, place: int, number: int
) -> None:
    folder = tmp_path / "data"
    migrate_until(folder, phase, place)
    assert is_outdated(folder)
    assert format_of(folder) == number
    assert findings(folder) == []
    guest = open_as_guest(folder)
    with guest.lmdb.begin() as txn:
        columns = {key[-1]: key for key, _ in txn.cursor(db=guest.databases.segments)}
        slots = next(key for key, _ in txn.cursor(db=guest.databases.counters) if key[-1] == SLOTS)
        value = txn.get(slots, db=guest.databases.counters)
    found = decode_counters(slots, memoryview(value), check=True)
    more = Counters(found.codes, tuple(row + 1 for row in found.sums))
    changed = columns.keys() & {Column.TIME, Column.VISIT_EVENT, Column.VIEW_ELSEWHERE}
    with guest.lmdb.begin(write=True) as txn:
        for column in changed:
            txn.put(columns[column], b"damaged" * 9, db=guest.databases.segments)
        txn.put(slots, encode_counters(slots, more), db=guest.databases.counters)
    guest.close()
    reasons = [reason for _, reason in (found.split(": ") for found in findings(folder))]
    assert reasons.count("it does not agree with its views") == 1
    assert reasons.count("its checksum does not match") == len(changed)


@pytest_twisted.ensureDeferred
async def test_without_room_nothing_is_changed(
    open_store: OpenStore, before: StoredRows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "free_bytes", lambda _folder: 1 << 20)
    with pytest.raises(StoreError, match="1 MiB of the disk are free, bringing this store up"):
        open_store(map_size=MAP_SIZE, sizes=SIZES)
    assert is_outdated(tmp_path / "data")
    monkeypatch.undo()
    assert await rows_of(open_store) != before


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize(("phase", "place", "number"), ON_ITS_WAY)
def test_the_visits_of_a_segment_are_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, phase: str, place: int, number: int
) -> None:
    made: list[tuple[int, int]] = []
    merged: list[bytes] = []

    def make(part: ViewColumns) -> MadeVisits:
        made.append(part.sequence_bounds)
        return visits_of(part)

    def merge(members: Sequence[OpenSegment | OpenMergedSegment], key: bytes) -> Iterator[Put]:
        merged.append(key)
        return merged_visit_puts(members, key)

    monkeypatch.setattr(read, "visits_of", make)
    monkeypatch.setattr(table_of_visits, "merged_visit_puts", merge)
    migrate_until(tmp_path / "data", phase, place)
    assert format_of(tmp_path / "data") == number
    migrate_store(tmp_path / "data", MAP_SIZE, no_progress)
    assert made
    assert len(made) == len(set(made))
    assert merged
    assert len(merged) == len(set(merged))


def contents(folder: Path) -> dict[tuple[str, bytes], bytes]:
    """Return the entries of a store's segments, and of what names them."""
    environment, txn = open_to_read(folder)
    with txn:
        found = {
            (name, bytes(key)): bytes(value)
            for name in ("meta", "headers", "segments", "counters")
            for key, value in txn.cursor(db=getattr(environment.databases, name))
        }
    environment.close()
    return found


def headers_of(folder: Path) -> dict[int, SegmentHeader]:
    """Return the sound headers by number."""
    environment, txn = open_to_read(folder)
    with txn:
        found = {number_of(key): header for key, header in sound_headers(environment, txn)}
    environment.close()
    return found


@pytest.mark.usefixtures("before")
def test_a_store_has_all_that_its_format_says_until_it_has_another(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    migrate_until(folder, "visits become rows")
    before = contents(folder)
    migrate_until(folder, "written")
    now = contents(folder)
    assert before.items() <= now.items()
    assert len(before) < len(now)


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize(
    ("phase", "what", "kind"),
    [
        ("visits end after 24 hours", "header", None),
        ("visits end after 24 hours", "column", Column.TIME),
        ("visits become rows", "header", None),
        ("visits become rows", "column", Column.TIME),
        ("visits of merged segments", "counter", OF_VISITS),
    ],
)
def test_what_is_damaged_is_left_as_it_is(
    tmp_path: Path, phase: str, what: str, kind: int | None
) -> None:
    folder = tmp_path / "data"
    migrate_until(folder, phase)
    headers = headers_of(folder)
    above = {member: number for number in headers for member in headers[number].members}
    damaged = next(
        number for number in above if above[number] in above and not headers[number].members
    )
    over, place = set[int](), damaged
    while place := above.get(place, 0):
        over.add(place)
    key = segment_key(1, headers[damaged], damaged)
    guest = open_as_guest(folder)
    databases = guest.databases
    with guest.lmdb.begin(write=True) as txn:
        if kind is None:
            txn.put(header_key(1, damaged), b"damaged", db=databases.headers)
        else:
            database = databases.segments if what == "column" else databases.counters
            txn.put(key + bytes((kind,)), b"damaged", db=database)
    guest.close()
    before = contents(folder)

    migrate_store(folder, MAP_SIZE, no_progress)
    now = contents(folder)
    # The visits of the segment were there before its counters of them were damaged.
    left = set[int]() if what == "counter" else {damaged}
    for (name, stored), value in before.items():
        if left and stored.startswith((key, header_key(1, damaged))):
            assert now[name, stored] == value
    assert {stored[-1] for _, stored in before.keys() - now.keys()} == {56, 57}
    with_visits = {number for number, header in headers_of(folder).items() if header.has_visits}
    assert with_visits == headers.keys() - over - left
    assert [re.sub(r" [0-9a-f]{8,}", "", found) for found in findings(folder)] == (
        [
            "website 1, header: its checksum does not match",
            f"website 1, segment {above[damaged]}: its member {damaged} is missing",
            "website 1, segments: they belong to no segment",
            "website 1, counters: they belong to no segment",
        ]
        if kind is None
        else [f"website 1, segment {damaged}, {what} {int(kind)}: it is cut short"]
    )


@pytest.mark.usefixtures("before")
def test_columns_of_visits_of_format_12_are_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    migrate_until(folder, "visits become rows")
    guest = open_as_guest(folder)
    with guest.lmdb.begin(write=True) as txn:
        for key, header in [each for each in sound_headers(guest, txn) if has_views(each[1])]:
            had = replace(header, had_columns_of_visits=True)
            txn.put(key, encode_header(key, had), db=guest.databases.headers)
            for column in (Column.VISIT_DURATION, 68):
                of_visits = segment_key(1, header, number_of(key)) + bytes((column,))
                value = encode_column(of_visits, np.arange(9, dtype=np.uint32))
                txn.put(of_visits, value, db=guest.databases.segments)
        write_format(txn, guest.databases.meta, 12)
    guest.close()
    assert findings(folder) == []
    migrate_store(folder, MAP_SIZE, no_progress)
    assert findings(folder) == []
    assert all(header.has_visits for header in headers_of(folder).values())


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize(
    ("written", "phase"),
    [("_SEGMENT_BYTES", "visits of merged segments"), ("_MERGED_BYTES", "written")],
)
def test_a_start_after_a_kill_needs_room_for_the_rest_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, phase: str
) -> None:
    is_begun = False

    def report(what: str, _done: int, _total: int) -> None:
        nonlocal is_begun
        is_begun |= what == "visits become rows"
        if is_begun and what == phase:
            raise Stopped

    with pytest.raises(Stopped):
        migrate_store(tmp_path / "data", MAP_SIZE, report)
    assert is_outdated(tmp_path / "data")
    monkeypatch.setattr(table_of_visits, written, 1 << 20)
    monkeypatch.setattr(files, "free_bytes", lambda _folder: 100 << 20)
    migrate_store(tmp_path / "data", MAP_SIZE, no_progress)
    assert not is_outdated(tmp_path / "data")


@pytest.mark.usefixtures("before")
@pytest.mark.parametrize("written", ["_SEGMENT_BYTES", "_MERGED_BYTES", "_LAST_BYTES"])
def test_without_room_for_all_steps_none_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setattr(table_of_visits, written, 1 << 20)
    monkeypatch.setattr(files, "free_bytes", lambda _folder: 100 << 20)
    with pytest.raises(StoreError, match="100 MiB of the disk are free, bringing this store up"):
        migrate_store(tmp_path / "data", MAP_SIZE, no_progress)
    assert format_of(tmp_path / "data") == 10


@pytest.mark.usefixtures("before")
def test_the_room_is_that_of_all_steps_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for step in (visits_of_a_day, table_of_visits, sorted_durations):
        monkeypatch.setattr(step, "room_bytes", lambda *_: 20 << 20)
    monkeypatch.setattr(files, "free_bytes", lambda _folder: 100 << 20)
    with pytest.raises(StoreError, match="bringing this store up to date takes 124 MiB"):
        migrate_store(tmp_path / "data", MAP_SIZE, no_progress)
    monkeypatch.setattr(files, "free_bytes", lambda _folder: 124 << 20)
    migrate_store(tmp_path / "data", MAP_SIZE, no_progress)


@pytest.mark.usefixtures("before")
def test_days_whose_views_are_gone_take_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    day = Day(1, (0, 1), (), has_durations=False, visits=None)
    rollup = replace(headers_of(tmp_path / "data")[1], views=1 << 40, day=day)
    key = header_key(1, 9_999)
    guest = open_as_guest(tmp_path / "data")
    with guest.lmdb.begin(write=True) as txn:
        txn.put(key, encode_header(key, rollup), db=guest.databases.headers)
    guest.close()
    monkeypatch.setattr(files, "free_bytes", lambda _folder: 100 << 20)
    migrate_store(tmp_path / "data", MAP_SIZE, no_progress)


@pytest.mark.usefixtures("before")
def test_with_a_map_too_small_for_all_steps_none_begins(tmp_path: Path) -> None:
    # The file takes more than a MiB, and what is written less.
    with pytest.raises(
        StoreError, match=r"store\.map_size allows 65 MiB, and bringing .* 6\d MiB: ra"
    ):
        migrate_store(tmp_path / "data", 65 << 20, no_progress)
    assert format_of(tmp_path / "data") == 10
    migrate_store(tmp_path / "data", 80 << 20, no_progress)


@pytest.mark.usefixtures("before")
def test_the_log_says_how_far_a_migration_is(tmp_path: Path) -> None:
    with logged_warnings(LogLevel.info) as lines:
        migrate_store(tmp_path / "data", MAP_SIZE, no_progress)
    shares = {
        phase: [int(share) for line in lines for share in re.findall(rf"{phase} \((\d+) %", line)]
        for phase, _, _ in ON_ITS_WAY
    }
    assert [line for line in lines if "%" not in line] == [
        "bringing the store from format 10 to 14: there is room for the 65 MiB that this may take",
        *(f"the store has format {number} now" for number in (11, 13, 14)),
    ]
    for of_phase in shares.values():
        assert len({share // 25 for share in of_phase}) == len(of_phase) > 1
        assert 25 <= of_phase[0] <= of_phase[-1] < 100


@pytest.mark.usefixtures("before")
@pytest_twisted.ensureDeferred
async def test_a_backup_of_an_earlier_store_is_made_and_restored(
    open_store: OpenStore, tmp_path: Path, backup: Path
) -> None:
    note = make_backup(tmp_path / "data", backup, no_progress, 0)
    assert note.format == "10"
    now = await rows_of(open_store)
    assert make_backup(tmp_path / "data", tmp_path / "later", no_progress, 0).format == str(FORMAT)
    restore(backup, tmp_path / "data", no_progress)
    assert await rows_of(open_store) == now


@pytest.mark.parametrize(
    ("program", "needed"),
    [
        (b"7.0.1", "medamad 7.0.1"),
        (VERSION.encode(), f"a later build of medamad {VERSION}"),
        (None, "the version that wrote it"),
    ],
)
def test_a_later_store_is_refused_with_what_it_needs(
    tmp_path: Path, program: bytes | None, needed: str
) -> None:
    folder = tmp_path / "data"
    open_environment(folder, MAP_SIZE).close()
    guest = open_as_guest(folder)
    with guest.lmdb.begin(write=True) as txn:
        write_format(txn, guest.databases.meta, FORMAT + 1)
        stored = b"damaged" if program is None else with_checksum(PROGRAM, program)
        txn.put(PROGRAM, stored, db=guest.databases.meta)
    guest.close()
    with pytest.raises(WrongFormat) as refused:
        open_to_read(folder)
    assert str(refused.value) == (
        f"{folder / FILE_NAME}: this store has format {FORMAT + 1}, and this build of medamad"
        f" {VERSION} reads formats up to {FORMAT}: install {needed}, or a later version"
    )
