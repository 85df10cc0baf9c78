"""The rows and days of an import as they travel over the admin socket."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from medamad.admin.protocol import Request
from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.domain.errors import BadRequest
from medamad.storage.import_content import DayCounts
from medamad.storage.imports import ImportedHits
from medamad.storage.segments.build import Content
from medamad.storage.segments.counters import SUMS
from medamad.storage.segments.parts import (
    EventRows,
)

TEXT_BYTES: Final = 64
"""What a text takes beside its letters."""
_VIEW_COLUMNS: Final[Mapping[str, str]] = {
    "time_ms": "<i8",
    "sequence": "<u8",
    "flags": "u1",
    "duration_ms": "<u4",
    "number_today": "<u2",
    "width_px": "<u2",
    **{dimension.attribute: "<u4" for dimension in VIEW_DIMENSIONS},
}
_EVENT_COLUMNS: Final[Mapping[str, str]] = {
    "event": "<u8",
    "time_ms": "<i8",
    "view": "<u8",
    "property": "<u4",
}


class ImportRows(Request, frozen=True, kw_only=True):
    """Brings rows of a batch: columns of numbers as they are in memory, and texts."""

    number: int
    views: Mapping[str, bytes]
    events: Mapping[str, bytes]
    texts: Mapping[int, list[str]]


def rows_request(number: int, piece: ImportedHits) -> ImportRows:
    """Return what brings some rows."""
    content, events = piece.content, piece.content.events
    views = {name: _column(content, name) for name in _VIEW_COLUMNS}
    return ImportRows(
        number=number,
        views={name: views[name].astype(dtype).tobytes() for name, dtype in _VIEW_COLUMNS.items()},
        events={
            name: getattr(events, name).astype(dtype).tobytes()
            for name, dtype in _EVENT_COLUMNS.items()
        },
        texts={int(dimension): list(texts) for dimension, texts in piece.texts.items()},
    )


def _column(content: Content, name: str) -> NDArray[Any]:
    found: NDArray[Any] | None = getattr(content, name, None)
    return content.codes[Dimension[name.upper()]] if found is None else found


def rows_of(request: ImportRows) -> ImportedHits:
    """Return the rows that were brought. Raises BadRequest."""
    views = _columns(request.views, _VIEW_COLUMNS)
    events = _columns(request.events, _EVENT_COLUMNS)
    codes = {dimension: views.pop(dimension.attribute) for dimension in VIEW_DIMENSIONS}
    texts = {
        dimension: request.texts.get(int(dimension), [])
        for dimension in (*VIEW_DIMENSIONS, Dimension.PROPERTY)
    }
    for dimension, numbers in (*codes.items(), (Dimension.PROPERTY, events["property"])):
        if len(numbers) and int(numbers.max()) >= len(texts[dimension]):
            raise BadRequest(f"{dimension.attribute}: expected codes of the texts beside")
    for name, times_ms in (("time_ms", views["time_ms"]), ("time_ms", events["time_ms"])):
        if len(times_ms) and int(times_ms.min()) < 0:
            raise BadRequest(f"{name}: expected times since 1970")
    return ImportedHits(Content(**views, codes=codes, events=EventRows(**events)), texts)


def bytes_of(request: ImportRows) -> int:
    """Tell about how much of memory rows take."""
    columns = (*request.views.values(), *request.events.values())
    texts = (text for texts in request.texts.values() for text in texts)
    return sum(map(len, columns)) + sum(TEXT_BYTES + len(text) for text in texts)


def _columns(given: Mapping[str, bytes], known: Mapping[str, str]) -> dict[str, Any]:
    try:
        columns = {name: np.frombuffer(given[name], dtype) for name, dtype in known.items()}
    except (KeyError, ValueError) as error:
        raise BadRequest(f"rows: not as expected: {error}") from None
    if len({len(column) for column in columns.values()}) > 1:
        raise BadRequest("rows: expected columns of one length")
    return columns


_DTYPE: Final = "<i8"
_MOST: Final = 1 << 53
_LAST_DAY: Final = 2_932_896
"""The last one of the year 9999."""
_OF_ALL: Final = 0
_DIMENSIONS: Final = frozenset({*VIEW_DIMENSIONS, Dimension.PROPERTY})


class Figures(Struct, frozen=True, array_like=True):
    """A `DayCounts`: `dimension` is 0 for none, `sums` are as they are in memory."""

    day: int
    span: tuple[int, int]
    dimension: int
    texts: tuple[str, ...]
    sums: bytes


class ImportDays(Request, frozen=True):
    """Brings what is known of some days, in their order; of a day as many at a time as is best."""

    number: int
    figures: tuple[Figures, ...]


def days_request(number: int, counts: Sequence[DayCounts]) -> ImportDays:
    """Return what brings some days."""
    return ImportDays(
        number,
        tuple(
            Figures(
                each.day,
                each.span,
                _OF_ALL if each.dimension is None else int(each.dimension),
                tuple(each.texts),
                each.sums.astype(_DTYPE).tobytes(),
            )
            for each in counts
        ),
    )


def counts_of(request: ImportDays, last_day: int) -> list[DayCounts]:
    """Return what was brought. Raises BadRequest, also for a day before the last that came."""
    found = []
    for each in request.figures:
        if not last_day <= each.day <= _LAST_DAY or each.span[0] > each.span[1]:
            raise BadRequest("day: expected days since 1970, in their order")
        last_day = each.day
        if each.dimension != _OF_ALL and each.dimension not in _DIMENSIONS:
            raise BadRequest("dimension: expected one of views, or of properties")
        if len(each.sums) != SUMS * len(each.texts) * np.dtype(_DTYPE).itemsize:
            raise BadRequest("sums: expected as many as there are texts")
        sums = np.frombuffer(each.sums, _DTYPE).reshape(SUMS, len(each.texts))
        if sums.size and not 0 <= int(sums.min()) <= int(sums.max()) < _MOST:
            raise BadRequest(f"sums: expected whole numbers from 0 to {_MOST - 1}")
        if each.dimension == _OF_ALL and set(each.texts) - {""}:
            raise BadRequest("texts: expected none of what is of all views")
        dimension = None if each.dimension == _OF_ALL else Dimension(each.dimension)
        found.append(DayCounts(each.day, each.span, dimension, each.texts, sums))
    return found


def whole_days(counts: Sequence[DayCounts]) -> tuple[list[DayCounts], list[DayCounts]]:
    """Part the days of which all has come from the last, of which there may be more."""
    last = counts[-1].day
    return (
        [each for each in counts if each.day != last],
        [each for each in counts if each.day == last],
    )
