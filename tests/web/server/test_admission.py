"""Eviction, work per reactor turn, and unsent responses."""

from collections import Counter
from collections.abc import Callable, Collection
from itertools import count
from typing import Final

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.task import Clock

from medamad.domain.errors import TooMany, Unavailable
from medamad.web.server.admission import (
    MAX_EXAMINED,
    MAX_UNSENT_BYTES,
    MAX_UNSENT_PER_NETWORK,
    MIN_IDLE_S,
    REQUESTS_PER_TURN,
    SLOW_S,
    Connections,
    ConnectionState,
    TurnScheduler,
    UnsentResponses,
)

IDLE, READING, RESPONDING, PAUSED = (
    ConnectionState.IDLE,
    ConnectionState.READING,
    ConnectionState.RESPONDING,
    ConnectionState.PAUSED,
)
Networks = Collection[bytes | None]
NETWORKS: Final = (b"a", b"b", b"c", None)


@define(eq=False)
class One:
    """A connection."""

    network: bytes | None = None
    is_pending: bool = False
    is_sending: bool = False


def quick_connections() -> Connections[One]:
    """Return connections to which everything happens in order, within a moment."""
    moments = count()
    return Connections(lambda: next(moments) / 1_000_000)


def test_connections_are_counted_by_network() -> None:
    connections = quick_connections()
    first, second, third = One(b"a"), One(b"b"), One()
    for one in (first, second, third):
        connections.add(one)
    connections.enter(first, IDLE)
    assert set(connections) == {first, second, third}
    assert (len(connections), connections.of(b"a"), connections.of(b"c")) == (3, 1, 0)
    assert connections.to_evict(None) is second
    assert connections.to_evict_within(b"a") is first
    assert connections.to_evict_within(b"c") is None


@pytest.mark.parametrize("state", [IDLE, READING, RESPONDING, PAUSED])
def test_nothing_is_kept_of_a_removed_connection(state: ConnectionState) -> None:
    connections: Connections[One] = Connections(int)
    one = One(b"a")
    connections.add(one)
    connections.enter(one, state)
    for _ in range(2):
        connections.remove(one)
        connections.enter(one, IDLE)
    assert len(connections) == connections.of(b"a") == 0
    assert connections == Connections(int)


def test_connections_may_be_closed_during_iteration() -> None:
    connections = quick_connections()
    for _ in range(3):
        connections.add(One())
    for one in connections:
        connections.remove(one)
    assert len(connections) == 0


def test_a_responding_connection_is_not_evicted() -> None:
    connections = quick_connections()
    ones = [One(b"a") for _ in range(300)]
    for one in ones:
        connections.add(one)
        connections.enter(one, RESPONDING)
    assert connections.to_evict(None) is connections.to_evict_within(b"a") is None
    assert (len(connections), connections.of(b"a")) == (300, 300)
    idle = One(b"a")
    connections.add(idle)
    connections.enter(ones[0], IDLE)
    assert connections.to_evict(None) is connections.to_evict_within(b"a") is idle
    connections.remove(idle)
    assert connections.to_evict(None) is connections.to_evict_within(b"a") is ones[0]


@define(eq=False)
class Timed:
    """Connections, by a clock that is set."""

    now: float = 0.0
    connections: Connections[One] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.connections = Connections(lambda: self.now)

    def add(
        self, network: bytes | None, state: ConnectionState = IDLE, number: int = 1
    ) -> list[One]:
        """Add some connections, which are in a state from now on."""
        ones = [One(network) for _ in range(number)]
        for one in ones:
            self.connections.add(one)
            self.connections.enter(one, state)
        return ones

    def evicted(self, *newcomers: bytes | None) -> One | None:
        """Return the one that is evicted, the same for each of these newcomers."""
        (one,) = {self.connections.to_evict(newcomer) for newcomer in newcomers}
        return one


