"""Whose turn it is, told by who asks and in what order."""

import pytest
from attrs import frozen

from medamad.daemon.fair_queue import _REMEMBERED, Asker, FairQueue

OWNER: Asker = ("owner", "home")
SHARE: Asker = ("share", "home")


@frozen(eq=False)
class Piece:
    asker: Asker
    number: int = 0


def queue_of(*waiting: tuple[Asker, int], at_once: int = 1) -> FairQueue[Piece]:
    """Make a queue in which so many pieces of each asker wait."""
    queue: FairQueue[Piece] = FairQueue(at_once)
    for asker, count in waiting:
        for number in range(count):
            queue.add(Piece(asker, number))
    return queue


def in_turn(queue: FairQueue[Piece]) -> list[Piece]:
    """Do all that waits, one after the other."""
    done = []
    while (piece := queue.begin()) is not None:
        done.append(piece)
        queue.ended(piece)
    return done


def askers(pieces: list[Piece]) -> list[Asker]:
    return [piece.asker for piece in pieces]


def test_pieces_of_one_come_in_their_order() -> None:
    done = in_turn(queue_of((OWNER, 5)))
    assert [piece.number for piece in done] == [0, 1, 2, 3, 4]


def test_who_asks_much_does_not_keep_others_waiting() -> None:
    done = askers(in_turn(queue_of((SHARE, 100), (OWNER, 3))))
    assert done[:6] == [SHARE, OWNER] * 3
    assert done[6:] == [SHARE] * 97


def test_networks_of_one_asker_share_its_turns() -> None:
    crowd = [(("share", f"network {number}"), 2) for number in range(50)]
    done = askers(in_turn(queue_of(*crowd, (OWNER, 3))))
    assert [place for place, asker in enumerate(done) if asker == OWNER] == [1, 3, 5]
    shared = [asker for asker in done if asker != OWNER]
    assert shared == [asker for asker, _ in crowd] * 2


def test_who_asks_one_by_one_does_not_come_before_others_each_time() -> None:
    queue = queue_of((OWNER, 3), (SHARE, 1))
    done = []
    while (piece := queue.begin()) is not None:
        done.append(piece.asker)
        queue.ended(piece)
        if piece.asker == SHARE and len(done) < 10:
            queue.add(Piece(SHARE))
    assert done[:6] == [OWNER, SHARE] * 3


def test_so_many_of_one_are_under_way_and_no_more() -> None:
    queue = queue_of((("share", "a"), 4), (("share", "b"), 4), at_once=2)
    begun = [queue.begin(), queue.begin()]
    assert None not in begun
    assert queue.begin() is None
    queue.add(Piece(OWNER))
    other = queue.begin()
    assert other is not None
    assert other.asker == OWNER
    assert queue.begin() is None
    assert begun[0] is not None
    queue.ended(begun[0])
    assert queue.begin() is not None
    assert queue.begin() is None
    assert len(queue) == 5


def test_what_is_removed_does_not_come() -> None:
    queue = queue_of((OWNER, 1))
    piece = Piece(SHARE)
    queue.add(piece)
    queue.remove(piece)
    queue.remove(piece)
    assert askers(in_turn(queue)) == [OWNER]
    assert len(queue) == 0


@pytest.mark.parametrize(
    ("waiting", "asker", "loser"),
    [
        ((), OWNER, None),
        (((SHARE, 1),), OWNER, None),
        (((SHARE, 2),), OWNER, SHARE),
        (((SHARE, 9),), SHARE, None),
        (((SHARE, 9), (OWNER, 8)), OWNER, None),
        (((SHARE, 9), (OWNER, 7)), OWNER, SHARE),
        (((SHARE, 9), (OWNER, 7)), SHARE, None),
        (((("share", "a"), 4), (("share", "b"), 5), (OWNER, 6)), OWNER, ("share", "b")),
        (((("share", "a"), 4), (("share", "b"), 5), (OWNER, 6)), SHARE, ("share", "b")),
        (((("share", "a"), 1), (("share", "b"), 1), (OWNER, 1)), SHARE, None),
        (((SHARE, 9),), (), None),
        ((((), 2),), OWNER, ()),
    ],
)
def test_the_latest_of_whoever_has_most_gives_way(
    waiting: tuple[tuple[Asker, int], ...], asker: Asker, loser: Asker | None
) -> None:
    found = queue_of(*waiting).to_give_way(asker)
    if loser is None:
        assert found is None
    else:
        assert found is not None
        assert (found.asker, found.number) == (loser, dict(waiting)[loser] - 1)


def test_the_daemon_itself_waits_for_nobody() -> None:
    queue = queue_of((OWNER, 2), (SHARE, 2))
    assert queue.begin() is not None
    queue.add(Piece(()))
    assert askers(in_turn(queue))[0] == ()


def test_nobody_is_remembered_when_nothing_waits() -> None:
    queue = queue_of((OWNER, 2), (SHARE, 2))
    in_turn(queue)
    assert not queue._turns
    assert not queue._under_way
    assert not queue._waiting


def test_what_is_remembered_has_a_bound() -> None:
    queue = queue_of(*[(("share", number), 1) for number in range(3 * _REMEMBERED)])
    for _ in range(2 * _REMEMBERED):
        piece = queue.begin()
        assert piece is not None
        queue.ended(piece)
    assert len(queue._turns) == _REMEMBERED
