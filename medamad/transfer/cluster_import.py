"""What an import has to know of the hits in a cluster. Imported only where one is configured."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from medamad.query.clickhouse import hits
from medamad.query.clickhouse.reader import ClickHouseReader
from medamad.storage.import_batches import ImportBatch, Origins
from medamad.storage.segments.parts import enclosing_bounds
from medamad.transfer.import_rows import COMPARED, NOTHING_ELSEWHERE, ComparedTexts, HitsElsewhere

_TABLES: Final = ("views", "events")


def hits_in_cluster(
    reader: ClickHouseReader,
    collector: int,
    origins: Origins,
    batches: Sequence[ImportBatch],
    ranges: Sequence[tuple[str, int, int]],
) -> HitsElsewhere:
    """Return the hits of a website, of which an import into a collector's store may repeat some.

    `batches` are the finished imports, and `ranges` the numbers of the new one, by store. Raises
    Unavailable.
    """
    stores = {store for store, _, _ in ranges}
    has_numbers = origins.store in stores or any(span.store in stores for span in origins.spans)
    views, events = NOTHING_ELSEWHERE.views, NOTHING_ELSEWHERE.events
    if has_numbers:
        views, events = (hits.numbers(reader, table, collector) for table in _TABLES)
    others = {
        store: (hits.numbers(reader, "views", number), hits.numbers(reader, "events", number))
        for number, store in hits.stores(reader).items()
        if number != collector and store in stores
    }
    spans: dict[int, tuple[int, int]] = {}
    for table in _TABLES:
        for batch, span in hits.spans_of_batches(reader, table).items():
            spans[batch] = enclosing_bounds([spans.get(batch, span), span])
    last_ms = {batch.number: batch.last_ms for batch in batches if batch.number in spans}
    last_views: dict[int, Counter[ComparedTexts]] = {}
    for time_ms, texts in hits.texts_at(reader, last_ms, COMPARED):
        last_views.setdefault(time_ms, Counter())[texts] += 1
    return HitsElsewhere(views, events, spans, last_views, others)
