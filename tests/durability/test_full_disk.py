"""A full disk: hits are rejected while it lasts, queries work, and counting resumes."""

import http.client
import json
import os
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Literal

import pytest
import pytest_twisted
from attrs import define, evolve, field
from support.daemon import PATIENCE_S, Daemon, finished
from support.durability.disks import Mounts, lack, mounts
from support.storage.bulk_loads import load, made
from support.storage.contents import settled
from support.storage.contents import stored_rows as all_stored
from support.storage.hits import DAY_MS, NOW_MS, a_view
from twisted.internet import reactor

from medamad.cli import main
from medamad.domain.errors import Unavailable
from medamad.storage.compact import ask_to_compact, compaction_asked
from medamad.storage.settings import Keep, Retention, StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.wal.log import Outcome

LACK = lack()
pytestmark = [pytest.mark.daemon, pytest.mark.skipif(bool(LACK), reason=LACK)]

FILLED, KEPT = "filled.example", "kept.example"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0"
MIB = 1 << 20
CONFIGURATION = """
[store]
map_size = "{map_mib} MiB"
min_free_disk = "{floor_mib} MiB"
[limits]
max_body_bytes = 65536
new_property_names = 100000
"""


@pytest.fixture
def held() -> Iterator[Mounts]:
    with mounts() as made:
        yield made


@define
class Site:
    """A website, and the hits of it that were acknowledged."""

    daemon: Daemon
    hostname: str
    acknowledged: int = 0
    _numbers: "count[int]" = field(factory=count)

    def send(self, most: int) -> tuple[int, str]:
        """Send hits of some 30 KiB each until one is rejected; return its response."""
        to_daemon = http.client.HTTPConnection("127.0.0.1", self.daemon.port, timeout=PATIENCE_S)
        with closing(to_daemon) as connection:
            for _ in range(most):
                body = self._load(next(self._numbers))
                connection.request("POST", "/api/event/hit", body, {"User-Agent": FIREFOX})
                answer = connection.getresponse()
                answered = answer.read().decode()
                if answer.status != http.client.NO_CONTENT:
                    assert 0 < int(answer.headers["Retry-After"]) <= 60
                    return answer.status, json.loads(answered)["error"]["message"]
                self.acknowledged += 1
        return http.client.NO_CONTENT, ""

    def _load(self, number: int) -> str:
        properties = {f"{number}-{name}": "\U0001f4be" * 256 for name in range(30)}
        return json.dumps(
            {
                "e": "load",
                "b": f"{self.hostname}{number}",
                "u": f"https://{self.hostname}/{number % 100}",
                "p": True,
                "q": True,
                "d": properties,
            },
            ensure_ascii=False,
        ).encode()

    def is_counted(self) -> None:
        """Check queries against what was acknowledged."""
        summary = self.daemon.client().get(f"/api/website/{self.hostname}/summary")
        assert summary["current"]["pageviews"] == self.acknowledged
        rows = self.daemon.client().get(f"/api/website/{self.hostname}/pages")
        assert sum(row["pageviews"] for row in rows) == self.acknowledged

    def is_taken_again(self) -> None:
        """Wait until hits are taken again, many after each other.

        What was deleted goes bit by bit, and the first bits may be room for a few alone.
        """
        deadline = time.monotonic() + PATIENCE_S
        while self.send(30) != (http.client.NO_CONTENT, ""):
            assert time.monotonic() < deadline, "no hits are taken any more"
            time.sleep(0.05)


def daemon_on(held: Mounts, folder: Path, floor_mib: int = 0, map_mib: int = 1024) -> Daemon:
    return Daemon(
        folder,
        configuration=CONFIGURATION.format(map_mib=map_mib, floor_mib=floor_mib),
        before=held.before,
    )


def fill(folder: Path, leave: int = 0) -> Path:
    """Fill the disk except for some bytes, as another program may."""
    ballast = folder / "ballast"
    with ballast.open("ab") as file, suppress(OSError):
        for piece in (MIB, 4096):
            while (disk := os.statvfs(folder)).f_bavail * disk.f_frsize >= leave + piece:
                os.posix_fallocate(file.fileno(), file.seek(0, os.SEEK_END), piece)
    return ballast


