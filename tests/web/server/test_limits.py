"""Which connection makes room for another, and unsent responses."""

from typing import Final

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st

from medamad.domain.errors import TooMany, Unavailable
from medamad.web.server.limits import (
    MAX_UNSENT_BYTES,
    MAX_UNSENT_PER_NETWORK,
    Connections,
    ConnectionState,
    UnsentResponses,
)

IDLE, READING, RESPONDING, PAUSED = (
    ConnectionState.IDLE,
    ConnectionState.READING,
    ConnectionState.RESPONDING,
    ConnectionState.PAUSED,
)


@define(eq=False)
class One:
    """A connection."""

    network: bytes | None = None


def test_connections_are_counted_by_network() -> None:
    connections: Connections[One] = Connections()
    first, second, third = One(b"a"), One(b"b"), One()
    for one in (first, second, third):
        connections.add(one)
    connections.enter(first, IDLE)
    assert list(connections) == [first, second, third]
    assert (len(connections), connections.of(b"a"), connections.of(b"c")) == (3, 1, 0)
    assert connections.to_evict() is second
    assert connections.to_evict_within(b"a") is first


@pytest.mark.parametrize("network", [b"a", None])
@pytest.mark.parametrize("state", [IDLE, READING, RESPONDING, PAUSED])
def test_nothing_is_kept_of_a_removed_connection(
    state: ConnectionState, network: bytes | None
) -> None:
    connections: Connections[One] = Connections()
    one = One(network)
    connections.add(one)
    connections.enter(one, state)
    for _ in range(2):
        connections.remove(one)
        connections.enter(one, IDLE)
    assert len(connections) == connections.of(b"a") == 0
    assert connections == Connections()


def test_connections_may_be_closed_during_iteration() -> None:
    connections: Connections[One] = Connections()
    for _ in range(3):
        connections.add(One())
    for one in connections:
        connections.remove(one)
    assert len(connections) == 0


def test_a_responding_connection_is_not_evicted() -> None:
    connections: Connections[One] = Connections()
    ones = [One(b"a") for _ in range(300)]
    for one in ones:
        connections.add(one)
        connections.enter(one, RESPONDING)
    assert connections.to_evict() is connections.to_evict_within(b"a") is None
    assert (len(connections), connections.of(b"a")) == (300, 300)
    idle = One(b"a")
    connections.add(idle)
    connections.enter(ones[0], IDLE)
    assert connections.to_evict() is connections.to_evict_within(b"a") is idle
    connections.remove(idle)
    assert connections.to_evict() is connections.to_evict_within(b"a") is ones[0]


@define(eq=False)
class Oracle:
    """The same, by going through all connections."""

    open: list[One] = field(factory=list)
    states: list[tuple[One, ConnectionState]] = field(factory=list)
    """The latest state of each, the earliest first."""

    def do(self, step: str | ConnectionState, one: One) -> None:
        if step == "add" and one not in self.open:
            self.open.append(one)
            self._enter(one, IDLE)
        elif step == "remove" and one in self.open:
            self.open.remove(one)
        elif isinstance(step, ConnectionState) and one in self.open:
            self._enter(one, step)

    def _enter(self, one: One, state: ConnectionState) -> None:
        self.states = [*((known, was) for known, was in self.states if known != one), (one, state)]

    def to_evict(self, *networks: bytes | None) -> One | None:
        for one, state in self.states:
            if one in self.open and one.network in networks and state is not RESPONDING:
                return one
        return None


STEPS: Final = (IDLE, READING, PAUSED, RESPONDING, "add", "remove")


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 8))))
def test_eviction_against_an_oracle(steps: list[tuple[str | ConnectionState, int]]) -> None:
    oracle = Oracle()
    connections: Connections[One] = Connections()
    ones = [One(network) for network in (b"a", b"a", b"a", b"a", b"b", b"b", b"b", b"c", None)]
    for step, number in steps:
        one = ones[number]
        if isinstance(step, ConnectionState):
            connections.enter(one, step)
        elif step == "remove":
            connections.remove(one)
        elif one not in oracle.open:
            connections.add(one)
        oracle.do(step, one)
        assert list(connections) == oracle.open
        assert connections.to_evict() is oracle.to_evict(b"a", b"b", b"c", None)
        for network in {other.network for other in oracle.open} - {None}:
            assert connections.to_evict_within(network) is oracle.to_evict(network)
    for one in ones:
        connections.remove(one)
    assert connections == Connections()


def test_the_unsent_responses_of_a_network_are_bounded() -> None:
    unsent = UnsentResponses()
    sent = unsent.hold(b"a", MAX_UNSENT_PER_NETWORK - 1)
    unsent.hold(b"a", 1)
    with pytest.raises(TooMany) as raised:
        unsent.hold(b"a", 1)
    assert raised.value.retry_after == 10
    unsent.hold(b"b", 1)
    sent()
    unsent.hold(b"a", 1)


def test_all_unsent_responses_are_bounded() -> None:
    unsent = UnsentResponses()
    networks = [b"%d" % number for number in range(MAX_UNSENT_BYTES // MAX_UNSENT_PER_NETWORK)]
    sent = [unsent.hold(network, MAX_UNSENT_PER_NETWORK) for network in networks]
    with pytest.raises(Unavailable) as raised:
        unsent.hold(b"other", 1)
    assert raised.value.retry_after == 10
    sent[0]()
    unsent.hold(b"other", MAX_UNSENT_PER_NETWORK)


def test_one_response_alone_may_have_any_length() -> None:
    unsent = UnsentResponses()
    for _ in range(2):
        sent = unsent.hold(b"a", MAX_UNSENT_BYTES + 1)
        with pytest.raises(TooMany):
            unsent.hold(b"a", 1)
        with pytest.raises(Unavailable):
            unsent.hold(b"b", 1)
        sent()
    assert unsent == UnsentResponses()
