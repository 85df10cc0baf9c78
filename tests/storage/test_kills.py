"""Every state that a kill can leave: the store's file is copied after each transaction.

The results of a store opened on the copy are compared with what was acknowledged by then.
"""

import copy
import os
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import current_thread
from typing import Any

import pytest
import pytest_twisted
from attrs import define, field
from support.storage.contents import agrees, orphans
from support.storage.hits import NOW_MS, a_view
from support.storage.naive_store import NaiveStore
from support.storage.scenes import DAY_MS, Append, Delete, Scene, ScenePlayer, Step
from twisted.internet import reactor

from medamad.domain.hits import Event, Hit, Unload
from medamad.storage.compaction.planner import Sizes
from medamad.storage.environment.environment import FILE_NAME, open_as_guest
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
SLOW = pytest.mark.slow
HOLE = bytes(1 << 16)


@define(eq=False)
class Copying:
    """A reactor for a store; copies the file after each transaction of the writer thread."""

    folder: Path
    name: str = "data"
    history: list[NaiveStore] = field(factory=list)
    """What was acknowledged, change by change."""
    copies: list[tuple[str, int]] = field(factory=list)
    """The folders of the copies, and how many changes had been acknowledged by then."""

    def callFromThread(self, call: Callable[..., Any], /, *args: object) -> None:
        if current_thread().name == "store-writer":
            name = f"killed-{len(self.copies)}"
            (self.folder / name).mkdir()
            copy_sparsely(self.folder / self.name / FILE_NAME, self.folder / name / FILE_NAME)
            self.copies.append((name, len(self.history)))
        reactor.callFromThread(call, *args)

    def note(self, expected: NaiveStore) -> None:
        self.history.append(copy.deepcopy(expected))


def copy_sparsely(source: Path, target: Path) -> None:
    data = source.read_bytes()
    end = len(data)
    while end and data[end - len(HOLE) : end] == HOLE:
        end -= len(HOLE)
    target.write_bytes(data[:end])
    os.truncate(target, len(data))


async def telling_of(open_store: OpenStore, copying: Copying, sizes: Sizes) -> ScenePlayer:
    """Begin a scene, and drop the copies made so far."""
    player = await ScenePlayer.begin(open_store(sizes=sizes, its_reactor=copying))
    player.acknowledged = lambda: copying.note(player.expected)
    for name, _ in copying.copies:
        shutil.rmtree(copying.folder / name)
    copying.copies.clear()
    copying.note(player.expected)
    return player


def agreeing(store: Store, states: Sequence[NaiveStore]) -> ScenePlayer:
    """Return which of several states a store is in."""
    numbers = {website.number for website in store.websites.all()}
    possible = [expected for expected in states if set(expected.websites) == numbers]
    assert possible, "no state has these websites"
    for place, expected in enumerate(possible):
        player = ScenePlayer(store, store.websites.all(), copy.deepcopy(expected))
        try:
            player.check()
        except AssertionError:
            if place == len(possible) - 1:
                raise
        else:
            return player
    raise AssertionError


async def check_copies(
    open_store: OpenStore, copying: Copying, sizes: Sizes, now_ms: int, step: int
) -> set[str]:
    """Check that every copy, or every `step`th, has what was acknowledged or one change more.

    Return the kinds of keys left behind in any copy, which the next start removes.
    them.
    """
    left_behind = set()
    for place, (name, acknowledged) in enumerate(copying.copies):
        guest = open_as_guest(copying.folder / name)
        left_behind |= {key.partition(" ")[0] for key in orphans(guest)}
        guest.close()
        if place % step == 0:
            store = open_store(sizes=sizes, name=name)
            states = copying.history[acknowledged - 1 : acknowledged + 1]
            await check_copy(store, states, now_ms)
        shutil.rmtree(copying.folder / name)
    return left_behind


async def check_copy(store: Store, states: Sequence[NaiveStore], now_ms: int) -> None:
    player = agreeing(store, states)
    for website in player.websites:
        store.read(website, agrees)
    await player.settle(now_ms)
    player.check()
    for website in player.websites:
        store.read(website, agrees)
    assert orphans(store.environment) == []
    await store.close()


