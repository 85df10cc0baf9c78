"""Dictionary decoding: the texts behind codes, held in memory while they are in use."""

import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from threading import Lock
from typing import Any, Final, Protocol, TypeAlias, overload

import numpy as np
from attrs import define, field
from numpy.typing import NDArray
from twisted.logger import Logger

from medamad.domain.dimensions import Dimension, split_property
from medamad.domain.errors import NotFound
from medamad.storage.dictionary.keys import (
    ENTRY_KEY,
    SPACE_PREFIX,
    decode_entry,
    describe_entry,
    is_consistent,
    last_assigned,
)
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Databases, Environment, Txn
from medamad.storage.errors import Damaged

_BITS: Final = 12
_SIZE: Final = 1 << _BITS


@define(eq=False)
class TextList(Sequence[str]):
    """A growing list of texts, in pieces that become tuples once they are full.

    The garbage collector skips a tuple of texts, while a list of a million would block all threads
    for tens of milliseconds each time. One thread may append while others read.
    """

    _pieces: list[Sequence[str]] = field(factory=list, init=False)
    _open: list[str] = field(factory=list, init=False)
    nbytes: int = field(default=0, init=False)
    """The approximate memory of the texts."""

    def append(self, text: str) -> None:
        """Add a text."""
        if not self._open:
            self._pieces.append(self._open)
        self._open.append(text)
        self.nbytes += sys.getsizeof(text)
        if len(self._open) == _SIZE:
            self._pieces[-1] = tuple(self._open)
            self._open = []

    def extend(self, texts: Iterable[str]) -> None:
        """Add several texts."""
        for text in texts:
            self.append(text)

    def pieces(self) -> list[Sequence[str]]:
        """Return the texts in pieces."""
        return list(self._pieces)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return self._some(*index.indices(len(self)))
        # A code may be a numpy integer too narrow for the arithmetic below.
        place = int(index)
        if place < 0:
            place += len(self)
        if place < 0:
            raise IndexError(index)
        return self._pieces[place >> _BITS][place & _SIZE - 1]

    def take(self, places: Collection[int]) -> list[str]:
        """Return the texts in some places, none of which is negative."""
        if len(places) > len(self) >> 2:
            texts = self[:]
            return [texts[place] for place in places]
        pieces = self._pieces
        return [pieces[place >> _BITS][place & _SIZE - 1] for place in places]

    def __len__(self) -> int:
        pieces = self._pieces
        count = len(pieces)
        return (count - 1) * _SIZE + len(pieces[count - 1]) if count else 0

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(self._pieces)

    def _some(self, start: int, stop: int, step: int) -> list[str]:
        if step != 1 or start >= stop:
            return [self[place] for place in range(start, stop, step)]
        first = start >> _BITS
        pieces = self._pieces[first : (stop - 1 >> _BITS) + 1]
        begin = first << _BITS
        return list(chain.from_iterable(pieces))[start - begin : stop - begin]


DAMAGED: Final = "(damaged)"
"""Shown in place of a damaged text."""
_NAMES_AT_ONCE: Final = 50_000
"""How many entries are read in one transaction."""
_IDLE_CALLS: Final = 40
_log: Final = Logger()


_CACHED: Final = 64


@define(eq=False)
class TextCache:
    """What queries have computed from a website's texts: the values that were used last, by key.

    As long as the cache is used, the lists of texts only grow, also if entries are deleted, and no
    code gets another text. So a value is extended instead of discarded. Any thread may use the
    cache. Nothing may change a value that is in it.
    """

    _values: dict[Hashable, Any] = field(factory=dict)

    def get(self, key: Hashable) -> Any:
        """Return the value of a key, or None."""
        return self._values.get(key)

    def put(self, key: Hashable, value: object) -> None:
        """Store a value, and drop the one that has not been stored again for longest."""
        self._values.pop(key, None)
        self._values[key] = value
        # Another thread may be doing the same: iterate over a copy.
        for oldest in list(self._values)[:-_CACHED]:
            self._values.pop(oldest, None)


class CodeTexts(Protocol):
    """The texts of a website's codes: `texts(dimension)[code]`."""

    @property
    def cache(self) -> TextCache:
        """What queries have computed from the texts."""

    def __call__(self, dimension: Dimension, /) -> Sequence[str]:
        """Return the texts of a dimension, at least up to the greatest code in what is read."""


