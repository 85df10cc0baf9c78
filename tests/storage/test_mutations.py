"""Random changes to the store's file cause clear errors or reported damage, no wrong figure."""

import json
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import lmdb
import numpy as np
import pytest
import pytest_twisted
from attrs import evolve
from support.storage.bulk_loads import imported, made
from support.storage.contents import idle, settled, stored_rows
from support.storage.hits import DAY_MS, NOW_MS, a_view
from support.storage.open_mutants import LOGIN, SETTINGS, SIZES
from support.storage.scenes import Scene, ScenePlayer
from twisted.internet import reactor

from medamad.domain.accounts import Account, Login, Scope, Share, Token
from medamad.domain.alerts import SERVICE, Rule
from medamad.domain.annotations import Annotation
from medamad.domain.dimensions import Dimension
from medamad.domain.goals import Goal
from medamad.domain.websites import Website
from medamad.storage.environment.environment import FILE_NAME
from medamad.storage.environment.trusted_clock import TrustedTime, write_trusted
from medamad.storage.import_content import DayCounts
from medamad.storage.segments.counters import SUMS
from medamad.storage.settings import Keep, Retention
from medamad.storage.startup import start_store
from medamad.storage.store import Store

NOTICED = {"refused", "stopped", "reported", "no harm"}
KILLED = {"crashed", "fell over"}
TESTS = Path(__file__).parents[1]


async def with_sums(store: Store) -> None:
    """Store expired views, of which rollups remain."""
    website = await store.add_website("past.example", 1)
    for ago in (9, 8, 1):
        for number in range(6):
            view = a_view(website.number, path=f"/{number}", time_ms=NOW_MS - ago * DAY_MS)
            await store.append([evolve(view, properties=(("plan", "pro"),))])
    await idle(store)
    await settled(store, NOW_MS)
    views, _ = stored_rows(store, website)
    assert len(views) == 6
    assert store.read(website, lambda snapshot: len(list(snapshot.rollups))) > 1


async def with_imports(store: Store) -> Website:
    """Import past views and daily totals."""
    website = await store.add_website("club.example", 1)
    given = {"source": "views.csv", "digest": "views", "newest": 0, "now": 7}
    batch = await store.imports.begin(website, ranges=[("other", 11, 1_000)], **given)
    await store.imports.load(batch, [imported(made(1, 9, 4), batch.spans[0].at)])
    newest = (await store.imports.finish(batch)).number
    given |= {"digest": "days", "newest": newest}
    batch = await store.imports.begin(website, ranges=[], **given)
    day = NOW_MS // DAY_MS - 40
    counts = [
        DayCounts(day, span, dimension, texts, np.full((SUMS, len(texts)), 6 // len(texts)))
        for span in [(day * DAY_MS, (day + 1) * DAY_MS - 1)]
        for dimension, texts in ((None, [""]), (Dimension.PATH, ["/a", "/b"]))
    ]
    await store.imports.load_days(batch, counts)
    await store.imports.finish(batch)
    return website


@pytest_twisted.async_fixture
async def sound(tmp_path: Path) -> Path:
    """A store with something of every kind, in a file without free pages."""
    retention = Retention(websites={"past.example": Keep(3)})
    settings = evolve(SETTINGS, retention=retention)
    store = start_store(tmp_path / "data", settings, reactor, SIZES)
    await store.account.put(Account("ada", "hash", 1, 1))
    await store.account.add_login(LOGIN, Login(1, 2))
    await store.tokens.add(b"digest", Token("id", "report", Scope.READ, None, 1))
    await with_sums(store)
    club = await with_imports(store)
    await store.shares.add(b"id", Share("id", "club", club.number, 1))
    goal = Goal(id="id", name="Thanks", path="/thanks")
    await store.goals.change(club.number, lambda old: old.with_goal(goal))
    rule = Rule(id="id", kind="backup", url="https://example.com/")
    for number in (SERVICE, club.number):
        await store.alerts.change(number, lambda old: old.with_rule(rule))
    note = Annotation(id="id", time="2024-05-01", text="Launch")
    await store.annotations.change(club.number, lambda old: old.with_annotation(note))
    with store.environment.lmdb.begin(write=True) as txn:
        write_trusted(txn, store.environment, TrustedTime(NOW_MS, 5, DAY_MS))
    player = await ScenePlayer.begin(store)
    rng = random.Random(3)  # noqa: S311 - the same each time
    scene = Scene(rng, [website.number for website in player.websites])
    await player.play(scene, 150)
    await player.settle(scene.now_ms)
    await store.append([scene.hit() for _ in range(20)])
    await store.close()
    file = tmp_path / "sound.mdb"
    env = lmdb.open(str(tmp_path / "data" / FILE_NAME), subdir=False, lib_version=0, readonly=True)
    with file.open("wb") as copy:
        env.copyfd(copy.fileno(), compact=True)
    env.close()
    return file


@pytest.fixture
def come_of(sound: Path, tmp_path: Path) -> Callable[[int, int], Counter[str]]:
    """Return the outcomes of so many changes; none may go unnoticed."""

    def change(first: int, count: int) -> Counter[str]:
        paths = [str(TESTS), str(TESTS.parent)]
        done = subprocess.run(
            [
                sys.executable,
                TESTS / "support/storage/open_mutants.py",
                sound,
                tmp_path / "work",
                str(first),
                str(count),
            ],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            capture_output=True,
            check=True,
            text=True,
        )
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(lines) == count
        # LMDB has no checksums on its pages: some changes show only when a page is written to.
        killed = [line for line in lines if line[2] in KILLED]
        assert len(killed) <= max(2, count // 20), killed
        bad = [line for line in lines if line[2] not in NOTICED | KILLED]
        assert bad == []
        assert all(reported for _, _, came, reported in lines if came != "no harm")
        return Counter(came for _, _, came, _ in lines)

    return change


def test_no_change_goes_unnoticed(come_of: Callable[[int, int], Counter[str]]) -> None:
    came = come_of(21, 8)
    assert came["refused"] > 0, came
    assert came["reported"] > 0, came


@pytest.mark.slow
@pytest.mark.timeout(1_200)
def test_none_of_a_thousand_changes_goes_unnoticed(
    come_of: Callable[[int, int], Counter[str]],
) -> None:
    came = come_of(1_000, 1_000)
    assert came["refused"] > 200
    assert came["reported"] > 100
