"""The folder of the data: made, and told apart from one whose store is gone."""

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
"""The file in which it is written since when hits have been taken."""
RESTORED_NAME: Final = "store.restored"
"""What a store is called while it is unpacked from a backup."""
REPLACED: Final = ".replaced-"
"""What the name of a store that a backup has replaced goes on with, before the time of that."""


def make_folder(folder: Path) -> None:
    """Make the folder where it is not there. Raises StoreError for what is none, and OSError."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError as error:
        in_the_way = Path(error.filename)
        check_unlinked(in_the_way)
        raise StoreError(f"{in_the_way}: Not a directory") from error


def check_unlinked(path: Path) -> None:
    """Raise StoreError where a path that is not there is a link: what is elsewhere is not lost."""
    if path.is_symlink():
        raise StoreError(f"{path}: it leads to {path.readlink()}, which is not there")


def check_none_was_there(store: Path) -> None:
    """Raise NoStore where something shows that there was a store: an empty one must not hide it.

    What a start leaves that ended before the first store had its name shows nothing.
    """
    names = [str(path.relative_to(store.parent)) for path in _left_of(store)]
    if names:
        raise NoStore(
            f"{store}: it is gone; that it was there is seen by {', '.join(names)}. Put it back, or"
            f" restore a backup (medamad restore FILE --data {store.parent}); to begin with an"
            " empty store, take away what is left"
        )


def remove_restored(store: Path) -> None:
    """Remove what there is of a backup that was not put in a store's place; needs the lock.

    That is what was unpacked of it, and the further name of the store that was to be replaced.
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
