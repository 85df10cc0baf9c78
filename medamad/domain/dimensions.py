"""The columns of a view: the texts that it is counted by, numbers, and flags.

What a hit brings of them is a field of `medamad.domain.hits.StoredView`, of the same name in lower
case. The write-ahead log, the memtable, segments, exports and imports follow from both.
"""

from bisect import bisect_right
from enum import Enum, IntEnum, IntFlag, StrEnum
from typing import Final


class Dimension(IntEnum):
    """A text that is kept as a code: of a view or, PROPERTY, name and value of an event's property.

    PROPERTY_NAME only counts a website's property names.

    The numbers are part of the store's format: never change or reuse one. A new dimension comes
    last and takes the next number, so a new one of views follows those of events.
    """

    PATH = 1
    REFERRER = 2
    UTM_SOURCE = 3
    UTM_MEDIUM = 4
    UTM_CAMPAIGN = 5
    UTM_TERM = 6
    UTM_CONTENT = 7
    BROWSER = 8
    BROWSER_VERSION = 9
    OS = 10
    OS_VERSION = 11
    DEVICE = 12
    COUNTRY = 13
    LOCALE = 14
    HOST = 15
    PROPERTY = 16
    PROPERTY_NAME = 17
    SINCE = 18

    __hash__ = int.__hash__  # that of an enum is a function in Python

    @property
    def attribute(self) -> str:
        """The name of the field of a `StoredView` that holds this dimension's text."""
        return self.name.lower()


class ViewNumber(Enum):
    """A small number kept with a view, 0 if unknown: its column in the store, and its bytes.

    The columns are part of the store's format: never change one. 36 to 39 are for numbers; 36 and
    37 are free. The write-ahead log has the numbers in this order, that of the visit last.
    """

    WIDTH_CLASS = (38, 1)
    VISIT_OFFSET = (39, 4)
    """1 plus the distance from the sequence number of the first view of its visit to its own."""

    @property
    def attribute(self) -> str:
        """The name of the field of a `StoredView` that holds this number, if hits bring it."""
        return self.name.lower()

    @property
    def column(self) -> int:
        """The number of its column in a segment."""
        return self.value[0]

    @property
    def bytes(self) -> int:
        """The size in memory, 1, 2, 4 or 8."""
        return self.value[1]


class ViewFlag(IntFlag):
    """A bit of a view's flags that its hit sets. 4 and 8 are set by its duration.

    The bits are part of the store's format: never change one. The next is 32.
    """

    FIRST_TODAY = 1
    """The view is the visitor's first of the day (`p`)."""
    FIRST_OF_PAGE = 2
    """The view is the visitor's first of the page (`q`)."""
    HOSTING = 16
    """The view came from a network of a hosting provider, by the operator's list."""

    @property
    def attribute(self) -> str:
        """The name of the field of a `StoredView` that sets this flag."""
        return str(self.name).lower()


MAX_VISIT_OFFSET: Final = (1 << 32) - 1
VISIT_MS: Final = 24 * 3_600_000
"""A visit ends this long after it began: a later view begins another."""
SETTLED_MS: Final = 25 * 3_600_000
"""Nothing that arrives belongs to, or corrects, an older view, as beacons are kept for a day."""
COMPLETE_MS: Final = VISIT_MS + SETTLED_MS
"""A visit that began so long ago is complete: nothing that arrives belongs to it."""


class WidthClass(IntEnum):
    """How wide a window is, as far as it is stored. The numbers are part of the store's format."""

    UNKNOWN = 0
    PHONE = 1
    TABLET = 2
    LAPTOP = 3
    DESKTOP = 4
    WIDE = 5

    @staticmethod
    def of(width_px: int) -> "WidthClass":
        """Return the class of a width in pixels; UNKNOWN for 0."""
        return _WIDTH_CLASSES[bisect_right(_WIDTHS_FROM_PX, width_px)]


_WIDTHS_FROM_PX: Final = (1, 576, 992, 1_440, 1_920)
"""The least width of each class, from PHONE."""
_WIDTH_CLASSES: Final = tuple(WidthClass)


class Since(StrEnum):
    """When a visitor was here last before a view, as its text of Dimension.SINCE; "" if unknown.

    Weeks are calendar weeks from Monday.
    """

    NEW = "new"
    """Never, or too long ago for the browser to remember."""
    MONTH = "month"
    """Before this month and before this week."""
    MIDWEEK = "midweek"
    """Before this month, but in this week: the month began after Monday."""
    WEEK = "week"
    """In this month, but before this week."""
    DAY = "day"
    """In this month and in this week."""


_EVENT_DIMENSIONS: Final = frozenset((Dimension.PROPERTY, Dimension.PROPERTY_NAME))

VIEW_DIMENSIONS: Final = tuple(d for d in Dimension if d not in _EVENT_DIMENSIONS)
"""The dimensions that every view has, in the order in which they are stored: by number."""

OTHER: Final = "(other)"
"""The value that replaces new values beyond the daily limit."""

UNKNOWN: Final = "Unknown"
"""The name of an unknown browser, system, device, country or language."""

PROPERTY_SEPARATOR: Final = "\x00"
"""Separates the name and the value in the text of a PROPERTY; neither may contain it."""


MAX_PROPERTY_NAME: Final = 64
MAX_PROPERTY_VALUE: Final = 256
"""Characters of a property's name and value; the rest is cut off."""


def property_text(name: str, value: str) -> str:
    """Return the text under which a property's name and value share one code."""
    return f"{name}{PROPERTY_SEPARATOR}{value}"


def major_version(version: str) -> str:
    """Return the part of a version that is stored: all of it before the first dot."""
    return version.partition(".")[0]


def split_property(text: str) -> tuple[str, str]:
    """Return the name and the value of a PROPERTY's text."""
    name, _, value = text.partition(PROPERTY_SEPARATOR)
    return name, value
