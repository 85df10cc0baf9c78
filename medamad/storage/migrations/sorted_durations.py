"""Format 14: merged segments no longer have the durations of their views in ascending order."""

from typing import Final

from medamad.storage.backup import BackupProgress
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.meta import write_format
from medamad.storage.migrations.headers import sound_headers
from medamad.storage.segments.format import number_of, segment_key, website_of

FORMAT: Final = 14
_COLUMNS: Final = (56, 57)


def room_bytes(_environment: Environment, _txn: Txn) -> int:
    """Return what is to be written: nothing."""
    return 0


def migrate(environment: Environment, progress: BackupProgress) -> None:
    """Delete them."""
    with environment.lmdb.begin(write=True) as txn:
        merged = [each for each in sound_headers(environment, txn) if each[1].members]
        for place, (key, header) in enumerate(merged):
            progress("sorted durations", place, len(merged))
            columns = segment_key(website_of(key), header, number_of(key))
            for column in _COLUMNS:
                txn.delete(columns + bytes((column,)), db=environment.databases.segments)
        write_format(txn, environment.databases.meta, FORMAT)
