import json
from functools import partial
from pathlib import Path

import pytest
from support.daemon import HIT, finished, running, until

from medamad.cli import main
from medamad.storage.environment.environment import FILE_NAME, open_as_guest

pytestmark = pytest.mark.daemon

check = partial(finished, "check")


def test_read_errors_are_reported(tmp_path: Path) -> None:
    # The first page of a process is in no memory.
    (tmp_path / FILE_NAME).symlink_to("/proc/self/mem")
    checked = check(tmp_path)
    assert checked.returncode == 1
    reason = "cannot be read: Input/output error"
    assert checked.stderr == f"medamad: {tmp_path / FILE_NAME}: {reason}\n"


def test_it_reports_contents_and_damage(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        client = daemon.client()
        client.add_website("example.com")
        assert client.request("POST", "/api/event/hit", HIT).status == 204
        file = daemon.data / FILE_NAME
        beside = check(daemon.data)
        right = f"{file}: no problems found (1 website, 1 view, 0 segments)\n"
        assert beside.returncode == 0, beside.stderr
        assert beside.stdout == (
            f"{daemon.data}: in use by a running daemon; "
            f"checking what it has stored so far\n{right}"
        )
        report = json.loads(check(daemon.data, "--json").stdout)
        counts = {"websites": 1, "views": 1, "blocks": 0, "days": 0}
        assert report == {"store": str(file), "findings": [], **counts}
        assert client.request("POST", "/api/event/hit", HIT | {"b": "2"}).status == 204
        daemon.stop()
        alone = check(daemon.data)
        assert (alone.returncode, alone.stderr) == (0, "")
        assert alone.stdout == right.replace("1 view,", "2 views,")
        guest = open_as_guest(daemon.data)
        with guest.lmdb.begin(write=True) as txn:
            cursor = txn.cursor(db=guest.databases.wal)
            assert cursor.first()
            *others, last = cursor.value()
            cursor.put(cursor.key(), bytes((*others, last ^ 1)))
        guest.close()
        damaged = check(daemon.data)
        assert damaged.returncode == 1
        assert f"medamad: {file}: website 1, time " in damaged.stderr
        assert damaged.stderr.endswith(": a damaged record\n")
        assert damaged.stdout.startswith(f"{file}: 1 problem found (")
        daemon.start()
        until(lambda: "damaged data is left out of results: website 1" in daemon.log)


def test_it_writes_nothing(tmp_path: Path) -> None:
    with running(tmp_path) as daemon:
        daemon.stop()
        before = (daemon.data / FILE_NAME).read_bytes()
        times = (daemon.data / FILE_NAME).stat().st_mtime_ns
        assert check(daemon.data).returncode == 0
        assert (daemon.data / FILE_NAME).read_bytes() == before
        assert (daemon.data / FILE_NAME).stat().st_mtime_ns == times


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "there is no store here"),
        (b"", "not a store of medamad"),
        (b"short", "not a store of medamad"),
        (b"no store " * 2_000, "not a store of medamad"),
    ],
)
def test_a_missing_store_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / FILE_NAME).write_bytes(content)
    assert main(["check", "--data", str(tmp_path)]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith(f"medamad: {tmp_path}")
    assert reason in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
