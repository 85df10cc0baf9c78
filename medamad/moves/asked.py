"""What is asked for of a website: which table, of what period, in which format."""

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from medamad.model.errors import BadRequest
from medamad.moves import exporting, reports
from medamad.moves.exporting import Exported, Piece
from medamad.moves.formats import FORMATS
from medamad.moves.tables import STATISTICS, TABLES, VIEWS, Table
from medamad.stats.filters import Condition
from medamad.stats.period import ALWAYS, Period

WHAT: Final = tuple(TABLES)
FORMAT_NAMES: Final = tuple(FORMATS)


@frozen(kw_only=True)
class Asked:
    """An export that is asked for. Raises BadRequest for filters that its table has not."""

    what: str = VIEWS.name
    format: str = "csv"
    period: Period = ALWAYS
    conditions: tuple[Condition, ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.conditions and self.what != STATISTICS.name:
            raise BadRequest(f"{self.conditions[0].field}: expected a filter with statistics alone")

    @property
    def table(self) -> Table:
        """The table that is asked for."""
        return TABLES[self.what]

    def file_name(self, hostname: str) -> str:
        """Give a name for the file."""
        return f"{hostname}-{self.what}.{self.format}"

    def pieces(self, exported: Exported, now_ms: int) -> Iterator[Piece]:
        """Give the rows, a little with every step."""
        if self.what == VIEWS.name:
            return exporting.views(exported)
        if self.what == STATISTICS.name:
            return reports.statistics(exported, self.conditions, now_ms)
        return exporting.events(exported)

    def written(self, exported: Exported, now_ms: int) -> Iterator["Written"]:
        """Give the bytes of the file, a little with every step.

        What views and events are without is noted before the first, what statistics are, by then.
        Raises BadRequest, at the first step, where what the format needs is not installed.
        """
        if self.table is not STATISTICS:
            exported.note_summed(self.table)
        writer = FORMATS[self.format].writer(self.table)
        yield Written(writer.begin(), 0, 0)
        done = total = 0
        for piece in self.pieces(exported, now_ms):
            done, total = piece.done, piece.total
            yield Written(writer.rows(piece.rows) if len(piece.rows[0]) else b"", done, total)
        yield Written(writer.end(), done, total)


@frozen
class Written:
    """Some bytes of a file, and how far it has come."""

    data: bytes
    done: int
    total: int
