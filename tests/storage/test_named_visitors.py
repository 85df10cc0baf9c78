"""Visitors whom servers name: counted once a day however late, and forgotten with their day."""

import json
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path

import pytest
import pytest_twisted
import zstandard
from support.storage.backups import back_up_of
from support.storage.contents import settled, stored_rows
from support.storage.hits import DAY_MS, HOUR_MS, NOW_MS, a_view

from medamad.domain.hits import View, Visitor
from medamad.storage.check import StoreCheck
from medamad.storage.environment.environment import FILE_NAME as STORE
from medamad.storage.environment.environment import open_to_read
from medamad.storage.store import Store
from medamad.storage.wal.named_visitors import FILE_NAME

OpenStore = Callable[..., Store]

MIDNIGHT_MS = NOW_MS // DAY_MS * DAY_MS
NAME = "customer-4711"


def seen(number: int, *, arrived_ms: int, happened_ms: int, name: str = NAME) -> View:
    moment = datetime.fromtimestamp(happened_ms / 1000, UTC)
    return a_view(
        beacon=f"n{number}",
        path="/private",
        time_ms=arrived_ms,
        happened_ms=happened_ms,
        visitor=Visitor(name, moment.toordinal()),
    )


def visitors(store: Store) -> tuple[int, int]:
    """Return the first views of the day, and of the page on a day."""
    website = store.websites.by_number(1)
    assert website is not None
    views = stored_rows(store, website)[0]
    return sum(view["p"] for view in views), sum(view["q"] for view in views)


@pytest.mark.parametrize("late_ms", [HOUR_MS, 25 * HOUR_MS, 7 * DAY_MS - HOUR_MS])
@pytest_twisted.ensureDeferred
async def test_visitors_count_once_a_day_however_late_their_hits_arrive(
    open_store: OpenStore, late_ms: int
) -> None:
    store = open_store()
    await store.add_website("example.com", 1)
    days = [MIDNIGHT_MS + HOUR_MS, MIDNIGHT_MS + DAY_MS + HOUR_MS]
    for number, moment_ms in enumerate(days):
        await store.append([seen(number, arrived_ms=moment_ms, happened_ms=moment_ms)])
    await settled(store, days[1] + late_ms - 2)
    await store.close()
    store = open_store()
    for number, moment_ms in enumerate(days):
        arrived_ms = days[1] + late_ms
        late = [
            seen(10 * number + each, arrived_ms=arrived_ms, happened_ms=moment_ms + each)
            for each in (3, 4)
        ]
        await store.append(late)
    assert visitors(store) == (2, 2)
    other = seen(30, arrived_ms=days[1] + late_ms, happened_ms=days[0], name="another")
    await store.append([other])
    assert visitors(store) == (3, 3)
    await store.close()


def keys(folder: Path) -> dict[str, str]:
    path = folder / FILE_NAME
    found: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
    return found


@pytest_twisted.ensureDeferred
async def test_a_day_that_cannot_grow_is_forgotten(open_store: OpenStore) -> None:
    store = open_store()
    folder = store.environment.path.parent
    await store.add_website("example.com", 1)
    await store.append([seen(1, arrived_ms=NOW_MS, happened_ms=MIDNIGHT_MS)])
    await store.append([seen(2, arrived_ms=NOW_MS + DAY_MS, happened_ms=MIDNIGHT_MS + DAY_MS)])
    assert len(keys(folder)) == 2
    assert (folder / FILE_NAME).stat().st_mode & 0o777 == 0o600

    def hashes() -> int:
        database = store.environment.databases.visitors
        assert database is not None
        with store.environment.reading() as txn:
            return int(txn.stat(database)["entries"])

    assert hashes() == 4
    end_ms = MIDNIGHT_MS + 8 * DAY_MS + DAY_MS // 2
    await settled(store, end_ms)
    assert (len(keys(folder)), hashes()) == (2, 4)
    # A clock that has jumped ahead is not trusted for a day.
    await store.maintain(end_ms + 5 * DAY_MS, end_ms)
    assert (len(keys(folder)), hashes()) == (2, 4)
    await settled(store, end_ms + 1)
    assert (len(keys(folder)), hashes()) == (1, 2)
    await settled(store, end_ms + DAY_MS + 1)
    assert (len(keys(folder)), hashes()) == (0, 0)
    await store.close()


def recovered(content: bytes, further: bytes = b"") -> bool:
    """Return whether somebody who has files finds out, by trying, that a name was on the page."""
    windows = {content[at : at + 16] for at in range(len(content) - 15)}
    for key in {*windows, further}:
        for text in (f"1\0{NAME}", f"1\0{NAME}\0/private"):
            if blake2b(text.encode(), digest_size=16, key=key).digest() in windows:
                return True
    return False


@pytest_twisted.ensureDeferred
async def test_no_backup_says_which_names_it_has(open_store: OpenStore, tmp_path: Path) -> None:
    store = open_store()
    folder = store.environment.path.parent
    await store.add_website("example.com", 1)
    await store.append([seen(1, arrived_ms=NOW_MS, happened_ms=NOW_MS)])
    target = tmp_path / "backup.mdb.zst"
    back_up_of(store, target)
    with target.open("rb") as file:
        content = zstandard.ZstdDecompressor().stream_reader(file).read()
    assert not recovered(content)
    # Who has the data directory can try names while the day may grow.
    (key,) = keys(folder).values()
    assert recovered(content, b64decode(key))
    await settled(store, NOW_MS + 10 * DAY_MS)
    await store.close()
    assert b64decode(key) not in b"".join(file.read_bytes() for file in folder.iterdir())
    assert (folder / STORE).exists()


@pytest_twisted.ensureDeferred
async def test_without_their_keys_visitors_of_the_last_days_count_again(
    open_store: OpenStore,
) -> None:
    store = open_store()
    folder = store.environment.path.parent
    await store.add_website("example.com", 1)
    await store.append([seen(1, arrived_ms=NOW_MS, happened_ms=NOW_MS)])
    await store.close()
    (folder / FILE_NAME).unlink()
    store = open_store()
    await store.append([seen(2, arrived_ms=NOW_MS + 1, happened_ms=NOW_MS + 1)])
    assert visitors(store) == (2, 2)
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_store_of_an_earlier_build_is_read_and_written(open_store: OpenStore) -> None:
    """It has no place for the visitors yet."""
    store = open_store()
    folder = store.environment.path.parent
    await store.add_website("example.com", 1)
    await store.append([a_view()])
    database = store.environment.databases.visitors
    with store.environment.lmdb.begin(write=True) as txn:
        txn.drop(database)
    await store.close()
    environment, txn = open_to_read(folder)
    assert environment.databases.visitors is None
    assert list(StoreCheck(environment, txn).findings()) == []
    assert environment.used_bytes(txn) > 0
    txn.abort()
    environment.close()
    store = open_store()
    await store.append([seen(1, arrived_ms=NOW_MS, happened_ms=NOW_MS)])
    assert visitors(store) == (2, 2)
    await store.close()
