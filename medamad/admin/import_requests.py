"""The rows and days of an import as they travel over the admin socket."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from medamad.admin.protocol import AdminRequest
from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewNumber
from medamad.domain.errors import BadRequest
from medamad.storage.import_content import Counted, DayCounts
from medamad.storage.imports import ImportedHits
from medamad.storage.request_totals import MAX_PATHS, RequestCounts
from medamad.storage.segments.build import Content
from medamad.storage.segments.counters import SUMS
from medamad.storage.segments.parts import EVENT_DTYPES, VIEW_DTYPES, EventRows
from medamad.storage.segments.visit_counters import VISIT_SUMS

TEXT_BYTES: Final = 64
"""The memory of a text besides its characters."""
_VIEW_COLUMNS: Final[Mapping[str, np.dtype[Any]]] = {
    **VIEW_DTYPES,
    **{dimension.attribute: np.dtype("<u4") for dimension in VIEW_DIMENSIONS},
}


class ImportRobots(AdminRequest, frozen=True):
    """What robots read by day, name and path, in the files of a batch."""

    number: int
    days: Mapping[int, Mapping[str, Mapping[str, int]]]


def robots_requests(number: int, days: Mapping[int, RequestCounts]) -> Iterator[ImportRobots]:
    """Yield the requests that send what robots read, each of a few days."""
    some: dict[int, RequestCounts] = {}
    paths = 0
    for day, counts in sorted(days.items()):
        some[day] = counts
        paths += sum(map(len, counts.values()))
        if paths >= MAX_PATHS:
            yield ImportRobots(number, some)
            some, paths = {}, 0
    if some:
        yield ImportRobots(number, some)


class ImportRows(AdminRequest, frozen=True, kw_only=True):
    """Rows of a batch: columns of numbers as they are in memory, and texts by dimension."""

    number: int
    views: Mapping[str, bytes]
    events: Mapping[str, bytes]
    texts: Mapping[int, list[str]]


def rows_request(number: int, piece: ImportedHits) -> ImportRows:
    """Return the request that sends some rows."""
    content, events = piece.content, piece.content.events
    views: dict[str, NDArray[Any]] = {
        "time_ms": content.time_ms,
        "sequence": content.sequence,
        "flags": content.flags,
        "duration_ms": content.duration_ms,
        **{number.attribute: column for number, column in content.numbers.items()},
        **{dimension.attribute: codes for dimension, codes in content.codes.items()},
    }
    return ImportRows(
        number=number,
        views={name: views[name].astype(dtype).tobytes() for name, dtype in _VIEW_COLUMNS.items()},
        events={
            name: getattr(events, name).astype(dtype).tobytes()
            for name, dtype in EVENT_DTYPES.items()
        },
        texts={int(dimension): list(texts) for dimension, texts in piece.texts.items()},
    )


def rows_of(request: ImportRows) -> ImportedHits:
    """Return the rows of a request. Raises BadRequest if they are inconsistent."""
    views = _columns(request.views, _VIEW_COLUMNS)
    events = _columns(request.events, EVENT_DTYPES)
    codes = {dimension: views.pop(dimension.attribute) for dimension in VIEW_DIMENSIONS}
    of_views = {number: views.pop(number.attribute) for number in ViewNumber}
    texts = {
        dimension: request.texts.get(int(dimension), [])
        for dimension in (*VIEW_DIMENSIONS, Dimension.PROPERTY)
    }
    for dimension, numbers in (*codes.items(), (Dimension.PROPERTY, events["property"])):
        if len(numbers) and int(numbers.max()) >= len(texts[dimension]):
            raise BadRequest(f"{dimension.attribute}: expected codes of the texts sent with them")
    for name, times_ms in (("time_ms", views["time_ms"]), ("time_ms", events["time_ms"])):
        if len(times_ms) and int(times_ms.min()) < 0:
            raise BadRequest(f"{name}: expected times since 1970")
    return ImportedHits(
        Content(**views, numbers=of_views, codes=codes, events=EventRows(**events)), texts
    )


def bytes_of(request: ImportRows) -> int:
    """Return approximately how much memory rows take."""
    columns = (*request.views.values(), *request.events.values())
    texts = (text for texts in request.texts.values() for text in texts)
    return sum(map(len, columns)) + sum(TEXT_BYTES + len(text) for text in texts)


def _columns(encoded: Mapping[str, bytes], dtypes: Mapping[str, np.dtype[Any]]) -> dict[str, Any]:
    try:
        columns = {name: np.frombuffer(encoded[name], dtype) for name, dtype in dtypes.items()}
    except (KeyError, ValueError) as error:
        raise BadRequest(f"rows: not as expected: {error}") from None
    if len({len(column) for column in columns.values()}) > 1:
        raise BadRequest("rows: expected columns of one length")
    return columns


_DTYPE: Final = "<i8"
_MAX_SUM: Final = 1 << 53
_LAST_DAY: Final = 2_932_896
"""The last day of the year 9999."""
_OF_ALL: Final = 0
_DIMENSIONS: Final = frozenset({*VIEW_DIMENSIONS, Dimension.PROPERTY})


class DayFigures(Struct, frozen=True, array_like=True):
    """A `DayCounts`: `dimension` is 0 for none, `sums` are as they are in memory."""

    day: int
    span: tuple[int, int]
    dimension: int
    texts: tuple[str, ...]
    sums: bytes
    counted: Counted = Counted.VIEWS


class ImportDays(AdminRequest, frozen=True):
    """Figures of some days, in order; a day may be spread over several requests."""

    number: int
    figures: tuple[DayFigures, ...]


def days_request(number: int, counts: Sequence[DayCounts]) -> ImportDays:
    """Return the request that sends figures of some days."""
    return ImportDays(
        number,
        tuple(
            DayFigures(
                entry.day,
                entry.span,
                _OF_ALL if entry.dimension is None else int(entry.dimension),
                tuple(entry.texts),
                entry.sums.astype(_DTYPE).tobytes(),
                entry.counted,
            )
            for entry in counts
        ),
    )


def counts_of(request: ImportDays, last_day: int) -> list[DayCounts]:
    """Return the figures of a request. Raises BadRequest if they are invalid or out of order."""
    counts = []
    for figures in request.figures:
        if not last_day <= figures.day <= _LAST_DAY or figures.span[0] > figures.span[1]:
            raise BadRequest("day: expected days since 1970, in order")
        last_day = figures.day
        if figures.dimension != _OF_ALL and figures.dimension not in _DIMENSIONS:
            raise BadRequest("dimension: expected a dimension of views, or of properties")
        size = SUMS if figures.counted is Counted.VIEWS else VISIT_SUMS
        if len(figures.sums) != size * len(figures.texts) * np.dtype(_DTYPE).itemsize:
            raise BadRequest("sums: expected as many as there are texts")
        sums = np.frombuffer(figures.sums, _DTYPE).reshape(size, len(figures.texts))
        if sums.size and not 0 <= int(sums.min()) <= int(sums.max()) < _MAX_SUM:
            raise BadRequest(f"sums: expected whole numbers from 0 to {_MAX_SUM - 1}")
        if figures.dimension == _OF_ALL and set(figures.texts) - {""}:
            raise BadRequest("texts: expected none for the figures of all views")
        dimension = None if figures.dimension == _OF_ALL else Dimension(figures.dimension)
        counts.append(
            DayCounts(figures.day, figures.span, dimension, figures.texts, sums, figures.counted)
        )
    return counts


def whole_days(counts: Sequence[DayCounts]) -> tuple[list[DayCounts], list[DayCounts]]:
    """Separate the days that are complete from the last one, of which there may be more."""
    last = counts[-1].day
    return (
        [entry for entry in counts if entry.day != last],
        [entry for entry in counts if entry.day == last],
    )
