"""Two shards of two replicas with ZooKeeper: Debian's ClickHouse, which is old, but replicates.

The current one that the other tests use has no replicas. The old one lacks codecs, indexes of time
and typed parameters, so that it is for writing and faults alone.
"""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from attrs import define, field, frozen
from support.daemon import PATIENCE_S, free_port

from medamad.clickhouse import tables
from medamad.clickhouse.client import Client, Connecting, Unavailable

SERVER: Final = "/usr/sbin/clickhouse-server"
ZOOKEEPER: Final = "/usr/share/java/zookeeper.jar"
ARE_THERE: Final = all((Path(SERVER).exists(), Path(ZOOKEEPER).exists(), shutil.which("java")))
WHERE: Final = "Debian's clickhouse-server and zookeeper are not installed"
NAME: Final = "both"
DATABASE: Final = "stats"
_START_S: Final = 15.0
_SHARDS: Final = 2
_REPLICAS: Final = 2
_KNOWN: Final = (
    *("query", "readonly", "wait_end_of_query", "max_execution_time", "max_memory_usage"),
    *("distributed_product_mode", "skip_unavailable_shards", "insert_distributed_sync"),
    *("insert_quorum", "insert_quorum_timeout", "insert_deduplicate"),
)
"""Settings that the old server knows."""


_OLD_TYPES: Final = {tables.TEXT: "String"}


class OldClient(Client):
    """Leaves out what the old server does not know."""

    def _post(self, settings: Mapping[str, Any], *others: Any) -> bytes:
        known = {name: value for name, value in settings.items() if name in _KNOWN}
        return super()._post(known, *others)


@frozen
class Ports:
    """The ports of a server."""

    http: int = field(factory=free_port)
    tcp: int = field(factory=free_port)
    interserver: int = field(factory=free_port)


@define(eq=False)
class Node:
    """A server, which can be killed and started again on what it has."""

    folder: Path
    shard: int
    ports: Ports
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.ports.http}"

    def start(self) -> None:
        if self.process is not None:
            return
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                (SERVER, f"--config-file={self.folder / 'config.xml'}"),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    @property
    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@define(eq=False)
