"""A store from before the first format that is brought up to date is rejected and left alone."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import zstandard
from support.daemon import Daemon, finished, running

from medamad.storage.environment.environment import FILE_NAME, open_as_guest, open_environment
from medamad.storage.environment.meta import FIRST_FORMAT
from medamad.storage.errors import WrongFormat

FORMAT_4 = Path(__file__).parent / "data" / "format-4"
"""A store that a build with format 4 made, and what `medamad export` of that build wrote."""
MINOR_VERSION = re.compile(r'(_version":"\d+)\.\d+')
"""What an import leaves out of the versions in a file."""
MAP_SIZE = 64 << 20
DAY = ("--start", "2026-04-06T00:00:00Z", "--end", "2026-04-06T23:59:59Z")
MOST_STORE_BYTES = 8 << 20


def files_of(folder: Path) -> dict[str, bytes]:
    """Return the content of each file, except the lock files that opening a store makes."""
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith("lock")
    }


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """Return a data directory with the store of an earlier build."""
    folder = tmp_path / "data"
    folder.mkdir()
    packed = (FORMAT_4 / "store.mdb.zst").read_bytes()
    store = zstandard.ZstdDecompressor().decompress(packed, max_output_size=MOST_STORE_BYTES)
    (folder / FILE_NAME).write_bytes(store)
    return folder


def names_the_migration_commands(output: str, folder: Path) -> bool:
    return (
        f"{folder / FILE_NAME}: this store has format 4, and this build reads formats from"
        f" {FIRST_FORMAT} on"
        in output
        and f"`medamad export HOSTNAME --data {folder} --format ndjson" in output
        and "`medamad import --website HOSTNAME" in output
    )


def test_a_store_of_an_earlier_build_is_rejected_with_the_migration_commands(older: Path) -> None:
    before = files_of(older)
    with pytest.raises(WrongFormat) as refused:
        open_environment(older, MAP_SIZE)
    assert names_the_migration_commands(str(refused.value), older)
    with pytest.raises(WrongFormat):
        open_as_guest(older)
    assert files_of(older) == before


@pytest.mark.daemon
def test_the_daemon_does_not_start_on_an_older_store(older: Path) -> None:
    before = files_of(older)
    started = finished("run", older, "--listen", "tcp:0:interface=127.0.0.1")
    assert started.returncode == 1
    assert names_the_migration_commands(started.stderr, older)
    assert files_of(older) == before


@pytest.mark.daemon
@pytest.mark.parametrize("command", ["check", "backup", "export", "import", "retention"])
def test_commands_reject_an_older_store(older: Path, tmp_path: Path, command: str) -> None:
    arguments: dict[str, Sequence[str]] = {
        "backup": [str(tmp_path / "backup")],
        "export": ["example.com"],
        "import": ["--list"],
    }
    before = files_of(older)
    run = finished(command, older, *arguments.get(command, []))
    assert run.returncode == 1
    assert names_the_migration_commands(run.stderr, older)
    assert files_of(older) == before
    assert not (tmp_path / "backup").exists()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    with running(tmp_path / "new") as daemon:
        yield daemon


@pytest.mark.daemon
def test_importing_its_export_gives_the_same_statistics(daemon: Daemon, tmp_path: Path) -> None:
    daemon.client().add_website("example.com")
    files = [str(FORMAT_4 / "views.ndjson"), str(FORMAT_4 / "events.ndjson")]
    imported = finished("import", daemon.data, "--website", "example.com", *files)
    assert imported.returncode == 0, imported.stderr
    for what, period in (("statistics", DAY), ("views", ()), ("events", ())):
        written = tmp_path / f"{what}.ndjson"
        options = ["--what", what, "--format", "ndjson", "--output", str(written), *period]
        exported = finished("export", daemon.data, "example.com", *options)
        assert exported.returncode == 0, exported.stderr
        expected = (FORMAT_4 / f"{what}.ndjson").read_text()
        if what == "views":
            expected = expected.replace(',"first_today"', ',"since":"","first_today"')
        # It is from before there were networks of hosting providers.
        with written.open() as file:
            lines = [each for each in file if '"report":"hosting"' not in each]
        found = "".join(lines).replace(',"hosting":false', "")
        assert found == MINOR_VERSION.sub(r"\1", expected)


@pytest.mark.parametrize("found", [b"0", b"5", b"9", b"", b"six", b"10.5"])
def test_every_earlier_format_is_rejected(tmp_path: Path, found: bytes) -> None:
    open_environment(tmp_path, MAP_SIZE).close()
    guest = open_as_guest(tmp_path)
    with guest.lmdb.begin(write=True) as txn:
        txn.put(b"format", found, db=guest.databases.meta)
    guest.close()
    before = files_of(tmp_path)
    for _ in range(2):
        with pytest.raises(WrongFormat, match=f"this build reads formats from {FIRST_FORMAT} on"):
            open_environment(tmp_path, MAP_SIZE)
    assert files_of(tmp_path) == before
