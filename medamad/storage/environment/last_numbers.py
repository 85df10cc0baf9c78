"""The last numbers given out to websites, segments and hits, so that none is used twice."""

from typing import Final

from twisted.logger import Logger

from medamad.storage.environment.checksums import verified, with_checksum
from medamad.storage.environment.environment import Database, Txn
from medamad.storage.errors import Damaged

_BYTES: Final = 8
_log: Final = Logger()


def read_number(txn: Txn, meta: Database, name: bytes) -> int:
    """Return the number given out last; 0 for none, and for a damaged one, which is logged.

    Then what is stored has to tell which numbers are in use.
    """
    stored = txn.get(name, db=meta)
    try:
        return 0 if stored is None else int.from_bytes(verified(name, stored), "big")
    except Damaged as error:
        _log.error("a number is damaged: {name}: {error}", name=name.decode(), error=str(error))
        return 0


def write_number(txn: Txn, meta: Database, name: bytes, number: int) -> None:
    """Note the number given out last."""
    txn.put(name, with_checksum(name, number.to_bytes(_BYTES, "big")), db=meta)
