"""A queue in which owners take turns, so that one with many items does not delay the others."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from typing import Any, Final, Generic, TypeVar

from attrs import define, field

T = TypeVar("T", bound=Hashable)

_RANKS: Final = 64


@define
class _Owner(Generic[T]):
    items: OrderedDict[T, None] = field(factory=OrderedDict)
    weight: int = 0


@define
class FairQueue(Generic[T]):
    """Items that wait, by owner. An owner that was served comes last among those that wait.

    Each method except iteration and `pop_all` takes the same time, however many items wait. For
    that the dicts are ordered ones: finding the first entry of a plain one takes longer the more
    were removed.
    """

    weight: int = 0
    """The weight of all items."""
    _items: OrderedDict[T, tuple[Hashable, int]] = field(factory=OrderedDict)
    """Owner and weight of each item, the oldest first."""
    _owners: OrderedDict[Hashable, _Owner[T]] = field(factory=OrderedDict)
    """The next to be served first."""
    _ranks: tuple[OrderedDict[Hashable, None], ...] = field(
        factory=lambda: tuple(OrderedDict() for _ in range(_RANKS))
    )
    """The owners by the number of bits of their weight."""

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[T]:
        """Iterate over the items, the oldest first."""
        return iter(self._items)

    def owners(self) -> Iterator[Any]:
        """Iterate over the owners, the next to be served first."""
        return iter(self._owners)

    def add(self, owner: Hashable, item: T, weight: int = 1) -> None:
        """Add an item, unless it waits already. `weight` is at least 1."""
        if item in self._items:
            return
        self._items[item] = (owner, weight)
        found = self._owners.get(owner)
        if found is None:
            found = self._owners[owner] = _Owner()
        found.items[item] = None
        self._add_weight(owner, found, weight)

    def remove(self, item: T) -> None:
        """Remove an item, if it waits."""
        known = self._items.pop(item, None)
        if known is None:
            return
        owner, weight = known
        found = self._owners[owner]
        del found.items[item]
        self._add_weight(owner, found, -weight)
        if not found.items:
            del self._owners[owner]

    def pop(self) -> T:
        """Take the oldest item of the owner whose turn it is. Raises StopIteration if empty."""
        return self.pop_of(next(iter(self._owners)))

    def pop_of(self, owner: Hashable) -> T:
        """Take the oldest item of an owner that waits, as its turn."""
        self._owners.move_to_end(owner)
        item = next(iter(self._owners[owner].items))
        self.remove(item)
        return item

    def pop_oldest(self) -> T:
        """Take the oldest item, as its owner's turn. Raises StopIteration if empty."""
        owner, _ = self._items[next(iter(self._items))]
        return self.pop_of(owner)

    def pop_all(self) -> list[T]:
        """Take all items, the oldest first."""
        items = list(self._items)
        for rank in self._ranks:
            rank.clear()
        self._owners.clear()
        self._items.clear()
        self.weight = 0
        return items

    def pop_latest(self, owner: Hashable) -> T:
        """Take the latest item of an owner that waits, without a turn."""
        item = next(reversed(self._owners[owner].items))
        self.remove(item)
        return item

    def heaviest(self, preferred: Hashable) -> Hashable:
        """Return the owner of most weight, to a factor of two. Raises StopIteration if empty.

        If several are equal, it is `preferred` if that is one of them; otherwise they take turns.
        """
        rank = next(rank for rank in reversed(self._ranks) if rank)
        if preferred in rank:
            return preferred
        owner = next(iter(rank))
        rank.move_to_end(owner)
        return owner

    def _add_weight(self, owner: Hashable, found: _Owner[T], weight: int) -> None:
        self.weight += weight
        before = found.weight.bit_length()
        found.weight += weight
        after = found.weight.bit_length()
        if before != after:
            if before:
                del self._ranks[before][owner]
            if after:
                self._ranks[after][owner] = None
