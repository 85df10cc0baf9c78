import os
import threading
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest_twisted
from attrs import define, evolve, field
from support.in_process_daemon import RecordedCalls, config_in, daemon_of
from support.log_failures import LoggedFailures
from twisted.internet import reactor
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import deferLater
from twisted.logger import LogEvent, capturedLogs, formatEvent, globalLogPublisher

from medamad.config.schema import Config, ConfigError
from medamad.config.values import Endpoints, PathText
from medamad.daemon.systemd import READY, RELOADING, STOPPING
from medamad.ingest.networks import address_of
from medamad.web.backend import Backend


@pytest_twisted.ensureDeferred
async def test_a_reload_replaces_what_can_be_replaced(tmp_path: Path) -> None:
    calls = RecordedCalls()
    backends: list[Backend] = []
    before = config_in(tmp_path)
    after = evolve(
        before,
        server=msgspec.structs.replace(before.server, demo=True),
        store=msgspec.structs.replace(before.store, commit_max_hits=7, min_free_disk=9),
        events=msgspec.structs.replace(before.events, bots="off"),
        limits=msgspec.structs.replace(before.limits, hits_per_minute=11, new_values=13),
    )
    answers: list[Config | ConfigError] = [ConfigError(tmp_path / "f", "k", "r"), after]

    def read() -> Config:
        answer = answers.pop(0)
        if isinstance(answer, ConfigError):
            raise answer
        return answer

    async def prepare(backend: Backend) -> None:
        backends.append(backend)

    daemon = daemon_of(before, calls, prepare=prepare, read_config=read)
    await daemon.reload()
    assert len(answers) == 2, "there is nothing to reload before the start"
    daemon.startService()
    await calls.first
    (backend,) = backends
    await daemon.reload()
    assert not backend.settings.demo
    await daemon.reload()
    pipeline = backend.pipeline
    assert backend.settings.demo
    assert backend.settings.data_dir == tmp_path
    assert pipeline.queue.settings.max_records == 7
    assert pipeline.rules.bots == "off"
    assert pipeline.rules.hits_per_minute == 11
    assert backend.store.settings.min_free_disk == 9
    assert backend.store.settings.other_new_values == 13
    await daemon.stopService()


@define
class RecordingSupervisor:
    """A supervisor that records its notifications."""

    beat_s: float | None = None
    all: list[str] = field(factory=list)

    def notify(self, *assignments: str) -> None:
        self.all.append(assignments[0])


@pytest_twisted.ensureDeferred
async def test_a_reload_knows_what_the_daemon_was_started_by(tmp_path: Path) -> None:
    calls = RecordedCalls()
    lines: list[str] = []

    def observe(event: LogEvent) -> None:
        if event["log_namespace"] == "medamad.daemon.reload.Reloading":
            lines.append(formatEvent(event))

    before = config_in(tmp_path)
    elsewhere, nowhere = (
        evolve(before, server=msgspec.structs.replace(before.server, listen=Endpoints((text,))))
        for text in ("tcp:1", "banana:1")
    )
    answers = [elsewhere, elsewhere, before, nowhere]
    daemon = daemon_of(before, calls, read_config=lambda: answers.pop(0))
    daemon.startService()
    await calls.first
    globalLogPublisher.addObserver(observe)
    for _ in range(4):
        await daemon.reload()
    globalLogPublisher.removeObserver(observe)
    late, done = (
        "takes effect at the next start: server.listen",
        "the configuration was reloaded",
    )
    assert lines[:-1] == [late, done, late, done, done]
    assert lines[-1].startswith("the configuration was not changed: ")
    assert "server.listen: banana:1: " in lines[-1]
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_a_reload_that_fails_unforeseen_changes_nothing(
    tmp_path: Path, logged_failures: LoggedFailures
) -> None:
    calls, notified = RecordedCalls(), RecordingSupervisor()
    backends: list[Backend] = []

    def read() -> Config:
        raise LookupError("nothing to read")

    async def prepare(backend: Backend) -> None:
        backends.append(backend)

    daemon = daemon_of(config_in(tmp_path), calls, prepare=prepare, read_config=read)
    daemon.supervisor = notified
    daemon.startService()
    await calls.first
    before = backends[0].settings
    await daemon.reload()
    assert notified.all == [READY, RELOADING, READY]
    assert [str(error) for error in logged_failures.take(LookupError)] == ["nothing to read"]
    assert backends[0].settings is before
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_a_reload_that_fails_halfway_changes_nothing(
    tmp_path: Path, logged_failures: LoggedFailures
) -> None:
    calls, before = RecordedCalls(), config_in(tmp_path)
    backends: list[Backend] = []
    events = msgspec.structs.replace(before.events, bots="off")
    unfit = msgspec.structs.replace(before.store, commit_interval_ms="soon")

    async def prepare(backend: Backend) -> None:
        backends.append(backend)

    daemon = daemon_of(
        before,
        calls,
        prepare=prepare,
        read_config=lambda: evolve(before, events=events, store=unfit),
    )
    daemon.startService()
    await calls.first
    pipeline = backends[0].pipeline
    rules, queue = pipeline.rules, pipeline.queue.settings
    await daemon.reload()
    assert len(logged_failures.take(TypeError)) == 1
    assert (pipeline.rules, pipeline.queue.settings) == (rules, queue)
    assert daemon.config is before
    await daemon.stopService()


async def write_to(fifo: Path, text: str) -> None:
    """Write to a named pipe as soon as somebody reads it."""
    while True:
        with suppress(OSError):
            writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
            break
        await deferLater(reactor, 0.01)
    os.write(writer, text.encode())
    os.close(writer)


