"""Dictionary encoding of texts: look codes up, assign new ones.

Codes of a code space count up from 0 in order of first use. Each entry has the day on which it was
added, so that the daily limit on new values holds across restarts.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Final, TypeAlias

import numpy as np
from attrs import define, field
from numpy.typing import NDArray
from twisted.logger import Logger

from medamad.domain.dimensions import (
    OTHER,
    VIEW_DIMENSIONS,
    Dimension,
    property_text,
    split_property,
)
from medamad.domain.hits import Properties
from medamad.domain.zones import DAY_MS
from medamad.storage.dictionary.keys import (
    CODE,
    DAY,
    ENTRY_KEY,
    SPACE_PREFIX,
    CodeSpace,
    code_key,
    decode_entry,
    describe_entry,
    entries_before,
    hash_key,
    is_consistent,
    last_assigned,
)
from medamad.storage.dictionary.limits import NO_DAY, NewValues, is_number, latest_new, values_of
from medamad.storage.environment.environment import Databases, Txn
from medamad.storage.errors import Damaged

_log: Final = Logger()
_CACHED_BYTES: Final = 48 << 20
"""The most memory of the writer's cache: enough for some 200,000 usual texts."""
_ENTRY_BYTES: Final = 100
"""The memory that a cached text takes besides itself."""
_SHARES: Final = 4
"""A network may add 1/_SHARES of a limit, once half of it is used."""
_NUMBERS_OF_EACH: Final = 20
_NUMBERS_IN_ALL: Final = 100
"""A property may have so many times as many new numbers as other new values; and all together."""
_KNOWN_DAYS: Final = 2
"""New values are counted for so many days: the latest, and the one before the clock was set."""

_LimitOf: TypeAlias = tuple[str, bool]
"""A limit on new values: the property's name, "" for all, and whether it is on numbers."""


def day_of(time_ms: int) -> int:
    """Return the day (UTC) of the limits on new values that a time belongs to."""
    return max(0, time_ms) // DAY_MS & 0xFFFF


@define(eq=False)
class _SpaceState:
    """What the writer keeps in memory of a code space."""

    next_code: int
    days: dict[int, NewValues] = field(factory=dict)
    """The new values of the latest days, the latest last."""
    codes: dict[str, int] = field(factory=dict)
    shares_day: int = -1
    shares: dict[tuple[bytes, _LimitOf], int] = field(factory=dict)
    """What networks added on that day beyond half of a limit."""

    def shares_of(self, day: int) -> dict[tuple[bytes, _LimitOf], int]:
        """Return the shares of networks on a day, which begins without any."""
        if day != self.shares_day:
            self.shares_day, self.shares = day, {}
        return self.shares


