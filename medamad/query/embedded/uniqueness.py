"""How many visits are alone in what is stored of their browsers, and what each column adds to that.

A visit is alone if no other one of the website that began on the same day has the same values. The
values are those of its first view that describe a browser and where it is, not what was visited.
"""

from collections.abc import Mapping
from datetime import tzinfo
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import Dimension, ViewFlag, ViewNumber
from medamad.domain.zones import day_at, start_of_day
from medamad.query.period import Period
from medamad.query.request import Cancellation
from medamad.storage.segments.format import Integers
from medamad.storage.segments.parts import ViewColumns
from medamad.storage.segments.snapshot import Snapshot

_Column: TypeAlias = Dimension | ViewNumber | ViewFlag

COLUMNS: Final[Mapping[str, tuple[_Column, ...]]] = MappingProxyType(
    {
        "browser": (Dimension.BROWSER, Dimension.BROWSER_VERSION),
        "os": (Dimension.OS, Dimension.OS_VERSION),
        "device": (Dimension.DEVICE,),
        "country": (Dimension.COUNTRY,),
        "language": (Dimension.LOCALE,),
        "width_class": (ViewNumber.WIDTH_CLASS,),
        "host": (Dimension.HOST,),
        "since": (Dimension.SINCE,),
        "hosting": (ViewFlag.HOSTING,),
    }
)
"""What is compared, by its name: a browser is known by its name and its version together."""

Keys = NDArray[np.uint64]
"""A number for each visit, shape (n,): equal for visits with the same values, and for no others but
by chance, of 1 in 2 to the 64th for each pair."""


@frozen
class Uniqueness:
    """The visits of a period, and how many are alone: in all columns, and without each of these."""

    visits: int
    alone: int
    without: Mapping[str, int]


def count_alone(
    snapshot: Snapshot, period: Period, zone: tzinfo, cancellation: Cancellation
) -> Uniqueness:
    """Count the visits that began in a period, and those of them that are alone on their day.

    Views that belong to no visit do not count, and neither do days of which only totals remain.
    """
    random = np.random.default_rng()  # not for secrets
    numbers = {
        column: random.integers(1 << 64, size=_size(snapshot, column), dtype=np.uint64)
        for columns in COLUMNS.values()
        for column in columns
    }
    found: list[Mapping[str, Keys]] = []
    for part in snapshot.leaves():
        cancellation.check()
        if not part.first_visit or period.is_outside(*part.time_bounds):
            continue
        begins = part.visits().begins
        time_ms = part.time_ms[begins]
        is_in = period.mask(time_ms)
        if is_in.any():
            days = _days(time_ms[is_in], zone)
            found.append({"day": days} | _keys(part, begins[is_in], numbers))
    if not found:
        return Uniqueness(0, 0, dict.fromkeys(COLUMNS, 0))
    keys = {name: np.concatenate([each[name] for each in found]) for name in found[0]}
    everything: Keys = np.add.reduce(list(keys.values()))
    return Uniqueness(
        len(everything),
        _count_single(everything),
        {name: _count_single(everything - keys[name]) for name in COLUMNS},
    )


def _size(snapshot: Snapshot, column: _Column) -> int:
    """Return more than the greatest value of a column."""
    if isinstance(column, Dimension):
        return len(snapshot.texts(column)) + 1
    if isinstance(column, ViewFlag):
        return 2
    return 1 << 8 * column.bytes


def _keys(
    part: ViewColumns,
    rows: NDArray[np.intp],
    numbers: Mapping[_Column, Keys],
) -> dict[str, Keys]:
    """Return a key for the values of each of COLUMNS in some rows of a part."""

    def key(column: _Column) -> Keys:
        values: Integers
        if isinstance(column, ViewFlag):
            values = (part.flags & np.uint8(column) > 0).view(np.uint8)
        else:
            values = part.codes(column) if isinstance(column, Dimension) else part.numbers(column)
        return numbers[column].take(values[rows], mode="clip")

    return {name: np.add.reduce(list(map(key, columns))) for name, columns in COLUMNS.items()}


def _days(time_ms: NDArray[np.int64], zone: tzinfo) -> Keys:
    """Return a key for the day of each time in a zone."""
    first, last = (day_at(zone, int(bound) // 1000) for bound in (time_ms.min(), time_ms.max()))
    begins_ms = [start_of_day(zone, day) * 1000 for day in range(first, last + 1)]
    days = np.searchsorted(np.array(begins_ms, np.int64), time_ms, side="right") + first
    # A day has no table of random numbers: its number is spread over all bits (Fibonacci hashing).
    return days.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def _count_single(keys: Keys) -> int:
    """Return how many keys no other one is equal to."""
    ordered = np.sort(keys)
    is_new = np.ones(len(ordered) + 1, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:-1])
    return int(np.count_nonzero(is_new[1:] & is_new[:-1]))
