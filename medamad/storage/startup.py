"""Open a store: construct its components, connect them and load what is on disk."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.storage.accounts import StoredAccount
from medamad.storage.compaction.compactor import Compactor
from medamad.storage.compaction.planner import Planner, Sizes
from medamad.storage.compaction.purge import PurgeQueue, WebsitePurge, left_over
from medamad.storage.compaction.scheduler import Maintenance
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.environment.access import Leases
from medamad.storage.environment.environment import FILE_NAME, Environment, Txn, open_environment
from medamad.storage.environment.files import failures_told
from medamad.storage.environment.free_space import Room
from medamad.storage.environment.trusted_clock import TrustedClock
from medamad.storage.environment.writer import CallsFromThread, Writer
from medamad.storage.grants import SHARES, TOKENS, Grants
from medamad.storage.import_batches import ImportRemoval
from medamad.storage.import_content import TextCoding
from medamad.storage.imports import Imports
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.registry import Partitions
from medamad.storage.settings import StoreSettings
from medamad.storage.store import Store
from medamad.storage.wal.dedup import BeaconIndex, UnmatchedBeacons, secret_of
from medamad.storage.wal.journal import Journal, journal_records
from medamad.storage.websites import Websites, tombstones

_log: Final = Logger()


def start_store(
    directory: Path,
    settings: StoreSettings,
    reactor: CallsFromThread,
    sizes: Sizes = Sizes(),  # noqa: B008 - it is frozen
) -> Store:
    """Open or make the store in `directory` and load what it holds. Raises StoreError, OSError."""
    with failures_told(directory / FILE_NAME):
        environment = open_environment(directory, settings.map_size)
        return _store_in(environment, settings, reactor, sizes)


def _store_in(
    environment: Environment, settings: StoreSettings, reactor: CallsFromThread, sizes: Sizes
) -> Store:
    """Put the parts together, and go on with what was left to be done."""
    databases = environment.databases
    names = Dictionary(databases, settings.new_values, settings.other_new_values)
    broken: Deferred[str] = Deferred()
    writer = Writer(environment, reactor, broken.callback)
    partitions = Partitions(environment, sizes.chunk_views, Leases(reactor))
    purge_queue = PurgeQueue(environment, partitions.leases)
    planner = Planner(environment, purge_queue, sizes)
    compactor = Compactor(environment, writer.submit, partitions.publish, planner, purge_queue)
    websites = Websites(databases)
    room = Room(environment, settings.min_free_disk)
    coding = TextCoding(writer.submit, names, websites.has_number, room.check)
    one_at_a_time = DeferredLock()
    beacons = BeaconIndex(databases.beacons, secret_of(environment), settings.recent_beacons)
    early = UnmatchedBeacons(settings.early_beacons)
    journal = Journal(databases, names, beacons, early)
    removal = WebsitePurge(environment, writer.submit, partitions.leases)
    maintenance = Maintenance(
        retention=settings.retention,
        submit=writer.submit,
        websites=websites,
        names=names,
        beacons=beacons,
        early=early,
        leases=partitions.leases,
        partitions=partitions,
        removal=removal,
        compactor=compactor,
        one_at_a_time=one_at_a_time,
    )
    imports = Imports(
        environment=environment,
        submit=writer.submit,
        partitions=partitions,
        compactor=compactor,
        journal=journal,
        coding=coding,
        check_room=room.check,
        one_at_a_time=one_at_a_time,
        removal=ImportRemoval(
            environment=environment,
            submit=writer.submit,
            partitions=partitions,
            compactor=compactor,
            one_at_a_time=one_at_a_time,
            undone=maintenance.has_lost_hits,
        ),
    )
    with environment.reading() as txn:
        to_clear = _read(
            txn,
            environment,
            websites=websites,
            journal=journal,
            purge_queue=purge_queue,
            imports=imports,
            partitions=partitions,
        )
        with suppress(Unavailable):
            # So that the log tells from the start why no hits are taken.
            room.check(txn)
        deleted = list(_deleted(txn, environment, websites))
    maintenance.tell_unregistered()
    if room.free_disk() < settings.min_free_disk:
        # Where nothing more can be written, the first try ends a run: so not at once.
        maintenance.unsettled = to_clear
    else:
        for number in deleted:
            maintenance.start(removal.remove(number))
        maintenance.start(maintenance.settle(to_clear))
        maintenance.start(imports.tidy())
    maintenance.start(maintenance.count_visitors())
    return Store(
        settings=settings,
        websites=websites,
        account=StoredAccount(environment, writer),
        tokens=Grants(environment, writer, TOKENS),
        shares=Grants(environment, writer, SHARES),
        clock=TrustedClock(environment, writer.submit),
        broken=broken,
        environment=environment,
        names=names,
        room=room,
        journal=journal,
        writer=writer,
        partitions=partitions,
        removal=removal,
        compactor=compactor,
        coding=coding,
        imports=imports,
        one_at_a_time=one_at_a_time,
        maintenance=maintenance,
    )


def _read(
    txn: Txn,
    environment: Environment,
    *,
    websites: Websites,
    journal: Journal,
    purge_queue: PurgeQueue,
    imports: Imports,
    partitions: Partitions,
) -> list[Partition]:
    """Read all that is kept in memory; returns the partitions that have something to clear."""
    websites.load(txn)
    journal.load(txn)
    for name in environment.strange_names(txn):
        _log.error("what had another name is not found: {name}", name=name)
    for place in left_over(txn, environment.databases):
        _log.error("what is stored belongs to no website: {place}", place=place)
    purge_queue.load(txn)
    to_clear = []
    for website in websites.all():
        records = journal_records(txn, environment.databases, website.number)
        imports.load_all(txn, website)
        if partitions.load(txn, website.number, records):
            to_clear.append(partitions.of(website.number))
    journal.has_used(partitions.greatest_sequence)
    return to_clear


def _deleted(txn: Txn, environment: Environment, websites: Websites) -> Iterator[int]:
    """Return the numbers of deleted websites of which something is still there."""
    for number in tombstones(txn, environment.databases.meta):
        if websites.has_number(number):
            _log.error("a website is registered and not removed: {number}", number=number)
        else:
            yield number
