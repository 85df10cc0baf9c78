"""What is said while a store of an earlier format is taken over."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import define
from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from medamad.daemon.systemd import BUSY, Supervisor
from medamad.daemon.takeover_progress import TakingOver
from medamad.storage.environment.formats import FORMAT


@define
class Moment:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def supervising(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setblocking(False)
        yield listening


@pytest.fixture
def said() -> Iterator[list[str]]:
    lines: list[str] = []

    def observe(event: LogEvent) -> None:
        lines.append(formatEvent(event))

    globalLogPublisher.addObserver(observe)
    yield lines
    globalLogPublisher.removeObserver(observe)


def told(supervising: socket.socket) -> Iterator[str]:
    while True:
        try:
            yield supervising.recv(4_096).decode()
        except BlockingIOError:
            return


def test_systemd_and_the_log_hear_once_in_a_while(
    tmp_path: Path, supervising: socket.socket, said: list[str]
) -> None:
    moment, heard = Moment(), []
    taking_over = TakingOver(Supervisor(str(tmp_path / "notify")), moment)
    for tenth in range(121):
        moment.now = tenth / 10
        taking_over.tell("copying", tenth, 200)
        heard += told(supervising)
    taking_over.tell("storing the new format", 0, 0)
    taking_over.end()
    heard += told(supervising)
    assert heard[0] == f"STATUS=Taking over the store: copying, 0 %\n{BUSY}"
    assert heard[12] == f"STATUS=Taking over the store: copying, 60 %\n{BUSY}"
    assert heard[13:] == [
        f"STATUS=Taking over the store: storing the new format\n{BUSY}",
        "STATUS=",
    ]
    assert said == [
        "the store is of an earlier version, and taken over: a backup first",
        "taking over the store: copying, 0 %",
        "taking over the store: copying, 50 %",
        "taking over the store: storing the new format",
        f"the store has been taken over into format {FORMAT}",
    ]


def test_nothing_is_said_where_there_is_nothing_to_take_over(
    tmp_path: Path, supervising: socket.socket, said: list[str]
) -> None:
    TakingOver(Supervisor(str(tmp_path / "notify"))).end()
    assert (list(told(supervising)), said) == ([], [])
