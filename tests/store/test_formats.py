"""Stores of earlier versions of the program: opened, they become what this one makes."""

from collections.abc import Callable
from pathlib import Path

import pytest
import pytest_twisted
from held import agrees, blocks_and_groups, durations, held, orphans, settled
from views import DAY_MS, HOUR_MS, NOW_MS, event, leaving, views

from medamad.store.environment import FORMAT, open_as_guest
from medamad.store.errors import WrongFormat
from medamad.store.store import Store
from medamad.store.upkeep import Sizes

OpenStore = Callable[..., Store]

OF_BLOCKS = ("heads", "blocks", "counters", "corrections", "doomed")


def make_older(folder: Path) -> None:
    """Make the store what the version without blocks would have made."""
    guest = open_as_guest(folder)
    with guest.lmdb.begin(write=True) as txn:
        for name in OF_BLOCKS:
            txn.drop(getattr(guest.databases, name))
        txn.put(b"format", b"1", db=guest.databases.meta)
    guest.close()


@pytest.mark.parametrize("as_guest", [False, True])
@pytest_twisted.ensureDeferred
async def test_a_store_without_blocks_gets_them(
    open_store: OpenStore, tmp_path: Path, as_guest: bool
) -> None:
    store = open_store()
    website = await store.add_website("example.com", 1)
    await store.append([*views(1, 30), event("b1"), leaving(2, 700)])
    before = held(store, website)
    await store.close()
    make_older(tmp_path / "data")
    if as_guest:
        open_as_guest(tmp_path / "data").close()
    store = open_store(sizes=Sizes(chunk_views=4, group_members=2, counted_from=0))
    assert held(store, website) == before
    with store._environment.reading() as txn:
        assert txn.get(b"format", db=store._environment.databases.meta) == b"%d" % FORMAT
    await store.append([leaving(3, 900)])
    await settled(store, NOW_MS + DAY_MS + HOUR_MS + 1)
    assert min(blocks_and_groups(store._environment)) > 0
    assert durations(store, website)["/3"] == 900
    assert len(durations(store, website)) == 30
    store.ask(website, agrees)
    assert orphans(store._environment) == []
    await store.close()


@pytest.mark.parametrize("found", [b"0", b"3", b"", b"two", b"1.5"])
@pytest_twisted.ensureDeferred
async def test_any_other_is_refused_and_left_alone(
    open_store: OpenStore, tmp_path: Path, found: bytes
) -> None:
    store = open_store()
    await store.close()
    guest = open_as_guest(tmp_path / "data")
    with guest.lmdb.begin(write=True) as txn:
        txn.put(b"format", found, db=guest.databases.meta)
    guest.close()
    before = (tmp_path / "data" / "store.mdb").read_bytes()
    for _ in range(2):
        with pytest.raises(WrongFormat, match="this program knows format"):
            open_store()
    assert (tmp_path / "data" / "store.mdb").read_bytes() == before
