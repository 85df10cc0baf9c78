"""What reports read in tests."""

from collections.abc import Sequence

from medamad.lookup.referrers import Sources
from medamad.query.embedded.reader import EmbeddedReader
from medamad.query.request import Cancellation, Query
from medamad.storage.segments.snapshot import Snapshot


def reader_of(
    snapshot: Snapshot, sources: Sources | None = None, rules: Sequence[Query] = ()
) -> EmbeddedReader:
    """Return the reader of a snapshot for a request that nobody cancels."""
    return EmbeddedReader(snapshot, sources or Sources({}), Cancellation(), rules)
