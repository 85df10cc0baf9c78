from collections.abc import Sequence

import pytest
from attrs import evolve
from stats.hits import view
from stats.made import SOURCES, question_of, snapshot_of

from medamad.model.dimensions import Dimension
from medamad.stats.selecting import select
from medamad.stats.wanted import NobodyWaits, Wanted
from medamad.store.parts import EMPTY, Snapshot


def test_the_parts_come_for_as_long_as_the_answer_is_wanted() -> None:
    parts = [object(), object(), object()]
    wanted = Wanted()
    watched = wanted.watched(Snapshot(parts=parts, events=(), texts=EMPTY.texts))
    for _ in range(2):
        assert list(watched.parts) == parts
    going = iter(watched.parts)
    assert next(going) is parts[0]
    wanted.is_wanted = False
    with pytest.raises(NobodyWaits):
        next(going)


def test_a_filter_on_many_texts_ends_when_nobody_waits() -> None:
    wanted = Wanted()
    views = [view(number, "p", path=f"/{number}") for number in range(12_000)]
    for number, one in enumerate(views, 1):
        one["id"] = number
    snapshot = snapshot_of(views, [])
    read = []

    def texts(dimension: Dimension) -> Sequence[str]:
        read.append(dimension)
        # The first call tells how many there are, each further one is for some of them.
        if len(read) == 3:
            wanted.is_wanted = False
        return snapshot.texts(dimension)

    question = question_of([("path[contains]", "1")])
    with pytest.raises(NobodyWaits):
        select(wanted.watched(evolve(snapshot, texts=texts)), question, SOURCES)
    assert read == [Dimension.PATH] * 3
    wanted.is_wanted = True
    chosen = [
        len(some.time_ms) for some in select(wanted.watched(snapshot), question, SOURCES).views()
    ]
    assert sum(chosen) == sum("1" in str(number) for number in range(12_000))
