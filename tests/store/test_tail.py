from collections.abc import Iterable
from itertools import count

import numpy as np
import pytest

from medamad.model.dimensions import VIEW_DIMENSIONS, Dimension
from medamad.store.records import (
    Record,
    binding_record,
    journal_key,
    leaving_record,
    property_record,
    rows_by_kind,
    view_record,
)
from medamad.store.tail import CHUNK_VIEWS, Tail


def extend(tail: Tail, records: Iterable[Record]) -> None:
    tail.extend(rows_by_kind(records))


def view(sequence: int, time_ms: int = 1000, path: int = 0) -> Record:
    codes = [path, *[0] * (len(VIEW_DIMENSIONS) - 1)]
    return view_record(
        journal_key(1, time_ms, sequence),
        first_today=True,
        first_of_page=True,
        number_today=0,
        width_px=0,
        codes=codes,
    )


def leaving(sequence: int, of: int, duration_ms: int) -> Record:
    return leaving_record(journal_key(1, 2000, sequence), of, duration_ms)


def test_an_empty_tail_has_no_parts() -> None:
    assert Tail().publish() == ((), ())


def test_views_come_as_columns_in_order_of_sequence() -> None:
    tail = Tail()
    extend(tail, [view(3, time_ms=500, path=8), view(1, time_ms=900, path=9)])
    extend(tail, [view(4, time_ms=100)])
    ((part,), events) = tail.publish()
    assert events == ()
    assert part.sequence.tolist() == [1, 3, 4]
    assert part.time_ms.tolist() == [900, 500, 100]
    assert part.codes(Dimension.PATH).tolist() == [9, 8, 0]
    assert part.time_bounds == (100, 900)


def test_what_was_published_never_changes() -> None:
    tail = Tail()
    extend(tail, [view(1), property_record(journal_key(1, 1, 2), 2, 0, 5)])
    ((before,), (events_before,)) = tail.publish()
    extend(tail, [view(3), leaving(4, 1, 700), binding_record(journal_key(1, 1, 5), 2, 3)])
    ((after,), (events_after,)) = tail.publish()
    assert (before.sequence.tolist(), before.duration_ms.tolist()) == ([1], [0])
    assert (after.sequence.tolist(), after.duration_ms.tolist()) == ([1, 3], [700, 0])
    assert (events_before.view.tolist(), events_after.view.tolist()) == ([0], [3])


def test_bindings_reach_every_property_of_their_event() -> None:
    tail = Tail()
    properties = [(5, 5), (6, 5), (1, 1), (2, 1), (3, 3)]
    extend(
        tail,
        [
            property_record(journal_key(1, 100 - sequence, sequence), event, 0, 9)
            for sequence, event in properties
        ],
    )
    extend(tail, [binding_record(journal_key(1, 1, 7), 1, 70)])
    extend(
        tail,
        [binding_record(journal_key(1, 1, 8), 5, 71), binding_record(journal_key(1, 1, 9), 4, 72)],
    )
    _, (events,) = tail.publish()
    assert events.event.tolist() == [1, 1, 3, 5, 5]
    assert events.view.tolist() == [70, 70, 0, 71, 71]


def test_nobody_can_write_to_what_was_published() -> None:
    tail = Tail()
    extend(tail, [view(1)])
    ((part,), _) = tail.publish()
    with pytest.raises(ValueError, match="read-only"):
        part.duration_ms[0] = 1


def test_the_longest_leaving_counts() -> None:
    tail = Tail()
    extend(tail, [view(1), view(2), leaving(3, 1, 500), leaving(4, 1, 300)])
    extend(tail, [leaving(5, 1, 400), leaving(6, 2, 1)])
    ((part,), _) = tail.publish()
    assert part.duration_ms.tolist() == [500, 1]


def test_leavings_of_unknown_views_are_left_out() -> None:
    tail = Tail()
    extend(tail, [leaving(1, 99, 500)])
    extend(tail, [view(10), view(12), leaving(13, 9, 1), leaving(14, 11, 1), leaving(15, 99, 1)])
    ((part,), _) = tail.publish()
    assert part.duration_ms.tolist() == [0, 0]


def test_chunks_are_filled_one_after_the_other() -> None:
    sequences = count(1)
    tail = Tail(chunk_views=100)
    for size in (30, 250, 1):
        extend(tail, [view(next(sequences)) for _ in range(size)])
    extend(tail, [leaving(1000, 100, 5), leaving(1001, 101, 6), leaving(1002, 281, 7)])
    parts, _ = tail.publish()
    assert [len(part) for part in parts] == [100, 100, 81]
    assert np.concatenate([part.sequence for part in parts]).tolist() == list(range(1, 282))
    assert [int(part.duration_ms.max()) for part in parts] == [5, 6, 7]


def test_unchanged_chunks_are_published_once() -> None:
    tail = Tail()
    extend(tail, [view(sequence) for sequence in range(1, CHUNK_VIEWS + 2)])
    first, _ = tail.publish()
    extend(tail, [view(CHUNK_VIEWS + 2)])
    second, _ = tail.publish()
    assert second[0] is first[0]
    assert second[1] is not first[1]


def test_a_cut_of_the_oldest_leaves_the_last_chunk_open() -> None:
    tail = Tail(chunk_views=3)
    extend(tail, [view(sequence) for sequence in range(1, 6)])
    cut = tail.cut(everything=False)
    assert (cut.watermark, [len(chunk) for chunk in cut.chunks]) == (3, [3])
    extend(tail, [view(6)])
    tail.drop(cut)
    assert [len(part) for part in tail.publish()[0]] == [3]


def test_a_cut_of_everything_closes_what_it_takes() -> None:
    tail = Tail(chunk_views=3)
    extend(tail, [view(1)])
    cut = tail.cut(everything=True)
    extend(tail, [view(2)])
    tail.drop(cut)
    assert [part.sequence.tolist() for part in tail.publish()[0]] == [[2]]


def test_a_cut_knows_the_latest_record_also_of_those_that_came_while_another_was_made() -> None:
    tail = Tail(chunk_views=3)
    extend(tail, [view(1, time_ms=100)])
    first = tail.cut(everything=True)
    assert first.latest_ms == 100
    extend(tail, [property_record(journal_key(1, 900, 2), 2, 0, 5)])
    tail.drop(first)
    second = tail.cut(everything=True)
    assert (second.watermark, second.latest_ms) == (2, 900)
