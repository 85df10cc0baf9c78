"""The store as the rest of the program sees it: reads at once, writes awaited."""

import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from medamad.model.accounts import Account, Login
from medamad.model.errors import Unauthorised, Unavailable
from medamad.model.hits import Hit
from medamad.model.websites import Website
from medamad.store import account as accounts
from medamad.store import live
from medamad.store.beacons import DAY_MS, Beacons
from medamad.store.early import Early
from medamad.store.environment import Environment, Txn, open_environment
from medamad.store.journal import Journal, Outcome
from medamad.store.names import Names, Texts
from medamad.store.parts import EMPTY, Snapshot
from medamad.store.records import Record, journal_place
from medamad.store.room import Room, Usage
from medamad.store.settings import StoreSettings
from medamad.store.tail import Tail
from medamad.store.websites import Websites, remove_some, tombstones
from medamad.store.writer import CallsFromThread, Transaction, Writer

_BEACON_SECRET_KEY: Final = b"beacon-secret"
_STEP_KEYS: Final = 500
_HOUR_MS: Final = 3_600_000


@define(eq=False)
class Store:
    """An open store. Reads are cheap and may be made anywhere; writes go to the writer thread.

    `broken` fires with the reason when the store can no longer be trusted; the program is to stop.
    """

    settings: StoreSettings
    websites: Websites
    broken: "Deferred[str]"
    _environment: Environment
    _journal: Journal
    _names: Names
    _room: Room
    _writer: Writer
    _tails: dict[int, Tail] = field(factory=dict)
    _texts: dict[int, Texts] = field(factory=dict)
    _snapshots: dict[int, Snapshot] = field(factory=dict)
    _closing: bool = False
    _log = Logger()

    @classmethod
    def open(cls, directory: Path, settings: StoreSettings, reactor: CallsFromThread) -> "Store":
        """Open or make the store in `directory` and load what it holds. Raises StoreError."""
        environment = open_environment(directory, settings.map_size)
        databases = environment.databases
        names = Names(databases, settings.new_values, settings.other_new_values)
        broken: Deferred[str] = Deferred()
        store = cls(
            settings=settings,
            websites=Websites(databases),
            broken=broken,
            environment=environment,
            names=names,
            room=Room(environment),
            journal=Journal(
                databases,
                names,
                Beacons(databases.beacons, _secret(environment), settings.recent_beacons),
                Early(settings.early_beacons),
            ),
            writer=Writer(environment, reactor, broken.callback),
        )
        deleted = store._load()
        for number in deleted:
            store._start_removal(number)
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

    def snapshot(self, website: Website) -> Snapshot:
        """Give what a question sees of a website from now on. For any thread."""
        return self._snapshots.get(website.number, EMPTY)

    def visitors_last_day(self, website: Website, now_ms: int) -> int:
        """Count the visitors of the last 24 hours."""
        return live.visitors_last_day(self.snapshot(website), now_ms)

    def live_visitors(self, website: Website, now_ms: int) -> int:
        """Count the views begun in the last five minutes whose page has not been left."""
        return live.live_visitors(self.snapshot(website), now_ms)

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

    # Writing. Each raises Unavailable, and keeps nothing, when the store cannot take it.

    async def append(self, hits: Sequence[Hit]) -> list[Outcome]:
        """Store hits in order; returns what became of each once all are committed and synced."""
        return await self._writer.submit(lambda txn: self._append(txn, hits))

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
            txn.after_commit(lambda: self._forget(website.number))

        await self._writer.submit(change)
        self._start_removal(website.number)

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
            self._start_removal(number)

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
        """Forget beacons older than a day and readers that have died, in small steps."""
        self._environment.lmdb.reader_check()
        beacons = self._journal.beacons
        oldest_ms = now_ms - DAY_MS - _HOUR_MS
        while not self._closing:
            forgotten = await self._writer.submit(
                lambda txn: beacons.forget_before(txn.lmdb, oldest_ms, _STEP_KEYS)
            )
            if forgotten < _STEP_KEYS:
                return

    # In the writer thread

    def _append(self, txn: Transaction, hits: Sequence[Hit]) -> list[Outcome]:
        self._room.check(txn.lmdb, self.settings.min_free_disk)
        batch = self._journal.write(txn.lmdb, hits, self.websites.has_number)
        txn.after_commit(batch.committed)
        txn.after_commit(lambda: self._publish(batch.records))
        return batch.outcomes

    def _publish(self, records: dict[int, list[Record]]) -> None:
        for number, added in records.items():
            tail = self._tails.setdefault(number, Tail())
            if added:
                tail.extend(added)
            parts, events = tail.publish()
            texts = self._texts.setdefault(number, Texts(self._environment, number))
            self._snapshots[number] = Snapshot(parts, events, texts)

    def _forget(self, *numbers: int) -> None:
        for number in numbers:
            self._tails.pop(number, None)
            self._snapshots.pop(number, None)
            self._names.forget(number)
            if (texts := self._texts.pop(number, None)) is not None:
                texts.is_deleted = True

    # At start and in the background

    def _load(self) -> list[int]:
        """Read websites, numbering and tails; returns the websites whose removal goes on."""
        with self._environment.reading() as txn:
            self.websites.load(txn)
            self._journal.load(txn)
            for website in self.websites.all():
                self._load_tail(txn, website.number)
            with suppress(Unavailable):
                # So that the log tells from the start why no hits are taken.
                self._room.check(txn, self.settings.min_free_disk)
            return list(tombstones(txn, self._environment.databases.meta))

    def _load_tail(self, txn: Txn, number: int) -> None:
        damaged: list[bytes] = []
        tail = Tail()
        tail.extend(self._journal.records(txn, number, damaged.append))
        for key in damaged:
            self._log.error("a record is damaged and left out: {place}", place=journal_place(key))
        self._tails[number] = tail
        self._publish({number: []})

    def _start_removal(self, number: int) -> None:
        removal = Deferred.fromCoroutine(self._remove(number))
        removal.addErrback(
            lambda failure: self._log.failure(
                "the hits of a deleted website are removed at the next start", failure
            )
        )

    async def _remove(self, number: int) -> None:
        databases = self._environment.databases
        is_gone = False
        while not is_gone and not self._closing:
            is_gone = await self._writer.submit(
                lambda txn: remove_some(txn.lmdb, databases, number, _STEP_KEYS)
            )


def _secret(environment: Environment) -> bytes:
    """Give the key of the beacons' hashes, made once for a store."""
    with environment.lmdb.begin(write=True) as txn:
        meta = environment.databases.meta
        secret = txn.get(_BEACON_SECRET_KEY, db=meta)
        if secret is None:
            secret = secrets.token_bytes(16)
            txn.put(_BEACON_SECRET_KEY, secret, db=meta)
        return secret
