from collections import Counter
from collections.abc import Collection
from itertools import count
from typing import Final

from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from medamad.web.server.admission import FEW, SETTLED_SECONDS, SLOW_SECONDS, Connections

Networks = Collection[bytes | None]
NETWORKS: Final = (b"a", b"b", b"c", None)


@define(eq=False)
class One:
    network: bytes | None = None
    waits_for_turn: bool = False
    is_sending: bool = False


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


@define(eq=False)
class Timed:
    """Connections, by a clock that is set."""

    now: float = 0.0
    connections: Connections[One] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.connections = Connections(lambda: self.now)

    def add(self, network: bytes | None, state: str = "waits", number: int = 1) -> list[One]:
        """Add some that wait, or do something else, from now on."""
        ones = [One(network) for _ in range(number)]
        for one in ones:
            self.connections.waits(one)
            if state != "waits":
                getattr(self.connections, state)(one)
        return ones

    def first(self, *newcomers: bytes | None) -> One | None:
        """Return the one that goes first, whoever of these comes."""
        (one,) = {self.connections.giving_way(newcomer) for newcomer in newcomers}
        return one


def test_of_the_network_with_most_requests_coming_the_earliest_gives_way() -> None:
    timed = Timed()
    connections = timed.connections
    (a,) = timed.add(b"a", "works")
    first, second, third = timed.add(b"b", "works", 3)
    (alone,) = timed.add(None, "works")
    timed.now = SLOW_SECONDS - 0.01
    # A request may take a moment.
    assert timed.first(b"a", b"b", b"c", None) is None
    timed.now = SLOW_SECONDS
    assert timed.first(b"a", b"b", b"c", None) is first
    # What goes on coming is none the later for it; what is answered stays.
    connections.works(first)
    assert timed.first(b"b", None) is first
    # So does what waits for its turn.
    first.waits_for_turn = True
    assert timed.first(b"b", None) is second
    first.waits_for_turn = False
    connections.answers(first)
    assert timed.first(b"b", None) is second
    connections.remove(second)
    # Where several have as many, it is one that has had so many for longest.
    assert timed.first(b"a", b"c", None) is a
    assert timed.first(b"b") is third
    connections.answers(a)
    # Where there is no bound, each stands for itself.
    connections.answers(third)
    assert timed.first(b"a", None) is alone
    connections.waits(alone)
    assert timed.first(b"a") is alone


def test_who_begins_many_requests_hides_no_slow_ones() -> None:
    timed = Timed()
    (slow,) = timed.add(b"a", "works")
    timed.now = 5.0
    many = timed.add(b"b", "works", 3)
    timed.add(b"c")
    assert timed.first(b"a", b"c", None) is slow
    # Only who comes of theirs is kept out.
    assert timed.first(b"b") is None
    # Nor does who has many that wait for their turns.
    timed.now = 10.0
    (young,) = timed.add(b"d")
    for one in [*many, *timed.add(b"b", "works", 300)]:
        one.waits_for_turn = True
    assert timed.first(None) is not young
    timed.connections.remove(timed.first(None))
    timed.now += SLOW_SECONDS
    assert timed.first(b"a", b"d", None) is slow


def test_who_makes_no_headway_gives_way_before_who_has_just_come() -> None:
    timed = Timed()
    connections = timed.connections

    def first() -> One | None:
        assert timed.first(b"a", b"b", None) is connections.giving_way_within(b"a")
        return timed.first(None)

    (slow,) = timed.add(b"a", "works")
    timed.now = 0.25
    (deaf,) = timed.add(b"a", "pauses")
    timed.now = SLOW_SECONDS
    (newest,) = timed.add(b"a")
    assert first() is slow
    connections.answers(slow)
    # The client has a second to receive something; yet who comes later has waited for less.
    assert first() is deaf
    connections.works(slow)
    timed.now = 1.1
    connections.waits(newest)
    assert first() is slow
    timed.now = 0.25 + SETTLED_SECONDS
    assert first() is deaf
    # The client has received something, and the next piece is made.
    connections.answers(deaf)
    assert first() is slow
    connections.answers(slow)
    assert first() is newest
    connections.remove(deaf)
    connections.pauses(deaf)
    connections.answers(newest)
    assert first() is None


