import pytest
from attrs import evolve
from support.query.hits import event, view
from support.query.snapshots import SOURCES, question_of, snapshot_of

from medamad.query import filter_codes
from medamad.query.request import NobodyWaits, Wanted
from medamad.query.scan import select
from medamad.storage.segments.snapshot import EMPTY, Snapshot


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


class Asked:
    """Counts how often a question asks whether it is to go on, and lets it so often."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.times = 0

    def __call__(self) -> None:
        self.times += 1
        if self.times > self.most:
            raise NobodyWaits


@pytest.mark.parametrize("field", ["path", "prop_value"])
def test_a_filter_on_many_texts_ends_when_nobody_waits(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filter_codes, "_TOLD_AT_ONCE", 1_000)
    views = [view(number, "p", path=f"/{number}") for number in range(2_500)]
    for number, one in enumerate(views, 1):
        one["id"] = number
    events = [event(0, number, a=f"/{number - 1}") for number in range(1, 2_501)]
    snapshot = snapshot_of(views, events)
    question = question_of([(f"{field}[contains]", "1"), (f"{field}[not_contains]", "x")])
    # Before each thousand of the texts, and before each of two conditions on them.
    for most in (0, 1, 8):
        given_up = Asked(most)
        with pytest.raises(NobodyWaits):
            select(evolve(snapshot, check=given_up), question, SOURCES)
        assert given_up.times == most + 1
    asked = Asked(9)
    chosen = [
        len(some.time_ms)
        for some in select(evolve(snapshot, check=asked), question, SOURCES).views()
    ]
    assert asked.times == 9
    assert sum(chosen) == sum("1" in str(number) for number in range(2_500))


def test_what_is_watched_is_checked() -> None:
    wanted = Wanted()
    watched = wanted.watched(EMPTY)
    watched.check()
    wanted.is_wanted = False
    with pytest.raises(NobodyWaits):
        watched.check()
