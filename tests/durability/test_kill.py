"""kill -9 under load: every acknowledged hit is stored exactly once."""

import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import pytest_twisted
from support.daemon import Client, Daemon, finished, until
from support.durability.load_clients import HOSTNAME, Connection, Sent, press
from support.storage.contents import agrees, orphans, segments_and_merged, settled, stored_rows
from support.storage.hits import DAY_MS
from twisted.internet import reactor

from medamad.storage.compaction.planner import Sizes
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store

pytestmark = pytest.mark.daemon

MORE = pytest.param(30, marks=pytest.mark.slow)
MANY = pytest.param(500, marks=(pytest.mark.slow, pytest.mark.timeout(7_200)))
CLIENTS = 6
LEAST_VIEWS = 50
"""How many a round brings at least, on average."""
ALL_VIEWS = 450
"""How many all rounds bring at least, on average."""
COUNTED_FROM = 100
"""From this number of views on, a segment has counters."""
CONFIGURATION = """
[store]
map_size = "256 MiB"
min_free_disk = "1 MiB"
[limits]
new_paths = 1000000
new_property_values = 1000000
"""


def pages(owner: Client, prefix: str) -> Any:
    """Return the rows of the paths that begin with `prefix`."""
    return owner.get(
        f"/api/website/{HOSTNAME}/pages", **{"path[starts_with]": prefix, "limit": "5000"}
    )


def stored(owner: Client, prefix: str) -> Counter[str]:
    """Return how many views there are of each path that begins with `prefix`."""
    return Counter({row["path"]: row["pageviews"] for row in pages(owner, prefix)})


def check_rest(owner: Client, prefix: str, sent: Sent) -> None:
    """Check the durations and the events against what was acknowledged."""
    spent = {row["path"]: row["duration"] for row in pages(owner, prefix)}
    assert {path: spent[path] for path in sent.left} == sent.left
    rows = owner.get(
        f"/api/website/{HOSTNAME}/properties",
        **{"prop_name": "on", "prop_value[starts_with]": prefix, "limit": "5000"},
    )
    found = Counter({row["value"]: row["events"] for row in rows})
    assert set(found) >= set(sent.events), "an acknowledged event is missing"
    assert set(found) <= set(sent.acknowledged)
    assert set(found.values()) <= {1}, "an event is there twice"


def kill_under_load(daemon: Daemon, prefix: str, views: int, after_s: float) -> Sent:
    """Kill the daemon while several clients post; return what they sent.

    It is killed so long after it has acknowledged so many views: a slow machine takes its time.
    """
    stop = Event()
    total = Sent()
    by_client = [Sent() for _ in range(CLIENTS)]
    with ThreadPoolExecutor(CLIENTS) as clients:
        running = [
            clients.submit(press, daemon.port, f"{prefix}{number}-", stop, sent, whole=True)
            for number, sent in enumerate(by_client)
        ]
        until(lambda: sum(len(sent.acknowledged) for sent in by_client) >= views)
        time.sleep(after_s)
        daemon.kill()
        stop.set()
        for client in running:
            client.result()
    for sent in by_client:
        total.add(sent)
    return total


async def recounted(daemon: Daemon, expected: Counter[str]) -> None:
    """Compare all statistics with a full recount, before and after a flush."""
    settings = StoreSettings(map_size=256 << 20, min_free_disk=0)
    store = start_store(daemon.data, settings, reactor, Sizes(counted_from=COUNTED_FROM))
    (website,) = store.websites.all()
    for days in (0, 2):
        await settled(store, int(time.time() * 1000) + days * DAY_MS)
        counted = store.read(website, agrees)
        views, _ = stored_rows(store, website)
        assert Counter(view["path"] for view in views) == expected
    assert counted > 0
    assert segments_and_merged(store.environment)[0] > 0
    assert orphans(store.environment) == []
    await store.close()
    checked = finished("check", daemon.data)
    assert checked.returncode == 0, checked.stderr
    assert f"1 website, {expected.total():,} views" in checked.stdout


@pytest.mark.parametrize("rounds", [3, MORE, MANY])
@pytest_twisted.ensureDeferred
async def test_no_acknowledged_hit_is_lost_or_doubled(tmp_path: Path, rounds: int) -> None:
    daemon = Daemon(tmp_path, configuration=CONFIGURATION)
    daemon.start()
    try:
        owner = daemon.client()
        owner.add_website(HOSTNAME)
        chance = random.Random(1)  # noqa: S311 - no secret
        expected: dict[str, set[str]] = {}
        all_sent: dict[str, Sent] = {}
        mean_views = max(LEAST_VIEWS, ALL_VIEWS // rounds)
        for round_number in range(rounds):
            prefix = f"/round{round_number}/"
            views, after_s = chance.randint(1, 2 * mean_views), chance.uniform(0, 0.1)
            sent = kill_under_load(daemon, prefix, views, after_s)
            daemon.start()
            found = stored(owner, prefix)
            assert set(found) >= set(sent.acknowledged), "an acknowledged hit is missing"
            assert set(found) <= {*sent.acknowledged, *sent.unanswered}
            assert set(found.values()) <= {1}, "a hit is there twice"
            check_rest(owner, prefix, sent)

            again = Connection(daemon.port)
            for path in sent.unanswered + sent.acknowledged[-20:]:
                assert again.load(path).startswith(b"HTTP/1.1 204 ")
            again.close()
            all_sent[prefix] = sent
            expected[prefix] = {*sent.acknowledged, *sent.unanswered}
            assert stored(owner, prefix) == Counter(expected[prefix]), "sent again, stored twice"

        for prefix, paths in expected.items():
            assert stored(owner, prefix) == Counter(paths)
            check_rest(owner, prefix, all_sent[prefix])
        total = sum(map(len, expected.values()))
        summary = owner.get(f"/api/website/{HOSTNAME}/summary")["current"]
        assert (summary["pageviews"], summary["visitors"]) == (total, total)
        assert daemon.stop() == 0
        await recounted(daemon, Counter(path for paths in expected.values() for path in paths))
    finally:
        if daemon.is_running:
            daemon.stop()
