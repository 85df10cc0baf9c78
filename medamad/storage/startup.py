"""Open a store: construct its components, connect them and load what is on disk."""

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from twisted.internet.defer import Deferred, DeferredLock
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.storage.accounts import StoredAccount
from medamad.storage.compaction.compactor import Compactor
from medamad.storage.compaction.division import (
    FindLeftOut,
    LeftOutBy,
    LeftOutOf,
    nothing_left_out,
)
from medamad.storage.compaction.maintenance import Maintenance
from medamad.storage.compaction.planner import Planner, Sizes
from medamad.storage.compaction.purge import PurgeQueue, WebsitePurge, leftovers
from medamad.storage.dictionary.encode import Dictionary
from medamad.storage.dictionary.keys import CodeSpace
from medamad.storage.dictionary.limits import limit_warning
from medamad.storage.environment.access import Leases
from medamad.storage.environment.environment import (
    FILE_NAME,
    Databases,
    Environment,
    Txn,
    open_environment,
)
from medamad.storage.environment.files import store_errors
from medamad.storage.environment.free_space import FreeSpace
from medamad.storage.environment.meta import IGNORED, MARKS
from medamad.storage.environment.trusted_clock import TrustedClock
from medamad.storage.environment.writer import CallsFromThread, Transaction, Writer
from medamad.storage.grants import REPORTS, SHARES, TOKENS, Grants
from medamad.storage.import_batches import ImportRemoval
from medamad.storage.import_content import TextEncoder
from medamad.storage.imports import Imports
from medamad.storage.migrations import migrate
from medamad.storage.request_totals import (
    IsListed,
    RequestTotals,
    delete_imported,
    nothing_is_listed,
)
from medamad.storage.segments.partition import Partition
from medamad.storage.segments.partitions import Partitions
from medamad.storage.settings import StoreSettings
from medamad.storage.spool import Spool, least_number
from medamad.storage.store import Store
from medamad.storage.wal.beacons import BeaconIndex, UnmatchedBeacons, secret_of
from medamad.storage.wal.log import WriteAheadLog
from medamad.storage.wal.named_visitors import NamedVisitors
from medamad.storage.wal.records import (
    RecordKind,
    sound_rows_of_websites,
    unflushed_records,
    website_of,
)
from medamad.storage.wal.visits import LiveVisits
from medamad.storage.website_values import (
    ALL_ALERTS,
    ALL_ANNOTATIONS,
    GOALS_AND_FUNNELS,
    WEBSITE_KINDS,
    WebsiteValues,
)
from medamad.storage.websites import Websites, tombstones

_log: Final = Logger()


def start_store(
    directory: Path,
    settings: StoreSettings,
    reactor: CallsFromThread,
    sizes: Sizes = Sizes(),  # noqa: B008 - it is frozen
    find_left_out: FindLeftOut | None = None,
    *,
    is_listed_robot: IsListed = nothing_is_listed,
) -> Store:
    """Open or create the store in a directory and load it. Raises StoreError, OSError.

    The store of an earlier build is brought up to date. With `find_left_out`, rollups are divided
    by the rules of websites that leave out the hits they are made of.
    """
    with store_errors(directory / FILE_NAME):
        environment = migrate(open_environment(directory, settings.map_size))
        store = _build(
            environment, settings, reactor, sizes, find_left_out, is_listed_robot=is_listed_robot
        )
        with environment.reading() as txn:
            to_trim = _load(store, txn)
            deleted = list(_deleted(store, txn))
            with suppress(Unavailable):
                # So that the log has from the start why no hits are stored.
                store.free_space.check(txn)
        _start_background_work(store, to_trim, deleted)
        return store


def _log_limit(websites: Websites, space: CodeSpace) -> None:
    number, dimension = space
    if website := websites.by_number(number):
        _log.warn("{warning}", warning=limit_warning(website.hostname, dimension))


