"""What commands do with a store themselves, whether or not the daemon is running."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Generic

from attrs import evolve, field, frozen

from medamad.domain.accounts import Settings
from medamad.domain.alerts import SERVICE
from medamad.domain.annotations import Annotations
from medamad.domain.errors import BadRequest, Conflict, NotFound
from medamad.domain.exported_settings import Defined, ExportedSettings, Imported
from medamad.domain.goals import Definitions
from medamad.domain.websites import Website, canonical_hostname
from medamad.storage.accounts import ACCOUNT, revoke_logins
from medamad.storage.backup import BackupProgress, Note, back_up
from medamad.storage.compaction.division import (
    FindLeftOut,
    LeftOutBy,
    LeftOutOf,
    nothing_left_out,
)
from medamad.storage.compaction.retention import Cutoff, Forecast, forecast
from medamad.storage.environment.access import Leases, WriterAccess
from medamad.storage.environment.environment import (
    Databases,
    Environment,
    Txn,
    open_as_guest,
    open_to_read,
)
from medamad.storage.environment.files import store_errors
from medamad.storage.environment.meta import MARKS
from medamad.storage.environment.trusted_clock import read_trusted
from medamad.storage.errors import Damaged, DamagedSegment, NoStore, StoreError
from medamad.storage.grants import REPORTS, G, GrantKind
from medamad.storage.import_batches import (
    BatchState,
    ImportBatch,
    Origins,
    origins_of,
    sound_batches,
)
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.partitions import Partitions
from medamad.storage.segments.snapshot import Snapshot, SnapshotReader
from medamad.storage.shared_settings import check_is_primary
from medamad.storage.spool import read_hidden
from medamad.storage.wal.log import wal_records
from medamad.storage.wal.memtable import CHUNK_VIEWS
from medamad.storage.wal.records import sound_rows
from medamad.storage.website_values import (
    ALL_ANNOTATIONS,
    GOALS_AND_FUNNELS,
    V,
    WebsiteKind,
    import_settings,
    read_defined,
)
from medamad.storage.websites import Websites, read_websites, write_website


def change_password(directory: Path, password_hash: str, now: int) -> str:
    """Change the account's password and revoke its logins; return its name.

    The daemon does not cache the account, so this takes effect at once. Raises NoStore if there is
    no store or no account in it, and StoreError if it cannot be opened.
    """
    environment = open_as_guest(directory)
    try:
        with store_errors(environment.path), environment.lmdb.begin(write=True) as txn:
            environment.check_is_ours(txn)
            check_is_primary(txn, environment.databases)
            account = ACCOUNT.read(txn, environment.databases)
            if account is None:
                raise NoStore(f"{directory}: the store has no account yet; start medamad once")
            changed = evolve(account, password_hash=password_hash, updated=now)
            ACCOUNT.write(txn, environment.databases, b"", changed)
            revoke_logins(txn, environment.databases)
        return account.username
    finally:
        environment.close()


def make_backup(
    directory: Path,
    target: Path,
    progress: BackupProgress,
    spare_bytes: int,
    rights: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Note:
    """Write a backup of an existing store, beside a daemon that may be running.

    If the backup is on the store's disk, `spare_bytes` of it stay free. `target` is written with
    `rights`. Raises StoreError, OSError.
    """
    environment, txn = open_to_read(directory)
    try:
        store_disk = environment.path.stat().st_dev
        with rights():
            on_one_disk = store_disk == target.parent.stat().st_dev
            spare_bytes = spare_bytes if on_one_disk else 0
            return back_up(environment, txn, target, progress=progress, spare_bytes=spare_bytes)
    finally:
        txn.abort()
        environment.close()


@frozen(eq=False)
class StoreReader:
    """Reads a store as of one transaction, beside a daemon that may be running.

    Until it ends, the daemon cannot reuse freed space.
    """

    _environment: Environment
    _txn: Txn
    damaged: list[str] = field(factory=list)
    """What `sound_snapshot` has left out."""

    def websites(self) -> list[Website]:
        """Return all websites in order of hostname."""
        websites = Websites(self._environment.databases)
        websites.load(self._txn)
        return websites.all()

    def doubt_left_ms(self, now_ms: int) -> int:
        """Return how much longer a daemon would not trust the clock; 0 if it does."""
        return read_trusted(self._txn, self._environment).after(0, now_ms).doubt_left_ms

    def website(self, hostname: str) -> Website:
        """Return the website registered under a hostname. Raises BadRequest, NotFound."""
        name = canonical_hostname(hostname)
        websites = Websites(self._environment.databases)
        websites.load(self._txn)
        website = websites.by_hostname(name)
        if website is None:
            raise NotFound(f"hostname: no website {name} is registered")
        return website

    def goals(self, website: Website) -> Definitions:
        """Return the goals and funnels of a website."""
        databases = self._environment.databases
        return GOALS_AND_FUNNELS.of(self._txn, databases, website.number)

    def annotations(self, website: Website) -> Annotations:
        """Return the annotations of a website."""
        databases = self._environment.databases
        return ALL_ANNOTATIONS.of(self._txn, databases, website.number)

    def language(self) -> str:
        """Return the account's language, the default if there is no account."""
        account = ACCOUNT.read(self._txn, self._environment.databases)
        return (Settings() if account is None else account.settings).language

    def snapshot(
        self, website: Website, report_damage: Callable[[DamagedSegment], None]
    ) -> Snapshot:
        """Return what is stored of a website; `report_damage` is called for what is left out."""
        access = WriterAccess(self._txn)
        reader = SnapshotReader(access, self._environment.databases, report_damage)
        return evolve(self._partition(website).publish(), reader=reader)

    def sound_snapshot(self, website: Website) -> Snapshot:
        """Read all that is stored of a website, and return what is sound."""
        return self.snapshot(website, lambda error: self.damaged.append(str(error))).verified()

    def hidden_batches(self, website: int) -> frozenset[int]:
        """Return the import batches of a website that no query of a cluster sees."""
        databases = self._environment.databases
        unfinished = (
            batch.number
            for batch in sound_batches(self._txn, databases, website)
            if batch.state is not BatchState.COMPLETE
        )
        return frozenset(unfinished).union(
            batch for of, batch in read_hidden(self._txn, databases.meta) if of == website
        )

    def check_is_whole(self) -> None:
        """Raise Conflict if the hits are in a cluster, and here only for a while."""
        if self._txn.get(MARKS, db=self._environment.databases.meta) is not None:
            raise Conflict(
                "the hits are in a cluster, and only those of the last days are here, so this would"
                " be incomplete"
            )

    def forecast(
        self, website: Website, bound: Cutoff | None, find_left_out: FindLeftOut | None = None
    ) -> Forecast:
        """Return how much of a website is kept, and how much of it a cutoff would delete.

        `find_left_out` is what `start_store` takes.
        """
        partition, databases = self._partition(website), self._environment.databases
        left_out: LeftOutOf = nothing_left_out
        if find_left_out is not None:
            left_out = LeftOutBy(find_left_out, lambda _: self.goals(website))
        return forecast(partition, databases, self._txn, bound, left_out)

    def _partition(self, website: Website) -> Partition:
        environment = self._environment
        partitions = Partitions(environment, CHUNK_VIEWS, Leases(_NoReactor()))
        for batch in self._batches(website):
            if batch.state is not BatchState.COMPLETE:
                partitions.get_or_create(website.number).hide(batch.number)
        records = wal_records(self._txn, environment.databases, website.number)
        partitions.load(self._txn, website.number, *sound_rows(records))
        return partitions.get_or_create(website.number)

    def batches(self, website: Website) -> list[ImportBatch]:
        """Return the complete import batches of a website."""
        return [batch for batch in self._batches(website) if batch.state is BatchState.COMPLETE]

    def _batches(self, website: Website) -> list[ImportBatch]:
        return sound_batches(self._txn, self._environment.databases, website.number)

    def origins(self, website: Website) -> Origins:
        """Return the origins of a website's hits. Raises StoreError."""
        try:
            return origins_of(self._environment.store_id(self._txn), self._batches(website))
        except Damaged as error:
            raise StoreError(f"{self._environment.path}: store-id: {error}") from error


