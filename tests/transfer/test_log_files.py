"""Each line of a log is read once, however the log is rotated."""

import gzip
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from medamad.storage.followed_logs import FilePlace
from medamad.transfer.log_files import LogFiles


class Log:
    """A log that is written and rotated, and what has been read of it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "access.log"
        self.now = 0.0
        self.files = LogFiles(self.path, lambda: self.now)
        self.read: list[bytes] = []
        self.written: list[bytes] = []
        self.places: tuple[FilePlace, ...] = ()

    def write(self, *texts: str, to: Path | None = None) -> None:
        lines = [f"{text}\n".encode() for text in texts]
        self.written += lines
        with (to or self.path).open("ab") as file:
            file.write(b"".join(lines))

    def look(self) -> list[str]:
        """Read all there is; return the new lines."""
        before = len(self.read)
        while lines := self.files.read(1):
            self.read += lines.splitlines(keepends=True)
            self.places = self.files.places()
        self.places = self.files.places()
        return [line.decode().strip() for line in self.read[before:]]

    def restart(self) -> None:
        self.files.close()
        self.files = LogFiles(self.path, lambda: self.now)
        self.files.resume(self.places)

    def numbered(self, number: int) -> Path:
        return self.path.with_name(f"access.log.{number}")

    def make_way(self) -> None:
        for number in range(9, 0, -1):
            if self.numbered(number).exists():
                self.numbered(number).rename(self.numbered(number + 1))

    def rename(self, *, creates: bool = True) -> None:
        self.make_way()
        self.path.rename(self.numbered(1))
        if creates:
            self.path.touch()

    def copy_and_truncate(self) -> None:
        self.make_way()
        self.numbered(1).write_bytes(self.path.read_bytes())
        os.truncate(self.path, 0)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Log]:
    made = Log(tmp_path)
    yield made
    made.files.close()


def test_a_log_may_arrive_late(log: Log) -> None:
    assert log.look() == []
    log.write("a")
    assert log.look() == ["a"]
    log.write("b", "c")
    assert log.look() == ["b", "c"]
    assert log.look() == []


def test_a_folder_may_arrive_late(tmp_path: Path) -> None:
    log = Log(tmp_path / "later")
    assert log.look() == []
    log.path.parent.mkdir()
    log.write("a")
    assert log.look() == ["a"]
    log.files.close()


def test_a_line_is_read_once_it_is_complete(log: Log) -> None:
    log.write("a")
    with log.path.open("ab") as file:
        file.write(b"b")
        file.flush()
        assert log.look() == ["a"]
        log.restart()
        assert log.look() == []
        file.write(b"c\n")
    assert log.look() == ["bc"]


def test_a_very_long_line_does_not_stop_it(log: Log) -> None:
    log.write("a" * (3 << 20), "b")
    assert log.look()[-1] == "b"


def test_a_renamed_file_is_read_on(log: Log) -> None:
    log.write("a")
    log.look()
    log.write("b")
    log.rename()
    log.write("c", to=log.numbered(1))
    assert log.look() == ["b", "c"]
    log.write("d")
    log.write("e", to=log.numbered(1))
    assert sorted(log.look()) == ["d", "e"]
    log.restart()
    log.write("f", to=log.numbered(1))
    log.write("g")
    assert sorted(log.look()) == ["f", "g"]


def test_a_renamed_file_is_closed_an_hour_after_it_last_grew(log: Log) -> None:
    log.write("a")
    log.look()
    log.rename()
    log.write("b")
    log.look()
    assert len(log.places) == 2
    log.now += 3_601
    log.look()
    assert len(log.files.places()) == 1
    log.write("c")
    log.look()
    log.restart()
    assert log.look() == []
    assert sorted(log.read) == sorted(log.written)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_files_that_were_renamed_meanwhile_are_read(log: Log, times: int) -> None:
    log.write("old")
    log.rename()
    log.write("a")
    log.files.resume(())
    log.look()
    log.files.close()
    log.write("b")
    for number in range(times):
        log.rename()
        log.write(f"c{number}")
    log.restart()
    assert log.look() == ["b", *(f"c{number}" for number in range(times))]
    assert log.files.lost == 0


def test_the_first_time_it_begins_with_the_log_that_is_there(log: Log) -> None:
    log.write("old")
    log.rename()
    log.write("a")
    assert log.look() == ["a"]


@pytest.mark.parametrize("is_running", [True, False])
def test_an_emptied_log_is_read_from_its_copy_and_its_beginning(
    log: Log, *, is_running: bool
) -> None:
    log.write("a")
    log.look()
    log.write("b")
    log.copy_and_truncate()
    log.write("c")
    if not is_running:
        log.restart()
    assert log.look() == ["b", "c"]
    log.write("d")
    log.copy_and_truncate()
    if not is_running:
        log.restart()
    assert log.look() == ["d"]
    log.write("e")
    log.restart()
    assert log.look() == ["e"]


def test_an_emptied_log_that_is_longer_again_is_noticed(log: Log) -> None:
    log.write("a")
    log.look()
    log.copy_and_truncate()
    log.write("much longer than before", "c")
    assert log.look() == ["much longer than before", "c"]


def test_a_log_that_was_emptied_twice_meanwhile(log: Log) -> None:
    log.write("a")
    log.look()
    log.files.close()
    log.write("b")
    log.copy_and_truncate()
    log.write("c")
    log.copy_and_truncate()
    log.write("d")
    log.restart()
    assert log.look() == ["b", "c", "d"]


@pytest.mark.parametrize("is_running", [True, False])
def test_a_log_that_was_replaced_is_read_from_its_beginning(log: Log, *, is_running: bool) -> None:
    log.write("a")
    log.look()
    log.path.unlink()
    log.write("b")
    if not is_running:
        log.restart()
        assert log.files.lost == 1
    assert log.look() == ["b"]


def test_a_file_that_was_compressed_meanwhile_is_missed_and_said_to_be(log: Log) -> None:
    log.write("a")
    log.look()
    log.files.close()
    log.write("b")
    log.rename()
    packed = log.numbered(1).with_suffix(".1.gz")
    packed.write_bytes(gzip.compress(log.numbered(1).read_bytes()))
    log.numbered(1).unlink()
    log.write("c")
    log.restart()
    assert log.files.lost == 1
    assert log.look() == ["c"]


def test_names_with_dates_are_known_and_others_are_not(log: Log) -> None:
    log.write("a")
    log.look()
    log.files.close()
    log.write("b")
    log.path.rename(log.path.with_name("access-2026.11.28.log"))
    log.write("other", to=log.path.with_name("access.log.bak"))
    log.written.pop()
    log.write("c")
    log.restart()
    assert log.look() == ["b", "c"]


@pytest.mark.parametrize("seed", range(60))
def test_every_line_is_read_once_whatever_happens(log: Log, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - not used for security
    log.write("first")
    log.look()
    number = 0
    for _ in range(120):
        event = chance.choice(("write", "write", "write", "old", "look", "restart", "rotate"))
        if event == "write":
            for _ in range(chance.randrange(1, 4)):
                log.write(f"{number} {'x' * chance.randrange(40)}")
                number += 1
        elif event == "old" and seed % 2 and log.numbered(1).exists():
            log.write(f"{number} late", to=log.numbered(1))
            number += 1
        elif event == "look":
            log.look()
        elif event == "restart":
            log.restart()
        elif event == "rotate" and log.path.exists():
            if seed % 2:
                log.rename(creates=chance.random() < 0.5)
            elif log.path.stat().st_size:
                # What is emptied before any of it was read is lost: a minute's lines are enough.
                log.look()
                log.write(f"{number} last")
                number += 1
                log.copy_and_truncate()
    log.look()
    assert sorted(log.read) == sorted(log.written)
