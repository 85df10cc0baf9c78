import os
import select
import signal
from functools import partial
from pathlib import Path

import pytest
from support.daemon import PASSWORD, PATIENCE_S, Client, finished, finished_fork, running
from support.forked_process import ForkedProcess, fork

pytestmark = pytest.mark.daemon

OTHER = "quite another one"

passwd = partial(finished, "passwd")


def may_log_in(client: Client, password: str) -> bool:
    body = {"username": "ada", "password": password}
    return client.request("POST", "/api/auth/login", body).status == 200


def test_it_changes_the_password_of_a_running_daemon(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client = daemon.client()
        changed = passwd(daemon.data, given=f"{OTHER}\n")
        assert (changed.returncode, changed.stdout) == (0, "The password of ada was changed.\n")
        assert client.request("GET", "/api/user").status == 401
        assert not may_log_in(client, PASSWORD)
        assert may_log_in(client, OTHER)


def test_it_changes_the_password_of_a_stopped_daemon(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.stop()
        assert passwd(daemon.data, given=OTHER).returncode == 0
        daemon.start()
        assert may_log_in(Client(daemon.port), OTHER)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("", "password: expected 5 to 128 characters, got 0"),
        ("four\n", "password: expected 5 to 128 characters, got 4"),
        ("five\0\n", "password: expected text without NUL and without half a surrogate pair"),
    ],
)
def test_an_invalid_password_is_rejected(tmp_path: Path, given: str, reason: str) -> None:
    refused = passwd(tmp_path, given=given)
    assert (refused.returncode, refused.stderr) == (1, f"medamad: {reason}\n")


def test_a_missing_store_is_not_created(tmp_path: Path) -> None:
    refused = passwd(tmp_path, given=OTHER)
    assert refused.returncode == 1
    assert refused.stderr == f"medamad: {tmp_path}: there is no store here\n"
    assert list(tmp_path.iterdir()) == []


ON_TERMINAL = """
import fcntl, os, signal, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
# A background job of a shell, and nohup, would hand down what they ignore.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
"""Makes standard input the terminal of the command that follows."""


def fork_on_terminal(*arguments: str) -> tuple[ForkedProcess, int]:
    """Run a command on a terminal; return its process and our end of the terminal."""
    ours, theirs = os.openpty()
    command = fork(arguments, (theirs, theirs, theirs), before=ON_TERMINAL)
    os.close(theirs)
    return command, ours


@pytest.mark.parametrize(
    ("again", "status", "message"),
    [(OTHER, 0, "was changed"), ("a mistake", 1, "password: the two passwords differ")],
)
def test_on_a_terminal_it_asks_twice_and_shows_nothing(
    tmp_path: Path, again: str, status: int, message: str
) -> None:
    with running(tmp_path) as daemon:
        command, terminal = fork_on_terminal("passwd", "--data", str(daemon.data))
        shown = ""
        for prompt, answer in (("New password: ", OTHER), ("New password again: ", again)):
            while prompt not in shown:
                shown += os.read(terminal, 1000).decode()
            os.write(terminal, f"{answer}\n".encode())
        while message not in shown:
            shown += os.read(terminal, 1000).decode()
        assert command.wait(PATIENCE_S) == status
        os.close(terminal)
        assert OTHER not in shown
        assert may_log_in(daemon.client() if status else Client(daemon.port), OTHER) is not status


def on_terminal(
    *arguments: str, typed: bytes, at: str, sent_signal: signal.Signals | None = None
) -> tuple[int, str]:
    """Run a command on a terminal, type something at a prompt; return its status and output.

    It may be sent a signal, too.
    """
    command, terminal = fork_on_terminal(*arguments)
    shown = ""
    try:
        while at not in shown:
            shown += os.read(terminal, 1000).decode()
        if sent_signal is not None:
            command.send_signal(sent_signal)
        os.write(terminal, typed)
        # A signal that comes just before it begins to read is noticed with the next one.
        while not select.select([terminal], [], [], 30)[0]:
            if sent_signal is not None:
                command.send_signal(sent_signal)
            os.write(terminal, typed)
        while True:
            shown += os.read(terminal, 1000).decode()
    except OSError:  # the other end is closed
        os.close(terminal)
    return command.wait(PATIENCE_S), shown


@pytest.mark.parametrize(
    ("typed", "sent_signal", "expected"),
    [
        (b"\x03", None, 130),
        (b"\x04", None, 1),
        (b"", signal.SIGTERM, 130),
        (b"", signal.SIGHUP, 130),
    ],
    ids=["Ctrl-C", "Ctrl-D", "SIGTERM", "SIGHUP"],
)
def test_cancelling_changes_nothing(
    tmp_path: Path, typed: bytes, sent_signal: signal.Signals | None, expected: int
) -> None:
    with running(tmp_path) as daemon:
        status, shown = on_terminal(
            "passwd",
            "--data",
            str(daemon.data),
            typed=typed,
            at="New password: ",
            sent_signal=sent_signal,
        )
        assert (status, "the password was not changed" in shown) == (expected, True)
        assert "Traceback" not in shown
        assert may_log_in(daemon.client(), PASSWORD)


def test_without_a_store_there_is_no_prompt(tmp_path: Path) -> None:
    status, shown = on_terminal("passwd", "--data", str(tmp_path), typed=b"", at="no store here")
    assert (status, "New password" in shown) == (1, False)


TOLD_TO_END_ONCE_IT_IS_CHANGED = """
import os, signal, sys

def end(event, arguments):
    if event == "os.remove" and str(arguments[0]).endswith("first-login.txt"):
        os.kill(os.getpid(), signal.{})

sys.addaudithook(end)
signal.signal(signal.SIGINT, signal.default_int_handler)
"""
"""Tells the command that follows to end as it removes the first password."""


@pytest.mark.parametrize("sent_signal", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_changed_password_is_confirmed(tmp_path: Path, sent_signal: str) -> None:
    with running(tmp_path) as daemon:
        first = daemon.data / "first-login.txt"
        first.touch()
        changed = finished_fork(
            ["passwd", "--data", str(daemon.data)],
            given=OTHER,
            before=TOLD_TO_END_ONCE_IT_IS_CHANGED.format(sent_signal),
        )
        assert (changed.returncode, changed.stdout) == (0, "The password of ada was changed.\n")
        assert not first.exists()
        assert may_log_in(Client(daemon.port), OTHER)
