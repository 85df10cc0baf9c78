"""The example proxy configurations for several collectors, run with real nginx, HAProxy and Caddy.

The collectors are servers of the test, which write down what they get.
"""

import http.client
import shutil
import socket
import ssl
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from threading import Thread

import pytest
from attrs import define, field, frozen
from support.certificates import Authority
from support.collector_proxies import COMMANDS
from support.daemon import PATIENCE_S, free_port, until

pytestmark = pytest.mark.daemon

HIT = "/api/event/hit"


@define(eq=False)
class Stub:
    """A collector. It can be down, or hang up once it has a request."""

    port: int = field(factory=free_port)
    got: list[tuple[str, str]] = field(factory=list)
    """Methods and paths."""
    headers: Mapping[str, str] = field(factory=dict)
    """Those of the last request."""
    hangs_up: bool = False
    was_away: bool = True
    """Whether it was down, or hung up, since the proxy was last seen to know it."""
    _server: ThreadingHTTPServer | None = None

    def start(self) -> None:
        if self._server is None:
            handler = type("Handler", (_Handler,), {"stub": self})
            self._server = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
            Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def hang_up(self) -> None:
        self.hangs_up = self.was_away = True

    def stop(self) -> None:
        self.was_away = True
        server, self._server = self._server, None
        if server is not None:
            server.shutdown()
            server.server_close()


class _Handler(BaseHTTPRequestHandler):
    stub: Stub

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        # Caddy asks by itself whether a collector is there.
        if not self.headers.get("User-Agent", "").startswith("Go-http-client"):
            self.stub.got.append((self.command, self.path))
            self.stub.headers = {name.lower(): text for name, text in self.headers.items()}
        if not self.stub.hangs_up:
            self.send_response(204)
            self.end_headers()

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@frozen
class Proxied:
    """Three collectors behind a proxy, the first of which is the primary."""

    name: str
    port: int
    tls: ssl.SSLContext
    stubs: Sequence[Stub]

    def request(
        self, method: str, path: str, address: str = "203.0.113.1", **headers: str
    ) -> http.client.HTTPResponse:
        """Send a request as from an address, and return the answer."""
        plain = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
        connection = http.client.HTTPConnection("localhost", self.port)
        with closing(connection):
            if self.name != "caddy":
                family, to = ("TCP6", "::1") if ":" in address else ("TCP4", "127.0.0.1")
                plain.sendall(f"PROXY {family} {address} {to} 50000 443\r\n".encode())
            connection.sock = self.tls.wrap_socket(plain, server_hostname="localhost")
            body = b"{}" if method == "POST" else None
            sent = {name.replace("_", "-"): text for name, text in headers.items()}
            # The shortest text of an address is how Caddy has it.
            known = {"X-Address": str(ip_address(address))} if self.name == "caddy" else {}
            connection.request(method, path, body, sent | known)
            answer = connection.getresponse()
            answer.read()
            return answer

    def collector_of(self, method: str, path: str, address: str = "203.0.113.1") -> Stub:
        """Return the only collector that gets a request."""
        before = [len(stub.got) for stub in self.stubs]
        assert self.request(method, path, address).status == 204
        (found,) = (
            stub for stub, n in zip(self.stubs, before, strict=True) if len(stub.got) == n + 1
        )
        return found

    def answers(self) -> bool:
        try:
            return self.request("GET", "/").status == 204
        except OSError:
            return False

    def heal(self) -> None:
        """Have all collectors answer, and the proxy know it."""
        for stub in self.stubs:
            stub.hangs_up = False
            stub.start()
        if any(stub.was_away for stub in self.stubs):
            until(self.knows_all)
        for stub in self.stubs:
            stub.was_away = False
            stub.got.clear()

    def knows_all(self) -> bool:
        for n in range(30):
            self.request("GET", HIT, f"203.0.113.{n}")
        primary = len(self.stubs[0].got)
        self.request("GET", "/")
        found = all(stub.got for stub in self.stubs) and len(self.stubs[0].got) == primary + 1
        for stub in self.stubs:
            stub.got.clear()
        return found


