"""The last numbers assigned to websites, segments and hits, so that none is used twice."""

from typing import Final

from twisted.logger import Logger

from medamad.storage.environment.checksums import verified, with_checksum
from medamad.storage.environment.environment import Database, Txn
from medamad.storage.errors import Damaged

_BYTES: Final = 8
_log: Final = Logger()


def read_number(txn: Txn, meta: Database, name: bytes) -> int:
    """Return the last number assigned; 0 for none, and for a damaged one, which is logged.

    The caller then takes the greatest number in use.
    """
    stored = txn.get(name, db=meta)
    try:
        return 0 if stored is None else int.from_bytes(verified(name, stored), "big")
    except Damaged as error:
        _log.error("a number is damaged: {name}: {error}", name=name.decode(), error=str(error))
        return 0


def write_number(txn: Txn, meta: Database, name: bytes, number: int) -> None:
    """Store the last number assigned."""
    txn.put(name, with_checksum(name, number.to_bytes(_BYTES, "big")), db=meta)