@pytest.mark.parametrize(
    ("seed", "step"), [(0, 50), *(pytest.param(seed, 1, marks=SLOW) for seed in range(3))]
)
@pytest_twisted.ensureDeferred
async def test_a_kill_after_any_transaction_loses_and_repeats_nothing(
    open_store: OpenStore, tmp_path: Path, seed: int, step: int
) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same each time
    sizes = Sizes(chunk_views=rng.randint(2, 4), merged_members=2, counted_from=rng.randint(0, 3))
    copying = Copying(tmp_path)
    player = await telling_of(open_store, copying, sizes)
    scene = Scene(rng, [website.number for website in player.websites])
    await player.play(scene, 25)
    await player.run(Delete(0))
    await player.settle(scene.now_ms + 2 * DAY_MS)
    player.check()
    await player.store.close()
    assert len(copying.copies) > 80
    left_behind = await check_copies(open_store, copying, sizes, scene.now_ms + 2 * DAY_MS, step)
    assert left_behind >= {
        "segments",
        "counters",
        "purge_queue",
        "wal",
        "tombstone",
        "header",
        "dictionary",
    }


@pytest.mark.parametrize("count", [2, pytest.param(20, marks=SLOW)])
@pytest_twisted.ensureDeferred
async def test_a_store_continues_after_a_kill_as_if_there_had_been_none(
    open_store: OpenStore, tmp_path: Path, count: int
) -> None:
    rng = random.Random(7)  # noqa: S311 - the same each time
    sizes = Sizes(chunk_views=3, merged_members=2, counted_from=0)
    copying = Copying(tmp_path)
    player = await telling_of(open_store, copying, sizes)
    scene = Scene(rng, [website.number for website in player.websites])
    done = {1: 0}
    """How many steps had been done when so many changes were acknowledged."""
    steps: list[Step] = []
    for step in scene.steps(40):
        await player.run(step)
        scene.numbers = [website.number for website in player.websites]
        steps.append(step)
        done[len(copying.history)] = len(steps)
    await player.settle(scene.now_ms)
    await player.store.close()

    gone_on = 0
    for name, acknowledged in copying.copies[:: max(1, len(copying.copies) // count)]:
        store = open_store(sizes=sizes, name=name)
        states = copying.history[acknowledged - 1 : acknowledged + 1]
        again = agreeing(store, states)
        changes = acknowledged
        if again.expected.websites != states[0].websites:
            changes += 1
        if changes not in done:
            await store.close()
            continue
        gone_on += 1
        again.expected.restart()
        for step in steps[done[changes] :]:
            await again.run(step)
            again.check()
        await again.settle(scene.now_ms + 2 * DAY_MS)
        again.check()
        assert orphans(store.environment) == []
        await store.close()
    assert gone_on > count // 2


@pytest.mark.parametrize("step", [30, pytest.param(1, marks=SLOW)])
@pytest_twisted.ensureDeferred
async def test_a_kill_during_a_long_purge_loses_nothing(
    open_store: OpenStore, tmp_path: Path, step: int
) -> None:
    """Thousands of records and keys of a website are deleted in steps."""
    sizes = Sizes(chunk_views=1_500)
    copying = Copying(tmp_path)
    player = await telling_of(open_store, copying, sizes)
    for number in range(2):
        hits: list[Hit] = []
        for each in range(1_600):
            beacon = f"{number}-{each}"
            hits.append(a_view(beacon=beacon, path=f"/{number}/{each}", browser=f"B{each % 7}"))
            if each % 2:
                hits.append(Unload(time_ms=NOW_MS, beacon=beacon, duration_ms=1 + each))
            else:
                properties = (("n", str(each % 5)),)
                hits.append(Event(website=1, time_ms=NOW_MS, properties=properties, beacon=beacon))
        await player.run(Append(hits))
    await player.settle(NOW_MS + 2 * DAY_MS)
    await player.run(Delete(0))
    await player.settle(NOW_MS + 2 * DAY_MS)
    await player.store.close()
    left_behind = await check_copies(open_store, copying, sizes, NOW_MS + 2 * DAY_MS, step)
    assert left_behind >= {"wal", "segments", "dictionary"}
    assert len(copying.copies) > 25
