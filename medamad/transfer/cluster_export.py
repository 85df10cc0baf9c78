"""What is exported from a cluster. Imported only where one is configured."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import cached_property
from typing import Any

import numpy as np
from attrs import field, frozen
from numpy.typing import NDArray

from medamad.domain.dimensions import VIEW_DIMENSIONS, ViewFlag
from medamad.domain.hits import NUMBERS_OF_HITS
from medamad.query.clickhouse import hits
from medamad.query.clickhouse.reader import ClickHouseReader
from medamad.query.period import Period
from medamad.query.reports import Report
from medamad.query.request import NO_GAPS, Gaps, Query, Result
from medamad.storage.import_batches import Origins
from medamad.transfer.export import STEP_ROWS, RowPiece, Source, view_cells
from medamad.transfer.tables import EVENTS_TABLE, VIEWS_TABLE, Table, number_cells


@frozen(kw_only=True)
class ClusterSource(Source):
    """The hits of a website that this store has sent to a cluster, in a period."""

    reader: ClickHouseReader
    origins: Origins
    period: Period
    zone: tzinfo = UTC
    has_visits: bool = True
    _totals: dict[str, int] = field(factory=dict, init=False)
    """How many rows of a table are to come, by its name."""

    def row_gaps(self, table: Table) -> Gaps:
        """Return no gaps: there are no rollups. Raises Unavailable, before the first bytes."""
        self._count(table)
        return NO_GAPS

    def views(self) -> Iterator[RowPiece]:
        """Return the views, visit by visit. Raises Unavailable."""
        return self._pieces(VIEWS_TABLE)

    def events(self) -> Iterator[RowPiece]:
        """Return the properties of the events, visit by visit. Raises Unavailable."""
        return self._pieces(EVENTS_TABLE)

    def report(self, report: Report, query: Query) -> Result[list[Any]]:
        """Return what a report finds. Raises Unavailable."""
        return hits.run_report(self.reader, lambda reader: report(reader, query))

    def _count(self, table: Table) -> int:
        if table.name not in self._totals:
            self._totals[table.name] = hits.count_rows(self.reader, table.name, self.period)
        return self._totals[table.name]

    def _pieces(self, table: Table) -> Iterator[RowPiece]:
        cells = self._view_cells if table is VIEWS_TABLE else self._event_cells
        done, total = 0, self._count(table)
        for piece in hits.rows_of(self.reader, table.name, self.period, STEP_ROWS):
            rows = cells(piece)
            done += len(rows[0])
            yield RowPiece(rows, done, max(total, done))
        yield RowPiece([()] * len(table.columns), done, done)

    def _view_cells(self, piece: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        stores, numbers = self._origins_of(piece, piece["view"])
        visits = self._origins_of(piece, piece["visit"])[1]
        values: dict[str, Sequence[Any]] = {
            "store": stores,
            "view": numbers,
            "visit": [number or None for number in visits],
            "time": piece["time_ms"].tolist(),
            "duration_ms": [number or None for number in piece["duration_ms"].tolist()],
            **{flag.attribute: (piece[flag.attribute] > 0).tolist() for flag in ViewFlag},
            **{
                number.attribute: number_cells(number, piece[number.attribute].tolist())
                for number in NUMBERS_OF_HITS
            },
            **{dimension.attribute: piece[dimension.attribute] for dimension in VIEW_DIMENSIONS},
        }
        return view_cells(values, self.reader.sources)

    def _event_cells(self, piece: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        stores, numbers = self._origins_of(piece, piece["event"])
        viewed = self._origins_of(piece, piece["view"])[1]
        return [
            stores,
            numbers,
            [number or None for number in viewed],
            np.asarray(piece["time_ms"], np.int64).tolist(),
            piece["name"],
            piece["value"],
        ]

    @cached_property
    def _others(self) -> Mapping[int, str]:
        """The stores of the other collectors, by their numbers."""
        stores = hits.stores(self.reader).items()
        return {number: store for number, store in stores if store != self.origins.store}

    def _origins_of(
        self, piece: Mapping[str, Any], numbers: NDArray[np.uint64]
    ) -> tuple[list[str], list[int]]:
        """Return the store that each hit is from, and its number there."""
        stores, found = self.origins.of(numbers)
        for place, collector in enumerate(piece["collector"].tolist()):
            if collector in self._others:
                stores[place], found[place] = self._others[collector], int(numbers[place])
        return stores, found
