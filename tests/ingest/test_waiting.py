from collections import Counter
from collections.abc import Sequence

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred

from medamad.domain.hits import Leaving
from medamad.ingest.write_queue import Entry, Waiting


def entry(sender: str, places: int = 1, records: int = 1) -> Entry:
    hit = Leaving(time_ms=1, beacon=sender, duration_ms=1)
    return Entry(hit, sender, records, places, Deferred())


@define
class Slow:
    """The same by going through all that wait."""

    entries: list[Entry] = field(factory=list)
    turns: list[object] = field(factory=list)

    def add(self, added: Entry) -> None:
        self.entries.append(added)
        if added.sender not in self.turns:
            self.turns.append(added.sender)

    def first_of(self, sender: object) -> Entry:
        return next(one for one in self.entries if one.sender == sender)

    def take(self, taken: Entry, *, in_turn: bool = True) -> None:
        self.entries.remove(taken)
        if in_turn:
            self.turns.remove(taken.sender)
            self.turns.append(taken.sender)
        waiting = {one.sender for one in self.entries}
        self.turns = [sender for sender in self.turns if sender in waiting]

    def places(self) -> "Counter[object]":
        counted: Counter[object] = Counter()
        for one in self.entries:
            counted[one.sender] += one.places
        return counted


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("abcd"), st.integers(1, 20), st.integers(1, 31)),
        st.tuples(st.sampled_from(["oldest", "next", "latest"]), st.sampled_from("abcde")),
    ),
    max_size=60,
)


@given(STEPS)
def test_it_is_what_a_list_that_is_gone_through_is(steps: Sequence[tuple[object, ...]]) -> None:
    waiting, slow = Waiting(), Slow()
    for step in steps:
        match step:
            case ("add", str(sender), int(places), int(records)):
                added = entry(sender, places, records)
                waiting.add(added)
                slow.add(added)
            case _ if not slow.entries:
                pass
            case ("oldest", _):
                taken = waiting.oldest()
                assert taken is slow.entries[0]
                slow.take(taken)
            case ("next", _):
                taken = waiting.next_in_turn()
                assert taken is slow.first_of(slow.turns[0])
                slow.take(taken)
            case ("latest", str(sender)):
                taken = waiting.latest_of_most(sender)
                counted = slow.places()
                assert 2 * counted[taken.sender] > max(counted.values())
                if counted[sender] == max(counted.values()):
                    assert taken.sender == sender
                assert taken is [one for one in slow.entries if one.sender == taken.sender][-1]
                slow.take(taken, in_turn=False)
        assert len(waiting) == len(slow.entries)
        assert waiting.places == slow.places().total()
        assert waiting.records == sum(one.records for one in slow.entries)


def test_those_who_have_about_the_same_give_way_by_turns() -> None:
    waiting = Waiting()
    for sender in "aabbccd" * 2:
        waiting.add(entry(sender))
    assert sorted(str(waiting.latest_of_most("d").sender) for _ in range(3)) == ["a", "b", "c"]


@pytest.mark.parametrize("take", [Waiting.oldest, Waiting.next_in_turn])
def test_nothing_is_kept_of_those_who_no_longer_wait(take: object) -> None:
    assert callable(take)
    waiting = Waiting()
    for number in range(1_000):
        waiting.add(entry(f"sender {number}", places=number + 1))
        waiting.add(entry("always"))
        take(waiting)
        take(waiting)
        kept = (waiting._entries, waiting._senders, *waiting._ranks)
        assert sum(map(len, kept)) == 0
