"""Plain rows: what a reader of whatever format gives, and an import takes in.

A reader is a function of an open binary file that gives its rows one after the other, and a
`Refused` in the place of each that it cannot read. A reader of a foreign format numbers its views
and events itself, from 1, each number once in all of them together, and leaves `store` empty; an
event names its view by that number. Where all numbers are left 0, they are given in order.
"""

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import BinaryIO, Final, TypeAlias

import msgspec

from medamad.domain.dimensions import VIEW_DIMENSIONS


class ViewRow(msgspec.Struct, kw_only=True):
    """A view. The texts are in the form in which they are stored, see `model.hits.View`."""

    time_ms: int
    path: str
    store: str = ""
    """The store that counted it first; empty for one that came from no store of medamad."""
    number: int = 0
    """Its number in that store."""
    first_today: bool = False
    first_of_page: bool = False
    number_today: int = 0
    width_px: int = 0
    duration_ms: int = 0
    referrer: str = ""
    utm_source: str = ""
    utm_medium: str = ""
    utm_campaign: str = ""
    utm_term: str = ""
    utm_content: str = ""
    browser: str = "Unknown"
    browser_version: str = ""
    os: str = "Unknown"
    os_version: str = ""
    device: str = "Unknown"
    country: str = ""
    locale: str = ""
    host: str = ""
    line: int = 0
    """Of the file, as of a Refused; 0 where it is not told."""
    identity: int = 0
    """Of another program's row, what it is known by again besides what it says, hashed; 0 if by
    its number, or by what it says alone."""


class EventRow(msgspec.Struct, kw_only=True):
    """A property of an event. The rows of an event follow each other and have the same number."""

    time_ms: int
    name: str
    value: str
    store: str = ""
    number: int = 0
    view: int = 0
    """The number of its view, 0 for none."""
    line: int = 0
    identity: int = 0


class Refused(msgspec.Struct, frozen=True):
    """A row that cannot be taken in."""

    line: int
    """Of the file, or the row where it has no lines; from 1."""
    field: str
    reason: str


Row: TypeAlias = ViewRow | EventRow
Reader: TypeAlias = Callable[[BinaryIO, int], Iterator[Row | Refused]]
"""Takes the last time that is taken in too, in Unix milliseconds."""

texts_of: Final = attrgetter(*(dimension.attribute for dimension in VIEW_DIMENSIONS))
"""Gives the texts of a view, in the order of VIEW_DIMENSIONS."""


_numbers_of: Final = attrgetter("first_today", "first_of_page", "number_today", "width_px")


def said_by(row: Row) -> tuple[int | str, ...]:
    """Return what a row says. Time on a page, and the view of an event, come later."""
    if isinstance(row, ViewRow):
        return (row.time_ms, *_numbers_of(row), *texts_of(row))
    return (row.time_ms, row.name, row.value)


MAX_MS: Final = 253_402_300_799_999
"""The last millisecond of the year 9999."""

AHEAD: Final = "expected a time that is at most a day ahead"
"""Why a row is refused that is of the future: all before its time would count as counted."""
