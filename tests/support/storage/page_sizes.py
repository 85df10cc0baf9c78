"""Stores as machines with larger pages make them; all but the first two pages LMDB writes."""

import struct
from pathlib import Path

import lmdb

_MAP_SIZE = 256 << 20
_NO_TREE = struct.Struct("<IHHQQQQQ")
_FIRST = struct.Struct("<QHHHHIIQQ")
"""Page number, padding, flags, two of no use here, magic number, version, address, map size."""


def copy_with_pages_of(size: int, source: Path, target: Path) -> None:
    """Copy all that a store holds into a new file, whose pages are of so many bytes."""
    target.write_bytes(b"".join(_first_page(place, size) for place in (0, 1)))
    old = lmdb.open(str(source), subdir=False, max_dbs=16, lib_version=0, readonly=True)
    new = lmdb.open(str(target), subdir=False, max_dbs=16, lib_version=0, map_size=_MAP_SIZE)
    assert new.stat()["psize"] == size
    with old.begin() as reading, new.begin(write=True) as writing:
        for name, _ in reading.cursor():
            from_here = old.open_db(name, txn=reading, create=False)
            to_here = new.open_db(name, txn=writing)
            for key, value in reading.cursor(from_here):
                assert writing.put(key, value, db=to_here)
    new.close()
    old.close()
    Path(f"{target}-lock").unlink()


def _first_page(place: int, size: int) -> bytes:
    """What LMDB writes when it makes a file: no tree yet, two pages, no transaction."""
    nowhere = (1 << 64) - 1
    free = _NO_TREE.pack(size, 8, 0, 0, 0, 0, 0, nowhere)
    main = _NO_TREE.pack(0, 0, 0, 0, 0, 0, 0, nowhere)
    first = _FIRST.pack(place, 0, 8, 0, 0, 0xBEEFC0DE, 1, 0, _MAP_SIZE)
    return (first + free + main + struct.pack("<QQ", 1, 0)).ljust(size, b"\0")
