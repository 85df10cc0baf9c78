"""Plain rows: what every reader yields and every import accepts.

A reader yields rows in the order of its file, and a `RejectedRow` in place of each one that it
cannot read. A reader for another program's format numbers its views and events from 1 through its
`ReadContext`, never reusing a number, and leaves `store` empty; an event refers to its view by that
number. Rows whose number is 0 are numbered as they are read.
"""

from datetime import date
from operator import attrgetter
from typing import Final, TypeAlias

import msgspec
from attrs import define, frozen

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewFlag
from medamad.domain.hits import NUMBERS_OF_HITS, StoredView
from medamad.storage.import_content import Counted


@define(kw_only=True)
class ViewRow(StoredView):
    """A view. Its texts are already in the form in which they are stored."""

    time_ms: int
    store: str = ""
    """The store that first counted the view; empty if no medamad store did."""
    number: int = 0
    """Its number in that store."""
    visit: int = 0
    """The number of the first view of its visit; 0 if unknown."""
    duration_ms: int = 0
    line: int = 0
    """The line in the file, as in `RejectedRow`; 0 if unknown."""
    identity: int = 0
    """A hash that distinguishes rows of another program even if their content is equal.

    0 if the number, or the content alone, identifies the row.
    """


class EventRow(msgspec.Struct, kw_only=True):
    """One property of an event. The rows of an event are adjacent and share a number."""

    time_ms: int
    name: str
    value: str
    store: str = ""
    number: int = 0
    view: int = 0
    """The number of its view; 0 for none."""
    line: int = 0
    identity: int = 0


HitRow: TypeAlias = ViewRow | EventRow


class RejectedRow(msgspec.Struct, frozen=True):
    """A row that cannot be imported."""

    line: int
    """The line in the file, or the row where a file has no lines; from 1, 0 if unknown."""
    field: str
    reason: str


texts_of: Final = attrgetter(*(dimension.attribute for dimension in VIEW_DIMENSIONS))
"""Returns the texts of a view, in the order of VIEW_DIMENSIONS."""

_flags_and_numbers: Final = attrgetter(*(each.attribute for each in (*ViewFlag, *NUMBERS_OF_HITS)))


def field_with_nul(row: HitRow) -> str:
    """Return the name of a text with NUL, which separates texts in the store; "" for none."""
    if isinstance(row, EventRow):
        return next((name for name in ("name", "value") if "\0" in getattr(row, name)), "")
    texts = texts_of(row)
    if "\0" not in "".join(texts):
        return ""
    return next(d.attribute for d, text in zip(VIEW_DIMENSIONS, texts, strict=True) if "\0" in text)


def row_content(row: HitRow) -> tuple[int | str, ...]:
    """Return the values that two copies of a row share.

    Time on page, and the view of an event, are left out: both may become known later.
    """
    if isinstance(row, ViewRow):
        return (row.time_ms, *_flags_and_numbers(row), *texts_of(row))
    return (row.time_ms, row.name, row.value)


MAX_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""

NUL: Final = "expected text without NUL"
"""Why a row with NUL in a text is rejected: it separates texts in the store."""

FUTURE_TIME: Final = "expected a time at most a day in the future"
"""Why a row from the future is rejected: later imports would skip everything before its time."""


@frozen
class DayTable:
    """A table of daily figures: the dimensions it counts by, and whether it has the day's total.

    `visits` says what it knows of visits, if anything.
    """

    name: str
    dimensions: tuple[Dimension, ...] = ()
    is_total: bool = False
    visits: Counted | None = None


class DayRow(msgspec.Struct):
    """Daily figures of one combination of texts, one text for each dimension of the table.

    `bounces` are out of `visits`; both are 0 if unknown. `time_s` is the total for all views;
    `visit_views` and `visit_s` are those of the visits. `page_visits` are the visits that saw a
    page, and `exits` those that ended on it.
    """

    table: DayTable
    day: int
    """The local date, in days since 1970-01-01."""
    texts: tuple[str, ...] = ()
    views: int = 0
    """The number of events in a table that counts by property."""
    visitors: int = 0
    page_visitors: int = 0
    visits: int = 0
    bounces: int = 0
    time_s: int = 0
    visit_views: int = 0
    visit_s: int = 0
    page_visits: int = 0
    exits: int = 0
    line: int = 0
    member: str = ""
    """The file within an archive that the line is in."""


MAX_FIGURE: Final = (1 << 32) - 1
"""The greatest figure that a `DayRow` can hold."""
_EPOCH: Final = date(1970, 1, 1).toordinal()
_DATE_LENGTH: Final = len("2026-01-31")


def parse_day(text: str) -> int:
    """Return the day number of a date such as 2026-01-31. Raises ValueError for anything else."""
    day = date.fromisoformat(text).toordinal() - _EPOCH
    if day < 0 or len(text) != _DATE_LENGTH:
        raise ValueError(text)
    return day
