from collections import Counter
from itertools import count

from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from medamad.web.connections import LOOKED_AT, SETTLED_SECONDS, SLOW_SECONDS, Connections


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
    assert connections.giving_way_within(b"a") is first
    assert connections.giving_way_within(b"c") is None


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
    assert connections.giving_way(None) is connections.giving_way_within(b"a") is None
    assert (len(connections), connections.of(b"a")) == (300, 300)
    waiting = One(b"a")
    connections.waits(waiting)
    connections.waits(ones[0])
    assert connections.giving_way(None) is connections.giving_way_within(b"a") is waiting
    connections.remove(waiting)
    assert connections.giving_way(None) is connections.giving_way_within(b"a") is ones[0]


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
    deaf = One(b"c")
    for one in (*slow, *waiting, deaf):
        connections.waits(one)
    connections.pauses(deaf)
    for one in slow[:2]:
        connections.works(one)
    # As long as more wait than that.
    assert connections.giving_way(b"a") is slow[2]
    connections.works(slow[2])
    assert connections.giving_way(b"a") is waiting[0]
    connections.remove(waiting[1])
    assert connections.giving_way(b"a") is slow[0]
    for newcomer in (b"b", b"c", b"d", None):
        assert connections.giving_way(newcomer) is waiting[0]
    again = One(b"a")
    connections.waits(again)
    connections.answers(waiting[0])
    assert connections.giving_way(b"a") is again
    for one in (*slow[:2], again):
        connections.answers(one)
    assert connections.giving_way(b"b") is slow[2]
    connections.answers(slow[2])
    assert connections.giving_way(b"a") is connections.giving_way_within(b"c") is deaf
    assert connections.giving_way_within(b"a") is None


def test_who_makes_no_headway_gives_way_before_who_has_just_come() -> None:
    now = 0.0
    connections: Connections[One] = Connections(lambda: now)
    slow, deaf, newest = One(b"a"), One(b"a"), One(b"a")

    def first() -> One | None:
        (one,) = {
            connections.giving_way_within(b"a"),
            *map(connections.giving_way, (b"a", b"b", None)),
        }
        return one

    connections.waits(slow)
    connections.works(slow)
    now = 0.25
    connections.waits(deaf)
    connections.pauses(deaf)
    now = SLOW_SECONDS - 0.01
    connections.waits(newest)
    # A request may take a moment.
    assert first() is deaf
    now = SLOW_SECONDS
    assert first() is slow
    now += SETTLED_SECONDS
    assert first() is newest
    connections.answers(newest)
    connections.waits(newest)
    assert first() is slow
    connections.answers(slow)
    assert first() is deaf
    # The client has received something, and the next piece is made.
    connections.answers(deaf)
    assert first() is newest
    connections.pauses(deaf)
    connections.answers(newest)
    assert first() is deaf
    connections.remove(deaf)
    connections.pauses(deaf)
    assert first() is None


def test_of_those_that_wait_for_their_turns_so_many_are_looked_at() -> None:
    now = 0.0
    connections: Connections[One] = Connections(lambda: now)
    ones = [One(b"a", waits_for_turn=True) for _ in range(LOOKED_AT)]
    waiting = One(b"b")
    for one in (*ones, waiting):
        connections.waits(one)
    for one in ones:
        connections.works(one)
    now = SLOW_SECONDS
    assert connections.giving_way(None) is waiting
    ones[-1].waits_for_turn = False
    assert connections.giving_way(None) is ones[-1]
    earlier = ones[:-1]
    connections.remove(ones[-1])
    for one in (One(b"a", waits_for_turn=True), ones[-1]):
        connections.waits(one)
        connections.works(one)
    now = 2 * SLOW_SECONDS
    connections.answers(waiting)
    connections.waits(waiting)
    assert connections.giving_way(None) is waiting
    connections.remove(earlier[0])
    assert connections.giving_way(None) is ones[-1]


@define(eq=False)
class OneByOne:
    """What connections do, kept as plainly as can be."""

    now: float = 0.0
    known: list[One] = field(factory=list)
    waiting: dict[One, float] = field(factory=dict)
    paused: dict[One, float] = field(factory=dict)
    arriving: dict[One, float] = field(factory=dict)

    def do(self, step: str, one: One) -> None:
        if step == "works" and one in self.arriving:
            return
        if step in ("works", "pauses") and one not in self.known:
            return
        if step == "turns":
            one.waits_for_turn = not one.waits_for_turn
        elif step == "time":
            self.now += 0.3
        else:
            for those in (self.waiting, self.paused, self.arriving):
                those.pop(one, None)
        if step == "waits":
            self.waiting[one] = self.now
            self.known += [one] * (one not in self.known)
        elif step == "works":
            self.arriving[one] = self.now
        elif step == "pauses":
            self.paused[one] = self.now
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
        of = {newcomer} if counts[newcomer] > len(self.waiting) else {b"a", b"b", b"c", None}
        return {
            self._first(
                [one for one in self.waiting if one.network in of],
                [one for one in slow if one.network == network],
                [one for one in self.paused if one.network in of],
            )
            for network in networks
        }

    def giving_way_within(self, network: bytes) -> One | None:
        waiting, slow, paused = (
            [one for one in those if one.network == network]
            for those in (self.waiting, self.arriving, self.paused)
        )
        return self._first(waiting, [one for one in slow if not one.waits_for_turn], paused)

    def _first(self, waiting: list[One], slow: list[One], paused: list[One]) -> One | None:
        since = self.waiting | self.arriving | self.paused
        if waiting and self.now - since[waiting[0]] >= SETTLED_SECONDS:
            return waiting[0]
        too_long = [one for one in slow[:1] if self.now - since[one] >= SLOW_SECONDS]
        too_long += [one for one in paused[:1] if self.now - since[one] >= SETTLED_SECONDS]
        if too_long:
            return min(slow[:1] + paused[:1], key=lambda one: since[one])
        if waiting or paused:
            return min(waiting[:1] + paused[:1], key=lambda one: since[one])
        return next(iter(slow), None)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["waits", "works", "pauses", "turns", "answers", "remove", "time"]),
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
            within = connections.giving_way_within(newcomer)
            assert within is plain.giving_way_within(newcomer)
    for one in ones:
        connections.remove(one)
    assert connections._networks == connections._with_arriving == {}
    assert connections._waiting == connections._paused == {}


def test_connections_may_be_closed_while_they_are_gone_through() -> None:
    connections = quickly()
    for _ in range(3):
        connections.waits(One())
    for one in connections:
        connections.remove(one)
    assert len(connections) == 0
