from attrs import define

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
    assert connections.one_to_close() is second
    assert connections.one_to_close(b"a") is first
    assert connections.one_to_close(b"c") is None


def test_what_is_forgotten_leaves_nothing() -> None:
    connections: Connections[One] = Connections()
    one = One(b"a")
    connections.waits(one)
    for _ in range(2):
        connections.remove(one)
    assert len(connections) == connections.of(b"a") == 0
    assert connections._by_network == {}


def test_who_is_at_work_stays() -> None:
    connections: Connections[One] = Connections()
    ones = [One(b"a") for _ in range(300)]
    for one in ones:
        connections.waits(one)
        connections.works(one)
    assert connections.one_to_close() is connections.one_to_close(b"a") is None
    assert (len(connections), connections.of(b"a")) == (300, 300)
    waiting = One(b"a")
    connections.waits(waiting)
    connections.waits(ones[0])
    assert connections.one_to_close() is connections.one_to_close(b"a") is waiting
    connections.remove(waiting)
    assert connections.one_to_close() is connections.one_to_close(b"a") is ones[0]


def test_connections_may_be_closed_while_they_are_gone_through() -> None:
    connections: Connections[One] = Connections()
    for _ in range(3):
        connections.waits(One())
    for one in connections:
        connections.remove(one)
    assert len(connections) == 0
