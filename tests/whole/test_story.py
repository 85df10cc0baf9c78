"""Random operations on the whole daemon, and random queries, compared with a naive model."""

import json
import random
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_twisted
from attrs import evolve
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from support.query.naive_filters import Pairs
from support.query.oracle import NO_GOALS, Oracle
from support.query.random_queries import INTERVALS, RandomTraffic
from support.query.snapshots import WITHOUT_VISITS, without_visits
from support.storage.background_work import Observed
from support.storage.contents import agrees, orphans, settled
from support.story import (
    DAY_MS,
    PROPERTIES,
    Check,
    Custom,
    Delete,
    Expected,
    Load,
    Rename,
    Restart,
    Retain,
    Step,
    Tidy,
    Unload,
    Wait,
    all_of_it,
    small_sizes,
    stories,
)
from support.web.client import Answer, Browser
from support.web.daemon_in_memory import NOW, PASSWORD, SOURCES, USERNAME, Server, build_server
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.threads import blockingCallFromThread, deferToThread
from twisted.python.failure import Failure

from medamad.storage.compaction.planner import Sizes
from medamad.storage.settings import Keep, Retention

OBSERVED = Observed()
BACKGROUND_WORK = (
    "segments",
    "merges",
    "folds",
    "groups",
    "durations laid over",
    "views laid over",
    "days summed",
    "partial answers",
)


class Narrator:
    """Runs each step of a story against a daemon and applies it to the model."""

    def __init__(self, data_dir: Path, sizes: Sizes, rng: random.Random) -> None:
        self.expected = Expected()
        self.now_ms = NOW * 1000
        self.data_dir = data_dir
        self.sizes = sizes
        self.rng = rng
        self.retention = Retention()
        self.tidying: list[Deferred[None]] = []
        self.server: Server
        self.owner: Browser

    async def begin(self) -> None:
        OBSERVED.forget()
        self.server = await build_server(self.data_dir, sizes=self.sizes)
        self.owner = self.server.browser()
        await self.owner.log_in(USERNAME, PASSWORD)
        for site in self.expected.sites:
            await self.ask("POST", "/websites", {"hostname": site.hostname}, status=201)

    async def end(self) -> None:
        """Stop as the daemon does: operations under way end at their next await."""
        for tidying in self.tidying:
            tidying.cancel()
        self.tidying.clear()
        await self.server.store.close()

    async def ask(
        self, method: str, target: str, content: object = None, *, status: int = 200
    ) -> Answer:
        answer = await self.owner.ask(method, target, content)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            # A login ends when it has not been used for long.
            await self.owner.log_in(USERNAME, PASSWORD)
            answer = await self.owner.ask(method, target, content)
        assert answer.status == status, (method, target, content, answer)
        return answer

    async def tell(self, step: Step) -> None:
        match step:
            case Load():
                await self._load(step)
            case Unload():
                await self._hit({"e": "unload", "b": step.beacon, "m": step.ms})
                self.expected.unload(step, self.now_ms)
            case Custom():
                hostname = self.expected.sites[step.site].hostname
                sent = {"e": "custom", "g": hostname, "d": PROPERTIES[step.properties][0]}
                await self._hit(sent if step.beacon is None else {**sent, "b": step.beacon})
                self.expected.custom(step, self.now_ms)
            case Rename() | Delete():
                await self._change(step)
            case Restart():
                await self._restart()
            case Wait():
                self.now_ms += step.ms
                self.server.now = self.now_ms / 1000
            case Tidy():
                await self._tidy(is_awaited=step.is_awaited)
            case Retain():
                self.retention = Retention(others=Keep(step.raw_days))
                self._retain()
            case Check():
                await self.check()
        OBSERVED.look(self.server.store)

    async def _change(self, step: Rename | Delete) -> None:
        if isinstance(step, Rename):
            old, new = self.expected.rename(step)
            await self.ask("PATCH", f"/websites/{old}", {"hostname": new})
            return
        hostname = self.expected.delete(step)
        await self.ask("DELETE", f"/websites/{hostname}", status=204)
        await self.ask("POST", "/websites", {"hostname": hostname}, status=201)

    async def _load(self, load: Load) -> None:
        hostname = self.expected.sites[load.site].hostname
        host = f"www.{hostname}" if load.www else hostname
        sent = {
            "e": "load",
            "b": load.beacon,
            "u": f"https://{host}{load.page}",
            "r": load.referrer,
            "t": load.zone,
            "p": load.p,
            "q": load.q,
        }
        if load.properties is not None:
            sent["d"] = PROPERTIES[load.properties][0]
        await self._hit(sent, {"User-Agent": load.agent, "Accept-Language": load.language})
        self.expected.load(load, self.now_ms)

    async def _hit(self, sent: dict[str, object], headers: dict[str, str] | None = None) -> None:
        answer = await self.server.browser().ask(
            "POST", "/event/hit", body=json.dumps(sent).encode(), headers=headers
        )
        assert (answer.status, answer.header("X-Medamad-Ignored")) == (204, None), (sent, answer)

    async def _tidy(self, *, is_awaited: bool) -> None:
        tidying = Deferred.fromCoroutine(self.server.store.maintain(self.now_ms))
        if is_awaited:
            await tidying
        else:
            tidying.addErrback(Failure.trap, CancelledError)
            self.tidying.append(tidying)

    async def _restart(self) -> None:
        """Restart the daemon; the login survives unless it has expired."""
        await self.end()
        self.expected.restart()
        self.server = await build_server(self.data_dir, self.now_ms / 1000, self.sizes)
        self._retain()
        cookie, self.owner = self.owner.cookie, self.server.browser()
        self.owner.cookie = cookie

    def _retain(self) -> None:
        store = self.server.store
        store.apply(evolve(store.settings, retention=self.retention))

    async def settle(self) -> None:
        """Run everything that is due; nothing orphaned may be left."""
        for tidying in self.tidying:
            await tidying
        self.tidying.clear()
        await settled(self.server.store, self.now_ms)
        for website in self.server.store.websites.all():
            self.server.store.read(website, agrees)
        assert orphans(self.server.store.environment) == []

    async def check(self) -> None:
        rng = self.rng
        listed = (await self.ask("GET", "/websites?summary=true")).json
        assert listed == [
            {"hostname": site.hostname, "summary": {"visitors": self._visitors(site.views)}}
            for site in sorted(self.expected.sites, key=lambda site: site.hostname)
        ]
        middle = datetime.fromtimestamp((NOW + self.now_ms / 1000) / 2, UTC)
        for site in self.expected.sites:
            oracle = Oracle(site.views, site.events, source_of=SOURCES.name_of, now_ms=self.now_ms)
            questions: list[tuple[str, Pairs]] = [(endpoint, []) for endpoint in WITHOUT_VISITS]
            for endpoint in rng.sample(WITHOUT_VISITS, 5):
                traffic = RandomTraffic(rng, middle, rng.choice(INTERVALS), NO_GOALS)
                questions.append((endpoint, without_visits(traffic.query(endpoint))))
            for endpoint, query in questions:
                target = f"/api/website/{site.hostname}/{endpoint}?{urlencode(query)}"
                answer = await self.ask("GET", target)
                partial = answer.header("X-Medamad-Partial")
                OBSERVED.counts["partial answers"] += partial is not None
                # Missing parts are named by day; the tests of rollups check those.
                if not query or partial is None:
                    assert partial is None, (target, partial)
                    expected = oracle.answer(endpoint, query)
                    assert from_the_first_view(answer.json, expected) == expected, target

    def _visitors(self, views: list[dict[str, object]]) -> int:
        return sum(view["p"] and view["time_ms"] >= self.now_ms - DAY_MS for view in views)