@contextmanager
def open_reader(directory: Path) -> Iterator[StoreReader]:
    """Open an existing store to read it. Raises StoreError."""
    environment, txn = open_to_read(directory)
    try:
        yield StoreReader(environment, txn)
    finally:
        txn.abort()
        environment.close()


class _NoReactor:
    """Stands for a reactor: nobody waits for the leases of a reader."""

    def callFromThread(self, _call: Callable[..., object], /, *_args: object) -> None:
        """Do nothing."""


@frozen
class GrantList(Generic[G]):
    """The grants of a kind with their keys, and the hostnames of websites by number."""

    grants: list[tuple[bytes, G]]
    hostnames: dict[int, str]


def list_grants(directory: Path, kind: GrantKind[G]) -> GrantList[G]:
    """Return the tokens or the share links. Raises StoreError, as do the functions below."""
    with _guest(directory, write=False) as (txn, databases):
        found = kind.in_order(txn, databases)
        hostnames = {website.number: website.hostname for website in _websites(txn, databases)}
        return GrantList(found, hostnames)


def add_grant(directory: Path, kind: GrantKind[G], key: bytes, grant: G) -> None:
    """Add a token or share link, valid at once. Raises Conflict if there are too many."""
    with _guest(directory, write=True) as (txn, databases):
        kind.insert(txn, databases, key, grant)