def check_all_of_it(daemon: Daemon, held: Mounts, reason: str, ballast: Path | None) -> None:
    """Fill what is there; then make room, by deleting a website and by what else took it."""
    daemon.start()
    try:
        client = daemon.client()
        client.add_website(FILLED)
        client.add_website(KEPT)
        kept, filled = Site(daemon, KEPT), Site(daemon, FILLED)
        assert kept.send(20) == (http.client.NO_CONTENT, "")
        status, answered = filled.send(5_000)
        assert status == http.client.SERVICE_UNAVAILABLE
        assert reason in answered
        assert filled.acknowledged > 50
        for site in (filled, kept):
            site.send(5)
            site.is_counted()
        assert client.request("DELETE", f"/api/websites/{FILLED}").status == http.client.NO_CONTENT
        kept.is_taken_again()
        kept.is_counted()
        if ballast is not None:
            assert kept.send(5_000)[0] == http.client.SERVICE_UNAVAILABLE
            ballast.unlink()
            kept.is_taken_again()
            kept.is_counted()
    finally:
        assert daemon.stop() == 0
    assert "Traceback" not in daemon.log
    assert main(["check", "--data", str(held.seen(daemon.data))]) == 0


def mount(held: Mounts, folder: Path, kind: str) -> None:
    """Mount a small file system of this type."""
    if kind == "ext4":
        held.mount_ext4(folder, 40)
    else:
        held.mount_tmpfs(folder, 24)


@pytest.mark.parametrize("kind", ["ext4", pytest.param("tmpfs", marks=pytest.mark.slow)])
def test_a_full_disk(tmp_path: Path, held: Mounts, kind: str) -> None:
    daemon = daemon_on(held, tmp_path)
    mount(held, daemon.data, kind)
    ballast = fill(held.seen(daemon.data), leave=6 * MIB)
    check_all_of_it(daemon, held, "the disk is full", ballast)


def test_a_nearly_full_disk(tmp_path: Path, held: Mounts) -> None:
    daemon = daemon_on(held, tmp_path, floor_mib=4)
    held.mount_tmpfs(daemon.data, 24)
    ballast = fill(held.seen(daemon.data), leave=18 * MIB)
    check_all_of_it(daemon, held, "store.min_free_disk asks for 4 MiB", ballast)


@pytest.mark.parametrize("kind", [pytest.param("ext4", marks=pytest.mark.slow), "tmpfs"])
def test_a_full_map(tmp_path: Path, held: Mounts, kind: str) -> None:
    daemon = daemon_on(held, tmp_path, map_mib=16)
    mount(held, daemon.data, kind)
    check_all_of_it(daemon, held, "that store.map_size allows are in use", None)


def test_an_import_without_enough_room(tmp_path: Path, held: Mounts) -> None:
    """It fails where hits would be rejected, and its names are removed: these hits are accepted."""
    daemon = daemon_on(held, tmp_path, floor_mib=4)
    held.mount_tmpfs(daemon.data, 24)
    fill(held.seen(daemon.data), leave=16 * MIB)
    log = tmp_path / "access.log"
    time_of = datetime(2026, 1, 1, tzinfo=UTC).strftime("%d/%b/%Y:%H:%M:%S %z")
    log.write_text(
        "".join(
            f'192.0.2.1 - - [{time_of}] "GET /{number:x>2000} HTTP/1.1" 200 512 "-" "{FIREFOX}"\n'
            for number in range(8_000)
        ),
        "utf-8",
    )
    daemon.start()
    try:
        daemon.client().add_website(KEPT)
        kept = Site(daemon, KEPT)
        assert kept.send(20) == (http.client.NO_CONTENT, "")
        imported = finished("import", daemon.data, "--website", KEPT, str(log), before=held.before)
        assert imported.returncode == 1
        assert "store.min_free_disk asks for 4 MiB" in imported.stderr
        kept.is_taken_again()
        kept.is_counted()
    finally:
        assert daemon.stop() == 0
    assert "Traceback" not in daemon.log


