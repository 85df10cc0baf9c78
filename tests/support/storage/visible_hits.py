"""What is seen of a website: by questions where its hits are all in the memtable, and on disk."""

from collections.abc import Callable

from support.storage.contents import entries
from twisted.internet import reactor
from twisted.internet.task import deferLater

from medamad.domain.dimensions import Dimension
from medamad.domain.websites import Website
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.store import Store

OpenStore = Callable[..., Store]


def seen(store: Store, website: Website) -> Snapshot:
    return store.read(website, lambda snapshot: snapshot)


def paths(snapshot: Snapshot) -> list[str]:
    texts = snapshot.texts(Dimension.PATH)
    return [texts[code] for part in snapshot.parts for code in part.codes(Dimension.PATH)]


async def reopened(store: Store, open_store: OpenStore) -> tuple[Store, Snapshot]:
    await store.close()
    again = open_store()
    return again, seen(again, again.websites.all()[0])


async def until_removed(store: Store) -> None:
    """Wait until deleted websites have left nothing."""
    for _ in range(10_000):
        if not any(entries(store, "wal", "dictionary", "codes", "websites")):
            return
        await deferLater(reactor, 0.01)
    raise AssertionError("something is left")


def stored_texts(store: Store, website: Website, dimension: Dimension) -> list[str]:
    """Return the texts as they are on disk."""
    prefix = website.number.to_bytes(4, "big") + bytes((dimension,))
    with store.environment.reading() as txn:
        cursor = txn.cursor(db=store.environment.databases.dictionary)
        return [value[2:].decode() for key, value in cursor if key.startswith(prefix)]
