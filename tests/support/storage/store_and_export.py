"""Store views with `scrolled` and `printed`, and print exports of them: `python ... FOLDER`.

From the memtable, from the memtable as a restart rebuilds it from the log, and from a segment.
"""

import csv
import sys
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from medamad.domain.hits import View
from medamad.lookup.referrers import Sources
from medamad.query.period import ALWAYS
from medamad.storage.import_batches import Origins
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store
from medamad.transfer.export import ExportRequest, ExportSource
from medamad.transfer.rows import ViewRow
from medamad.transfer.tables import row_parser

NOW_MS = 1_790_000_000_000
DAY_MS = 86_400_000


def opened(folder: Path) -> Store:
    return start_store(folder, StoreSettings(map_size=64 << 20, min_free_disk=0), reactor)


def show(store: Store) -> None:
    """Print both columns of each view as they are read from an export."""
    (website,) = store.websites.all()
    with store.snapshot(website) as snapshot:
        source = ExportSource(
            snapshot=snapshot, origins=Origins("", ()), sources=Sources({}), period=ALWAYS
        )
        pieces = ExportRequest().encoded(source, NOW_MS)
        text = b"".join(piece.data for piece in pieces).decode()
    records = csv.DictReader(text.splitlines())
    parse = row_parser(records.fieldnames or ())
    for record in records:
        row = parse(1, {name: cell or None for name, cell in record.items()})
        assert isinstance(row, ViewRow), row
        sys.stdout.write(f"{row.scrolled} {row.printed}; ")
    sys.stdout.write("\n")


async def main(folder: Path) -> None:
    store = opened(folder)
    website = await store.add_website("example.com", 1)
    views = [
        View(
            website=website.number,
            time_ms=NOW_MS - 2 * DAY_MS + number,
            beacon=f"b{number}",
            path="/",
            scrolled=300 * number,
            printed=number == 1,
        )
        for number in range(3)
    ]
    await store.append(views)
    show(store)
    await store.close()
    store = opened(folder)
    show(store)
    await store.maintain(NOW_MS, 0)
    show(store)
    await store.close()
    reactor.stop()


def fail(failure: Failure) -> None:
    failure.printTraceback()
    reactor.stop()


if __name__ == "__main__":
    begin = Deferred.fromCoroutine
    reactor.callWhenRunning(lambda: begin(main(Path(sys.argv[1]))).addErrback(fail))
    reactor.run()
