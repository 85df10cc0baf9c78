"""Which server a statement goes to, how often, and that a query ends that nobody waits for."""

import threading
from collections.abc import Iterator
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from attrs import define, field
from support.certificates import Authority
from support.clickhouse.servers import Server
from support.clickhouse.tls_proxy import TlsProxy
from support.daemon import until

from medamad.clickhouse import client as client_module
from medamad.clickhouse.client import ClickHouseError, Client, Connecting, Refused, Unavailable

REASON = b"there is a reason"
HANGS = 0
OK = 200


@define(eq=False)
class StandIn:
    """Answers as a server does that has an error, or not at all; counts what it was asked."""

    code: int = OK
    """HANGS, OK, or an error of ClickHouse."""
    asked: int = 0
    _ended: threading.Event = field(factory=threading.Event)
    _server: ThreadingHTTPServer = field(init=False)

    def __attrs_post_init__(self) -> None:
        answers = type("Answers", (_Answers,), {"stand_in": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), answers)
        threading.Thread(target=self._server.serve_forever, args=(0.05,)).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def wait(self) -> None:
        self._ended.wait()

    def close(self) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()


class _Answers(BaseHTTPRequestHandler):
    stand_in: StandIn
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.stand_in.asked += 1
        if self.stand_in.code == HANGS:
            self.stand_in.wait()
        self.send_response(OK if self.stand_in.code == OK else 500)
        if self.stand_in.code not in (OK, HANGS):
            self.send_header("X-ClickHouse-Exception-Code", str(self.stand_in.code))
            self.send_header("Connection", "close")
        self.send_header("Content-Length", str(len(REASON)))
        self.end_headers()
        self.wfile.write(REASON)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def both() -> Iterator[tuple[StandIn, StandIn]]:
    first, second = StandIn(), StandIn()
    yield first, second
    first.close()
    second.close()


@pytest.fixture
def client(both: tuple[StandIn, StandIn]) -> Iterator[Client]:
    found = Client(Connecting(urls=[each.url for each in both], timeout_s=0.3))
    yield found
    found.close()


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (62, Refused),  # SYNTAX_ERROR
        (516, Refused),  # AUTHENTICATION_FAILED
        (159, Unavailable),  # TIMEOUT_EXCEEDED
        (241, Unavailable),  # MEMORY_LIMIT_EXCEEDED
        (285, Unavailable),  # TOO_FEW_LIVE_REPLICAS
        (319, Unavailable),  # UNKNOWN_STATUS_OF_INSERT
    ],
)
def test_no_other_server_is_asked_where_that_cannot_help(
    both: tuple[StandIn, StandIn], client: Client, code: int, error: type[ClickHouseError]
) -> None:
    both[0].code = code
    with pytest.raises(error, match="there is a reason"):
        client.run("SELECT 1")
    assert [each.asked for each in both] == [1, 0]


@pytest.mark.parametrize("code", [202, 210, 225, 242, 279, 999])
def test_another_server_is_asked_where_the_fault_is_of_one(
    both: tuple[StandIn, StandIn], client: Client, code: int
) -> None:
    both[0].code = code
    client.run("SELECT 1")
    client.run("SELECT 1")
    assert [each.asked for each in both] == [1, 2]


@pytest.mark.parametrize("is_idle", [False, True])
def test_a_statement_that_takes_too_long_is_not_run_twice(
    both: tuple[StandIn, StandIn], client: Client, *, is_idle: bool
) -> None:
    if is_idle:
        client.run("SELECT 1")
    both[0].code = HANGS
    with pytest.raises(Unavailable, match="timed out"):
        client.run("SELECT 1")
    assert [each.asked for each in both] == [1 + is_idle, 0]
    # The next one goes to a server that may not hang.
    client.run("SELECT 1")
    assert [each.asked for each in both] == [1 + is_idle, 1]


def test_a_machine_that_is_off_is_not_waited_for_as_an_answer_is(
    both: tuple[StandIn, StandIn], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = []

    class Connection(HTTPConnection):
        def connect(self) -> None:
            waited.append(self.timeout)
            if self.port == urlsplit(both[0].url).port:
                raise TimeoutError
            super().connect()

    monkeypatch.setattr(client_module, "HTTPConnection", Connection)
    found = Client(Connecting(urls=[each.url for each in both], timeout_s=70.0))
    found.run("SELECT 1")
    found.close()
    assert [each.asked for each in both] == [0, 1]
    assert waited == [5.0, 5.0]


class Gone(Exception):
    """Nobody waits for a query any more."""


@pytest.fixture
def encrypted(server: Server, tmp_path: Path) -> Iterator[Client]:
    """A client that reaches the server by TLS."""
    authority = Authority(tmp_path / "certificates")
    proxy = TlsProxy(server.http_port, authority.folder)
    ca_file = str(authority.folder / "chain.pem")
    client = Client(Connecting(urls=[proxy.url], ca_file=ca_file))
    yield client
    client.close()
    proxy.close()


@pytest.mark.parametrize("over", ["plain", "encrypted"])
def test_a_query_that_nobody_waits_for_ends(
    request: pytest.FixtureRequest, server: Server, over: str
) -> None:
    plain = server.client("default")
    client = plain if over == "plain" else request.getfixturevalue("encrypted")
    query = f"SELECT sleepEachRow(1), 'of nobody, {over}' FROM numbers(100)"
    running = (
        "SELECT count() AS n FROM system.processes WHERE query LIKE '%of nobody, {over}%'"
        " AND query NOT LIKE '%system.processes%'".replace("{over}", over)
    )
    calls = 0

    def check() -> None:
        nonlocal calls
        calls += 1
        if plain.query(running)["n"][0]:
            raise Gone

    with pytest.raises(Gone):
        client.query(query, settings={"max_block_size": 1}, check=check)
    assert calls
    until(lambda: not plain.query(running)["n"][0])
    assert client.query("SELECT 1 AS one")["one"].tolist() == [1]


def test_results_and_rows_pass_through_tls(encrypted: Client) -> None:
    found = encrypted.query("SELECT number FROM numbers(300000)")
    assert found["number"].tolist() == list(range(300_000))


def test_a_certificate_of_others_is_refused(encrypted: Client, tmp_path: Path) -> None:
    other = Authority(tmp_path / "others")
    (url,) = encrypted.connecting.urls
    client = Client(Connecting(urls=[url], ca_file=str(other.folder / "chain.pem")))
    with pytest.raises(Unavailable, match="certificate verify failed"):
        client.query("SELECT 1")
