"""The daily limit on new values, counted by the dictionary entries on disk.

With each name stands the day on which it came. Those that no bound counts may be very many, as
they come with imports; so what was counted up to some name is kept as a mark, now and then.
"""

from typing import Final, Self

import msgspec
from attrs import define, field, frozen
from twisted.logger import Logger

from medamad.domain.dimensions import Dimension, split_property
from medamad.storage.dictionary.keys import DAY, NAME_KEY, NAMES_OF, Space, names_before
from medamad.storage.environment.checksums import verified, with_checksum
from medamad.storage.environment.environment import Databases, Txn
from medamad.storage.errors import Damaged

NO_DAY: Final = 0xFFFF
"""The day of names that no bound counts."""
MARKS: Final = 0
"""Stands in the keys of marks in the place of a dimension."""
_USUAL_BYTES: Final = 256
"""So many bytes of a text count as one value: what is bounded is bytes."""
_NAMES_WITHOUT_MARK: Final = 1_000
"""So many names are gone through before a mark is left."""
_log: Final = Logger()


@define(eq=False)
class NewValues:
    """The new values of a website and dimension on a day. A long one counts as several."""

    in_all: int = 0
    by_name: dict[str, int] = field(factory=dict)
    """Of properties, by the property's name."""

    def add(self, dimension: Dimension, text: bytes) -> None:
        """Count a value."""
        values = 1 + max(0, len(text) - 1) // _USUAL_BYTES
        self.in_all += values
        if dimension is Dimension.PROPERTY:
            name, _ = split_property(text.decode("utf-8", "replace"))
            self.by_name[name] = self.by_name.get(name, 0) + values

    def add_all(self, more: Self) -> None:
        """Count what was counted there."""
        self.in_all += more.in_all
        for name, values in more.by_name.items():
            self.by_name[name] = self.by_name.get(name, 0) + values


@frozen
class Mark:
    """What is new by the names before code `end`, on the latest day that one of them counts on.

    That day is NO_DAY where none of them counts.
    """

    end: int
    day: int
    new: NewValues


def latest_new(txn: Txn, databases: Databases, space: Space, end: int) -> tuple[int, NewValues]:
    """Return the latest day that a name before code `end` counts on, and what is new on it.

    NO_DAY where none counts. Within a write transaction: after many names a mark is left.
    """
    try:
        mark, is_due = read_mark(txn, databases, space), False
    except Damaged as error:
        mark, is_due = _NOTHING, True
        _log.error(
            "what is new is counted anew: {place}: {error}", place=_place(space), error=error
        )
    begin = NAME_KEY.pack(*space, mark.end)
    day, new, count = NO_DAY, NewValues(), 0
    for key, value in names_before(txn, databases, space, NAME_KEY.pack(*space, end)):
        if key < begin:
            break
        count += 1
        (came,) = DAY.unpack_from(value)
        if came == NO_DAY:
            continue
        if came != day != NO_DAY:
            mark = _NOTHING
            break
        day = came
        new.add(space[1], value[DAY.size :])
    if day in {NO_DAY, mark.day}:
        day = mark.day
        new.add_all(mark.new)
    if is_due or count > _NAMES_WITHOUT_MARK:
        key = mark_key(space)
        value = with_checksum(key, msgspec.json.encode(Mark(end, day, new)))
        txn.put(key, value, db=databases.dictionary)
    return day, new


def read_mark(txn: Txn, databases: Databases, space: Space) -> Mark:
    """Return the mark of a space, one before all names where there is none. Raises Damaged."""
    key = mark_key(space)
    stored = txn.get(key, db=databases.dictionary)
    return _NOTHING if stored is None else msgspec.json.decode(verified(key, stored), type=Mark)


def mark_key(space: Space) -> bytes:
    """Return the key of a mark, among the names of the website, before all dimensions."""
    website, dimension = space
    return NAMES_OF.pack(website, MARKS) + bytes((dimension,))


def _place(space: Space) -> str:
    website, dimension = space
    return f"website {website}, dimension {dimension}"


_NOTHING: Final = Mark(0, NO_DAY, NewValues())