def test_who_still_receives_does_not_only_wait() -> None:
    timed = Timed()
    (reader,) = timed.add(b"a")
    reader.is_sending = True
    timed.now = 0.1
    (slow,) = timed.add(b"b", "works")
    timed.now = 0.2
    (idle,) = timed.add(b"c")
    assert timed.first(None) is reader
    timed.now = SLOW_SECONDS + 0.15
    assert timed.first(None) is slow
    timed.now = SETTLED_SECONDS
    assert timed.first(None) is reader
    timed.now += 0.2
    assert timed.first(None) is idle


def test_who_has_more_requests_coming_than_wait_makes_room_by_their_own() -> None:
    timed = Timed()
    connections = timed.connections
    coming = timed.add(b"a", "works", 2)
    (other,) = timed.add(b"c")
    (own,) = timed.add(b"a")
    (deaf,) = timed.add(b"c", "pauses")
    # As long as more wait than that.
    assert timed.first(b"a", b"c", None) is other
    connections.works(own)
    assert timed.first(b"a") is None
    assert timed.first(b"c", None) is other
    (own,) = timed.add(b"a")
    assert timed.first(b"a") is own
    connections.answers(other)
    for one in (*coming, own):
        connections.answers(one)
    assert timed.first(b"a") is own or timed.first(b"b", None) is deaf


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
        slow = self._slow(NETWORKS)
        most = max(
            (counts[one.network] for one in slow if counts[one.network] > counts[newcomer]),
            default=0,
        )
        first_slow: list[One | None] = [
            next(one for one in slow if one.network == network)
            for network in {one.network for one in slow if most and counts[one.network] == most}
        ]
        if not first_slow:
            first_slow = [next((one for one in slow if one.network == newcomer), None)]
        fresh = {newcomer} if counts[newcomer] > len(self.waiting) else NETWORKS
        return {self._first(NETWORKS, one, fresh) for one in first_slow}

    def giving_way_within(self, network: bytes) -> One | None:
        return self._first({network}, next(iter(self._slow({network})), None), {network})

    def _slow(self, networks: Networks) -> list[One]:
        return [
            one
            for one, since in self.arriving.items()
            if one.network in networks
            and not one.waits_for_turn
            and self.now - since >= SLOW_SECONDS
        ]

    def _first(self, networks: Networks, slow: One | None, fresh: Networks) -> One | None:
        since = self.waiting | self.arriving | self.paused
        idle, deaf = self._idle(networks), self._deaf(networks)
        if idle and self.now - since[idle[0]] >= SETTLED_SECONDS:
            return idle[0]
        late = [] if slow is None else [slow]
        late += [one for one in deaf if self.now - since[one] >= SETTLED_SECONDS]
        if not late:
            late = self._idle(fresh) + self._deaf(fresh)
        return min(late, key=lambda one: since[one], default=None)

    def _idle(self, networks: Networks) -> list[One]:
        few = [one for one in self.waiting if one.network in networks][:FEW]
        return [one for one in few if not one.is_sending][:1]

    def _deaf(self, networks: Networks) -> list[One]:
        paused = [one for one in self.paused if one.network in networks][:1]
        few = [one for one in self.waiting if one.network in networks][:FEW]
        since = self.waiting | self.paused
        return sorted(
            paused + [one for one in few if one.is_sending][:1], key=lambda one: since[one]
        )[:1]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["waits", "works", "pauses", "turns", "sends", "answers", "remove", "time"]
            ),
            st.integers(0, 8),
        )
    )
)
def test_who_gives_way_is_as_one_by_one(steps: list[tuple[str, int]]) -> None:
    plain = OneByOne()
    connections: Connections[One] = Connections(lambda: plain.now)
    ones = [One(network) for network in (b"a", b"a", b"a", b"a", b"b", b"b", b"b", b"c", None)]
    for step, number in steps:
        one = ones[number]
        if step == "turns":
            one.waits_for_turn = not one.waits_for_turn
        elif step == "sends":
            one.is_sending = not one.is_sending
        elif step == "time":
            plain.now += 0.3
        else:
            plain.do(step, one)
            getattr(connections, step)(one)
        assert set(connections) == set(plain.known)
        for newcomer in (b"a", b"b", b"c", b"d"):
            assert connections.giving_way(newcomer) in plain.giving_way(newcomer)
            within = connections.giving_way_within(newcomer)
            assert within is plain.giving_way_within(newcomer)
    for one in ones:
        connections.remove(one)
    assert connections._networks == connections._with_arriving == {}
    assert connections._every.waiting == connections._every.paused == {}


def test_connections_may_be_closed_while_they_are_gone_through() -> None:
    connections = quickly()
    for _ in range(3):
        connections.waits(One())
    for one in connections:
        connections.remove(one)
    assert len(connections) == 0
