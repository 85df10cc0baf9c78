"""Root's commands on a data directory of another user, who may have planted links there."""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import IO, Self

import pytest
from attrs import frozen
from support.daemon import finished
from support.fast_hashing import fast_hashing
from support.forked_process import ForkedProcess, fork, running_script

from medamad.admin.protocol import Configuration
from medamad.cli import main
from medamad.domain.accounts import Account
from medamad.storage.accounts import ACCOUNT
from medamad.storage.environment import tree_check
from medamad.storage.environment.environment import FILE_NAME, LOCK_NAME, open_environment
from medamad.storage.environment.writer import Transaction
from medamad.storage.websites import Websites

__all__ = ("fast_hashing",)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

USER, GROUP = 12_345, 12_346
SECRET = b"root's alone\n" * 1_000
PASSWORD = "correct horse battery"

NAMES = (
    (FILE_NAME,),
    (f"{FILE_NAME}-lock",),
    (LOCK_NAME,),
    ("store.new",),
    ("store.new-lock",),
    ("store.restored",),
    ("store.compacted",),
    ("operator.sock",),
    ("store.state", "store.restored-lock", "kept.mdb.zst"),
    (
        *(".first-login.txt.new", ".presence.json.new", "visitor-keys.new"),
        *("compact-at-start", ".kept.mdb.zst.check", "kept.csv"),
    ),
    (
        *("first-login.txt", "presence.json", "visitor-keys.json"),
        *("backups", ".kept.mdb.zst.part", ".kept.csv.part"),
    ),
)
"""What the daemon and its commands open in the data directory.

No command that opens one of those together opens less of the others for what it finds there.
"""


@frozen
class Planted:
    """A data directory of a user, and a folder of root's."""

    data: Path
    roots: Path
    backup: Path
    """A sound backup, of root's."""

    def run_all(self) -> list[tuple[str, int]]:
        """Run every command that opens something in the directory; return the exit statuses."""
        views, backup = self.roots / "views.csv", self.roots / "backup.mdb.zst"
        statuses = []
        for command in (
            ["status"],
            ["check"],
            ["check", "--drop-damaged"],
            ["export", "example.com", "-o", str(views)],
            ["export", "example.com", "-o", str(self.data / "kept.csv")],
            ["backup", str(backup)],
            ["backup", str(self.data / "kept.mdb.zst")],
            ["backup", "--rotate"],
            ["token", "list"],
            ["token", "add", "new"],
            ["share", "add", "example.com", "new"],
            ["passwd"],
            ["goal", "list", "example.com"],
            ["alert", "list"],
            ["annotate", "add", "example.com", "Deploy"],
            ["settings", "export", "example.com"],
            ["retention"],
            ["privacy"],
            ["import", "--list"],
            ["import", "--website", "example.com", "--dry-run", str(self.backup)],
            ["restore", str(self.backup)],
            ["compact"],
        ):
            with read_from(f"{PASSWORD}\n"):
                status = main([*command, "--data", str(self.data)])
            statuses.append((" ".join(command[:2]), status))
            assert (os.geteuid(), os.getegid()) == (0, 0)
        views.unlink(missing_ok=True)
        backup.unlink(missing_ok=True)
        return statuses

    def give_away(self) -> None:
        """Give the data directory to the user."""
        for path in (self.data, *self.data.rglob("*")):
            os.lchown(path, USER, GROUP)

    def run_all_with_links(self, names: Iterable[str], target: Path) -> None:
        """Run every command with links in place of files or folders, and put these back."""
        for there in (self.data / name for name in names):
            if there.exists():
                there.rename(there.with_name(f"away.{there.name}"))
            there.symlink_to(target)
            os.lchown(there, USER, GROUP)
        self.run_all()
        for there in (self.data / name for name in names):
            there.unlink(missing_ok=True)
            away = there.with_name(f"away.{there.name}")
            if away.exists():
                away.rename(there)


@contextmanager
def read_from(text: str) -> Iterator[None]:
    """Let commands read a text."""
    before, sys.stdin = sys.stdin, io.StringIO(text)
    try:
        yield
    finally:
        sys.stdin = before


WITHIN_REACH, OUT_OF_REACH = 0o755, 0o700


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """A data directory of root's, which every command was run on."""
    folder = tmp_path_factory.mktemp("used")
    used = Planted(folder / "data", folder / "roots", folder / "sound.mdb.zst")
    used.roots.mkdir(mode=0o755)
    environment = open_environment(used.data, 16 << 20)
    with environment.lmdb.begin(write=True) as txn:
        Websites(environment.databases).add(Transaction(txn), "example.com", 1)
        account = Account(username="admin", password_hash="", created=1, updated=1)
        ACCOUNT.write(txn, environment.databases, b"", account)
    environment.close()
    assert main(["backup", str(used.backup), "--data", str(used.data)]) == 0
    # What commands import when they need it may be out of the other user's reach later.
    used.run_all()
    return used


@pytest.fixture
def planted(request: pytest.FixtureRequest, used: Planted, tmp_path: Path) -> Iterator[Planted]:
    with tempfile.TemporaryDirectory() as name:
        # systemd keeps the directories of dynamic users in one that only root may enter.
        Path(name).chmod(getattr(request, "param", OUT_OF_REACH))
        data, roots = Path(name) / "data", tmp_path / "roots"
        shutil.copytree(used.data, data)
        roots.mkdir(mode=0o755)
        yield Planted(data, roots, used.backup)


