"""Settle days: make rows of the visits that began on a day once no more hits of them may come.

Grouping views by visit takes most of the time of a question about visits. Whoever sends hits of a
day that may be settled says so before and after (`touch`), so that readers group views again until
the day is settled anew.
"""

from collections.abc import Iterable, Mapping
from secrets import randbits
from typing import Final

from attrs import frozen

from medamad.clickhouse.client import WRITING, Client, Parameter
from medamad.clickhouse.tables import DAYS, EVENTS, VIEWS, VISITS, insert, settled_days
from medamad.domain.dimensions import VIEW_DIMENSIONS

_TOUCHED_AFTER: Final = 2
"""Days before today that get hits as a matter of course: a visit lasts a day at most, and its last
page may be left a day later."""
_SETTLED_AFTER: Final = _TOUCHED_AFTER + 2
"""Days before today that get none, one more because of the clocks of collectors."""


_OF_ROWS: Final[Mapping[str, Parameter]] = {
    # Rows that belong together are on one shard.
    "distributed_product_mode": "local",
    "do_not_merge_across_partitions_select_final": 1,
    "prefer_column_name_to_alias": 1,
}


def touch(client: Client, days: Iterable[int], today: int, **settings: int) -> None:
    """Say that hits of some days are sent now, or were just sent, if that is late for their days.

    A day is a `day_of`. Raises ClickHouseError.
    """
    late = sorted({day for day in days if day < today - _TOUCHED_AFTER})
    if late:
        ids = [1 + randbits(63) for _ in late]
        insert(client, DAYS, {"visit_day": late, "id": ids, "seen": [0] * len(late)}, **settings)


@frozen
class Settling:
    """Makes the rows of VISITS. It can be repeated, and cut off at any moment."""

    client: Client
    quorum: int = 1

    def due(self, today: int) -> list[int]:
        """Return the days that are to be settled, ascending. Raises ClickHouseError."""
        found = self.client.query(
            f"SELECT DISTINCT visit_day AS day FROM {self.client.table(VIEWS.name)}"
            f" WHERE visit_day < toDate({today - _SETTLED_AFTER + 1}) ORDER BY visit_day"
        )
        settled = set(settled_days(self.client))
        return [day for day in map(int, found.get("day", ())) if day not in settled]

    def settle(self, day: int) -> None:
        """Settle a day. Raises ClickHouseError."""
        seen = self.times_touched(day)
        client, of_day = self.client, f"visit_day = toDate({day})"
        views, events = (client.table(table.name) for table in (VIEWS, EVENTS))
        late = f"SELECT visit FROM {events} WHERE {of_day} AND visit > 0 AND late"
        first = ", ".join(
            f"anyIf({each.attribute}, view = visit) AS of_{each.attribute}"
            for each in VIEW_DIMENSIONS
        )
        rows = (
            "SELECT website, visit_day, visit, anyIf(time_ms, view = visit) AS began_ms,"
            f" count() AS n, sum(duration_ms) AS ms, toUInt8(visit IN ({late})) AS is_engaged,"
            " anyIf(batch, view = visit) AS of_batch, argMax(path, view) AS last,"
            f" groupUniqArray(path) AS seen_paths, {first},"
            f" n + ms + is_engaged FROM {views} FINAL WHERE {of_day} AND visit > 0"
            " GROUP BY website, visit_day, visit HAVING min(view) = visit"
        )
        client.run(
            f"INSERT INTO {client.table(VISITS.name)} ({', '.join(VISITS.columns)}) {rows}",
            settings={**WRITING, **_OF_ROWS, **self._safely()},
        )
        self.say_settled(day, seen)

    def times_touched(self, day: int) -> int:
        """Return how often something of a day was sent late."""
        found = self.client.query(
            "SELECT uniqExactIf(id, id > 0) AS seen"
            f" FROM {self.client.table(DAYS.name)} WHERE visit_day = toDate({day})"
        )
        return int(found["seen"][0])

    def say_settled(self, day: int, seen: int) -> None:
        """Say that the visits of a day were made after it was touched `seen` times."""
        row = {"visit_day": [day], "id": [0], "seen": [seen]}
        insert(self.client, DAYS, row, **self._safely())

    def _safely(self) -> dict[str, int]:
        return {"insert_quorum": self.quorum} if self.quorum > 1 else {}
