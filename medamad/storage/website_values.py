"""What owners define for a website, on disk: one value of each kind for each website.

There is one of alerts for the service too.

Not cached, since commands change them beside the daemon.
"""

import struct
from collections.abc import Callable, Collection, Iterator
from typing import Final, Generic, TypeVar

import msgspec
from attrs import frozen
from twisted.logger import Logger

from medamad.domain.alerts import SERVICE, Alerts
from medamad.domain.annotations import Annotations
from medamad.domain.errors import NotFound
from medamad.domain.exported_settings import Defined, ExportedSettings, Imported
from medamad.domain.goals import Definitions
from medamad.storage.environment.environment import (
    ALERTS,
    ANNOTATIONS,
    GOALS,
    Databases,
    Environment,
    Txn,
)
from medamad.storage.environment.meta import verified, with_checksum
from medamad.storage.environment.writer import Writer
from medamad.storage.errors import Damaged

V = TypeVar("V", Definitions, Annotations, Alerts)

_NUMBER: Final = struct.Struct(">I")
IGNORED: Final = "a damaged part of the store is ignored: {place}"
"""What the log says of them."""
_log: Final = Logger()


@frozen
class ValueKind(Generic[V]):
    """A kind of value: the prefix of its names in meta, and its type."""

    prefix: bytes
    type: type[V]
    """Called without arguments, it returns the value of a website that has none stored."""
    what: str


GOALS_AND_FUNNELS: Final = ValueKind(GOALS, Definitions, "goals and funnels")
ALL_ANNOTATIONS: Final = ValueKind(ANNOTATIONS, Annotations, "annotations")
ALL_ALERTS: Final = ValueKind(ALERTS, Alerts, "alerts")
"""Those of the service have the number SERVICE."""
_PREFIXES: Final = (GOALS, ANNOTATIONS, ALERTS)


def read_value(txn: Txn, databases: Databases, kind: ValueKind[V], website: int) -> V:
    """Return the value of a website; a damaged one is logged and counts as none."""
    name = _name(kind, website)
    stored = txn.get(name, db=databases.meta)
    return kind.type() if stored is None else _sound(kind, name, stored)


def _sound(kind: ValueKind[V], name: bytes, stored: bytes) -> V:
    try:
        return _decode(kind, name, stored)
    except Damaged as error:
        _log.error(IGNORED, place=_finding(kind, name, error))
        return kind.type()


def apply_change(
    txn: Txn,
    databases: Databases,
    kind: ValueKind[V],
    website: int,
    change: Callable[[V], V],
) -> V:
    """Apply a change to the value of a website; return what is stored then.

    Raises what `change` does, and NotFound if the website has been deleted.
    """
    if not _exists(txn, databases, website):
        raise NotFound("hostname: no such website")
    changed = change(read_value(txn, databases, kind, website))
    name = _name(kind, website)
    txn.put(name, with_checksum(name, msgspec.json.encode(changed)), db=databases.meta)
    return changed


def read_defined(txn: Txn, databases: Databases, website: int) -> Defined:
    """Return all that is defined for a website."""
    return Defined(
        read_value(txn, databases, GOALS_AND_FUNNELS, website),
        read_value(txn, databases, ALL_ANNOTATIONS, website),
        read_value(txn, databases, ALL_ALERTS, website),
    )


def import_settings(
    txn: Txn,
    databases: Databases,
    website: int,
    settings: ExportedSettings,
    reports: Collection[str],
) -> Imported:
    """Add settings to those of a website, all or none; return how much was added.

    Raises what `Defined.with_imported` does, and NotFound if the website has been deleted.
    """
    before = read_defined(txn, databases, website)
    made, imported = before.with_imported(settings, reports)
    apply_change(txn, databases, GOALS_AND_FUNNELS, website, lambda _: made.definitions)
    apply_change(txn, databases, ALL_ANNOTATIONS, website, lambda _: made.annotations)
    apply_change(txn, databases, ALL_ALERTS, website, lambda _: made.alerts)
    return imported


def delete_values(txn: Txn, databases: Databases, website: int) -> None:
    """Delete all that is defined for a website."""
    for prefix in _PREFIXES:
        txn.delete(prefix + _NUMBER.pack(website), db=databases.meta)


def delete_all_values(txn: Txn, databases: Databases) -> None:
    """Delete all that is defined for any website, and for the service."""
    for prefix in _PREFIXES:
        for name, _ in list(_stored(txn, databases, prefix)):
            txn.delete(name, db=databases.meta)


def damaged_values(txn: Txn, databases: Databases) -> Iterator[str]:
    """Return a message for each value that is damaged."""
    yield from _damaged(txn, databases, GOALS_AND_FUNNELS)
    yield from _damaged(txn, databases, ALL_ANNOTATIONS)
    yield from _damaged(txn, databases, ALL_ALERTS)


def _damaged(txn: Txn, databases: Databases, kind: ValueKind[V]) -> Iterator[str]:
    for name, stored in _stored(txn, databases, kind.prefix):
        try:
            _decode(kind, name, stored)
        except Damaged as error:
            yield _finding(kind, name, error)
        else:
            if not _exists(txn, databases, _number(kind, name)):
                yield _finding(kind, name, Damaged("there is no such website"))


def _name(kind: ValueKind[V], website: int) -> bytes:
    return kind.prefix + _NUMBER.pack(website)


def _number(kind: ValueKind[V], name: bytes) -> int:
    return int.from_bytes(name.removeprefix(kind.prefix), "big")


def _exists(txn: Txn, databases: Databases, website: int) -> bool:
    number = _NUMBER.pack(website)
    return website == SERVICE or txn.get(number, db=databases.websites) is not None


def _finding(kind: ValueKind[V], name: bytes, error: Damaged) -> str:
    number = _number(kind, name)
    return f"{'the service' if number == SERVICE else f'website {number}'}, {kind.what}: {error}"


def _stored(txn: Txn, databases: Databases, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
    with txn.cursor(db=databases.meta) as cursor:
        found = cursor.set_range(prefix)
        while found and cursor.key().startswith(prefix):
            yield cursor.item()
            found = cursor.next()


def _decode(kind: ValueKind[V], name: bytes, stored: bytes) -> V:
    try:
        return msgspec.json.decode(verified(name, stored), type=kind.type)
    except msgspec.DecodeError as error:
        raise Damaged(str(error)) from error


@frozen(eq=False)
class WebsiteValues(Generic[V]):
    """The values of a kind in an open store. Reads return at once, writes are awaited."""

    _environment: Environment
    _writer: Writer
    _kind: ValueKind[V]

    def of(self, website: int) -> V:
        """Return the value of a website; a damaged one counts as none."""
        with self._environment.reading() as txn:
            return read_value(txn, self._environment.databases, self._kind, website)

    def all(self) -> dict[int, V]:
        """Return the values that are stored, by website; a damaged one counts as none."""
        with self._environment.reading() as txn:
            stored = list(_stored(txn, self._environment.databases, self._kind.prefix))
        return {
            _number(self._kind, name): _sound(self._kind, name, bytes(value))
            for name, value in stored
        }

    async def change(self, website: int, change: Callable[[V], V]) -> V:
        """Apply a change to the value of a website; return it as it is then.

        Raises what `change` does, NotFound if the website has been deleted, and Unavailable.
        """
        databases = self._environment.databases
        return await self._writer.submit(
            lambda txn: apply_change(txn.lmdb, databases, self._kind, website, change)
        )
