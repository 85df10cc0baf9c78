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
from support.query.oracle import Oracle
from support.query.random_queries import INTERVALS, RandomTraffic
from support.query.snapshots import STEPS, WITHOUT_VISITS
from support.remaining_hits import RemainingHits, is_of_views, remaining_numbers
from support.storage.background_work import Observed
from support.storage.contents import agrees, orphans, settled
from support.story import (
    DAY_MS,
    EARLY_MS,
    PROPERTIES,
    Check,
    Custom,
    Delete,
    Expected,
    Load,
    Rename,
    Restart,
    Retain,
    Site,
    Step,
    Tidy,
    Unload,
    Wait,
    WaitForNight,
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

from medamad.domain.goals import Definitions, Funnel, Goal
from medamad.storage.compaction.planner import Sizes
from medamad.storage.settings import Keep, Retention

OBSERVED = Observed()
GOALS = (
    {"name": "Page", "path": "/a"},
    {"name": "Any page", "path": "*"},
    {"name": "Plan", "event": "plan"},
    {"name": "Paid", "event": "n", "value": "3", "revenue": "n", "currency": "EUR"},
)
FUNNELS = {"Plans": (1, 2), "Buys": (2, 0, 3)}
"""By the places of their goals."""
BACKGROUND_WORK = (
    "segments",
    "merges",
    "folds",
    "groups",
    "durations laid over",
    "views laid over",
    "days summed",
    "partial answers",
    "answers from remaining views",
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
        self.goals: dict[Site, Definitions] = {}
        self.server: Server
        self.owner: Browser

    async def begin(self) -> None:
        OBSERVED.forget()
        self.server = await build_server(self.data_dir, sizes=self.sizes)
        self.owner = self.server.browser()
        await self.owner.log_in(USERNAME, PASSWORD)
        for site in self.expected.sites:
            await self._register(site)

    async def _register(self, site: Site) -> None:
        """Register a website, with goals and funnels."""
        await self.ask("POST", "/websites", {"hostname": site.hostname}, status=201)
        at, goals = f"/websites/{site.hostname}", []
        for members in GOALS:
            made = (await self.ask("POST", f"{at}/goals", members, status=201)).json
            goals.append(Goal(**{"revenue": None, "currency": None, **made}))
        funnels = []
        for name, places in FUNNELS.items():
            members = {"name": name, "goals": [goals[place].id for place in places]}
            made = (await self.ask("POST", f"{at}/funnels", members, status=201)).json
            funnels.append(Funnel(made["id"], name, tuple(made["goals"])))
        self.goals[site] = Definitions(tuple(goals), tuple(funnels))

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
                await self._custom(step)
            case Rename() | Delete():
                await self._change(step)
            case Restart():
                await self._restart()
            case Wait() | WaitForNight():
                await self._wait(step.end_ms(self.now_ms))
            case Tidy():
                await self._tidy(is_awaited=step.is_awaited)
            case Retain():
                self.retention = Retention(others=Keep(step.raw_days))
                self._retain()
            case Check():
                await self.check()
        OBSERVED.look(self.server.store)

    def _take_numbers(self, site: Site) -> None:
        """Take the numbers under which the last hits were stored from the store."""
        for hits, numbers in zip((site.views, site.events), self._numbers(site), strict=True):
            if hits and "stored" not in hits[-1]:
                hits[-1]["stored"] = max(numbers)

    async def _change(self, step: Rename | Delete) -> None:
        if isinstance(step, Rename):
            old, new = self.expected.rename(step)
            await self.ask("PATCH", f"/websites/{old}", {"hostname": new})
            return
        hostname = self.expected.delete(step)
        await self.ask("DELETE", f"/websites/{hostname}", status=204)
        await self._register(self.expected.sites[step.site])

    async def _load(self, load: Load) -> None:
        site = self.expected.sites[load.site]
        host = f"www.{site.hostname}" if load.www else site.hostname
        referrer, number = self.expected.origin(load, self.now_ms)
        sent = {
            "e": "load",
            "b": load.beacon,
            "u": f"https://{host}{load.page}",
            "r": referrer,
            "n": number,
            "t": load.zone,
            "p": load.p,
            "q": load.q,
        }
        if load.properties is not None:
            sent["d"] = PROPERTIES[load.properties][0]
        await self._hit(sent, {"User-Agent": load.agent, "Accept-Language": load.language})
        self.expected.load(load, self.now_ms)
        self._take_numbers(site)

    async def _custom(self, custom: Custom) -> None:
        site = self.expected.sites[custom.site]
        sent = {"e": "custom", "g": site.hostname, "d": PROPERTIES[custom.properties][0]}
        await self._hit(sent if custom.beacon is None else {**sent, "b": custom.beacon})
        self.expected.custom(custom, self.now_ms)
        self._take_numbers(site)

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

    async def _wait(self, end_ms: int) -> None:
        if end_ms - self.now_ms > EARLY_MS:
            # What began at one time does not take until another.
            await self._tidied()
        self.now_ms = end_ms
        self.server.now = self.now_ms / 1000

    async def _tidied(self) -> None:
        for tidying in self.tidying:
            await tidying
        self.tidying.clear()

    async def settle(self) -> None:
        """Run everything that is due; nothing orphaned may be left."""
        await self._tidied()
        await settled(self.server.store, self.now_ms)
        for website in self.server.store.websites.all():
            self.server.store.read(website, agrees)
        assert orphans(self.server.store.environment) == []

    async def check(self) -> None:
        listed = (await self.ask("GET", "/websites?summary=true")).json
        assert listed == [
            {"hostname": site.hostname, "summary": {"visitors": self._visitors(site.views)}}
            for site in sorted(self.expected.sites, key=lambda site: site.hostname)
        ]
        middle = datetime.fromtimestamp((NOW + self.now_ms / 1000) / 2, UTC)
        for site in self.expected.sites:
            hits = self._hits(site)
            for endpoint, query in self._questions(site, middle, has_rollups=hits.are_gone):
                target = f"/api/website/{site.hostname}/{endpoint}?{urlencode(query)}"
                answer = await self.ask("GET", target)
                if self._numbers(site) != hits.numbers:
                    # Days have expired meanwhile.
                    break
                partial = answer.header("X-Medamad-Partial")
                OBSERVED.counts["partial answers"] += partial is not None
                if query == bare(endpoint) and not is_of_views(endpoint, query):
                    assert partial is None, (target, partial)
                expected = hits.expected(endpoint, query, partial)
                if expected is not None:
                    assert from_the_first_view(answer.json, expected) == expected, target
                    is_of_remaining = partial is not None and is_of_views(endpoint, query)
                    OBSERVED.counts["answers from remaining views"] += (
                        is_of_remaining and len(expected) > 0
                    )

    def _questions(
        self, site: Site, middle: datetime, *, has_rollups: bool
    ) -> list[tuple[str, Pairs]]:
        """Return what is asked of a website: everything, and some at random."""
        rng, goals = self.rng, self.goals[site]
        funnels = [f"funnels/{funnel.id}" for funnel in goals.funnels]
        endpoints = (*WITHOUT_VISITS, "hosting", "entries", "exits", *STEPS, "goals", *funnels)
        questions = [(endpoint, bare(endpoint)) for endpoint in endpoints]
        for endpoint in rng.sample(endpoints, 6):
            traffic = RandomTraffic(rng, middle, rng.choice(INTERVALS), goals)
            query = [pair for pair in traffic.query(endpoint) if is_configured(pair[0])]
            if has_rollups and is_of_views(endpoint, query) and "start" not in dict(query):
                # A series begins with a day of which only a rollup is left.
                query = [pair for pair in query if pair[0] != "interval"]
            questions.append((endpoint, query))
        return questions

    def _numbers(self, site: Site) -> tuple[set[int], set[int]]:
        store = self.server.store
        website = store.websites.by_hostname(site.hostname)
        assert website is not None
        return store.read(website, remaining_numbers)

    def _hits(self, site: Site) -> RemainingHits:
        return RemainingHits(
            site.views,
            site.events,
            self._numbers(site),
            lambda views, events, gone: Oracle(
                views,
                events,
                source_of=SOURCES.name_of,
                now_ms=self.now_ms,
                goals=self.goals[site],
                gone=gone,
            ),
        )

    def _visitors(self, views: list[dict[str, object]]) -> int:
        return sum(view["p"] and view["time_ms"] >= self.now_ms - DAY_MS for view in views)


def bare(endpoint: str) -> Pairs:
    """Return the parameters with which an endpoint is asked for everything."""
    if endpoint in STEPS:
        return [("of", "/a")]
    with_visits = endpoint in WITHOUT_VISITS and endpoint not in ("time", "properties")
    return [("visits", "true")] if with_visits else []


def is_configured(name: str) -> bool:
    """Return whether a website that does not tell new visitors from others has a parameter."""
    return name.partition("[")[0] != "visitor"


def from_the_first_view(found: Any, expected: Any) -> Any:
    """Drop the buckets of a series before the first view.

    Without a start, a series begins with the first view; for a day that has become a rollup, only
    the day's beginning is known.
    """
    if not isinstance(expected, dict) or "interval" not in expected:
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