@define(eq=False)
class Encoder:
    """Assigns codes in one write transaction. Call `committed` after the commit."""

    _names: "Dictionary"
    _txn: Txn
    _day: int
    _fresh: dict[tuple[CodeSpace, str], int] = field(factory=dict)
    _fresh_count: dict[CodeSpace, int] = field(factory=dict)
    _new: dict[CodeSpace, tuple[NewValues, NewValues]] = field(factory=dict)
    """The new values of the day before this transaction, and those that it adds."""
    _known: dict[int, list[dict[str, int]]] = field(factory=dict)
    """The cached codes of a website's views, by dimension."""
    network: bytes = b""
    """Where the present hit came from; b"" if its network has no share of the limits."""

    def code(self, website: int, dimension: Dimension, text: str) -> int:
        """Return the code of a text: a new one within the daily limit, that of OTHER beyond it."""
        space = (website, dimension)
        known = self._names.state_of(self._txn, space)
        code = self._find(known, space, text)
        if code is not None:
            return code
        if text != OTHER and self._is_past_limit(space, text):
            return self.code(website, dimension, OTHER)
        return self._add(known, space, text)

    def view_codes(self, website: int, texts: Sequence[str]) -> list[int]:
        """Return the codes of a view's texts, in the order of VIEW_DIMENSIONS; see `code`."""
        known = self._known.get(website)
        if known is None:
            known = self._known[website] = [
                self._names.state_of(self._txn, (website, dimension)).codes
                for dimension in VIEW_DIMENSIONS
            ]
        try:
            # Nearly all are known, and a call for each would take most of the time.
            return [codes[text] for codes, text in zip(known, texts, strict=True)]
        except KeyError:
            return [
                self.code(website, dimension, text)
                for dimension, text in zip(VIEW_DIMENSIONS, texts, strict=True)
            ]

    def any_code(self, website: int, dimension: Dimension, text: str) -> int:
        """Return the code of a text without regard to limits, for imports."""
        space = (website, dimension)
        known = self._names.state_of(self._txn, space)
        code = self._find(known, space, text)
        if code is None:
            if space not in self._fresh_count:
                # Many may follow, so count the new values now, while the entries are few.
                latest_new(self._txn, self._names.databases, space, known.next_code)
            code = self._put(known, space, text, NO_DAY)
        return code

    def property_codes(self, website: int, properties: Properties) -> list[int]:
        """Return the codes of properties.

        Names have a bound, values one for each name and in all.
        """
        codes = []
        for name, value in properties:
            kept_name = self._bounded_name(website, name)
            code = self._property(website, kept_name, OTHER if kept_name != name else value)
            if code not in codes:
                codes.append(code)
        return codes

    def committed(self) -> None:
        """Keep the assigned codes in memory, once the transaction is committed."""
        for (space, text), code in self._fresh.items():
            known = self._names.spaces[space]
            self._names.remember(known, text, code)
            known.next_code = max(known.next_code, code + 1)
        for before, more in self._new.values():
            before.add_all(more)

    def _bounded_name(self, website: int, name: str) -> str:
        named = self.code(website, Dimension.PROPERTY_NAME, name)
        other = self._fresh.get(((website, Dimension.PROPERTY_NAME), OTHER))
        if other is None:
            spaces = self._names.spaces
            other = spaces[website, Dimension.PROPERTY_NAME].codes.get(OTHER)
        return OTHER if named == other else name

    def _property(self, website: int, name: str, value: str) -> int:
        space = (website, Dimension.PROPERTY)
        known = self._names.state_of(self._txn, space)
        text = property_text(name, value)
        code = self._find(known, space, text)
        if code is not None:
            return code
        if value != OTHER and self._is_past_limit(space, text):
            return self._property(website, name, OTHER)
        return self._add(known, space, text)

    def _is_past_limit(self, space: CodeSpace, text: str) -> bool:
        """Return whether a limit on a new value, or the network's share of it, is used up today."""
        shares = self._names.state_of(self._txn, space).shares_of(self._day)
        for limit_of, used, limit in self._limits(space, text):
            share = shares.get((self.network, limit_of), 0)
            if used >= limit or (self.network and share * _SHARES >= limit):
                self._names.reach_limit(space, self._day)
                return True
        return False

    def _limits(self, space: CodeSpace, text: str) -> Iterator[tuple[_LimitOf, int, int]]:
        """Yield the limits on a new value: what it is on, what is used, the limit."""
        new, bounds = self._new_on_day(space), self._names.bounds
        if space[1] is not Dimension.PROPERTY:
            used = sum(one.in_all for one in new)
            yield ("", False), used, bounds.get(space[1], self._names.default_bound)
            return
        name, value = split_property(text)
        of_each = bounds[Dimension.PROPERTY]
        has_number = is_number(value)
        if has_number:
            counts = [one.numbers for one in new]
            limits = (of_each * _NUMBERS_OF_EACH, of_each * _NUMBERS_IN_ALL)
        else:
            counts = list(new)
            limits = (of_each, of_each * bounds[Dimension.PROPERTY_NAME])
        yield (name, has_number), sum(one.by_name.get(name, 0) for one in counts), limits[0]
        yield ("", has_number), sum(one.in_all for one in counts), limits[1]

    def _find(self, known: _SpaceState, space: CodeSpace, text: str) -> int | None:
        code = known.codes.get(text)
        if code is not None:
            return code
        code = self._fresh.get((space, text))
        if code is not None:
            return code
        stored = self._txn.get(code_key(space, text), db=self._names.databases.codes)
        if stored is None:
            return None
        found = self._sound_code(space, text, stored)
        if found is not None:
            self._names.remember(known, text, found)
        return found

    def _sound_code(self, space: CodeSpace, text: str, stored: bytes) -> int | None:
        """Return the stored code of a text, repairing damage; None if the text needs a new code.

        Text and code are stored twice, and each place confirms the other.
        """
        names, codes = self._names.databases.dictionary, self._names.databases.codes
        name_key = SPACE_PREFIX.pack(*space) + stored
        name = self._txn.get(name_key, db=names)
        if name is not None and name[DAY.size :] == text.encode():
            return int.from_bytes(stored, "big")
        if name is not None and len(stored) == CODE.size:
            other = name[DAY.size :]
            is_others = self._txn.get(hash_key(space, other), db=codes) == stored
            if not is_others:
                _log.error(
                    "a damaged dictionary entry was repaired: {place}",
                    place=describe_entry(name_key),
                )
                self._txn.put(name_key, name[: DAY.size] + text.encode(), db=names)
                return int.from_bytes(stored, "big")
        _log.error("a damaged code is replaced: {place}", place=describe_entry(name_key))
        for code, known in self._names.entries_from(self._txn, space, 0):
            if known == text:
                self._txn.put(code_key(space, text), CODE.pack(code), db=codes)
                return code
        return None

    def _add(self, known: _SpaceState, space: CodeSpace, text: str) -> int:
        """Assign a code to a text, and count it as a new value of the day.

        A network's share counts from half of the limit on, which bounds the networks in memory. It
        counts at once, even if the transaction fails.
        """
        _, more = self._new_on_day(space)
        shares = known.shares_of(self._day)
        values = values_of(text.encode())
        for limit_of, used, limit in list(self._limits(space, text)) if self.network else ():
            if used * 2 >= limit:
                share = (self.network, limit_of)
                shares[share] = shares.get(share, 0) + values
        more.add(space[1], text.encode())
        return self._put(known, space, text, self._day)

    def _new_on_day(self, space: CodeSpace) -> tuple[NewValues, NewValues]:
        if space not in self._new:
            self._new[space] = (self._names.new_on_day(self._txn, space, self._day), NewValues())
        return self._new[space]

    def _put(self, known: _SpaceState, space: CodeSpace, text: str, day: int) -> int:
        code = known.next_code + self._fresh_count.get(space, 0)
        databases = self._names.databases
        value = DAY.pack(day) + text.encode()
        self._txn.put(ENTRY_KEY.pack(*space, code), value, db=databases.dictionary)
        self._txn.put(code_key(space, text), CODE.pack(code), db=databases.codes)
        self._fresh[space, text] = code
        self._fresh_count[space] = self._fresh_count.get(space, 0) + 1
        return code


