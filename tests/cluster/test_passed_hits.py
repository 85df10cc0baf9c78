"""Hits that reach another collector than they belong to: figures are those of one daemon."""

import csv
import random
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
from support.clickhouse.daemon import Collectors, command, durations, initialized
from support.clickhouse.servers import Server
from support.daemon import HIT, Client, Daemon, finished, until

from medamad.cluster.peers import Greeted, Greeting, Message, PassedHits
from medamad.query.reports import STATISTICS
from medamad.storage.environment.environment import WAITING_HIT, open_to_read
from medamad.storage.environment.meta import entries

pytestmark = pytest.mark.daemon

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"
CHROME = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko)"
    " Chrome/141.0.0.0 Safari/537.36"
)
HOST = "example.com"


@pytest.fixture
def three(server: Server, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Collectors]:
    found = Collectors.of([server], f"p_{request.node.name}"[:60], tmp_path)
    found.start()
    with_website(found)
    yield found
    found.stop()


def with_website(three: Collectors) -> Client:
    """Register a website that all know; return a client of the primary."""
    client = three[1].client()
    client.add_website(HOST)
    others = [Client(three[number].port, client.cookie) for number in (2, 3)]
    until(
        lambda: all(
            each.request("GET", "/api/websites").json == client.get("/api/websites")
            for each in others
        )
    )
    reachable = '"others":{'
    until(
        lambda: all(
            reachable in status(three[n])
            and '"others":{"' in status(three[n])
            and status(three[n]).count('":""') >= 2
            for n in (1, 2, 3)
        )
    )
    return client


def status(daemon: Daemon) -> str:
    return command(daemon, "status", "--json")[1]


def post(daemon: Daemon, body: object, headers: dict[str, str] | None = None) -> None:
    """Send a hit, again while the token is not known to a collector that follows."""
    until(
        lambda: Client(daemon.port).request("POST", "/api/event/hit", body, headers).status == 204
    )


def browse(at_home: list[Daemon], anywhere: list[Daemon], tokens: list[str]) -> None:
    """Let visitors look around. Page loads go to the collector of their visitor, others anywhere.

    Half of the visitors are named by a server, whose hits all go anywhere.
    """
    chance = random.Random(7)  # noqa: S311
    for visitor in range(6):
        home = visitor % len(at_home)
        is_named = visitor >= 3
        agent = FIREFOX if visitor % 2 else CHROME
        for page in range(3):
            beacon = f"v{visitor}p{page}"
            load = HIT | {
                "b": beacon,
                "u": f"https://example.com/{(visitor + page) % 4}",
                "p": page == 0,
                "q": page < 2,
            }
            event = {"e": "custom", "b": beacon, "g": HOST, "d": {"clicked": f"c{visitor}"}}
            leave = {"e": "unload", "b": beacon, "m": 1_000 * visitor + page + 1}
            headers = {"User-Agent": agent, "Accept-Language": "en" * (visitor % 3)}
            if is_named:
                del load["p"], load["q"]
                load["visitor"] = f"name {visitor}"
            for body in (load, *([event] if page == 1 else []), leave):
                place = chance.randrange(len(anywhere))
                here = anywhere[place] if is_named or body is not load else at_home[home]
                sent = dict(headers)
                if is_named:
                    sent["Authorization"] = f"Bearer {tokens[0 if len(anywhere) == 1 else 1]}"
                post(here, body, sent)
    # A view that is not counted, as only its collector knows.
    post(at_home[0], HIT | {"b": "hidden", "u": f"https://{HOST}/hidden"})
    post(anywhere[-1], {"e": "custom", "b": "hidden", "g": HOST, "d": {"clicked": "hidden"}})


PARAMETERS: tuple[dict[str, str], ...] = (
    {},
    {"visits": "true"},
    {"views": "true"},
    {"path[eq]": "/1"},
    {"browser[eq]": "Firefox", "visits": "true"},
)


