"""The write queue in front of the store: hits that arrive together are committed together.

A batch is handed over as soon as no further hit comes in a turn of the reactor; while hits keep
coming, after `interval_s` or `max_records`. One batch is written at a time, the next one gathers
meanwhile, and is larger where much waits by then. Each caller awaits its own hit; a failed batch
fails exactly the callers in it.

Where more wait than a batch holds, half of it are the oldest, and of the rest one of each sender is
taken by turns: what one sends at once, each hit with many properties, keeps the others waiting for
no more than a batch or two, and others that keep coming keep nobody waiting for good. Where more
wait than may, whoever has most of it gives way.
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
    """A hit that waits."""

    hit: Hit
    sender: Hashable
    records: int
    """How much of a batch it takes."""
    places: int
    """How much it takes of what may wait, at least 1."""
    stored: "Deferred[Outcome]"
    number: int = 0
    """In the order in which they came."""


@define(eq=False)
class _Sent:
    """What waits of one sender."""

    entries: deque[Entry] = field(factory=deque)
    places: int = 0


@define(eq=False)
class Waiting:
    """Hits that wait. Each step takes the same time, however many there are."""

    places: int = 0
    """How much they take in all of what may wait."""
    records: int = 0
    """How much of batches they take in all."""
    _entries: OrderedDict[int, Entry] = field(factory=OrderedDict)
    """By number. Here and below, a plain dict would be gone through from its removed entries on,
    each time longer."""
    _senders: OrderedDict[Hashable, _Sent] = field(factory=OrderedDict)
    """Whose turn it is comes first."""
    _ranks: tuple[OrderedDict[Hashable, None], ...] = field(
        factory=lambda: tuple(OrderedDict() for _ in range(_RANKS))
    )
    """The senders by the bits that the number of their places has."""
    _number: int = 0

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._entries)

    def add(self, entry: Entry) -> None:
        """Let a hit wait."""
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
        """Take what has waited longest."""
        return self._take(next(iter(self._entries.values())).sender)

    def next_in_turn(self) -> Entry:
        """Take the first of the sender whose turn it is."""
        return self._take(next(iter(self._senders)))

    def latest_of_most(self, sender: Hashable) -> Entry:
        """Take the latest of who has most, to a factor of two: of `sender`, if that is one."""
        most = next(rank for rank in reversed(self._ranks) if rank)
        if sender not in most:
            sender = next(iter(most))
            most.move_to_end(sender)
        sent = self._senders[sender]
        return self._taken(sent.entries.pop(), sent)

    def _take(self, sender: Hashable) -> Entry:
        """Take the first of a sender, who comes last then."""
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
        """Count places of a sender, who gets into another rank by that, or in or out of them."""
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
"""In memory it is four to twenty times as much: the request, what was read of it, and the hit."""
_SHARE: Final = 8
_MOST_RECORDS: Final = 5_000
_MOST_HITS: Final = 1_000
"""Where more waits, a batch holds this part of it, or so much: the slower the disk is to sync, the
more there has to be in each batch. To write so much takes some 12 ms besides, and 3 MiB of the
store."""
_log: Final = Logger()

Append: TypeAlias = Callable[[Sequence[Hit]], Awaitable[list[Outcome]]]


class Turns(Protocol):
    """The part of a reactor that the queue needs: the time, and a call in a later turn."""

    def seconds(self) -> float:
        """Return the time that has passed since any fixed moment."""

    def callLater(self, delay: float, call: Callable[[], object], /) -> Any:
        """Have `call` made after `delay` seconds."""


@frozen(kw_only=True)
class QueueSettings:
    """How batches are made. Replaceable while the queue runs."""

    interval_s: float = 0.010
    """How long a batch gathers at most while hits keep coming."""
    max_records: int = 500
    """How much a batch holds at most, unless much waits: hits, and properties of hits."""
    max_waiting: int = 20_000
    """How many hits may wait in all; one counts once more for each 1,024 bytes it was sent in.

    Beyond, the latest of whoever has most that wait are refused with Unavailable.
    """


@define(eq=False)
class WriteQueue:
    """Used in the reactor's thread."""

    _append: Append
    _turns: Turns
    settings: QueueSettings = QueueSettings()
    _waiting: Waiting = field(factory=Waiting)
    _since: float = 0.0
    _seen: int = 0
    _is_gathering: bool = False
    _batch: Sequence[Entry] = ()
    """What is being written."""
    _refusal: Unavailable | None = None
    """Why nothing is taken before that has been."""
    _drained: list["Deferred[None]"] = field(factory=list)

    def __len__(self) -> int:
        """Return how many hits wait to be stored."""
        return len(self._waiting) + len(self._batch)

    @property
    def places(self) -> int:
        """How many places are taken of what may wait."""
        return self._waiting.places

    def add(self, hit: Hit, sender: Hashable = None, sent_bytes: int = 0) -> "Deferred[Outcome]":
        """Queue a hit of a sender. Fires with what became of it once it is on disk.

        Fails with Unavailable when too many wait or the store cannot take it.
        """
        if self._refusal is not None:
            return fail(Unavailable(str(self._refusal), retry_after=self._refusal.retry_after))
        stored: Deferred[Outcome] = Deferred()
        waiting = self._waiting
        if not waiting:
            self._since = self._turns.seconds()
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
        self._tell_drained()
        return drained

    def give_up(self, refusal: Unavailable) -> None:
        """Fail all that wait, and what comes before those being written are, which may be yet."""
        self._refusal = refusal if self._batch else None
        given_up: list[Entry] = []
        while self._waiting:
            given_up += self._next_batch()
        _tell(given_up, [Failure(refusal)] * len(given_up))
        self._tell_drained()

    def _gather(self) -> None:
        if not self._is_gathering and not self._batch:
            self._is_gathering = True
            self._seen = 0
            self._turns.callLater(0, self._turn)

    def _turn(self) -> None:
        """Wait another turn if hits have come since the last one and there is time and room."""
        count = len(self._waiting)
        is_growing = count > self._seen
        is_late = self._turns.seconds() - self._since >= self.settings.interval_s
        if is_growing and not is_late and self._waiting.records < self.settings.max_records:
            self._seen = count
            self._turns.callLater(0, self._turn)
            return
        self._is_gathering = False
        if count:
            self._batch = self._next_batch()
            writing = Deferred.fromCoroutine(self._write(self._batch))
            writing.addErrback(lambda failure: _log.failure("a batch went wrong", failure))
        else:
            self._tell_drained()  # what waited has given way

    def _next_batch(self) -> Sequence[Entry]:
        """Take a batch off those who wait, in the order in which they came."""
        waiting = self._waiting
        batch: list[Entry] = []
        room = max(self.settings.max_records, min(waiting.records // _SHARE, _MOST_RECORDS))
        by_turns = room // 2
        most_hits = max(self.settings.max_records, _MOST_HITS)
        while waiting and room > 0 and len(batch) < most_hits:
            batch.append(waiting.oldest() if room > by_turns else waiting.next_in_turn())
            room -= batch[-1].records
        batch.sort(key=attrgetter("number"))
        return batch

    async def _write(self, batch: Sequence[Entry]) -> None:
        outcomes: Sequence[Outcome | Failure]
        try:
            outcomes = await self._append([entry.hit for entry in batch])
        except Exception:  # noqa: BLE001 - each caller gets it
            outcomes = [Failure()] * len(batch)
        self._batch, self._refusal = (), None
        if self._waiting:
            self._since = self._turns.seconds()
            self._gather()
        _tell(batch, outcomes)
        self._tell_drained()

    def _tell_drained(self) -> None:
        if not self._waiting and not self._batch:
            drained, self._drained = self._drained, []
            for one in drained:
                one.callback(None)


def _tell(batch: Sequence[Entry], outcomes: Sequence[Outcome | Failure]) -> None:
    """Tell each caller that still waits what became of its hit."""
    for entry, outcome in zip(batch, outcomes, strict=True):
        if entry.stored.called:
            continue
        if isinstance(outcome, Failure):
            entry.stored.errback(outcome)
        else:
            entry.stored.callback(outcome)


def _records_of(hit: Hit) -> int:
    return 1 if isinstance(hit, Leaving) else 1 + len(hit.properties)
