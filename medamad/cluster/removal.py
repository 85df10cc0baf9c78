"""Delete rows in the cluster: of deleted websites and undone imports, and those that expire.

And forecast what retention would delete.
"""

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Final

from attrs import frozen

from medamad.clickhouse.client import Client, quoted
from medamad.clickhouse.native import Columns
from medamad.clickhouse.tables import (
    EVENTS,
    SEQUENCE_BITS,
    TEXTS,
    VIEWS,
    VISITS,
    Layout,
    Table,
    day_of,
    literal,
    number_at,
)
from medamad.storage.compaction.retention import Forecast

_WITH_TIMES: Final = (VIEWS, EVENTS, VISITS)
_IN_BACKGROUND: Final = {"mutations_sync": 0, "distributed_ddl_task_timeout": 0}
_NUMBER: Final = "if(visit > 0, visit, view)"
"""What the rows of a visit have in common, or of a view without one."""
_MOST_LISTED: Final = 5_000
"""How many visits are listed in a statement, which Keeper stores."""


def _date(time_ms: int) -> str:
    return f"toDate(toUInt16({day_of(time_ms)}))"


@frozen
class Removal:
    """Deletes rows. ClickHouse does it in the background, and whether it is restarted or not.

    A table gets one such mutation after the other: each reads all of it, and those that wait add
    up while a server is down.
    """

    client: Client
    layout: Layout

    def remove_websites(self, websites: Iterable[int]) -> bool:
        """Let all rows of websites be deleted; return whether there are none left.

        To be called until there are none. Raises ClickHouseError.
        """
        numbers = ", ".join(str(int(number)) for number in websites)
        left = [self._delete(table, f"website IN ({numbers})") for table in (*_WITH_TIMES, TEXTS)]
        return not any(left)

    def remove_batches(self, batches: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
        """Let the rows of import batches, given with their websites, be deleted.

        Returns those that have none left. To be called until all are returned. Raises
        ClickHouseError.
        """
        gone = []
        for website, batch in batches:
            condition = f"website = {int(website)} AND batch = {int(batch)}"
            left = [self._delete(table, condition) for table in _WITH_TIMES]
            if not any(left):
                gone.append((website, batch))
        return gone

    def remove_before(self, times_ms: Mapping[int, int]) -> None:
        """Let the visits that began before a time be deleted, by website.

        Views without a visit go by their own time, and so do events without a view. To be called
        again and again. Raises ClickHouseError.
        """
        websites_of: dict[int, list[str]] = {}
        for website, before_ms in times_ms.items():
            websites_of.setdefault(before_ms, []).append(str(int(website)))
        earlier, loose, begun, visits = [], [], [], []
        for before_ms, numbers in websites_of.items():
            of_websites = f"website IN ({', '.join(numbers)})"
            day = _date(before_ms)
            earlier.append(f"({of_websites} AND visit_day < {day})")
            visits.append(f"({of_websites} AND visit_day <= {day} AND time_ms < {before_ms})")
            of_day = f"{of_websites} AND visit_day = {day}"
            loose.append(f"({of_day} AND view = 0 AND time_ms < {before_ms})")
            begun += self._begun_before(of_day, before_ms)
        if not websites_of:
            return
        self._delete(VISITS, " OR ".join(visits))
        if self._delete(EVENTS, " OR ".join((*earlier, *loose, *begun))):
            # Only the views say when their visit began: they go after the events.
            begun = []
        self._delete(VIEWS, " OR ".join((*earlier, *begun)))

    def _begun_before(self, of_day: str, before_ms: int) -> list[str]:
        """Return conditions of which a row of a day fulfils one if its visit began before a time.

        The numbers of visits mostly ascend with time, so that few of them have to be listed.
        """
        views = self.client.table(VIEWS.name)
        asked = f"SELECT count() AS n FROM {views} WHERE {of_day} AND time_ms < {before_ms}"
        if not int(self.client.query(asked)["n"][0]):
            return []
        beginnings = self._beginnings(of_day)
        found = self.client.query(
            f"SELECT bitShiftRight(number, {SEQUENCE_BITS}) AS collector,"
            f" countIf(began_ms >= {before_ms}) AS kept,"
            f" minIf(number, began_ms >= {before_ms}) AS first_kept"
            f" FROM {beginnings} GROUP BY collector"
        )
        columns = (found.get(name, ()) for name in ("collector", "kept", "first_kept"))
        bounds = [
            (number_at(collector, 1), first_kept if kept else number_at(collector + 1, 1))
            for collector, kept, first_kept in (map(int, row) for row in zip(*columns, strict=True))
        ]

        def in_order(number: str) -> list[str]:
            return [f"({number} >= {first} AND {number} < {end})" for first, end in bounds]

        others = self.client.query(
            f"SELECT number FROM {beginnings} WHERE began_ms < {before_ms}"
            f" AND NOT ({' OR '.join(in_order('number'))}) ORDER BY number LIMIT {_MOST_LISTED}"
        ).get("number", ())
        conditions = in_order(_NUMBER)
        if len(others):
            conditions.append(f"{_NUMBER} IN ({', '.join(map(str, others))})")
        return [f"({of_day} AND view > 0 AND {condition})" for condition in conditions]

    def _beginnings(self, of_day: str) -> str:
        """Return the visits of a day, and views without one, with when each began."""
        return (
            f"(SELECT {_NUMBER} AS number, argMin(time_ms, view) AS began_ms"
            f" FROM {self.client.table(VIEWS.name)} WHERE {of_day} GROUP BY number)"
        )

    def forecast(self, website: int, before_ms: int | None) -> Forecast:
        """Return what is kept of a website, and what `remove_before` a time deletes, None for none.

        Bytes are the website's share of the tables of views and events in one replica, by its rows.
        Raises ClickHouseError.
        """
        due = "0"
        if before_ms is not None:
            day = _date(before_ms)
            beginnings = self._beginnings(f"website = {website} AND visit_day = {day}")
            begun = f"SELECT number FROM {beginnings} WHERE began_ms < {before_ms}"
            is_before = f"if(view > 0, {_NUMBER} IN ({begun}), time_ms < {before_ms})"
            due = f"(visit_day < {day} OR (visit_day = {day} AND {is_before}))"
        asked = (
            f"SELECT count() AS n, min(time_ms) AS earliest_ms, countIf({due}) AS due_rows,"
            f" uniqExactIf({{number}}, {due}) AS due FROM {{table}} FINAL WHERE website = {website}"
        )
        views, events = (
            self.client.query(asked.format(number=number, table=self.client.table(table.name)))
            for number, table in (("view", VIEWS), ("event", EVENTS))
        )
        sizes = self._bytes_of_row(VIEWS), self._bytes_of_row(EVENTS)
        kept, due_bytes = (
            sizes[0] * int(views[name][0]) + sizes[1] * int(events[name][0])
            for name in ("n", "due_rows")
        )
        return Forecast(
            views=int(views["n"][0]),
            bytes=round(kept),
            earliest_ms=int(views["earliest_ms"][0]) if views["n"][0] else None,
            days=0,
            bytes_of_days=0,
            due_views=int(views["due"][0]),
            due_events=int(events["due"][0]),
            due_bytes=round(due_bytes),
            new_days=0,
            bytes_of_new_days=0,
            due_days=0,
            bytes_of_due_days=0,
            damaged=(),
        )

    def _bytes_of_row(self, table: Table) -> float:
        """Return how many bytes a row of a table takes on disk, on average."""
        size = rows = 0
        for client in self.layout.clients(self.client):
            with closing(client):
                of_parts = "sum(bytes_on_disk) AS bytes, sum(rows) AS n"
                found = self._ask(client, of_parts, "parts", table, "active")
                size, rows = size + int(found["bytes"][0]), rows + int(found["n"][0])
        return size / max(rows, 1)

    def _delete(self, table: Table, condition: str) -> bool:
        """Let rows be deleted, unless the table is at such work; return whether there are any."""
        layout = self.layout
        name = self.client.table(layout.local(table))
        on = f" ON CLUSTER {quoted(layout.cluster)}" if layout.is_on_cluster else ""
        rows = self.client.table(table.name) if on else name
        are_there = False
        for client in layout.clients(self.client):
            with closing(client):
                found = client.query(f"SELECT count() AS n FROM {rows} WHERE {condition}")
                # A mutation takes time even if it finds nothing.
                if not int(found["n"][0]):
                    continue
                are_there = True
                if not self._is_busy(client, table):
                    statement = f"ALTER TABLE {name}{on} DELETE WHERE {condition}"
                    client.run(statement, settings=_IN_BACKGROUND)
        return are_there

    def _is_busy(self, client: Client, table: Table) -> bool:
        """Return whether a server, or any shard of a cluster, has a mutation that is not done."""
        return bool(self._ask(client, "count() AS n", "mutations", table, "NOT is_done")["n"][0])

    def _ask(
        self, client: Client, columns: str, of_system: str, table: Table, condition: str
    ) -> Columns:
        """Return what a server knows of a table, or one replica of each shard of a cluster."""
        layout, rows = self.layout, f"system.{of_system}"
        if layout.is_on_cluster:
            rows = f"cluster({literal(layout.cluster)}, {rows})"
        return client.query(
            f"SELECT {columns} FROM {rows} WHERE database = {{database:String}}"
            f" AND table = {{table:String}} AND {condition}",
            parameters={
                "database": client.connecting.database,
                "table": layout.local(table),
            },
        )
