from collections.abc import Callable, Sequence

import pytest
from support.log_failures import LoggedFailures
from support.received_hits import added
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from medamad.domain.errors import Unavailable
from medamad.domain.hits import Event, Hit, Unload
from medamad.ingest.write_queue import QueueSettings, WriteQueue
from medamad.storage.wal.log import Outcome


class Reactor:
    """Run only calls that were due before the turn, like a reactor; `Clock` would run all."""

    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[Callable[[], object]] = []

    def seconds(self) -> float:
        return self.now

    def callLater(self, delay: float, call: Callable[..., object], *_args: object) -> None:
        assert delay == 0
        self.calls.append(call)

    def turn(self, times: int = 1, *, lasting_s: float = 0) -> None:
        for _ in range(times):
            self.now += lasting_s
            calls, self.calls = self.calls, []
            for call in calls:
                call()


class RecordingStore:
    """Keeps each batch until the test completes it."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.answers: list[Deferred[list[Outcome]]] = []

    def append(self, hits: Sequence[Hit]) -> "Deferred[list[Outcome]]":
        assert hits
        self.batches.append([hit.beacon for hit in hits])
        self.answers.append(Deferred())
        return self.answers[-1]

    def succeed(self, number: int) -> None:
        self.answers[number].callback([Outcome.STORED] * len(self.batches[number]))


@pytest.fixture
def reactor() -> Reactor:
    return Reactor()


@pytest.fixture
def store() -> RecordingStore:
    return RecordingStore()


@pytest.fixture
def queue(reactor: Reactor, store: RecordingStore) -> WriteQueue:
    return WriteQueue(
        store.append, reactor, QueueSettings(interval_s=1, max_records=3, max_waiting=5)
    )


def hit(name: str) -> Unload:
    return Unload(time_ms=1, beacon=name, duration_ms=1)


def results(deferreds: "Sequence[Deferred[Outcome]]") -> list[object]:
    got: list[object] = []
    for deferred in deferreds:
        deferred.addBoth(got.append)
    return got


def test_a_lone_hit_is_written_after_a_turn_without_hits(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    got = results([added(queue, hit("a"))])
    reactor.turn()
    assert store.batches == []
    reactor.turn()
    assert (store.batches, got) == ([["a"]], [])
    store.succeed(0)
    assert got == [Outcome.STORED]


def test_hits_of_several_turns_share_a_batch_up_to_its_size(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    for name in "abcd":
        added(queue, hit(name))
        reactor.turn()
    assert store.batches == [["a", "b", "c"]]
    assert len(queue) == 4
    store.succeed(0)
    assert len(queue) == 1


def test_a_batch_is_written_after_the_interval(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    queue.settings = QueueSettings(interval_s=1, max_records=100)
    for name in "abc":
        assert store.batches == []
        added(queue, hit(name))
        reactor.turn(lasting_s=0.4)
    assert store.batches == [["a", "b", "c"]]


def test_hits_gather_while_a_batch_is_written(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    first = results([added(queue, hit("a"))])
    reactor.turn(2)
    second = results([added(queue, hit("b")), added(queue, hit("c"))])
    reactor.turn(5)
    assert store.batches == [["a"]]
    store.succeed(0)
    assert (first, second) == ([Outcome.STORED], [])
    reactor.turn(2)
    assert store.batches == [["a"], ["b", "c"]]
    store.succeed(1)
    assert second == [Outcome.STORED, Outcome.STORED]


def test_a_failed_batch_fails_exactly_its_callers(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    failing = results([added(queue, hit("a")), added(queue, hit("b"))])
    reactor.turn(2)
    passing = results([added(queue, hit("c"))])
    store.answers[0].errback(Unavailable("full", retry_after=1))
    reactor.turn(2)
    store.succeed(1)
    assert [failure.type for failure in failing] == [Unavailable, Unavailable]
    assert passing == [Outcome.STORED]


def test_a_full_queue_rejects_hits(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    added(queue, hit("written"))
    reactor.turn(2)
    waiting = results([added(queue, hit(str(number))) for number in range(5)])
    (refused,) = results([added(queue, hit("refused"))])
    assert isinstance(refused, Failure)
    assert refused.check(Unavailable)
    assert refused.value.retry_after == 1
    assert "too many hits wait" in str(refused.value)
    for number in range(3):
        store.succeed(number)
        reactor.turn(3)
    assert waiting == [Outcome.STORED] * 5
    assert store.batches == [["written"], ["0", "1", "2"], ["3", "4"]]


def test_a_large_hit_takes_several_places(queue: WriteQueue) -> None:
    sizes = [1_023, 3_072, 0]
    (short, long, late) = (added(queue, hit(str(size)), size, size) for size in sizes)
    assert_refused(long)
    assert [short.called, late.called] == [False, False]
    assert len(queue) == 2


def test_an_empty_queue_accepts_a_hit_of_any_size(queue: WriteQueue) -> None:
    queue.settings = QueueSettings(max_waiting=2)
    longest = added(queue, hit("longest"), "a", 16_384)
    assert (longest.called, queue.places) == (False, 2)


def test_full_queue_drops_the_heaviest_sender(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    queue.settings = QueueSettings(max_records=1, max_waiting=6)
    many = [added(queue, hit(name), "many") for name in "abcd"]
    few = [added(queue, hit(name), "few") for name in "xy"]
    other = added(queue, hit("o"), "other")
    assert_refused(many[3])
    # The heaviest sender cannot displace others.
    assert_refused(added(queue, hit("e"), "many"))
    for number in range(6):
        reactor.turn(2)
        store.succeed(number)
    assert results([*many[:3], *few, other]) == [Outcome.STORED] * 6
    assert sorted(name for batch in store.batches for name in batch) == [*"abc", "o", *"xy"]


def test_a_large_hit_displaces_several_of_the_heaviest_sender(queue: WriteQueue) -> None:
    queue.settings = QueueSettings(max_waiting=20)
    many = [added(queue, hit(str(number)), "many") for number in range(20)]
    long = added(queue, hit("long"), "other", 3 * 1_024)
    for late in many[16:]:
        assert_refused(late)
    assert [one.called for one in (*many[:16], long)] == [False] * 17


def test_a_cancelled_hit_can_be_displaced(queue: WriteQueue) -> None:
    waiting = [added(queue, hit(name)) for name in "abcde"]
    gone = results(waiting[4:])
    waiting[4].cancel()
    added(queue, hit("f"), "other")
    assert len(gone) == 1
    assert [one.called for one in waiting[:4]] == [False] * 4


def assert_refused(stored: "Deferred[Outcome]") -> None:
    (refused,) = results([stored])
    assert isinstance(refused, Failure)
    assert refused.check(Unavailable)


def event(name: str, properties: int) -> Event:
    values = tuple((f"name{number}", "value") for number in range(properties))
    return Event(website=1, time_ms=1, beacon=name, properties=values)


def test_properties_count_towards_the_batch_size(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    queue.settings = QueueSettings(max_records=6)
    for name in "abcde":
        added(queue, event(name, 2))
    for number in range(3):
        reactor.turn(2)
        store.succeed(number)
    # A single hit always fits.
    added(queue, event("f", 20))
    added(queue, event("g", 1))
    for number in (3, 4):
        reactor.turn(2)
        store.succeed(number)
    assert store.batches == [["a", "b"], ["c", "d"], ["e"], ["f"], ["g"]]
    assert len(queue) == 0


def test_batches_grow_with_the_backlog(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    queue.settings = QueueSettings(max_records=2)
    for number in range(40):
        added(queue, hit(str(number)))
    for number in range(3):
        reactor.turn(2)
        store.succeed(number)
    # An eighth of the backlog.
    assert [len(batch) for batch in store.batches] == [5, 4, 3]


@pytest.mark.parametrize(("properties", "most_hits"), [(99, 50), (0, 1_000)])
def test_a_backlog_does_not_delay_other_senders(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor, properties: int, most_hits: int
) -> None:
    queue.settings = QueueSettings()
    for number in range(9_000):
        added(queue, event(str(number), properties))
    reactor.turn(2)
    assert len(store.batches[0]) == most_hits


def test_senders_are_served_in_turn_when_the_batch_is_full(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    queue.settings = QueueSettings(max_records=4)
    for name in "abcdefg":
        added(queue, hit(name), "one")
    added(queue, hit("x"), "other")
    added(queue, hit("y"), "other")
    added(queue, hit("z"))
    for number in range(3):
        reactor.turn(2)
        store.succeed(number)
    # Within a batch, hits keep their order of arrival.
    assert store.batches == [["a", "b", "x", "z"], ["c", "d", "e", "y"], ["f", "g"]]


def test_a_stream_of_new_senders_starves_nobody(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    queue.settings = QueueSettings(max_records=4)
    for name in "abcdef":
        added(queue, hit(name), "one")
    for number in range(4):
        for other in range(4):
            added(queue, hit(f"{number} {other}"), (number, other))
        reactor.turn(2)
        store.succeed(number)
    assert {"a", "b", "c", "d", "e", "f"} <= {name for batch in store.batches for name in batch}
    # It is still their turn.
    assert store.batches[0] == ["a", "b", "0 0", "0 1"]
    for number in range(4, 6):
        reactor.turn(2)
        store.succeed(number)
    assert sorted(name for batch in store.batches for name in batch) == sorted(
        [*"abcdef", *(f"{number} {other}" for number in range(4) for other in range(4))]
    )
    assert len(queue) == 0


def test_drained_fires_when_every_hit_is_answered(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    assert results([queue.drained()]) == [None]
    got = results([added(queue, hit("a"))])
    drained = results([queue.drained()])
    reactor.turn(2)
    assert drained == []
    store.succeed(0)
    assert (got, drained) == ([Outcome.STORED], [None])


def test_drained_fires_when_waiting_hits_were_dropped(queue: WriteQueue, reactor: Reactor) -> None:
    refused = [added(queue, hit("a"))]
    drained = results([queue.drained()])
    queue.settings = QueueSettings(max_waiting=0)
    refused.append(added(queue, hit("b")))
    reactor.turn()
    assert drained == [None]
    for one in refused:
        assert_refused(one)


def test_a_hit_whose_outcome_cannot_be_delivered_does_not_delay_the_others(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor, logged_failures: LoggedFailures
) -> None:
    def gone(outcome: object) -> None:
        raise ConnectionError(outcome)

    queue.add(hit("a"), gone)
    got = results([added(queue, hit("b"))])
    reactor.turn(2)
    store.succeed(0)
    assert got == [Outcome.STORED]
    assert len(logged_failures.take(ConnectionError)) == 1


def test_giving_up_fails_waiting_hits_but_not_those_being_written(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    written = results([added(queue, hit(name)) for name in "abc"])
    reactor.turn(2)
    waiting = results([added(queue, hit(name), name) for name in "defg"])
    drained = results([queue.drained()])
    queue.give_up(Unavailable("it stands still", retry_after=10))
    assert [str(failure.value) for failure in waiting] == ["it stands still"] * 4
    assert (written, drained, len(queue)) == ([], [], 3)
    # New hits are rejected at once.
    (late,) = results([added(queue, hit("h"))])
    assert (str(late.value), late.value.retry_after) == ("it stands still", 10)
    store.succeed(0)
    assert (written, drained) == ([Outcome.STORED] * 3, [None])
    later = results([added(queue, hit("i"))])
    reactor.turn(2)
    store.succeed(1)
    assert (later, len(queue)) == ([Outcome.STORED], 0)
    assert store.batches == [["a", "b", "c"], ["i"]]


def test_settings_take_effect_while_it_runs(
    queue: WriteQueue, store: RecordingStore, reactor: Reactor
) -> None:
    queue.settings = QueueSettings(max_records=1)
    for name in "ab":
        added(queue, hit(name))
    reactor.turn(2)
    assert store.batches == [["a"]]
