"""The cluster's tables are restored from a backup of ClickHouse's, as the manual says."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.clickhouse.daemon import command, initialized, leave, send
from support.clickhouse.servers import CLUSTER, Server
from support.daemon import Client, Daemon, finished, running, until

from medamad.clickhouse.tables import day_of
from medamad.cluster.settling import Settling
from medamad.query.reports import STATISTICS

pytestmark = pytest.mark.daemon

DATABASE = "backed_up"
NAMES = ("summary", *(statistic.name for statistic in STATISTICS))


def on_each(shards: Sequence[Server], statement: str) -> None:
    """Run a statement of the manual on all servers."""
    for server in shards:
        server.client("default").run(statement.replace("medamad", DATABASE))


def answers(client: Client) -> list[Any]:
    """Return what there is to say of the website."""
    path = "/api/website/example.com"
    return [client.get(f"{path}/{name}", visits="true") for name in NAMES]


def earlier(folder: Path, daemon: Daemon) -> str:
    """Write a file of ten days ago, of another store: as the views there are now."""
    file = folder / "views.csv"
    exported = ("export", daemon.data, "example.com", "--what", "views", "--output", str(file))
    assert finished(*exported).returncode == 0
    now = datetime.now(UTC)
    text = file.read_text("utf-8").replace("\n" + _store_in(file), "\nfeedfeedfeedfeed")
    for days in (0, 1):
        day = now - timedelta(days=days)
        text = text.replace(f"{day:%Y-%m-%d}T", f"{day - timedelta(days=10):%Y-%m-%d}T")
    file.write_text(text, "utf-8")
    return str(file)


def _store_in(file: Path) -> str:
    return file.read_text("utf-8").splitlines()[1].partition(",")[0]


def test_what_came_after_a_backup_is_sent_again(
    shards: tuple[Server, Server], tmp_path: Path
) -> None:
    manual = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text("utf-8")
    statements = [
        statement.strip()
        for block in manual.partition("## Backups")[2].split("```sql\n")[1:4]
        for statement in block.partition("```")[0].split(";")
        if statement.strip()
    ]
    urls = ", ".join(f'"{server.url}"' for server in shards)
    configuration = (
        f'[cluster]\nurls = [{urls}]\ndatabase = "{DATABASE}"\nname = "{CLUSTER}"\n'
        "replicated = false\n"
    )
    initialized(Daemon(tmp_path / "daemon", configuration=configuration))
    with running(tmp_path / "daemon", configuration=configuration) as daemon:
        _lose_a_shard(daemon, shards, statements, tmp_path)


def _lose_a_shard(
    daemon: Daemon, shards: tuple[Server, Server], statements: Sequence[str], folder: Path
) -> None:
    backup, forget, drop, restore = statements
    client = daemon.client()
    client.add_website("example.com")
    for number in range(20):
        send(daemon, number)
    summary = "/api/website/example.com/summary"
    until(lambda: client.get(summary)["current"]["pageviews"] == 20)
    done = finished("import", daemon.data, "--website", "example.com", earlier(folder, daemon))
    assert done.returncode == 0, done
    settling = Settling(shards[0].client(DATABASE))
    due = settling.due(day_of(int(datetime.now(UTC).timestamp() * 1000)))
    assert due
    for day in due:
        settling.settle(day)
    on_each(shards, backup)
    for number in range(20, 40):
        send(daemon, number)
    for number in (0, 39):
        leave(daemon, number, 70_000 + number)
    until(
        lambda: (
            client.get(summary)["current"]["pageviews"] == 60
            and '"waiting":0' in command(daemon, "status", "--json")[1]
        )
    )
    before = answers(client)
    kept, lost = shards[:1], shards[1:]
    on_each(lost, drop)
    until(lambda: client.request("GET", summary).status == 503)
    on_each(kept, forget)
    on_each(lost, restore)
    initialized(daemon)
    until(lambda: client.request("GET", summary).status == 200)
    assert answers(client) != before
    yesterday = (datetime.now(UTC) - timedelta(days=1)).date().isoformat()
    status, printed, error = command(daemon, "resend", "--since", yesterday)
    assert (status, "rows were sent again" in printed) == (0, True), error
    assert answers(client) == before
