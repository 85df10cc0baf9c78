"""What the inner loops of queries take and return."""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from hashlib import blake2b
from struct import Struct
from typing import Any, Final, Self, TypeAlias

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from medamad.storage.segments.format import Integers, MappedColumn

_FEW: Final = 4
"""Comparing with a few codes is faster than looking each of them up."""
_SMALL_CODES: Final = 1 << 16
"""Codes below this are looked up without a comparison."""
_ANY_SIZE: Final = 1 << 32
"""No part has more views."""


def address_of(column: NDArray[Any]) -> int:
    """Return where a column is in memory. Raises ValueError if its numbers are not in a row."""
    if isinstance(column, MappedColumn) and hasattr(column, "address"):
        return column.address
    if not column.flags.c_contiguous:
        raise ValueError("the numbers of a column must follow each other")
    address: int = column.__array_interface__["data"][0]
    return address


_struct_of: Final = cache(lambda count: Struct(f"{count}q"))


def pack(*fields: int) -> bytes:
    """Return fields of a structure of kernel.c, in its order."""
    packed: bytes = _struct_of(len(fields)).pack(*fields)
    return packed


def fields_of(*columns: NDArray[Any] | None) -> list[int]:
    """Return the fields of each `column` of kernel.c: its address and the width of its numbers."""
    fields: list[int] = []
    for column in columns:
        if column is None:
            fields += (0, 0)
        elif column.strides == (0,):
            fields += (address_of(column[:1]), 0)
        else:
            fields += (address_of(column), column.itemsize)
    return fields


@frozen(eq=False)
class CodeTable:
    """Which codes match: `mask[code]`. Greater codes do not."""

    mask: NDArray[np.bool_]
    _entries: NDArray[np.bool_] = field(init=False)
    """The mask with zeros after it."""
    packed: bytes = field(init=False)
    """The `filter` of kernel.c."""

    @_entries.default
    def _pad(self) -> NDArray[np.bool_]:
        entries = np.zeros(max(len(self.mask), _SMALL_CODES) + 1, np.bool_)
        entries[: len(self.mask)] = self.mask
        return entries

    @packed.default
    def _pack(self) -> bytes:
        codes = np.flatnonzero(self.mask)
        count = len(codes) if len(codes) <= _FEW else -1
        some = codes[:_FEW].tolist()
        padding = [0] * (_FEW - len(some))
        size = len(self._entries) - 1
        return pack(address_of(self._entries), size, count, *some, *padding)


FIRST_OF_VISIT: Final = CodeTable(np.array([False, True]))
"""Matches the offset of the first view of a visit."""
_WORD_BYTES: Final = 8


