"""`medamad follow`: each line of a log counts once, whatever is killed."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.daemon import MEDAMAD, PATIENCE_S, Daemon, finished, running, until

from medamad.storage.environment.environment import open_as_guest

pytestmark = pytest.mark.daemon

GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
PER_DAY = 500
"""Lines of a day: fewer than paths that are told apart."""


def line(number: int, agent: str = GPTBOT) -> str:
    day = FIRST + timedelta(days=number // PER_DAY)
    when = day.strftime("%d/%b/%Y:10:00:00 +0000")
    return f'192.0.2.1 - - [{when}] "GET /{number} HTTP/1.1" 200 1 "-" "{agent}"\n'


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with running(tmp_path / "daemon") as made:
        made.client().add_website("example.com")
        yield made


@contextmanager
def following(daemon: Daemon, log: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [*MEDAMAD, "follow", str(log), "--website", "example.com", *arguments]
    with (log.parent / "follow.txt").open("ab") as output:
        process = subprocess.Popen([*command, "--data", str(daemon.data)], stderr=output)
        try:
            yield process
        finally:
            process.kill()
            process.wait(PATIENCE_S)


def counts(daemon: Daemon, **query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = daemon.client().get("/api/website/example.com/robots", **query)
    return rows


def once(daemon: Daemon, log: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return finished("follow", daemon.data, str(log), "--once", *arguments)


def test_it_goes_on_where_it_stopped(daemon: Daemon, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(line(0) + line(1) + line(2, FIREFOX) + line(3, "curl/8.5.0"))
    for _ in range(2):
        done = once(daemon, log, "--website", "example.com")
        assert (done.returncode, done.stderr) == (0, "")
        assert [(row["name"], row["requests"]) for row in counts(daemon)] == [
            ("GPTBot", 2),
            ("curl", 1),
        ]
    log.rename(tmp_path / "access.log.1")
    log.write_text(line(4))
    assert once(daemon, log, "--website", "example.com").returncode == 0
    assert [row["requests"] for row in counts(daemon, by="name", name="GPTBot")] == [3]
    summary = daemon.client().get("/api/website/example.com/summary")
    assert summary["current"]["pageviews"] == 0


def test_lines_belong_to_the_website_of_their_host(daemon: Daemon, tmp_path: Path) -> None:
    log = tmp_path / "other_vhosts_access.log"
    log.write_text(f"www.example.com:443 {line(0)}elsewhere.example:443 {line(1)}{line(2)}")
    assert once(daemon, log).returncode == 0
    assert [row["path"] for row in counts(daemon, by="path")] == ["/0"]


def test_what_is_wrong_is_said(daemon: Daemon, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("not a log\n")
    done = once(daemon, log, "--website", "example.com")
    assert done.returncode == 0
    assert done.stderr == f"medamad: {log}: there are lines that are not of an access log\n"
    done = once(daemon, log, "--website", "absent.example")
    assert done.returncode == 1
    assert done.stderr == "medamad: --website: no website absent.example is registered\n"
    log.unlink()
    log.write_text(line(0))
    done = once(daemon, log, "--website", "example.com")
    assert "so lines may be missing" in done.stderr
    daemon.stop()
    done = once(daemon, log, "--website", "example.com")
    assert (done.returncode, done.stderr) == (1, f"medamad: {daemon.data}: no daemon runs on it\n")


def test_no_line_counts_twice_once_the_place_after_it_is_damaged(
    daemon: Daemon, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    log.write_text(line(0) + line(1))
    once(daemon, log, "--website", "example.com")
    daemon.stop()
    environment = open_as_guest(daemon.data)
    meta = environment.databases.meta
    with environment.lmdb.begin(write=True) as txn, txn.cursor(db=meta) as cursor:
        assert cursor.set_range(b"log:")
        txn.put(cursor.key(), cursor.value()[:-1], db=meta)
    environment.close()
    daemon.start()
    with log.open("a") as file:
        file.write(line(2) + line(3)[:-5])
    done = once(daemon, log, "--website", "example.com")
    assert "only lines that come now are counted" in done.stderr
    with log.open("a") as file:
        file.write(line(3)[-5:] + line(4))
    assert once(daemon, log, "--website", "example.com").stderr == ""
    assert {row["path"]: row["requests"] for row in counts(daemon, by="path")} == {
        "/0": 1, "/1": 1, "/3": 1, "/4": 1
    }  # fmt: skip


def test_two_that_follow_one_log_count_each_line_once(daemon: Daemon, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.touch()
    with following(daemon, log), following(daemon, log):
        for number in range(20):
            with log.open("a") as file:
                file.write(line(number))
            time.sleep(0.05)
        until(lambda: len(counts(daemon, by="path")) == 20)
    assert {row["requests"] for row in counts(daemon, by="path")} == {1}


def test_it_ends_on_a_signal(daemon: Daemon, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(line(0))
    with following(daemon, log) as process:
        until(lambda: counts(daemon) != [])
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 130


def test_no_kill_loses_or_repeats_a_line(daemon: Daemon, tmp_path: Path) -> None:
    kill_often(daemon, tmp_path / "access.log", 10)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_a_thousand_kills_lose_and_repeat_no_line(daemon: Daemon, tmp_path: Path) -> None:
    kill_often(daemon, tmp_path / "access.log", 1_000)


def kill_often(daemon: Daemon, log: Path, kills: int) -> None:
    """Kill the follower, and sometimes the daemon, while a log is written and rotated."""
    chance = random.Random(kills)  # noqa: S311 - not used for security
    written = 0

    def write(lines: int) -> None:
        nonlocal written
        with log.open("a") as file:
            for number in range(written, written + lines):
                file.write(line(number))
        written += lines

    def read() -> int:
        return sum(row["requests"] for row in counts(daemon, by="day"))

    # The first time, it begins with the log that is there.
    write(1)
    once(daemon, log, "--website", "example.com")
    for kill in range(kills):
        with following(daemon, log) as process:
            write(chance.randrange(1, 40))
            time.sleep(chance.random() * 0.8)
            write(chance.randrange(1, 40))
            if kill % 5 == 1:
                daemon.kill()
                daemon.start()
            process.kill()
            process.wait(PATIENCE_S)
        if kill % 4 == 3:
            # Some of it has to be read before it is emptied.
            once(daemon, log, "--website", "example.com")
            write(3)
        if kill % 2:
            rotate(log, empties=kill % 4 == 3)
    write(1)
    assert once(daemon, log, "--website", "example.com").returncode == 0
    assert read() == written
    for day in range((written - 1) // PER_DAY + 1):
        start = FIRST + timedelta(days=day)
        period = {"start": f"{start:%Y-%m-%dT00:00:00Z}", "end": f"{start:%Y-%m-%dT23:59:59Z}"}
        rows = counts(daemon, by="path", **period)
        assert {row["requests"] for row in rows} == {1}
        assert len(rows) == min(PER_DAY, written - day * PER_DAY)


def rotate(log: Path, *, empties: bool) -> None:
    """Rotate a log, by emptying it once it is copied or by renaming it."""
    for number in range(20, 0, -1):
        file = log.with_name(f"access.log.{number}")
        if file.exists():
            file.rename(log.with_name(f"access.log.{number + 1}"))
    if empties:
        log.with_name("access.log.1").write_bytes(log.read_bytes())
        os.truncate(log, 0)
    else:
        log.rename(log.with_name("access.log.1"))
