from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from medamad.web.connections import Connections


@define(eq=False)
class One:
    network: bytes | None = None


def test_those_of_a_network_are_told_apart() -> None:
    connections: Connections[One] = Connections()
    first, second, third = One(b"a"), One(b"b"), One()
    for one in (first, second, third, first):
        connections.waits(one)
    assert set(connections) == {first, second, third}
    assert (len(connections), connections.of(b"a"), connections.of(b"c")) == (3, 1, 0)
    assert connections.longest_waiting() is second
    assert connections.longest_waiting(b"a") is first
    assert connections.longest_waiting(b"c") is None


def test_what_is_forgotten_leaves_nothing() -> None:
    connections: Connections[One] = Connections()
    one = One(b"a")
    connections.waits(one)
    for _ in range(2):
        connections.remove(one)
    assert len(connections) == connections.of(b"a") == 0
    assert connections._networks == {}


def test_who_is_at_work_stays() -> None:
    connections: Connections[One] = Connections()
    ones = [One(b"a") for _ in range(300)]
    for one in ones:
        connections.waits(one)
        connections.works(one)
    assert connections.longest_waiting() is connections.longest_waiting(b"a") is None
    assert (len(connections), connections.of(b"a")) == (300, 300)
    waiting = One(b"a")
    connections.waits(waiting)
    connections.waits(ones[0])
    assert connections.longest_waiting() is connections.longest_waiting(b"a") is waiting
    connections.remove(waiting)
    assert connections.longest_waiting() is connections.longest_waiting(b"a") is ones[0]


def test_of_the_network_with_most_requests_coming_the_earliest_gives_way() -> None:
    connections: Connections[One] = Connections()
    ones = [One(b"a"), One(b"b"), One(b"b"), One(b"b"), One()]
    for one in ones:
        connections.waits(one)
        connections.works(one)
    for newcomer in (b"a", b"c", None):
        assert connections.longest_arriving(newcomer) is ones[1]
    # Nobody makes room for more of the same.
    assert connections.longest_arriving(b"b") is None
    # What goes on coming is none the later for it; what is answered stays.
    connections.works(ones[1])
    assert connections.longest_arriving(None) is ones[1]
    connections.answers(ones[1])
    assert connections.longest_arriving(None) is ones[2]
    connections.remove(ones[2])
    # Where several have as many, it is one that has had so many for longest.
    assert connections.longest_arriving(None) is ones[0]
    assert connections.longest_arriving(b"a") is None
    connections.answers(ones[0])
    # Where there is no bound, each stands for itself.
    connections.answers(ones[3])
    assert connections.longest_arriving(None) is ones[4]
    connections.waits(ones[4])
    assert connections.longest_arriving(None) is None


@define(eq=False)
class OneByOne:
    """What connections do, kept as plainly as can be."""

    known: list[One] = field(factory=list)
    waiting: list[One] = field(factory=list)
    arriving: list[One] = field(factory=list)

    def do(self, step: str, one: One) -> None:
        if step == "works" and (one in self.arriving or one not in self.known):
            return
        for those in (self.waiting, self.arriving):
            if one in those:
                those.remove(one)
        if step == "waits" and one not in self.known:
            self.known.append(one)
        if step == "waits":
            self.waiting.append(one)
        elif step == "works":
            self.arriving.append(one)
        elif step == "remove" and one in self.known:
            self.known.remove(one)

    def arriving_of(self, network: bytes | None) -> list[One]:
        return [one for one in self.arriving if one.network == network]


@given(
    st.lists(st.tuples(st.sampled_from(["waits", "works", "answers", "remove"]), st.integers(0, 8)))
)
def test_who_gives_way_is_as_one_by_one(steps: list[tuple[str, int]]) -> None:
    connections: Connections[One] = Connections()
    plain = OneByOne()
    ones = [One(network) for network in (b"a", b"a", b"a", b"a", b"b", b"b", b"b", b"c", None)]
    for step, number in steps:
        getattr(connections, step)(ones[number])
        plain.do(step, ones[number])
        assert set(connections) == set(plain.known)
        assert connections.longest_waiting() is next(iter(plain.waiting), None)
        most = max((len(plain.arriving_of(one.network)) for one in ones), default=0)
        for newcomer in (b"a", b"b", b"c", b"d"):
            found = connections.longest_arriving(newcomer)
            if len(plain.arriving_of(newcomer)) == most:
                assert found is None
            else:
                assert found is plain.arriving_of(found.network)[0]
                assert len(plain.arriving_of(found.network)) == most
    for one in ones:
        connections.remove(one)
    assert connections._networks == connections._with_arriving == {}


def test_connections_may_be_closed_while_they_are_gone_through() -> None:
    connections: Connections[One] = Connections()
    for _ in range(3):
        connections.waits(One())
    for one in connections:
        connections.remove(one)
    assert len(connections) == 0
