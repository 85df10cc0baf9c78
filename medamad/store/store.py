"""The store as the rest of the program sees it: reads at once, writes awaited."""

import secrets
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from attrs import define, field
from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.model.accounts import Account, Login
from medamad.model.errors import Unauthorised, Unavailable
from medamad.model.hits import Hit, Leaving
from medamad.model.shares import Share
from medamad.model.timings import Timings
from medamad.model.tokens import Token
from medamad.model.websites import Website
from medamad.store import account as accounts
from medamad.store import live
from medamad.store.batches import Batch
from medamad.store.beacons import DAY_MS, Beacons
from medamad.store.bulk import Bulk, contents_of
from medamad.store.coding import TextCoding
from medamad.store.doomed import Doomed
from medamad.store.early import Early
from medamad.store.environment import Environment, Txn, open_environment
from medamad.store.errors import Damaged
from medamad.store.figures import Figures
from medamad.store.formats import Tell, tell_nobody
from medamad.store.grants import SHARES, TOKENS, Grants, delete_shares_of
from medamad.store.held import Held
from medamad.store.imports import Imports
from medamad.store.journal import Journal, Outcome, journal_records
from medamad.store.names import Names
from medamad.store.parts import Snapshot
from medamad.store.planning import Planning, Sizes
from medamad.store.reading import Leases
from medamad.store.removal import Removal
from medamad.store.retaining import Bound, bound_of
from medamad.store.room import Room, Usage
from medamad.store.sealed import sealed, unsealed
from medamad.store.settings import StoreSettings
from medamad.store.shelf import Shelf
from medamad.store.shelves import Shelves
from medamad.store.upkeep import Upkeep
from medamad.store.websites import Websites, tombstones
from medamad.store.writer import CallsFromThread, Transaction, Writer

T = TypeVar("T")

_BEACON_SECRET_KEY: Final = b"beacon-secret"
_STEP_KEYS: Final = 500
_log: Final = Logger()
_HOUR_MS: Final = 3_600_000


