import numpy as np
import pytest

from medamad.storage.segments.format import BOUNCED, PAGE_VISITOR, TIMED, VISITOR, timed_flags


@pytest.mark.parametrize(
    ("duration_ms", "added"),
    [(0, 0), (1, TIMED | BOUNCED), (5_000, TIMED | BOUNCED), (5_001, TIMED), (86_400_000, TIMED)],
)
@pytest.mark.parametrize("visit", [0, VISITOR, PAGE_VISITOR, VISITOR | PAGE_VISITOR])
@pytest.mark.parametrize("before", [0, TIMED, TIMED | BOUNCED])
def test_a_duration_sets_what_it_tells_anew(
    duration_ms: int, added: int, visit: int, before: int
) -> None:
    flags = np.array([visit | before], np.uint8)
    (after,) = timed_flags(flags, np.array([duration_ms], np.uint32))
    assert after == visit | added
    assert flags.tolist() == [visit | before]
