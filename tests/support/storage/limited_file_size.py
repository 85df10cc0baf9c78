"""Stores hits until the file may not become any larger; prints the outcome.

Called with a folder and by how many KiB the file may grow. A write beyond that fails as one does
where the disk fails: not for lack of room, so that the store must not go on.
"""

import json
import resource
import signal
import sys
from pathlib import Path

from support.storage.hits import a_view
from support.storage.open_mutants import SETTINGS, AtOnce, awaited
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from medamad.domain.dimensions import Dimension
from medamad.storage.segments.snapshot import Snapshot
from medamad.storage.startup import start_store

HITS = 20
MOST_BATCHES = 1_000


def paths_in(snapshot: Snapshot) -> list[str]:
    texts = snapshot.texts(Dimension.PATH)
    return [texts[code] for part in snapshot.parts for code in part.codes(Dimension.PATH)]


def main() -> None:
    folder, most_kib = Path(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    store = start_store(folder, SETTINGS, AtOnce())
    website = awaited(store, store.add_website("example.com", 1))
    used = (store.environment.lmdb.info()["last_pgno"] + 1) * store.environment.page_bytes
    resource.setrlimit(resource.RLIMIT_FSIZE, (used + most_kib * 1024,) * 2)
    broken: list[str] = []
    store.broken.addCallback(broken.append)
    acknowledged: list[str] = []
    refused = ""
    for batch in range(MOST_BATCHES):
        paths = [f"/{batch}/{number}" for number in range(HITS)]
        came = awaited(store, store.append([a_view(path=path) for path in paths]))
        if isinstance(came, Failure):
            refused = came.getErrorMessage()
            break
        acknowledged += paths
    after = awaited(store, store.append([a_view(path="/after")]))
    outcome = {
        "acknowledged": acknowledged,
        "refused": refused,
        "broken": broken,
        "after": str(after),
        "read": store.read(website, paths_in),
    }
    Deferred.fromCoroutine(store.close())
    sys.stdout.write(json.dumps(outcome))


if __name__ == "__main__":
    main()
