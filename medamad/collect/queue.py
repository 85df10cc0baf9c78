"""The queue in front of the store: hits that come together are committed together.

A batch is handed over as soon as no further hit comes in a turn of the reactor; while hits keep
coming, after `interval_s` or `max_records`. One batch is written at a time, the next one gathers
meanwhile. Each caller awaits its own hit; a failed batch fails exactly the callers in it.

Where more wait than a batch holds, half of it are the oldest, and of the rest one of each sender is
taken by turns: what one sends at once, each hit with many properties, keeps the others waiting for
no more than a batch or two, and others that keep coming keep nobody waiting for good.
"""

from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable, Sequence
from operator import itemgetter
from typing import Any, Final, Protocol, TypeAlias

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.model.errors import Unavailable
from medamad.model.hits import Hit, Leaving
from medamad.store.journal import Outcome

_RETRY_AFTER_S: Final = 1
_log: Final = Logger()

Append: TypeAlias = Callable[[Sequence[Hit]], Awaitable[list[Outcome]]]


class Turns(Protocol):
    """The part of a reactor that the queue needs: the time, and a call in a later turn."""

    def seconds(self) -> float:
        """Give the time that has passed since any fixed moment."""

    def callLater(self, delay: float, call: Callable[[], object], /) -> Any:
        """Have `call` made after `delay` seconds."""


@frozen(kw_only=True)
class QueueSettings:
    """How batches are made. Replaceable while the queue runs."""

    interval_s: float = 0.010
    """How long a batch gathers at most while hits keep coming."""
    max_records: int = 500
    """How much a batch holds at most: hits, and properties of hits."""
    max_waiting: int = 20_000
    """How many hits may wait in all; beyond, they are refused with Unavailable."""


_Waiting: TypeAlias = tuple[int, Hit, "Deferred[Outcome]"]
"""In the order of the numbers they came."""


@define(eq=False)
class HitQueue:
    """Used in the reactor's thread."""

    _append: Append
    _turns: Turns
    settings: QueueSettings = QueueSettings()
    _waiting: OrderedDict[Hashable, deque[_Waiting]] = field(factory=OrderedDict)
    """By sender; whose turn it is comes first. A plain dict would be gone through from its removed
    entries on, each time longer."""
    _came: deque[tuple[int, Hashable]] = field(factory=deque)
    """In which order, and from whom: those that wait, and some that do no more."""
    _count: int = 0
    """How many wait."""
    _records: int = 0
    """How many records these are."""
    _number: int = 0
    _since: float = 0.0
    _seen: int = 0
    _is_gathering: bool = False
    _is_writing: bool = False
    _drained: list["Deferred[None]"] = field(factory=list)

    def __len__(self) -> int:
        """Give how many hits wait to be handed over."""
        return self._count

    def add(self, hit: Hit, sender: Hashable = None) -> "Deferred[Outcome]":
        """Queue a hit of a sender. Fires with what became of it once it is on disk.

        Fails with Unavailable when too many wait or the store cannot take it.
        """
        if self._count >= self.settings.max_waiting:
            raise Unavailable("too many hits wait to be stored", retry_after=_RETRY_AFTER_S)
        stored: Deferred[Outcome] = Deferred()
        if not self._waiting:
            self._since = self._turns.seconds()
        self._number += 1
        self._waiting.setdefault(sender, deque()).append((self._number, hit, stored))
        self._came.append((self._number, sender))
        self._count += 1
        self._records += _records_of(hit)
        self._gather()
        return stored

    def drained(self) -> "Deferred[None]":
        """Fire once every hit queued so far has been answered."""
        drained: Deferred[None] = Deferred()
        self._drained.append(drained)
        self._tell_drained()
        return drained

    def _gather(self) -> None:
        if not self._is_gathering and not self._is_writing:
            self._is_gathering = True
            self._seen = 0
            self._turns.callLater(0, self._turn)

    def _turn(self) -> None:
        """Wait another turn if hits have come since the last one and there is time and room."""
        count = self._count
        is_growing = count > self._seen
        is_late = self._turns.seconds() - self._since >= self.settings.interval_s
        if is_growing and not is_late and self._records < self.settings.max_records:
            self._seen = count
            self._turns.callLater(0, self._turn)
            return
        self._is_gathering = False
        if count:
            self._is_writing = True
            writing = Deferred.fromCoroutine(self._write(self._next_batch()))
            writing.addErrback(lambda failure: _log.failure("a batch went wrong", failure))

    def _next_batch(self) -> Sequence[_Waiting]:
        """Take a batch off those who wait, in the order in which they came."""
        batch: list[_Waiting] = []
        room = self.settings.max_records
        by_turns = room // 2
        while self._waiting and room > 0:
            batch.append(
                self._take(self._oldest() if room > by_turns else next(iter(self._waiting)))
            )
            room -= _records_of(batch[-1][1])
        if not self._waiting:
            self._came.clear()
        self._count -= len(batch)
        self._records -= self.settings.max_records - room
        batch.sort(key=itemgetter(0))
        return batch

    def _oldest(self) -> Hashable:
        """Tell who sent what has waited longest: the first of theirs, as all of one sender's go."""
        while True:
            number, sender = self._came[0]
            theirs = self._waiting.get(sender)
            if theirs and theirs[0][0] == number:
                return sender
            self._came.popleft()

    def _take(self, sender: Hashable) -> _Waiting:
        """Take the first of a sender, who comes last then."""
        theirs = self._waiting[sender]
        taken = theirs.popleft()
        if theirs:
            self._waiting.move_to_end(sender)
        else:
            del self._waiting[sender]
        return taken

    async def _write(self, batch: Sequence[_Waiting]) -> None:
        outcomes: Sequence[Outcome | Failure]
        try:
            outcomes = await self._append([hit for _, hit, _ in batch])
        except Exception:  # noqa: BLE001 - each caller gets it
            outcomes = [Failure()] * len(batch)
        self._is_writing = False
        if self._waiting:
            self._since = self._turns.seconds()
            self._gather()
        for (_, _, stored), outcome in zip(batch, outcomes, strict=True):
            if stored.called:
                continue  # its caller no longer waits
            if isinstance(outcome, Failure):
                stored.errback(outcome)
            else:
                stored.callback(outcome)
        self._tell_drained()

    def _tell_drained(self) -> None:
        if not self._waiting and not self._is_writing:
            drained, self._drained = self._drained, []
            for one in drained:
                one.callback(None)


def _records_of(hit: Hit) -> int:
    return 1 if isinstance(hit, Leaving) else 1 + len(hit.properties)
