"""The help and the exit statuses of commands."""

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest
from pytest_twisted import blockon
from support.daemon import MEDAMAD
from support.forked_process import fork
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from medamad.cli import COMMANDS, main, make_parser, module_of
from medamad.cli.exit_statuses import statuses
from medamad.storage.environment.environment import open_environment
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store

BY_CONFIG = ("export", "import", "privacy", "report", "retention", "run")
BY_DATA = (
    ("status",),
    ("check",),
    ("backup", "backup"),
    ("restore", "none"),
    ("import", "--list"),
    ("import", "--undo", "1"),
    ("passwd",),
    ("token", "list"),
    ("share", "list"),
    ("goal", "list", "example.com"),
    ("funnel", "list", "example.com"),
    ("alert", "list"),
    ("mail", "test", "ada@example.com"),
    ("annotate", "list", "example.com"),
    ("settings", "export", "example.com"),
)


def example(command: str) -> list[str]:
    """Return the arguments of the first example in the help of a command."""
    line, _ = module_of(command).EXAMPLES[0]
    return words(line)[1:]


def words(line: str) -> list[str]:
    """Split a command line, without what the shell does about files."""
    return shlex.split(line.partition(">")[0].partition("<")[0])


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_help_explains_each_exit_status(
    capsys: pytest.CaptureFixture[str], command: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*filter(None, [command]), "--help"])
    assert ended.value.code == 0
    captured = capsys.readouterr().out.partition("\nexit status:\n")[2].splitlines()
    assert [line.split(maxsplit=1) for line in captured] == [
        [str(status), meaning] for status, meaning in statuses(command).items()
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_in_the_help_are_valid(command: str) -> None:
    parser = make_parser([command])
    examples = module_of(command).EXAMPLES
    assert examples
    for line, _ in examples:
        program, *arguments = words(line)
        assert program == "medamad"
        assert parser.parse_args(arguments).command == command


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_64(capsys: pytest.CaptureFixture[str], command: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*example(command), "--dance"])
    assert ended.value.code == 64
    assert 64 in statuses(command)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines()[-1] == "medamad: unrecognized arguments: --dance"


@pytest.fixture
def unusable(tmp_path: Path) -> Path:
    """Return a configuration that cannot be used."""
    file = tmp_path / "medamad.toml"
    file.write_text("[server]\nspeed = 80\n", "utf-8")
    return file


@pytest.mark.parametrize("command", BY_CONFIG)
def test_an_invalid_configuration_is_78(
    unusable: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    given = ["--data", str(unusable.parent), "--config", str(unusable)]
    assert main([*example(command), *given]) == 78
    assert 78 in statuses(command)
    assert capsys.readouterr().err == f"medamad: {unusable}: server.speed: unknown key\n"


@pytest.mark.parametrize("command", BY_DATA)
def test_with_a_data_directory_an_invalid_configuration_is_skipped(
    tmp_path: Path, unusable: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    assert main([*command, "--config", str(unusable)]) == 78
    assert 78 in statuses(command[0])
    wrong = f"medamad: {unusable}: server.speed: unknown key"
    assert capsys.readouterr().err == f"{wrong}\n", "nobody says where the data are"
    no_store = tmp_path / "none"
    status = main([*command, "--data", str(no_store)])
    alone = capsys.readouterr()
    assert main([*command, "--data", str(no_store), "--config", str(unusable)]) == status != 78
    captured = capsys.readouterr()
    assert captured.out == alone.out
    went_on = f"continuing without this file, on {no_store}"
    assert captured.err == f"{wrong}; {went_on}\n{alone.err}"


@pytest.mark.parametrize(
    ("command", "status"),
    [("check", 1), ("export", 1), ("backup", 1), ("import", 1), ("token", 1), ("status", 3)],
)
def test_a_missing_store_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, status: int
) -> None:
    assert main([*example(command), "--data", str(tmp_path)]) == status
    assert status in statuses(command)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("medamad: ")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    "command",
    [("version",), ("completion", "bash"), ("token", "list"), ("import", "--list", "--json")],
)
def test_a_closed_pipe_is_not_an_error(tmp_path: Path, command: tuple[str, ...]) -> None:
    open_environment(tmp_path / "medamad-data", 16 << 20).close()
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        assert finished_with(command, tmp_path, pipe) == (141, "")
    assert 141 in statuses(command[0])


def finished_with(
    command: Sequence[str], folder: Path, output: IO[bytes], before: str = ""
) -> tuple[int, str]:
    """Run a command with that standard output; return its status and what it reports."""
    with Path(os.devnull).open("rb") as nothing, (folder / "error.txt").open("wb") as error:
        status = fork(command, (nothing, output, error), folder, before=before).wait(60)
    return status, (folder / "error.txt").read_text("utf-8")


