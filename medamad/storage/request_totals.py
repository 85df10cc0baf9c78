"""Requests for pages by day, in totals apart from people's views: robots', and page loads in logs.

A day has one value for each source: hits that the daemon received, followed logs, and each import
batch. What two sources saw of a robot on a day may be the same requests, as a crawler that runs
scripts is in the log of the web server too: the source that saw more of it counts, alone.

Keys are website u32, kind u8, day u32 (a local date since 1970-01-01), source u32.
"""

import struct
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import cache
from itertools import islice
from typing import Final, TypeAlias

import msgspec
from attrs import frozen
from msgspec import Struct

from medamad.domain.dimensions import OTHER
from medamad.storage.environment.environment import Databases, Environment, Txn
from medamad.storage.environment.meta import decoded, sound, with_checksum
from medamad.storage.environment.writer import Submit, Transaction
from medamad.storage.errors import Damaged
from medamad.storage.import_batches import BatchState, read_batch

RequestCounts: TypeAlias = Mapping[str, Mapping[str, int]]
"""Requests for pages, by the name of the robot or browser and by path."""

IsListed: TypeAlias = Callable[[str], bool]
"""Returns whether a name is that of a known robot, of which there are not many."""

MAX_NAMES: Final = 200
"""Robots of a day and source that are counted by name, besides known ones.

Anyone may send any name, which is to keep no known robot out.
"""
MAX_PATHS: Final = 1_000
"""Paths of a day and source, counted for each robot, that are counted one by one."""
MAX_PATH: Final = 512
"""Characters of a path. Longer ones are rare, and would make the values large."""

ROBOTS: Final = 1
LOADS: Final = 2
"""The kinds: what robots read, and the page loads in followed logs, by browser in place of name."""
_WHAT: Final = {ROBOTS: "robots", LOADS: "page loads"}
HITS: Final = 0
"""The source of what the daemon received; import batches are numbered from 1."""
FOLLOWED: Final = 0xFFFF_FFFF
"""The source of what was read in logs that grow."""

_KEY: Final = struct.Struct(">IBII")
_DAY_KEY: Final = struct.Struct(">IBI")
_LAST_DAY: Final = 0xFFFF_FFFF


def nothing_is_listed(_name: str) -> bool:
    """Return that no robot is known."""
    return False


def merge_counts(
    into: MutableMapping[str, dict[str, int]],
    more: RequestCounts,
    is_listed: IsListed = nothing_is_listed,
) -> None:
    """Add counts to others; beyond the limits, new names and paths count as OTHER."""

    def has_room(name: str) -> bool:
        if len(into) < MAX_NAMES or is_listed(name):
            return True
        return sum(not is_listed(each) for each in into) < MAX_NAMES

    paths = sum(map(len, into.values()))
    for name, by_path in more.items():
        known = into.get(name)
        if known is None:
            known = into.setdefault(name if has_room(name) else OTHER, {})
        for path, count in by_path.items():
            place = (
                path if path in known or (paths < MAX_PATHS and len(path) <= MAX_PATH) else OTHER
            )
            paths += place not in known
            known[place] = known.get(place, 0) + count


@frozen
class RequestDays:
    """The requests of a website: the counts of each day, and the days that are damaged."""

    counts: Mapping[int, RequestCounts]
    damaged: frozenset[int]


class RequestSources(Struct, frozen=True, array_like=True):
    """The requests of a website by day and source, and the days that are damaged."""

    counts: dict[tuple[int, int], dict[str, dict[str, int]]]
    damaged: frozenset[int] = frozenset()

    def by_day(self) -> RequestDays:
        """Return the counts of each day: of each name, those of the source that saw most.

        A day is damaged, and left out, if what one of its sources saw is.
        """
        days: dict[int, dict[str, Mapping[str, int]]] = {}
        for (day, _), counts in sorted(self.counts.items()):
            if day in self.damaged:
                continue
            of_day = days.setdefault(day, {})
            for name, by_path in counts.items():
                if sum(by_path.values()) > sum(of_day.get(name, {}).values()):
                    of_day[name] = by_path
        return RequestDays(days, self.damaged)


def added_up(of_stores: Sequence[RequestSources]) -> RequestSources:
    """Return the sums of what several stores have of the same website, each of requests of its own.

    The limits of names and paths are those of each store.
    """
    if len(of_stores) == 1:
        return of_stores[0]
    sums: dict[tuple[int, int], dict[str, dict[str, int]]] = {}
    for stored in of_stores:
        for place, counts in stored.counts.items():
            of_place = sums.setdefault(place, {})
            for name, by_path in counts.items():
                known = of_place.setdefault(name, {})
                for path, count in by_path.items():
                    known[path] = known.get(path, 0) + count
    return RequestSources(sums, frozenset().union(*(stored.damaged for stored in of_stores)))


