"""The write queue in front of the store: hits that arrive together are committed together.

A batch is written as soon as an iteration of the reactor brings no further hit; while hits keep
arriving, after `interval_s` or `max_records`. One batch is written at a time; the next one gathers
meanwhile, and is larger if much is waiting. Each caller awaits its own hit; a failed batch fails
exactly the callers in it.

If more hits are waiting than fit in a batch, half of the batch are the oldest, and the rest is taken
from each sender in turn: a burst of one sender delays the others by a batch or two, and no steady
stream delays a hit forever. If the queue is full, the sender with most in it loses its latest hit.
"""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from operator import attrgetter
from typing import Any, Final, Protocol, TypeAlias

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, fail
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.domain.errors import Unavailable
from medamad.domain.hits import Hit, Leaving
from medamad.storage.wal.journal import Outcome

_RANKS: Final = 64


@define(eq=False)
class Entry:
    """A hit in the queue."""

    hit: Hit
    sender: Hashable
    records: int
    """Its size in a batch."""
    places: int
    """Its size in the queue, at least 1."""
    stored: "Deferred[Outcome]"
    number: int = 0
    """Its number in order of arrival."""


@define(eq=False)
class _Sent:
    """The hits of one sender."""

    entries: deque[Entry] = field(factory=deque)
    places: int = 0


@define(eq=False)
class Waiting:
    """The hits in the queue. Every operation takes constant time."""

    places: int = 0
    """Their size in the queue."""
    records: int = 0
    """Their size in batches."""
    _entries: OrderedDict[int, Entry] = field(factory=OrderedDict)
    """By number. Ordered dicts, since a plain dict would step over all its removed entries to find the
    first one."""
    _senders: OrderedDict[Hashable, _Sent] = field(factory=OrderedDict)
    """The sender whose turn it is comes first."""
    _ranks: tuple[OrderedDict[Hashable, None], ...] = field(
        factory=lambda: tuple(OrderedDict() for _ in range(_RANKS))
    )
    """The senders by the bit length of their places."""
    _number: int = 0

    def __len__(self) -> int:
        """Return the number of hits."""
        return len(self._entries)

    def add(self, entry: Entry) -> None:
        """Add a hit."""
        self._number += 1
        entry.number = self._number
        self._entries[entry.number] = entry
        sent = self._senders.get(entry.sender)
        if sent is None:
            sent = self._senders[entry.sender] = _Sent()
        sent.entries.append(entry)
        self.records += entry.records
        self._count(entry.sender, sent, entry.places)

    def oldest(self) -> Entry:
        """Remove and return the oldest hit."""
        return self._take(next(iter(self._entries.values())).sender)

    def next_in_turn(self) -> Entry:
        """Remove and return the first hit of the sender whose turn it is."""
        return self._take(next(iter(self._senders)))

    def latest_of_most(self, sender: Hashable) -> Entry:
        """Remove and return the latest hit of a sender with most, to a factor of two.

        It is one of `sender`, if that is such a sender.
        """
        most = next(rank for rank in reversed(self._ranks) if rank)
        if sender not in most:
            sender = next(iter(most))
            most.move_to_end(sender)
        sent = self._senders[sender]
        return self._taken(sent.entries.pop(), sent)

    def _take(self, sender: Hashable) -> Entry:
        """Remove and return the first hit of a sender, who then goes to the end of the line."""
        sent = self._senders[sender]
        self._senders.move_to_end(sender)
        return self._taken(sent.entries.popleft(), sent)

    def _taken(self, entry: Entry, sent: _Sent) -> Entry:
        del self._entries[entry.number]
        self.records -= entry.records
        self._count(entry.sender, sent, -entry.places)
        if not sent.entries:
            del self._senders[entry.sender]
        return entry

    def _count(self, sender: Hashable, sent: _Sent, places: int) -> None:
        """Add places to a sender, and move it to its rank."""
        self.places += places
        before = sent.places.bit_length()
        sent.places += places
        after = sent.places.bit_length()
        if before != after:
            if before:
                del self._ranks[before][sender]
            if after:
                self._ranks[after][sender] = None


_RETRY_AFTER_S: Final = 1
_PLACE_BYTES: Final = 1_024
"""The request size that makes a place. In memory, the request, the decoded payload and the hit take
four to twenty times as much."""
_SHARE: Final = 8
_MOST_RECORDS: Final = 5_000
_MOST_HITS: Final = 1_000
"""If more is waiting, a batch holds this share of it, up to these limits: the slower the disk syncs,
the larger the batches have to be. The largest takes another 12 ms to write, and 3 MiB."""
_log: Final = Logger()

Append: TypeAlias = Callable[[Sequence[Hit]], Awaitable[list[Outcome]]]


class Reactor(Protocol):
    """The part of a reactor that the queue needs."""

    def seconds(self) -> float:
        """Return the seconds since any fixed moment."""

    def callLater(self, delay: float, call: Callable[[], object], /) -> Any:
        """Call `call` after `delay` seconds."""


