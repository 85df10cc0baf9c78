"""The store's format number and the names in `meta`; a store in another format is refused."""

from pathlib import Path
from typing import Final

import lmdb

from medamad.storage.environment.files import Txn
from medamad.storage.errors import WrongFormat

FORMAT: Final = 5
"""Format numbers only count up, and none is used again."""
META: Final = b"meta"
FORMAT_KEY: Final = b"format"
STORE_ID: Final = b"store-id"
"""The random identifier of a store, by which exported views name it."""
TRUSTED_TIME: Final = b"trusted-time"
"""The time by which retention deletes; see `trusted_clock`."""
KNOWN_NAMES: Final = frozenset(
    (
        *(FORMAT_KEY, STORE_ID, TRUSTED_TIME, b"account", b"beacon-secret"),
        *(b"last-website", b"last-segment", b"last-batch", b"sequence"),
    )
)
"""The names in `meta`, besides those that begin with a prefix."""

_BRING_OVER: Final = (
    "Export every website with the build that made it (`medamad export HOSTNAME --data {folder}"
    " --format ndjson --output views.ndjson`, and again with `--what events`), then start this"
    " build on an empty folder and import the files (`medamad import --website HOSTNAME"
    " views.ndjson events.ndjson`). docs/install.md has the steps"
)


def read_format(env: lmdb.Environment, txn: Txn) -> str:
    """Return a store's format, "none" without one. Raises lmdb.Error if it is not our store."""
    stored = txn.get(FORMAT_KEY, db=env.open_db(META, txn=txn, create=False))
    return (stored or b"none").decode("ascii", "replace")


def check_format(path: Path, found: str) -> None:
    """Raise WrongFormat unless a store has the format of this build."""
    if found != str(FORMAT):
        raise WrongFormat(
            f"{path}: this store has format {found}, and this build reads format {FORMAT} only. "
            f"{_BRING_OVER.format(folder=path.parent)}"
        )