def _delete_others_of_batch(
    spool: Spool | None, txn: Transaction, databases: Databases, website: int, batch: int
) -> None:
    """Delete what else there is of an import batch, here and in the cluster."""
    delete_imported(txn.lmdb, databases, website, batch)
    if spool is not None:
        spool.hide(txn, databases.meta, (website, batch))
        txn.after_commit(lambda: spool.loading.discard(batch))


def _build(
    environment: Environment,
    settings: StoreSettings,
    reactor: CallsFromThread,
    sizes: Sizes,
    find_left_out: FindLeftOut | None,
    *,
    is_listed_robot: IsListed,
) -> Store:
    """Construct the components of a store and connect them."""
    databases = environment.databases
    broken: Deferred[str] = Deferred()
    writer = Writer(environment, reactor, broken.callback)
    free_space = FreeSpace(environment, settings.min_free_disk)
    websites = Websites(databases)
    dictionary = Dictionary(databases, settings.new_values, settings.other_new_values)
    dictionary.on_limit = partial(_log_limit, websites)
    wal = WriteAheadLog(
        databases,
        dictionary,
        BeaconIndex(databases, secret_of(environment), settings.recent_beacons),
        UnmatchedBeacons(settings.early_beacons),
        NamedVisitors(environment),
        LiveVisits(settings.visits),
        logs_corrections=bool(settings.spool_hours),
    )
    leases = Leases(reactor)
    partitions = Partitions(environment, sizes.chunk_views, leases)
    purge_queue = PurgeQueue(environment, leases)
    spool = Spool(settings.spool_hours) if settings.spool_hours else None
    goals = WebsiteValues(environment, writer, GOALS_AND_FUNNELS)
    left_out: LeftOutOf = nothing_left_out
    if find_left_out is not None:
        left_out = LeftOutBy(find_left_out, goals.of)
    planner = Planner(environment, purge_queue, sizes, left_out)
    compactor = Compactor(
        environment, writer.submit, partitions.publish, planner, purge_queue, wal.beacons, spool
    )
    website_purge = WebsitePurge(environment, writer.submit, leases)
    segments_lock = DeferredLock()
    maintenance = Maintenance(
        environment=environment,
        retention=settings.retention,
        submit=writer.submit,
        websites=websites,
        dictionary=dictionary,
        beacons=wal.beacons,
        unmatched=wal.unmatched,
        named=wal.named,
        visits=wal.visits,
        leases=leases,
        partitions=partitions,
        website_purge=website_purge,
        compactor=compactor,
        spool=spool,
        segments_lock=segments_lock,
    )
    imports = Imports(
        environment=environment,
        submit=writer.submit,
        partitions=partitions,
        compactor=compactor,
        wal=wal,
        encoder=TextEncoder(writer.submit, dictionary, websites.has_number, free_space.check),
        check_space=free_space.check,
        segments_lock=segments_lock,
        spool=spool,
        removal=ImportRemoval(
            environment=environment,
            submit=writer.submit,
            partitions=partitions,
            compactor=compactor,
            segments_lock=segments_lock,
            delete_others=partial(_delete_others_of_batch, spool),
            undone=maintenance.vacuum_after_removal,
        ),
    )
    return Store(
        settings=settings,
        websites=websites,
        account=StoredAccount(environment, writer),
        tokens=Grants(environment, writer, TOKENS),
        shares=Grants(environment, writer, SHARES),
        reports=Grants(environment, writer, REPORTS),
        alerts=WebsiteValues(environment, writer, ALL_ALERTS),
        goals=goals,
        annotations=WebsiteValues(environment, writer, ALL_ANNOTATIONS),
        robots=RequestTotals(
            environment, writer.submit, websites.has_number, free_space.check, is_listed_robot
        ),
        clock=TrustedClock(environment, writer.submit),
        imports=imports,
        broken=broken,
        environment=environment,
        writer=writer,
        free_space=free_space,
        dictionary=dictionary,
        wal=wal,
        partitions=partitions,
        compactor=compactor,
        website_purge=website_purge,
        maintenance=maintenance,
        spool=spool,
    )