@frozen(eq=False)
class RequestTotals:
    """The totals in an open store. Reads return at once, writes are awaited."""

    _environment: Environment
    _submit: Submit
    _has_website: Callable[[int], bool]
    _check_space: Callable[[Txn], None]
    _is_listed: IsListed

    async def add(self, counts: Mapping[tuple[int, int], RequestCounts]) -> None:
        """Add counts of received hits, by website and day. Raises Unavailable."""

        def change(txn: Transaction) -> None:
            self._check_space(txn.lmdb)
            for (website, day), more in counts.items():
                self.add_in(txn.lmdb, (website, ROBOTS, day, HITS), more)

        await self._submit(change)

    async def add_imported(
        self, website: int, batch: int, counts: Mapping[int, RequestCounts]
    ) -> None:
        """Add counts of an import by day, which show once it is complete. Raises Unavailable."""

        def change(txn: Transaction) -> None:
            self._check_space(txn.lmdb)
            if read_batch(txn.lmdb, self._environment.databases, website, batch) is not None:
                for day, more in counts.items():
                    self.add_in(txn.lmdb, (website, ROBOTS, day, batch), more)

        await self._submit(change)

    def add_in(self, txn: Txn, place: tuple[int, int, int, int], more: RequestCounts) -> None:
        """Add counts to those of a website, kind, day and source, unless it has been deleted.

        A damaged value stays as it is, and lacks them: a new one would pass for the whole day.
        """
        website, kind, day, source = place
        if not self._has_website(website):
            return
        key, databases = _KEY.pack(website, kind, max(day, 0), source), self._environment.databases
        stored = txn.get(key, db=databases.robots)
        counts: dict[str, dict[str, int]] | None = {}
        if stored is not None:
            what = f"website {website}, {_WHAT[kind]} of day {day}"
            counts = sound(what, lambda: _decode(key, stored), None)
        if counts is None:
            return
        merge_counts(counts, more, is_listed=self._is_listed)
        txn.put(key, with_checksum(key, msgspec.msgpack.encode(counts)), db=databases.robots)

    def read(
        self, website: int, kind: int, first_day: int | None, last_day: int | None
    ) -> RequestSources:
        """Return what is known of a kind, from one day to another. For any thread."""
        with self._environment.reading() as txn:
            bounds = first_day, last_day
            return requests_of(txn, self._environment.databases, website, kind, bounds)


def requests_of(
    txn: Txn,
    databases: Databases,
    website: int,
    kind: int,
    bounds: tuple[int | None, int | None] = (None, None),
) -> RequestSources:
    """Return the requests of a kind and website from one day to another.

    Robots have all paths. Of page loads, there is the browser in place of a name, "" for robots.
    """
    counts, damaged = {}, set()
    first_day, last_day = bounds

    @cache
    def shows(source: int) -> bool:
        if source in (HITS, FOLLOWED):
            return True
        batch = read_batch(txn, databases, website, source)
        return batch is not None and batch.state is BatchState.COMPLETE

    for key, stored in _stored(txn, databases, website, first_day or 0, kind):
        _, _, day, source = _KEY.unpack(key)
        if last_day is not None and day > last_day:
            break
        try:
            if shows(source):
                counts[day, source] = _decode(key, stored)
        except Damaged:
            damaged.add(day)
    return RequestSources(counts, frozenset(damaged))


def delete_imported(txn: Txn, databases: Databases, website: int, batch: int) -> None:
    """Delete the counts of an import batch."""
    for key in [key for key, _ in _stored(txn, databases, website)]:
        if _KEY.unpack(key)[3] == batch:
            txn.delete(key, db=databases.robots)


def delete_before(txn: Txn, databases: Databases, website: int, day: int, most: int) -> int:
    """Delete at most `most` values of days before one; return how many were deleted."""
    keys = (
        key for kind in (ROBOTS, LOADS) for key, _ in _stored(txn, databases, website, kind=kind)
    )
    expired = list(islice((key for key in keys if _KEY.unpack(key)[2] < day), most))
    for key in expired:
        txn.delete(key, db=databases.robots)
    return len(expired)


def has_before(txn: Txn, databases: Databases, website: int, day: int) -> bool:
    """Return whether there are counts of a day before one."""
    firsts = (next(_stored(txn, databases, website, kind=kind), None) for kind in (ROBOTS, LOADS))
    return any(first is not None and _KEY.unpack(first[0])[2] < day for first in firsts)


def _stored(
    txn: Txn, databases: Databases, website: int, first_day: int = 0, kind: int = ROBOTS
) -> Iterator[tuple[bytes, bytes]]:
    """Return the keys and values of a kind and website from a day on, by day."""
    if databases.robots is None:
        return
    prefix = struct.pack(">IB", website, kind)
    with txn.cursor(db=databases.robots) as cursor:
        found = cursor.set_range(_DAY_KEY.pack(website, kind, min(max(first_day, 0), _LAST_DAY)))
        while found and cursor.key().startswith(prefix):
            yield cursor.item()
            found = cursor.next()


def _decode(key: bytes, stored: bytes) -> dict[str, dict[str, int]]:
    return decoded(key, stored, dict[str, dict[str, int]], msgspec.msgpack.decode)
