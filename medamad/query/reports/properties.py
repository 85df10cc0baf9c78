"""The report of properties: events by the names, or the values, of their properties."""

import numpy as np

from medamad.domain.dimensions import split_property
from medamad.lookup.referrers import Sources
from medamad.query.properties import count_properties
from medamad.query.request import Cancellation, Query
from medamad.query.result import Result
from medamad.query.rows import Columns, Row, fractions, make_rows, page_of_rows
from medamad.storage.segments.snapshot import Snapshot


def report(
    snapshot: Snapshot, query: Query, sources: Sources, cancellation: Cancellation
) -> Result[list[Row]]:
    """Return a row for each property name or, with a filter on it, for each name and value.

    Name (and value), the number of events with it and their share of those with any; most events
    first.
    """
    by_value = bool(query.filters_on(("prop_name",)))
    counts = count_properties(snapshot, query, sources, cancellation, by_value=by_value)
    numbers, labels = page_of_rows(
        np.flatnonzero(counts.events), (counts.events,), counts.labels.__getitem__, query.row_slice
    )
    columns: Columns = {"name": [split_property(label)[0] for label in labels]}
    if by_value:
        columns["value"] = [split_property(label)[1] for label in labels]
    events = counts.events[numbers]
    shares = fractions(events, np.array(counts.total))
    rows = make_rows({**columns, "events": events, "events_percentage": shares})
    return Result(rows, counts.gaps)
