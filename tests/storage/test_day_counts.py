import numpy as np

from medamad.domain.dimensions import Dimension, property_text
from medamad.storage.import_content import DayCounts, group_by_day, texts_by_dimension
from medamad.storage.segments.counters import SUMS, VIEWS, VISITORS
from medamad.storage.segments.parts import (
    NO_TIME,
)

DAY_MS = 86_400_000


def counts(day: int, dimension: Dimension | None, **views: int) -> DayCounts:
    """Return counts with twice as many views as visitors, and so on."""
    sums = np.array([[n // (row + 1) for n in views.values()] for row in range(SUMS)], np.int64)
    span = (day * DAY_MS, (day + 1) * DAY_MS - 1)
    return DayCounts(day, span, dimension, [name.strip("_") for name in views], sums)


def test_texts_are_encoded_and_parts_of_a_day_are_summed() -> None:
    given = [
        counts(5, None, _=60),
        counts(5, Dimension.PATH, b=20, a=40),
        counts(5, Dimension.PATH, c=12, b=12),
        counts(7, None, _=30),
        counts(7, Dimension.OS, b=30),
    ]
    assert texts_by_dimension(given) == {
        Dimension.PATH: ["b", "a", "c"],
        Dimension.OS: ["b"],
    }
    codes = {Dimension.PATH: {"a": 9, "b": 2, "c": 4}, Dimension.OS: {"b": 0}}
    one, other = (day.content() for day in group_by_day(given, codes, 3))
    assert (one.day, one.span, one.import_batch, one.views) == (
        5,
        (5 * DAY_MS, 6 * DAY_MS - 1),
        3,
        60,
    )
    assert one.time_bounds == one.span
    assert one.event_time_bounds == NO_TIME
    paths = one.by_dimension[Dimension.PATH]
    assert paths.codes.tolist() == [2, 4, 9]
    assert paths.sums[VIEWS].tolist() == [32, 12, 40]
    assert paths.sums[VISITORS].tolist() == [16, 6, 20]
    assert one.counters(Dimension.OS) is None
    assert one.path_durations() is None
    assert (other.day, list(other.by_dimension)) == (7, [Dimension.OS])


def test_events_are_counted_by_name_too() -> None:
    texts = {property_text(name, value): n for n, (name, value) in enumerate(PAIRS)}
    given = [counts(5, Dimension.PROPERTY, **dict.fromkeys(texts, 4))]
    day = group_by_day(given, {Dimension.PROPERTY: texts}, 1)[0].content()
    assert (day.views, day.time_bounds, day.event_time_bounds) == (0, NO_TIME, day.span)
    events = day.event_sums()
    assert events.codes.tolist() == [0, 1, 2]
    assert events.events.tolist() == [4, 4, 4]
    assert events.names.tolist() == [0, 1]
    assert events.events_of_names.tolist() == [8, 4]
    assert (events.total, events.has_distinct_names) == (12, True)


PAIRS = (("sign", "in"), ("buy", ""), ("sign", "up"))
