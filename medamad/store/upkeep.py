"""What is done with hits that lie: sealed, merged, grouped, corrected, summed, and removed.

All of it happens in the writer thread in short steps, between batches of hits. What a step has
written counts for nothing until a block's head is there; what is written, or left, without one is
on the list of the doomed and goes, at the next start if not before.
"""

import struct
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from medamad.store.blocks import (
    Block,
    OpenBlock,
    OpenGroup,
    encode_head,
    head_key,
    number_of,
    open_one,
    website_of,
)
from medamad.store.corrections import (
    Corrected,
    Correction,
    delete_correction,
    write_correction,
)
from medamad.store.environment import Environment, Txn
from medamad.store.errors import DamagedBlock
from medamad.store.making import Making, Piece
from medamad.store.names import Names
from medamad.store.numbers import read_number, write_number
from medamad.store.parts import Views
from medamad.store.reading import Leases, Writing
from medamad.store.records import KEY_SIZE, journal_key, sequence_of
from medamad.store.retaining import SETTLED_MS, Bound, Parted, parted
from medamad.store.sealing import (
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
from medamad.store.shelf import Shelf
from medamad.store.sums import added_up, open_sums, sums_of, written_sums
from medamad.store.tail import CHUNK_VIEWS, Cut
from medamad.store.unused import remove_unused
from medamad.store.watermark import write_watermark
from medamad.store.writer import Transaction

T = TypeVar("T")

DAY_MS: Final = 86_400_000
LAST_BLOCK: Final = b"last-block"
_log: Final = Logger()
_NUMBER: Final = struct.Struct(">I")
_DOOMED: Final = struct.Struct(">IQI")
_STEP_S: Final = 0.01
_STEP_RECORDS: Final = 2_000
_STEP_BLOCKS: Final = 100


@frozen
class Sizes:
    """How much makes a block and a group. `counted_from` views and events, a block has counters."""

    chunk_views: int = CHUNK_VIEWS
    group_members: int = 16
    counted_from: int = 1_024


class Submit(Protocol):
    """Hands a change to the writer."""

    def __call__(self, change: Callable[[Transaction], T], /) -> "Deferred[T]":
        """Fire with what `change` returns once it is committed."""


@define(eq=False)
class Upkeep:
    """Works at one website at a time. Its steps run in the writer thread."""

    _environment: Environment
    _submit: Submit
    _leases: Leases
    _publish: Callable[[Shelf], None]
    sizes: Sizes = field(factory=Sizes)
    _doomed: list[tuple[int, bytes]] = field(factory=list)
    """Since which moment no new question sees a block, and the key that the doomed go by."""
    _last_number: int = 0
    """The greatest number of a block that was found in use."""

    async def tend(self, shelf: Shelf, now_ms: int, bound: Bound | None = None) -> None:
        """Do all that is due for a website; hits beyond a bound, if there is one, go."""
        while not shelf.is_deleted:
            try:
                making = await self._submit(self._chore(shelf, now_ms, bound))
                if making is None:
                    return
                await self._make(making)
            except DamagedBlock as error:
                shelf.damaged.add(error.number)
                _log.error("a block is damaged and stays as it is: {place}", place=str(error))

    async def _make(self, making: Making) -> None:
        try:
            while not await self._submit(partial(self._write_some, making)):
                pass
            is_shown = await self._submit(partial(self._show, making))
        except BaseException:
            self._give_up(making)
            raise
        if not is_shown:
            self._give_up(making)
        elif making.cut is not None:
            await self.clear_journal(making.shelf, making.cut.latest_ms)

    def _give_up(self, making: Making) -> None:
        self._doomed += [(self._leases.now(), piece.key) for piece in making.pieces]

    async def add(self, shelf: Shelf, content: Content) -> None:
        """Put hits that never were in the journal into a block, with the last if that is small."""

        def begin(txn: Transaction) -> Making:
            small = self._small(shelf, content.weight, least_gain=0, batch=content.batch)
            writing = Writing(txn.lmdb)
            held = content_of(self._opened(shelf, small, writing)) if small else None
            whole = content if held is None else joined([held, content])
            return self._make_of(txn, shelf, writing, whole, old=small)

        await self._make(await self._submit(begin))

    async def remove_batch(self, shelf: Shelf, batch: int) -> None:
        """Remove the blocks of a batch, which no question sees any more."""
        while not shelf.is_deleted and await self._submit(partial(self._drop_some, shelf, batch)):
            pass
        await self.remove_doomed()

    async def clear_journal(self, shelf: Shelf, latest_ms: int | None = None) -> None:
        """Remove the records that a block has, of which none is later than that, if it is known."""
        place: bytes | None = _NUMBER.pack(shelf.website)
        end = _NUMBER.pack(shelf.website + 1)
        if latest_ms is not None:
            end = journal_key(shelf.website, latest_ms + 1, 0)
        while place is not None and not shelf.is_deleted:
            place = await self._submit(partial(self._clear_some, shelf, place, end))

    async def remove_unused_names(self, shelf: Shelf, names: Names) -> None:
        """Remove the names that no block, counter or record uses."""
        writing: Writing | None = None
        removal: Iterator[None] = iter(())

        def step(txn: Transaction) -> bool:
            nonlocal writing, removal
            if shelf.is_deleted:
                return True
            if writing is None:
                writing = Writing(txn.lmdb)
                removal = remove_unused(shelf, names, writing)
            writing.txn = txn.lmdb
            return _for_a_while(removal)

        try:
            while not await self._submit(step):
                pass
        except DamagedBlock as error:
            _log.error("names are kept, since a block is damaged: {place}", place=str(error))

    async def remove_doomed(self) -> None:
        """Remove the blocks that no question sees any more."""
        while await self._submit(self._remove_one):
            pass

    def load_doomed(self, txn: Txn) -> None:
        """Note at start what the last run was about to remove, or had not finished writing."""
        databases = self._environment.databases
        with txn.cursor(db=databases.doomed) as cursor:
            for key, _ in cursor:
                website, _, number = _DOOMED.unpack(key)
                self._last_number = max(self._last_number, number)
                if txn.get(head_key(website, number), db=databases.heads) is None:
                    self._doomed.append((0, key))
                else:
                    place = f"website {website}, block {number}"
                    _log.error("a block is in use and not removed: {place}", place=place)
        with txn.cursor(db=databases.heads) as cursor:
            numbers = (number_of(key) for key, _ in cursor)
            self._last_number = max(self._last_number, max(numbers, default=0))

    def is_due(self, shelf: Shelf) -> bool:
        """Tell whether a tail has grown too long. For any thread."""
        return weight(len(shelf.tail), shelf.tail.rows) > 2 * self.sizes.chunk_views

    def room(self, shelf: Shelf) -> int:
        """Give how many views would make the last block a full one. For any thread."""
        last = [block for block in shelf.blocks if not block.head.batch][-1:]
        held = _weight(last[0]) if last and not last[0].members else 0
        return self.sizes.chunk_views - held % self.sizes.chunk_views

    # In the writer thread

    def _chore(
        self, shelf: Shelf, now_ms: int, bound: Bound | None
    ) -> Callable[[Transaction], Making | None]:
        def choose(transaction: Transaction) -> Making | None:
            if shelf.is_deleted:
                return None
            writing = Writing(transaction.lmdb)
            if self.is_due(shelf) or (
                not shelf.tail.is_empty and shelf.tail.oldest_ms < now_ms - DAY_MS
            ):
                return self._begin_sealing(transaction, shelf, writing)
            if bound is not None and (
                making := self._begin_removing(transaction, shelf, writing, bound)
            ):
                return making
            late = shelf.late()
            for block in shelf.leaves():
                if block.number in late and _is_settled(block, now_ms) and _is_sound(shelf, block):
                    return self._begin_block(transaction, shelf, writing, [block])
            if members := self._to_group(shelf, now_ms):
                return self._begin_group(transaction, shelf, writing, members)
            self._forget_idle(transaction, shelf, now_ms)
            return None

        return choose

    def _forget_idle(self, txn: Transaction, shelf: Shelf, now_ms: int) -> None:
        """Remove some of the corrections that turned out to change nothing."""
        settled = [block for block in shelf.leaves() if _is_settled(block, now_ms)]
        idle = shelf.idle_corrections(settled)[:_STEP_RECORDS]
        for correction in idle:
            database = self._environment.databases.corrections
            delete_correction(txn.lmdb, database, shelf.website, correction)
        txn.after_commit(lambda: shelf.forget(idle))

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
            pieces=[self._block_piece(txn, shelf, content)],
            writing=writing,
            replaced=old,
            contained=shelf.corrections_of(content),
            cut=cut,
        )

    def _block_piece(self, txn: Transaction, shelf: Shelf, content: Content) -> Piece:
        counted_from = self.sizes.counted_from
        return self._piece(
            txn,
            shelf,
            first_ms(content),
            lambda key: block_of(content, key, shelf.texts, counted_from=counted_from),
        )

    def _piece(
        self, txn: Transaction, shelf: Shelf, time_ms: int, make: Callable[[bytes], Written]
    ) -> Piece:
        """Give a piece whose keys name a time; on the list of the doomed until it is shown."""
        number = self._number(txn)
        key = _DOOMED.pack(shelf.website, time_ms, number)
        self._doom(txn, key)
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
        pieces, replaced = [], [block]
        if len(gone.rest) or len(gone.rest.events):
            pieces.append(self._block_piece(txn, shelf, gone.rest))
            if gone.is_all:
                # What the bound concerns and nevertheless stays waits for the next one.
                shelf.waiting[pieces[0].number] = bound.before_ms
        for day, content in gone.days if bound.sums else ():
            span = bound.span(day)
            before = self._before(shelf, span, content)
            replaced += before

            def make(
                key: bytes,
                day: int = day,
                content: Content = content,
                span: tuple[int, int] = span,
                before: Sequence[Block] = before,
            ) -> Written:
                databases = self._environment.databases
                known = [open_sums(each, writing, databases).loaded() for each in before]
                sums = sums_of(content, day, span, shelf.texts)
                return written_sums(added_up([*known, sums], shelf.texts), key)

            pieces.append(self._piece(txn, shelf, max(0, span[0]), make))
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
                and _is_settled(block, now_ms)
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

    def _number(self, txn: Transaction) -> int:
        meta = self._environment.databases.meta
        self._last_number = max(self._last_number, read_number(txn.lmdb, meta, LAST_BLOCK)) + 1
        number = self._last_number
        write_number(txn.lmdb, meta, LAST_BLOCK, number)
        return number

    def _doom(self, txn: Transaction, key: bytes) -> None:
        txn.lmdb.put(key, b"", db=self._environment.databases.doomed)

    def _write_some(self, making: Making, txn: Transaction) -> bool:
        """Write for a few milliseconds; returns whether all is written."""
        if making.shelf.is_deleted:
            return True
        making.writing.txn = txn.lmdb
        return _for_a_while(making.steps(self._environment.databases))

    def _show(self, making: Making, txn: Transaction) -> bool:
        """Let what was made be seen, and what it replaces no more, all at once.

        Returns whether it was done.
        """
        shelf, cut = making.shelf, making.cut
        written = making.written()
        if shelf.is_deleted or written is None or making.is_overtaken():
            return False
        databases, website = self._environment.databases, shelf.website
        blocks = []
        for piece, found in written:
            block = Block(website, piece.number, found.head, tuple(making.members))
            key = head_key(website, block.number)
            txn.lmdb.put(key, encode_head(key, block.head), db=databases.heads)
            txn.lmdb.delete(block.key, db=databases.doomed)
            blocks.append(block)
        gone = [*making.replaced, *shelf.groups_of(making.replaced)]
        for old in gone:
            txn.lmdb.delete(head_key(website, old.number), db=databases.heads)
            self._doom(txn, old.key)
        contained = shelf.still(making.contained)
        for correction in contained:
            delete_correction(txn.lmdb, databases.corrections, website, correction)
        later: list[Correction] = []
        if cut is not None:
            later = _since(shelf, cut)
            for correction in later:
                write_correction(txn.lmdb, databases.corrections, website, correction)
            write_watermark(txn.lmdb, self._environment, website, cut.watermark)

        def shown() -> None:
            with self._environment.reading() as reading:
                if making.members:
                    shelf.group(making.members, blocks[0])
                else:
                    shelf.replace(making.replaced, blocks, contained, Writing(reading))
                if cut is not None:
                    shelf.tail.drop(cut)
                    shelf.watermark = cut.watermark
                    shelf.correct(later, Writing(reading))
            self._publish(shelf)
            moment = self._leases.now()
            self._doomed += [(moment, old.key) for old in gone]

        txn.after_commit(shown)
        return True

    def _drop_some(self, shelf: Shelf, batch: int, txn: Transaction) -> bool:
        """Take some blocks of a batch off, the groups first; returns whether there were any."""
        blocks = shelf.of_batch(batch)[:_STEP_BLOCKS]
        for block in blocks:
            key = head_key(shelf.website, block.number)
            txn.lmdb.delete(key, db=self._environment.databases.heads)
            self._doom(txn, block.key)

        def dropped() -> None:
            shelf.drop(blocks)
            self._publish(shelf)
            moment = self._leases.now()
            self._doomed += [(moment, block.key) for block in blocks]

        txn.after_commit(dropped)
        return bool(blocks)

    def _clear_some(self, shelf: Shelf, begin: bytes, end: bytes, txn: Transaction) -> bytes | None:
        """Go through some records from a key on; returns where to go on, None at the end."""
        watermark = shelf.watermark
        with txn.lmdb.cursor(db=self._environment.databases.journal) as cursor:
            cursor.set_range(begin)
            for _ in range(_STEP_RECORDS):
                key = cursor.key()
                if not key or key >= end:
                    return None
                if len(key) == KEY_SIZE and sequence_of(key) > watermark:
                    cursor.next()
                else:
                    cursor.delete()  # it is at the next record then
            return cursor.key() or None

    def _remove_one(self, txn: Transaction) -> bool:
        """Remove one doomed block; returns whether there was one."""
        for moment, key in self._doomed:
            if self._leases.all_ended(moment, website_of(key)):
                databases = self._environment.databases
                # One whose making was given up may be shown nevertheless; then it is not listed.
                if txn.lmdb.delete(key, db=databases.doomed):
                    for database in (databases.blocks, databases.counters):
                        with txn.lmdb.cursor(db=database) as cursor:
                            while cursor.set_range(key) and cursor.key().startswith(key):
                                cursor.delete()
                txn.after_commit(lambda: self._doomed.remove((moment, key)))  # noqa: B023 - it returns
                return True
        return False


def _for_a_while(work: Iterator[None]) -> bool:
    """Go on with some work for a few milliseconds; returns whether all is done."""
    until = time.monotonic() + _STEP_S
    return all(time.monotonic() <= until for _ in work)


def _since(shelf: Shelf, cut: Cut) -> list[Correction]:
    since = shelf.tail.since(cut)
    raised = zip(since.views.tolist(), since.duration_ms.tolist(), strict=True)
    bound = zip(since.events.tolist(), since.views_of_events.tolist(), strict=True)
    return [
        *(Correction(Corrected.DURATION, view, ms) for view, ms in raised),
        *(Correction(Corrected.VIEW, event, view) for event, view in dict(bound).items()),
    ]


def _is_settled(block: Block, now_ms: int) -> bool:
    return block.head.time_bounds[1] < now_ms - SETTLED_MS


def _weight(block: Block) -> int:
    return weight(block.head.views, block.head.own + block.head.loose)


def _is_sound(shelf: Shelf, block: Block) -> bool:
    return block.number not in shelf.damaged


def _level(block: Block) -> int:
    return 1 + _level(block.members[0]) if block.members else 0
