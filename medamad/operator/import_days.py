"""What brings days that another program has added up, on their way into a batch."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from medamad.model.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.model.errors import BadRequest
from medamad.operator.wire import Request
from medamad.store.counters import SUMS
from medamad.store.day_counts import DayCounts

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
    """Give what brings some days."""
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
    """Give what was brought. Raises BadRequest, also for a day before the last that came."""
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