class Replicas:
    """The servers, and ZooKeeper."""

    folder: Path
    nodes: list[Node] = field(factory=list)
    keeper_port: int = field(factory=free_port)
    keeper: subprocess.Popen[bytes] | None = None

    def client(self, *nodes: Node) -> OldClient:
        """Return a client of some servers, or of all."""
        urls = [node.url for node in nodes or self.nodes]
        return OldClient(Connecting(urls=urls, database=DATABASE, timeout_s=60.0))

    def start_keeper(self) -> None:
        if self.keeper is None:
            with (self.folder / "keeper.log").open("ab") as log:
                self.keeper = subprocess.Popen(
                    (
                        *("java", "-Xmx128m", "-Dzookeeper.admin.enableServer=false"),
                        *("-cp", f"/etc/zookeeper/conf_example:{ZOOKEEPER}"),
                        "org.apache.zookeeper.server.ZooKeeperServerMain",
                        str(self.folder / "zoo.cfg"),
                    ),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    cwd=self.folder,
                )

    def kill_keeper(self) -> None:
        if self.keeper is not None:
            self.keeper.kill()
            self.keeper.wait()
            self.keeper = None

    def start(self) -> None:
        """Start what does not run, and wait until all of it answers."""
        self.start_keeper()
        until = time.monotonic() + PATIENCE_S
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.keeper_port)):
                break
            assert time.monotonic() < until
            time.sleep(0.1)
        for node in self.nodes:
            node.start()
            client, begun = self.client(node), time.monotonic()
            while not _answers(client):
                assert time.monotonic() < until, (node.folder / "log").read_text()[-3000:]
                time.sleep(0.1)
                # It ends if ZooKeeper takes no sessions yet, or waits for ever.
                if node.has_ended or time.monotonic() - begun > _START_S:
                    node.kill()
                    node.start()
                    begun = time.monotonic()
            client.close()

    def make_tables(self) -> None:
        """Make the tables, without what the old server does not know."""
        for node in self.nodes:
            client = self.client(node)
            client.run(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
            for table in tables.TABLES:
                columns = ", ".join(
                    f"{name} {_OLD_TYPES.get(each.type, each.type)}"
                    for name, each in table.columns.items()
                )
                version = f", {table.version}" if table.version else ""
                month = f" PARTITION BY toYYYYMM({table.by_month})" if table.by_month else ""
                local = client.table(f"{table.name}_local")
                client.run(
                    f"CREATE TABLE {local} ({columns}) ENGINE = ReplicatedReplacingMergeTree("
                    f"'/tables/{{shard}}/{table.name}', '{{replica}}'{version}){month}"
                    f" ORDER BY ({table.order})"
                )
                client.run(
                    f"CREATE TABLE {client.table(table.name)} AS {local} ENGINE ="
                    f" Distributed({NAME}, {DATABASE}, {table.name}_local, {table.shard_key})"
                )
            client.run(
                f"CREATE VIEW {client.table('tables_version')} AS"
                f" SELECT toUInt32({tables.VERSION}) AS version"
            )
            client.close()


def _answers(client: Client) -> bool:
    try:
        client.query("SELECT 1 AS one")
    except Unavailable:
        return False
    return True


@contextmanager
def replicas(folder: Path) -> Iterator[Replicas]:
    """Start two shards of two replicas, and make their tables."""
    found = Replicas(folder)
    (folder / "zoo.cfg").write_text(
        f"tickTime=500\ndataDir={folder / 'zookeeper'}\nclientPort={found.keeper_port}\n"
        "clientPortAddress=127.0.0.1\nmaxClientCnxns=0\n"
    )
    (folder / "zookeeper").mkdir()
    for shard in range(_SHARDS):
        for replica in range(_REPLICAS):
            here = folder / f"{shard}-{replica}"
            here.mkdir()
            found.nodes.append(Node(here, shard, Ports()))
    for node in found.nodes:
        (node.folder / "config.xml").write_text(_config(found, node))
        (node.folder / "users.xml").write_text(_USERS)
    try:
        found.start()
        found.make_tables()
        yield found
    finally:
        for node in found.nodes:
            node.kill()
        found.kill_keeper()


_USERS: Final = """<yandex>
<profiles><default>
<max_memory_usage>1000000000</max_memory_usage>
</default></profiles>
<users><default><password></password><networks><ip>::/0</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<quotas><default></default></quotas></yandex>
"""


def _config(all_: Replicas, node: Node) -> str:
    shards = "".join(
        "<shard><internal_replication>true</internal_replication>"
        + "".join(
            f"<replica><host>127.0.0.1</host><port>{each.ports.tcp}</port></replica>"
            for each in all_.nodes
            if each.shard == shard
        )
        + "</shard>"
        for shard in range(_SHARDS)
    )
    here = node.folder
    return f"""<yandex>
<logger><level>warning</level><console>true</console></logger>
<http_port>{node.ports.http}</http_port><tcp_port>{node.ports.tcp}</tcp_port>
<interserver_http_port>{node.ports.interserver}</interserver_http_port>
<interserver_http_host>127.0.0.1</interserver_http_host>
<listen_host>127.0.0.1</listen_host>
<path>{here}/data/</path><tmp_path>{here}/temporary/</tmp_path>
<user_files_path>{here}/files/</user_files_path>
<users_config>{here}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>67108864</mark_cache_size><uncompressed_cache_size>0</uncompressed_cache_size>
<zookeeper><node><host>127.0.0.1</host><port>{all_.keeper_port}</port></node>
<session_timeout_ms>4000</session_timeout_ms></zookeeper>
<remote_servers incl="none"><{NAME}>{shards}</{NAME}></remote_servers>
<macros><shard>{node.shard}</shard><replica>{here.name}</replica></macros>
</yandex>
"""
