"""The files of the data's folder that are the daemon's own: no command writes in their place."""

import os
from pathlib import Path
from typing import Final

from medamad.account import first_login
from medamad.model.errors import BadRequest
from medamad.operator.wire import SOCKET_NAME
from medamad.store.environment import FILE_NAME, LOCK_NAME
from medamad.store.folder import PRESENCE_NAME

_BEGINNINGS: Final = (
    f"{Path(FILE_NAME).stem}.",
    LOCK_NAME,
    SOCKET_NAME,
    PRESENCE_NAME,
    first_login.FILE_NAME,
)
"""How their names begin, after a point perhaps: also those of what is being made or was kept."""


def refuse_own(file: Path, data_dir: Path) -> None:
    """Raise BadRequest where what is written as a file would take the place of one of our own."""
    if _is_own(file, data_dir):
        raise BadRequest(
            f"{file}: so the daemon names a file of its own, which would be lost;"
            " name another one to write into"
        )


def _is_own(file: Path, data_dir: Path) -> bool:
    store = data_dir / FILE_NAME
    if file.exists() and store.exists() and file.samefile(store):
        return True  # also where it is kept elsewhere, and a link leads there
    return any(
        named.name.removeprefix(".").startswith(_BEGINNINGS)
        and named.parent.is_dir()
        and data_dir.is_dir()
        and named.parent.samefile(data_dir)
        for named in (file, Path(os.path.realpath(file)))
    )
