"""The state file: whether the last daemon closed the store in an orderly way.

It says "open" for as long as a daemon has the store, so that whatever kills the process, also while
the store is being opened, shows at the next start.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Final

from medamad.storage.environment.files import give_to_owner, sync_folder

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
    give_to_owner(folder, path)
    sync_folder(folder)


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
