"""A store whose hits are shipped to a real server, without the daemon around it."""

from itertools import chain
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from support.storage.hits import DAY_MS, NOW_MS
from twisted.internet import reactor

from medamad.clickhouse.client import Client
from medamad.clickhouse.tables import Layout
from medamad.cluster.shipper import Progress, Shipper
from medamad.domain.hits import Hit
from medamad.storage.compaction.planner import Sizes
from medamad.storage.settings import StoreSettings
from medamad.storage.spool import Marks
from medamad.storage.startup import start_store
from medamad.storage.store import Store
from medamad.storage.wal.log import wal_records

COLLECTOR = 3


def start(folder: Path, chunk_views: int = 100, **settings: Any) -> Store:
    chosen = StoreSettings(map_size=64 << 20, min_free_disk=0, spool_hours=72)
    return start_store(folder, evolve(chosen, **settings), reactor, Sizes(chunk_views=chunk_views))


@define(eq=False)
class Collector:
    """A store with a website, and its shipper."""

    store: Store
    client: Client
    layout: Layout = field(factory=Layout)
    now_ms: int = NOW_MS
    seconds: float = 0.0
    shipper: Shipper = None  # type: ignore[assignment]

    def __attrs_post_init__(self) -> None:
        self.begin()

    def begin(self, number: int = COLLECTOR, quorum: int = 1) -> None:
        """Begin with a new shipper, as a daemon does that is started."""
        assert self.store.spool is not None
        self.shipper = Shipper(
            store=self.store,
            spool=self.store.spool,
            client=self.client,
            layout=self.layout,
            collector=number,
            quorum=quorum,
            now_ms=lambda: self.now_ms,
            seconds=lambda: self.seconds,
        )

    def begin_from(self, marks: Marks) -> None:
        """Begin with the log at the given marks, as far as it is still there."""
        assert self.store.spool is not None
        self.store.spool.marks = marks
        self.begin()

    async def restart(self, **settings: Any) -> None:
        folder = self.store.environment.path.parent
        await self.store.close()
        self.store = start(folder, **settings)
        if self.store.spool is not None:
            self.begin()

    async def append(self, *hits: Hit) -> None:
        await self.store.append(hits)

    async def ship(self) -> Progress:
        """Send everything, and move the marks."""
        progress = self.shipper.step()
        await self.store.move_marks(progress.marks)
        return await self.ship() if progress.left else progress

    def views(self, *names: str) -> list[Any]:
        return self.rows_of("views", "view", *names)

    def events(self, *names: str) -> list[Any]:
        return self.rows_of("events", "event, place", *names)

    def rows_of(self, table: str, order: str, *names: str) -> list[Any]:
        wanted = ", ".join(f"CAST({name} AS String) AS {name}_" for name in names)
        found = self.client.query(
            f"SELECT {wanted} FROM {self.client.table(table)} FINAL ORDER BY {order}"
        )
        columns = list(found.values())
        return list(zip(*columns, strict=True)) if len(names) > 1 else [*chain(*columns)]


async def flush(store: Store) -> None:
    """Write everything to segments."""
    (partition,) = store.partitions.all()
    await store.maintenance.segments_lock.run(lambda: None)
    await store.maintenance.run_due_jobs(partition, partition.memtable.oldest_ms + 2 * DAY_MS)


def logged(store: Store) -> int:
    with store.environment.reading() as txn:
        return len(list(wal_records(txn, store.environment.databases, 1)))


def stored(store: Store) -> int:
    return sum(leaf.header.views for leaf in store.partitions.all()[0].leaves()) + len(
        store.partitions.all()[0].memtable
    )