def test_the_slowest_of_the_network_that_reads_most_is_evicted() -> None:
    timed = Timed()
    connections = timed.connections
    (a,) = timed.add(b"a", READING)
    first, second, third = timed.add(b"b", READING, 3)
    (alone,) = timed.add(None, READING)
    timed.now = SLOW_S - 0.01
    # A request may take a moment.
    assert timed.evicted(b"a", b"b", b"c", None) is None
    timed.now = SLOW_S
    assert timed.evicted(b"a", b"b", b"c", None) is first
    # Sending more does not extend its time.
    connections.enter(first, READING)
    assert timed.evicted(b"b", None) is first
    # What is pending waits for us, not for its client.
    first.is_pending = True
    assert timed.evicted(b"b", None) is second
    first.is_pending = False
    connections.enter(first, RESPONDING)
    assert timed.evicted(b"b", None) is second
    connections.remove(second)
    # Of networks with equally many, it is the one that has had them for longest.
    assert timed.evicted(b"a", b"c", None) is a
    assert timed.evicted(b"b") is third
    connections.enter(a, RESPONDING)
    # Without a limit, a connection is its own network.
    connections.enter(third, RESPONDING)
    assert timed.evicted(b"a", None) is alone
    connections.enter(alone, IDLE)
    assert timed.evicted(b"a") is alone


def test_many_new_requests_do_not_protect_slow_ones() -> None:
    timed = Timed()
    (slow,) = timed.add(b"a", READING)
    timed.now = 5.0
    many = timed.add(b"b", READING, 3)
    timed.add(b"c")
    assert timed.evicted(b"a", b"c", None) is slow
    # Only newcomers of that network are kept out.
    assert timed.evicted(b"b") is None
    # Having many pending ones hides none either.
    timed.now = 10.0
    (young,) = timed.add(b"d")
    for one in [*many, *timed.add(b"b", READING, 300)]:
        one.is_pending = True
    assert timed.evicted(None) is not young
    timed.connections.remove(timed.evicted(None))
    timed.now += SLOW_S
    assert timed.evicted(b"a", b"d", None) is slow


def test_a_connection_without_progress_is_evicted_before_a_new_one() -> None:
    timed = Timed()
    connections = timed.connections

    def evicted() -> One | None:
        assert timed.evicted(b"a", b"b", None) is connections.to_evict_within(b"a")
        return timed.evicted(None)

    (slow,) = timed.add(b"a", READING)
    timed.now = 0.25
    (stalled,) = timed.add(b"a", PAUSED)
    timed.now = SLOW_S
    (newest,) = timed.add(b"a")
    assert evicted() is slow
    connections.enter(slow, RESPONDING)
    # A client has a second to receive something; yet the newest has been idle for less.
    assert evicted() is stalled
    connections.enter(slow, READING)
    timed.now = 1.1
    connections.enter(newest, IDLE)
    assert evicted() is slow
    timed.now = 0.25 + MIN_IDLE_S
    assert evicted() is stalled
    # The client has received something, and the next piece is being made.
    connections.enter(stalled, RESPONDING)
    assert evicted() is slow
    connections.enter(slow, RESPONDING)
    assert evicted() is newest
    connections.remove(stalled)
    connections.enter(stalled, PAUSED)
    connections.enter(newest, RESPONDING)
    assert evicted() is None


def test_a_client_that_still_receives_is_not_merely_idle() -> None:
    timed = Timed()
    (reader,) = timed.add(b"a")
    reader.is_sending = True
    timed.now = 0.1
    (slow,) = timed.add(b"b", READING)
    timed.now = 0.2
    (idle,) = timed.add(b"c")
    assert timed.evicted(None) is reader
    timed.now = SLOW_S + 0.15
    assert timed.evicted(None) is slow
    timed.now = MIN_IDLE_S
    assert timed.evicted(None) is reader
    timed.now += 0.2
    assert timed.evicted(None) is idle


def test_a_network_with_more_readers_than_idle_ones_evicts_its_own() -> None:
    timed = Timed()
    connections = timed.connections
    reading = timed.add(b"a", READING, 2)
    (other,) = timed.add(b"c")
    (own,) = timed.add(b"a")
    (stalled,) = timed.add(b"c", PAUSED)
    # It evicts others' as long as more are idle.
    assert timed.evicted(b"a", b"c", None) is other
    connections.enter(own, READING)
    assert timed.evicted(b"a") is None
    assert timed.evicted(b"c", None) is other
    (own,) = timed.add(b"a")
    assert timed.evicted(b"a") is own
    connections.enter(other, RESPONDING)
    for one in (*reading, own):
        connections.enter(one, RESPONDING)
    assert timed.evicted(b"b", None) is stalled
    assert timed.evicted(b"a") is None


