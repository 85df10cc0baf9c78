"""Silent websites, in a real store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted
from support.storage.hits import a_view
from support.web.daemon_in_memory import NOW, Server, build_server
from twisted.internet.defer import Deferred, fail
from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from medamad.daemon.presence import Presence
from medamad.daemon.silence import Watch
from medamad.domain.errors import Unavailable
from medamad.domain.websites import Website

HOUR = 3_600


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    built = pytest_twisted.blockon(Deferred.fromCoroutine(build_server(tmp_path)))
    yield built
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.close()))


@pytest.fixture
def logged() -> Iterator[list[str]]:
    lines: list[str] = []

    def observe(event: LogEvent) -> None:
        if event["log_namespace"] == "medamad.daemon.silence.Watch":
            lines.append(f"{event['log_level'].name}: {formatEvent(event)}")

    globalLogPublisher.addObserver(observe)
    yield lines
    globalLogPublisher.removeObserver(observe)


def watch_of(server: Server) -> Watch:
    return Watch(server.site.backend, 0)


async def visit(server: Server, website: Website, *seconds: int) -> None:
    await server.store.append(
        [a_view(website.number, time_ms=second * 1000, beacon=f"b{second}") for second in seconds]
    )


async def visited(server: Server, hostname: str) -> Website:
    """Register a website that has had 8 views an hour for 8 days, up to now."""
    website = await server.store.add_website(hostname, NOW)
    await visit(server, website, *range(NOW - 8 * 24 * HOUR, NOW + 1, HOUR // 8))
    return website


@pytest_twisted.ensureDeferred
async def test_silence_is_reported_once_when_it_begins_and_ends(
    server: Server, logged: list[str]
) -> None:
    website, other = await visited(server, "example.com"), await visited(server, "other.example")
    owner, watch = await server.owner(), watch_of(server)
    await watch.look()
    assert (logged, server.site.backend.quiet) == ([], {})
    assert (await owner.ask("GET", "/websites/example.com")).json == {"hostname": "example.com"}
    server.now += 4 * HOUR
    await visit(server, other, NOW + 3 * HOUR)
    for _ in range(3):
        await watch.look()
        server.now += 300
    assert logged == ["warn: example.com has gone quiet: no view for 4 hours"]
    quiet = {"hostname": "example.com", "quietSince": NOW}
    assert (await owner.ask("GET", "/websites/example.com")).json == quiet
    assert (await owner.ask("GET", "/websites")).json == [quiet, {"hostname": "other.example"}]
    await visit(server, website, NOW + 4 * HOUR)
    for _ in range(2):
        await watch.look()
    assert logged[1:] == ["info: example.com is not quiet any more"]
    assert server.site.backend.quiet == {}


@pytest_twisted.ensureDeferred
async def test_a_restart_does_not_restart_the_silence(server: Server) -> None:
    website = await visited(server, "example.com")
    folder = server.site.backend.settings.data_dir
    presence = Presence.begin(folder, (NOW - 9 * 24 * HOUR) * 1000)
    presence.end((NOW + 4 * HOUR) * 1000)
    for away_s, quiet in ((600, {website.number: NOW}), (2 * HOUR, {})):
        server.now = NOW + 4 * HOUR + away_s
        server.site.backend.quiet.clear()
        again = Presence.begin(folder, int(server.now * 1000))
        await Watch(server.site.backend, again.since_ms).look()
        assert server.site.backend.quiet == quiet


@pytest_twisted.ensureDeferred
async def test_a_deleted_website_is_not_silent(server: Server, logged: list[str]) -> None:
    website, watch = await visited(server, "example.com"), watch_of(server)
    server.now += 4 * HOUR
    await watch.look()
    assert server.site.backend.quiet == {website.number: NOW}
    await server.store.delete_website(website)
    await watch.look()
    assert (server.site.backend.quiet, len(logged)) == ({}, 1)


@pytest_twisted.ensureDeferred
async def test_a_busy_daemon_checks_later(server: Server) -> None:
    await visited(server, "example.com")
    server.now += 4 * HOUR
    backend = server.site.backend
    usual = backend.run_query
    backend.run_query = lambda _question: fail(Unavailable("too much", retry_after=1))
    await watch_of(server).look()
    assert backend.quiet == {}
    backend.run_query = usual
    await watch_of(server).look()
    assert list(backend.quiet.values()) == [NOW]


@pytest_twisted.ensureDeferred
async def test_a_demo_has_no_silence(server: Server, logged: list[str]) -> None:
    await visited(server, "example.com")
    server.now += 4 * HOUR
    server.set(demo=True)
    await watch_of(server).look()
    assert (server.site.backend.quiet, logged) == ({}, [])
