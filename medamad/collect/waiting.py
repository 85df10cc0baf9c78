"""The hits that wait to be stored: which came first, whose turn it is, and who has most of them."""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Final

from attrs import define, field
from twisted.internet.defer import Deferred

from medamad.model.hits import Hit
from medamad.store.journal import Outcome

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
        """Give how many wait."""
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
