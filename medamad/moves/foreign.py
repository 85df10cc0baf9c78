"""What the readers of other programs' files share: cells that most of them have."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from medamad.collect.payload import MAX_NAME, MAX_PROPERTIES, MAX_VALUE
from medamad.model.dimensions import PROPERTY_SEPARATOR
from medamad.moves.rows import MAX_MS, EventRow

MAX_WIDTH: Final = 65_535
_COUNTRY: Final = re.compile(r"([A-Z]{2})(?:-[A-Z0-9]{1,3})?\Z")
_NOWHERE: Final = "ZZ"
"""What the CLDR has for a country that is not known."""


def time_ms_of(text: str) -> int:
    """Read an ISO 8601 date-time, in UTC where it names no zone: Unix milliseconds.

    Raises ValueError.
    """
    moment = datetime.fromisoformat(text.strip())
    time_ms = round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)
    if not 0 <= time_ms <= MAX_MS:
        raise ValueError(text)
    return time_ms


def country_of(text: str) -> str:
    """Give the ISO 3166 code of a country, also out of that of a region of it; "" for neither."""
    found = _COUNTRY.match(text.strip().upper())
    return found[1] if found and found[1] != _NOWHERE else ""


def event_rows(
    number: int, time_ms: int, pairs: Iterable[tuple[str, str]], view: int = 0
) -> Iterator[EventRow]:
    """Give the properties of an event, each once, cut as those of hits are."""
    kept = [
        (name.replace(PROPERTY_SEPARATOR, "").strip()[:MAX_NAME], value.strip()[:MAX_VALUE])
        for name, value in pairs
    ]
    for name, value in list(dict.fromkeys(kept))[:MAX_PROPERTIES]:
        if name:
            yield EventRow(number=number, time_ms=time_ms, name=name, value=value, view=view)
