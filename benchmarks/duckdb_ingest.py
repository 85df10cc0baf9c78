"""Storing hits in DuckDB as they come: each view a row and a commit of its own."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb

from medamad.domain.dimensions import VIEW_DIMENSIONS
from medamad.domain.hits import View

_TYPES: Final = {
    "website": "UINTEGER",
    "time_ms": "BIGINT",
    "beacon": "VARCHAR",
    "first_today": "BOOLEAN",
    "first_of_page": "BOOLEAN",
    "width_class": "UTINYINT",
    **{dimension.attribute: "VARCHAR" for dimension in VIEW_DIMENSIONS},
}


def rows_of(views: Sequence[View]) -> list[list[Any]]:
    """Return views as rows of values."""
    return [[getattr(view, name) for name in _TYPES] for view in views]


def per_second(file: Path, rows: Sequence[Sequence[Any]], connections: int) -> float:
    """Insert rows over several connections at once, committing each. Return the rows per second.

    DuckDB's defaults: every commit is synced.
    """
    with _table(file) as table, ThreadPoolExecutor(connections) as threads:
        names, values = ", ".join(_TYPES), ", ".join("?" for _ in _TYPES)
        statement = f"INSERT INTO views ({names}) VALUES ({values})"  # noqa: S608
        cursors = [table.cursor() for _ in range(connections)]
        began = time.perf_counter()
        shares = [
            threads.submit(_insert, cursor, statement, rows[number::connections])
            for number, cursor in enumerate(cursors)
        ]
        for share in shares:
            share.result()
        took_s = time.perf_counter() - began
        assert table.execute("SELECT count(*) FROM views").fetchone() == (len(rows),)
    return len(rows) / took_s


def _insert(
    cursor: duckdb.DuckDBPyConnection, statement: str, rows: Sequence[Sequence[Any]]
) -> None:
    for row in rows:
        cursor.execute(statement, row)


@contextmanager
def _table(file: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(str(file))
    try:
        columns = ", ".join(f"{name} {type_}" for name, type_ in _TYPES.items())
        connection.execute(f"CREATE TABLE views ({columns}, duration_ms UINTEGER)")
        yield connection
    finally:
        connection.close()