def _load(store: Store, txn: Txn) -> list[Partition]:
    """Load what is kept in memory; return the partitions that have flushed records left."""
    environment = store.environment
    store.websites.load(txn)
    store.wal.load(txn)
    for name in environment.unknown_names(txn):
        _log.error("a part of the store has another name and is ignored: {name}", name=name)
    for kind in WEBSITE_KINDS:
        for place in kind.findings(txn, environment.databases):
            _log.error(IGNORED, place=place)
    for place in leftovers(txn, environment.databases):
        _log.error("data that belongs to no website is ignored: {place}", place=place)
    store.compactor.purge_queue.load(txn)
    # All at once: to decode the few records of a small website costs as much as that of many.
    if store.spool is None:
        with txn.cursor(db=environment.databases.wal) as cursor:
            logged, damaged_keys = sound_rows_of_websites(cursor)
    else:
        logged, damaged_keys = sound_rows_of_websites(unflushed_records(txn, environment))
    to_trim, views = [], []
    for website in store.websites.all():
        rows = logged.get(website.number, {})
        damaged = [key for key in damaged_keys if website_of(key) == website.number]
        store.imports.load_all(txn, website)
        if store.partitions.load(txn, website.number, rows, damaged) or store.spool is not None:
            to_trim.append(store.partitions.get_or_create(website.number))
        if RecordKind.VIEW in rows:
            views.append((website.number, rows[RecordKind.VIEW]))
    store.wal.skip_to(store.partitions.greatest_sequence)
    _load_marks(store, txn)
    # Only the writer uses them, so it loads them before it does anything else.
    loading = store.writer.submit(lambda begun: store.wal.beacons.load(begun.lmdb, views))
    # Unavailable if the store has failed, which the writer reports.
    loading.addErrback(lambda failure: failure.trap(Unavailable))
    loading.addErrback(lambda failure: _log.failure("beacons could not be loaded", failure))
    return to_trim


def _load_marks(store: Store, txn: Txn) -> None:
    """Read how far the cluster has what is stored, or forget it where there is none any more."""
    meta = store.environment.databases.meta
    if store.spool is not None:
        is_new = store.spool.load(txn, meta, store.wal.last_sequence)
        # With a clock that was ahead, the marks may have gone beyond the numbers of all hits. A hit
        # with a number below them would count as sent.
        store.wal.skip_to(max(least_number(time.time()), store.spool.marks.sent))
        store.spool.stored_up_to = store.wal.last_sequence
        if is_new:
            store.maintenance.start(store.move_marks(store.spool.marks))
    elif txn.get(MARKS, db=meta) is not None:
        # From now on the log is cut without regard to the cluster.
        forgotten = store.writer.submit(lambda begun: begun.lmdb.delete(MARKS, db=meta))
        forgotten.addErrback(lambda failure: failure.trap(Unavailable))


def _deleted(store: Store, txn: Txn) -> Iterator[int]:
    """Return the numbers of deleted websites that have data left."""
    for number in tombstones(txn, store.environment.databases.meta):
        if store.websites.has_number(number):
            _log.error("a registered website has a tombstone and is kept: {number}", number=number)
        else:
            yield number


def _start_background_work(store: Store, to_trim: list[Partition], deleted: list[int]) -> None:
    """Finish what the last run left, and count the visitors of the last day."""
    maintenance = store.maintenance
    maintenance.log_unregistered()
    if store.free_space.free_disk() < store.settings.min_free_disk:
        # On a full disk the first write may end the run, so `maintain` does it a little later.
        maintenance.postponed = to_trim
    else:
        for number in deleted:
            maintenance.start(store.website_purge.purge(number))
        maintenance.start(maintenance.finish_last_run(to_trim))
        maintenance.start(store.imports.finish_removals())
    maintenance.start(maintenance.count_visitors())
