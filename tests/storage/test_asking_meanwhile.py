"""Queries in threads of their own while hits are stored, flushed and merged."""

import random
from collections.abc import Callable
from threading import Event as Flag
from threading import Lock

import pytest
import pytest_twisted
from attrs import define, field
from support.storage.background_work import Observed
from support.storage.contents import agrees, rows, segments_and_merged
from support.storage.scenes import DAY_MS, Append, Scene, ScenePlayer, Tidy
from twisted.internet.threads import deferToThread

from medamad.domain.hits import View
from medamad.domain.websites import Website
from medamad.storage.compaction.planner import Sizes
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.store import Store

OpenStore = Callable[..., Store]
SLOW = pytest.mark.slow


@define(eq=False)
class QueryAccess:
    """Queries everything repeatedly; the result must have all hits acknowledged before."""

    store: Store
    website: Website
    acknowledged: set[str] = field(factory=set)
    """The paths of the views that were stored; each has its own."""
    stopped: Flag = field(factory=Flag)
    answers: int = 0
    _lock: Lock = field(factory=Lock)

    def note(self, paths: set[str]) -> None:
        with self._lock:
            self.acknowledged |= paths

    def go_on(self) -> None:
        while not self.stopped.is_set():
            with self._lock:
                before = set(self.acknowledged)
            views, events = self.store.read(self.website, rows)
            there = {row["path"] for row in views}
            assert there >= before, "what was acknowledged is not in the answer"
            assert all(event["view"] != ("not there", 0) for event in events)
            self.store.read(self.website, self._agreeing)
            self.store.visitors_last_day(self.website, 1 << 60)
            self.answers += 1

    def _agreeing(self, snapshot: Snapshot) -> None:
        """Read one snapshot repeatedly and check that it stays the same."""
        first = rows(snapshot)
        agrees(snapshot)
        assert rows(snapshot) == first


@pytest.mark.parametrize(
    ("seed", "steps"), [(0, 50), *(pytest.param(seed, 150, marks=SLOW) for seed in range(2))]
)
@pytest_twisted.ensureDeferred
async def test_every_result_is_of_one_moment(open_store: OpenStore, seed: int, steps: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - the same each time
    store = open_store(sizes=Sizes(chunk_views=5, merged_members=2, counted_from=seed * 3))
    player = await ScenePlayer.begin(store)
    observed = Observed()
    website = player.websites[0]
    asking = QueryAccess(store, website)
    threads = [deferToThread(asking.go_on) for _ in range(2)]
    scene = Scene(rng, [website.number])
    try:
        for step in scene.steps(steps):
            if isinstance(step, Append | Tidy):
                await player.run(step)
            if isinstance(step, Append):
                of_website, _ = player.expected.rows(website.number)
                sent = {hit.path for hit in step.hits if isinstance(hit, View)}
                asking.note(sent & {row["path"] for row in of_website})
            observed.look(store)
        await player.settle(scene.now_ms + 2 * DAY_MS)
    finally:
        asking.stopped.set()
    for thread in threads:
        await thread
    player.check()
    assert asking.answers > 10
    assert observed.counts["segments"] > steps // 8
    assert segments_and_merged(store.environment)[1] > 0
    await store.close()
