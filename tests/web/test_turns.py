import pytest
from attrs import define
from twisted.internet.task import Clock

from medamad.web.turns import TAKEN_AT_ONCE, Turns


@define(eq=False)
class One:
    """A connection with so many requests ahead."""

    turns: "Turns[One]"
    left: int
    taken: int = 0

    def take_next(self) -> None:
        self.left -= 1
        self.taken += 1
        if self.left:
            self.turns.add(self)


def test_each_gets_its_turn() -> None:
    clock = Clock()
    turns: Turns[One] = Turns(clock.callLater)
    ones = [One(turns, 3) for _ in range(TAKEN_AT_ONCE + 1)]
    for one in ones:
        turns.add(one)
        turns.add(one)
    assert len(clock.getDelayedCalls()) == 1
    turns.take()
    assert [one.taken for one in ones] == [1] * TAKEN_AT_ONCE + [0]
    turns.take()
    assert [one.taken for one in ones] == [2] * (TAKEN_AT_ONCE - 1) + [1, 1]
    clock.advance(0)
    assert [one.taken for one in ones] == [3] * len(ones)
    assert clock.getDelayedCalls() == []


def test_one_that_is_gone_gets_none() -> None:
    clock = Clock()
    turns: Turns[One] = Turns(clock.callLater)
    ones = [One(turns, 1) for _ in range(2)]
    for one in ones:
        turns.add(one)
    turns.remove(ones[0])
    turns.remove(ones[0])
    clock.advance(0)
    assert [one.taken for one in ones] == [0, 1]


def test_a_fault_in_one_keeps_nobody_from_its_turn() -> None:
    class Broken(One):
        def take_next(self) -> None:
            raise ZeroDivisionError

    clock = Clock()
    turns: Turns[One] = Turns(clock.callLater)
    one = One(turns, 1)
    turns.add(Broken(turns, 1))
    turns.add(one)
    with pytest.raises(ZeroDivisionError):
        clock.advance(0)
    clock.advance(0)
    assert one.taken == 1
