"""A watermark is read as it was written, and not at all where it is not what was written."""

from pathlib import Path

import pytest

from medamad.storage.environment.environment import open_environment
from medamad.storage.errors import Damaged
from medamad.storage.segments.format import header_key
from medamad.storage.wal.records import read_watermark, write_watermark


def test_each_website_has_a_watermark_of_its_own(tmp_path: Path) -> None:
    env = open_environment(tmp_path, 16 << 20)
    with env.lmdb.begin(write=True) as txn:
        assert read_watermark(txn, env, 1) == 0
        write_watermark(txn, env, 1, 77)
        write_watermark(txn, env, 2, (1 << 64) - 1)
        write_watermark(txn, env, 1, 78)
        assert [read_watermark(txn, env, website) for website in (1, 2, 3)] == [
            78,
            (1 << 64) - 1,
            0,
        ]
    env.close()


def test_one_that_was_changed_or_stands_elsewhere_is_damaged(tmp_path: Path) -> None:
    env = open_environment(tmp_path, 16 << 20)
    with env.lmdb.begin(write=True) as txn:
        write_watermark(txn, env, 1, 77)
        stored = txn.get(header_key(1, 0), db=env.databases.headers)
        assert stored is not None
        txn.put(header_key(2, 0), stored, db=env.databases.headers)
        with pytest.raises(Damaged):
            read_watermark(txn, env, 2)
        for changed in (bytes([stored[0] ^ 1]) + stored[1:], stored[:-1], b""):
            txn.put(header_key(1, 0), changed, db=env.databases.headers)
            with pytest.raises(Damaged):
                read_watermark(txn, env, 1)
    env.close()
