from collections import Counter
from collections.abc import Hashable, Sequence

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.fair_queue import FairQueue


@define(eq=False)
class Item:
    owner: str
    weight: int = 1


@define
class Oracle:
    """A naive queue that goes through all items."""

    items: list[Item] = field(factory=list)
    turns: list[Hashable] = field(factory=list)

    def add(self, item: Item) -> None:
        self.items.append(item)
        if item.owner not in self.turns:
            self.turns.append(item.owner)

    def take(self, item: Item, *, is_served: bool = True) -> None:
        self.items.remove(item)
        if is_served:
            self.turns.remove(item.owner)
            self.turns.append(item.owner)
        waiting = {one.owner for one in self.items}
        self.turns = [owner for owner in self.turns if owner in waiting]

    def of(self, owner: Hashable) -> list[Item]:
        return [one for one in self.items if one.owner == owner]

    def weights(self) -> Counter[Hashable]:
        weights: Counter[Hashable] = Counter()
        for one in self.items:
            weights[one.owner] += one.weight
        return weights


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from("abcd"), st.integers(1, 20)),
        st.tuples(
            st.sampled_from(["oldest", "next", "latest", "remove"]),
            st.sampled_from("abcde"),
            st.integers(0, 9),
        ),
    ),
    max_size=60,
)


@given(STEPS)
def test_against_an_oracle(steps: Sequence[tuple[str, str, int]]) -> None:
    queue: FairQueue[Item] = FairQueue()
    oracle = Oracle()
    for step, owner, number in steps:
        if step == "add":
            item = Item(owner, number)
            for _ in range(2):
                queue.add(owner, item, number)
            oracle.add(item)
        elif not oracle.items:
            continue
        elif step == "oldest":
            item = queue.pop_oldest()
            assert item is oracle.items[0]
            oracle.take(item)
        elif step == "next":
            item = queue.pop()
            assert item is oracle.of(oracle.turns[0])[0]
            oracle.take(item)
        elif step == "remove":
            item = oracle.items[number % len(oracle.items)]
            for _ in range(2):
                queue.remove(item)
            oracle.take(item, is_served=False)
        else:
            heaviest = queue.heaviest(owner)
            weights = oracle.weights()
            assert 2 * weights[heaviest] > max(weights.values())
            if weights[owner] == max(weights.values()):
                assert heaviest == owner
            item = queue.pop_latest(heaviest)
            assert item is oracle.of(heaviest)[-1]
            oracle.take(item, is_served=False)
        assert list(queue) == oracle.items
        assert list(queue.owners()) == oracle.turns
        assert len(queue) == len(oracle.items)
        assert queue.weight == oracle.weights().total()


def test_all_are_taken_at_once() -> None:
    queue: FairQueue[Item] = FairQueue()
    items = [
        Item(owner, weight) for owner, weight in zip("abcaba", (1, 2, 4, 8, 1, 1), strict=True)
    ]
    for item in items:
        queue.add(item.owner, item, item.weight)
    queue.pop()
    assert queue.pop_all() == items[1:]
    assert queue == FairQueue()


def test_owners_of_about_the_same_weight_take_turns_as_the_heaviest() -> None:
    queue: FairQueue[Item] = FairQueue()
    for owner in "aabbccd" * 2:
        queue.add(owner, Item(owner))
    latest = [queue.pop_latest(queue.heaviest("d")) for _ in range(3)]
    assert sorted(one.owner for one in latest) == ["a", "b", "c"]


@pytest.mark.parametrize("take", [FairQueue.pop, FairQueue.pop_oldest])
def test_owners_without_items_are_forgotten(take: object) -> None:
    assert callable(take)
    queue: FairQueue[Item] = FairQueue()
    for number in range(1_000):
        for item in (Item(f"owner {number}", number + 1), Item("always")):
            queue.add(item.owner, item, item.weight)
        take(queue)
        take(queue)
        assert queue == FairQueue()
