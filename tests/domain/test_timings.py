import math
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.timings import BOUNDS_S, Timings

DURATIONS = st.lists(st.floats(0, 100) | st.sampled_from(BOUNDS_S))


@given(DURATIONS)
def test_a_duration_counts_in_the_first_bucket_that_includes_it(durations: list[float]) -> None:
    timings = Timings()
    for duration in durations:
        timings.add(duration)
    edges = (-1.0, *BOUNDS_S, math.inf)
    assert timings.counts == tuple(
        sum(low < duration <= high for duration in durations) for low, high in pairwise(edges)
    )
    assert len(timings) == len(durations)
    assert math.isclose(timings.total_s, sum(durations))
