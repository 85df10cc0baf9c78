"""The views and events of a website in a cluster, piece by piece, for exports."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias, TypeVar

from attrs import frozen

from medamad.clickhouse.client import ClickHouseError
from medamad.clickhouse.tables import collectors_in, sequences_in, stores_of
from medamad.domain.dimensions import VIEW_DIMENSIONS, ViewFlag
from medamad.domain.hits import NUMBERS_OF_HITS
from medamad.query.clickhouse.engine import unavailable
from medamad.query.clickhouse.reader import ClickHouseReader
from medamad.query.clickhouse.sql import during
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
    rows = reader.whole.of_website(table, *during(period), final=False)
    with _answered():
        return int(reader.run(f"SELECT count() AS n FROM {rows}")["n"][0])


def stores(reader: ClickHouseReader) -> Mapping[int, str]:
    """Return the store of each collector, by its number. Raises Unavailable."""
    with _answered():
        # The first that had a number is the one that sends.
        return dict(reversed(stores_of(reader.client)))


@frozen
class _Table:
    """A table whose rows are read, in the order of a key."""

    name: str
    key: tuple[str, ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]


_SEQUENCES: Final = ("visit", "view", "event")


_VIEWS: Final = _Table(
    "views",
    ("visit_day", "visit", "view"),
    (
        "time_ms",
        "duration_ms",
        *(flag.attribute for flag in ViewFlag),
        *(number.attribute for number in NUMBERS_OF_HITS),
    ),
    tuple(dimension.attribute for dimension in VIEW_DIMENSIONS),
)
_EVENTS: Final = _Table(
    "events",
    ("visit_day", "visit", "view", "event", "place"),
    ("time_ms",),
    ("name", "value"),
)


def views(reader: ClickHouseReader, period: Period, size: int) -> Iterator[Columns]:
    """Return the views of a period in pieces of up to `size`, in the order of their visits.

    Numbers are those of the `collector`, which has a column. Raises Unavailable.
    """
    return _pieces(reader, _VIEWS, period, size)


def events(reader: ClickHouseReader, period: Period, size: int) -> Iterator[Columns]:
    """Return the properties of the events of a period in pieces of up to `size`.

    Numbers are those of the `collector`, which has a column. Raises Unavailable.
    """
    return _pieces(reader, _EVENTS, period, size)


def _pieces(
    reader: ClickHouseReader, table: _Table, period: Period, size: int
) -> Iterator[Columns]:
    texts = (f"CAST({name} AS String) AS as_{name}" for name in table.texts)
    columns, order = ", ".join((*table.key, *table.numbers, *texts)), ", ".join(table.key)
    following: list[str] = []
    while True:
        rows = reader.whole.of_website(table.name, *during(period), *following)
        with _answered():
            found = reader.run(f"SELECT {columns} FROM {rows} ORDER BY {order} LIMIT {size}")
        count = len(found["view"]) if found else 0
        if count:
            identity = "event" if table is _EVENTS else "view"
            yield {
                "collector": collectors_in(found[identity]),
            } | {
                name.removeprefix("as_"): sequences_in(column) if name in _SEQUENCES else column
                for name, column in found.items()
            }
        if count < size:
            return
        following = [_after([(name, int(found[name][-1])) for name in table.key])]


def _after(last: Sequence[tuple[str, int]]) -> str:
    """Return the condition that a row comes after another, by the columns of its key."""
    condition = "0"
    for name, value in reversed(last):
        number = f"toDate(toUInt16({value}))" if name == "visit_day" else str(value)
        condition = f"({name} > {number} OR ({name} = {number} AND {condition}))"
    return condition
