"""Goals and funnels on disk: one value for each website.

Not cached, since commands change them beside the daemon.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from attrs import frozen
from twisted.logger import Logger

from medamad.domain.errors import NotFound
from medamad.domain.goals import Definitions
from medamad.storage.environment.environment import GOALS, Databases, Environment, Txn
from medamad.storage.environment.meta import verified, with_checksum
from medamad.storage.environment.writer import Writer
from medamad.storage.errors import Damaged

_NUMBER: Final = struct.Struct(">I")
_NONE: Final = Definitions()
IGNORED: Final = "damaged goals and funnels are ignored: {place}"
"""What the log says of them."""
_log: Final = Logger()


def read_goals(txn: Txn, databases: Databases, website: int) -> Definitions:
    """Return the goals and funnels of a website; damaged ones are logged and count as none."""
    name = _name(website)
    stored = txn.get(name, db=databases.meta)
    try:
        return _NONE if stored is None else _decode(name, stored)
    except Damaged as error:
        _log.error(IGNORED, place=_finding(name, error))
        return _NONE


def apply_goals_change(
    txn: Txn,
    databases: Databases,
    website: int,
    change: Callable[[Definitions], Definitions],
) -> Definitions:
    """Apply a change to the goals and funnels of a website; return what is stored then.

    Raises what `change` does, and NotFound if the website has been deleted.
    """
    if txn.get(_NUMBER.pack(website), db=databases.websites) is None:
        raise NotFound("hostname: no such website")
    changed = change(read_goals(txn, databases, website))
    name = _name(website)
    txn.put(name, with_checksum(name, msgspec.json.encode(changed)), db=databases.meta)
    return changed


def delete_goals(txn: Txn, databases: Databases, website: int) -> None:
    """Delete the goals and funnels of a website."""
    txn.delete(_name(website), db=databases.meta)


def delete_all_goals(txn: Txn, databases: Databases) -> None:
    """Delete the goals and funnels of every website."""
    for name, _ in list(_stored(txn, databases)):
        txn.delete(name, db=databases.meta)


def damaged_goals(txn: Txn, databases: Databases) -> Iterator[str]:
    """Return a message for the goals and funnels of each website where they are damaged."""
    for name, stored in _stored(txn, databases):
        try:
            _decode(name, stored)
        except Damaged as error:
            yield _finding(name, error)
        else:
            if txn.get(name.removeprefix(GOALS), db=databases.websites) is None:
                yield _finding(name, Damaged("there is no such website"))


def _name(website: int) -> bytes:
    return GOALS + _NUMBER.pack(website)


def _finding(name: bytes, error: Damaged) -> str:
    number = int.from_bytes(name.removeprefix(GOALS), "big")
    return f"website {number}, goals and funnels: {error}"


def _stored(txn: Txn, databases: Databases) -> Iterator[tuple[bytes, bytes]]:
    with txn.cursor(db=databases.meta) as cursor:
        found = cursor.set_range(GOALS)
        while found and cursor.key().startswith(GOALS):
            yield cursor.item()
            found = cursor.next()


def _decode(name: bytes, stored: bytes) -> Definitions:
    try:
        return msgspec.json.decode(verified(name, stored), type=Definitions)
    except msgspec.DecodeError as error:
        raise Damaged(str(error)) from error


@frozen(eq=False)
class StoredGoals:
    """The goals and funnels of an open store. Reads return at once, writes are awaited."""

    _environment: Environment
    _writer: Writer

    def of(self, website: int) -> Definitions:
        """Return the goals and funnels of a website; damaged ones count as none."""
        with self._environment.reading() as txn:
            return read_goals(txn, self._environment.databases, website)

    async def change(
        self, website: int, change: Callable[[Definitions], Definitions]
    ) -> Definitions:
        """Apply a change to the goals and funnels of a website; return them as they are then.

        Raises what `change` does, NotFound if the website has been deleted, and Unavailable.
        """
        databases = self._environment.databases
        return await self._writer.submit(
            lambda txn: apply_goals_change(txn.lmdb, databases, website, change)
        )
