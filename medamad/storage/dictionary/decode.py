"""Dictionary decoding: the texts behind codes, held in memory while they are in use."""

import sys
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from threading import Lock
from typing import Any, Final, TypeAlias, overload

import numpy as np
from attrs import define, field
from numpy.typing import NDArray
from twisted.logger import Logger

from medamad.domain.dimensions import Dimension, split_property
from medamad.domain.errors import NotFound
from medamad.storage.dictionary.keys import (
    NAME_KEY,
    NAMES_OF,
    is_borne_out,
    last_given,
    name_place,
    split_name,
)
from medamad.storage.environment.access import WriterAccess
from medamad.storage.environment.environment import Databases, Environment, Txn
from medamad.storage.errors import Damaged

_BITS: Final = 12
_SIZE: Final = 1 << _BITS


@define(eq=False)
class Growing(Sequence[str]):
    """A list of texts in pieces, each a tuple once it is full.

    The garbage collector does not go through a tuple of texts; a list of a million would hold all
    threads up for tens of milliseconds each time. One thread may add while others read.
    """

    _pieces: list[Sequence[str]] = field(factory=list, init=False)
    _open: list[str] = field(factory=list, init=False)
    nbytes: int = field(default=0, init=False)
    """About how many bytes of memory the texts take."""

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
        # A code may be a number of numpy's, too narrow to reckon with.
        place = int(index)
        if place < 0:
            place += len(self)
        if place < 0:
            raise IndexError(index)
        return self._pieces[place >> _BITS][place & _SIZE - 1]

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
"""What is shown in the place of a text that is not what was written."""
_NAMES_AT_ONCE: Final = 50_000
"""How many are read in a transaction."""
_UNASKED: Final = 40
_log: Final = Logger()


_CACHED: Final = 64


@define(eq=False)
class TextCache:
    """What queries have computed from a website's texts: the values that were used last, by key.

    A website only ever gains texts, so that a value is extended instead of discarded. Any thread
    may use the cache. Nothing may change a value that is in it.
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


@define(eq=False)
class Texts:
    """One website's texts: lists by code, read from the store when they are asked for.

    Used by any thread. A list only ever grows; one that is let go of is read anew.
    """

    _environment: Environment
    _website: int
    cache: TextCache = field(factory=TextCache)
    is_deleted: bool = False
    unasked: int = 0
    """How often `keep_within` has looked at these texts since somebody asked for them."""
    _lists: dict[Dimension, Growing] = field(factory=dict)
    _told: set[bytes] = field(factory=set)
    """The keys of the texts that the log says are damaged."""
    _lock: Lock = field(factory=Lock)

    def __call__(self, dimension: Dimension, /) -> Sequence[str]:
        """Return the texts of a dimension by code. Raises NotFound when the website is deleted."""
        with self._lock:
            self.unasked = 0
            if self.is_deleted:
                raise _deleted()
            is_new, told = dimension not in self._lists, len(self._told)
            texts = self._lists.setdefault(dimension, Growing())
            begin: int | None = len(texts)
            while begin is not None:
                with self._environment.reading() as txn:
                    begin = self._read_some(txn, dimension, texts, begin)
                    # Of the same moment as the end: what is named later is not missing.
                    if begin is None and (is_new or len(self._told) > told):
                        self._fill_up(txn, dimension, texts)
            return texts

    def size(self) -> int:
        """Return about how many bytes of memory the lists take."""
        return sum(texts.nbytes for texts in list(self._lists.values()))

    def let_go(self) -> None:
        """Let go of the lists, unless they are being read. Queries keep those they have."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            pieces = [piece for texts in self._lists.values() for piece in texts.pieces()]
            self._lists.clear()
        finally:
            self._lock.release()
        # To free a million texts at once would hold all threads up.
        while pieces:
            pieces.pop()

    def _fill_up(self, txn: Txn, dimension: Dimension, texts: Growing) -> None:
        """Put something in the place of the last texts, if they are not there."""
        databases, sound = self._environment.databases, len(texts) - 1
        last = last_given(txn, databases, (self._website, dimension), sound)
        if last > sound:
            place = name_place(NAME_KEY.pack(self._website, dimension, last))
            _log.error("texts are missing: {place}", place=place)
            texts.extend([DAMAGED] * (last - sound))

    def _read_some(self, txn: Txn, dimension: Dimension, texts: Growing, begin: int) -> int | None:
        """Read the next names; returns where to go on, None at the end."""
        prefix = NAMES_OF.pack(self._website, dimension)
        known = len(texts)
        with txn.cursor(db=self._environment.databases.dictionary) as cursor:
            # A key that damage made shorter stands before the one that was written.
            before = NAME_KEY.pack(self._website, dimension, begin - 1) + b"\0" if begin else prefix
            found = cursor.set_range(before)
            for _ in range(_NAMES_AT_ONCE):
                if not found or not cursor.key().startswith(prefix):
                    return None
                self._add(txn, dimension, texts, *cursor.item())
                found = cursor.next()
        # Where all of them are damaged, those that follow have greater codes nevertheless.
        return len(texts) if len(texts) > known else begin + _NAMES_AT_ONCE

    def _add(
        self, txn: Txn, dimension: Dimension, texts: Growing, key: bytes, value: bytes
    ) -> None:
        """Add a text, if it is the one that its code was given to."""
        space = self._website, dimension
        with suppress(Damaged):
            code, text = split_name(key, value)
            is_sound = is_borne_out(txn, self._environment.databases, space, key, value)
            if is_sound and code >= len(texts):
                # Where names were removed there is a gap, of codes that nothing has.
                texts.extend([DAMAGED] * (code - len(texts)))
                texts.append(text)
                return
        if key not in self._told:
            self._told.add(key)
            _log.error("a text is damaged and not shown: {place}", place=name_place(key))


