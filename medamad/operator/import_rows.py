"""What brings rows on their way into a batch: columns of numbers, and texts."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from medamad.model.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.model.errors import BadRequest
from medamad.operator.wire import Request
from medamad.store.imports import Imported
from medamad.store.parts import EventRows
from medamad.store.sealing import Content

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


def rows_request(number: int, piece: Imported) -> ImportRows:
    """Give what brings some rows."""
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


def rows_of(request: ImportRows) -> Imported:
    """Give the rows that were brought. Raises BadRequest."""
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
    return Imported(Content(**views, codes=codes, events=EventRows(**events)), texts)


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
