"""What the background work of a store has done: counted from outside, by what there is of it."""

from collections import Counter

from attrs import define, field

from medamad.storage.segments.format import Block, Head
from medamad.storage.store import Store


@define(eq=False)
class Observed:
    """Looks at a store again and again, and counts what has become of its blocks."""

    counts: Counter[str] = field(factory=Counter)
    _heads: dict[int, dict[int, Head]] = field(factory=dict)
    _days: dict[int, set[int]] = field(factory=dict)

    def look(self, store: Store) -> None:
        """Compare with what was there the last time."""
        for shelf in store._shelves.all():
            heads = {block.number: block.head for top in shelf.blocks for block in _all(top)}
            known = self._heads.get(shelf.website, {})
            self._heads[shelf.website] = heads
            fresh = [head for number, head in heads.items() if number not in known]
            self.counts["blocks"] += sum(not head.members for head in fresh)
            self.counts["groups"] += sum(bool(head.members) for head in fresh)
            gone = [head for number, head in known.items() if number not in heads]
            self.counts["groups taken apart"] += sum(bool(head.members) for head in gone)
            for old in gone:
                if not old.members:
                    self._replaced(old, [head for head in fresh if not head.members])
            days = {block.number for block in shelf.days}
            self.counts["days summed"] += len(days - self._days.get(shelf.website, set()))
            self._days[shelf.website] = days
            late = shelf.late().values()
            self.counts["durations laid over"] += sum(len(found.places) > 0 for found in late)
            self.counts["views laid over"] += sum(len(found.events) > 0 for found in late)

    def forget(self) -> None:
        """Begin with another store."""
        self._heads.clear()
        self._days.clear()

    def _replaced(self, old: Head, fresh: list[Head]) -> None:
        for new in fresh:
            if new.first <= old.first <= old.last <= new.last:
                size = (old.views, old.own + old.loose)
                is_same = (new.views, new.own + new.loose) == size
                self.counts["folds" if is_same else "merges"] += 1


def _all(block: Block) -> list[Block]:
    return [block, *(each for member in block.members for each in _all(member))]
