"""The same views in DuckDB: a file sorted by time, and prepared statements."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Self

import duckdb
import numpy as np
from attrs import define
from duckdb_answers import Rows
from duckdb_sql import candidates
from numpy.typing import NDArray
from queries import Query
from traffic import Bulk

from medamad.domain.dimensions import VIEW_DIMENSIONS, Dimension, split_property
from medamad.lookup.countries import country_name
from medamad.lookup.languages import language_name, locale_name
from medamad.lookup.referrers import Sources

_TRIES: Final = 3
_FLAGS: Final = ("time_ms", "first_today", "first_of_page", "width_class")


@define
class DuckStore:
    """An open database, with a prepared statement for each query."""

    _connection: duckdb.DuckDBPyConnection
    _file: Path
    _prepared: dict[Query, str]

    @classmethod
    def filled(cls, file: Path, batches: Iterable[Bulk]) -> Self:
        """Open a file. If it does not exist, first store the batches in it, in order."""
        if not file.exists():
            part = file.with_suffix(".part")
            part.unlink(missing_ok=True)
            filling = cls(duckdb.connect(str(part)), part, {})
            filling._load(batches)
            filling.close()
            part.rename(file)
        return cls(duckdb.connect(str(file)), file, {})

    def _load(self, batches: Iterable[Bulk]) -> None:
        views = events = 0
        for number, batch in enumerate(batches):
            columns = _columns(batch.texts)
            if not number:
                self._make_tables(columns)
            self._insert_views(batch, columns, views)
            self._insert_properties(batch, views, events)
            views += len(batch)
            events += int(batch.event.max(initial=-1)) + 1
        self._connection.execute("CHECKPOINT")

    def prepare(self, query: Query) -> None:
        """Prepare the statement of a query: the fastest of its candidates."""
        name = f"q{len(self._prepared)}"
        texts = candidates(query)
        fastest = texts[0] if len(texts) == 1 else min(texts, key=self._least_ms)
        self._connection.execute(f"PREPARE {name} AS {fastest}")
        self._prepared[query] = name

    def ask(self, query: Query) -> tuple[Rows, float]:
        """Return the rows of a prepared query, and the milliseconds it took."""
        return self._timed(f"EXECUTE {self._prepared[query]}")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def bytes_used(self) -> int:
        """The size of the file."""
        return self._file.stat().st_size

    def _least_ms(self, text: str) -> float:
        return min(self._timed(text)[1] for _ in range(_TRIES))

    def _timed(self, text: str) -> tuple[Rows, float]:
        began = time.perf_counter()
        rows = self._connection.execute(text).fetchall()
        return rows, (time.perf_counter() - began) * 1000

    def _make_tables(self, columns: Mapping[str, tuple[Dimension, Sequence[str]]]) -> None:
        """Create the tables, with a sorted enumeration as the type of each text."""
        for name, (_, texts) in columns.items():
            self._execute(
                f"CREATE TYPE {name}_text AS ENUM (SELECT unnest($texts))",
                texts=sorted(set(texts)),
            )
            self._execute(
                f"CREATE TABLE texts_of_{name} AS "
                f"SELECT unnest(enum_range(NULL::{name}_text))::{name}_text AS text"
            )
        texts = ", ".join(f"{name} {name}_text" for name in columns)
        self._execute(
            "CREATE TABLE views (id UINTEGER, time_ms BIGINT, first_today BOOLEAN, "
            "first_of_page BOOLEAN, width_class UTINYINT, "
            f"duration_ms UINTEGER, {texts})"
        )
        self._execute(
            "CREATE TABLE properties (event UINTEGER, ordinal UTINYINT, time_ms BIGINT, "
            "view UINTEGER, name VARCHAR, value VARCHAR)"
        )

    def _insert_views(
        self, batch: Bulk, columns: Mapping[str, tuple[Dimension, Sequence[str]]], first: int
    ) -> None:
        rows: dict[str, NDArray[Any]] = {name: getattr(batch, name) for name in _FLAGS}
        rows["id"] = np.arange(first, first + len(batch), dtype=np.uint32)
        rows["duration_ms"] = batch.duration_ms
        texts = []
        for name, (dimension, named) in columns.items():
            rows[name] = batch.codes[dimension].astype(np.uint32) + 1
            self._execute(f"SET VARIABLE {name} = $texts", texts=list(named))
            texts.append(f"getvariable('{name}')[{name}]")
        self._connection.register("batch", rows)
        self._execute(
            f"INSERT INTO views SELECT id, {', '.join(_FLAGS)}, nullif(duration_ms, 0), "  # noqa: S608
            f"{', '.join(texts)} FROM batch"
        )
        self._connection.unregister("batch")

    def _insert_properties(self, batch: Bulk, first_view: int, first_event: int) -> None:
        names, values = zip(*map(split_property, batch.texts[Dimension.PROPERTY]), strict=True)
        self._execute("SET VARIABLE name = $texts", texts=list(names))
        self._execute("SET VARIABLE value = $texts", texts=list(values))
        begins = np.flatnonzero(np.diff(batch.event, prepend=-1))
        lengths = np.diff(begins, append=len(batch.event))
        rows = {
            "event": batch.event + first_event,
            "ordinal": np.arange(len(batch.event)) - np.repeat(begins, lengths),
            "time_ms": batch.event_time_ms,
            "view": np.where(batch.event_view < 0, -1, batch.event_view + first_view),
            "property": batch.property.astype(np.uint32) + 1,
        }
        self._connection.register("batch", rows)
        self._execute(
            "INSERT INTO properties SELECT event, ordinal, time_ms, nullif(view, -1), "
            "getvariable('name')[property], getvariable('value')[property] FROM batch"
        )
        self._connection.unregister("batch")

    def _execute(self, text: str, **parameters: Any) -> None:
        self._connection.execute(text, parameters or None)


def _columns(
    texts: Mapping[Dimension, Sequence[str]],
) -> dict[str, tuple[Dimension, Sequence[str]]]:
    """Return the columns of texts: one for each dimension, and those of display names."""
    columns = {
        dimension.attribute: (dimension, texts[dimension])
        for dimension in VIEW_DIMENSIONS
        if dimension in texts
    }
    further: tuple[tuple[str, Dimension, Callable[[str], str]], ...] = (
        ("source", Dimension.REFERRER, Sources.shipped().name_of),
        ("country", Dimension.COUNTRY, country_name),
        ("language", Dimension.LOCALE, language_name),
        ("locale", Dimension.LOCALE, locale_name),
    )
    for name, dimension, name_of in further:
        columns[name] = (dimension, [name_of(text) for text in texts[dimension]])
    return columns