@define(eq=False)
class Oracle:
    """The same, by going through all connections."""

    now: float = 0.0
    open: list[One] = field(factory=list)
    idle: dict[One, float] = field(factory=dict)
    paused: dict[One, float] = field(factory=dict)
    reading: dict[One, float] = field(factory=dict)

    def do(self, step: str | ConnectionState, one: One) -> None:
        if one not in self.open and step != "add":
            return
        if step is READING and one in self.reading:
            return
        for those in (self.idle, self.paused, self.reading):
            those.pop(one, None)
        if step == "add":
            self.open += [one] * (one not in self.open)
            self.idle[one] = self.now
        elif step is IDLE:
            self.idle[one] = self.now
        elif step is READING:
            self.reading[one] = self.now
        elif step is PAUSED:
            self.paused[one] = self.now
        elif step == "remove":
            self.open.remove(one)

    def to_evict(self, newcomer: bytes) -> set[One | None]:
        """Return those of which any may be evicted."""
        counts = Counter(one.network for one in self.reading)
        slow = self._slow(NETWORKS)
        most = max(
            (counts[one.network] for one in slow if counts[one.network] > counts[newcomer]),
            default=0,
        )
        slowest: list[One | None] = [
            next(one for one in slow if one.network == network)
            for network in {one.network for one in slow if most and counts[one.network] == most}
        ]
        if not slowest:
            slowest = [next((one for one in slow if one.network == newcomer), None)]
        fresh = {newcomer} if counts[newcomer] > len(self.idle) else NETWORKS
        return {self._first(NETWORKS, one, fresh) for one in slowest}

    def to_evict_within(self, network: bytes) -> One | None:
        return self._first({network}, next(iter(self._slow({network})), None), {network})

    def _slow(self, networks: Networks) -> list[One]:
        return [
            one
            for one, since in self.reading.items()
            if one.network in networks and not one.is_pending and self.now - since >= SLOW_S
        ]

    def _first(self, networks: Networks, slow: One | None, fresh: Networks) -> One | None:
        since = self.idle | self.reading | self.paused
        idle, stalled = self._idle(networks), self._stalled(networks)
        if idle and self.now - since[idle[0]] >= MIN_IDLE_S:
            return idle[0]
        late = [] if slow is None else [slow]
        late += [one for one in stalled if self.now - since[one] >= MIN_IDLE_S]
        if not late:
            late = self._idle(fresh) + self._stalled(fresh)
        return min(late, key=lambda one: since[one], default=None)

    def _idle(self, networks: Networks) -> list[One]:
        few = [one for one in self.idle if one.network in networks][:MAX_EXAMINED]
        return [one for one in few if not one.is_sending][:1]

    def _stalled(self, networks: Networks) -> list[One]:
        paused = [one for one in self.paused if one.network in networks][:1]
        few = [one for one in self.idle if one.network in networks][:MAX_EXAMINED]
        since = self.idle | self.paused
        return sorted(
            paused + [one for one in few if one.is_sending][:1], key=lambda one: since[one]
        )[:1]


STEPS: Final = (IDLE, READING, PAUSED, RESPONDING, "add", "remove", "pend", "send", "time")


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 8))))
def test_eviction_against_an_oracle(steps: list[tuple[str | ConnectionState, int]]) -> None:
    oracle = Oracle()

    def seconds() -> float:
        return oracle.now

    connections: Connections[One] = Connections(seconds)
    ones = [One(network) for network in (b"a", b"a", b"a", b"a", b"b", b"b", b"b", b"c", None)]
    for one in ones[::2]:
        oracle.do("add", one)
        connections.add(one)
    for step, number in steps:
        one = ones[number]
        if step == "pend":
            one.is_pending = not one.is_pending
        elif step == "send":
            one.is_sending = not one.is_sending
        elif step == "time":
            oracle.now += 0.3
        else:
            oracle.do(step, one)
            if isinstance(step, ConnectionState):
                connections.enter(one, step)
            else:
                (connections.add if step == "add" else connections.remove)(one)
        assert set(connections) == set(oracle.open)
        for newcomer in (b"a", b"b", b"c", b"d"):
            assert connections.to_evict(newcomer) in oracle.to_evict(newcomer)
            within = connections.to_evict_within(newcomer)
            assert within is oracle.to_evict_within(newcomer)
    for one in ones:
        connections.remove(one)
    assert connections == Connections(seconds)


@define(eq=False)
class Work:
    """A connection with a number of pending requests."""

    scheduler: "TurnScheduler[Work]"
    left: int = 1
    sender_network: bytes | None = None
    done: int = 0
    then: Callable[[], object] = int

    def run_turn(self) -> None:
        self.left -= 1
        self.done += 1
        if self.left:
            self.scheduler.add(self)
        self.then()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def scheduler(clock: Clock) -> TurnScheduler[Work]:
    return TurnScheduler(clock.callLater)


