"""What owners define for a website, or the service, on disk: one value of each kind for each.

Not cached, since commands change them beside the daemon.
"""

import struct
from collections.abc import Callable, Collection
from typing import Any, Final, Generic, TypeVar

from attrs import frozen

from medamad.domain.alerts import SERVICE, Alerts
from medamad.domain.annotations import Annotations
from medamad.domain.errors import NotFound
from medamad.domain.exported_settings import Defined, ExportedSettings, Imported
from medamad.domain.goals import Definitions
from medamad.domain.website_settings import WebsiteSettings
from medamad.domain.websites import Website
from medamad.storage.environment.environment import (
    ALERTS,
    ANNOTATIONS,
    GOALS,
    Databases,
    Environment,
    Txn,
)
from medamad.storage.environment.writer import Writer
from medamad.storage.errors import Damaged
from medamad.storage.meta_values import MetaKind

V = TypeVar("V", Definitions, Annotations, Alerts)

_NUMBER: Final = struct.Struct(">I")


@frozen
class WebsiteKind(MetaKind[V]):
    """A kind of value, whose key is the number of a website, or SERVICE.

    Its type, called without arguments, returns the value of a website that has none stored.
    """

    def place(self, key: bytes, /) -> str:
        """Return what messages call the value of a key."""
        number = int.from_bytes(key, "big")
        return f"{'the service' if number == SERVICE else f'website {number}'}, {self.what}"

    def check(self, txn: Txn, databases: Databases, key: bytes, /) -> None:
        """Raise Damaged if there is no such website."""
        if not _exists(txn, databases, key):
            raise Damaged("there is no such website")

    def of(self, txn: Txn, databases: Databases, website: int) -> V:
        """Return the value of a website."""
        return self.read(txn, databases, _NUMBER.pack(website)) or self.type()

    def apply(self, txn: Txn, databases: Databases, website: int, change: Callable[[V], V]) -> V:
        """Apply a change to the value of a website; return what is stored then.

        Raises what `change` does, and NotFound if the website has been deleted.
        """
        key = _NUMBER.pack(website)
        if not _exists(txn, databases, key):
            raise NotFound("hostname: no such website")
        changed = change(self.of(txn, databases, website))
        self.write(txn, databases, key, changed)
        return changed


GOALS_AND_FUNNELS: Final = WebsiteKind(GOALS, Definitions, "goals and funnels")
ALL_ANNOTATIONS: Final = WebsiteKind(ANNOTATIONS, Annotations, "annotations")
ALL_ALERTS: Final = WebsiteKind(ALERTS, Alerts, "alerts")
WEBSITE_KINDS: Final[tuple[WebsiteKind[Any], ...]] = (
    GOALS_AND_FUNNELS,
    ALL_ANNOTATIONS,
    ALL_ALERTS,
)


def read_defined(txn: Txn, databases: Databases, website: Website) -> Defined:
    """Return all that is defined for a website."""
    return Defined(
        GOALS_AND_FUNNELS.of(txn, databases, website.number),
        ALL_ANNOTATIONS.of(txn, databases, website.number),
        ALL_ALERTS.of(txn, databases, website.number),
        website.settings,
    )


def import_settings(
    txn: Txn,
    databases: Databases,
    website: Website,
    settings: ExportedSettings,
    reports: Collection[str],
) -> tuple[WebsiteSettings, Imported]:
    """Add what was exported to what is defined for a website, all or nothing.

    Return the website's own settings, which are the caller's to store, and how much was added.
    Raises what `Defined.with_imported` does, and NotFound if the website has been deleted.
    """
    before = read_defined(txn, databases, website)
    made, imported = before.with_imported(settings, reports)
    GOALS_AND_FUNNELS.apply(txn, databases, website.number, lambda _: made.definitions)
    ALL_ANNOTATIONS.apply(txn, databases, website.number, lambda _: made.annotations)
    ALL_ALERTS.apply(txn, databases, website.number, lambda _: made.alerts)
    return made.settings, imported


def delete_values(txn: Txn, databases: Databases, website: int) -> None:
    """Delete all that is defined for a website."""
    for kind in WEBSITE_KINDS:
        kind.delete(txn, databases, _NUMBER.pack(website))


def delete_all_values(txn: Txn, databases: Databases) -> None:
    """Delete all that is defined for any website, and for the service."""
    for kind in WEBSITE_KINDS:
        kind.delete_all(txn, databases)


def _exists(txn: Txn, databases: Databases, key: bytes) -> bool:
    return key == _NUMBER.pack(SERVICE) or txn.get(key, db=databases.websites) is not None


@frozen(eq=False)
class WebsiteValues(Generic[V]):
    """The values of a kind in an open store. Reads return at once, writes are awaited."""

    _environment: Environment
    _writer: Writer
    _kind: WebsiteKind[V]

    def of(self, website: int) -> V:
        """Return the value of a website; a damaged one counts as none."""
        with self._environment.reading() as txn:
            return self._kind.of(txn, self._environment.databases, website)

    def all(self) -> dict[int, V]:
        """Return the values of all that have one, by website, except for damaged ones."""
        with self._environment.reading() as txn:
            found = self._kind.all(txn, self._environment.databases)
        return {_NUMBER.unpack(key)[0]: value for key, value in found}

    async def change(self, website: int, change: Callable[[V], V]) -> V:
        """Apply a change to the value of a website; return it as it is then.

        Raises what `change` does, NotFound if the website has been deleted, and Unavailable.
        """
        databases = self._environment.databases
        return await self._writer.submit(
            lambda txn: self._kind.apply(txn.lmdb, databases, website, change)
        )
