"""A flipped bit in a segment: it is always reported to the operator, and backups are kept."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted
from support.daemon import Daemon, finished
from support.storage.bulk_loads import load, made
from twisted.internet import reactor

from medamad.domain.dimensions import Dimension
from medamad.storage.environment.environment import open_as_guest
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store

pytestmark = pytest.mark.daemon

VIEWS = 300


@pytest_twisted.async_fixture
async def stored(tmp_path: Path) -> Daemon:
    """Return a daemon that is not started, whose store has two segments of a website."""
    daemon = Daemon(tmp_path)
    settings = StoreSettings(map_size=64 << 20, min_free_disk=0)
    daemon.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    store = start_store(daemon.data, settings, reactor)
    website = await store.add_website("example.com", 1)
    for begin in (1, VIEWS + 1):
        await load(store, website, made(begin, VIEWS, 20))
    await store.close()
    return daemon


@pytest.fixture
def daemon(stored: Daemon) -> Iterator[Daemon]:
    yield stored
    if stored.is_running:
        stored.stop()


def flip_a_bit(daemon: Daemon) -> str:
    """Flip a bit in the first column of paths; return its place."""
    guest = open_as_guest(daemon.data)
    with guest.lmdb.begin(write=True) as txn, txn.cursor(db=guest.databases.segments) as cursor:
        cursor.first()
        while cursor.key()[-1] != Dimension.PATH:
            cursor.next()
        key, value = cursor.item()
        cursor.put(key, value[:-1] + bytes((value[-1] ^ 1,)))
    guest.close()
    number = int.from_bytes(key[12:16], "big")
    return f"website 1, segment {number}, column {int(Dimension.PATH)}: its checksum does not match"


def check_is_reported(daemon: Daemon, place: str) -> None:
    """Health, status, metrics and the log name the damage."""
    client = daemon.client()
    health = client.request("GET", "/health")
    assert health.status == 200
    assert place in health.json["degraded"]
    assert "`medamad check --drop-damaged`" in health.json["degraded"]
    assert "medamad_store_damaged 1.0" in client.request("GET", "/metrics").body.decode()
    status = finished("status", daemon.data)
    assert status.returncode == 1
    assert f"the store is damaged: damaged data is left out of statistics: {place}" in status.stdout
    assert json.loads(finished("status", daemon.data, "--json").stdout)["damage"]
    assert daemon.log.count(place) == 1


@pytest.mark.parametrize("finder", ["query", "check", "backup", "start"])
def test_damage_is_reported_by_all_means(daemon: Daemon, tmp_path: Path, finder: str) -> None:
    daemon.start()
    client = daemon.client()
    assert client.request("GET", "/health").json == {"live": True, "ready": True}
    assert "medamad_store_damaged 0.0" in client.request("GET", "/metrics").body.decode()
    if finder == "start":
        daemon.kill()
        place = flip_a_bit(daemon)
        daemon.start()
    else:
        daemon.stop()
        place = flip_a_bit(daemon)
        daemon.start()
        assert "degraded" not in daemon.client().request("GET", "/health").json
    if finder == "query":
        answer = daemon.client().request("GET", "/api/website/example.com/pages")
        assert answer.headers["x-medamad-partial"].startswith("damaged=")
    if finder == "check":
        assert finished("check", daemon.data).returncode == 1
    if finder == "backup":
        assert finished("backup", daemon.data, str(tmp_path / "backup")).returncode == 1
    check_is_reported(daemon, place)


def test_a_backup_of_a_damaged_store_fails_and_keeps_the_others(
    daemon: Daemon, tmp_path: Path
) -> None:
    whole = tmp_path / "whole"
    assert finished("backup", daemon.data, str(whole)).returncode == 0
    content = whole.read_bytes()
    configuration = tmp_path / "rotate.toml"
    configuration.write_text(f'[backup]\nfolder = "{tmp_path}/kept"\nkeep = 1\n')
    rotate = ("backup", daemon.data, "--rotate", "--config", str(configuration))
    assert finished(*rotate).returncode == 0
    kept = sorted((tmp_path / "kept").iterdir())
    place = flip_a_bit(daemon)
    for failed in (finished("backup", daemon.data, str(whole)), finished(*rotate)):
        assert failed.returncode == 1
        assert f"no backup was made, as the store is damaged: {place}" in failed.stderr
        assert "`medamad check --drop-damaged`" in failed.stderr
    assert whole.read_bytes() == content
    assert sorted((tmp_path / "kept").iterdir()) == kept
    # The way back to all of the data.
    assert finished("restore", daemon.data, str(whole)).returncode == 0
    assert finished("check", daemon.data).returncode == 0


def test_damaged_segments_are_dropped_on_demand(daemon: Daemon) -> None:
    flip_a_bit(daemon)
    (segment,) = [
        line.split("segment ")[1].partition(",")[0]
        for line in finished("check", daemon.data).stderr.splitlines()
        if "checksum" in line
    ]
    loss = f"example.com: segment {segment}: {VIEWS} views from "
    refused = finished("check", daemon.data, "--dry-run")
    assert (refused.returncode, "only with --drop-damaged" in refused.stderr) == (64, True)
    dry = finished("check", daemon.data, "--drop-damaged", "--dry-run")
    assert (dry.returncode, dry.stdout.startswith(loss)) == (0, True), dry.stderr
    assert "nothing was removed" in dry.stdout
    assert finished("check", daemon.data).returncode == 1
    daemon.start()
    busy = finished("check", daemon.data, "--drop-damaged")
    assert (busy.returncode, "stop it first" in busy.stderr) == (1, True)
    daemon.stop()
    printed = json.loads(finished("check", daemon.data, "--drop-damaged", "--json").stdout)
    (lost,) = printed["dropped"]
    assert lost["views"] == VIEWS
    whole = finished("check", daemon.data)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert f"{VIEWS} views, 1 segment" in whole.stdout
    assert "nothing to remove" in finished("check", daemon.data, "--drop-damaged").stdout
    daemon.start()
    client = daemon.client()
    response = client.request("GET", "/api/website/example.com/summary")
    assert response.json["current"]["pageviews"] == VIEWS
    assert "x-medamad-partial" not in response.headers
    assert "degraded" not in client.request("GET", "/health").json


def test_a_damaged_website_is_reported_and_needs_a_backup(daemon: Daemon) -> None:
    guest = open_as_guest(daemon.data)
    with guest.lmdb.begin(write=True) as txn, txn.cursor(db=guest.databases.websites) as cursor:
        cursor.first()
        key, value = cursor.item()
        cursor.put(key, value[:-1] + bytes((value[-1] ^ 1,)))
    guest.close()
    daemon.start()
    client = daemon.client()
    assert client.get("/health")["degraded"]
    assert "website" in json.loads(finished("status", daemon.data, "--json").stdout)["damage"]
    daemon.stop()
    dropped = finished("check", daemon.data, "--drop-damaged")
    assert dropped.returncode == 1
    assert "medamad restore" in dropped.stderr


@pytest.mark.parametrize("what", ["views", "statistics"])
def test_the_command_exports_what_is_sound_and_fails(daemon: Daemon, what: str) -> None:
    place = flip_a_bit(daemon)
    exported = finished("export", daemon.data, "example.com", "--what", what, "--format", "ndjson")
    assert exported.returncode == 1
    assert f"a damaged segment is left out: {place}" in exported.stderr
    assert "of which damaged data is left out; `medamad check --drop-damaged`" in exported.stderr
    rows = [json.loads(line) for line in exported.stdout.splitlines()]
    if what == "views":
        assert len(rows) == VIEWS
    else:
        (summary,) = [row for row in rows if row["report"] == "summary"]
        assert summary["pageviews"] == VIEWS
