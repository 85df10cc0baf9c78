"""The data folder: create it, detect that its store is missing, and its state file.

The state file says whether the last daemon closed the store in an orderly way: it says "open" for
as long as a daemon has the store, so that whatever kills the process, also while the store is being
opened, shows at the next start.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from os.path import samestat
from pathlib import Path
from typing import Final

from medamad.storage.environment.files import lock_of, sync
from medamad.storage.errors import NoStore, StoreError

BACKUPS_NAME: Final = "backups"
"""The folder in the data folder that takes backups, unless another one is configured."""
BACKUP_SUFFIX: Final = ".mdb.zst"
"""The end of a backup's name."""
PRESENCE_NAME: Final = "presence.json"
"""The file that says since when hits have been accepted."""
RESTORED_NAME: Final = "store.restored"
"""The name of a store while it is being unpacked from a backup."""
COMPACTED_NAME: Final = "store.compacted"
"""The name of a store while it is being written anew."""
COMPACT_NAME: Final = "compact-at-start"
"""The file that asks the next start to compact the store; it has why the last one could not."""
REPLACED: Final = ".replaced-"
"""Follows the name of a store that a backup replaced; the time follows."""


def make_folder(folder: Path) -> None:
    """Create the folder if it is missing. Raises StoreError if something else is there, OSError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        in_the_way = Path(error.filename)
        check_unlinked(in_the_way)
        raise StoreError(f"{in_the_way}: Not a directory") from error


def open_to_others(folder: Path) -> str:
    """Return a warning if every user of the machine may enter the folder, "" otherwise."""
    if not folder.stat().st_mode & stat.S_IRWXO:
        return ""
    return f"every user of this machine may enter the data directory: chmod o= {folder}"


def check_unlinked(path: Path) -> None:
    """Raise StoreError for a link to a missing file: the store may be elsewhere for now."""
    if path.is_symlink():
        raise StoreError(f"{path}: it leads to {path.readlink()}, which is not there")


def check_none_was_there(store: Path) -> None:
    """Raise NoStore if other files show that there was a store: an empty one must not hide it.

    What the very first start leaves, if it is killed before it has created a store, does not count.
    """
    names = [str(path.relative_to(store.parent)) for path in _left_of(store)]
    if names:
        raise NoStore(
            f"{store}: it is missing, and {', '.join(names)} shows that there was one. Put it back,"
            f" or restore a backup (medamad restore FILE --data {store.parent}); to begin with an"
            " empty store, delete what is left"
        )


def remove_unfinished(store: Path) -> None:
    """Remove what an unfinished restore or compaction left; needs the lock.

    That is the new store, and the second name of the store that a backup was to replace.
    """
    for name in (RESTORED_NAME, COMPACTED_NAME):
        new = store.with_name(name)
        new.unlink(missing_ok=True)
        lock_of(new).unlink(missing_ok=True)
    with suppress(FileNotFoundError):
        there = store.lstat()
        for kept in store.parent.glob(f"{store.name}{REPLACED}*"):
            if samestat(kept.lstat(), there):
                kept.unlink()


def _left_of(store: Path) -> Iterator[Path]:
    for path in (lock_of(store), store.with_name(PRESENCE_NAME)):
        if path.exists():
            yield path
    backups = store.parent / BACKUPS_NAME
    if any(backups.glob(f"*{BACKUP_SUFFIX}")):
        yield backups


STATE_NAME: Final = "store.state"
_MODE: Final = 0o600


class StoreState(Enum):
    """What the last daemon left."""

    CLEAN = "clean"
    """It closed the store."""
    OPEN = "open"
    """It has the store open, or was killed."""
    UNCHECKED = "unchecked"
    """The same, and the daemon had not read all of the store since the unclean shutdown before."""
    DAMAGED = "damaged"
    """A write found damage; the reason follows in the file."""


def read_state(folder: Path) -> StoreState:
    """Return the state; OPEN for a missing or unreadable file."""
    try:
        return StoreState(_read(folder)[0])
    except (OSError, ValueError):
        return StoreState.OPEN


def read_damage(folder: Path) -> str:
    """Return what was damaged when the state was written as DAMAGED. Raises OSError."""
    return _read(folder)[1]


def write_state(folder: Path, state: StoreState, damage: str = "") -> None:
    """Write the state and sync it to disk. Raises OSError."""
    path = folder / STATE_NAME
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _MODE)
    try:
        os.write(descriptor, f"{state.value}\n{damage}".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    sync(folder)


@contextmanager
def opening(folder: Path) -> Iterator[None]:
    """Mark a store as open while it is being opened; take that back if it is refused."""
    path = folder / STATE_NAME
    before = path.read_bytes() if path.exists() else None
    if before is None or read_state(folder) is StoreState.CLEAN:
        write_state(folder, StoreState.OPEN)
    try:
        yield
    except BaseException:
        if before is None:
            path.unlink(missing_ok=True)
        else:
            path.write_bytes(before)
        raise


def mark_closed(folder: Path) -> None:
    """Mark a store as closed; one that was not read to its end is read again at the next start."""
    before = read_state(folder)
    if before is not StoreState.DAMAGED:
        is_checked = before is not StoreState.UNCHECKED
        write_state(folder, StoreState.CLEAN if is_checked else StoreState.OPEN)


def _read(folder: Path) -> tuple[str, str]:
    state, _, damage = (folder / STATE_NAME).read_text("utf-8", "replace").partition("\n")
    return state, damage