def test_the_figures_are_those_of_one_daemon(three: Collectors, tmp_path: Path) -> None:
    alone = Daemon(tmp_path / "alone")
    alone.start()
    client = alone.client()
    client.add_website(HOST)
    all_three = list(three.daemons.values())
    tokens = [
        finished("token", daemon.data, "add", "shop", "--scope", "send").stdout.strip()
        for daemon in (alone, three[1])
    ]
    until(lambda: all(_knows(three[number], tokens[1]) for number in (2, 3)))
    path = f"/api/websites/{HOST}/settings"
    for each in (client, three[1].client()):
        answer = each.request("PATCH", path, {"excluded_paths": ["/hidden"]})
        assert answer.status == 200, answer
    until(lambda: _excludes(three[1], "https://example.com/hidden"))
    browse([alone] * 3, [alone], tokens)
    browse(all_three, all_three, tokens)
    lasted = sum(1_000 * visitor + page + 1 for visitor in range(6) for page in range(3))
    stored = three.client()
    until(
        lambda: (
            sum(
                map(
                    int,
                    stored.query(f"SELECT duration_ms FROM {stored.table('views')} FINAL").get(
                        "duration_ms", ()
                    ),
                )
            )
            == lasted
        )
    )
    until(
        lambda: (
            len(stored.query(f"SELECT event FROM {stored.table('events')} FINAL").get("event", ()))
            == 6
        )
    )
    with_cluster = Client(three[2].port, three[1].client().cookie)
    until(lambda: with_cluster.request("GET", "/api/websites").status == 200)
    names = ("summary", *(statistic.name for statistic in STATISTICS))
    for name, parameters in product(names, PARAMETERS):
        path = f"/api/website/{HOST}/{name}?{urlencode(parameters)}"
        found, expected = with_cluster.request("GET", path), client.request("GET", path)
        assert found.status == expected.status, (name, parameters)
        assert found.json == expected.json, (name, parameters)
    # And they are after the way back, where hits of several collectors may have the same numbers.
    files = []
    for what in ("views", "events"):
        files.append(str(tmp_path / f"{what}.csv"))
        done = finished("export", three[2].data, HOST, "--what", what, "--output", files[-1])
        assert done.returncode == 0, done
    rows = csv.DictReader(Path(files[0]).read_text().splitlines())
    assert len({row["store"] for row in rows}) == 3
    back = Daemon(tmp_path / "back")
    back.start()
    back.client().add_website(HOST)
    done = finished("import", back.data, *files, "--website", HOST)
    assert done.returncode == 0, done
    came_back = back.client()
    for name, parameters in product(names, PARAMETERS):
        path = f"/api/website/{HOST}/{name}?{urlencode(parameters)}"
        found, expected = came_back.request("GET", path), client.request("GET", path)
        assert found.json == expected.json, (name, parameters)
    back.stop()
    alone.stop()


def _excludes(daemon: Daemon, url: str) -> bool:
    answer = Client(daemon.port).request("POST", "/api/event/hit", HIT | {"b": "asked", "u": url})
    return answer.headers.get("x-medamad-ignored") == "path"


def _knows(daemon: Daemon, token: str) -> bool:
    body = {"e": "load", "u": "https://unknown.example/", "b": "x"}
    answer = Client(daemon.port).request(
        "POST", "/api/event/hit", body, {"Authorization": f"Bearer {token}"}
    )
    return answer.status != 401


def waiting(daemon: Daemon) -> list[bytes]:
    """Return what is stored of hits that wait for others."""
    environment, txn = open_to_read(daemon.data)
    try:
        return [bytes(value) for _, value in entries(txn, environment.databases.meta, WAITING_HIT)]
    finally:
        txn.abort()
        environment.close()


def load(number: int) -> dict[str, object]:
    return HIT | {"b": f"b{number}", "u": f"https://{HOST}/{number}"}


def test_hits_wait_on_disk_for_a_collector_that_is_down(three: Collectors) -> None:
    for number in range(1, 6):
        post(three[3], load(number))
    stored = three.client()
    until(lambda: len(durations(stored)) == 5)
    three[3].kill()
    until(lambda: '"others":{"2":"","3":"http' in status(three[1]))
    for number in range(1, 6):
        post(three[1], {"e": "unload", "b": f"b{number}", "m": 700 + number})
    event = {"e": "custom", "b": "b1", "g": HOST, "d": {"plan": "pro"}}
    post(three[1], event)
    # Of a view that nobody has.
    post(three[1], event | {"b": "unknown"})
    assert len(waiting(three[1])) == 7
    assert '"to_pass_on":7' in status(three[1])
    three[1].kill()
    three[1].start()
    assert '"to_pass_on":7' in status(three[1])
    three[3].start()
    until(lambda: durations(stored) == {f"/{number}": 700 + number for number in range(1, 6)})
    until(lambda: waiting(three[1]) == [])
    rows = f"SELECT view > 0 AS has_view FROM {stored.table('events')} FINAL ORDER BY has_view"
    until(lambda: [int(n) for n in stored.query(rows).get("has_view", ())] == [0, 1])
    assert '"passed_on":6' in status(three[1])
    assert '"to_pass_on":0' in status(three[1])


