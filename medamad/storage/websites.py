"""The registered websites: on disk by number, in memory by hostname too."""

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import MappingProxyType
from typing import Any, Final

import msgspec
from attrs import define, evolve, field
from twisted.logger import Logger

from medamad.domain.errors import BadRequest, Conflict, NotFound
from medamad.domain.website_settings import FOR_NEW_WEBSITES, WebsiteSettings
from medamad.domain.websites import Website
from medamad.storage.environment.environment import TOMBSTONE, Database, Databases, Txn
from medamad.storage.environment.meta import (
    decoded,
    entries,
    read_number,
    with_checksum,
    write_number,
)
from medamad.storage.environment.writer import Transaction
from medamad.storage.errors import Damaged

_NUMBER: Final = struct.Struct(">I")
LAST_NUMBER: Final = b"last-website"
"""The name in meta of the last number that a website got."""
_NONE: Final[Mapping[Any, Website]] = MappingProxyType({})


@define(eq=False)
class Websites:
    """Changed by the writer thread, read by any: mappings are replaced, never changed."""

    _databases: Databases
    _by_hostname: Mapping[str, Website] = field(default=_NONE)
    _by_number: Mapping[int, Website] = field(default=_NONE)
    with_allowed_hosts: Sequence[Website] = ()
    """The websites whose settings name the hosts that may send their hits."""
    damaged: tuple[str, ...] = ()
    """What is damaged of the websites that are ignored for it."""
    _log = Logger()

    def load(self, txn: Txn) -> None:
        """Load all websites. A damaged one is ignored and logged."""
        websites, damaged = [], []
        for found in read_websites(txn, self._databases):
            if isinstance(found, str):
                self._log.error("a damaged website is ignored: {place}", place=found)
                damaged.append(found)
            else:
                websites.append(found)
        self.damaged = tuple(damaged)
        self._publish({website.hostname: website for website in websites})

    def all(self) -> list[Website]:
        """Return all websites in order of hostname."""
        # The writer may replace the mapping meanwhile.
        by_hostname = self._by_hostname
        return [by_hostname[name] for name in sorted(by_hostname)]

    def hostnames(self) -> AbstractSet[str]:
        """Return the hostnames of all websites."""
        return self._by_hostname.keys()

    def by_hostname(self, hostname: str) -> Website | None:
        """Return the website with exactly this hostname."""
        return self._by_hostname.get(hostname)

    def by_number(self, number: int) -> Website | None:
        """Return the website with this number."""
        return self._by_number.get(number)

    def serving(self, hostname: str) -> Website | None:
        """Return the website that a page on a host belongs to, with or without `www.`."""
        website = self._by_hostname.get(hostname)
        if website is None:
            bare = hostname.removeprefix("www.")
            website = self._by_hostname.get(bare if bare != hostname else f"www.{hostname}")
        return website

    def has_number(self, number: int) -> bool:
        """Return whether a website with this number is registered."""
        return number in self._by_number

    def add(self, txn: Transaction, hostname: str, now: int) -> Website:
        """Register a website. Raises Conflict when the hostname is taken."""
        if hostname in self._by_hostname:
            raise Conflict(f"hostname: {hostname} is registered already")
        meta = self._databases.meta
        last = read_number(txn.lmdb, meta, LAST_NUMBER)
        number = max(last, _greatest_used(txn.lmdb, self._databases)) + 1
        write_number(txn.lmdb, meta, LAST_NUMBER, number)
        website = Website(number, hostname, created=now, updated=now, settings=FOR_NEW_WEBSITES)
        self._put(txn, website)
        txn.after_commit(lambda: self._publish({**self._by_hostname, hostname: website}))
        return website

    def rename(self, txn: Transaction, number: int, hostname: str, now: int) -> Website:
        """Change the hostname of a website. Raises NotFound, and BadRequest when it is taken."""
        old = self._of(number)
        holder = self._by_hostname.get(hostname)
        if holder is not None and holder.number != number:
            raise BadRequest(f"hostname: {hostname} is the name of another website")
        website = evolve(old, hostname=hostname, updated=now)
        self._put(txn, website)
        rest = {name: held for name, held in self._by_hostname.items() if held.number != number}
        txn.after_commit(lambda: self._publish({**rest, hostname: website}))
        return website

    def change_settings(
        self,
        txn: Transaction,
        number: int,
        change: Callable[[WebsiteSettings], WebsiteSettings],
        now: int,
    ) -> Website:
        """Change the settings of a website. Raises NotFound, and what `change` does."""
        old = self._of(number)
        website = evolve(old, settings=change(old.settings), updated=now)
        self._put(txn, website)
        txn.after_commit(lambda: self._publish({**self._by_hostname, website.hostname: website}))
        return website

    def delete(self, txn: Transaction, number: int) -> None:
        """Delete a website and leave a tombstone: its data is purged later, in steps."""
        self._of(number)
        txn.lmdb.delete(_NUMBER.pack(number), db=self._databases.websites)
        txn.lmdb.put(TOMBSTONE + _NUMBER.pack(number), b"", db=self._databases.meta)
        rest = {name: held for name, held in self._by_hostname.items() if held.number != number}
        txn.after_commit(lambda: self._publish(rest))

    def clear(self, txn: Transaction) -> list[int]:
        """Delete every website; return their numbers."""
        numbers = sorted(self._by_number)
        for number in numbers:
            txn.lmdb.delete(_NUMBER.pack(number), db=self._databases.websites)
            txn.lmdb.put(TOMBSTONE + _NUMBER.pack(number), b"", db=self._databases.meta)
        txn.after_commit(lambda: self._publish({}))
        return numbers

    def replace(self, txn: Transaction) -> list[int]:
        """Take what a transaction has stored in their place; return the numbers that are gone.

        These get tombstones, as deleted ones do.
        """
        stored = read_websites(txn.lmdb, self._databases)
        websites = {each.hostname: each for each in stored if not isinstance(each, str)}
        # One that cannot be read is still there.
        left = {_NUMBER.unpack(key)[0] for key, _ in entries(txn.lmdb, self._databases.websites)}
        gone = sorted(self._by_number.keys() - left)
        for number in gone:
            txn.lmdb.put(TOMBSTONE + _NUMBER.pack(number), b"", db=self._databases.meta)
        txn.after_commit(lambda: self._publish(websites))
        return gone

    def _of(self, number: int) -> Website:
        website = self.by_number(number)
        if website is None:
            raise NotFound("hostname: no such website")
        return website

    def _put(self, txn: Transaction, website: Website) -> None:
        write_website(txn.lmdb, self._databases, website)

    def _publish(self, by_hostname: Mapping[str, Website]) -> None:
        self._by_hostname = by_hostname
        self._by_number = {website.number: website for website in by_hostname.values()}
        self.with_allowed_hosts = [
            website for website in by_hostname.values() if website.settings.allowed_hosts
        ]


