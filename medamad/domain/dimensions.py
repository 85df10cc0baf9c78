"""What a view is stored with: the texts that it is counted by, and numbers."""

from enum import Enum, IntEnum
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

    @property
    def attribute(self) -> str:
        """The name of the attribute of a `View` that holds this dimension's text."""
        return self.name.lower()


class ViewNumber(Enum):
    """A number kept with a view as it came, 0 if unknown: its column in the store, and its bytes.

    The columns are part of the store's format: never change or reuse one. 36 to 39 are for numbers.
    """

    NUMBER_TODAY = (36, 2)
    WIDTH_PX = (37, 2)

    @property
    def attribute(self) -> str:
        """The name of the attribute of a `View` that holds this number."""
        return self.name.lower()

    @property
    def column(self) -> int:
        """The number of its column in a segment."""
        return self.value[0]

    @property
    def bytes(self) -> int:
        """The size in memory, 1, 2, 4 or 8."""
        return self.value[1]

    @property
    def greatest(self) -> int:
        """The greatest number that it can hold."""
        return (1 << 8 * self.bytes) - 1


_EVENT_DIMENSIONS: Final = frozenset((Dimension.PROPERTY, Dimension.PROPERTY_NAME))

VIEW_DIMENSIONS: Final = tuple(d for d in Dimension if d not in _EVENT_DIMENSIONS)
"""The dimensions that every view has, in the order in which they are stored: by number."""

OTHER: Final = "(other)"
"""The value that replaces new values beyond the daily limit."""

UNKNOWN: Final = "Unknown"
"""The name of an unknown browser, system, device, country or language."""

PROPERTY_SEPARATOR: Final = "\x00"
"""Separates the name and the value in the text of a PROPERTY; neither may contain it."""


def property_text(name: str, value: str) -> str:
    """Return the text under which a property's name and value share one code."""
    return f"{name}{PROPERTY_SEPARATOR}{value}"


def split_property(text: str) -> tuple[str, str]:
    """Return the name and the value of a PROPERTY's text."""
    name, _, value = text.partition(PROPERTY_SEPARATOR)
    return name, value
