"""All hits of one website as the writer has them: the tail, the blocks, what was corrected since.

The writer thread alone changes a shelf. What questions see is `Published`, replaced as a whole.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray
from twisted.logger import Logger

from medamad.storage.dictionary.decode import Texts as WebsiteTexts
from medamad.storage.environment.access import Reading
from medamad.storage.environment.environment import Databases
from medamad.storage.errors import Damaged
from medamad.storage.segments.build import Content
from medamad.storage.segments.corrections import Corrected, Correction, Late, Lates, Values, late_of
from medamad.storage.segments.format import Block
from medamad.storage.segments.read import OpenBlock, open_one, opened
from medamad.storage.segments.rollup import open_sums
from medamad.storage.segments.snapshot import Events, Part, Snapshot, Sums, Texts, Views
from medamad.storage.wal.memtable import Tail

_NO_LATES: Final[Lates] = {}
_Known: TypeAlias = Mapping[Corrected, Values]


@frozen(eq=False)
class Published:
    """The state of a website between two changes."""

    blocks: tuple[Block, ...]
    late: Lates
    chunks: tuple[Views, ...]
    events: tuple[Events, ...]
    texts: Texts
    memo: MutableMapping[Any, Any]
    days: tuple[Block, ...] = ()

    def snapshot(
        self, reading: Reading, databases: Databases, without: frozenset[int] = frozenset()
    ) -> Snapshot:
        """Give what a question sees, but for some blocks; groups among them are taken apart."""
        return Snapshot(
            parts=_Parts(self, reading, databases, without),
            events=self.events,
            texts=self.texts,
            memo=self.memo,
            days=_Days(self, reading, databases, without),
        )


@frozen(eq=False)
class _Parts:
    """The parts of a snapshot, opened as they are gone through."""

    _published: Published
    _reading: Reading
    _databases: Databases
    _without: frozenset[int]

    def __iter__(self) -> Iterator[Part]:
        published = self._published
        blocks: Iterable[Block] = published.blocks
        if self._without:
            blocks = _apart(blocks, self._without)
            blocks = (block for block in blocks if block.number not in self._without)
        yield from opened(blocks, published.late, self._reading, self._databases)
        yield from published.chunks


@frozen(eq=False)
class _Days:
    """The sums of days of a snapshot, opened as they are gone through."""

    _published: Published
    _reading: Reading
    _databases: Databases
    _without: frozenset[int]

    def __iter__(self) -> Iterator[Sums]:
        for block in self._published.days:
            if block.number not in self._without:
                self._reading.renew()
                yield open_sums(block, self._reading, self._databases)


def _apart(blocks: Iterable[Block], numbers: frozenset[int]) -> Iterator[Block]:
    """Take the groups apart that are, or contain, one of some blocks."""
    for block in blocks:
        if block.members and (
            block.number in numbers or any(each.number in numbers for each in _all(block))
        ):
            yield from _apart(block.members, numbers)
        else:
            yield block


def _all(block: Block) -> Iterator[Block]:
    yield block
    for member in block.members:
        yield from _all(member)


@define(eq=False)
class Shelf:
    """The hits of one website."""

    website: int
    tail: Tail
    texts: WebsiteTexts
    databases: Databases
    blocks: list[Block] = field(factory=list)
    """Blocks and groups that no group has, in the order of their first sequence numbers."""
    days: list[Block] = field(factory=list)
    """The sums of days, in the order of these."""
    waiting: dict[int, int] = field(factory=dict)
    """By number, the blocks of which all has gone that can: up to which time."""
    watermark: int = 0
    """No record of the journal up to this sequence number counts: a block has it."""
    memo: MutableMapping[Any, Any] = field(factory=dict)
    is_deleted: bool = False
    damaged: set[int] = field(factory=set)
    """The blocks and groups that cannot be rewritten."""
    _corrections: dict[Corrected, Values] = field(
        factory=lambda: {kind: Values() for kind in Corrected}
    )
    _late: Lates = field(default=_NO_LATES)
    _shown: tuple[Block, ...] | None = None
    _hidden: frozenset[int] = frozenset()
    """The batches that no question sees."""
    _told: set[str] = field(factory=set)
    _log = Logger()

    def publish(self) -> Published:
        """Give the present state as a value that never changes."""
        if self._shown is None:
            shown = _apart(self.blocks, frozenset(self._late))
            self._shown = tuple(each for each in shown if each.head.batch not in self._hidden)
        chunks, events = self.tail.publish()
        days = tuple(each for each in self.days if each.head.batch not in self._hidden)
        return Published(self._shown, self._late, chunks, events, self.texts, self.memo, days)

    def delete(self) -> None:
        """Note that the website is deleted."""
        self.is_deleted = self.texts.is_deleted = True

    def leaves(self) -> list[Block]:
        """Give all blocks, those of groups too."""
        return [leaf for block in self.blocks for leaf in block.blocks()]

    def correction(self, kind: Corrected, sequence: int) -> int:
        """Give what is known to be corrected of a sealed hit, 0 for nothing."""
        return self._corrections[kind].get(sequence)

    def still(self, corrections: Iterable[Correction]) -> list[Correction]:
        """Give those of some corrections to which nothing has been added since."""
        return [
            correction
            for correction in corrections
            if self.correction(correction.kind, correction.sequence) == correction.value
        ]

    def correct(self, corrections: Iterable[Correction], reading: Reading) -> None:
        """Lay corrections over the blocks that have their hits."""
        known = {kind: Values() for kind in Corrected}
        for kind, sequence, value in corrections:
            self._corrections[kind].put(sequence, value)
            known[kind].put(sequence, value)
        if any(values.all() for values in known.values()):
            self._lay(self._having(known), known, reading)

    def replace(
        self,
        old: Sequence[Block],
        new: Sequence[Block],
        contained: Iterable[Correction],
        reading: Reading,
    ) -> None:
        """Put blocks, and sums of days, in the place of others.

        Corrections that they contain are forgotten. Groups that have one of the others are no
        more.
        """
        gone = frozenset(block.number for block in old)
        kept = [block for block in _apart(self.blocks, gone) if block.number not in gone]
        blocks = [block for block in new if block.head.day is None]
        self.blocks = sorted([*kept, *blocks], key=lambda block: block.head.first)
        days = [block for block in self.days if block.number not in gone]
        days += [block for block in new if block.head.day is not None]
        self.days = sorted(days, key=lambda block: block.head.first_ms)
        for number in gone:
            self.waiting.pop(number, None)
        self.forget(contained)
        self._late = {number: late for number, late in self._late.items() if number not in gone}
        self._lay(blocks, self._corrections, reading)

    def group(self, members: Sequence[Block], group: Block) -> None:
        """Put a group in the place of its members."""
        numbers = {member.number for member in members}
        kept = [block for block in self.blocks if block.number not in numbers]
        self.blocks = sorted([*kept, group], key=lambda block: block.head.first)
        self._shown = None

    def corrections_of(self, content: Content) -> list[Correction]:
        """Give what is corrected of the hits of a block's content."""
        having = {Corrected.DURATION: content.sequence, Corrected.VIEW: content.events.event}
        found = []
        for kind, values in self._corrections.items():
            sequences = np.array(values.all(), np.uint64)
            there = sequences[np.isin(sequences, having[kind])]
            found += [Correction(kind, number, values.get(number)) for number in there.tolist()]
        return found

    def idle_corrections(self, settled: Iterable[Block]) -> list[Correction]:
        """Give the corrections of blocks, to which none is added any more, that change nothing.

        Blocks may reach over each other: what another one may be concerned by is left out. Those
        that concern no block are of hits of which sums remain, at most.
        """
        idle = {block.number for block in settled} - self._late.keys() - self.damaged
        leaves = self.leaves()
        others = [_reach(block) for block in leaves if block.number not in idle]
        found = (
            Correction(kind, sequence, value)
            for block in leaves
            if block.number in idle
            for kind, values in self._corrections.items()
            for sequence, value in values.within(*_reach(block))
            if not any(low <= sequence <= high for low, high in others)
        )
        of_none = (
            Correction(kind, sequence, values.get(sequence))
            for kind, values in self._corrections.items()
            for sequence in _outside(values.all(), map(_reach, leaves))
        )
        return list(dict.fromkeys(chain(found, of_none)))

    def may_stay(
        self, block: Block | None, before_ms: int
    ) -> Callable[[NDArray[Any]], NDArray[np.bool_]]:
        """Tell which sequence numbers may be of views not before a time, but for those of a block.

        For all that is known without looking at the views.
        """
        others = [
            leaf.head.sequence_bounds
            for leaf in self.leaves()
            if leaf is not block and leaf.head.time_bounds[1] >= before_ms
        ]

        def tell(views: NDArray[Any]) -> NDArray[np.bool_]:
            found: NDArray[np.bool_] = views > self.watermark
            for low, high in others:
                found |= (views >= low) & (views <= high)
            return found

        return tell

    def forget(self, corrections: Iterable[Correction]) -> None:
        """Drop corrections that change nothing."""
        by_kind: dict[Corrected, list[int]] = {}
        for kind, sequence, _ in corrections:
            by_kind.setdefault(kind, []).append(sequence)
        for kind, sequences in by_kind.items():
            self._corrections[kind].remove(sequences)

    def groups_of(self, blocks: Sequence[Block]) -> list[Block]:
        """Give the groups that have one of some blocks, at whatever level."""
        numbers = {block.number for block in blocks}
        return [
            each
            for block in self.blocks
            for each in _all(block)
            if each.members and any(leaf.number in numbers for leaf in each.blocks())
        ]

    def of_batch(self, batch: int) -> list[Block]:
        """Give the blocks, groups and sums of a batch, the groups before their members."""
        found = [*self.days, *(each for block in self.blocks for each in _all(block))]
        return [each for each in found if each.head.batch == batch]

    def hide(self, batch: int) -> None:
        """Show nothing of a batch from the next publishing on."""
        self._hidden |= {batch}
        self._shown = None

    def reveal(self, batch: int) -> None:
        """Show a batch from the next publishing on."""
        self._hidden -= {batch}
        self._shown = None

    def drop(self, blocks: Iterable[Block]) -> None:
        """Forget blocks, and groups of which no member is left behind that is to stay whole."""
        gone = frozenset(block.number for block in blocks)
        self.blocks = [each for each in _apart(self.blocks, gone) if each.number not in gone]
        self.days = [each for each in self.days if each.number not in gone]
        self._late = {number: late for number, late in self._late.items() if number not in gone}
        self._shown = None

    def late(self) -> Lates:
        """Give what is laid over which blocks."""
        return self._late

    def _having(self, known: _Known) -> list[Block]:
        """Give the blocks that may have one of some hits."""
        sequences = chain.from_iterable(values.all() for values in known.values())
        wanted = np.sort(np.array([*sequences], np.uint64))
        leaves = self.leaves()
        reach = np.array([_reach(block) for block in leaves], np.uint64).reshape(-1, 2)
        begins = np.searchsorted(wanted, reach[:, 0])
        ends = np.searchsorted(wanted, reach[:, 1], side="right")
        return [leaves[place] for place in np.flatnonzero(begins < ends).tolist()]

    def _lay(self, blocks: Iterable[Block], known: _Known, reading: Reading) -> None:
        """Lay what became known over blocks, beside what they have already, which may be much."""
        late = dict(self._late)
        for block in blocks:
            try:
                found = self._late_of(block, known, reading)
            except Damaged as error:
                self.damaged.add(block.number)
                if str(error) not in self._told:
                    self._told.add(str(error))
                    self._log.error("a block is damaged: {place}", place=str(error))
                continue
            if len(found):
                before = late.get(block.number)
                late[block.number] = found if before is None else before.and_then(found)
        self._late = late
        self._shown = None

    def _late_of(self, block: Block, known: _Known, reading: Reading) -> Late:
        part = open_one(block, None, reading, self.databases)
        assert isinstance(part, OpenBlock)  # noqa: S101 - it has no members
        reach = _reach(block)
        raised, bound = known[Corrected.DURATION], known[Corrected.VIEW]
        return late_of(part, raised.within(*reach), bound.within(*reach))


def _reach(block: Block) -> tuple[int, int]:
    """Give the least and greatest sequence number of what a block may have."""
    return block.head.first, block.head.last


def _outside(ascending: Sequence[int], reaches: Iterable[tuple[int, int]]) -> list[int]:
    """Give the numbers that lie within none of some reaches."""
    numbers = np.array(ascending, np.uint64)
    is_outside = np.ones(len(numbers), np.bool_)
    for low, high in reaches:
        begin, end = np.searchsorted(numbers, np.array((low, high + 1), np.uint64))
        is_outside[begin:end] = False
    outside: list[int] = numbers[is_outside].tolist()
    return outside
