from collections.abc import Iterable
from itertools import count

import numpy as np
import pytest

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewNumber
from medamad.storage.segments.corrections import Corrected, Correction
from medamad.storage.wal.beacons import DIGEST_BYTES
from medamad.storage.wal.memtable import CHUNK_VIEWS, Cut, Memtable
from medamad.storage.wal.records import RecordKind, Row, rows_of, view_row

Kept = tuple[RecordKind, Row]


def extend(memtable: Memtable, rows: Iterable[Kept]) -> None:
    by_kind: dict[RecordKind, list[Row]] = {}
    for kind, row in rows:
        by_kind.setdefault(kind, []).append(row)
    memtable.extend({kind: rows_of(kind, of_kind) for kind, of_kind in by_kind.items()})


def view(sequence: int, time_ms: int = 1000, path: int = 0) -> Kept:
    codes = [path, *[0] * (len(VIEW_DIMENSIONS) - 1)]
    arrival = (sequence, time_ms, bytes(DIGEST_BYTES), time_ms)
    return RecordKind.VIEW, view_row(arrival, (True, True, False), [0] * len(ViewNumber), codes)


def unload(sequence: int, of: int, duration_ms: int) -> Kept:
    return RecordKind.DURATION, (sequence, 2000, of, duration_ms)


def an_event(sequence: int, event: int, of: int = 0, time_ms: int = 1000) -> Kept:
    return RecordKind.PROPERTY, (sequence, time_ms, event, of, 9)


def binding(sequence: int, event: int, of: int) -> Kept:
    return RecordKind.BINDING, (sequence, 2000, event, of)


def test_an_empty_memtable_has_no_parts() -> None:
    assert Memtable().publish() == ((), ())


def test_views_are_columns_in_sequence_order() -> None:
    memtable = Memtable()
    extend(memtable, [view(1, time_ms=900, path=9), view(3, time_ms=500, path=8)])
    extend(memtable, [view(4, time_ms=100)])
    ((part,), events) = memtable.publish()
    assert events == ()
    assert part.sequence.tolist() == [1, 3, 4]
    assert part.time_ms.tolist() == [900, 500, 100]
    assert part.codes(Dimension.PATH).tolist() == [9, 8, 0]
    assert part.time_bounds == (100, 900)


def test_published_views_never_change() -> None:
    memtable = Memtable()
    extend(memtable, [view(1), an_event(2, 2, time_ms=1)])
    ((before,), (events_before,)) = memtable.publish()
    extend(memtable, [view(3), unload(4, 1, 700), binding(5, 2, 3)])
    ((after,), (events_after,)) = memtable.publish()
    assert (before.sequence.tolist(), before.duration_ms.tolist()) == ([1], [0])
    assert (after.sequence.tolist(), after.duration_ms.tolist()) == ([1, 3], [700, 0])
    assert (events_before.view.tolist(), events_after.view.tolist()) == ([0], [3])


def test_a_binding_applies_to_every_property_of_its_event() -> None:
    memtable = Memtable()
    properties = [(1, 1), (2, 1), (3, 3), (5, 5), (6, 5)]
    extend(
        memtable,
        [an_event(sequence, event, time_ms=100 - sequence) for sequence, event in properties],
    )
    extend(memtable, [binding(7, 1, 70)])
    extend(memtable, [binding(8, 5, 71), binding(9, 4, 72)])
    _, (events,) = memtable.publish()
    assert events.event.tolist() == [1, 1, 3, 5, 5]
    assert events.view.tolist() == [70, 70, 0, 71, 71]


def test_published_arrays_are_read_only() -> None:
    memtable = Memtable()
    extend(memtable, [view(1)])
    ((part,), _) = memtable.publish()
    with pytest.raises(ValueError, match="read-only"):
        part.duration_ms[0] = 1


def test_the_longest_duration_counts() -> None:
    memtable = Memtable()
    extend(memtable, [view(1), view(2), unload(3, 1, 500), unload(4, 1, 300)])
    extend(memtable, [unload(5, 1, 400), unload(6, 2, 1)])
    ((part,), _) = memtable.publish()
    assert part.duration_ms.tolist() == [500, 1]


