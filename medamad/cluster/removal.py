"""Delete rows in the cluster: of deleted websites, and those that are past their retention."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Final

from attrs import frozen

from medamad.clickhouse.client import Client, quoted
from medamad.clickhouse.tables import EVENTS, TEXTS, VIEWS, VISITS, Layout, Table, day_of, literal

_WITH_TIMES: Final = (VIEWS, EVENTS, VISITS)
_IN_BACKGROUND: Final = {"mutations_sync": 0, "distributed_ddl_task_timeout": 0}


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

    def remove_before(self, times_ms: Mapping[int, int]) -> None:
        """Let the views and events from before a time be deleted, by website.

        To be called again and again. Raises ClickHouseError.
        """
        expired = " OR ".join(
            # No visit has a row from before the day on which it began.
            f"website = {int(website)} AND visit_day <= toDate(toUInt16({day_of(before_ms)}))"
            f" AND time_ms < {int(before_ms)}"
            for website, before_ms in times_ms.items()
        )
        if expired:
            for table in _WITH_TIMES:
                self._delete(table, expired)

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
        layout, mutations = self.layout, "system.mutations"
        if layout.is_on_cluster:
            mutations = f"cluster({literal(layout.cluster)}, {mutations})"
        found = client.query(
            f"SELECT count() AS n FROM {mutations} WHERE database = {{database:String}}"
            f" AND table = {{table:String}} AND NOT is_done",
            parameters={
                "database": client.connecting.database,
                "table": layout.local(table),
            },
        )
        return bool(found["n"][0])
