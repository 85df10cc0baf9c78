"""The registered websites: on disk by number, in memory by hostname."""

import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from attrs import define, evolve, field

from medamad.model.errors import BadRequest, Conflict, NotFound
from medamad.model.websites import Website
from medamad.store.environment import Database, Databases, Txn
from medamad.store.writer import Transaction

_NUMBER: Final = struct.Struct(">I")
_LAST_NUMBER_KEY: Final = b"last-website"
_TOMBSTONE: Final = b"deleted-website:"
_NONE: Final[Mapping[str, Website]] = MappingProxyType({})


@define(eq=False)
class Websites:
    """Changed in the writer thread, read in any: the mapping is replaced, never changed."""

    _databases: Databases
    _by_hostname: Mapping[str, Website] = field(default=_NONE)
    _numbers: frozenset[int] = frozenset()

    def load(self, txn: Txn) -> None:
        """Read them all."""
        with txn.cursor(db=self._databases.websites) as cursor:
            websites = [msgspec.json.decode(value, type=Website) for _, value in cursor]
        self._publish({website.hostname: website for website in websites})

    def all(self) -> list[Website]:
        """Give every website in order of hostname."""
        return [self._by_hostname[name] for name in sorted(self._by_hostname)]

    def by_hostname(self, hostname: str) -> Website | None:
        """Give the website registered under exactly that hostname."""
        return self._by_hostname.get(hostname)

    def serving(self, hostname: str) -> Website | None:
        """Give the website that a page on that host belongs to, with or without `www.`."""
        website = self._by_hostname.get(hostname)
        if website is None:
            bare = hostname.removeprefix("www.")
            website = self._by_hostname.get(bare if bare != hostname else f"www.{hostname}")
        return website

    def has_number(self, number: int) -> bool:
        """Tell whether a website with that number is registered."""
        return number in self._numbers

    def add(self, txn: Transaction, hostname: str, now: int) -> Website:
        """Register a website. Raises Conflict when the hostname is taken."""
        if hostname in self._by_hostname:
            raise Conflict(f"hostname: {hostname} is registered already")
        meta = self._databases.meta
        last = txn.lmdb.get(_LAST_NUMBER_KEY, db=meta)
        number = _NUMBER.unpack(last)[0] + 1 if last else 1
        txn.lmdb.put(_LAST_NUMBER_KEY, _NUMBER.pack(number), db=meta)
        website = Website(number, hostname, created=now, updated=now)
        self._put(txn, website)
        txn.after_commit(lambda: self._publish({**self._by_hostname, hostname: website}))
        return website

    def rename(self, txn: Transaction, number: int, hostname: str, now: int) -> Website:
        """Give a website another hostname; its hits stay. Raises BadRequest when it is taken."""
        old = self._of(number)
        holder = self._by_hostname.get(hostname)
        if holder is not None and holder.number != number:
            raise BadRequest(f"hostname: {hostname} is the name of another website")
        website = evolve(old, hostname=hostname, updated=now)
        self._put(txn, website)
        rest = {name: held for name, held in self._by_hostname.items() if held.number != number}
        txn.after_commit(lambda: self._publish({**rest, hostname: website}))
        return website

    def delete(self, txn: Transaction, number: int) -> None:
        """Take a website off the list and leave a tombstone: its hits go later, in steps."""
        self._of(number)
        txn.lmdb.delete(_NUMBER.pack(number), db=self._databases.websites)
        txn.lmdb.put(_TOMBSTONE + _NUMBER.pack(number), b"", db=self._databases.meta)
        rest = {name: held for name, held in self._by_hostname.items() if held.number != number}
        txn.after_commit(lambda: self._publish(rest))

    def clear(self, txn: Transaction) -> list[int]:
        """Delete every website; returns their numbers."""
        numbers = sorted(self._numbers)
        for number in numbers:
            txn.lmdb.delete(_NUMBER.pack(number), db=self._databases.websites)
            txn.lmdb.put(_TOMBSTONE + _NUMBER.pack(number), b"", db=self._databases.meta)
        txn.after_commit(lambda: self._publish({}))
        return numbers

    def _of(self, number: int) -> Website:
        for website in self._by_hostname.values():
            if website.number == number:
                return website
        raise NotFound("hostname: no such website")

    def _put(self, txn: Transaction, website: Website) -> None:
        key = _NUMBER.pack(website.number)
        txn.lmdb.put(key, msgspec.json.encode(website), db=self._databases.websites)

    def _publish(self, by_hostname: Mapping[str, Website]) -> None:
        self._by_hostname = by_hostname
        self._numbers = frozenset(website.number for website in by_hostname.values())


def tombstones(txn: Txn, meta: Database) -> Iterator[int]:
    """Give the numbers of deleted websites whose hits are not all gone yet."""
    with txn.cursor(db=meta) as cursor:
        found = cursor.set_range(_TOMBSTONE)
        while found and cursor.key().startswith(_TOMBSTONE):
            yield _NUMBER.unpack_from(cursor.key(), len(_TOMBSTONE))[0]
            found = cursor.next()


def remove_some(txn: Txn, databases: Databases, number: int, most: int) -> bool:
    """Remove at most `most` keys of a deleted website, at last its tombstone.

    Returns whether all is gone. Large deletions in one transaction fail in a full map.
    """
    prefix = _NUMBER.pack(number)
    left = most
    for database in (
        databases.journal,
        databases.heads,
        databases.blocks,
        databases.counters,
        databases.corrections,
        databases.doomed,
        databases.names,
        databases.codes,
    ):
        with txn.cursor(db=database) as cursor:
            while cursor.set_range(prefix) and cursor.key().startswith(prefix):
                if left == 0:
                    return False
                cursor.delete()
                left -= 1
    txn.delete(_TOMBSTONE + prefix, db=databases.meta)
    return True
