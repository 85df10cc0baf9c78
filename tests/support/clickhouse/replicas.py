"""Servers with replicas: two shards of two, of Debian's ClickHouse 18.16, and its ZooKeeper.

They are configured by the files of etc/cluster, at other addresses.

They are old, and used for what becomes of inserts while servers die. Each is reached through a
proxy, which lets a client of current servers speak to it, and can cut connections.
"""

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final

from attrs import define, field
from support.clickhouse.old_proxy import OldProxy
from support.daemon import PATIENCE_S, free_port

from medamad.clickhouse.client import Client, Connecting

CLUSTER: Final = "medamad"
PASSWORD: Final = "of medamad"
"""That of the user medamad."""
_EXAMPLE: Final = Path(__file__).parents[3] / "etc" / "cluster"
_HOSTS: Final = ("clickhouse-1a", "clickhouse-1b", "clickhouse-2a", "clickhouse-2b")
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
    addresses = {
        f"<host>{host}</host><port>9000</port>": f"<host>127.0.0.1</host><port>{tcp_port}</port>"
        for host, (_, tcp_port, _) in zip(_HOSTS, ports, strict=True)
    } | {
        f"<host>keeper{place}</host><port>9181</port>": (
            f"<host>127.0.0.1</host><port>{zookeeper_port}</port>"
        )
        for place in (1, 2, 3)
    }
    changed = addresses | {
        "<listen_host>0.0.0.0</listen_host>": "<listen_host>127.0.0.1</listen_host>",
        # These servers ask each other as the default user.
        '<secret from_env="CLICKHOUSE_SECRET"/>': "",
    }
    for name, changes in (("clickhouse", changed), ("users", {})):
        (folder / f"{name}.d").mkdir()
        (folder / f"{name}.d" / "medamad.xml").write_text(_example(name, changes), "utf-8")
    (folder / "clickhouse.xml").write_text(
        f"""<yandex>
<logger><level>information</level><log>{folder}/log.txt</log><errorlog>{folder}/errors.txt</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port>
<interserver_http_port>{interserver}</interserver_http_port>
<path>{folder}/data/</path><tmp_path>{folder}/data/tmp/</tmp_path>
<users_config>{folder}/users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>16777216</mark_cache_size><timezone>UTC</timezone>
<zookeeper><session_timeout_ms>3000</session_timeout_ms></zookeeper>
</yandex>
""",
        "utf-8",
    )
    (folder / "users.xml").write_text(
        """<yandex>
<profiles><default>
<connect_timeout_with_failover_ms>200</connect_timeout_with_failover_ms>
<distributed_ddl_task_timeout>20</distributed_ddl_task_timeout>
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
    environ = {
        "SHARD": str(number // 2 + 1),
        "REPLICA": "ab"[number % 2],
        "HOSTNAME": "127.0.0.1",
        "CLICKHOUSE_MEDAMAD_PASSWORD": PASSWORD,
    }
    return Node(
        f"server {number}",
        folder,
        (
            *("env", *(f"{name}={value}" for name, value in environ.items())),
            *("clickhouse-server", f"--config-file={folder}/clickhouse.xml"),
        ),
        lambda: _answers(http),
        proxy=OldProxy(http),
    )


def _example(name: str, changes: Mapping[str, str]) -> str:
    """Return a file of the example with each passage replaced, for servers of this version."""
    text = (_EXAMPLE / f"{name}.xml").read_text("utf-8")
    for old, new in (("clickhouse>", "yandex>"), *changes.items()):
        assert old in text, old
        text = text.replace(old, new)
    return text


def _answers(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("GET", "/ping")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
