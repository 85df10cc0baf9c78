import pytest

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
