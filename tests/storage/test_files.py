from pathlib import Path

import lmdb
import pytest

from medamad.storage.environment import files

FULL = "the disk is full"


@pytest.mark.parametrize(
    ("error", "on_full", "else_"),
    [
        (lmdb.MapFullError("x"), *["all that store.map_size allows is in use"] * 2),
        (lmdb.DiskError("x"), FULL, FULL),
        (lmdb.Error("mdb_txn_commit: Input/output error"), FULL, ""),
        (
            lmdb.Error("mdb_txn_commit: Disk quota exceeded"),
            FULL,
            "the quota of the disk is used up",
        ),
        (OSError(28, "No space left on device"), FULL, ""),
        (lmdb.CorruptedError("x"), "", ""),
        (lmdb.PageNotFoundError("x"), "", ""),
        (lmdb.InvalidError("x"), "", ""),
    ],
)
def test_exhausted_resources_are_named_and_damage_is_not_one(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    on_full: str,
    else_: str,
) -> None:
    for free, expected in ((0, on_full), (1 << 30, else_)):
        monkeypatch.setattr(files, "free_bytes", lambda _folder, free=free: free)
        assert files.shortage_behind(error, tmp_path) == expected