def read_websites(txn: Txn, databases: Databases) -> Iterator[Website | str]:
    """Return the websites as they are stored; of a damaged one, its place."""
    for key, value in entries(txn, databases.websites):
        try:
            website = decoded(key, value, Website)
            if key != _NUMBER.pack(website.number):
                raise Damaged("it is stored under the key of another one")
        except Damaged as error:
            yield f"website {int.from_bytes(key, 'big')}: {error}"
        else:
            yield website


def write_website(txn: Txn, databases: Databases, website: Website) -> None:
    """Store a website, replacing what is stored under its number."""
    key = _NUMBER.pack(website.number)
    txn.put(key, with_checksum(key, msgspec.json.encode(website)), db=databases.websites)


def _greatest_used(txn: Txn, databases: Databases) -> int:
    """Return the greatest website number that anything is stored under."""
    greatest = 0
    for database in (databases.websites, databases.dictionary, databases.headers, databases.wal):
        with txn.cursor(db=database) as cursor:
            if cursor.last():
                greatest = max(greatest, int.from_bytes(cursor.key()[:4], "big"))
    return greatest


def tombstones(txn: Txn, meta: Database) -> Iterator[int]:
    """Return the numbers of deleted websites whose data is not all purged yet."""
    for name, _ in entries(txn, meta, TOMBSTONE):
        yield _NUMBER.unpack_from(name, len(TOMBSTONE))[0]


def delete_some(txn: Txn, databases: Databases, number: int, most: int) -> bool:
    """Delete at most `most` keys of a deleted website, and last its tombstone.

    Returns whether nothing is left. Large deletions in one transaction fail in a full map.
    """
    prefix = _NUMBER.pack(number)
    left = most
    for database in (
        databases.wal,
        databases.headers,
        databases.segments,
        databases.counters,
        databases.corrections,
        databases.purge_queue,
        databases.import_batches,
        databases.robots,
        databases.dictionary,
        databases.codes,
    ):
        with txn.cursor(db=database) as cursor:
            while cursor.set_range(prefix) and cursor.key().startswith(prefix):
                if left == 0:
                    return False
                cursor.delete()
                left -= 1
    txn.delete(TOMBSTONE + prefix, db=databases.meta)
    return True