@define(eq=False)
class WebsiteTexts:
    """The texts of one website by code, read from the store on first use. For any thread.

    A list only ever grows. One that was cleared is read again.
    """

    _environment: Environment
    _website: int
    cache: TextCache = field(factory=TextCache)
    is_deleted: bool = False
    idle_calls: int = 0
    """How often `keep_within` has been called since these texts were last used."""
    _lists: dict[Dimension, TextList] = field(factory=dict)
    _logged: set[bytes] = field(factory=set)
    """The keys of the damaged texts that were logged."""
    _lock: Lock = field(factory=Lock)

    def __call__(self, dimension: Dimension, /) -> Sequence[str]:
        """Return the texts of a dimension by code. Raises NotFound when the website is deleted."""
        with self._lock:
            self.idle_calls = 0
            if self.is_deleted:
                raise _deleted()
            is_new, logged = dimension not in self._lists, len(self._logged)
            texts = self._lists.setdefault(dimension, TextList())
            begin: int | None = len(texts)
            while begin is not None:
                with self._environment.reading() as txn:
                    begin = self._read_some(txn, dimension, texts, begin)
                    # In the same transaction: entries that are added later are not missing.
                    if begin is None and (is_new or len(self._logged) > logged):
                        self._fill_up(txn, dimension, texts)
            return texts

    def size(self) -> int:
        """Return the approximate memory of the lists, in bytes."""
        return sum(texts.nbytes for texts in list(self._lists.values()))

    def clear(self) -> None:
        """Drop the texts and the cache, unless they are being read. Queries keep what they have."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            pieces = [piece for texts in self._lists.values() for piece in texts.pieces()]
            self._lists.clear()
            # It was computed from texts that may be gone when they are read again.
            self.cache = TextCache()
        finally:
            self._lock.release()
        # To free a million texts at once would block all threads.
        while pieces:
            pieces.pop()

    def _fill_up(self, txn: Txn, dimension: Dimension, texts: TextList) -> None:
        """Add placeholders for missing texts at the end."""
        databases, sound = self._environment.databases, len(texts) - 1
        last = last_assigned(txn, databases, (self._website, dimension), sound)
        if last > sound:
            place = describe_entry(ENTRY_KEY.pack(self._website, dimension, last))
            _log.error("texts are missing: {place}", place=place)
            texts.extend([DAMAGED] * (last - sound))

    def _read_some(self, txn: Txn, dimension: Dimension, texts: TextList, begin: int) -> int | None:
        """Read the next entries; return where to go on, None at the end."""
        prefix = SPACE_PREFIX.pack(self._website, dimension)
        known = len(texts)
        with txn.cursor(db=self._environment.databases.dictionary) as cursor:
            # A key that damage has shortened sorts before the original.
            before = (
                ENTRY_KEY.pack(self._website, dimension, begin - 1) + b"\0" if begin else prefix
            )
            found = cursor.set_range(before)
            for _ in range(_NAMES_AT_ONCE):
                if not found or not cursor.key().startswith(prefix):
                    return None
                self._add(txn, dimension, texts, *cursor.item())
                found = cursor.next()
        # If all of them are damaged, those that follow still have greater codes.
        return len(texts) if len(texts) > known else begin + _NAMES_AT_ONCE

    def _add(
        self, txn: Txn, dimension: Dimension, texts: TextList, key: bytes, value: bytes
    ) -> None:
        """Add the text of an entry, if the entry is consistent."""
        space = self._website, dimension
        with suppress(Damaged):
            code, text = decode_entry(key, value)
            is_sound = is_consistent(txn, self._environment.databases, space, key, value)
            if is_sound and code >= len(texts):
                # A vacuum leaves gaps, of codes that nothing uses.
                texts.extend([DAMAGED] * (code - len(texts)))
                texts.append(text)
                return
        if key not in self._logged:
            self._logged.add(key)
            _log.error("a text is damaged and not shown: {place}", place=describe_entry(key))


def keep_within(bound: int, held: Iterable[WebsiteTexts]) -> None:
    """Clear texts while they take more than `bound` bytes, the longest unused first.

    Call it now and then; texts that were used during its last 40 calls stay.
    """
    idle, total = [], 0
    for texts in held:
        total += texts.size()
        if texts.idle_calls >= _IDLE_CALLS:
            idle.append(texts)
        texts.idle_calls += 1
    for texts in sorted(idle, key=lambda texts: texts.idle_calls, reverse=True):
        if total <= bound:
            break
        total -= texts.size()
        texts.clear()


def _deleted() -> NotFound:
    return NotFound("hostname: the website has been deleted")


NumberNames: TypeAlias = Callable[[NDArray[Any]], NDArray[np.intp]]
"""Returns numbers for codes of Dimension.PROPERTY, equal for codes of the same property name."""

_DIMENSION: Final = Dimension.PROPERTY


@define(eq=False)
class PropertyNameNumbers:
    """The `NumberNames` of a website, in the writer's current transaction.

    Looks entries up one by one, since reading all texts would block the writer for long.
    """

    _writing: WriterAccess
    _databases: Databases
    _website: int
    _number_of_code: dict[int, int] = field(factory=dict)
    _number_of_name: dict[str, int] = field(factory=dict)

    def look_up(self, columns: Iterable[NDArray[Any]]) -> Iterator[None]:
        """Look up the new codes of some columns, one at each step."""
        for codes in columns:
            for code in np.unique(codes).tolist():
                if code not in self._number_of_code:
                    numbers = self._number_of_name
                    self._number_of_code[code] = numbers.setdefault(self._name(code), len(numbers))
                    yield

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        """Return the numbers of some codes."""
        for _ in self.look_up([codes]):
            pass
        return np.array([self._number_of_code[code] for code in codes.tolist()], np.intp)

    def _name(self, code: int) -> str:
        space, txn = (self._website, _DIMENSION), self._writing.txn
        key = ENTRY_KEY.pack(*space, code)
        value = txn.get(key, db=self._databases.dictionary)
        if value is None or not is_consistent(txn, self._databases, space, key, value):
            return DAMAGED
        return split_property(decode_entry(key, value)[1])[0]
