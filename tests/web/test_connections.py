from collections import Counter
from itertools import count

from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from medamad.web.connections import SETTLED_SECONDS, Connections


@define(eq=False)
class One:
    network: bytes | None = None
    waits_for_turn: bool = False


def quickly() -> Connections[One]:
    """Make some to which all comes one after the other, within a moment."""
    moments = count()
    return Connections(lambda: next(moments) / 1_000_000)


def test_those_of_a_network_are_told_apart() -> None:
    connections = quickly()
    first, second, third = One(b"a"), One(b"b"), One()
    for one in (first, second, third, first):
        connections.waits(one)
    assert set(connections) == {first, second, third}
    assert (len(connections), connections.of(b"a"), connections.of(b"c")) == (3, 1, 0)
    assert connections.giving_way(None) is second
    assert connections.longest_waiting(b"a") is first
    assert connections.longest_waiting(b"c") is None


def test_what_is_forgotten_leaves_nothing() -> None:
    connections = quickly()
    one = One(b"a")
    connections.waits(one)
    for _ in range(2):
        connections.remove(one)
    assert len(connections) == connections.of(b"a") == 0
    assert connections._networks == {}


def test_who_is_at_work_stays() -> None:
    connections = quickly()
    ones = [One(b"a") for _ in range(300)]
    for one in ones:
        connections.waits(one)
        connections.answers(one)
    assert connections.giving_way(None) is connections.longest_waiting(b"a") is None
    assert (len(connections), connections.of(b"a")) == (300, 300)
    waiting = One(b"a")
    connections.waits(waiting)
    connections.waits(ones[0])
    assert connections.giving_way(None) is connections.longest_waiting(b"a") is waiting
    connections.remove(waiting)
    assert connections.giving_way(None) is connections.longest_waiting(b"a") is ones[0]


def test_of_the_network_with_most_requests_coming_the_earliest_gives_way() -> None:
    connections = quickly()
    ones = [One(b"a"), One(b"b"), One(b"b"), One(b"b"), One()]
    for one in ones:
        connections.waits(one)
        connections.works(one)
    for newcomer in (b"a", b"c", None):
        assert connections.giving_way(newcomer) is ones[1]
    # Who has as many makes room for more of the same.
    assert connections.giving_way(b"b") is ones[1]
    # What goes on coming is none the later for it; what is answered stays.
    connections.works(ones[1])
    assert connections.giving_way(None) is ones[1]
    # So does what waits for its turn.
    ones[1].waits_for_turn = True
    assert connections.giving_way(None) is ones[2]
    ones[1].waits_for_turn = False
    connections.answers(ones[1])
    assert connections.giving_way(None) is ones[2]
    connections.remove(ones[2])
    # Where several have as many, it is one that has had so many for longest.
    assert connections.giving_way(None) is ones[0]
    assert connections.giving_way(b"a") is ones[0]
    connections.answers(ones[0])
    # Where there is no bound, each stands for itself.
    connections.answers(ones[3])
    assert connections.giving_way(None) is ones[4]
    connections.waits(ones[4])
    assert connections.giving_way(b"a") is ones[4]


def test_who_has_more_requests_coming_than_wait_makes_room_by_their_own() -> None:
    connections = quickly()
    slow = [One(b"a"), One(b"a"), One(b"b")]
    waiting = [One(b"c"), One(b"a")]
    for one in (*waiting, *slow):
        connections.waits(one)
    for one in slow[:2]:
        connections.works(one)
    # As long as more wait than that.
    assert connections.giving_way(b"a") is waiting[0]
    connections.works(slow[2])
    assert connections.giving_way(b"a") is waiting[0]
    connections.remove(waiting[1])
    assert connections.giving_way(b"a") is slow[0]
    for newcomer in (b"b", b"c", b"d", None):
        assert connections.giving_way(newcomer) is waiting[0]
    again = One(b"a")
    connections.waits(again)
    connections.answers(slow[0])
    connections.answers(slow[1])
    connections.answers(waiting[0])
    assert connections.giving_way(b"b") is slow[2]
    connections.works(again)
    assert connections.giving_way(b"a") is again


def test_who_has_just_come_stays_where_requests_are_slow_to_come() -> None:
    now = 0.0
    connections: Connections[One] = Connections(lambda: now)
    slow, newest = One(b"a"), One(b"b")
    for one in (slow, newest):
        connections.waits(one)
    connections.works(slow)
    for newcomer in (b"a", b"b", b"c", None):
        assert connections.giving_way(newcomer) is slow
    now = SETTLED_SECONDS
    for newcomer in (b"a", b"b", b"c", None):
        assert connections.giving_way(newcomer) is newest
    connections.remove(slow)
    now = 0.0
    assert connections.giving_way(None) is newest


@define(eq=False)
class OneByOne:
    """What connections do, kept as plainly as can be."""

    now: float = 0.0
    known: list[One] = field(factory=list)
    waiting: dict[One, float] = field(factory=dict)
    arriving: dict[One, float] = field(factory=dict)

    def do(self, step: str, one: One) -> None:
        if step == "works" and (one in self.arriving or one not in self.known):
            return
        if step in ("waits", "works", "answers", "remove"):
            self.waiting.pop(one, None)
            self.arriving.pop(one, None)
        if step == "turns":
            one.waits_for_turn = not one.waits_for_turn
        elif step == "time":
            self.now += 0.6 * SETTLED_SECONDS
        elif step == "waits":
            self.waiting[one] = self.now
            self.known += [one] * (one not in self.known)
        elif step == "works":
            self.arriving[one] = self.now
        elif step == "remove" and one in self.known:
            self.known.remove(one)

    def giving_way(self, newcomer: bytes) -> set[One | None]:
        """Any of those it gives may go."""
        counts = Counter(one.network for one in self.arriving)
        slow = [one for one in self.arriving if not one.waits_for_turn]
        most = max((counts[one.network] for one in slow), default=0)
        networks: set[bytes | None] = {newcomer}
        if most > counts[newcomer]:
            networks = {one.network for one in slow if counts[one.network] == most}
        first_slow: list[One | None] = [
            next((one for one in slow if one.network == network), None) for network in networks
        ]
        waiting = list(self.waiting)
        if counts[newcomer] > len(waiting):
            waiting = [one for one in waiting if one.network == newcomer]
        if not waiting:
            return set(first_slow)
        since = self.waiting[waiting[0]]
        if self.now - since >= SETTLED_SECONDS:
            return {waiting[0]}
        return {
            one if one is not None and self.arriving[one] <= since else waiting[0]
            for one in first_slow
        }


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["waits", "works", "turns", "answers", "remove", "time"]),
            st.integers(0, 8),
        )
    )
)
def test_who_gives_way_is_as_one_by_one(steps: list[tuple[str, int]]) -> None:
    plain = OneByOne()
    connections: Connections[One] = Connections(lambda: plain.now)
    ones = [One(network) for network in (b"a", b"a", b"a", b"a", b"b", b"b", b"b", b"c", None)]
    for step, number in steps:
        plain.do(step, ones[number])
        if step not in ("turns", "time"):
            getattr(connections, step)(ones[number])
        assert set(connections) == set(plain.known)
        for newcomer in (b"a", b"b", b"c", b"d"):
            assert connections.giving_way(newcomer) in plain.giving_way(newcomer)
    for one in ones:
        connections.remove(one)
    assert connections._networks == connections._with_arriving == {}


def test_connections_may_be_closed_while_they_are_gone_through() -> None:
    connections = quickly()
    for _ in range(3):
        connections.waits(One())
    for one in connections:
        connections.remove(one)
    assert len(connections) == 0
