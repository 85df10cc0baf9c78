"""The daily limit on new values, counted by the dictionary entries on disk.

Each entry has the day on which it was added. Imports may add very many entries that no limit
counts, so a count mark is stored now and then: the new values up to some code.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Self

import msgspec
from attrs import define, field, frozen

from medamad.domain.dimensions import OTHER, Dimension, split_property
from medamad.domain.goals import amount_of
from medamad.storage.dictionary.keys import DAY, ENTRY_KEY, SPACE_PREFIX, CodeSpace, entries_before
from medamad.storage.environment.environment import Databases, Txn
from medamad.storage.environment.meta import decoded, sound, with_checksum

NO_DAY: Final = 0xFFFF
"""The day of entries that no limit counts."""
COUNT_MARKS: Final = 0
"""Takes the place of a dimension in the keys of count marks."""
_USUAL_BYTES: Final = 256
"""A text counts as one value for each so many bytes, since the limit is on space."""
_ENTRIES_WITHOUT_MARK: Final = 1_000
"""How many entries are counted before a mark is stored."""
_KEYS: Final[Mapping[Dimension, str]] = MappingProxyType(
    {
        Dimension.PATH: "new_paths",
        Dimension.REFERRER: "new_referrers",
        Dimension.UTM_SOURCE: "new_utm",
        Dimension.UTM_MEDIUM: "new_utm",
        Dimension.UTM_CAMPAIGN: "new_utm",
        Dimension.UTM_TERM: "new_utm",
        Dimension.UTM_CONTENT: "new_utm",
        Dimension.PROPERTY_NAME: "new_property_names",
        Dimension.PROPERTY: "new_property_values",
    }
)
"""The configuration keys of the limits, where they have one of their own."""
_NUMBER_LENGTH: Final = 32
"""A longer text is no number, so that numbers are small."""


def is_number(value: str) -> bool:
    """Return whether the value of a property is a number, which has limits of its own.

    There are more amounts than words, and an order whose amount counted as OTHER would be lost.
    """
    return len(value) <= _NUMBER_LENGTH and amount_of(value) is not None


def values_of(text: bytes) -> int:
    """Return how many values a text counts as."""
    return 1 + max(0, len(text) - 1) // _USUAL_BYTES


def limit_warning(hostname: str, dimension: Dimension) -> str:
    """Return the warning that a limit on new values of a website is used up, with what to do."""
    return (
        f"{hostname}: new values of {dimension.attribute}, all of them or those of one network,"
        f" count as {OTHER} until midnight UTC: a daily limit, or the network's quarter of it, is"
        f" used up; if they are genuine, raise [limits] {_KEYS.get(dimension, 'new_values')},"
        " otherwise add the network to [events] blocked"
    )


@define(eq=False)
class Counts:
    """A number of values, a long one counted several times."""

    in_all: int = 0
    by_name: dict[str, int] = field(factory=dict)
    """Of properties, by the property's name."""

    def add_some(self, values: int, name: str | None) -> None:
        """Count values, of the property of that name if they are of one."""
        self.in_all += values
        if name is not None:
            self.by_name[name] = self.by_name.get(name, 0) + values

    def add_counts(self, more: "Counts") -> None:
        """Add the counts of another."""
        self.in_all += more.in_all
        for name, values in more.by_name.items():
            self.by_name[name] = self.by_name.get(name, 0) + values


@define(eq=False)
class NewValues(Counts):
    """The new values of a code space on a day. The numbers among those of properties are apart."""

    numbers: Counts = field(factory=Counts)

    def add(self, dimension: Dimension, text: bytes) -> None:
        """Count a value."""
        values = values_of(text)
        if dimension is Dimension.PROPERTY:
            name, value = split_property(text.decode("utf-8", "replace"))
            (self.numbers if is_number(value) else self).add_some(values, name)
        else:
            self.add_some(values, None)

    def add_all(self, more: Self) -> None:
        """Add the counts of another."""
        self.add_counts(more)
        self.numbers.add_counts(more.numbers)


@frozen
class CountMark:
    """The new values among the codes before `end`, on the latest of their days.

    The day is NO_DAY if no limit counts any of them.
    """

    end: int
    day: int
    new: NewValues


def latest_new(txn: Txn, databases: Databases, space: CodeSpace, end: int) -> tuple[int, NewValues]:
    """Return the latest day of the codes before `end`, and the new values of that day.

    The day is NO_DAY if no limit counts any of them. Needs a write transaction, to store a mark.
    """
    known = sound(
        f"the count of new values, {_place(space)}",
        lambda: read_count_mark(txn, databases, space),
        None,
    )
    # Without a mark, new values are counted again.
    mark, is_due = (_NOTHING, True) if known is None else (known, False)
    begin = ENTRY_KEY.pack(*space, mark.end)
    day, new, count = NO_DAY, NewValues(), 0
    for key, value in entries_before(txn, databases, space, ENTRY_KEY.pack(*space, end)):
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
    if is_due or count > _ENTRIES_WITHOUT_MARK:
        key = count_mark_key(space)
        value = with_checksum(key, msgspec.json.encode(CountMark(end, day, new)))
        txn.put(key, value, db=databases.dictionary)
    return day, new


def read_count_mark(txn: Txn, databases: Databases, space: CodeSpace) -> CountMark:
    """Return the count mark of a code space, an empty one if there is none. Raises Damaged."""
    key = count_mark_key(space)
    stored = txn.get(key, db=databases.dictionary)
    return _NOTHING if stored is None else decoded(key, stored, CountMark)


def count_mark_key(space: CodeSpace) -> bytes:
    """Return the key of a count mark, which sorts before the entries of the website."""
    website, dimension = space
    return SPACE_PREFIX.pack(website, COUNT_MARKS) + bytes((dimension,))


def _place(space: CodeSpace) -> str:
    website, dimension = space
    return f"website {website}, dimension {dimension}"


_NOTHING: Final = CountMark(0, NO_DAY, NewValues())
