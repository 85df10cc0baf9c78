"""Root's commands on a data directory of another user, who may have planted links there."""

import io
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from attrs import frozen
from support.daemon import finished

from medamad.admin.protocol import Configuration
from medamad.cli import main
from medamad.domain.accounts import Account
from medamad.storage.accounts import ACCOUNT
from medamad.storage.environment.environment import FILE_NAME, LOCK_NAME, open_environment
from medamad.storage.environment.writer import Transaction
from medamad.storage.websites import Websites

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

USER, GROUP = 12_345, 12_346
SECRET = b"root's alone\n" * 1_000
PASSWORD = "correct horse battery"

NAMES = (
    FILE_NAME,
    f"{FILE_NAME}-lock",
    LOCK_NAME,
    "store.state",
    "store.new",
    "store.new-lock",
    "store.restored",
    "store.restored-lock",
    "store.compacted",
    "compact-at-start",
    "presence.json",
    ".presence.json.new",
    "visitor-keys.json",
    "visitor-keys.new",
    "first-login.txt",
    ".first-login.txt.new",
    "operator.sock",
    ".kept.mdb.zst.part",
    ".kept.mdb.zst.check",
    "kept.mdb.zst",
    ".kept.csv.part",
    "kept.csv",
    "backups",
)
"""What the daemon and its commands open in the data directory."""


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

    def plant(self, name: str, target: Path) -> None:
        """Put a link in place of a file or folder."""
        there = self.data / name
        if there.exists():
            there.rename(there.with_name(f"away.{name}"))
        there.symlink_to(target)
        os.lchown(there, USER, GROUP)

    def put_back(self, name: str) -> None:
        """Put the file or folder in place of the link."""
        there = self.data / name
        there.unlink(missing_ok=True)
        away = there.with_name(f"away.{name}")
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


@pytest.fixture
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Planted]:
    with tempfile.TemporaryDirectory() as name:
        # systemd keeps the directories of dynamic users in one that only root may enter.
        Path(name).chmod(getattr(request, "param", OUT_OF_REACH))
        data, backup, roots = Path(name) / "data", tmp_path / "sound.mdb.zst", tmp_path / "roots"
        roots.mkdir(mode=0o755)
        environment = open_environment(data, 16 << 20)
        with environment.lmdb.begin(write=True) as txn:
            Websites(environment.databases).add(Transaction(txn), "example.com", 1)
            account = Account(username="admin", password_hash="", created=1, updated=1)
            ACCOUNT.write(txn, environment.databases, b"", account)
        environment.close()
        assert main(["backup", str(backup), "--data", str(data)]) == 0
        planted = Planted(data, roots, backup)
        # What commands import when they need it may be out of the other user's reach here.
        planted.run_all()
        yield planted


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


@pytest.mark.parametrize("name", NAMES)
def test_a_link_leads_root_nowhere(planted: Planted, name: str) -> None:
    planted.give_away()
    secret, missing = planted.roots / "secret", planted.roots / "missing"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    for target in (secret, missing):
        planted.plant(name, target)
        planted.run_all()
        planted.put_back(name)
        assert list(planted.roots.iterdir()) == [secret]
        status = secret.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (0, 0, 0o600)
        assert secret.read_bytes() == SECRET


@pytest.mark.parametrize("planted", [WITHIN_REACH, OUT_OF_REACH], indirect=True)
def test_a_link_to_a_folder_leads_root_nowhere(planted: Planted) -> None:
    planted.give_away()
    kept = [planted.roots / f"medamad-2020010{day}-000000Z.mdb.zst" for day in range(1, 10)]
    for file in (*kept, planted.roots / FILE_NAME):
        file.write_bytes(SECRET)
    for name in ("backups", *NAMES):
        planted.plant(name, planted.roots)
        planted.run_all()
        planted.put_back(name)
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
    planted.plant("access.log", secret)
    named = str(planted.data / "access.log")
    imported = main(
        ["import", "--website", "example.com", "--dry-run", named, "--data", str(planted.data)]
    )
    assert imported == 1
    assert "expected a file outside the data directory" in capsys.readouterr().err
