"""Alerts on disk: one value for each website, and one for the service.

Not cached, since commands change them beside the daemon.
"""

import struct
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from attrs import frozen
from twisted.logger import Logger

from medamad.domain.alerts import SERVICE, Alerts
from medamad.domain.errors import NotFound
from medamad.storage.environment.environment import ALERTS, Databases, Environment, Txn
from medamad.storage.environment.meta import verified, with_checksum
from medamad.storage.environment.writer import Writer
from medamad.storage.errors import Damaged

_NUMBER: Final = struct.Struct(">I")
_NONE: Final = Alerts()
_log: Final = Logger()


def read_alerts(txn: Txn, databases: Databases, website: int) -> Alerts:
    """Return the alerts of a website or the service; damaged ones are logged and count as none."""
    name = _name(website)
    stored = txn.get(name, db=databases.meta)
    return _NONE if stored is None else _read(name, stored)


def apply_alerts_change(
    txn: Txn, databases: Databases, website: int, change: Callable[[Alerts], Alerts]
) -> Alerts:
    """Apply a change to the alerts of a website or the service; return what is stored then.

    Raises what `change` does, and NotFound if the website has been deleted.
    """
    if website != SERVICE and txn.get(_NUMBER.pack(website), db=databases.websites) is None:
        raise NotFound("hostname: no such website")
    changed = change(read_alerts(txn, databases, website))
    name = _name(website)
    txn.put(name, with_checksum(name, msgspec.json.encode(changed)), db=databases.meta)
    return changed


def delete_alerts(txn: Txn, databases: Databases, website: int) -> None:
    """Delete the alerts of a website."""
    txn.delete(_name(website), db=databases.meta)


def delete_all_alerts(txn: Txn, databases: Databases) -> None:
    """Delete the alerts of every website and of the service."""
    for name, _ in list(_stored(txn, databases)):
        txn.delete(name, db=databases.meta)


def damaged_alerts(txn: Txn, databases: Databases) -> Iterator[str]:
    """Return a message for the alerts of each website, or the service, where they are damaged."""
    for name, stored in _stored(txn, databases):
        number = name.removeprefix(ALERTS)
        try:
            _decode(name, stored)
        except Damaged as error:
            yield _finding(name, error)
        else:
            if _number(name) and txn.get(number, db=databases.websites) is None:
                yield _finding(name, Damaged("there is no such website"))


def _name(website: int) -> bytes:
    return ALERTS + _NUMBER.pack(website)


def _number(name: bytes) -> int:
    return int.from_bytes(name.removeprefix(ALERTS), "big")


def _finding(name: bytes, error: Damaged) -> str:
    number = _number(name)
    return f"{f'website {number}' if number else 'the service'}, alerts: {error}"


def _stored(txn: Txn, databases: Databases) -> Iterator[tuple[bytes, bytes]]:
    with txn.cursor(db=databases.meta) as cursor:
        found = cursor.set_range(ALERTS)
        while found and cursor.key().startswith(ALERTS):
            yield cursor.item()
            found = cursor.next()


def _read(name: bytes, stored: bytes) -> Alerts:
    try:
        return _decode(name, stored)
    except Damaged as error:
        _log.error("damaged alerts are ignored: {place}", place=_finding(name, error))
        return _NONE


def _decode(name: bytes, stored: bytes) -> Alerts:
    try:
        return msgspec.json.decode(verified(name, stored), type=Alerts)
    except msgspec.DecodeError as error:
        raise Damaged(str(error)) from error


@frozen(eq=False)
class StoredAlerts:
    """The alerts of an open store. Reads return at once, writes are awaited.

    A website is named by its number, and the service by SERVICE.
    """

    _environment: Environment
    _writer: Writer

    def of(self, website: int) -> Alerts:
        """Return the alerts of a website or the service; damaged ones count as none."""
        with self._environment.reading() as txn:
            return read_alerts(txn, self._environment.databases, website)

    def all(self) -> dict[int, Alerts]:
        """Return all alerts by website, except for damaged ones."""
        with self._environment.reading() as txn:
            stored = list(_stored(txn, self._environment.databases))
        return {_number(name): _read(name, bytes(value)) for name, value in stored}

    async def change(self, website: int, change: Callable[[Alerts], Alerts]) -> Alerts:
        """Apply a change to the alerts of a website or the service; return them as they are then.

        Raises what `change` does, NotFound if the website has been deleted, and Unavailable.
        """
        databases = self._environment.databases
        return await self._writer.submit(
            lambda txn: apply_alerts_change(txn.lmdb, databases, website, change)
        )
