"""What the daemon does about the shipper: it stops it, and answers those who wait for it."""

from pathlib import Path

import pytest
import pytest_twisted
from attrs import evolve
from support.clickhouse.collector import start
from support.clickhouse.servers import Server
from support.storage.hits import NOW_MS, a_view
from twisted.internet import reactor

from medamad.admin.protocol import LoadHits, Progress, ResendHits
from medamad.clickhouse import tables
from medamad.config.settings import ClusterSettings
from medamad.daemon.shipping import Shipping
from medamad.domain.errors import Unavailable


def settings(server: Server, database: str) -> ClusterSettings:
    return ClusterSettings(
        urls=(server.url,),
        database=database,
        user="default",
        password="",
        ca_file=None,
        name="",
        is_replicated=False,
        quorum=1,
        collector=3,
    )


def ignore(_: Progress) -> None:
    pass


@pytest_twisted.ensureDeferred
async def test_a_stop_ends_what_is_sent_and_says_so(server: Server, tmp_path: Path) -> None:
    client = server.client("stopped")
    tables.create_tables(client, tables.Layout())
    store = start(tmp_path)
    await store.add_website("example.com", NOW_MS // 1000)
    await store.append([a_view()])
    shipping = Shipping.start(store, settings(server, "stopped"), reactor, lambda: NOW_MS / 1000)
    shipping.stop()
    # Nobody waits for this one, so it must not fail.
    await shipping.ship()
    for send in (shipping.resend(ResendHits(0), ignore), shipping.load(LoadHits(), ignore)):
        with pytest.raises(Unavailable, match="the daemon is stopping"):
            await send
    assert client.query(f"SELECT count() AS n FROM {client.table('views')}")["n"].tolist() == [0]
    await store.close()


@pytest_twisted.ensureDeferred
async def test_a_cluster_that_did_not_answer_is_asked_again(server: Server, tmp_path: Path) -> None:
    tables.create_tables(server.client("asked"), tables.Layout())
    store = start(tmp_path)
    there = settings(server, "asked")
    for cluster, expected in (
        (evolve(there, urls=("http://127.0.0.1:1",)), "it timed out"),
        (there, ""),
    ):
        shipping = Shipping.start(store, cluster, reactor, lambda: NOW_MS / 1000)
        shipping.state.unanswered = "it timed out"
        await shipping.ask_again()
        assert shipping.state.unanswered == expected
        shipping.stop()
    await store.close()
