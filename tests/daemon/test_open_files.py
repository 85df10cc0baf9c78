import resource
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from support.daemon import PATIENCE_S, Daemon, configure, finished, until
from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from medamad.daemon.runtime import (
    DEFAULT_FILE_LIMIT,
    RESERVED_FILES,
    file_limit,
    limit_connections,
    raise_file_limit,
)
from medamad.lookup.referrers import Sources
from medamad.web.settings import WebSettings

LIMITED = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({0}, {0}))"


@pytest.mark.parametrize(
    ("soft", "hard", "then"), [(256, 1_024, 1_024), (1_024, 1_024, 1_024), (64, 300, 300)]
)
def test_the_limit_of_open_files_is_raised(soft: int, hard: int, then: int) -> None:
    script = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from medamad.daemon import runtime
runtime.raise_file_limit()
print(*resource.getrlimit(resource.RLIMIT_NOFILE), runtime.file_limit())
"""
    output = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60
    ).stdout
    assert output.split() == [str(then), str(hard), str(then)]


@pytest.mark.parametrize(
    ("hard", "then"), [(524_288, 524_288), (resource.RLIM_INFINITY, DEFAULT_FILE_LIMIT)]
)
def test_a_very_high_limit_is_capped(monkeypatch: pytest.MonkeyPatch, hard: int, then: int) -> None:
    limits = {resource.RLIMIT_NOFILE: (1_024, hard)}
    monkeypatch.setattr(resource, "getrlimit", limits.__getitem__)
    monkeypatch.setattr(resource, "setrlimit", limits.__setitem__)
    raise_file_limit()
    assert file_limit() == then
    assert limits == {resource.RLIMIT_NOFILE: (then, hard)}


@pytest.mark.parametrize(
    ("files", "wanted", "room"),
    [
        (1_024, 10_000, 1_024 - RESERVED_FILES),
        (1_024, 1_024 - RESERVED_FILES, 1_024 - RESERVED_FILES),
        (1_024, 1_024 - RESERVED_FILES + 1, 1_024 - RESERVED_FILES),
        (1_024, 5, 5),
        (sys.maxsize, 10_000, 10_000),
        (128, 10_000, 64),
        (8, 10_000, 4),
    ],
)
def test_connections_leave_files_for_the_rest(
    tmp_path: Path, files: int, wanted: int, room: int
) -> None:
    lines: list[str] = []

    def observe(event: LogEvent) -> None:
        lines.append(formatEvent(event))

    settings = WebSettings(
        sources=Sources({}), data_dir=tmp_path, commit="", max_connections=wanted
    )
    globalLogPublisher.addObserver(observe)
    left = limit_connections(settings, files)
    globalLogPublisher.removeObserver(observe)
    assert left.max_connections == room
    reported = (
        f"limits.max_connections: {room} instead of {wanted}, because the system allows the daemon"
        f" {files} open files"
    )
    assert lines == [reported] * (room < wanted)


@pytest.mark.daemon
def test_with_few_files_idle_connections_are_evicted(tmp_path: Path) -> None:
    files = 256
    daemon = Daemon(tmp_path, before=LIMITED.format(files))
    daemon.start()
    warning = f"limits.max_connections: {files - RESERVED_FILES} instead of 10000"
    with ExitStack() as silent:
        try:
            assert warning in daemon.log
            # As many again as may be open: those of before a reload, and those of after it.
            for times in (1, 2):
                for _ in range(files):
                    address = ("127.0.0.1", daemon.port)
                    silent.enter_context(socket.create_connection(address, PATIENCE_S))
                daemon.client().get("/api/event/ping")
                assert finished("status", daemon.data).returncode == 0
                configure(daemon, "")
                until(lambda times=times: daemon.log.count(warning) == 1 + times)  # type: ignore[misc]
        finally:
            assert daemon.stop() == 0
    assert "Traceback" not in daemon.log
