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
from support.daemon import HIT, MEDAMAD, PATIENCE_S, Daemon, finished, running, until

from medamad.storage.environment.environment import open_as_guest

pytestmark = pytest.mark.daemon

GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
PER_DAY = 500
"""Lines of a day, and paths: fewer than are told apart."""


def line(number: int, agent: str = GPTBOT) -> str:
    day = FIRST + timedelta(days=number // PER_DAY)
    when = day.strftime("%d/%b/%Y:10:00:00 +0000")
    return f'192.0.2.1 - - [{when}] "GET /{number % PER_DAY} HTTP/1.1" 200 1 "-" "{agent}"\n'


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with running(tmp_path / "daemon") as made:
        made.client().add_website("example.com")
        yield made


@contextmanager
def following(daemon: Daemon, log: Path, *arguments: str) -> Iterator["subprocess.Popen[bytes]"]:
    command = [*MEDAMAD, "follow", str(log), *(arguments or ("--website", "example.com"))]
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


def test_a_known_robot_has_its_name_after_any_number_of_others(
    daemon: Daemon, tmp_path: Path
) -> None:
    log = tmp_path / "access.log"
    made_up = [line(0, f"Quux{number}/1.0 (+https://quux.example)") for number in range(201)]
    for lines in (made_up, [line(0), line(0, "Corge/1.0 (+https://corge.example)")]):
        with log.open("a") as file:
            file.writelines(lines)
        assert once(daemon, log, "--website", "example.com").returncode == 0
    found = {row["name"]: row["requests"] for row in counts(daemon, limit="300")}
    assert len(found) == 202
    assert (found["GPTBot"], found["(other)"]) == (1, 2)


def test_lines_belong_to_the_website_of_their_host(daemon: Daemon, tmp_path: Path) -> None:
    log = tmp_path / "other_vhosts_access.log"
    log.write_text(f"www.example.com:443 {line(0)}elsewhere.example:443 {line(1)}{line(2)}")
    assert once(daemon, log).returncode == 0
    assert [row["path"] for row in counts(daemon, by="path")] == ["/0"]


def test_what_is_wrong_is_said(daemon: Daemon, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    for text, reason in (
        ("not a log", "line: not a line of an access log in the common or combined format"),
        (line(0).strip().replace("Jan", "Jum"), "time: expected a time such as 10/Oct/2000:13:55"),
        ('{"request_uri": "/secret", "time_local": 5}', "status: missing"),
        ('{"request_uri": "/secret', "line: not a JSON object: "),
    ):
        log.write_text(f"{text}\n")
        done = once(daemon, log, "--website", "example.com")
        assert done.returncode == 0
        assert f"medamad: {log}: some lines are not of an access log: {reason}" in done.stderr
        assert "secret" not in done.stderr
    done = once(daemon, log, "--website", "absent.example")
    assert done.returncode == 1
    assert done.stderr == "medamad: --website: no website absent.example is registered\n"
    log.unlink()
    log.write_text(line(0))
    done = once(daemon, log, "--website", "example.com")
    assert "so lines may be missing" in done.stderr
    done = once(daemon, tmp_path, "--website", "example.com")
    assert (done.returncode, done.stderr) == (1, f"medamad: {tmp_path}: Is a directory\n")
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


FIREFOX_129 = FIREFOX.replace("128", "129")
PAGES = ("/", "/a", "/b?utm_source=mail", "/docs/c")
FOLLOWED = f'192.0.2.1 - - [{{now}}] "GET /{{number}} HTTP/1.1" 200 1 "-" "{FIREFOX}"\n'
STATISTICS = ("summary", "pages", "referrers", "sources", "browsers", "entries", "exits", "robots")


def browsing(hostname: str) -> str:
    """Return two days of a log in which visitors browse, some over midnight."""
    chance = random.Random(1)  # noqa: S311 - not used for security
    lines, moment = [], datetime(2026, 3, 1, 12, tzinfo=UTC)
    for _ in range(600):
        moment += timedelta(seconds=chance.randrange(240))
        page = chance.choice((*PAGES, "/logo.png"))
        referrer = chance.choice((f"https://{hostname}/a", "https://search.example/", "-"))
        agent = chance.choice((FIREFOX, FIREFOX, FIREFOX_129, GPTBOT))
        address = chance.choice(("192.0.2.1", "192.0.2.2", "198.51.100.7", "2001:db8::1"))
        lines.append(
            f'{address} - - [{moment:%d/%b/%Y:%H:%M:%S +0000}] "GET {page} HTTP/1.1"'
            f' {chance.choice((200, 304, 404))} 1 "{referrer}" "{agent}"\n'
        )
    return "".join(lines)


def test_people_count_as_in_an_import(daemon: Daemon, tmp_path: Path) -> None:
    client = daemon.client()
    client.add_website("imported.example")
    log, imported = tmp_path / "access.log", tmp_path / "imported.log"
    log.write_text(browsing("example.com"))
    imported.write_text(browsing("imported.example"))
    done = finished("import", daemon.data, "--website", "imported.example", str(imported))
    assert done.returncode == 0, done.stderr
    for _ in range(2):
        done = once(daemon, log, "--website", "example.com", "--people")
        assert (done.returncode, done.stderr) == (0, "")
    for name in STATISTICS:
        query = {} if name == "robots" else {"visits": "true"}
        query = {} if name in {"entries", "exits"} else query
        found, expected = (
            client.get(f"/api/website/{hostname}/{name}", **query)
            for hostname in ("example.com", "imported.example")
        )
        assert found == expected, name
        assert found
    assert client.get("/api/website/example.com/summary")["current"]["pageviews"] > 200
    # The page loads of such a log say nothing about a tracker.
    assert client.get("/api/website/example.com/blind-spot")["loads"] == 0
    daemon.stop()
    stored = b"".join(path.read_bytes() for path in daemon.data.rglob("*") if path.is_file())
    for address in (b"192.0.2.", b"198.51.100.", b"2001:db8", b"\xc0\x00\x02\x01"):
        assert address not in stored
        assert address not in daemon.log.encode()


def test_people_are_in_live_figures_and_under_the_daily_limits(tmp_path: Path) -> None:
    with running(tmp_path / "daemon", configuration="[limits]\nnew_paths = 4\n") as daemon:
        client, log = daemon.client(), tmp_path / "access.log"
        client.add_website("example.com")
        now = datetime.now(UTC).strftime("%d/%b/%Y:%H:%M:%S +0000")
        log.write_text("".join(FOLLOWED.format(now=now, number=number) for number in range(9)))
        assert once(daemon, log, "--website", "example.com", "--people").returncode == 0
        live = client.get("/api/website/example.com/live", lists="true")
        assert sum(row["pageviews"] for row in live["pages"]) == 9
        rows = client.get("/api/website/example.com/pages", views="true")
        assert sum(row["pageviews"] for row in rows) == 9
        (other,) = [row["pageviews"] for row in rows if row["path"] == "(other)"]
        assert other >= 5


def test_a_line_that_was_imported_counts_again(daemon: Daemon, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(line(0, FIREFOX))
    done = finished("import", daemon.data, "--website", "example.com", str(log))
    assert done.returncode == 0, done.stderr
    assert once(daemon, log, "--website", "example.com", "--people").returncode == 0
    assert daemon.client().get("/api/website/example.com/summary")["current"]["pageviews"] == 2


def test_people_whom_the_tracker_counts_too_are_warned_about(
    daemon: Daemon, tmp_path: Path
) -> None:
    client, log = daemon.client(), tmp_path / "access.log"
    log.write_text(line(0, FIREFOX))
    assert once(daemon, log, "--website", "example.com", "--people").stderr == ""
    assert client.request("POST", "/api/event/hit", HIT, {"User-Agent": FIREFOX}).status == 204
    with log.open("a") as file:
        file.write(line(1, FIREFOX))
    done = once(daemon, log, "--website", "example.com", "--people")
    assert done.returncode == 0
    assert done.stderr == (
        "medamad: example.com: its pages send views themselves, so people who are also"
        " in this log count twice; remove the tracker, or leave --people out\n"
    )
    with log.open("a") as file:
        file.write(line(2, FIREFOX))
    assert once(daemon, log, "--website", "example.com").stderr == ""
    assert client.get("/api/website/example.com/summary")["current"]["pageviews"] == 3


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


def test_changed_settings_apply_to_the_next_line(daemon: Daemon, tmp_path: Path) -> None:
    log = tmp_path / "other_vhosts_access.log"
    log.write_text(f"example.com:443 {line(0)}")
    with following(daemon, log, "--robots"):
        until(lambda: counts(daemon) != [])
        client = daemon.client()
        changes = {"redacted_paths": ["/*"]}
        assert client.request("PATCH", "/api/websites/example.com/settings", changes).status == 200
        client.add_website("new.example")
        with log.open("a") as file:
            file.write(f"example.com:443 {line(1)}new.example:443 {line(2)}")
        until(lambda: client.get("/api/website/new.example/robots") != [])
    assert {row["path"]: row["requests"] for row in counts(daemon, by="path")} == {"/0": 1, "/…": 1}


def test_it_ends_on_a_signal(daemon: Daemon, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text(line(0))
    with following(daemon, log) as process:
        until(lambda: counts(daemon) != [])
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 130


AGENTS = pytest.mark.parametrize("agent", [GPTBOT, FIREFOX], ids=["robots", "people"])


@AGENTS
def test_no_kill_loses_or_repeats_a_line(daemon: Daemon, tmp_path: Path, agent: str) -> None:
    kill_often(daemon, tmp_path / "access.log", 10, agent)


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@AGENTS
def test_a_thousand_kills_lose_and_repeat_no_line(
    daemon: Daemon, tmp_path: Path, agent: str
) -> None:
    kill_often(daemon, tmp_path / "access.log", 1_000, agent)


def kill_often(daemon: Daemon, log: Path, kills: int, agent: str) -> None:
    """Kill the follower, and sometimes the daemon, while a log is written and rotated."""
    chance = random.Random(kills)  # noqa: S311 - not used for security
    written = 0
    arguments = ("--website", "example.com", *(["--people"] if agent == FIREFOX else []))

    def write(lines: int) -> None:
        nonlocal written
        with log.open("a") as file:
            for number in range(written, written + lines):
                file.write(line(number, agent))
        written += lines

    # The first time, it begins with the log that is there.
    write(1)
    once(daemon, log, *arguments)
    for kill in range(kills):
        with following(daemon, log, *arguments) as process:
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
            once(daemon, log, *arguments)
            write(3)
        if kill % 2:
            rotate(log, empties=kill % 4 == 3)
    write(1)
    assert once(daemon, log, *arguments).returncode == 0
    for day in range((written - 1) // PER_DAY + 1):
        start = FIRST + timedelta(days=day)
        period = {"start": f"{start:%Y-%m-%dT00:00:00Z}", "end": f"{start:%Y-%m-%dT23:59:59Z}"}
        if agent == FIREFOX:
            rows = daemon.client().get("/api/website/example.com/pages", views="true", **period)
            found = [row["pageviews"] for row in rows]
        else:
            found = [row["requests"] for row in counts(daemon, by="path", **period)]
        assert found == [1] * min(PER_DAY, written - day * PER_DAY)


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
