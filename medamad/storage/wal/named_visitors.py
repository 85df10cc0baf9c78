"""Visitors whom servers name: whether one was here before on a day, and on a page of the website.

Only keyed hashes are stored. Each day has a key of its own, which is deleted when no hit of the day
can come any more: servers may state times of seven days ago. The keys are in a file beside the
store, which no backup and no export has. So who has the store alone can never find out whether it
has a name, and who has both can try names for as long as the day can grow.
"""

import os
import struct
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from secrets import token_bytes
from typing import Final

import msgspec
from attrs import define, field
from twisted.logger import Logger

from medamad.domain.hits import Visitor
from medamad.domain.zones import DAY_MS
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.files import sync
from medamad.storage.environment.meta import with_checksum

FILE_NAME: Final = "visitor-keys.json"
GROWS_MS: Final = 7 * DAY_MS
"""For how long after its end hits of a day may come."""
_BEHIND_MS: Final = DAY_MS // 2
"""How much later than in UTC a day ends in the last time zone."""
_EPOCH: Final = 719_163
"""The number of 1970-01-01 in the proleptic calendar."""
_KEY_BYTES: Final = 16
_DAY: Final = struct.Struct(">I")
_log: Final = Logger()


def _end_ms(day: int) -> int:
    """Return when no hit of a day can come any more, in any time zone; Unix milliseconds."""
    return (day - _EPOCH + 1) * DAY_MS + _BEHIND_MS + GROWS_MS


@define(eq=False)
class NamedVisitors:
    """Used by the writer thread alone."""

    _environment: Environment
    _keys: dict[int, bytes] = field(factory=dict, init=False)
    """The key of each day that has visitors."""

    def __attrs_post_init__(self) -> None:
        try:
            self._keys = msgspec.json.decode(self._path.read_bytes(), type=dict[int, bytes])
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError) as error:
            _log.error(
                "{name} cannot be read, so visitors whom servers name may count again on the last"
                " days: {error}",
                name=FILE_NAME,
                error=str(error),
            )

    @property
    def _path(self) -> Path:
        return self._environment.path.with_name(FILE_NAME)

    def is_first(self, txn: Txn, visitor: Visitor, website: int, *page: str) -> bool:
        """Take note of a view; return whether it is the visitor's first of the day, or of a page.

        Raises OSError if the key of the day cannot be stored.
        """
        name = "\0".join((str(website), visitor.name, *page))
        digest = blake2b(name.encode(), digest_size=_KEY_BYTES, key=self._key_of(visitor.day))
        key = _DAY.pack(visitor.day) + digest.digest()
        return txn.put(
            key, with_checksum(key, b""), db=self._environment.databases.visitors, overwrite=False
        )

    def expire(self, txn: Txn, now_ms: int, most: int) -> int:
        """Forget the days that cannot grow any more, and delete at most `most` of their hashes.

        Returns how many were deleted: fewer than `most` when none is left. Raises OSError.
        """
        if any(_end_ms(day) < now_ms for day in self._keys):
            self._store({day: key for day, key in self._keys.items() if _end_ms(day) >= now_ms})
        deleted = 0
        with txn.cursor(db=self._environment.databases.visitors) as cursor:
            while deleted < most and cursor.first():
                if _end_ms(_DAY.unpack_from(cursor.key())[0]) >= now_ms:
                    break
                cursor.delete()
                deleted += 1
        return deleted

    def _key_of(self, day: int) -> bytes:
        if day not in self._keys:
            # Before a hash under it is committed.
            self._store({**self._keys, day: token_bytes(_KEY_BYTES)})
        return self._keys[day]

    def _store(self, keys: dict[int, bytes]) -> None:
        """Replace the file, and sync it to disk."""
        path = self._path
        making = path.with_suffix(".new")
        with suppress(FileNotFoundError):
            making.unlink()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with os.fdopen(os.open(making, flags, 0o600), "wb") as file:
            file.write(msgspec.json.encode(keys))
            file.flush()
            os.fsync(file.fileno())
        making.replace(path)
        sync(path.parent)
        self._keys = keys
