"""The data folder: create it, and tell a new one from one whose store has gone."""

from collections.abc import Iterator
from contextlib import suppress
from os.path import samestat
from pathlib import Path
from typing import Final

from medamad.storage.environment.files import lock_of
from medamad.storage.errors import NoStore, StoreError

BACKUPS_NAME: Final = "backups"
"""The folder in the data folder that takes backups, unless another one is configured."""
BACKUP_SUFFIX: Final = ".mdb.zst"
"""The end of a backup's name."""
PRESENCE_NAME: Final = "presence.json"
"""The file that says since when hits have been accepted."""
RESTORED_NAME: Final = "store.restored"
"""The name of a store while it is being unpacked from a backup."""
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
            f"{store}: it is gone; that it was there is seen by {', '.join(names)}. Put it back, or"
            f" restore a backup (medamad restore FILE --data {store.parent}); to begin with an"
            " empty store, take away what is left"
        )


def remove_restored(store: Path) -> None:
    """Remove what an unfinished restore left; needs the lock.

    That is the unpacked store, and the second name of the store that it was to replace.
    """
    unpacked = store.with_name(RESTORED_NAME)
    unpacked.unlink(missing_ok=True)
    lock_of(unpacked).unlink(missing_ok=True)
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