def test_the_duration_of_each_view_is_known() -> None:
    memtable = Memtable(chunk_views=2)
    assert memtable.duration_ms(1) == 0
    extend(memtable, [view(2), view(3), view(5), unload(6, 2, 70), unload(7, 5, 50)])
    assert [memtable.duration_ms(number) for number in range(1, 8)] == [0, 70, 0, 0, 50, 0, 0]


def test_durations_of_unknown_views_are_ignored() -> None:
    memtable = Memtable()
    extend(memtable, [unload(1, 99, 500)])
    extend(memtable, [view(10), view(12), unload(13, 9, 1), unload(14, 11, 1), unload(15, 99, 1)])
    ((part,), _) = memtable.publish()
    assert part.duration_ms.tolist() == [0, 0]


def test_chunks_fill_sequentially() -> None:
    sequences = count(1)
    memtable = Memtable(chunk_views=100)
    for size in (30, 250, 1):
        extend(memtable, [view(next(sequences)) for _ in range(size)])
    extend(memtable, [unload(1000, 100, 5), unload(1001, 101, 6), unload(1002, 281, 7)])
    parts, _ = memtable.publish()
    assert [len(part) for part in parts] == [100, 100, 81]
    assert np.concatenate([part.sequence for part in parts]).tolist() == list(range(1, 282))
    assert [int(part.duration_ms.max()) for part in parts] == [5, 6, 7]


def test_unchanged_chunks_are_published_once() -> None:
    memtable = Memtable()
    extend(memtable, [view(sequence) for sequence in range(1, CHUNK_VIEWS + 2)])
    first, _ = memtable.publish()
    extend(memtable, [view(CHUNK_VIEWS + 2)])
    second, _ = memtable.publish()
    assert second[0] is first[0]
    assert second[1] is not first[1]


def test_a_cut_of_the_oldest_leaves_the_last_chunk_open() -> None:
    memtable = Memtable(chunk_views=3)
    extend(memtable, [view(sequence) for sequence in range(1, 6)])
    cut = memtable.cut(everything=False)
    assert (cut.watermark, [len(chunk) for chunk in cut.chunks]) == (3, [3])
    extend(memtable, [view(6)])
    memtable.drop(cut)
    assert [len(part) for part in memtable.publish()[0]] == [3]


def test_a_cut_of_everything_closes_what_it_takes() -> None:
    memtable = Memtable(chunk_views=3)
    extend(memtable, [view(1)])
    cut = memtable.cut(everything=True)
    extend(memtable, [view(2)])
    memtable.drop(cut)
    assert [part.sequence.tolist() for part in memtable.publish()[0]] == [[2]]


def numbers(cut: Cut) -> tuple[list[list[int]], list[int]]:
    return [chunk.sequence.tolist() for chunk in cut.chunks], cut.events.event.tolist()


def test_the_oldest_chunk_is_cut_and_dropped_with_its_events() -> None:
    memtable = Memtable(chunk_views=2)
    extend(memtable, [view(1), an_event(2, 2), view(3), an_event(4, 4), an_event(5, 4), view(6)])
    extend(memtable, [an_event(7, 7), unload(8, 1, 50)])
    cut = memtable.cut(everything=False)
    assert (numbers(cut), cut.watermark) == (([[1, 3]], [2, 4, 4]), 5)
    extend(memtable, [view(9), view(10)])
    memtable.drop(cut)
    parts, (events,) = memtable.publish()
    assert [part.sequence.tolist() for part in parts] == [[6, 9], [10]]
    assert events.event.tolist() == [7]
    assert memtable.oldest_ms == 1000


def test_everything_is_cut_and_dropped() -> None:
    memtable = Memtable(chunk_views=2)
    extend(memtable, [view(1), an_event(2, 2), view(3), view(4), unload(5, 1, 50)])
    cut = memtable.cut(everything=True)
    assert (numbers(cut), cut.watermark) == (([[1, 3], [4]], [2]), 5)
    assert not memtable.is_empty
    memtable.drop(cut)
    assert (memtable.is_empty, len(memtable), memtable.event_rows, memtable.publish()) == (
        True,
        0,
        0,
        ((), ()),
    )
    assert memtable.oldest_ms > 1 << 60


