"""What is due for a website, one job at a time: what to flush, merge, compact or delete."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

from attrs import define, field, frozen

from medamad.storage.compaction.purge import Doomed
from medamad.storage.compaction.retention import SETTLED_MS, Bound, Parted, parted
from medamad.storage.dictionary.decode import PropertyNames
from medamad.storage.environment.access import Writing
from medamad.storage.environment.environment import Databases, Environment
from medamad.storage.environment.writer import Transaction
from medamad.storage.import_content import CodedDay
from medamad.storage.segments.build import (
    Content,
    Written,
    block_of,
    content_of,
    first_ms,
    group_head,
    group_puts,
    joined,
    weight,
)
from medamad.storage.segments.corrections import Correction
from medamad.storage.segments.format import Block
from medamad.storage.segments.partition import Shelf
from medamad.storage.segments.read import OpenBlock, OpenGroup, open_one
from medamad.storage.segments.rollup import OpenSums, added_up, open_sums, sums_of, written_sums
from medamad.storage.segments.snapshot import Views
from medamad.storage.wal.memtable import CHUNK_VIEWS, Cut


@define(eq=False)
class Piece:
    """A block, a group, or the sums of a day."""

    number: int
    key: bytes
    """What its keys begin with."""
    make: Callable[[], Written]
    looking_up: Iterator[None] = field(factory=lambda: iter(()))
    """Finds out beforehand, bit by bit, what `make` needs to know."""
    written: Written | None = None


@define(eq=False)
class Making:
    """Pieces that are shown together, once all are written."""

    shelf: Shelf
    pieces: Sequence[Piece]
    writing: Writing
    members: Sequence[Block] = ()
    """Of the one piece that is a group."""
    replaced: Sequence[Block] = ()
    contained: Sequence[Correction] = ()
    """The corrections that the pieces have."""
    cut: Cut | None = None
    gone: Content | None = None
    """The hits of which sums remain at most: nothing may be corrected of them any more."""

    def steps(self, databases: Databases) -> Iterator[None]:
        """Write bit by bit, in whatever transaction `writing` is at; goes on where it stopped."""
        for piece in self.pieces:
            if piece.written is None:
                # By `yield from`, to be left here would end it.
                for _ in piece.looking_up:
                    yield
                piece.written = piece.make()
                yield
            for is_counters, kind, value in piece.written.puts:
                database = databases.counters if is_counters else databases.blocks
                self.writing.txn.put(piece.key + bytes((kind,)), value, db=database)
                yield

    def written(self) -> list[tuple[Piece, Written]] | None:
        """Give what each piece has become; None as long as one has not."""
        written = [(piece, piece.written) for piece in self.pieces if piece.written is not None]
        return written if len(written) == len(self.pieces) else None

    def is_overtaken(self) -> bool:
        """Tell whether more has become known of hits that go, which their sums do not have."""
        if self.gone is None:
            return False
        return not set(self.shelf.corrections_of(self.gone)) <= set(self.contained)


DAY_MS: Final = 86_400_000
_LEAVINGS_OF_A_VIEW: Final = 2


@frozen
class Sizes:
    """How much makes a block and a group. `counted_from` views and events, a block has counters."""

    chunk_views: int = CHUNK_VIEWS
    group_members: int = 16
    counted_from: int = 1_024


@define(eq=False)
class Planning:
    """Used in the writer thread, but for what says otherwise."""

    _environment: Environment
    _doomed: Doomed
    sizes: Sizes = field(factory=Sizes)

    def is_due(self, shelf: Shelf) -> bool:
        """Tell whether a tail has grown too long. For any thread.

        Leavings of sealed views take no more room, however often pages are left.
        """
        tail = shelf.tail
        held = max(weight(len(tail), tail.rows), tail.leavings // _LEAVINGS_OF_A_VIEW)
        return held > 2 * self.sizes.chunk_views

    def room(self, shelf: Shelf) -> int:
        """Give how many views would make the last block a full one. For any thread."""
        last = [block for block in shelf.blocks if not block.head.batch][-1:]
        held = _weight(last[0]) if last and not last[0].members else 0
        return self.sizes.chunk_views - held % self.sizes.chunk_views

    def next(
        self, txn: Transaction, shelf: Shelf, now_ms: int, bound: Bound | None
    ) -> Making | None:
        """Begin with what is due first; None when nothing is."""
        writing = Writing(txn.lmdb)
        if self.is_due(shelf) or (
            not shelf.tail.is_empty and shelf.tail.oldest_ms < now_ms - DAY_MS
        ):
            return self._begin_sealing(txn, shelf, writing)
        if bound is not None and (making := self._begin_removing(txn, shelf, writing, bound)):
            return making
        late = shelf.late()
        for block in shelf.leaves():
            if block.number in late and is_settled(block, now_ms) and _is_sound(shelf, block):
                return self._begin_block(txn, shelf, writing, [block])
        if members := self._to_group(shelf, now_ms):
            return self._begin_group(txn, shelf, writing, members)
        return None

    def addition(self, txn: Transaction, shelf: Shelf, content: Content) -> Making:
        """Begin with hits that never were in the journal, and the last block if that is small."""
        small = self._small(shelf, content.weight, least_gain=0, batch=content.batch)
        writing = Writing(txn.lmdb)
        held = content_of(self._opened(shelf, small, writing)) if small else None
        whole = content if held is None else joined([held, content])
        return self._make_of(txn, shelf, writing, whole, old=small)

    def addition_of_days(self, txn: Transaction, shelf: Shelf, days: Sequence[CodedDay]) -> Making:
        """Begin with days whose views never were here."""

        def make(day: CodedDay, key: bytes) -> Written:
            return written_sums(day.sums(), key)

        pieces = [self._piece(txn, shelf, max(0, day.span[0]), partial(make, day)) for day in days]
        return Making(shelf, pieces, Writing(txn.lmdb))

    def _begin_sealing(self, txn: Transaction, shelf: Shelf, writing: Writing) -> Making:
        """Seal the oldest chunk; a tail shorter than one whole, together with small blocks."""
        everything = len(shelf.tail) < self.sizes.chunk_views
        cut = shelf.tail.cut(everything=everything)
        small = self._small(shelf, weight(sum(map(len, cut.chunks)), len(cut.events)))
        return self._begin_block(txn, shelf, writing, small, cut)

    def _small(
        self, shelf: Shelf, added: int, least_gain: float = 0.5, batch: int = 0
    ) -> list[Block]:
        """Give the last blocks of a batch, or of none, that are to be merged with what weighs so.

        Blocks that are much larger are left alone: what is added has to be `least_gain` of them.
        """
        small: list[Block] = []
        for block in reversed([each for each in shelf.blocks if each.head.batch == batch]):
            size = _weight(block)
            is_small = least_gain * size <= added <= self.sizes.chunk_views - size
            if block.members or not is_small or not _is_sound(shelf, block):
                break
            small.append(block)
            added += size
        return small

    def _opened(self, shelf: Shelf, blocks: Sequence[Block], writing: Writing) -> list[Views]:
        late, databases = shelf.late(), self._environment.databases
        parts = [open_one(each, late.get(each.number), writing, databases) for each in blocks]
        return [part for part in parts if isinstance(part, OpenBlock)]

    def _begin_block(
        self,
        txn: Transaction,
        shelf: Shelf,
        writing: Writing,
        old: Sequence[Block],
        cut: Cut | None = None,
    ) -> Making:
        parts = [*self._opened(shelf, old, writing), *(cut.chunks if cut else ())]
        content = content_of(parts, [cut.events] if cut else ())
        return self._make_of(txn, shelf, writing, content, old=old, cut=cut)

    def _make_of(
        self,
        txn: Transaction,
        shelf: Shelf,
        writing: Writing,
        content: Content,
        *,
        old: Sequence[Block] = (),
        cut: Cut | None = None,
    ) -> Making:
        return Making(
            shelf=shelf,
            pieces=[self._block_piece(txn, shelf, content, self._names(shelf, writing))],
            writing=writing,
            replaced=old,
            contained=shelf.corrections_of(content),
            cut=cut,
        )

    def _names(self, shelf: Shelf, writing: Writing) -> PropertyNames:
        return PropertyNames(writing, self._environment.databases, shelf.website)

    def _block_piece(
        self, txn: Transaction, shelf: Shelf, content: Content, names: PropertyNames
    ) -> Piece:
        make = partial(block_of, content, names_of=names, counted_from=self.sizes.counted_from)
        piece = self._piece(txn, shelf, first_ms(content), make)
        piece.looking_up = names.look_up([content.events.property])
        return piece

    def _piece(
        self, txn: Transaction, shelf: Shelf, time_ms: int, make: Callable[[bytes], Written]
    ) -> Piece:
        """Give a piece whose keys name a time; on the list of the doomed until it is shown."""
        number, key = self._doomed.begin(txn, shelf.website, time_ms)
        return Piece(number, key, lambda: make(key))

    def _begin_removing(
        self, txn: Transaction, shelf: Shelf, writing: Writing, bound: Bound
    ) -> Making | None:
        """Begin with a block that has hits beyond a bound, the earliest first."""
        if not bound.sums:
            days = [block for block in shelf.days if bound.concerns(block)]
            if days:
                return Making(shelf, (), writing, replaced=days)
        due = [
            block
            for block in shelf.leaves()
            if bound.concerns(block)
            and _is_sound(shelf, block)
            and shelf.waiting.get(block.number) != bound.before_ms
        ]
        for block in sorted(due, key=lambda block: block.head.first):
            content = content_of(self._opened(shelf, [block], writing))
            gone = parted(content, bound, shelf.may_stay(block, bound.before_ms))
            if gone.days:
                making = self._begin_parting(txn, shelf, writing, block, gone, bound)
                making.contained = shelf.corrections_of(content)
                return making
            shelf.waiting[block.number] = bound.before_ms
        return None

    def _begin_parting(  # noqa: PLR0917 - all of it is needed once
        self,
        txn: Transaction,
        shelf: Shelf,
        writing: Writing,
        block: Block,
        gone: Parted,
        bound: Bound,
    ) -> Making:
        pieces, replaced, names = [], [block], self._names(shelf, writing)
        if len(gone.rest) or len(gone.rest.events):
            pieces.append(self._block_piece(txn, shelf, gone.rest, names))
            if gone.is_all:
                # What the bound concerns and nevertheless stays waits for the next one.
                shelf.waiting[pieces[0].number] = bound.before_ms
        for day, content in gone.days if bound.sums else ():
            span = bound.span(day)
            before = self._before(shelf, span, content)
            replaced += before
            known = [open_sums(each, writing, self._environment.databases) for each in before]

            def make(
                key: bytes,
                day: int = day,
                content: Content = content,
                span: tuple[int, int] = span,
                known: Sequence[OpenSums] = known,
            ) -> Written:
                sums = sums_of(content, day, span, names)
                return written_sums(
                    added_up([*(each.loaded() for each in known), sums], names), key
                )

            piece = self._piece(txn, shelf, max(0, span[0]), make)
            piece.looking_up = names.look_up(
                chain([content.events.property], (each.event_sums().codes for each in known))
            )
            pieces.append(piece)
        return Making(
            shelf=shelf,
            pieces=pieces,
            writing=writing,
            replaced=replaced,
            gone=gone.gone,
        )

    def _before(self, shelf: Shelf, span: tuple[int, int], content: Content) -> list[Block]:
        """Give the sums of the same day that further ones are to be added to, unless too large."""
        before, views = [], len(content)
        for block in shelf.days:
            head = block.head
            is_same = head.day is not None and (head.day.span, head.batch) == (span, content.batch)
            if is_same and _is_sound(shelf, block) and views + head.views <= self.sizes.chunk_views:
                before.append(block)
                views += head.views
        return before

    def _to_group(self, shelf: Shelf, now_ms: int) -> list[Block]:
        levels: dict[tuple[int, int], list[Block]] = {}
        late = shelf.late()
        for block in shelf.blocks:
            if not _is_sound(shelf, block):
                continue
            if block.members or (
                block.head.has_counters
                and 2 * block.head.views >= self.sizes.chunk_views
                and block.number not in late
                and is_settled(block, now_ms)
            ):
                level = levels.setdefault((block.head.batch, _level(block)), [])
                level.append(block)
                if len(level) == self.sizes.group_members:
                    return level
        return []

    def _begin_group(
        self, txn: Transaction, shelf: Shelf, writing: Writing, members: Sequence[Block]
    ) -> Making:
        head = group_head([(member.number, member.head) for member in members])
        databases = self._environment.databases

        def open_member(member: Block) -> OpenBlock | OpenGroup:
            part = open_one(member, None, writing, databases)
            assert isinstance(part, OpenBlock | OpenGroup)  # noqa: S101 - no chunk is a member
            return part

        def make(key: bytes) -> Written:
            return Written(head, group_puts([open_member(each) for each in members], head, key))

        piece = self._piece(txn, shelf, head.first_ms, make)
        return Making(shelf, [piece], writing, members)


def is_settled(block: Block, now_ms: int) -> bool:
    """Tell whether nothing is corrected of a block's hits any more."""
    return block.head.time_bounds[1] < now_ms - SETTLED_MS


def _weight(block: Block) -> int:
    return weight(block.head.views, block.head.own + block.head.loose)


def _is_sound(shelf: Shelf, block: Block) -> bool:
    return block.number not in shelf.damaged


def _level(block: Block) -> int:
    return 1 + _level(block.members[0]) if block.members else 0
