import pytest
from attrs import define
from twisted.internet.task import Clock

from medamad.web.server.admission import TAKEN_AT_ONCE, Turns


@define(eq=False)
class One:
    """A connection with so many requests ahead."""

    turns: "Turns[One]"
    left: int
    sender: bytes | None = None
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


def test_networks_take_turns_and_so_do_the_connections_of_each() -> None:
    clock = Clock()
    turns: Turns[One] = Turns(clock.callLater)
    many = [One(turns, 1, b"a") for _ in range(TAKEN_AT_ONCE * 3)]
    few = [One(turns, 1, b"b"), One(turns, 1, b"b")]
    # What has no network stands for itself.
    single = [One(turns, 1), One(turns, 1)]
    for one in many + few + single:
        turns.add(one)
    turns.take()
    assert [one.taken for one in few + single] == [1] * 4
    assert [one.taken for one in many[: TAKEN_AT_ONCE - 3]] == [1] * (TAKEN_AT_ONCE - 4) + [0]
    turns.take()
    assert sum(one.taken for one in many) == TAKEN_AT_ONCE * 2 - 4


def test_whose_turn_it_was_last_comes_last() -> None:
    clock = Clock()
    turns: Turns[One] = Turns(clock.callLater)
    ones = [One(turns, TAKEN_AT_ONCE, network) for network in (b"a", b"b")]
    more = [One(turns, TAKEN_AT_ONCE, b"a") for _ in range(TAKEN_AT_ONCE * 2)]
    for one in ones + more:
        turns.add(one)
    for taken in (1, 2, 3):
        turns.take()
        assert ones[1].taken == taken
        assert sum(one.taken for one in (ones[0], *more)) == taken * (TAKEN_AT_ONCE - 1)


def test_of_a_turn_so_much_is_taken_as_it_comes() -> None:
    clock = Clock()
    turns: Turns[One] = Turns(clock.callLater)
    for _ in range(2):
        assert [turns.takes_more() for _ in range(TAKEN_AT_ONCE)] == [True] * TAKEN_AT_ONCE
        assert not turns.takes_more()
        clock.advance(0)
    # What others waited for is taken off it.
    for _ in range(3):
        turns.add(One(turns, 1))
    turns.take()
    assert [turns.takes_more() for _ in range(TAKEN_AT_ONCE - 3)] == [True] * (TAKEN_AT_ONCE - 3)
    assert not turns.takes_more()
    clock.advance(0)
    assert turns.takes_more()
    assert clock.getDelayedCalls() == []


def test_one_that_is_gone_while_others_are_taken_gets_none() -> None:
    @define(eq=False)
    class Closing(One):
        other: "One | None" = None

        def take_next(self) -> None:
            if self.other is not None:
                turns.remove(self.other)

    clock = Clock()
    turns: Turns[One] = Turns(clock.callLater)
    one = One(turns, 1, b"a")
    turns.add(Closing(turns, 1, b"b", other=one))
    turns.add(one)
    clock.advance(0)
    assert one.taken == 0


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
