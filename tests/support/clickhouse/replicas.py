"""Servers with replicas: two shards of two, of Debian's ClickHouse 18.16, and its ZooKeeper.

They are old, and used for what becomes of inserts while servers die. Each is reached through a
proxy, which lets a client of current servers speak to it, and can cut connections.
"""

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from attrs import define, field
from support.clickhouse.old_proxy import OldProxy
from support.daemon import PATIENCE_S, free_port

from medamad.clickhouse.client import Client, Connecting

CLUSTER: Final = "replicas"
MISSING: Final = [
    package
    for package, program in (
        ("clickhouse-server", shutil.which("clickhouse-server")),
        ("zookeeper", Path("/usr/share/java/zookeeper.jar").exists()),
    )
    if not program
]
"""The packages that are not installed."""

# The kernel ends them with the process that started them, however that ends.
_TIED: Final = ("setpriv", "--pdeathsig", "KILL", "--")


@define(eq=False)
class Program:
    """A process that can be killed and started again."""

    name: str
    folder: Path
    command: Sequence[str]
    is_ready: Callable[[], bool]
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, unless it runs. It may take a while to be ready."""
        if self._process is not None and self._process.poll() is None:
            return
        with (self.folder / "output.txt").open("ab") as output:
            self._process = subprocess.Popen(
                (*_TIED, *self.command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
            )

    def await_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not self.is_ready():
            assert time.monotonic() < deadline, f"{self.name} is not ready"
            # Servers of this version may crash while they start.
            self.start()
            time.sleep(0.02)

    def kill(self) -> None:
        """End it as a power cut would: kill -9."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()


@define(eq=False)
class Node(Program):
    """A server, and the proxy before it."""

    proxy: OldProxy = None  # type: ignore[assignment]


@define(eq=False)
class Replicas:
    """The servers, in order of shard and replica, and the ZooKeeper that they share."""

    zookeeper: Program
    nodes: Sequence[Node]
    _clients: list[Client] = field(factory=list)

    @property
    def urls(self) -> Sequence[str]:
        return [node.proxy.url for node in self.nodes]

    def client(self, database: str, *nodes: Node, timeout_s: float = 30.0) -> Client:
        """Return a client that is closed in the end, of some of the servers or of all."""
        urls = [node.proxy.url for node in nodes or self.nodes]
        self._clients.append(Client(Connecting(urls=urls, database=database, timeout_s=timeout_s)))
        return self._clients[-1]

    def start(self) -> None:
        """Start what does not run, and wait until all of it is ready."""
        self.zookeeper.start()
        # Servers of this version fail for good if they find no ZooKeeper when they start.
        self.zookeeper.await_ready()
        for node in self.nodes:
            node.start()
        for node in self.nodes:
            node.await_ready()

    def stop(self) -> None:
        for client in self._clients:
            client.close()
        for node in self.nodes:
            node.proxy.close()
        for program in (*self.nodes, self.zookeeper):
            program.kill()


@contextmanager
def replicas(folder: Path) -> Iterator[Replicas]:
    """Start two shards of two replicas each."""
    zookeeper_port = free_port()
    zookeeper = _zookeeper(folder / "zookeeper", zookeeper_port)
    ports = [(free_port(), free_port(), free_port()) for _ in range(4)]
    nodes = [_node(folder / f"node{number}", number, ports, zookeeper_port) for number in range(4)]
    started = Replicas(zookeeper, nodes)
    try:
        started.start()
        yield started
    finally:
        started.stop()


def _zookeeper(folder: Path, port: int) -> Program:
    folder.mkdir(parents=True)
    (folder / "zoo.cfg").write_text(
        f"tickTime=500\ndataDir={folder}\nclientPort={port}\nclientPortAddress=127.0.0.1\n"
        "admin.enableServer=false\n4lw.commands.whitelist=srvr\nforceSync=no\n"
    )
    jars = "/usr/share/java/zookeeper.jar:/etc/zookeeper/conf_example"
    command = (
        *("java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
        *("-Dlog4j.configuration=file:/dev/null", "-cp", jars),
        *("org.apache.zookeeper.server.ZooKeeperServerMain", f"{folder}/zoo.cfg"),
    )
    return Program("ZooKeeper", folder, command, lambda: _is_serving(port))


def _is_serving(port: int) -> bool:
    # It never answers some of those who ask while it starts.
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.5) as asked:
        asked.sendall(b"srvr")
        return b"Mode: standalone" in asked.makefile("rb").read()
    return False


def _node(
    folder: Path, number: int, ports: Sequence[tuple[int, int, int]], zookeeper_port: int
) -> Node:
    folder.mkdir(parents=True)
    http, tcp, interserver = ports[number]
    shards = "".join(
        "<shard><internal_replication>true</internal_replication>"
        + "".join(
            f"<replica><host>127.0.0.1</host><port>{ports[each][1]}</port></replica>"
            for each in pair
        )
        + "</shard>"
        for pair in ((0, 1), (2, 3))
    )
    (folder / "config.xml").write_text(
        f"""<yandex>
<logger><level>information</level><log>{folder}/log.txt</log><errorlog>{folder}/errors.txt</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
<interserver_http_port>{interserver}</interserver_http_port>
<interserver_http_host>127.0.0.1</interserver_http_host>
<listen_host>127.0.0.1</listen_host>
<path>{folder}/data/</path><tmp_path>{folder}/data/tmp/</tmp_path>
<users_config>{folder}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>16777216</mark_cache_size><timezone>UTC</timezone>
<zookeeper><node><host>127.0.0.1</host><port>{zookeeper_port}</port></node>
<session_timeout_ms>3000</session_timeout_ms></zookeeper>
<macros><shard>{number // 2}</shard><replica>{number % 2}</replica></macros>
<remote_servers><{CLUSTER}>{shards}</{CLUSTER}></remote_servers>
<distributed_ddl><path>/clickhouse/task_queue/ddl</path></distributed_ddl>
</yandex>
""",
        "utf-8",
    )
    (folder / "users.xml").write_text(
        """<yandex>
<profiles><default>
<connect_timeout_with_failover_ms>200</connect_timeout_with_failover_ms>
<background_pool_size>4</background_pool_size>
<log_queries>0</log_queries>
</default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<quotas><default></default></quotas>
</yandex>
""",
        "utf-8",
    )
    return Node(
        f"server {number}",
        folder,
        ("clickhouse-server", f"--config-file={folder}/config.xml"),
        lambda: _answers(http),
        proxy=OldProxy(http),
    )


def _answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/ping")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
