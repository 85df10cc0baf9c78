"""A store's file changed at random: a clear message or a damaged record named, no wrong figure."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import lmdb
import pytest
import pytest_twisted
from mutant import LOGIN, SETTINGS, SIZES
from scenes import Scene, Telling
from twisted.internet import reactor

from medamad.model.accounts import Account, Login
from medamad.store.environment import FILE_NAME
from medamad.store.store import Store

HERE = Path(__file__).parent


@pytest_twisted.async_fixture
async def sound(tmp_path: Path) -> Path:
    """A store with something of everything, in a file without free pages."""
    store = Store.open(tmp_path / "data", SETTINGS, reactor, SIZES)
    await store.account.put(Account("ada", "hash", 1, 1))
    await store.account.add_login(LOGIN, Login(1, 2))
    telling = await Telling.begin(store)
    rng = random.Random(3)  # noqa: S311 - the same each time
    scene = Scene(rng, [website.number for website in telling.websites])
    await telling.tell_all(scene, 150)
    await telling.settle(scene.now_ms)
    await store.append([scene._hit() for _ in range(20)])
    await store.close()
    file = tmp_path / "sound.mdb"
    env = lmdb.open(str(tmp_path / "data" / FILE_NAME), subdir=False, lib_version=0, readonly=True)
    with file.open("wb") as copy:
        env.copyfd(copy.fileno(), compact=True)
    env.close()
    return file


@pytest.fixture
def come_of(sound: Path, tmp_path: Path) -> Callable[[int, int], Counter[str]]:
    """Count what came of so many changes, none of which may do what must never be."""

    def change(first: int, count: int) -> Counter[str]:
        paths = [str(HERE), str(HERE.parent), str(HERE.parents[1])]
        done = subprocess.run(
            [sys.executable, HERE / "mutant.py", sound, tmp_path / "work", str(first), str(count)],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            check=True,
            text=True,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(lines) == count
        bad = [line for line in lines if line[2] not in {"refused", "told", "no harm"}]
        assert bad == []
        assert all(told for _, _, came, told in lines if came != "no harm")
        return Counter(came for _, _, came, _ in lines)

    return change


def test_no_change_goes_unnoticed(come_of: Callable[[int, int], Counter[str]]) -> None:
    came = come_of(0, 60)
    assert came["refused"] > 10
    assert came["told"] > 5


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_none_of_a_thousand_changes_goes_unnoticed(
    come_of: Callable[[int, int], Counter[str]],
) -> None:
    came = come_of(1_000, 1_000)
    assert came["refused"] > 200
    assert came["told"] > 100
