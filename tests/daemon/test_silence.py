"""Silent websites, in a real store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted
from support.storage.hits import a_view
from support.web.daemon_in_memory import NOW, House, build_house
from twisted.internet.defer import Deferred, fail
from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from medamad.daemon.silence import Presence, Watch
from medamad.domain.errors import Unavailable
from medamad.domain.websites import Website

HOUR = 3_600


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = pytest_twisted.blockon(Deferred.fromCoroutine(build_house(tmp_path)))
    yield built
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.close()))


@pytest.fixture
def said() -> Iterator[list[str]]:
    lines: list[str] = []

    def observe(event: LogEvent) -> None:
        if event["log_namespace"] == "medamad.daemon.silence.Watch":
            lines.append(f"{event['log_level'].name}: {formatEvent(event)}")

    globalLogPublisher.addObserver(observe)
    yield lines
    globalLogPublisher.removeObserver(observe)


def watch_of(house: House) -> Watch:
    return Watch(house.site.backend, 0)


async def visit(house: House, website: Website, *seconds: int) -> None:
    await house.store.append(
        [a_view(website.number, time_ms=second * 1000, beacon=f"b{second}") for second in seconds]
    )


async def visited(house: House, hostname: str) -> Website:
    """Register a website that has had 8 views an hour for 8 days, up to now."""
    website = await house.store.add_website(hostname, NOW)
    await visit(house, website, *range(NOW - 8 * 24 * HOUR, NOW + 1, HOUR // 8))
    return website


@pytest_twisted.ensureDeferred
async def test_silence_is_reported_once_when_it_begins_and_ends(
    house: House, said: list[str]
) -> None:
    website, other = await visited(house, "example.com"), await visited(house, "other.example")
    owner, watch = await house.owner(), watch_of(house)
    await watch.look()
    assert (said, house.site.backend.quiet) == ([], {})
    assert (await owner.ask("GET", "/websites/example.com")).json == {"hostname": "example.com"}
    house.now += 4 * HOUR
    await visit(house, other, NOW + 3 * HOUR)
    for _ in range(3):
        await watch.look()
        house.now += 300
    assert said == ["warn: example.com has gone quiet: no view for 4 hours"]
    quiet = {"hostname": "example.com", "quietSince": NOW}
    assert (await owner.ask("GET", "/websites/example.com")).json == quiet
    assert (await owner.ask("GET", "/websites")).json == [quiet, {"hostname": "other.example"}]
    await visit(house, website, NOW + 4 * HOUR)
    for _ in range(2):
        await watch.look()
    assert said[1:] == ["info: example.com is not quiet any more"]
    assert house.site.backend.quiet == {}


@pytest_twisted.ensureDeferred
async def test_a_restart_does_not_restart_the_silence(house: House) -> None:
    website = await visited(house, "example.com")
    folder = house.site.backend.settings.data_dir
    presence = Presence.begin(folder, (NOW - 9 * 24 * HOUR) * 1000)
    presence.end((NOW + 4 * HOUR) * 1000)
    for away_s, quiet in ((600, {website.number: NOW}), (2 * HOUR, {})):
        house.now = NOW + 4 * HOUR + away_s
        house.site.backend.quiet.clear()
        again = Presence.begin(folder, int(house.now * 1000))
        await Watch(house.site.backend, again.since_ms).look()
        assert house.site.backend.quiet == quiet


@pytest_twisted.ensureDeferred
async def test_a_deleted_website_is_not_silent(house: House, said: list[str]) -> None:
    website, watch = await visited(house, "example.com"), watch_of(house)
    house.now += 4 * HOUR
    await watch.look()
    assert house.site.backend.quiet == {website.number: NOW}
    await house.store.delete_website(website)
    await watch.look()
    assert (house.site.backend.quiet, len(said)) == ({}, 1)


@pytest_twisted.ensureDeferred
async def test_a_busy_daemon_checks_later(house: House) -> None:
    await visited(house, "example.com")
    house.now += 4 * HOUR
    backend = house.site.backend
    usual = backend.run_query
    backend.run_query = lambda _question: fail(Unavailable("too much", retry_after=1))
    await watch_of(house).look()
    assert backend.quiet == {}
    backend.run_query = usual
    await watch_of(house).look()
    assert list(backend.quiet.values()) == [NOW]


@pytest_twisted.ensureDeferred
async def test_a_demo_has_no_silence(house: House, said: list[str]) -> None:
    await visited(house, "example.com")
    house.now += 4 * HOUR
    house.set(demo=True)
    await watch_of(house).look()
    assert (house.site.backend.quiet, said) == ({}, [])