@pytest.fixture(scope="module", params=COMMANDS)
def started(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    found = Proxied(
        request.param, free_port(), Authority(folder).context(), [Stub(), Stub(), Stub()]
    )
    for stub in found.stubs:
        stub.start()
    command = COMMANDS[request.param](folder, found.port, [stub.port for stub in found.stubs])
    with (folder / "proxy.txt").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        until(lambda: found.answers() or process.poll() is not None)
        assert process.poll() is None, (folder / "proxy.txt").read_text("utf-8")
        yield found
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
        for stub in found.stubs:
            stub.stop()


@pytest.fixture
def proxy(started: Proxied) -> Proxied:
    """The proxy, after a test in which collectors were down."""
    started.heal()
    return started


ADDRESSES = [f"198.51.100.{n}" for n in range(30)]


def test_an_address_stays_with_one_of_the_collectors(proxy: Proxied) -> None:
    of = {address: proxy.collector_of("POST", HIT, address) for address in ADDRESSES}
    for address, stub in of.items():
        for method, path in (("POST", HIT), ("GET", "/api/event/ping?u=a"), ("GET", "/script.js")):
            assert proxy.collector_of(method, path, address) is stub
    assert len(set(map(id, of.values()))) == 3


@pytest.mark.parametrize(
    "network",
    ["2001:db8:1:2", "2001:db8:1:0", "2001:db8:0:0", "2001:db8:0:5", "2001:db8:a00:ff0"],
)
def test_an_ipv6_network_stays_with_one_of_the_collectors(proxy: Proxied, network: str) -> None:
    hosts = ("1234:5678:9abc:def0", "0:0:0:1", "0:1:0:1", "1:0:0:0", "ffff:0:0:1", "a:b:0:0")
    of = [proxy.collector_of("POST", HIT, f"{network}:{host}") for host in hosts]
    assert len(set(map(id, of))) == 1


def test_ipv6_networks_are_spread_over_the_collectors(proxy: Proxied) -> None:
    of = [proxy.collector_of("POST", HIT, f"2001:db8:7:{n:x}::1") for n in range(30)]
    assert len(set(map(id, of))) == 3


@pytest.mark.parametrize("path", [HIT, "/event/hit", "/scripts/default.js", "/script.js"])
def test_all_collectors_get_hits_and_scripts(proxy: Proxied, path: str) -> None:
    of = [proxy.collector_of("GET", path, address) for address in ADDRESSES]
    assert len(set(map(id, of))) == 3


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/dashboard/"), ("POST", "/api/auth/login"), ("GET", "/api/website/a/summary")],
)
def test_everything_else_goes_to_the_primary(proxy: Proxied, method: str, path: str) -> None:
    assert {id(proxy.collector_of(method, path, each)) for each in ADDRESSES} == {
        id(proxy.stubs[0])
    }


def notice(proxy: Proxied, address: str) -> None:
    """Let a proxy notice that a collector is down, if it has to before it loses no hit."""
    if proxy.name == "caddy":
        until(lambda: proxy.request("POST", HIT, address).status == 204)
        until(lambda: proxy.request("POST", "/", address).status == 204)


def test_without_the_primary_another_one_answers(proxy: Proxied) -> None:
    proxy.stubs[0].stop()
    notice(proxy, "203.0.113.1")
    for _ in range(10):
        assert proxy.collector_of("POST", "/api/auth/login") in proxy.stubs[1:]
    proxy.stubs[0].start()
    until(lambda: proxy.collector_of("GET", "/dashboard/") is proxy.stubs[0])


def test_hits_of_a_collector_that_is_down_go_to_another(proxy: Proxied) -> None:
    of = {address: proxy.collector_of("POST", HIT, address) for address in ADDRESSES}
    down = proxy.stubs[1]
    down.stop()
    lost = next(address for address, stub in of.items() if stub is down)
    notice(proxy, lost)
    for address, stub in of.items():
        found = proxy.collector_of("POST", HIT, address)
        # The addresses of the others stay where they were.
        assert found is not down if stub is down else found is stub
    down.start()
    until(lambda: proxy.collector_of("POST", HIT, lost) is down)


@pytest.mark.parametrize("path", [HIT, "/api/websites"])
def test_a_post_that_a_collector_may_have_is_sent_to_no_other(proxy: Proxied, path: str) -> None:
    for stub in proxy.stubs:
        stub.hang_up()
    assert proxy.request("POST", path).status in (502, 503, 504)
    assert [got for stub in proxy.stubs for got in stub.got] == [("POST", path)]


def test_the_visitors_address_and_the_host_reach_the_collector(proxy: Proxied) -> None:
    stub = proxy.collector_of("POST", HIT)
    proxy.request("POST", HIT, X_Forwarded_Host="evil.example", X_Forwarded_For="192.0.2.7")
    assert stub.headers["x-forwarded-host"].partition(":")[0] == "localhost"
    assert "x-medamad-client" not in stub.headers
    if proxy.name != "caddy":
        assert stub.headers["x-forwarded-for"].endswith("203.0.113.1")


@pytest.mark.parametrize("path", ["/health", "/health/live", "/metrics", "/cluster"])
def test_internal_endpoints_are_not_proxied(proxy: Proxied, path: str) -> None:
    assert proxy.request("GET", path).status == 404
    assert not [got for stub in proxy.stubs for got in stub.got]