def keep_within(bound: int, held: Iterable[Texts]) -> None:
    """Let go of texts while they take more than so many bytes: those unasked for longest first.

    To be called now and then; those that were asked for between its last 40 calls stay.
    """
    idle, total = [], 0
    for texts in held:
        total += texts.size()
        if texts.unasked >= _UNASKED:
            idle.append(texts)
        texts.unasked += 1
    for texts in sorted(idle, key=lambda texts: texts.unasked, reverse=True):
        if total <= bound:
            break
        total -= texts.size()
        texts.let_go()


def _deleted() -> NotFound:
    return NotFound("hostname: the website has been deleted")


NamesOf: TypeAlias = Callable[[NDArray[Any]], NDArray[np.intp]]
"""Gives numbers for codes of Dimension.PROPERTY: the same for those that bear the same name."""

_DIMENSION: Final = Dimension.PROPERTY


@define(eq=False)
class PropertyNames:
    """Those of one website, looked up one by one: all texts would hold the writer up for long.

    A `NamesOf`. Works in whatever transaction `_writing` is at.
    """

    _writing: WriterAccess
    _databases: Databases
    _website: int
    _number_of_code: dict[int, int] = field(factory=dict)
    _number_of_name: dict[str, int] = field(factory=dict)

    def look_up(self, columns: Iterable[NDArray[Any]]) -> Iterator[None]:
        """Look up, one at a time, the codes of some columns that are not known yet."""
        for codes in columns:
            for code in np.unique(codes).tolist():
                if code not in self._number_of_code:
                    numbers = self._number_of_name
                    self._number_of_code[code] = numbers.setdefault(self._name(code), len(numbers))
                    yield

    def __call__(self, codes: NDArray[Any]) -> NDArray[np.intp]:
        """Return the numbers of some codes, looking up what is not known yet."""
        for _ in self.look_up([codes]):
            pass
        return np.array([self._number_of_code[code] for code in codes.tolist()], np.intp)

    def _name(self, code: int) -> str:
        space, txn = (self._website, _DIMENSION), self._writing.txn
        key = NAME_KEY.pack(*space, code)
        value = txn.get(key, db=self._databases.dictionary)
        if value is None or not is_borne_out(txn, self._databases, space, key, value):
            return DAMAGED
        return split_property(split_name(key, value)[1])[0]