WITH_OUTPUT = [
    ("export", "--help"),
    ("version",),
    ("completion", "bash"),
    ("status", "--json"),
    ("export", "example.com", "--data", "data"),
    ("retention", "--json", "--data", "data"),
]


@pytest.fixture
def with_data(tmp_path: Path) -> Path:
    """Return a folder in which the data of a website are."""
    settings = StoreSettings(map_size=64 << 20, min_free_disk=0)
    store = start_store(tmp_path / "data", settings, reactor)
    blockon(Deferred.fromCoroutine(store.add_website("example.com", 1)))
    blockon(Deferred.fromCoroutine(store.close()))
    return tmp_path


FAILING = pytest.mark.parametrize(
    ("target", "reason"),
    [(">/dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
    ids=["full", "closed"],
)


@FAILING
def test_failing_output_is_reported_by_a_started_command(target: str, reason: str) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", f"exec {shlex.join([*MEDAMAD, 'version'])} {target}"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONUNBUFFERED": ""},
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stderr) == (1, f"medamad: standard output: {reason}\n")


@pytest.mark.parametrize("command", WITH_OUTPUT)
@FAILING
def test_failing_output_is_reported(
    with_data: Path, target: str, reason: str, command: tuple[str, ...]
) -> None:
    before = ""
    if target == ">&-":
        before = "import os, sys; os.close(1); sys.stdout = None"  # as the interpreter starts
    with Path("/dev/full").open("wb") as full:
        ended = finished_with(command, with_data, full, before)
    assert ended == (1, f"medamad: standard output: {reason}\n")
    assert 1 in statuses(command[0])


def test_a_full_file_is_named(with_data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    output = ["--output", "/dev/full", "--data", str(with_data / "data")]
    assert main(["export", "example.com", *output]) == 1
    assert capfd.readouterr() == ("", "medamad: /dev/full: No space left on device\n")


def exported_to_a_pipe(script: str, folder: Path) -> str:
    """Return what an export says that something is done before."""
    command = ("export", "example.com", "--data", "data")
    program = f"{script}\nimport sys; from medamad.cli import main; sys.exit(main())"
    ended = subprocess.run(
        [sys.executable, "-c", program, *command],
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder)},
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    return ended.stderr


@pytest.mark.parametrize(
    ("most_bytes", "expected"),
    [
        (100, "{folder}: File too large\n"),
        (0, "temporary files: No usable temporary directory found in ['{folder}', "),
    ],
)
def test_full_temporary_files_are_named(with_data: Path, most_bytes: int, expected: str) -> None:
    limit = f"({most_bytes}, {most_bytes})"
    script = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, {limit})"
    printed = exported_to_a_pipe(script, with_data)
    assert printed.startswith(f"medamad: {expected.format(folder=with_data)}")
    assert printed.count("\n") == 1


def test_unreadable_data_is_named(with_data: Path) -> None:
    script = """
import errno, os, pathlib
opened = pathlib.Path.open
def failing(path, *arguments, **options):
    if path.name == "store.mdb":
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return opened(path, *arguments, **options)
pathlib.Path.open = failing
"""
    printed = exported_to_a_pipe(script, with_data)
    store = with_data / "data" / "store.mdb"
    assert printed == f"medamad: {store}: cannot be read: Input/output error\n"


@pytest.mark.parametrize("command", [("status", "--data", "nowhere"), ("export",)])
def test_a_failed_command_is_logged_as_an_error(tmp_path: Path, command: tuple[str, ...]) -> None:
    journal_file = tmp_path / "journal"
    with journal_file.open("wb") as journal:
        status = os.fstat(journal.fileno())
        environ = os.environ | {"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"}
        with Path(os.devnull).open("r+b") as nothing:
            ended = fork(command, (nothing, nothing, journal), tmp_path, environ).wait(60)
    assert ended in (3, 64)
    assert journal_file.read_text("utf-8").splitlines()[-1].startswith("<3>medamad")


def test_an_interrupted_command_ends_without_a_traceback(tmp_path: Path) -> None:
    pipe = tmp_path / "medamad.toml"
    os.mkfifo(pipe)
    # A background job of a shell is started with SIGINT ignored, and would hand that down.
    before = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    with Path(os.devnull).open("r+b") as nothing, (tmp_path / "error.txt").open("wb") as error:
        command = fork(["check-config", str(pipe)], (nothing, nothing, error), before=before)
    writing = os.open(pipe, os.O_WRONLY)  # waits until the command reads
    command.send_signal(signal.SIGINT)
    # What comes just before it begins to read is noticed when that ends.
    os.close(writing)
    assert command.wait(60) == 130
    assert (tmp_path / "error.txt").read_text("utf-8") == ""
    assert 130 in statuses("check-config")
