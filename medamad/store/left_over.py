"""What is stored of websites that are neither registered nor on their way out."""

import struct
from collections.abc import Iterator
from typing import Final

from medamad.store.environment import Databases, Txn
from medamad.store.websites import tombstones

OF_WEBSITES: Final = (
    *("names", "codes", "journal", "heads", "blocks", "counters", "corrections"),
    *("doomed", "batches"),
)
"""The sub-databases whose keys begin with the number of a website."""
_NUMBER: Final = struct.Struct(">I")
_GREATEST: Final = 0xFFFF_FFFF


def left_over(txn: Txn, databases: Databases) -> Iterator[str]:
    """Say of which numbers something is there, and what, by one look for each; none if all is well.

    It is a website's, and its key is damaged; what is damaged of a website is not told again.
    """
    with txn.cursor(db=databases.websites) as cursor:
        known = {_number(key) for key in cursor.iternext(values=False)}
    known.update(tombstones(txn, databases.meta))
    found: dict[int, list[str]] = {}
    for name in OF_WEBSITES:
        with txn.cursor(db=getattr(databases, name)) as cursor:
            is_there = cursor.first()
            while is_there:
                number = _number(cursor.key())
                if number not in known:
                    found.setdefault(number, []).append(name)
                is_there = number < _GREATEST and cursor.set_range(_NUMBER.pack(number + 1))
    for number, names in sorted(found.items()):
        yield f"website {number}: {', '.join(names)}"


def _number(key: bytes) -> int:
    return int.from_bytes(key[: _NUMBER.size], "big")
