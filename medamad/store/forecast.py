"""What is kept of a website, and what of it would go: nothing is changed."""

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import define, field, frozen

from medamad.store.blocks import Block
from medamad.store.environment import Databases, Txn
from medamad.store.errors import DamagedBlock
from medamad.store.opening import OpenBlock, open_one
from medamad.store.parts import NO_TIME
from medamad.store.property_names import PropertyNames
from medamad.store.reading import Writing
from medamad.store.retaining import Bound, parted
from medamad.store.sealing import Content, content_of
from medamad.store.shelf import Shelf
from medamad.store.sums import DaySums, added_up, sums_of, written_sums

_KEY_BYTES: Final = 17


@frozen(kw_only=True)
class Forecast:
    """Views and bytes. Bytes are of what was sealed; of a block of which a part goes, its share."""

    views: int
    bytes: int
    earliest_ms: int | None
    """When the earliest of the views was."""
    days: int
    """Of which there are sums."""
    bytes_of_days: int
    due_views: int
    due_events: int
    due_bytes: int
    new_days: int
    """Of which sums would be made, with the bytes that these take."""
    bytes_of_new_days: int
    due_days: int
    """Of which the sums would go, with their bytes."""
    bytes_of_due_days: int
    damaged: tuple[str, ...]
    """What cannot be read, and stays."""


def forecast(shelf: Shelf, databases: Databases, txn: Txn, bound: Bound | None) -> Forecast:
    """Tell what is kept of a website, and what of it goes by a bound; by what was stored so far."""
    leaves, chunks = shelf.leaves(), shelf.tail.publish()[0]
    sizes = {block.number: _size(block, databases, txn) for block in (*leaves, *shelf.days)}
    reading = Writing(txn)
    due = _Due(shelf, reading, sizes, PropertyNames(reading, databases, shelf.website))
    if bound is not None:
        for block in leaves:
            if bound.concerns(block):
                due.add_block(block, bound)
        if not shelf.tail.is_empty:
            chunks_of, events = shelf.tail.publish()
            due.add(content_of(chunks_of, events), bound, 0)
    gone = [day for day in shelf.days if bound and not bound.sums and bound.concerns(day)]
    earliest_ms = min(
        (
            *(leaf.head.time_bounds[0] for leaf in leaves),
            *(chunk.time_bounds[0] for chunk in chunks),
        ),
        default=NO_TIME[0],
    )
    return Forecast(
        views=sum(leaf.head.views for leaf in leaves) + sum(map(len, chunks)),
        bytes=sum(sizes[leaf.number] for leaf in leaves),
        earliest_ms=None if earliest_ms == NO_TIME[0] else earliest_ms,
        days=_days(shelf.days),
        bytes_of_days=sum(sizes[day.number] for day in shelf.days),
        due_views=due.views,
        due_events=due.events,
        due_bytes=due.bytes,
        new_days=due.new_days,
        bytes_of_new_days=sum(due.new_sums()),
        due_days=_days(gone),
        bytes_of_due_days=sum(sizes[day.number] for day in gone),
        damaged=tuple(due.damaged),
    )


@define(eq=False)
class _Due:
    """What goes, block by block."""

    _shelf: Shelf
    _reading: Writing
    _sizes: dict[int, int]
    _names: PropertyNames
    views: int = 0
    events: int = 0
    bytes: int = 0
    damaged: list[str] = field(factory=list)
    _days: dict[tuple[tuple[int, int], int], DaySums] = field(factory=dict)

    def add_block(self, block: Block, bound: Bound) -> None:
        late = self._shelf.late().get(block.number)
        part = open_one(block, late, self._reading, self._shelf.databases)
        try:
            content = content_of([part] if isinstance(part, OpenBlock) else [])
            self.add(content, bound, self._sizes[block.number], block)
        except DamagedBlock as error:
            self.damaged.append(str(error))

    def add(self, content: Content, bound: Bound, size: int, block: Block | None = None) -> None:
        weight, stays = content.weight, self._shelf.may_stay(block, bound.before_ms)
        is_all = False
        while not is_all:
            parts = parted(content, bound, stays)
            gone, content, is_all = parts.gone, parts.rest, parts.is_all
            self.views += len(gone)
            self.events += len(set(gone.events.event.tolist()))
            self.bytes += size * gone.weight // max(weight, 1)
            if bound.sums:
                for day, of_day in parts.days:
                    self._add_day(day, of_day, bound.span(day))

    def _add_day(self, day: int, content: Content, span: tuple[int, int]) -> None:
        names, key = self._names, (span, content.batch)
        sums = sums_of(content, day, span, names)
        known = self._days.get(key)
        self._days[key] = sums if known is None else added_up([known, sums], names)

    @property
    def new_days(self) -> int:
        """Of how many days sums are made, however many imports have something of them."""
        return len({span for span, _ in self._days})

    def new_sums(self) -> Iterator[int]:
        """Give the bytes that the sums of a day take, of each import by itself."""
        for sums in self._days.values():
            puts = written_sums(sums, b"").puts
            yield sum(_KEY_BYTES + len(value) for _, _, value in puts)


def _days(blocks: Iterable[Block]) -> int:
    return len({block.head.day.number for block in blocks if block.head.day is not None})


def _size(block: Block, databases: Databases, txn: Txn) -> int:
    size, key = 0, block.key
    for database in (databases.blocks, databases.counters):
        with txn.cursor(db=database) as cursor:
            found = cursor.set_range(key)
            while found and cursor.key().startswith(key):
                size += _KEY_BYTES + len(cursor.value())
                found = cursor.next()
    return size