@frozen(eq=False)
class RowMask:
    """Which of the rows 0 to size - 1 match: a bit for each, the lowest of a byte first.

    The other bits are zeros, of which there are enough to read 64 bits at any row.
    """

    size: int
    bits: NDArray[np.uint8]
    address: int = field(init=False)
    """Where the bits are in memory."""

    @address.default
    def _find_address(self) -> int:
        return address_of(self.bits)

    @property
    def count(self) -> int:
        """How many rows match."""
        return int(np.bitwise_count(self.bits).sum())

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self.bits.nbytes

    @cached_property
    def digest(self) -> bytes:
        """What is equal for masks of the same rows."""
        return blake2b(self.bits.tobytes(), digest_size=16).digest()

    @classmethod
    def of_none(cls, size: int) -> Self:
        """Return the mask without any row."""
        return cls(size, np.zeros(size // 8 + 2 * _WORD_BYTES, np.uint8))

    @classmethod
    def of_rows(cls, size: int, rows: Integers) -> Self:
        """Return the mask of some rows."""
        mask = np.zeros(size, np.bool_)
        mask[rows] = True
        return cls.packed(mask)

    @classmethod
    def packed(cls, mask: NDArray[np.bool_]) -> Self:
        """Return the mask of the rows that match, given as in `unpacked`."""
        none = cls.of_none(len(mask))
        packed = np.packbits(mask, bitorder="little")
        none.bits[: len(packed)] = packed
        return none

    def with_rows(self, rows: NDArray[np.intp]) -> "RowMask":
        """Return the mask with some more rows."""
        bits = self.bits.copy()
        np.bitwise_or.at(bits, rows >> 3, np.uint8(1) << (rows & 7).astype(np.uint8))
        return RowMask(self.size, bits)

    def without_rows(self, rows: Integers) -> "RowMask":
        """Return the mask without some rows."""
        if not len(rows):
            return self
        bits = self.bits.copy()
        np.bitwise_and.at(bits, rows >> 3, ~(np.uint8(1) << (rows & 7).astype(np.uint8)))
        return RowMask(self.size, bits)

    def inverted(self) -> "RowMask":
        """Return the mask of all other rows."""
        bits = np.zeros_like(self.bits)
        whole, rest = divmod(self.size, 8)
        np.invert(self.bits[:whole], out=bits[:whole])
        bits[whole] = ~self.bits[whole] & ((1 << rest) - 1)
        return RowMask(self.size, bits)

    def within(self, other: "RowMask") -> "RowMask":
        """Return the mask of the rows that are in another one of the same size, too."""
        return RowMask(self.size, self.bits & other.bits)

    @property
    def is_empty(self) -> bool:
        """Whether no row matches."""
        return not self.bits.max(initial=0)

    def of(self, rows: Integers) -> NDArray[np.bool_]:
        """Return which of some rows match."""
        bits = self.bits.take(rows >> 3) >> (rows & 7).astype(np.uint8)
        return (bits & 1).view(np.bool_)

    def unpacked(self) -> NDArray[np.bool_]:
        """Return which rows match, shape (size,)."""
        return np.unpackbits(self.bits, count=self.size, bitorder="little").view(np.bool_)

    @property
    def rows(self) -> NDArray[np.intp]:
        """The rows that match, ascending."""
        return np.flatnonzero(self.unpacked())


@frozen(eq=False)
class PartViews:
    """Views of a part: the rows from `begin` to before `end`, or those of them that are in a mask.

    `numbers` are what the views are added up by, with their flags and durations. All are columns of
    the part. `same_number` makes such a column.
    """

    begin: int
    end: int
    mask: RowMask | None = None
    numbers: Integers | None = None
    flags: NDArray[np.uint8] | None = None
    duration_ms: Integers | None = None

    def __len__(self) -> int:
        return self.end - self.begin

    @property
    def packed(self) -> bytes:
        """The `views` of kernel.c."""
        mask = 0 if self.mask is None else self.mask.address
        columns = fields_of(self.numbers, self.flags, self.duration_ms)
        return pack(self.begin, self.end, mask, *columns)


def same_number(number: int) -> NDArray[np.uint32]:
    """Return a column for any part that has the same number for each view."""
    return np.broadcast_to(np.array(number, np.uint32), (_ANY_SIZE,))


@frozen(eq=False)
class Groups:
    """Groups 0 to count - 1 of numbers: `of[number]`, or the last one of `of` for greater numbers.

    The group `count` stands for none.
    """

    of: NDArray[np.uint32]
    count: int

    def some(self, first: int, most: int) -> "Groups":
        """Return those from one on, up to so many, numbered from 0 on."""
        count = min(self.count - first, most)
        # Numbers below the first one become great ones.
        return Groups(np.minimum(self.of - np.uint32(first), np.uint32(count)), count)


@frozen(eq=False)
class OwnEvents:
    """Events of a part's own views by row: properties, rows of their views, and where they begin.

    The rows of an event follow each other, and are of the same view. `matching` has the views that
    match.
    """

    properties: Integers
    views: Integers
    begins: RowMask
    matching: RowMask

    def __len__(self) -> int:
        return len(self.properties)

    @property
    def packed(self) -> bytes:
        """The `events` of kernel.c."""
        begins, matching = self.begins.address, self.matching.address
        columns = fields_of(self.properties, self.views)
        return pack(*columns, len(self), begins, matching, self.matching.size)


@frozen(eq=False)
class VisitsToSum:
    """Visits that begin in a part of n views, and what they are added up by.

    They begin in the rows `chosen`. `codes` has a number for each view, shape (n,), of which the
    first view of each visit counts, or with `spans` the one that is so many rows after it. `added`
    are columns of all visits that begin in the part, as `spans` is. With neither, `chosen` may have
    any views, each of which counts. Without `offsets` and `chosen`, each row is one of the visits.
    """

    offsets: Integers | None
    chosen: RowMask | None
    codes: Integers
    spans: Integers | None = None
    added: Sequence[NDArray[Any]] = ()

    def __len__(self) -> int:
        return len(self.codes if self.offsets is None else self.offsets)

    @property
    def packed(self) -> bytes:
        """The `visits` of kernel.c."""
        chosen = 0 if self.chosen is None else self.chosen.address
        columns = fields_of(self.offsets, self.codes, self.spans, *self.added)
        return pack(len(self), chosen, *columns)


@frozen(eq=False)
class GoalsInVisits:
    """Visits that begin in the rows `chosen` of a part, and where the part's visits reached goals.

    For each goal `rows` has those of the views that reached it, and `moments` when each of them
    did, None if the order of the goals does not count.
    """

    offsets: Integers
    chosen: RowMask
    rows: Sequence[NDArray[np.uint32]]
    moments: Sequence[NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def packed(self) -> bytes:
        """The `reached` of kernel.c."""
        packed = pack(len(self), self.chosen.address, *fields_of(self.offsets))
        for place, rows in enumerate(self.rows):
            moments = 0 if self.moments is None else address_of(self.moments[place])
            packed += pack(address_of(rows), moments, len(rows))
        return packed


@frozen(eq=False)
class ViewsInVisits:
    """Some views of a part of n, and what tells the visits that all of its views belong to.

    `offsets` and `spans` are those of `parts.VisitColumns`, and `codes` what the views have, shape
    (n,). Only visits that begin in the rows `chosen` count.
    """

    views: PartViews
    offsets: Integers
    spans: Integers
    codes: Integers
    chosen: RowMask

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def packed(self) -> bytes:
        """The `beside` of kernel.c."""
        columns = fields_of(self.offsets, self.codes, self.spans)
        packed = pack(len(self), self.chosen.address, *columns, len(self.spans))
        return packed + self.views.packed


Batch: TypeAlias = Sequence[PartViews]
"""Views of some parts."""
Batches: TypeAlias = Callable[[], Iterable[Batch]]
"""Returns the same batches each time."""
