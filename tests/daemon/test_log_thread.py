import fcntl
import http.client
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.daemon import HIT, Daemon, unread, until

from medamad.daemon.log_thread import LogThread

LINES = 3_000
LINE = "{number} straße " + "." * 100 + "\n"
PROGRAM = f"""
import sys
from twisted.logger import Logger
from medamad.config.schema import LogSection
from medamad.daemon.logs import begin_log

begin_log(sys.stderr, {{}}, LogSection())
for number in range({LINES}):
    Logger("medamad").info("number {{number}}", number=number)
"""


def missing(count: int) -> str:
    return f"{count} are missing\n"


def started(descriptor: int, most: int = 50_000) -> LogThread:
    thread = LogThread(descriptor, "utf-8", most)
    thread.start(missing)
    return thread


def lines(count: int) -> list[str]:
    return [LINE.format(number=number) for number in range(count)]


def test_a_stalled_reader_blocks_nobody() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as reader, os.fdopen(writing, "wb") as pipe:
        room = fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4_096)
        thread = started(pipe.fileno())
        first = "." * room * 2 + "\n"
        thread.write(first)
        until(lambda: unread(reading) == room)
        for line in lines(LINES):
            thread.write(line)
        assert reader.readline() == first
        read = []
        while not read or not read[-1].endswith("missing\n"):
            read.append(reader.readline())
        taken = len(read) - 1
        assert read == [*lines(taken), missing(LINES - taken)]
        thread.write("after\n")
        thread.end()
        pipe.close()
        assert reader.read() == "after\n"


def test_everything_is_written_at_the_end_and_afterwards(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with file.open("wb") as stream:
        thread = started(stream.fileno(), 1 << 20)
        for line in lines(LINES):
            thread.write(line)
        thread.end(60)
        assert file.read_text("utf-8") == "".join(lines(LINES))
        thread.write("later\n")
    assert file.read_text("utf-8").endswith(".\nlater\n")


def test_lost_lines_are_reported_once_writing_works(tmp_path: Path) -> None:
    file = tmp_path / "log"
    with Path("/dev/full").open("wb") as full, file.open("wb") as stream:
        thread = started(full.fileno())
        for line in lines(3):
            thread.write(line)
        thread.end(60)
        os.dup2(stream.fileno(), full.fileno())
        thread.write("after\n")
    assert file.read_text("utf-8") == f"{missing(3)}after\n"


def test_a_partial_line_is_completed_once_writing_works(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    file = tmp_path / "log"
    with os.fdopen(writing, "wb") as pipe, file.open("wb") as stream:
        room = fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4_096)
        thread = started(pipe.fileno())
        thread.write("." * room + "rest\n")
        until(lambda: unread(reading) == room)
        os.close(reading)
        thread.write("missing\n")
        thread.end(60)
        os.dup2(stream.fileno(), pipe.fileno())
        thread.write("after\n")
    assert file.read_text("utf-8") == f"rest\n{missing(1)}after\n"


def test_a_full_pipe_is_waited_for() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb"), os.fdopen(writing, "wb"):
        room = fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4_096)
        os.set_blocking(writing, False)
        thread = started(writing, 1 << 20)
        for line in lines(LINES):
            thread.write(line)
        until(lambda: unread(reading) > room // 2)
        read = b""
        while read.count(b"\n") < LINES:
            until(lambda: unread(reading) > 0)
            read += os.read(reading, room)
        assert read.decode("utf-8") == "".join(lines(LINES))
        thread.end(60)


@pytest.mark.daemon
def test_a_crash_loses_nothing() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", f"{PROGRAM}\nraise ValueError('so it was')"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == 1
    # Python writes the traceback itself, in pieces: lines of the log may come between two of them.
    line = re.compile(r"\d{4}-\S+ \[medamad#info\] number (\d+)\n")
    assert line.findall(ended.stderr) == [str(number) for number in range(LINES)]
    assert line.sub("", ended.stderr).endswith("\nValueError: so it was\n")


@pytest.mark.daemon
def test_stopping_does_not_wait_for_a_stalled_reader() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stderr=subprocess.PIPE) as ended:
        assert ended.wait(60) == 0


@pytest.mark.daemon
def test_hits_are_answered_while_nobody_reads_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    os.mkfifo(log)
    reader = os.open(log, os.O_RDWR)
    holds = fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 4_096)
    daemon = Daemon(
        tmp_path,
        configuration='[log]\nlevel = "debug"',
        before=f"import os; os.dup2(os.open({str(log)!r}, os.O_WRONLY), 2)",
    )
    daemon.start()
    try:
        client = daemon.client()
        client.add_website("example.com")
        for _ in range(2 * holds // len("a hit of example.com does not count: bot\n")):
            answer = client.request("POST", "/api/event/hit", HIT, {"User-Agent": "Googlebot/2.1"})
            assert answer.headers["x-medamad-ignored"] == "bot"
        assert client.request("GET", "/api/event/ping").status == http.client.OK
        assert daemon.stop() == 0
    finally:
        if daemon.is_running:
            daemon.kill()
        os.close(reader)
