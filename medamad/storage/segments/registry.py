"""The hits of all websites: read at start, extended after each commit, shown to questions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Final, TypeVar

import numpy as np
from attrs import define, evolve, field
from twisted.logger import Logger

from medamad.storage.dictionary.decode import Texts, keep_within
from medamad.storage.environment.access import Leases, Writing, asking
from medamad.storage.environment.environment import Environment, Txn
from medamad.storage.environment.writer import Transaction
from medamad.storage.errors import Damaged, DamagedBlock
from medamad.storage.segments.corrections import Corrected, Correction, read_corrections
from medamad.storage.segments.format import VISITOR, Block, Head, decode_head, head_key, number_of
from medamad.storage.segments.partition import Published, Shelf
from medamad.storage.segments.pinned import Held
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.visitors import DAY_MS, LastDay, newest_ms, visitor_times
from medamad.storage.wal.journal import Batch
from medamad.storage.wal.memtable import Tail
from medamad.storage.wal.records import (
    Kind,
    Record,
    Rows,
    journal_place,
    read_watermark,
    rows_by_kind,
    sound_rows,
)

T = TypeVar("T")

_log: Final = Logger()


@define(eq=False)
class Shelves:
    """A shelf for each website. Changed by the writer thread; `ask` and its like are for any."""

    _environment: Environment
    _chunk_views: int
    leases: Leases
    _shelves: dict[int, Shelf] = field(factory=dict)
    _published: dict[int, Published] = field(factory=dict)
    _visitors: dict[int, LastDay] = field(factory=dict)
    _told: set[str] = field(factory=set)
    greatest_sequence: int = 0
    """The greatest sequence number that was found in use at the start."""

    # For any thread

    def ask(self, website: int, question: Callable[[Snapshot], T]) -> T:
        """Put a question to the present state of a website.

        A block that turns out to be damaged is named in the log and left out of the answer.
        """
        with self.leases.lease(website):
            return self._held(website).ask(question)

    def hold(self, website: int) -> Held:
        """Hold the present state of a website, for several questions, until it is closed."""
        holding = ExitStack()
        holding.enter_context(self.leases.lease(website))
        return evolve(self._held(website), close=holding.close)

    def _held(self, website: int) -> Held:
        environment = self._environment
        return Held(
            published=self._published.get(website),
            databases=environment.databases,
            reading=lambda: asking(environment),
            damaged=self._tell,
        )

    def visitors_last_day(self, website: int, now_ms: int) -> int:
        """Count the visitors of the last 24 hours."""
        counted = self._last_day(website).count(now_ms)
        if counted is not None:
            return counted
        times_ms = self.ask(website, lambda found: visitor_times(found, now_ms - DAY_MS))
        return int(np.count_nonzero(times_ms <= now_ms))

    def knows_visitors(self, website: int, now_ms: int) -> bool:
        """Tell whether memory has the visitors of the last 24 hours."""
        return self._last_day(website).knows(now_ms)

    def all(self) -> list[Shelf]:
        """Give every shelf."""
        return list(self._shelves.values())

    def find(self, website: int) -> Shelf | None:
        """Give the shelf of a website, None where there is none."""
        return self._shelves.get(website)

    def of(self, website: int) -> Shelf:
        """Give the shelf of a website, making it where there is none."""
        shelf = self._shelves.get(website)
        if shelf is None:
            made = Shelf(
                website=website,
                tail=Tail(self._chunk_views),
                texts=Texts(self._environment, website),
                databases=self._environment.databases,
            )
            # Another thread may have made it meanwhile.
            shelf = self._shelves.setdefault(website, made)
        return shelf

    def let_go_of_texts(self, bound: int) -> None:
        """Let go of the texts that nobody has asked for lately, while all take more bytes."""
        keep_within(bound, [shelf.texts for shelf in self.all()])

    # In the writer thread

    def duration_ms(self, website: int, view: int) -> int:
        """Give how long a view that is not sealed was seen, as far as is known, else 0."""
        shelf = self._shelves.get(website)
        return 0 if shelf is None else shelf.tail.duration_ms(view)

    def is_sealed(self, website: int, sequence: int) -> bool:
        """Tell whether a block has the view or event with that number."""
        shelf = self._shelves.get(website)
        return shelf is not None and sequence <= shelf.watermark

    def correction(self, website: int, kind: Corrected, sequence: int) -> int:
        """Give what is known to be corrected of a sealed hit, 0 for nothing."""
        return self._shelves[website].correction(kind, sequence)

    def extend(self, batch: Batch) -> None:
        """Take in what has been committed."""
        for website, records in batch.records.items():
            rows = rows_by_kind(records)
            if self.find(website) is None:
                # There was no hit before: from the first on, visitors are counted in memory.
                self._last_day(website).fill((), 0)
            shelf = self.of(website)
            shelf.tail.extend(rows)
            self._last_day(website).add(_visitor_times(rows))
            if website not in batch.corrections:
                self.publish(shelf)
        for website, known in batch.corrections.items():
            shelf = self.of(website)
            with self._environment.reading() as txn:
                shelf.correct(
                    [Correction(kind, sequence, ms) for (kind, sequence), ms in known.items()],
                    Writing(txn),
                )
            self.publish(shelf)

    def publish(self, shelf: Shelf) -> None:
        """Let questions see a shelf as it is now, if it is not deleted."""
        if not shelf.is_deleted:
            self._published[shelf.website] = shelf.publish()

    def forget(self, websites: Iterable[int]) -> None:
        """Drop websites that were deleted."""
        for website in websites:
            self._published.pop(website, None)
            self._visitors.pop(website, None)
            shelf = self._shelves.pop(website, None)
            if shelf is not None:
                shelf.delete()

    def count_visitors(self, shelf: Shelf, _txn: Transaction, *, now_ms: int | None = None) -> None:
        """Begin to count the visitors of the last 24 hours in memory, if it is not deleted.

        Where it is not said what time it is, it is that of the latest view.
        """
        if shelf.is_deleted:
            return

        def latest(snapshot: Snapshot) -> tuple[list[int], int]:
            latest_ms = newest_ms(snapshot.parts) if now_ms is None else now_ms
            return visitor_times(snapshot, latest_ms - DAY_MS).tolist(), latest_ms

        self._last_day(shelf.website).fill(*self.ask(shelf.website, latest))

    # At start

    def load(self, txn: Txn, website: int, records: Iterable[Record]) -> bool:
        """Read blocks, corrections and journal; returns whether there are records to be cleared."""
        shelf = self.of(website)
        heads = self._heads(txn, website)
        shelf.blocks = _tree(website, heads)
        shelf.days = _days(website, heads)
        rows, damaged = sound_rows(records)
        for key in damaged:
            _log.error("a record is damaged and left out: {place}", place=journal_place(key))
        try:
            shelf.watermark = read_watermark(txn, self._environment, website)
        except Damaged as error:
            place = f"website {website}, watermark: {error}"
            _log.error("what the journal holds is taken for unsealed: {place}", place=place)
            shelf.watermark = _before(rows, (*shelf.blocks, *shelf.days))
        self.greatest_sequence = max(
            self.greatest_sequence,
            shelf.watermark,
            *(block.head.last for block in (*shelf.blocks, *shelf.days)),
            *(int(found.keys["sequence"].max()) for found in rows.values()),
        )
        unsealed = {kind: _after(found, shelf.watermark) for kind, found in rows.items()}
        shelf.tail.extend({kind: found for kind, found in unsealed.items() if len(found)})
        known = []
        database = self._environment.databases.corrections
        for correction in read_corrections(txn, database, website):
            if isinstance(correction, str):
                _log.error("a record is damaged and left out: {place}", place=correction)
            else:
                known.append(correction)
        shelf.correct(known, Writing(txn))
        self.publish(shelf)
        return any(len(unsealed[kind]) < len(found) for kind, found in rows.items())

    def _heads(self, txn: Txn, website: int) -> dict[int, Head]:
        heads: dict[int, Head] = {}
        prefix = head_key(website, 0)[:4]
        with txn.cursor(db=self._environment.databases.heads) as cursor:
            found = cursor.set_range(head_key(website, 1))
            while found and cursor.key().startswith(prefix):
                key, value = cursor.item()
                try:
                    heads[number_of(key)] = decode_head(key, value)
                except Damaged as error:
                    place = f"website {website}, block {number_of(key)}, head: {error}"
                    _log.error("a block is damaged and left out: {place}", place=place)
                found = cursor.next()
        return heads

    def _last_day(self, website: int) -> LastDay:
        return self._visitors.setdefault(website, LastDay())

    def _tell(self, error: DamagedBlock) -> None:
        if str(error) not in self._told:
            self._told.add(str(error))
            _log.error("a block is damaged and left out: {place}", place=str(error))


def _tree(website: int, heads: Mapping[int, Head]) -> list[Block]:
    """Give the blocks and groups that no group has."""
    made: dict[int, Block] = {}

    def make(number: int) -> Block | None:
        head = heads.get(number)
        if head is None:
            return None
        if number not in made:
            members = [make(member) for member in head.members]
            whole = [member for member in members if member is not None]
            if len(whole) < len(members):
                return None
            made[number] = Block(website, number, head, tuple(whole))
        return made[number]

    of_views = [number for number, head in heads.items() if head.day is None]
    blocks = [block for number in of_views if (block := make(number)) is not None]
    inner = {member.number for block in blocks for member in block.members}
    outer = [block for block in blocks if block.number not in inner]
    return sorted(outer, key=lambda block: block.head.first)


def _days(website: int, heads: Mapping[int, Head]) -> list[Block]:
    """Give the sums of days."""
    days = [Block(website, number, head) for number, head in heads.items() if head.day is not None]
    return sorted(days, key=lambda block: block.head.first_ms)


def _before(rows: Mapping[Kind, Rows], blocks: Iterable[Block]) -> int:
    """Give the greatest sequence number below all records; without any, that of the blocks."""
    if rows:
        return min(int(found.keys["sequence"].min()) for found in rows.values()) - 1
    return max((block.head.last for block in blocks), default=0)


def _after(rows: Rows, watermark: int) -> Rows:
    counts = rows.keys["sequence"] > watermark
    return rows if counts.all() else Rows(rows.keys[counts], rows.values[counts])


def _visitor_times(rows: Mapping[Kind, Rows]) -> Sequence[int]:
    views = rows.get(Kind.VIEW)
    if views is None:
        return ()
    times: list[int] = views.keys["time_ms"][(views.values["flags"] & VISITOR) != 0].tolist()
    return times