@define(eq=False)
class Dictionary:
    """The dictionaries of all websites, as the writer assigns codes. For the writer thread."""

    databases: Databases
    bounds: Mapping[Dimension, int]
    """The daily limit on new values of a website. For PROPERTY it holds for each property name, and
    times the limit on names for all, since names of earlier days add up."""
    default_bound: int
    spaces: dict[CodeSpace, _SpaceState] = field(factory=dict)
    reached: Mapping[CodeSpace, int] = field(factory=dict)
    """The day on which a limit, or a network's share of it, was last used up. For any thread."""
    on_limit: Callable[[CodeSpace], None] = lambda _space: None
    """Called once a day when a limit is used up."""
    cache_bytes: int = _CACHED_BYTES
    _cached_bytes: int = 0

    def encoder(self, txn: Txn, time_ms: int) -> Encoder:
        """Begin to assign codes in a write transaction, on the day of `time_ms` (UTC)."""
        return Encoder(self, txn, day_of(time_ms))

    def state_of(self, txn: Txn, space: CodeSpace) -> _SpaceState:
        """Return the state of a code space, reading it from the store the first time."""
        known = self.spaces.get(space)
        if known is None:
            known = self.spaces[space] = _SpaceState(self._last_code(txn, space) + 1)
        return known

    def new_on_day(self, txn: Txn, space: CodeSpace, day: int) -> NewValues:
        """Return the new values of a code space on a day, counting them the first time."""
        known = self.state_of(txn, space)
        days, new = known.days, known.days.pop(day, None)
        if new is None:
            latest, found = latest_new(txn, self.databases, space, known.next_code)
            new = found if latest == day else NewValues()
        days[day] = new
        while len(days) > _KNOWN_DAYS:
            del days[next(iter(days))]
        return days[day]

    def reach_limit(self, space: CodeSpace, day: int) -> None:
        """Take note that a limit of a code space is used up on a day."""
        if self.reached.get(space) != day:
            self.reached = {**self.reached, space: day}
            self.on_limit(space)

    def remember(self, known: _SpaceState, text: str, code: int) -> None:
        """Cache a code; empty the cache when it is full."""
        size = sys.getsizeof(text) + _ENTRY_BYTES
        if self._cached_bytes + size > self.cache_bytes:
            for space in self.spaces.values():
                space.codes.clear()
            self._cached_bytes = 0
        known.codes[text] = code
        self._cached_bytes += size

    def remove(
        self,
        txn: Txn,
        website: int,
        dimension: Dimension,
        used: NDArray[np.bool_],
        *,
        begin: int,
        most: int,
    ) -> int | None:
        """Delete the unused ones of the next `most` entries, from code `begin` on.

        Returns where to go on, None at the end. The last entry stays, as it gives the next code.
        """
        space = (website, dimension)
        known = self.spaces.get(space)
        names = list(islice(self.entries_from(txn, space, begin), most + 1))
        for code, text in names[:-1]:
            if code >= len(used) or not used[code]:
                txn.delete(ENTRY_KEY.pack(*space, code), db=self.databases.dictionary)
                if txn.get(code_key(space, text), db=self.databases.codes) == CODE.pack(code):
                    txn.delete(code_key(space, text), db=self.databases.codes)
                if known is not None:
                    known.codes.pop(text, None)
        return names[-1][0] if len(names) > most else None

    def entries_from(self, txn: Txn, space: CodeSpace, begin: int) -> Iterator[tuple[int, str]]:
        """Return codes and texts from a code on, without damaged entries."""
        prefix = SPACE_PREFIX.pack(*space)
        with txn.cursor(db=self.databases.dictionary) as cursor:
            found = cursor.set_range(ENTRY_KEY.pack(*space, begin))
            while found and cursor.key().startswith(prefix):
                with suppress(Damaged):
                    yield decode_entry(*cursor.item())
                found = cursor.next()

    def drop(self, website: int) -> None:
        """Drop the state of a deleted website."""
        for space in [space for space in self.spaces if space[0] == website]:
            del self.spaces[space]
        self.reached = {space: day for space, day in self.reached.items() if space[0] != website}

    def _last_code(self, txn: Txn, space: CodeSpace) -> int:
        """Return the last assigned code, -1 for none."""
        is_damaged = False
        website, dimension = space
        end = SPACE_PREFIX.pack(website, dimension + 1)
        for key, value in entries_before(txn, self.databases, space, end):
            if is_consistent(txn, self.databases, space, key, value):
                sound = ENTRY_KEY.unpack(key)[2]
                return last_assigned(txn, self.databases, space, sound) if is_damaged else sound
            is_damaged = True
        return last_assigned(txn, self.databases, space, -1) if is_damaged else -1