def test_events_alone_are_cut_and_dropped() -> None:
    memtable = Memtable(chunk_views=2)
    extend(memtable, [an_event(1, 1, time_ms=500)])
    cut = memtable.cut(everything=True)
    extend(memtable, [an_event(2, 2, time_ms=400)])
    assert (numbers(cut), cut.watermark, memtable.oldest_ms) == (([], [1]), 1, 400)
    memtable.drop(cut)
    _, (events,) = memtable.publish()
    assert (events.event.tolist(), memtable.oldest_ms) == ([2], 400)


def test_corrections_since_a_cut() -> None:
    memtable = Memtable(chunk_views=2)
    extend(memtable, [view(1), view(2), an_event(3, 3), an_event(4, 3), an_event(5, 5), view(6)])
    extend(memtable, [unload(7, 1, 500)])
    cut = memtable.cut(everything=False)
    assert memtable.corrections_since(cut) == []
    extend(memtable, [unload(8, 1, 400), unload(9, 2, 70), unload(10, 6, 9), binding(11, 3, 6)])
    extend(memtable, [unload(12, 2, 80), an_event(13, 13), binding(14, 13, 6)])
    assert memtable.corrections_since(cut) == [
        Correction(Corrected.DURATION, 2, 80),
        Correction(Corrected.VIEW, 3, 6),
    ]
    # The cut itself has not changed.
    (chunk,) = cut.chunks
    assert chunk.duration_ms.tolist() == [500, 0]
    assert cut.events.view.tolist() == [0, 0, 0]
    memtable.drop(cut)
    ((part,), (events,)) = memtable.publish()
    assert (part.sequence.tolist(), part.duration_ms.tolist()) == ([6], [9])
    assert (events.event.tolist(), events.view.tolist()) == ([13], [6])


def test_a_cut_can_be_repeated_after_a_failure() -> None:
    memtable = Memtable(chunk_views=4)
    extend(memtable, [view(1), view(2)])
    first = memtable.cut(everything=True)
    extend(memtable, [view(3), unload(4, 1, 30)])
    second = memtable.cut(everything=True)
    assert numbers(first) == ([[1, 2]], [])
    assert (numbers(second), second.watermark) == (([[1, 2], [3]], []), 4)
    assert [chunk.duration_ms.tolist() for chunk in second.chunks] == [[30, 0], [0]]


def test_a_large_chunk_is_counted() -> None:
    memtable = Memtable()
    extend(memtable, [view(n, time_ms=n * 1000, path=n % 3) for n in range(1, 1_030)])
    extend(memtable, [unload(2_000 + n, n, n) for n in range(1, 100)])
    ((part,), _) = memtable.publish()
    counters = part.counters(Dimension.PATH)
    assert counters is not None
    assert counters.codes.tolist() == [0, 1, 2]
    assert [row.tolist() for row in counters.sums] == [
        [343, 343, 343],
        [343, 343, 343],
        [343, 343, 343],
        [33, 33, 33],
        [33, 33, 33],
        [1683, 1617, 1650],
    ]
    slots = part.slots()
    assert slots is not None
    assert (slots.codes.tolist(), slots.sums[0].tolist()) == ([0, 1], [899, 130])
    extend(memtable, [unload(3_000, 3, 9_000)])
    ((after,), _) = memtable.publish()
    assert after.counters(Dimension.PATH).sums[5].tolist() == [1683 - 3 + 9_000, 1617, 1650]
    assert part.counters(Dimension.PATH).sums[5].tolist() == [1683, 1617, 1650]


def test_a_small_chunk_is_not_counted() -> None:
    memtable = Memtable()
    extend(memtable, [view(n) for n in range(1, 1_024)])
    ((part,), _) = memtable.publish()
    assert (part.counters(Dimension.PATH), part.slots(), part.event_counts()) == (None,) * 3
