"""What a command does to a store without asking the daemon, whether it runs or not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from attrs import evolve, frozen

from medamad.model.errors import NotFound
from medamad.model.websites import Website, canonical_hostname
from medamad.store.account import read_account, revoke_logins, write_account
from medamad.store.backing_up import back_up
from medamad.store.backup_file import Note
from medamad.store.batches import Batch, State, origins_of, sound_batches
from medamad.store.environment import (
    Environment,
    Txn,
    open_as_guest,
    open_to_copy,
    open_to_read,
)
from medamad.store.errors import Damaged, DamagedBlock, NoStore, StoreError
from medamad.store.files import failures_told
from medamad.store.forecast import Forecast, forecast
from medamad.store.formats import Tell
from medamad.store.held import Held
from medamad.store.journal import journal_records
from medamad.store.origins import Origins
from medamad.store.reading import Leases, Writing
from medamad.store.retaining import Bound
from medamad.store.shelf import Shelf
from medamad.store.shelves import Shelves
from medamad.store.tail import CHUNK_VIEWS
from medamad.store.trusted import read_trusted
from medamad.store.websites import Websites


def change_password(directory: Path, password_hash: str, now: int) -> str:
    """Give the account another password and revoke its logins; returns its name.

    The daemon reads the account afresh for each login, so it takes effect at once. Raises NoStore
    when there is no store or no account in it, and StoreError when it cannot be opened.
    """
    environment = open_as_guest(directory)
    try:
        with failures_told(environment.path), environment.lmdb.begin(write=True) as txn:
            environment.check_is_ours(txn)
            account = read_account(txn, environment.databases)
            if account is None:
                raise NoStore(f"{directory}: the store has no account yet; start medamad once")
            changed = evolve(account, password_hash=password_hash, updated=now)
            write_account(txn, environment.databases, changed)
            revoke_logins(txn, environment.databases)
        return account.username
    finally:
        environment.close()


def make_backup(directory: Path, target: Path, tell: Tell, spare_bytes: int) -> Note:
    """Write a backup of an existing store, beside a daemon that may be running.

    `spare_bytes` stay free on the store's disk where the backup is on it too. Raises StoreError,
    OSError.
    """
    env, txn, path = open_to_copy(directory)
    try:
        on_one_disk = path.stat().st_dev == target.parent.stat().st_dev
        spare_bytes = spare_bytes if on_one_disk else 0
        return back_up(env, txn, path, target, tell=tell, spare_bytes=spare_bytes)
    finally:
        txn.abort()
        env.close()


@frozen(eq=False)
class Guest:
    """Reads a store as it was at one moment, beside a daemon that may be running.

    That moment is kept for as long as it reads: meanwhile the daemon cannot use freed room again.
    """

    _environment: Environment
    _txn: Txn

    def websites(self) -> list[Website]:
        """Give every website in order of hostname."""
        websites = Websites(self._environment.databases)
        websites.load(self._txn)
        return websites.all()

    def doubt_left_ms(self, now_ms: int) -> int:
        """Give for how much longer a daemon would not believe the clock; 0 where it does."""
        return read_trusted(self._txn, self._environment).after(0, now_ms).doubt_left_ms

    def website(self, hostname: str) -> Website:
        """Give the website registered under a hostname. Raises BadRequest, NotFound."""
        name = canonical_hostname(hostname)
        websites = Websites(self._environment.databases)
        websites.load(self._txn)
        website = websites.by_hostname(name)
        if website is None:
            raise NotFound(f"hostname: no website {name} is registered")
        return website

    def hold(self, website: Website, damaged: Callable[[DamagedBlock], None]) -> Held:
        """Give all that is stored of a website. `damaged` is told of what is left out."""
        environment = self._environment
        return Held(
            published=self._shelf(website).publish(),
            databases=environment.databases,
            reading=lambda: nullcontext(Writing(self._txn)),
            damaged=damaged,
        )

    def forecast(self, website: Website, bound: Bound | None) -> Forecast:
        """Tell what is kept of a website, and what of it goes by a bound."""
        return forecast(self._shelf(website), self._environment.databases, self._txn, bound)

    def _shelf(self, website: Website) -> Shelf:
        environment = self._environment
        shelves = Shelves(environment, CHUNK_VIEWS, Leases(_NoReactor()))
        for batch in self._batches(website):
            if batch.state is not State.WHOLE:
                shelves.of(website.number).hide(batch.number)
        records = journal_records(self._txn, environment.databases, website.number)
        shelves.load(self._txn, website.number, records)
        return shelves.of(website.number)

    def batches(self, website: Website) -> list[Batch]:
        """Give the batches that were imported into a website and are whole."""
        return [batch for batch in self._batches(website) if batch.state is State.WHOLE]

    def _batches(self, website: Website) -> list[Batch]:
        return sound_batches(self._txn, self._environment.databases, website.number)

    def origins(self, website: Website) -> Origins:
        """Tell where the hits of a website are from. Raises StoreError."""
        try:
            return origins_of(self._environment.store_id(self._txn), self._batches(website))
        except Damaged as error:
            raise StoreError(f"{self._environment.path}: store-id: {error}") from error


@contextmanager
def reading_beside(directory: Path) -> Iterator[Guest]:
    """Read an existing store for a while. Raises StoreError."""
    environment, txn = open_to_read(directory)
    try:
        yield Guest(environment, txn)
    finally:
        txn.abort()
        environment.close()


class _NoReactor:
    """Nobody waits for a guest's questions."""

    def callFromThread(self, _call: Callable[..., object], /, *_args: object) -> None:
        """Tell nobody."""
