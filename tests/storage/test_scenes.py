"""Random hits stay complete while the store flushes, merges and corrects them."""

import random
from collections.abc import Callable
from functools import partial

import pytest
import pytest_twisted
from support.storage.background_work import Observed
from support.storage.contents import agrees, orphans
from support.storage.scenes import DAY_MS, Scene, ScenePlayer

from medamad.storage.compaction.planner import Sizes
from medamad.storage.store import Store

OpenStore = Callable[..., Store]


@pytest.mark.parametrize(
    "seeds", [range(6, 7), pytest.param(range(30), marks=pytest.mark.slow)], ids=["few", "many"]
)
@pytest_twisted.ensureDeferred
async def test_compaction_keeps_every_hit_exactly_once(open_store: OpenStore, seeds: range) -> None:
    observed = Observed()
    for seed in seeds:
        await play(seed, partial(open_store, name=str(seed)), observed)
        observed.forget()
    assert {work for work, times in observed.counts.items() if times} == {
        "segments",
        "merges",
        "folds",
        "groups",
        "groups taken apart",
        "durations laid over",
        "views laid over",
    }


async def play(seed: int, open_store: OpenStore, observed: Observed) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same each time
    sizes = Sizes(rng.randint(1, 8), rng.randint(2, 3), rng.randint(0, 3))
    player = await ScenePlayer.begin(open_store(sizes=sizes))
    scene = Scene(rng, [website.number for website in player.websites])
    for step in scene.steps(120):
        await player.run(step)
        scene.numbers = [website.number for website in player.websites]
        player.check()
        observed.look(player.store)
        if rng.random() < 0.1:
            await player.restart(partial(open_store, sizes=sizes))
            player.check()
    await player.settle(scene.now_ms + 2 * DAY_MS)
    player.check()
    observed.look(player.store)
    for website in player.websites:
        player.store.read(website, agrees)
    assert orphans(player.store.environment) == []
    await player.store.close()