def revoke_grant(directory: Path, kind: GrantKind[G], key: bytes) -> bool:
    """Revoke a token or share link at once; return whether it existed."""
    with _guest(directory, write=True) as (txn, databases):
        return kind.delete(txn, databases, key)


def value_of(directory: Path, kind: WebsiteKind[V], hostname: str | None) -> V:
    """Return what is defined for a website, None for the service.

    Raises BadRequest for an unregistered one.
    """
    number = _number_or_service(directory, hostname)
    with _guest(directory, write=False) as (txn, databases):
        return kind.of(txn, databases, number)


def change_value(
    directory: Path, kind: WebsiteKind[V], hostname: str | None, change: Callable[[V], V]
) -> V:
    """Apply a change to what is defined for a website, None for the service; return what is then.

    Raises BadRequest for an unregistered website, and what `change` does.
    """
    number = _number_or_service(directory, hostname)
    with _guest(directory, write=True) as (txn, databases):
        return kind.apply(txn, databases, number, change)


def defined_for(directory: Path, hostname: str) -> Defined:
    """Return all that is defined for a website. Raises BadRequest for an unregistered one."""
    with _guest(directory, write=False) as (txn, databases):
        return read_defined(txn, databases, _website(txn, databases, hostname))


def add_settings(directory: Path, hostname: str, settings: ExportedSettings, now: int) -> Imported:
    """Add settings to those of a website, all or none; return how much was added.

    No daemon may be running, which has the websites in memory. Raises BadRequest for an
    unregistered website, and what `Defined.with_imported` does.
    """
    reports = {report.id for _, report in list_grants(directory, REPORTS).grants}
    with _guest(directory, write=True) as (txn, databases):
        website = _website(txn, databases, hostname)
        own, imported = import_settings(txn, databases, website, settings, reports)
        if own != website.settings:
            write_website(txn, databases, evolve(website, settings=own, updated=now))
        return imported


def _number_or_service(directory: Path, hostname: str | None) -> int:
    return SERVICE if hostname is None else website_numbers(directory, [hostname])[0]


def website_numbers(directory: Path, hostnames: Iterable[str]) -> list[int]:
    """Return the numbers of websites. Raises BadRequest for an unregistered one."""
    with _guest(directory, write=False) as (txn, databases):
        return [_website(txn, databases, hostname).number for hostname in hostnames]


def _website(txn: Txn, databases: Databases, hostname: str) -> Website:
    """Return a website. Raises BadRequest for an unregistered one."""
    name = canonical_hostname(hostname)
    for website in _websites(txn, databases):
        if website.hostname == name:
            return website
    raise BadRequest(f"hostname: no website {name} is registered")


def _websites(txn: Txn, databases: Databases) -> Iterator[Website]:
    return (found for found in read_websites(txn, databases) if not isinstance(found, str))


@contextmanager
def _guest(directory: Path, *, write: bool) -> Iterator[tuple[Txn, Databases]]:
    """Return a transaction of a store beside a daemon that may be running.

    Kept if all went well.
    """
    environment = open_as_guest(directory)
    try:
        with store_errors(environment.path), environment.lmdb.begin(write=write) as txn:
            if write:
                environment.check_is_ours(txn)
                check_is_primary(txn, environment.databases)
            yield txn, environment.databases
    finally:
        environment.close()