@pytest_twisted.ensureDeferred
async def test_nobody_waits_while_long_lists_are_read(tmp_path: Path) -> None:
    calls, before = RecordedCalls(), config_in(tmp_path / "data")
    backends: list[Backend] = []
    slow = tmp_path / "slow"
    os.mkfifo(slow)
    events = msgspec.structs.replace(before.events, blocked=PathText(str(slow)))
    reads: list[Config] = []

    def read() -> Config:
        reads.append(evolve(before, events=events))
        return reads[-1]

    async def prepare(backend: Backend) -> None:
        backends.append(backend)

    daemon = daemon_of(before, calls, prepare=prepare, read_config=read)
    daemon.startService()
    await calls.first
    pipeline = backends[0].pipeline
    reloads = [Deferred.fromCoroutine(daemon.reload()) for _ in range(9)]
    # The reactor continues here while the files stay unchanged.
    await deferLater(reactor, 0.02)
    assert not reloads[0].called
    for number in (1, 2):
        await write_to(slow, f"192.0.2.{number}\n")
        await reloads[number - 1]
        assert address_of(f"192.0.2.{number}") in pipeline.rules.blocked
    await gatherResults(reloads)
    assert len(reads) == 2, "one reload waits for the first, and stands for all that came meanwhile"
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_a_reload_that_a_stop_overtakes_applies_nothing(tmp_path: Path) -> None:
    calls, notified, before = RecordedCalls(), RecordingSupervisor(), config_in(tmp_path / "data")
    slow = tmp_path / "slow"
    os.mkfifo(slow)
    events = msgspec.structs.replace(before.events, blocked=PathText(str(slow)))
    daemon = daemon_of(before, calls, read_config=lambda: evolve(before, events=events))
    daemon.supervisor = notified
    daemon.startService()
    await calls.first
    reload = Deferred.fromCoroutine(daemon.reload())
    # The stop waits for the thread that reads, so it is another thread that lets it go on.
    threading.Thread(target=slow.write_text, args=("192.0.2.1\n", "utf-8"), daemon=True).start()
    await daemon.stopService()
    await reload
    assert notified.all == [READY, RELOADING, STOPPING]


@pytest_twisted.ensureDeferred
async def test_a_reload_reads_networks_of_hosting_providers_again_unless_they_are_broken(
    tmp_path: Path,
) -> None:
    calls, before = RecordedCalls(), config_in(tmp_path / "data")
    backends: list[Backend] = []
    networks = tmp_path / "clouds.txt"
    networks.write_text("192.0.2.0/24\n", "utf-8")
    events = msgspec.structs.replace(before.events, hosting_networks=PathText(str(networks)))

    async def prepare(backend: Backend) -> None:
        backends.append(backend)

    daemon = daemon_of(evolve(before, events=events), calls, prepare=prepare)
    daemon.startService()
    await calls.first
    pipeline, address = backends[0].pipeline, address_of("198.51.100.7")
    assert address not in pipeline.rules.hosting
    networks.write_text("192.0.2.0/24\n198.51.100.0/24\n", "utf-8")
    await daemon.reload()
    assert address in pipeline.rules.hosting
    networks.write_text("198.51.100.0/24\nAS64496\n", "utf-8")
    with capturedLogs() as logged:
        await daemon.reload()
    (error,) = [each["error"] for each in logged if "error" in each]
    assert error.startswith(f"{networks}: line 2: expected an address or a network: 'AS64496'")
    assert address_of("192.0.2.7") in pipeline.rules.hosting
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_a_reload_may_remove_the_last_setting_and_the_last_line_of_a_list(
    tmp_path: Path,
) -> None:
    calls, before = RecordedCalls(), config_in(tmp_path / "data")
    backends: list[Backend] = []
    blocked = tmp_path / "blocked.txt"
    blocked.write_text("192.0.2.1\n192.0.2.2\n", "utf-8")
    events = msgspec.structs.replace(before.events, blocked=PathText(str(blocked)))

    async def prepare(backend: Backend) -> None:
        backends.append(backend)

    config = evolve(before, events=events)
    daemon = daemon_of(config, calls, prepare=prepare)
    daemon.startService()
    await calls.first
    blocked.write_text("192.0.2.1\n", "utf-8")
    await daemon.reload()
    rules = backends[0].pipeline.rules
    assert address_of("192.0.2.1") in rules.blocked
    assert address_of("192.0.2.2") not in rules.blocked
    await daemon.stopService()


@pytest_twisted.ensureDeferred
async def test_files_that_are_not_in_use_are_a_warning(tmp_path: Path) -> None:
    calls = RecordedCalls()
    before = evolve(config_in(tmp_path), warnings=("f: server.trusted_proxies: everybody",))
    nowhere = msgspec.structs.replace(before.server, listen=Endpoints(("banana:1",)))
    answers = [ConfigError(tmp_path / "f", "k", "r"), evolve(before, server=nowhere), before]

    def read() -> Config:
        answer = answers.pop(0)
        if isinstance(answer, ConfigError):
            raise answer
        return answer

    daemon = daemon_of(before, calls, read_config=read)
    daemon.startService()
    await calls.first
    assert daemon._reloading is not None
    refused, nowhere_to_listen, fine = [await daemon._reloading.warnings() for _ in range(3)]
    assert refused == [
        *before.warnings,
        f"the configuration on disk is not in use: {tmp_path / 'f'}: k: r",
    ]
    assert "not in use: the command line: server.listen: banana:1: " in nowhere_to_listen[1]
    assert fine == list(before.warnings)
    await daemon.stopService()