@frozen(kw_only=True)
class QueueSettings:
    """The sizes of batches and of the queue. May be replaced while the queue runs."""

    interval_s: float = 0.010
    """The longest time that a batch gathers while hits keep arriving."""
    max_records: int = 500
    """The usual limit of a batch: its hits and their properties."""
    max_waiting: int = 20_000
    """The size of the queue: each hit counts 1, and 1 for each 1,024 bytes of its request.

    Beyond it, the latest hits of the sender with most in the queue fail with Unavailable.
    """


@define(eq=False)
class WriteQueue:
    """Collects hits into batches and writes them. Used in the reactor's thread."""

    _append: Append
    _reactor: Reactor
    settings: QueueSettings = QueueSettings()
    _waiting: Waiting = field(factory=Waiting)
    _since: float = 0.0
    _seen: int = 0
    _is_gathering: bool = False
    _batch: Sequence[Entry] = ()
    """The batch that is being written."""
    _error: Unavailable | None = None
    """Why no hit is accepted until that batch is written."""
    _drained: list["Deferred[None]"] = field(factory=list)

    def __len__(self) -> int:
        """Return the number of hits that are not stored yet."""
        return len(self._waiting) + len(self._batch)

    @property
    def places(self) -> int:
        """The places taken in the queue."""
        return self._waiting.places

    def add(self, hit: Hit, sender: Hashable = None, sent_bytes: int = 0) -> "Deferred[Outcome]":
        """Queue a hit of a sender. Fires with its outcome once it is on disk.

        Fails with Unavailable if the queue is full or the store cannot write.
        """
        if self._error is not None:
            return fail(Unavailable(str(self._error), retry_after=self._error.retry_after))
        stored: Deferred[Outcome] = Deferred()
        waiting = self._waiting
        if not waiting:
            self._since = self._reactor.seconds()
        places = 1 + min(sent_bytes // _PLACE_BYTES, max(self.settings.max_waiting - 1, 0))
        waiting.add(Entry(hit, sender, _records_of(hit), places, stored))
        self._gather()
        while waiting.places > self.settings.max_waiting:
            late = waiting.latest_of_most(sender)
            if not late.stored.called:
                late.stored.errback(
                    Unavailable("too many hits wait to be stored", retry_after=_RETRY_AFTER_S)
                )
        return stored

    def drained(self) -> "Deferred[None]":
        """Fire once every hit queued so far has been answered."""
        drained: Deferred[None] = Deferred()
        self._drained.append(drained)
        self._fire_drained()
        return drained

    def give_up(self, error: Unavailable) -> None:
        """Fail all waiting hits, and new ones until the current batch is written."""
        self._error = error if self._batch else None
        given_up: list[Entry] = []
        while self._waiting:
            given_up += self._next_batch()
        _deliver(given_up, [Failure(error)] * len(given_up))
        self._fire_drained()

    def _gather(self) -> None:
        if not self._is_gathering and not self._batch:
            self._is_gathering = True
            self._seen = 0
            self._reactor.callLater(0, self._check)

    def _check(self) -> None:
        """Write a batch, unless hits keep arriving and there is still time and room."""
        count = len(self._waiting)
        is_growing = count > self._seen
        is_late = self._reactor.seconds() - self._since >= self.settings.interval_s
        if is_growing and not is_late and self._waiting.records < self.settings.max_records:
            self._seen = count
            self._reactor.callLater(0, self._check)
            return
        self._is_gathering = False
        if count:
            self._batch = self._next_batch()
            writing = Deferred.fromCoroutine(self._write(self._batch))
            writing.addErrback(lambda failure: _log.failure("a batch of hits failed", failure))
        else:
            self._fire_drained()  # the waiting hits were dropped

    def _next_batch(self) -> Sequence[Entry]:
        """Remove and return a batch, in order of arrival."""
        waiting = self._waiting
        batch: list[Entry] = []
        room = max(self.settings.max_records, min(waiting.records // _SHARE, _MOST_RECORDS))
        in_turn = room // 2
        most_hits = max(self.settings.max_records, _MOST_HITS)
        while waiting and room > 0 and len(batch) < most_hits:
            batch.append(waiting.oldest() if room > in_turn else waiting.next_in_turn())
            room -= batch[-1].records
        batch.sort(key=attrgetter("number"))
        return batch

    async def _write(self, batch: Sequence[Entry]) -> None:
        outcomes: Sequence[Outcome | Failure]
        try:
            outcomes = await self._append([entry.hit for entry in batch])
        except Exception:  # noqa: BLE001 - delivered to each caller
            outcomes = [Failure()] * len(batch)
        self._batch, self._error = (), None
        if self._waiting:
            self._since = self._reactor.seconds()
            self._gather()
        _deliver(batch, outcomes)
        self._fire_drained()

    def _fire_drained(self) -> None:
        if not self._waiting and not self._batch:
            drained, self._drained = self._drained, []
            for one in drained:
                one.callback(None)


def _deliver(batch: Sequence[Entry], outcomes: Sequence[Outcome | Failure]) -> None:
    """Deliver the outcome of each hit to the callers that are still waiting."""
    for entry, outcome in zip(batch, outcomes, strict=True):
        if entry.stored.called:
            continue
        if isinstance(outcome, Failure):
            entry.stored.errback(outcome)
        else:
            entry.stored.callback(outcome)


def _records_of(hit: Hit) -> int:
    return 1 if isinstance(hit, Leaving) else 1 + len(hit.properties)
