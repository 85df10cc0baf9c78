from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve
from msgspec.structs import replace

from medamad.admin.import_requests import DayFigures, counts_of, days_request, whole_days
from medamad.domain.dimensions import Dimension
from medamad.domain.errors import BadRequest
from medamad.storage.import_content import DayCounts
from medamad.storage.segments.counters import SUMS

COUNTS = DayCounts(
    20_000,
    (1_728_000_000_000, 1_728_086_399_999),
    Dimension.PATH,
    ["/", "/a"],
    np.arange(SUMS * 2, dtype=np.int64).reshape(SUMS, 2),
)


def test_days_survive_encoding() -> None:
    total = DayCounts(20_000, COUNTS.span, None, [""], np.ones((SUMS, 1), np.int64))
    found = counts_of(days_request(7, [COUNTS, total]), 20_000)
    for one, other in zip(found, [COUNTS, total], strict=True):
        assert (one.day, one.span, one.dimension) == (other.day, other.span, other.dimension)
        assert list(one.texts) == list(other.texts)
        assert one.sums.tolist() == other.sums.tolist()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"day": 19_999}, "day: expected days since 1970, in order"),
        ({"day": 1 << 40}, "day: expected days"),
        ({"span": (5, 4)}, "day: expected days"),
        ({"dimension": Dimension.PROPERTY_NAME}, "dimension: expected a dimension of views"),
        ({"dimension": 99}, "dimension: expected a dimension of views"),
        ({"dimension": 0}, "texts: expected none for the figures of all views"),
        ({"sums": b""}, "sums: expected as many as there are texts"),
        ({"sums": b"\xff" * 96}, "sums: expected whole numbers from 0"),
        ({"sums": b"\x7f" * 96}, "sums: expected whole numbers from 0"),
    ],
)
def test_invalid_days_are_rejected(change: dict[str, Any], reason: str) -> None:
    request = days_request(7, [COUNTS])
    (figures,) = request.figures
    broken: Callable[..., DayFigures] = replace
    with pytest.raises(BadRequest, match=reason):
        counts_of(replace(request, figures=(broken(figures, **change),)), 20_000)


def test_the_last_day_may_be_incomplete() -> None:
    counts = [evolve(COUNTS, day=day) for day in (20_000, 20_000, 20_001, 20_001)]
    assert whole_days(counts) == (counts[:2], counts[2:])
    assert whole_days(counts[2:]) == ([], counts[2:])
