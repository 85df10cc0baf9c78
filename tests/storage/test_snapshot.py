"""Snapshots in isolation; other tests cover damage, leases and concurrent changes."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, get_ident

import msgspec
import numpy as np
import pytest
from attrs import evolve
from numpy.typing import NDArray
from support.daemon import PATIENCE_S

from medamad.domain.dimensions import Dimension
from medamad.query.request import Cancelled
from medamad.storage.segments.format import Segment, SegmentHeader
from medamad.storage.segments.parts import NO_TIME
from medamad.storage.segments.snapshot import EMPTY, ResultCache, split_merged, with_members


def segment(number: int, *members: Segment) -> Segment:
    header = SegmentHeader(*(0,) * 16)
    header = msgspec.structs.replace(
        header, time_bounds=(number, number + 10), event_time_bounds=NO_TIME
    )
    return Segment(1, number, header, members)


LEAVES = [segment(number) for number in range(1, 5)]
INNER = segment(5, LEAVES[0], LEAVES[1])
OUTER = segment(6, INNER, LEAVES[2])


def numbers(*without: int) -> list[int]:
    split = split_merged([OUTER, LEAVES[3]], frozenset(without))
    return [segment.number for segment in split]


def test_only_merged_segments_with_excluded_members_are_split() -> None:
    assert numbers() == numbers(9) == [6, 4]
    assert numbers(3) == numbers(6) == [5, 3, 4]
    assert numbers(1) == numbers(5) == [1, 2, 3, 4]
    assert [each.number for each in with_members(OUTER)] == [6, 5, 1, 2, 3]


def test_excluded_segments_are_in_no_part() -> None:
    snapshot = evolve(EMPTY, segments=(OUTER, LEAVES[3]), rollup_segments=(segment(7),))
    left = snapshot.without(frozenset({1, 4, 7}))
    assert [segment.number for segment in left.segments] == [2, 3]
    assert left.rollup_segments == ()
    assert left.left_out_ms == ((1, 11), (4, 14), (7, 17))
    # The members of a merged segment stay.
    assert snapshot.without(frozenset({5, 6})).left_out_ms == ()


def test_a_website_without_hits_has_nothing_to_read() -> None:
    assert list(EMPTY.parts) == list(EMPTY.rollups) == list(EMPTY.leaves()) == []
    assert EMPTY.batch_spans() == {}
    assert EMPTY.texts(Dimension.PATH) == ()
    assert EMPTY.run(lambda snapshot: snapshot) is EMPTY


def test_segments_cannot_be_read_without_opening_the_snapshot() -> None:
    snapshot = evolve(EMPTY, segments=(LEAVES[0],))
    with pytest.raises(RuntimeError, match="has not been opened"):
        list(snapshot.parts)


def test_what_was_not_used_for_longest_makes_room() -> None:
    results = ResultCache(max_bytes=10_000)
    for key in "abc":
        results.put(key, np.zeros(4_000, np.uint8))
        assert results.get("a") is not None
    assert [results.get(key) is None for key in "abc"] == [False, True, False]
    # A value for which there is no room at all takes it from no other.
    results.put("d", np.zeros(10_000, np.uint8))
    assert [results.get(key) is None for key in "acd"] == [False, False, True]


def test_empty_arrays_take_room_too() -> None:
    results = ResultCache(max_bytes=10_000)
    for key in range(100):
        results.put((key,) * 100, np.zeros(0))
    kept = [key for key in range(100) if results.get((key,) * 100) is not None]
    assert kept == [*range(100 - len(kept), 100)]
    assert 0 < len(kept) <= 10


@pytest.mark.parametrize("fails", [False, True])
def test_threads_wait_for_the_one_that_computes(fails: bool) -> None:
    results, computed = ResultCache(), list[int]()
    begun, goes_on = Event(), Event()

    def compute() -> NDArray[np.int64]:
        computed.append(get_ident())
        begun.set()
        assert goes_on.wait(PATIENCE_S)
        if fails and len(computed) == 1:
            raise Cancelled
        return np.arange(3)

    def find() -> list[int]:
        found: list[int] = results.get_or_compute("a", compute).tolist()
        return found

    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(find)
        assert begun.wait(PATIENCE_S)
        others = [threads.submit(find) for _ in range(2)]
        # Another key is of no concern to them.
        assert results.get_or_compute("b", lambda: np.zeros(1)).tolist() == [0]
        time.sleep(0.01)
        assert len(computed) == 1
        goes_on.set()
        assert [other.result(PATIENCE_S) for other in others] == [[0, 1, 2]] * 2
        if fails:
            with pytest.raises(Cancelled):
                first.result(PATIENCE_S)
        else:
            assert first.result(PATIENCE_S) == [0, 1, 2]
            assert len(computed) == 1
    # What one that gave up had begun, another computes.
    known = len(computed)
    assert find() == [0, 1, 2]
    assert len(computed) == known