@frozen
class ForkedCheck:
    """A process that reads a store, with what is used of the interface of `subprocess.Popen`."""

    process: ForkedProcess
    files: Sequence[IO[str]]

    @classmethod
    def start(cls, command: Sequence[str], **_: object) -> Self:
        files = [TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115 - closed once they are read
        # It ends when it has another parent, as it has at first.
        wait = f"import os, time\nwhile os.getppid() != {os.getpid()}: time.sleep(0.001)\n"
        _, _, _, _, *arguments = command
        before = wait + running_script(Path(tree_check.__file__), *arguments)
        with Path(os.devnull).open() as nothing:
            return cls(fork((), [nothing, *files], before=before), files)

    def wait(self, seconds: float | None = None) -> int:
        return self.process.wait(seconds)

    def kill(self) -> None:
        self.process.kill()

    def communicate(self) -> tuple[str, ...]:
        self.wait()
        written = []
        for file in self.files:
            with file:
                file.seek(0)
                written.append(file.read())
        return tuple(written)

    @property
    def returncode(self) -> int | None:
        return self.process.poll()


@pytest.fixture
def forked_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the processes that read a store: to start them takes most of the CPU of commands."""
    patched = SimpleNamespace(**vars(subprocess) | {"Popen": ForkedCheck.start})
    monkeypatch.setattr(tree_check, "subprocess", patched)


@pytest.mark.parametrize("planted", [WITHIN_REACH, OUT_OF_REACH], indirect=True)
def test_without_links_all_is_as_for_the_owner(planted: Planted) -> None:
    before = planted.run_all()
    assert list(planted.roots.iterdir()) == []
    planted.give_away()
    assert planted.run_all() == before
    # No daemon runs, and the backup is nothing to import.
    assert [name for name, status in before if status] == ["status", "import --website"]
    for path in (planted.data, *planted.data.rglob("*")):
        assert (path.stat().st_uid, path.stat().st_gid) == (USER, GROUP), path


@pytest.mark.usefixtures("forked_checks")
@pytest.mark.parametrize("names", NAMES, ids=itemgetter(0))
def test_a_link_leads_root_nowhere(planted: Planted, names: Sequence[str]) -> None:
    planted.give_away()
    secret, missing = planted.roots / "secret", planted.roots / "missing"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    for target in (secret, missing):
        planted.run_all_with_links(names, target)
        assert list(planted.roots.iterdir()) == [secret]
        status = secret.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (0, 0, 0o600)
        assert secret.read_bytes() == SECRET


@pytest.mark.usefixtures("forked_checks")
@pytest.mark.parametrize("planted", [WITHIN_REACH, OUT_OF_REACH], indirect=True)
def test_a_link_to_a_folder_leads_root_nowhere(planted: Planted) -> None:
    planted.give_away()
    kept = [planted.roots / f"medamad-2020010{day}-000000Z.mdb.zst" for day in range(1, 10)]
    for file in (*kept, planted.roots / FILE_NAME):
        file.write_bytes(SECRET)
    for names in NAMES:
        planted.run_all_with_links(names, planted.roots)
        found = sorted(planted.roots.iterdir())
        assert found == sorted((*kept, planted.roots / FILE_NAME))
        for file in found:
            assert (file.read_bytes(), file.stat().st_uid) == (SECRET, 0)


def test_root_does_not_run_the_daemon_there(planted: Planted) -> None:
    planted.give_away()
    before = sorted(planted.data.rglob("*"))
    ran = finished("run", planted.data)
    assert ran.returncode == 1
    assert f"{planted.data}: it belongs to another user" in ran.stderr
    assert sorted(planted.data.rglob("*")) == before


@frozen
class Impostor:
    """A program of the service's user that says it was the daemon."""

    answer: Configuration

    def request(self, *_: object) -> Configuration:
        return self.answer


@pytest.mark.parametrize("planted", [WITHIN_REACH, OUT_OF_REACH], indirect=True)
@pytest.mark.parametrize(
    "command", [["retention"], ["export", "example.com"], ["share", "add", "example.com", "other"]]
)
def test_root_reads_no_file_that_an_impostor_names(
    planted: Planted,
    command: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    secret = planted.roots / "secret.toml"
    secret.write_text("[roots]\nsecret = 1\n")
    secret.chmod(0o600)
    impostor = nullcontext(Impostor(Configuration(file=str(secret), timezone="UTC")))
    monkeypatch.setattr("medamad.cli.support.connect", lambda _: impostor)
    assert main([*command, "--data", str(planted.data)]) != 0
    assert "roots: unknown key" in capsys.readouterr().err
    planted.give_away()
    assert main([*command, "--data", str(planted.data)]) != 0
    written = capsys.readouterr()
    assert "Permission denied" in written.err
    assert "unknown key" not in written.err + written.out
    assert main(["share", "list", "--data", str(planted.data)]) == 0
    assert "other" not in capsys.readouterr().out


@pytest.mark.parametrize("planted", [WITHIN_REACH, OUT_OF_REACH], indirect=True)
def test_root_imports_no_file_that_the_user_put_there(
    planted: Planted, capsys: pytest.CaptureFixture[str]
) -> None:
    planted.give_away()
    secret = planted.roots / "access.log"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    named = planted.data / "access.log"
    named.symlink_to(secret)
    os.lchown(named, USER, GROUP)
    imported = main(
        [
            *("import", "--website", "example.com", "--dry-run", str(named)),
            *("--data", str(planted.data)),
        ]
    )
    assert imported == 1
    assert "expected a file outside the data directory" in capsys.readouterr().err