def from_the_first_view(found: Any, expected: Any) -> Any:
    """Drop the buckets of a series before the first view.

    Without a start, a series begins with the first view; for a day that has become a rollup, only
    the day's beginning is known.
    """
    if "interval" not in expected:
        return found
    series, length = found["interval"], len(expected["interval"])
    before = series[: max(len(series) - length, 0)]
    assert not any(row["pageviews"] for row in before)
    return {**found, "interval": series[len(before) :]}


async def tell_and_check(
    data_dir: Path, story: list[Step], sizes: Sizes, rng: random.Random
) -> None:
    narrator = Narrator(data_dir, sizes, rng)
    await narrator.begin()
    try:
        for step in story:
            await narrator.tell(step)
        await narrator.check()
        await narrator.tell(Restart())
        await narrator.check()
        await narrator.settle()
        await narrator.check()
    finally:
        await narrator.end()


def check_stories(count: int) -> None:
    """Check random stories in a thread, because hypothesis does not wait for Deferreds."""

    @example(story=all_of_it, sizes=Sizes(2, 2, 0), rng=random.Random(1))  # noqa: S311
    @given(story=stories, sizes=small_sizes, rng=st.randoms(use_true_random=False))
    @settings(
        max_examples=count,
        # With few stories, other ones each time would not always have every kind of work.
        derandomize=count < 100,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        # To shorten a story takes many minutes.
        phases=(Phase.explicit, Phase.reuse, Phase.generate),
    )
    def holds(story: list[Step], sizes: Sizes, rng: random.Random) -> None:
        with TemporaryDirectory() as data_dir:
            blockingCallFromThread(
                reactor,
                lambda: Deferred.fromCoroutine(tell_and_check(Path(data_dir), story, sizes, rng)),
            )

    holds()


@pytest.mark.parametrize(
    "count", [3, pytest.param(200, marks=(pytest.mark.slow, pytest.mark.timeout(3_600)))]
)
@pytest_twisted.ensureDeferred
async def test_every_figure_matches_the_naive_model(count: int) -> None:
    await deferToThread(check_stories, count)
    assert min(OBSERVED.counts[work] for work in BACKGROUND_WORK) > 0, OBSERVED.counts