@pytest.mark.parametrize(
    ("kind", "after", "views"),
    [
        ("ext4", "sums", 10_000),
        ("tmpfs", "nothing", 40_000),
        pytest.param("ext4", "sums", 40_000, marks=pytest.mark.slow),
        pytest.param("ext4", "nothing", 40_000, marks=pytest.mark.slow),
        pytest.param("tmpfs", "sums", 40_000, marks=pytest.mark.slow),
    ],
)
@pytest_twisted.ensureDeferred
async def test_retention_works_on_a_full_disk(
    tmp_path: Path, held: Mounts, kind: str, after: Literal["sums", "nothing"], views: int
) -> None:
    """The space it needs is reserved, and what it frees lets hits be accepted again."""
    folder = held.seen(tmp_path / "data")
    mount(held, tmp_path / "data", kind)
    keeping = Retention(others=Keep(20, after))
    settings = StoreSettings(map_size=1 << 30, min_free_disk=MIB, retention=keeping)
    store = start_store(folder, settings, reactor)
    website = await store.add_website(KEPT, 1)
    # One segment, of which nothing is free in the file.
    first_ms = NOW_MS - 40 * DAY_MS
    bulk = made(1, views, views // 40, first_ms)
    await load(
        store,
        website,
        evolve(
            bulk,
            time_ms=first_ms + 40 * (bulk.time_ms - first_ms),
            event_time_ms=first_ms + 40 * (bulk.event_time_ms - first_ms),
        ),
    )
    fill(folder)
    with pytest.raises(Unavailable, match="min_free_disk"):
        await store.append([a_view(website.number)])
    await settled(store, NOW_MS)
    times_ms = [view["time_ms"] for view in all_stored(store, website)[0]]
    assert abs(len(times_ms) - views / 2) < views / 40
    assert min(times_ms) > NOW_MS - 21 * DAY_MS
    days = store.read(website, lambda snapshot: len(list(snapshot.rollups)))
    assert (days > 15) is (after == "sums")
    if after == "nothing":  # the sums of as many pages as views take as much as these
        assert await store.append([a_view(website.number)]) == [Outcome.STORED]
    await store.close()


@pytest.mark.parametrize("kib", [12, 24, 32, 36, 44])
def test_a_first_start_without_room_says_what_is_missing(
    tmp_path: Path, held: Mounts, kib: int
) -> None:
    data = tmp_path / "data"
    held.mount("none", data, "-t", "tmpfs", "-o", f"size={kib}k,mode=700")
    listen = ("--listen", "tcp:0:interface=127.0.0.1")
    ended = finished("run", data, *listen, before=held.before)
    assert ended.returncode == 1
    assert "not started: " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_start_on_a_full_disk(tmp_path: Path, held: Mounts) -> None:
    """An existing store can be read, if not compacted; a new one cannot be created."""
    daemon = daemon_on(held, tmp_path)
    held.mount_ext4(daemon.data, 40)
    seen = held.seen(daemon.data)
    ballast = fill(seen)
    with pytest.raises(AssertionError, match="the daemon stopped"):
        daemon.start()
    assert f"not started: {daemon.data}" in daemon.log
    assert "No space left on device" in daemon.log
    assert "Traceback" not in daemon.log
    ballast.unlink()
    daemon.start()
    try:
        daemon.client().add_website(KEPT)
        kept = Site(daemon, KEPT)
        assert kept.send(20) == (http.client.NO_CONTENT, "")
        cookie = daemon.client().cookie
        daemon.stop()
        ask_to_compact(seen)
        ballast = fill(seen)
        daemon.start()
        assert "the store could not be compacted: " in daemon.log
        assert compaction_asked(seen) is not None
        client = daemon.client()
        client.cookie = cookie
        summary = client.get(f"/api/website/{KEPT}/summary")
        assert summary["current"]["pageviews"] == kept.acknowledged
        assert kept.send(5_000)[0] == http.client.SERVICE_UNAVAILABLE
        ballast.unlink()
        kept.is_taken_again()
        kept.is_counted()
    finally:
        assert daemon.stop() == 0
    assert "Traceback" not in daemon.log