@define(eq=False)
class Store:
    """An open store. Reads are cheap and may be made anywhere; writes go to the writer thread.

    `broken` fires with the reason when the store can no longer be trusted; the program is to stop.
    """

    settings: StoreSettings
    websites: Websites
    tokens: Grants[Token]
    shares: Grants[Share]
    broken: "Deferred[str]"
    _environment: Environment
    _journal: Journal
    _names: Names
    _room: Room
    _writer: Writer
    _shelves: Shelves
    _removal: Removal
    _upkeep: Upkeep
    _coding: TextCoding
    imports: Imports
    _one_at_a_time: DeferredLock
    _tended: set[int] = field(factory=set)
    """The websites that are waiting to be tended."""
    _names_looked_at: int | None = None
    """The day on which unused names were removed last."""
    _closing: bool = False
    _log = Logger()

    @classmethod
    def open(
        cls,
        directory: Path,
        settings: StoreSettings,
        reactor: CallsFromThread,
        sizes: Sizes = Sizes(),  # noqa: B008 - it is frozen
        tell: Tell = tell_nobody,
    ) -> "Store":
        """Open or make the store in `directory` and load what it holds. Raises StoreError.

        `tell` hears how far a store of an earlier format has been taken over.
        """
        environment = open_environment(directory, settings.map_size, tell)
        databases = environment.databases
        names = Names(databases, settings.new_values, settings.other_new_values)
        broken: Deferred[str] = Deferred()
        writer = Writer(environment, reactor, broken.callback)
        shelves = Shelves(environment, sizes.chunk_views, Leases(reactor))
        doomed = Doomed(environment, shelves.leases)
        planning = Planning(environment, doomed, sizes)
        upkeep = Upkeep(environment, writer.submit, shelves.publish, planning, doomed)
        websites = Websites(databases)
        coding = TextCoding(writer.submit, names, websites.has_number)
        one_at_a_time = DeferredLock()
        journal = Journal(
            databases,
            names,
            Beacons(databases.beacons, _secret(environment), settings.recent_beacons),
            Early(settings.early_beacons),
        )
        store = cls(
            settings=settings,
            websites=websites,
            tokens=Grants(environment, writer, TOKENS),
            shares=Grants(environment, writer, SHARES),
            broken=broken,
            environment=environment,
            names=names,
            room=Room(environment),
            journal=journal,
            writer=writer,
            shelves=shelves,
            removal=Removal(environment, writer.submit, shelves.leases),
            upkeep=upkeep,
            coding=coding,
            imports=Imports(
                environment, writer.submit, shelves, upkeep, journal, coding, one_at_a_time
            ),
            one_at_a_time=one_at_a_time,
        )
        deleted, to_clear, to_remove = store._load()
        for number in deleted:
            store._start(store._removal.remove(number))
        store._start(store._settle(to_clear))
        for batch in to_remove:
            store._start(store.imports.remove(batch))
        return store

    async def close(self) -> None:
        """Finish what was submitted, then close the file. Nothing may be asked afterwards."""
        self._closing = True
        self._writer.stop()
        self._environment.close()

    def apply(self, settings: StoreSettings) -> None:
        """Go by other settings from now on; the map's size stays until the next start."""
        self.settings = settings
        self._names.bounds = settings.new_values
        self._names.default_bound = settings.other_new_values

    # Reading

    def ask(self, website: Website, question: Callable[[Snapshot], T]) -> T:
        """Put a question to what is stored of a website now. For any thread.

        What the snapshot gives, and whatever was borrowed of it, is valid for the question alone.
        """
        return self._shelves.ask(website.number, question)

    def hold(self, website: Website) -> Held:
        """Hold what is stored of a website now, for several questions. For any thread."""
        return self._shelves.hold(website.number)

    def visitors_last_day(self, website: Website, now_ms: int) -> int:
        """Count the visitors of the last 24 hours."""
        return self._shelves.visitors_last_day(website.number, now_ms)

    def live_visitors(self, website: Website, now_ms: int) -> int:
        """Count the views begun in the last five minutes whose page has not been left."""
        return self.ask(website, lambda snapshot: live.live_visitors(snapshot, now_ms))

    def account(self) -> Account | None:
        """Give the account, or None before the first one is made."""
        with self._environment.reading() as txn:
            return accounts.read_account(txn, self._environment.databases)

    def login(self, digest: bytes) -> Login | None:
        """Give the login whose token has that SHA-256."""
        with self._environment.reading() as txn:
            return accounts.read_login(txn, self._environment.databases, digest)

    def usage(self) -> Usage:
        """Give how much of the store is in use."""
        with self._environment.reading() as txn:
            return self._room.usage(txn)

    @property
    def commits(self) -> Timings:
        """How long commits took."""
        return self._writer.commits

    def lack(self) -> str:
        """Say why no hits are stored at the moment, "" when they are."""
        try:
            with self._environment.reading() as txn:
                room = self._room.lack(txn, self.settings.min_free_disk)
        except OSError as error:
            return f"the folder of the store cannot be reached: {error.strerror}"
        return room or self._writer.lack

    def figures(self) -> Figures:
        """Give what the store holds, and has room for."""
        usage, shelves = self.usage(), self._shelves.all()
        try:
            free_disk_bytes = self._room.free_disk()
        except OSError:
            free_disk_bytes = 0
        return Figures(
            used_bytes=usage.used,
            map_bytes=usage.total,
            free_disk_bytes=free_disk_bytes,
            blocks=sum(len(shelf.leaves()) for shelf in shelves),
            tail_views=sum(len(shelf.tail) for shelf in shelves),
        )

    # Writing. Each raises Unavailable, and keeps nothing, when the store cannot take it.

    async def append(self, hits: Sequence[Hit]) -> list[Outcome]:
        """Store hits in order; returns what became of each once all are committed and synced."""
        outcomes = await self._writer.submit(lambda txn: self._append(txn, hits))
        for website in {hit.website for hit in hits if not isinstance(hit, Leaving)}:
            shelf = self._shelves.find(website)
            if shelf is not None and self._upkeep.planning.is_due(shelf):
                self._start(self._tend(shelf, hits[-1].time_ms))
        return outcomes

    async def load(self, website: Website, bulk: Bulk) -> None:
        """Store what happened before, without regard to bounds on new values."""
        if not len(bulk) and not len(bulk.event):
            return
        shelf = self._shelves.of(website.number)
        # Nothing uses the names until the views are there: they must not be tidied away.
        async with self._one_at_a_time:
            codes = await self._coding.codes(shelf, bulk.used_texts(), bulk.time_bounds()[0])
            first = await self._writer.submit(partial(self._reserve, bulk.sequence_numbers()))
            sizes = bulk.cut(
                self._upkeep.planning.room(shelf), self._upkeep.planning.sizes.chunk_views
            )
            for content in contents_of(bulk, first, codes, sizes):
                await self._upkeep.add(shelf, content)
                await self._upkeep.remove_doomed()
            await self._upkeep.tend(shelf, bulk.time_bounds()[1])
        await self._writer.submit(partial(self._count_visitors, shelf))

    async def add_website(self, hostname: str, now: int) -> Website:
        """Register a website. Raises Conflict when the hostname is taken."""
        return await self._writer.submit(lambda txn: self.websites.add(txn, hostname, now))

    async def rename_website(self, website: Website, hostname: str, now: int) -> Website:
        """Give a website another hostname. Raises NotFound, and BadRequest when it is taken."""
        return await self._writer.submit(
            lambda txn: self.websites.rename(txn, website.number, hostname, now)
        )

    async def delete_website(self, website: Website) -> None:
        """Delete a website; its hits are gone from sight at once. Raises NotFound."""

        def change(txn: Transaction) -> None:
            self.websites.delete(txn, website.number)
            delete_shares_of(txn.lmdb, self._environment.databases, website.number)
            txn.after_commit(lambda: self._forget(website.number))

        await self._writer.submit(change)
        self._start(self._removal.remove(website.number))

    async def put_account(self, account: Account) -> None:
        """Store an account where there is none."""
        databases = self._environment.databases
        await self._writer.submit(lambda txn: accounts.write_account(txn.lmdb, databases, account))

    async def change_account(
        self,
        change: Callable[[Account], Account],
        *,
        login: bytes | None = None,
        end_logins: bool = False,
    ) -> Account:
        """Change the account as it is when its turn comes; returns it as it is then.

        `end_logins` revokes all logins but `login`. Raises Unauthorised when there is no account,
        or when `login`, the SHA-256 of a token, has been revoked by then.
        """

        def make(txn: Transaction) -> Account:
            databases = self._environment.databases
            account = accounts.read_account(txn.lmdb, databases)
            revoked = login is not None and accounts.read_login(txn.lmdb, databases, login) is None
            if account is None or revoked:
                raise Unauthorised("the login has ended")
            account = change(account)
            accounts.write_account(txn.lmdb, databases, account)
            if end_logins:
                accounts.end_logins(txn.lmdb, databases, login)
            return account

        return await self._writer.submit(make)

    async def replace_account(self, account: Account) -> None:
        """Put a new account in the place of all there is: account, logins, websites and hits."""

        def change(txn: Transaction) -> list[int]:
            accounts.delete_account(txn.lmdb, self._environment.databases)
            accounts.write_account(txn.lmdb, self._environment.databases, account)
            numbers = self.websites.clear(txn)
            txn.after_commit(lambda: self._forget(*numbers))
            return numbers

        for number in await self._writer.submit(change):
            self._start(self._removal.remove(number))

    async def add_login(self, digest: bytes, login: Login) -> None:
        """Store a login under the SHA-256 of its token."""
        await self._writer.submit(
            lambda txn: accounts.write_login(txn.lmdb, self._environment.databases, digest, login)
        )

    async def touch_login(self, digest: bytes, now: int) -> None:
        """Note that a login was used."""
        await self._writer.submit(
            lambda txn: accounts.touch_login(txn.lmdb, self._environment.databases, digest, now)
        )

    async def end_login(self, digest: bytes) -> None:
        """Revoke one login."""
        databases = self._environment.databases
        await self._writer.submit(lambda txn: txn.lmdb.delete(digest, db=databases.logins))

    async def forget_logins(self, is_over: Callable[[Login], bool]) -> int:
        """Remove the logins that are over, which nobody may ever show again."""
        databases = self._environment.databases
        return await self._writer.submit(
            lambda txn: accounts.forget_logins(txn.lmdb, databases, is_over)
        )

    async def tidy(self, now_ms: int) -> None:
        """Do what the passing of time asks for, in small steps.

        Hits of more than a day ago are sealed, what became known of sealed ones is folded in,
        those past their time go, beacons of more than a day ago and readers that have died are
        forgotten. Raises Unavailable when the store cannot take it; then it is for the next time.
        """
        self._environment.lmdb.reader_check()
        self._room.lagging.tell()
        # First what makes room for the rest.
        await self._removal.go_on(self.websites.has_number)
        beacons = self._journal.beacons
        oldest_ms = now_ms - DAY_MS - _HOUR_MS
        forgotten = _STEP_KEYS
        while not self._closing and forgotten == _STEP_KEYS:
            forgotten = await self._writer.submit(
                lambda txn: beacons.forget_before(txn.lmdb, oldest_ms, _STEP_KEYS)
            )
        for shelf in self._shelves.all():
            await self._tend(shelf, now_ms)
        await self._remove_unused_names(now_ms // DAY_MS)

    # In the writer thread

    def _reserve(self, numbers: int, txn: Transaction) -> int:
        first = self._journal.reserve(numbers)
        self._journal.keep_sequence(txn.lmdb)
        return first

    def _append(self, txn: Transaction, hits: Sequence[Hit]) -> list[Outcome]:
        self._room.check(txn.lmdb, self.settings.min_free_disk)
        batch = self._journal.write(txn.lmdb, hits, self.websites.has_number, self._shelves)
        txn.after_commit(batch.committed)
        txn.after_commit(lambda: self._shelves.extend(batch))
        return batch.outcomes

    def _forget(self, *numbers: int) -> None:
        self._shelves.forget(numbers)
        for number in numbers:
            self._names.forget(number)

    # At start and in the background

    def _load(self) -> tuple[list[int], list[Shelf], list[Batch]]:
        """Read everything; returns what is to go on: websites to remove, to clear, batches."""
        to_clear, to_remove = [], []
        with self._environment.reading() as txn:
            self.websites.load(txn)
            self._journal.load(txn)
            for name in self._environment.strange_names(txn):
                _log.error("what had another name is not found: {name}", name=name)
            self._upkeep.doomed.load(txn)
            for website in self.websites.all():
                records = journal_records(txn, self._environment.databases, website.number)
                to_remove += self.imports.load_all(txn, website.number)
                if self._shelves.load(txn, website.number, records):
                    to_clear.append(self._shelves.of(website.number))
            with suppress(Unavailable):
                # So that the log tells from the start why no hits are taken.
                self._room.check(txn, self.settings.min_free_disk)
            self._journal.has_used(self._shelves.greatest_sequence)
            return list(self._deleted(txn)), to_clear, to_remove

    def _deleted(self, txn: Txn) -> Iterator[int]:
        for number in tombstones(txn, self._environment.databases.meta):
            if self.websites.has_number(number):
                _log.error("a website is registered and not removed: {number}", number=number)
            else:
                yield number

    async def _settle(self, to_clear: Sequence[Shelf]) -> None:
        """Do after a start what the last run left undone."""
        async with self._one_at_a_time:
            for shelf in to_clear:
                await self._upkeep.clear_journal(shelf)
            await self._upkeep.remove_doomed()
        for shelf in self._shelves.all():
            await self._writer.submit(partial(self._count_visitors, shelf))

    def _count_visitors(self, shelf: Shelf, _txn: Transaction) -> None:
        if not shelf.is_deleted:
            self._shelves.count_visitors(shelf)

    async def _tend(self, shelf: Shelf, now_ms: int) -> None:
        """Have all done that is due for a website, unless it is waiting for that already."""
        if shelf.website in self._tended:
            return
        self._tended.add(shelf.website)
        async with self._one_at_a_time:
            self._tended.discard(shelf.website)
            if not self._closing:
                try:
                    await self._upkeep.tend(shelf, now_ms, self._bound(shelf, now_ms))
                except Unavailable:
                    # Where there is no room, what was written in vain has to go at once.
                    await self._upkeep.remove_doomed()
                    raise
                await self._upkeep.remove_doomed()

    def _bound(self, shelf: Shelf, now_ms: int) -> Bound | None:
        """Give which hits of a website are to go."""
        website = self.websites.by_number(shelf.website)
        if website is None:
            return None
        retention = self.settings.retention
        return bound_of(retention.of(website.hostname), retention.zone, now_ms)

    async def _remove_unused_names(self, day: int) -> None:
        """Once a day, remove the names that nothing uses."""
        if self._names_looked_at == day:
            return
        self._names_looked_at = day
        for shelf in self._shelves.all():
            async with self._one_at_a_time:
                if not self._closing:
                    await self._upkeep.remove_unused_names(shelf, self._names)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin what nobody waits for. What fails is done at the next start, if not before."""
        begun = Deferred.fromCoroutine(work)
        begun.addErrback(self._failed)

    def _failed(self, failure: Failure) -> None:
        if failure.check(Unavailable) and self._closing:
            return
        if failure.check(Unavailable):
            self._log.warn("put off: {reason}", reason=str(failure.value))
        else:
            self._log.failure("work in the background failed", failure)


def _secret(environment: Environment) -> bytes:
    """Give the key of the beacons' hashes, made once for a store."""
    with environment.lmdb.begin(write=True) as txn:
        meta = environment.databases.meta
        stored = txn.get(_BEACON_SECRET_KEY, db=meta)
        if stored is not None:
            try:
                return unsealed(_BEACON_SECRET_KEY, stored)
            except Damaged as error:
                lost = "views of the last 24 hours are not found any more"
                _log.error(
                    "the key of the beacons is damaged, {lost}: {error}", lost=lost, error=error
                )
        secret = secrets.token_bytes(16)
        txn.put(_BEACON_SECRET_KEY, sealed(_BEACON_SECRET_KEY, secret), db=meta)
        return secret
