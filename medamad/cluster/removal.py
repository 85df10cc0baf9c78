"""Delete rows in the cluster: of deleted websites, and of visits that are past their retention."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import Final

from attrs import frozen

from medamad.clickhouse.client import Client, quoted
from medamad.clickhouse.tables import EVENTS, TEXTS, VIEWS, VISITS, Layout, Table

_WITH_DAYS: Final = (VIEWS, EVENTS, VISITS)


@frozen
class Removal:
    """Deletes rows. ClickHouse does it in the background, and whether it is restarted or not."""

    client: Client
    layout: Layout

    def remove_websites(self, websites: Iterable[int]) -> None:
        """Delete all rows of websites. Raises ClickHouseError."""
        numbers = ", ".join(str(int(number)) for number in websites)
        for table in (*_WITH_DAYS, TEXTS):
            self._delete(table, f"website IN ({numbers})")

    def remove_days(self, first_days: Mapping[int, int]) -> None:
        """Delete the visits that began before a day, with their views and events, by website.

        A day is a number of days since 1970, in UTC. Raises ClickHouseError.
        """
        expired = " OR ".join(
            f"website = {int(website)} AND visit_day < toDate({int(day)})"
            for website, day in first_days.items()
        )
        if not expired:
            return
        for table in _WITH_DAYS:
            found = self.client.query(
                f"SELECT count() AS rows FROM {self.client.table(table.name)} WHERE {expired}"
            )
            # A mutation takes time even if it finds nothing.
            if int(found["rows"][0]):
                self._delete(table, expired)

    def _delete(self, table: Table, condition: str) -> None:
        layout = self.layout
        on = f" ON CLUSTER {quoted(layout.cluster)}" if layout.is_on_cluster else ""
        statement = (
            f"ALTER TABLE {self.client.table(layout.local(table))}{on} DELETE WHERE {condition}"
        )
        for client in layout.clients(self.client):
            with closing(client):
                client.run(statement, settings={"distributed_ddl_task_timeout": 0} if on else {})
