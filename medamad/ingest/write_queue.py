"""The write queue in front of the store: hits that arrive together are committed together.

A batch is written as soon as a reactor turn brings no further hit; while hits keep arriving, after
`interval_s` or `max_records`. One batch is written at a time; the next one collects the hits that
arrive until then, and is larger if many are waiting. The outcome of each hit is delivered to the
function that came with it, the error of a failed batch to those of exactly the hits in it. They are
functions rather than Deferreds, which would take longer than queueing the hit.

If more hits are waiting than fit in a batch, half of the batch are the oldest, and the rest is
taken from each network in turn: a burst from one network delays the others by a batch or two, and
no steady stream delays a hit forever. If the queue is full, the network with most in it loses its
latest hit.
"""

from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from itertools import count
from operator import attrgetter
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.domain.fair_queue import FairQueue
from medamad.domain.hits import Hit, Unload
from medamad.storage.wal.log import Outcome

Stored: TypeAlias = Callable[[Outcome | Exception], object]
"""Called once with the outcome of a hit, or with why it is not stored. Returns soon."""


class _Entry(msgspec.Struct, frozen=True, eq=False):
    """A hit in the queue."""

    hit: Hit
    number: int
    """Its number in order of arrival."""
    records: int
    """Its size in a batch."""
    stored: Stored


_RETRY_AFTER_S: Final = 1
_PLACE_BYTES: Final = 1_024
"""The request size that takes a place in the queue. In memory, the request, the decoded payload and
the hit take four to twenty times as much."""
_SHARE: Final = 8
_MOST_RECORDS: Final = 5_000
_MOST_HITS: Final = 1_000
"""If many hits are waiting, a batch holds this share of them, up to these limits: the slower the
disk syncs, the larger the batches have to be. The largest takes another 12 ms and 3 MiB."""
_log: Final = Logger()

Append: TypeAlias = Callable[[Sequence[Hit]], Awaitable[list[Outcome]]]


class Reactor(Protocol):
    """The part of a reactor that the queue and a site need."""

    def seconds(self) -> float:
        """Return the seconds since a fixed moment."""

    def callLater(self, delay: float, call: Callable[..., object], /, *args: object) -> Any:
        """Call `call` after `delay` seconds."""


@frozen(kw_only=True)
class QueueSettings:
    """The sizes of batches and of the queue. May be replaced while the queue runs."""

    interval_s: float = 0.010
    """The longest time that a batch collects hits while they keep arriving."""
    max_records: int = 500
    """The usual limit of a batch: its hits and their properties."""
    max_waiting: int = 20_000
    """The size of the queue: each hit counts 1, and 1 for each 1,024 bytes of its request.

    Beyond it, the latest hits of the network with most in the queue fail with Unavailable.
    """


@define(eq=False)
class WriteQueue:
    """Collects hits into batches and writes them. Used in the reactor's thread."""

    _append: Append
    _reactor: Reactor
    settings: QueueSettings = QueueSettings()
    _waiting: FairQueue[_Entry] = field(factory=FairQueue)
    """By network; the weight of a hit is its size in the queue."""
    _records: int = 0
    """The size in batches of all waiting hits."""
    _numbers: Iterator[int] = field(factory=count)
    _since: float = 0.0
    _seen: int = 0
    _is_gathering: bool = False
    _batch: Sequence[_Entry] = ()
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
        return self._waiting.weight

    def add(
        self, hit: Hit, stored: Stored, sender_network: Hashable = None, sent_bytes: int = 0
    ) -> None:
        """Queue a hit. Call `stored` with its outcome once it is on disk.

        Call it with Unavailable if the queue is full or the store cannot write, maybe at once.
        """
        if self._error is not None:
            stored(Unavailable(str(self._error), retry_after=self._error.retry_after))
            return
        waiting = self._waiting
        if not waiting:
            self._since = self._reactor.seconds()
        places = 1 + min(sent_bytes // _PLACE_BYTES, max(self.settings.max_waiting - 1, 0))
        entry = _Entry(hit, next(self._numbers), _records_of(hit), stored)
        waiting.add(sender_network, entry, places)
        self._records += entry.records
        self._gather()
        while waiting.weight > self.settings.max_waiting:
            late = waiting.pop_latest(waiting.heaviest(sender_network))
            self._records -= late.records
            error = Unavailable("too many hits wait to be stored", retry_after=_RETRY_AFTER_S)
            _deliver([late], [error])

    def drained(self) -> "Deferred[None]":
        """Return a Deferred that fires once every hit queued so far has its outcome."""
        drained: Deferred[None] = Deferred()
        self._drained.append(drained)
        self._fire_drained()
        return drained

    def give_up(self, error: Unavailable) -> None:
        """Fail all waiting hits, and new ones until the current batch is written."""
        self._error = error if self._batch else None
        given_up: list[_Entry] = []
        while self._waiting:
            given_up += self._next_batch()
        _deliver(given_up, [error] * len(given_up))
        self._fire_drained()

    def _gather(self) -> None:
        if not self._is_gathering and not self._batch:
            self._is_gathering = True
            self._seen = 0
            self._reactor.callLater(0, self._check)

    def _check(self) -> None:
        """Write a batch, unless hits keep arriving and there is still time and room."""
        waiting = len(self._waiting)
        is_growing = waiting > self._seen
        is_late = self._reactor.seconds() - self._since >= self.settings.interval_s
        if is_growing and not is_late and self._records < self.settings.max_records:
            self._seen = waiting
            self._reactor.callLater(0, self._check)
            return
        self._is_gathering = False
        if waiting:
            self._batch = self._next_batch()
            writing = Deferred.fromCoroutine(self._write(self._batch))
            writing.addErrback(lambda failure: _log.failure("a batch of hits failed", failure))
        else:
            self._fire_drained()  # the waiting hits were dropped

    def _next_batch(self) -> Sequence[_Entry]:
        """Remove and return a batch, in order of arrival."""
        waiting = self._waiting
        batch: list[_Entry] = []
        room = max(self.settings.max_records, min(self._records // _SHARE, _MOST_RECORDS))
        in_turn = room // 2
        most_hits = max(self.settings.max_records, _MOST_HITS)
        if self._records <= room and len(waiting) <= most_hits:
            self._records = 0
            return waiting.pop_all()
        while waiting and room > 0 and len(batch) < most_hits:
            batch.append(waiting.pop_oldest() if room > in_turn else waiting.pop())
            room -= batch[-1].records
        self._records -= sum(entry.records for entry in batch)
        batch.sort(key=attrgetter("number"))
        return batch

    async def _write(self, batch: Sequence[_Entry]) -> None:
        outcomes: Sequence[Outcome | Exception]
        try:
            outcomes = await self._append([entry.hit for entry in batch])
        except Exception as error:  # noqa: BLE001 - delivered with each hit
            outcomes = [error] * len(batch)
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


def _deliver(batch: Sequence[_Entry], outcomes: Sequence[Outcome | Exception]) -> None:
    """Deliver the outcome of each hit."""
    for entry, outcome in zip(batch, outcomes, strict=True):
        try:
            entry.stored(outcome)
        except Exception:  # noqa: BLE001 - the others have to get theirs
            _log.failure("the outcome of a hit was not delivered")


def _records_of(hit: Hit) -> int:
    return 1 if isinstance(hit, Unload) else 1 + len(hit.properties)
