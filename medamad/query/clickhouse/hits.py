"""The views and events of a website in a cluster, for exports and imports."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from medamad.clickhouse.client import ClickHouseError
from medamad.clickhouse.tables import collectors_in, number_at, sequences_in, stores_of
from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, ViewFlag
from medamad.domain.hits import NUMBERS_OF_HITS
from medamad.query.clickhouse.engine import unavailable
from medamad.query.clickhouse.reader import ClickHouseReader
from medamad.query.clickhouse.sql import during
from medamad.query.clickhouse.website_rows import as_texts, column_of
from medamad.query.period import Period

T = TypeVar("T")
Columns: TypeAlias = Mapping[str, Any]
"""An array of numbers or a list of texts by the name of a column of `medamad.clickhouse.tables`."""


@contextmanager
def _answered() -> Iterator[None]:
    """Turn an error of a server into Unavailable."""
    try:
        yield
    except ClickHouseError as error:
        raise unavailable() from error


def run_report(reader: ClickHouseReader, report: Callable[[ClickHouseReader], T]) -> T:
    """Return what a report finds. Raises Unavailable."""
    with _answered():
        return report(reader)


def count_rows(reader: ClickHouseReader, table: str, period: Period) -> int:
    """Return how many rows of a table are in a period, those that were sent twice counted twice.

    Raises Unavailable.
    """
    rows = reader.all_rows.of_website(table, *during(period), final=False)
    with _answered():
        return int(reader.run(f"SELECT count() AS n FROM {rows}")["n"][0])


def stores(reader: ClickHouseReader) -> Mapping[int, str]:
    """Return the store of each collector, by its number. Raises Unavailable."""
    with _answered():
        # The first that had a number is the one that sends.
        return dict(reversed(stores_of(reader.client)))


def numbers(reader: ClickHouseReader, table: str, collector: int) -> NDArray[np.int64]:
    """Return the numbers of the views or events that a collector has stored, in any order.

    Raises Unavailable.
    """
    name = "view" if table == "views" else "event"
    first, end = number_at(collector, 1), number_at(collector + 1, 1)
    rows = reader.all_rows.of_website(table, f"{name} >= {first}", f"{name} < {end}", final=False)
    with _answered():
        found = reader.run(f"SELECT DISTINCT {name} FROM {rows}")
    return sequences_in(np.asarray(found.get(name, ()), np.uint64)).astype(np.int64)


def spans_of_batches(reader: ClickHouseReader, table: str) -> dict[int, tuple[int, int]]:
    """Return the first and the last time of the hits of each import batch, in Unix milliseconds.

    0 stands for the hits that came from no import. Raises Unavailable.
    """
    with _answered():
        found = reader.run(
            "SELECT batch, min(time_ms) AS first_ms, max(time_ms) AS last_ms"
            f" FROM {reader.all_rows.of_website(table, final=False)} GROUP BY batch"
        )
    batches, first, last = (
        column_of(found, name).tolist() for name in ("batch", "first_ms", "last_ms")
    )
    return dict(zip(batches, zip(first, last, strict=True), strict=True))


def texts_at(
    reader: ClickHouseReader, times_ms: Mapping[int, int], dimensions: Sequence[Dimension]
) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Return the time and some texts of the views that import batches have at a time of each.

    Raises Unavailable.
    """
    if not times_ms:
        return
    pairs = ", ".join(f"({batch}, {time_ms})" for batch, time_ms in times_ms.items())
    names = ", ".join(dimension.attribute for dimension in dimensions)
    rows = reader.all_rows.of_website("views", f"(batch, time_ms) IN ({pairs})")
    with _answered():
        found = reader.run(f"SELECT time_ms, {as_texts(names)} FROM {rows}")
    texts = (found.get(f"as_{dimension.attribute}", ()) for dimension in dimensions)
    yield from zip(column_of(found, "time_ms").tolist(), zip(*texts, strict=True), strict=True)


_SEQUENCES: Final = ("visit", "view", "event")
_KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "views": ("visit_day", "visit", "view"),
    "events": ("visit_day", "visit", "view", "event", "place"),
}
"""The columns that rows of a table are in the order of."""
_OTHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "views": (
        "time_ms",
        "duration_ms",
        *(flag.attribute for flag in ViewFlag),
        *(number.attribute for number in NUMBERS_OF_HITS),
        as_texts(", ".join(dimension.attribute for dimension in VIEW_DIMENSIONS)),
    ),
    "events": ("time_ms", as_texts("name, value")),
}


def rows_of(reader: ClickHouseReader, table: str, period: Period, size: int) -> Iterator[Columns]:
    """Return the rows of a table in a period in pieces of up to `size`, in the order of visits.

    Numbers are those of the `collector`, which has a column. Raises Unavailable.
    """
    key = _KEYS[table]
    columns, order = ", ".join((*key, *_OTHERS[table])), ", ".join(key)
    following: list[str] = []
    while True:
        rows = reader.all_rows.of_website(table, *during(period), *following)
        with _answered():
            found = reader.run(f"SELECT {columns} FROM {rows} ORDER BY {order} LIMIT {size}")
        count = len(found["view"]) if found else 0
        if count:
            identity = "event" if table == "events" else "view"
            yield {"collector": collectors_in(found[identity])} | {
                name.removeprefix("as_"): sequences_in(column) if name in _SEQUENCES else column
                for name, column in found.items()
            }
        if count < size:
            return
        following = [_after([(name, int(found[name][-1])) for name in key])]


def _after(last: Sequence[tuple[str, int]]) -> str:
    """Return the condition that a row comes after another, by the columns of its key."""
    condition = "0"
    for name, value in reversed(last):
        number = f"toDate(toUInt16({value}))" if name == "visit_day" else str(value)
        condition = f"({name} > {number} OR ({name} = {number} AND {condition}))"
    return condition
