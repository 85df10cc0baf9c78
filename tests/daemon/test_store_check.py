"""The check after an unclean shutdown that continues alongside the service."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from attrs import define, field
from support.storage.log_lines import logged_warnings

from medamad.daemon.store_check import CHECK_S, TreeCheckAlongside, check_trees
from medamad.daemon.systemd import Supervisor
from medamad.storage.environment.environment import FILE_NAME, open_as_guest, open_environment
from medamad.storage.environment.folder import StoreState, read_state, write_state
from medamad.storage.environment.tree_check import DamagedValue, TreeCheck
from medamad.storage.errors import DamagedStore

PAGE = 4096


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    open_environment(tmp_path, 16 << 20).close(is_sound=False)
    return tmp_path


@define
class FailingStore:
    reasons: list[str] = field(factory=list)
    values: list[DamagedValue] = field(factory=list)

    def add_damage(self, values: list[DamagedValue]) -> None:
        self.values += values

    def fail(self, reason: str) -> None:
        self.reasons.append(reason)


async def at_once(wait: Callable[[], bool]) -> bool:
    return wait()


async def too_late(wait: Callable[[], bool]) -> bool:
    """Return what a check that takes long returns, once it has finished."""
    wait()
    return False


def damage(folder: Path) -> None:
    content = bytearray((folder / FILE_NAME).read_bytes())
    content[2 * PAGE :] = bytes(len(content) - 2 * PAGE)
    (folder / FILE_NAME).write_bytes(content)


@pytest_twisted.ensureDeferred
async def test_a_sound_store_is_opened(folder: Path) -> None:
    check = await check_trees(folder, at_once, Supervisor())
    assert check is not None
    assert read_state(folder) is StoreState.OPEN
    store = FailingStore()
    await TreeCheckAlongside(check, store, folder).look()
    assert (store.reasons, store.values) == ([], [])


@pytest_twisted.ensureDeferred
async def test_a_damaged_value_is_left_out_and_the_store_is_served(folder: Path) -> None:
    guest = open_as_guest(folder)
    key = bytes((0, 0, 0, 7, *bytes(11), 9, 32))
    with guest.lmdb.begin(write=True) as txn:
        txn.put(key, b"its checksum is wrong", db=guest.databases.segments)
        txn.put(b"beacon", b"no checksum is looked at", db=guest.databases.codes)
    guest.close()
    check = await check_trees(folder, at_once, Supervisor())
    assert check is not None
    store = FailingStore()
    await TreeCheckAlongside(check, store, folder).look()
    assert store.reasons == []
    (value,) = store.values
    assert (value.website, value.segment) == (7, 9)
    assert value.place == "website 7, segment 9, column 32: its checksum does not match"


@pytest_twisted.ensureDeferred
async def test_a_damaged_store_is_rejected(folder: Path) -> None:
    damage(folder)
    with pytest.raises(DamagedStore, match="MDB_"):
        await check_trees(folder, at_once, Supervisor())


@pytest_twisted.ensureDeferred
async def test_the_rest_of_a_long_check_runs_alongside_the_service(folder: Path) -> None:
    check = await check_trees(folder, too_late, Supervisor())
    assert check is not None
    assert read_state(folder) is StoreState.UNCHECKED
    store = FailingStore()
    alongside = TreeCheckAlongside(check, store, folder)
    await alongside.look()
    await alongside.look()
    assert store.reasons == []
    assert read_state(folder) is StoreState.OPEN


@pytest_twisted.ensureDeferred
async def test_damage_found_alongside_the_service_stops_it_for_the_next_start(folder: Path) -> None:
    damage(folder)
    check = await check_trees(folder, too_late, Supervisor())
    assert check is not None
    store = FailingStore()
    await TreeCheckAlongside(check, store, folder).look()
    assert len(store.reasons) == 1
    assert store.reasons[0].startswith("the store is damaged: ")
    assert read_state(folder) is StoreState.UNCHECKED


@pytest_twisted.ensureDeferred
async def test_after_a_second_unclean_shutdown_the_start_waits_for_the_whole_check(
    folder: Path,
) -> None:
    waits: list[object] = []

    async def note(wait: Callable[[], bool]) -> bool:
        waits.append(wait.args[0])  # type: ignore[attr-defined]
        return wait()

    await check_trees(folder, note, Supervisor())
    write_state(folder, StoreState.UNCHECKED)
    await check_trees(folder, note, Supervisor())
    assert waits == [CHECK_S, None]
    assert read_state(folder) is StoreState.OPEN


@pytest_twisted.ensureDeferred
async def test_a_store_found_damaged_by_a_write_is_rejected_until_replaced(
    folder: Path,
) -> None:
    write_state(folder, StoreState.DAMAGED, "a page is missing")
    with pytest.raises(DamagedStore, match="a write has failed: a page is missing"):
        await check_trees(folder, at_once, Supervisor())


@pytest_twisted.ensureDeferred
async def test_a_killed_check_leaves_the_store_unchecked(folder: Path) -> None:
    write_state(folder, StoreState.UNCHECKED)
    check = TreeCheck.start(folder / FILE_NAME)
    alongside = TreeCheckAlongside(check, store := FailingStore(), folder)
    check.stop()
    with logged_warnings() as lines:
        await alongside.look()
    assert store.reasons == []
    assert len(lines) == 1
    assert "could not be checked" in lines[0]
    assert read_state(folder) is StoreState.UNCHECKED


@pytest_twisted.ensureDeferred
async def test_a_store_whose_check_was_killed_at_the_start_is_served_unchecked(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = subprocess.Popen

    def killed(*args: Any, **kwargs: Any) -> "subprocess.Popen[str]":
        process = real(*args, **kwargs)
        process.kill()
        return process

    monkeypatch.setattr(subprocess, "Popen", killed)
    with logged_warnings() as lines:
        assert await check_trees(folder, at_once, Supervisor()) is None
    assert any("could not be checked" in line for line in lines)
    assert read_state(folder) is StoreState.UNCHECKED