def test_a_turn_is_bounded_and_connections_alternate(
    clock: Clock, scheduler: TurnScheduler[Work]
) -> None:
    works = [Work(scheduler, 3) for _ in range(REQUESTS_PER_TURN + 1)]
    for work in works:
        scheduler.add(work)
        scheduler.add(work)
    assert len(clock.getDelayedCalls()) == 1
    scheduler.run()
    assert [work.done for work in works] == [1] * REQUESTS_PER_TURN + [0]
    scheduler.run()
    assert [work.done for work in works] == [2] * (REQUESTS_PER_TURN - 1) + [1, 1]
    clock.advance(0)
    assert [work.done for work in works] == [3] * len(works)
    assert clock.getDelayedCalls() == []


def test_networks_alternate_and_so_do_the_connections_of_each(
    scheduler: TurnScheduler[Work],
) -> None:
    many = [Work(scheduler, 1, b"a") for _ in range(REQUESTS_PER_TURN * 3)]
    few = [Work(scheduler, 1, b"b"), Work(scheduler, 1, b"b")]
    # Without a network, a connection is its own network.
    single = [Work(scheduler), Work(scheduler)]
    for work in many + few + single:
        scheduler.add(work)
    scheduler.run()
    assert [work.done for work in few + single] == [1] * 4
    assert [work.done for work in many] == [1] * (REQUESTS_PER_TURN - 4) + [0] * (
        len(many) - REQUESTS_PER_TURN + 4
    )
    scheduler.run()
    assert sum(work.done for work in many) == REQUESTS_PER_TURN * 2 - 4


def test_the_network_that_was_served_last_comes_last(scheduler: TurnScheduler[Work]) -> None:
    first, second = (Work(scheduler, REQUESTS_PER_TURN, network) for network in (b"a", b"b"))
    more = [Work(scheduler, REQUESTS_PER_TURN, b"a") for _ in range(REQUESTS_PER_TURN * 2)]
    for work in (first, second, *more):
        scheduler.add(work)
    for turns in (1, 2, 3):
        scheduler.run()
        assert second.done == turns
        assert sum(work.done for work in (first, *more)) == turns * (REQUESTS_PER_TURN - 1)


def test_work_is_done_at_once_up_to_the_bound(clock: Clock, scheduler: TurnScheduler[Work]) -> None:
    for _ in range(2):
        started = [scheduler.try_start() for _ in range(REQUESTS_PER_TURN)]
        assert started == [True] * REQUESTS_PER_TURN
        assert not scheduler.try_start()
        clock.advance(0)
    # Scheduled work counts towards the bound.
    for _ in range(3):
        scheduler.add(Work(scheduler))
    scheduler.run()
    started = [scheduler.try_start() for _ in range(REQUESTS_PER_TURN - 3)]
    assert started == [True] * (REQUESTS_PER_TURN - 3)
    assert not scheduler.try_start()
    clock.advance(0)
    assert scheduler.try_start()
    assert clock.getDelayedCalls() == []


def test_work_of_earlier_turns_takes_at_most_half_of_a_turn(
    clock: Clock, scheduler: TurnScheduler[Work]
) -> None:
    for done in range(1, REQUESTS_PER_TURN):
        assert scheduler.try_start()
        clock.advance(0)
        if done % 5 == 0:
            assert all(scheduler.try_start() for _ in range(REQUESTS_PER_TURN // 2))
            clock.advance(0)


def test_removed_work_is_not_done(clock: Clock, scheduler: TurnScheduler[Work]) -> None:
    removed, kept = Work(scheduler), Work(scheduler)
    for work in (removed, kept):
        scheduler.add(work)
    scheduler.remove(removed)
    scheduler.remove(removed)
    clock.advance(0)
    assert (removed.done, kept.done) == (0, 1)


def test_work_removed_during_its_turn_is_not_done(
    clock: Clock, scheduler: TurnScheduler[Work]
) -> None:
    removed = Work(scheduler, 1, b"a")
    scheduler.add(Work(scheduler, 1, b"b", then=lambda: scheduler.remove(removed)))
    scheduler.add(removed)
    clock.advance(0)
    assert removed.done == 0


def test_an_exception_stops_no_other_work(clock: Clock, scheduler: TurnScheduler[Work]) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    other = Work(scheduler)
    scheduler.add(Work(scheduler, then=fail))
    scheduler.add(other)
    with pytest.raises(ZeroDivisionError):
        clock.advance(0)
    clock.advance(0)
    assert other.done == 1


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
