"""The conditions of statements: which rows a query selects, as SQL.

Nothing in a condition is a text: those that match are in sets, which are sent beside a statement.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.clickhouse.client import Upload
from medamad.clickhouse.native import Values
from medamad.clickhouse.tables import LAST_DAY, day_of
from medamad.domain.dimensions import Dimension, split_property
from medamad.domain.zones import DAY_MS
from medamad.query.buckets import Buckets
from medamad.query.filters import Mask
from medamad.query.period import Period
from medamad.storage.dictionary.decode import CodeTexts

ALL: Final = "1"
NONE: Final = "0"

_SET: Final = re.compile(r"\bset\d+\b")


@frozen
class Days:
    """The condition that a visit began on one of some days, from the first to the last."""

    first: int = 0
    last: int = LAST_DAY

    @classmethod
    def in_all(cls, conditions: Iterable["Condition"]) -> "Days":
        """Return the days that fulfil those of some conditions that are of days."""
        days = [each for each in conditions if isinstance(each, cls)]
        first = max((each.first for each in days), default=0)
        return cls(first, min((each.last for each in days), default=LAST_DAY))

    def __str__(self) -> str:
        bounds = [f"visit_day >= {date(self.first)}"] if self.first > 0 else []
        if self.last < LAST_DAY:
            bounds.append(f"visit_day <= {date(self.last)}")
        return " AND ".join(bounds) or ALL


Condition: TypeAlias = str | Days


@define(eq=False)
class Sets:
    """The sets of a request, by the name that conditions have for them."""

    _texts: CodeTexts
    _uploads: dict[str, Upload] = field(factory=dict)
    _names: dict[tuple[Dimension, bytes], str] = field(factory=dict)

    def matching(self, column: str, dimension: Dimension, mask: Mask) -> str:
        """Return the condition that the text in a column is one of those in a mask, by code.

        For Dimension.PROPERTY, the texts of an event's `name` and `value` are meant.
        """
        if dimension is Dimension.PROPERTY:
            column = "(name, value)"
        few, operator = np.flatnonzero(mask), "IN"
        if not len(few):
            return NONE
        if len(few) * 2 > len(mask):
            few, operator = np.flatnonzero(~mask), "NOT IN"
            if not len(few):
                return ALL
        return f"{column} {operator} {self._name(dimension, few)}"

    def one(self, column: str, text: str) -> str:
        """Return the condition that a column has a text, which need not be known."""
        name = f"set{len(self._uploads)}"
        self._uploads[name] = Upload({"text": "String"}, {"text": [text]})
        return f"{column} IN {name}"

    def any_number(self, column: str, numbers: NDArray[np.uint64]) -> str:
        """Return the condition that a column has one of some numbers."""
        if not len(numbers):
            return NONE
        name = f"set{len(self._uploads)}"
        self._uploads[name] = Upload({"number": "UInt64"}, {"number": numbers})
        return f"{column} IN {name}"

    def used_in(self, statement: str) -> Mapping[str, Upload]:
        """Return the sets that a statement needs."""
        return {name: self._uploads[name] for name in _SET.findall(statement)}

    def _name(self, dimension: Dimension, codes: NDArray[np.intp]) -> str:
        key = dimension, codes.tobytes()
        if (name := self._names.get(key)) is not None:
            return name
        name = self._names[key] = f"set{len(self._uploads)}"
        texts = self._texts(dimension)
        wanted = [texts[code] for code in codes.tolist()]
        columns: dict[str, Values] = {"text": wanted}
        if dimension is Dimension.PROPERTY:
            pairs = [split_property(text) for text in wanted]
            columns = {"name": [pair[0] for pair in pairs], "value": [pair[1] for pair in pairs]}
        self._uploads[name] = Upload(dict.fromkeys(columns, "String"), columns)
        return name


def every(conditions: Iterable[Condition]) -> str:
    """Return the condition that all of some hold."""
    wanted = [each for each in map(str, conditions) if each != ALL]
    return NONE if NONE in wanted else " AND ".join(wanted) or ALL


def any_of(conditions: Iterable[str]) -> str:
    """Return the condition that at least one of some holds."""
    wanted = [each for each in conditions if each != NONE]
    return ALL if ALL in wanted else f"({' OR '.join(wanted)})" if wanted else NONE


def during(period: Period, time: str = "time_ms") -> list[str]:
    """Return the conditions that a time, that of a row itself if no other, is in a period."""
    conditions = []
    if period.start_ms is not None:
        conditions.append(f"{time} >= {period.start_ms}")
    if period.end_ms is not None:
        conditions.append(f"{time} <= {period.end_ms}")
    return conditions


def begun_in(period: Period) -> Days:
    """Return the condition that a visit began on a day that is in a period, at least in part."""
    first = 0 if period.start_ms is None else day_of(period.start_ms)
    return Days(first, LAST_DAY if period.end_ms is None else day_of(period.end_ms))


def begun_on_whole_days(period: Period, first: int) -> str:
    """Return the condition that a visit began on a day that is in a period as a whole.

    Its days are those from the day `first` on.
    """
    # Times before the first day of a `Date` and after the last are on these, too.
    if period.start_ms is not None:
        first = max(first, day_of(period.start_ms + DAY_MS - 1), 1)
    conditions = [f"visit_day >= {date(first)}"]
    if period.end_ms is not None:
        conditions.append(f"visit_day < {date(day_of(period.end_ms + 1))}")
    return every(conditions)


def on_any_of(days: Sequence[int], period: Period) -> str:
    """Return the condition that a visit began on one of some ascending days that are in a period.

    NONE if none of them is.
    """
    first = -1 if period.start_ms is None else day_of(period.start_ms)
    last = days[-1] if days and period.end_ms is None else day_of(period.end_ms or 0)
    runs: list[list[int]] = []
    for day in days[bisect_left(days, first) : bisect_right(days, last)]:
        if runs and runs[-1][1] == day - 1:
            runs[-1][1] = day
        else:
            runs.append([day, day])
    during_runs = (f"visit_day BETWEEN {date(start)} AND {date(end)}" for start, end in runs)
    return f"({' OR '.join(during_runs)})" if runs else NONE


def date(day: int) -> str:
    """Return a day as SQL has it."""
    return f"toDate(toUInt16({day}))"


@frozen(eq=False)
class Places:
    """Numbers by which rows are grouped: the SQL of a key, and the place of each key."""

    key: str
    places_of: Callable[[NDArray[Any]], NDArray[np.int64]]
    size: int


def places_in(buckets: Buckets | None, column: str = "time_ms") -> Places:
    """Return the places of buckets by a time that is in one of them, or one place for all."""
    if buckets is None or len(buckets.edges_ms) <= 2:  # noqa: PLR2004 - of one bucket
        size = 1 if buckets is None else len(buckets.dates)
        return Places("0", lambda keys: np.zeros(len(keys), np.int64), size)
    edges_ms = buckets.edges_ms
    first_ms, steps_ms = int(edges_ms[0]), np.diff(edges_ms)
    if (steps_ms == steps_ms[0]).all():
        key = f"intDiv({column} - ({first_ms}), {steps_ms[0]})"
        return Places(key, lambda keys: keys.astype(np.int64), len(buckets.dates))
    since_first_ms = edges_ms - first_ms
    edges = ", ".join(map(str, since_first_ms.tolist()))
    return Places(
        f"roundDown(toUInt64({column} - ({first_ms})), [{edges}])",
        lambda keys: np.searchsorted(since_first_ms, keys, side="right").astype(np.int64) - 1,
        len(buckets.dates),
    )