def test_nothing_that_waits_has_an_address(three: Collectors) -> None:
    three[3].kill()
    until(lambda: '"3":"http' in status(three[1]))
    client = Client(three[1].port)
    headers = {"User-Agent": FIREFOX, "Accept-Language": "fr-CH", "X-Forwarded-For": "203.0.113.77"}
    for body in (
        {"e": "unload", "b": "unknown", "m": 7},
        {"e": "custom", "b": "unknown", "g": HOST, "d": {"plan": "pro"}},
    ):
        assert client.request("POST", "/api/event/hit", body, headers).status == 204
    kept = b"".join(waiting(three[1]))
    assert b"unknown" in kept
    for secret in (b"203.0.113", bytes([203, 0, 113]), bytes([127, 0, 0]), b"Firefox", b"fr-CH"):
        assert secret not in kept


def test_a_named_visitor_is_counted_here_while_its_collector_is_down(three: Collectors) -> None:
    token = finished("token", three[1].data, "add", "shop", "--scope", "send").stdout.strip()
    until(lambda: all(_knows(three[number], token) for number in (2, 3)))
    headers = {"Authorization": f"Bearer {token}"}
    stored = three.client()

    def homes() -> list[int]:
        found = stored.query(
            f"SELECT toUInt16(bitShiftRight(view, 48)) AS n FROM {stored.table('views')} FINAL"
        )
        return sorted({int(number) for number in found.get("n", ())})

    for number in range(12):
        post(three[1], load(number) | {"visitor": f"name {number}"}, headers)
    until(lambda: len(durations(stored)) == 12)
    assert homes() == [1, 2, 3]
    three[2].kill()
    three[3].kill()
    until(lambda: status(three[1]).count('":"http') == 2)
    for number in range(12, 24):
        post(three[1], load(number) | {"visitor": f"name {number}"}, headers)
    until(lambda: len(durations(stored)) == 24)


class Hanging(BaseHTTPRequestHandler):
    """Collector 2, which says nothing more once it was sent hits."""

    passed: list[PassedHits]
    is_over: threading.Event

    def do_POST(self) -> None:
        """Answer a greeting, or nothing."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        message: Message = msgspec.msgpack.decode(body, type=Message)
        if isinstance(message, PassedHits):
            self.passed.append(message)
        if self.passed or not isinstance(message, Greeting):
            self.is_over.wait()
            return
        answer = msgspec.msgpack.encode(Greeted(2, message.epoch, None))
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_hits_do_not_wait_one_after_the_other_for_a_collector_that_hangs(
    server: Server, tmp_path: Path
) -> None:
    passed: list[PassedHits] = []
    over = threading.Event()
    hanging = type("HangingHere", (Hanging,), {"passed": passed, "is_over": over})
    other = ThreadingHTTPServer(("127.0.0.1", 0), hanging)
    other.daemon_threads = True
    threading.Thread(target=other.serve_forever, args=(0.05,), daemon=True).start()
    daemon = Daemon(tmp_path / "daemon")
    daemon.folder.mkdir()
    (daemon.folder / "secret").write_text("a secret of more than thirty-two characters")
    daemon.configuration = (
        f'[cluster]\nurls = ["{server.url}"]\ndatabase = "hanging"\nsecret_file = "secret"\n'
        f'[cluster.collectors]\n1 = "{daemon.base}"\n2 = "http://127.0.0.1:{other.server_port}"\n'
    )
    daemon.before = "from medamad.cluster import peers; peers._TIMEOUT_S = 3.0"
    initialized(daemon)
    daemon.start()
    try:
        until(lambda: '"others":{"2":""}' in status(daemon))
        leaving = {"e": "unload", "m": 7}
        sending = [
            threading.Thread(target=post, args=(daemon, leaving | {"b": f"unknown {number}"}))
            for number in range(3)
        ]
        for thread in sending:
            thread.start()
            until(lambda: bool(passed))
        for thread in sending:
            thread.join()
        # Those that arrived after the first were sent to disk when that had no answer.
        assert [len(message.hits) for message in passed] == [1]
        assert len(waiting(daemon)) == 3
    finally:
        over.set()
        daemon.kill()
        other.shutdown()
        other.server_close()
