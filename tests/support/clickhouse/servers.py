"""Real, current ClickHouse servers: one, or several as the shards of a cluster.

They run from a library that npm's registry has, 180 MB packed, which is fetched when it is first
needed and kept beside pip's and npm's caches. They have no users, and no replicas: they listen to
clients and for shards alone, so that replicated tables stay read-only.
"""

import fcntl
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from hashlib import sha512
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from attrs import field, frozen
from support.daemon import PATIENCE_S, free_port

from medamad.clickhouse.client import Client, Connecting, Unavailable
from medamad.clickhouse.tables import Layout, create_tables

PACKAGE: Final = "@chdb/lib-linux-x64-gnu@26.7.3-stable.1"
SHA512: Final = (
    "5cff7b98caa7739b59a4a432c11f0dedc2d3b073624e61ebdf4a42e66ce8de35"
    "a6ba48ca9f62016bad1cd81fe059435cb858ce3235a8a2b408082a81563e70a7"
)
CLUSTER: Final = "two-shards"
SHARDS: Final = Layout(CLUSTER, is_replicated=False)

_FOREVER: Final = (
    "SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP;"
    " SELECT sum(s) FROM (SELECT sleepEachRow(1) AS s FROM numbers(100000)"
    " SETTINGS function_sleep_max_microseconds_per_block = 0, max_block_size = 1)"
)


def library() -> Path:
    """Return the library, which is fetched if it is not there."""
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = caches / "medamad-tests" / PACKAGE.rpartition("@")[2]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "libchdb.so"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _fetch(path)
    return path


def _fetch(path: Path) -> None:
    with TemporaryDirectory(dir=path.parent) as made:
        npm = Path(sys.executable).parent / "npm"
        environ = {**os.environ, "PATH": f"{npm.parent}:{os.environ['PATH']}"}
        command = (npm, "pack", "--silent", PACKAGE)
        subprocess.run(command, cwd=made, env=environ, check=True)
        (packed,) = Path(made).glob("*.tgz")
        with packed.open("rb") as file:
            assert sha512(file.read()).hexdigest() == SHA512
        with tarfile.open(packed) as tar:
            tar.extract("package/libchdb.so", made, filter="data")
        (Path(made) / "package" / path.name).rename(path)


@frozen
class Server:
    """A running server."""

    http_port: int
    process: subprocess.Popen[bytes]
    _clients: list[Client] = field(factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http_port}"

    def client(self, database: str) -> Client:
        return self.client_of(Connecting(urls=[self.url], database=database))

    def client_of(self, connecting: Connecting) -> Client:
        """Return a client that is closed when the server ends."""
        self._clients.append(Client(connecting))
        return self._clients[-1]

    def kill(self) -> None:
        for client in self._clients:
            client.close()
        self.process.kill()
        self.process.wait()


@contextmanager
def servers(folder: Path, count: int) -> Iterator[Sequence[Server]]:
    """Start servers, each of which is a shard of CLUSTER."""
    ports = [free_port() for _ in range(2 * count)]
    with ExitStack() as running:
        started = []
        for number in range(count):
            here = folder / str(number)
            here.mkdir()
            (here / "config.xml").write_text(server_config(ports[count:]))
            started.append(
                running.enter_context(server_in(here, ports[number], ports[count + number]))
            )
        for server in started:
            await_answer(server)
        yield started


def sharded(shards: Sequence[Server], database: str) -> Client:
    """Make the tables of SHARDS in a new database; return a client of all servers."""
    for each in shards:
        create_tables(each.client(database), SHARDS)
    urls = [each.url for each in shards]
    return shards[0].client_of(Connecting(urls=urls, database=database))


def server_config(tcp_ports: Sequence[int]) -> str:
    shards = "".join(
        f"<shard><replica><host>127.0.0.1</host><port>{port}</port></replica></shard>"
        for port in tcp_ports
    )
    return (
        f"<clickhouse><remote_servers><{CLUSTER}>{shards}</{CLUSTER}></remote_servers>"
        "<mark_cache_size>67108864</mark_cache_size>"
        "<backups><allowed_path>backups</allowed_path></backups></clickhouse>"
    )


@contextmanager
def server_in(folder: Path, http_port: int, tcp_port: int) -> Iterator[Server]:
    arguments = (
        f"--config-file={folder / 'config.xml'}",
        f"--path={folder / 'data'}",
        f"--http_port={http_port}",
        f"--tcp_port={tcp_port}",
        "--listen_host=127.0.0.1",
        f"--query={_FOREVER}",
    )
    script = Path(__file__).with_name("serve.py")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            (sys.executable, str(script), str(library()), *arguments),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    server = Server(http_port, process)
    try:
        yield server
    finally:
        server.kill()


def await_answer(server: Server) -> None:
    client, until = server.client("default"), time.monotonic() + PATIENCE_S
    while True:
        assert server.process.poll() is None, "the server has ended"
        try:
            client.query("SELECT 1")
        except Unavailable:
            assert time.monotonic() < until
            time.sleep(0.05)
        else:
            return
