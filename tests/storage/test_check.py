"""`check` finds nothing in a sound store and every change in a damaged one."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_twisted
from attrs import astuple, evolve
from support.storage.contents import idle, keys_of, settled
from support.storage.hits import DAY_MS, NOW_MS, event, unload, views
from support.storage.scenes import Scene, ScenePlayer

from medamad.domain.accounts import Account, Login, Scope, Share, Token
from medamad.domain.annotations import Annotation
from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.storage.check import StoreCheck
from medamad.storage.compaction.planner import Sizes
from medamad.storage.dictionary.limits import count_mark_key
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import (
    Environment,
    open_as_guest,
    open_to_read,
)
from medamad.storage.environment.meta import with_checksum
from medamad.storage.segments.counters import Counters, decode_counters, encode_counters, merge
from medamad.storage.segments.format import (
    Segment,
    decode_header,
    encode_column,
    header_key,
    number_of,
)
from medamad.storage.segments.rollup import encode_rollup, open_rollup
from medamad.storage.settings import Keep, Retention
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
SIZES = Sizes(chunk_views=4, merged_members=2, counted_from=0)
CHANGED = (
    *("meta", "logins", "websites", "dictionary", "codes", "wal", "beacons"),
    *("headers", "segments", "counters", "corrections"),
)


def findings(folder: Path) -> list[str]:
    environment, txn = open_to_read(folder)
    found = list(StoreCheck(environment, txn).findings())
    txn.abort()
    environment.close()
    return found


def findings_in(environment: Environment) -> list[str]:
    with environment.reading() as txn:
        return list(StoreCheck(environment, txn).findings())


@pytest_twisted.async_fixture
async def folder(open_store: OpenStore, tmp_path: Path) -> Path:
    """A store with entries in every sub-database except the purge queue and import batches."""
    store = open_store(sizes=SIZES, retention=Retention(others=Keep(3)))
    await store.account.put(Account("ada", "hash", 1, 1))
    await store.account.add_login(b"digest", Login(1, 2))
    await store.tokens.add(b"digest", Token("id", "report", Scope.READ, None, 1))
    await store.shares.add(b"id", Share("id", "club", 1, 1))
    await store.add_website("example.com", 1)
    goal = Goal(id="id", name="Thanks", path="/thanks")
    await store.goals.change(1, lambda old: old.with_goal(goal))
    note = Annotation(id="id", time="2024-05-01", text="Launch")
    await store.annotations.change(1, lambda old: old.with_annotation(note))
    long_ago_ms = NOW_MS - 5 * DAY_MS
    visit = [evolve(view, identity=b"somebody") for view in views(20, 23, long_ago_ms)]
    await store.append([*visit, event("b20", long_ago_ms)])
    await store.append([unload(21, 70_000, long_ago_ms), *views(24, 25, long_ago_ms + DAY_MS)])
    await store.append([*views(1, 8), event("b1"), event(""), unload(3, 700)])
    await store.maintain(NOW_MS + DAY_MS + 1)
    await store.append([*views(9, 17, NOW_MS + 2 * DAY_MS), event("b9", NOW_MS + 2 * DAY_MS)])
    async with store.maintenance.segments_lock:
        pass
    await store.append([unload(9, 1_000, NOW_MS + 2 * DAY_MS + 4)])
    await store.close()
    return tmp_path / "data"


def edit(folder: Path, name: str, change: Callable[[Any, Any, list[bytes]], None]) -> None:
    guest = open_as_guest(folder)
    keys = keys_of(guest, name)[name]
    with guest.lmdb.begin(write=True) as txn:
        change(txn, getattr(guest.databases, name), keys)
    guest.close()


def test_nothing_is_found_in_a_sound_store(folder: Path) -> None:
    assert findings(folder) == []
    environment, txn = open_to_read(folder)
    assert all(txn.stat(each)["entries"] for each in astuple(environment.databases)[:-4])
    checking = StoreCheck(environment, txn)
    assert list(checking.findings()) == []
    assert (checking.websites, checking.views, checking.days) == (1, 17, 2)
    assert checking.segments > 1
    txn.abort()
    environment.close()


@pytest_twisted.ensureDeferred
async def test_a_rollup_day_in_several_pieces_counts_once_per_website(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store(sizes=SIZES, retention=Retention(others=Keep(3)))
    for hostname in ("a.example", "b.example"):
        number = (await store.add_website(hostname, 1)).number
        for day, first in ((9, 0), (8, 10)):
            long_ago_ms = NOW_MS - day * DAY_MS
            hits = views(100 * number + first, 100 * number + first + 8, long_ago_ms)
            await store.append([evolve(hit, website=number) for hit in hits])
    await idle(store)
    await settled(store, NOW_MS)
    pieces = [
        len(store.partitions.get_or_create(website.number).rollups)
        for website in store.websites.all()
    ]
    await store.close()
    assert min(pieces) > 2
    environment, txn = open_to_read(tmp_path / "data")
    checking = StoreCheck(environment, txn)
    assert list(checking.findings()) == []
    assert (checking.views, checking.days) == (0, 4)
    txn.abort()
    environment.close()


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CHANGED)
def test_any_changed_value_is_found(folder: Path, name: str, step: int) -> None:
    guest = open_as_guest(folder)
    unchecked = {b"format"} if name == "meta" else set()
    if name == "dictionary":
        with guest.reading() as txn:
            unchecked = {
                key for key, value in txn.cursor(db=guest.databases.dictionary) if not value[2:]
            }
    keys = [key for key in keys_of(guest, name)[name] if key not in unchecked]
    assert keys
    database = getattr(guest.databases, name)
    for turn, key in enumerate(keys):
        if turn % step and name != "meta":
            continue
        with guest.lmdb.begin(write=True) as txn:
            value = txn.get(key, db=database)
            # Not the day on which a text came: it is no part of what is counted.
            begin = 2 if name == "dictionary" else 0
            place = begin + turn % (len(value) - begin)
            changed = bytearray(value)
            changed[place] ^= 1 << turn % 8
            txn.put(key, bytes(changed), db=database)
        assert findings_in(guest), key
        with guest.lmdb.begin(write=True) as txn:
            txn.put(key, value, db=database)
    assert findings_in(guest) == []
    guest.close()


def test_a_damaged_new_values_mark_is_found(folder: Path) -> None:
    def put(txn: Any, database: Any, _keys: list[bytes]) -> None:
        txn.put(count_mark_key((1, Dimension.PATH)), b"no mark", db=database)

    edit(folder, "dictionary", put)
    assert findings(folder) == ["website 1, count mark of path: its checksum does not match"]


@pytest.mark.parametrize(
    "name", ["websites", "dictionary", "codes", "headers", "segments", "counters"]
)
def test_missing_entries_are_found(folder: Path, name: str) -> None:
    def remove(txn: Any, database: Any, keys: list[bytes]) -> None:
        txn.delete(keys[-1], db=database)

    edit(folder, name, remove)
    assert findings(folder)


def test_counters_that_disagree_with_the_views_are_found(folder: Path) -> None:
    """Their checksums are valid: they were written wrong."""

    def count_one_more(txn: Any, database: Any, keys: list[bytes]) -> None:
        key = next(key for key in reversed(keys) if key[-1] == 1)
        counters = decode_counters(key, memoryview(txn.get(key, db=database)), check=True)
        sums = (counters.sums[0] + 1, *counters.sums[1:])
        txn.put(key, encode_counters(key, Counters(counters.codes, sums)), db=database)

    edit(folder, "counters", count_one_more)
    found = findings(folder)
    assert any(each.endswith("counter 1: it does not agree with its views") for each in found)


def test_a_column_that_no_segment_has_is_found(folder: Path) -> None:
    def add(txn: Any, database: Any, keys: list[bytes]) -> None:
        column = keys[-1][:-1] + b"\x44"
        txn.put(column, encode_column(column, np.arange(9)), db=database)

    edit(folder, "segments", add)
    (found,) = findings(folder)
    assert found.endswith(", column 68: it does not agree with its views")


def test_orphaned_entries_are_found(folder: Path) -> None:
    def add(txn: Any, database: Any, keys: list[bytes]) -> None:
        txn.put(b"\0\0\0\x09" + keys[0][4:], b"", db=database)

    edit(folder, "wal", add)
    assert findings(folder) == ["wal: 1 entries belong to no website"]


def test_definitions_of_no_website_are_found(folder: Path) -> None:
    def add(txn: Any, database: Any, _keys: list[bytes]) -> None:
        for prefix in (b"goals:", b"annotations:"):
            name = prefix + b"\0\0\0\x09"
            txn.put(name, with_checksum(name, b"{}"), db=database)

    edit(folder, "meta", add)
    assert findings(folder) == [
        "website 9, goals and funnels: there is no such website",
        "website 9, annotations: there is no such website",
    ]


@pytest_twisted.ensureDeferred
async def test_nothing_is_found_after_random_operations(
    open_store: OpenStore,
) -> None:
    rng = random.Random(5)  # noqa: S311 - the same each time
    player = await ScenePlayer.begin(open_store(sizes=SIZES))
    scene = Scene(rng, [website.number for website in player.websites])
    for _ in range(6):
        await player.play(scene, 25)
        await player.settle(scene.now_ms)
        assert findings_in(player.store.environment) == []
    await player.store.close()


def test_rollups_that_disagree_are_found(folder: Path) -> None:
    """Their checksums are valid: a faulty program wrote them."""
    guest = open_as_guest(folder)
    with guest.lmdb.begin(write=True) as txn:
        days = [
            Segment(1, number_of(key), header)
            for key, value in txn.cursor(db=guest.databases.headers)
            if key != header_key(1, 0) and (header := decode_header(key, value)).day is not None
        ]
        day = next(segment for segment in days if segment.header.events)
        sums = open_rollup(day, WriterAccess(txn), guest.databases).loaded()
    assert sums.visits is not None
    more_visits = evolve(sums.visits, total=merge([sums.visits.total] * 2))
    wrong = {
        "by browser its visits have other sums than overall": evolve(sums, visits=more_visits),
        "it has another number of exits than of visits": evolve(sums, visits=more_visits),
        "by browser it has other sums than overall": evolve(
            sums, by_dimension={**sums.by_dimension, Dimension.BROWSER: merge([sums.total] * 2)}
        ),
        "its durations have another total": evolve(
            sums, durations=evolve(sums.durations, duration_ms=np.array([1], np.uint32))
        ),
    }
    for expected, other in wrong.items():
        with guest.lmdb.begin(write=True) as txn:
            for is_counters, kind, value in encode_rollup(other, day.key).puts:
                name = "counters" if is_counters else "segments"
                database = getattr(guest.databases, name)
                txn.put(day.key + bytes((kind,)), value, db=database)
        found = findings_in(guest)
        assert [finding for finding in found if finding.endswith(expected)], (expected, found)
    guest.close()
