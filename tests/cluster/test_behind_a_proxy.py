"""Three collectors behind the proxies of the examples, over two shards: a browser, kills, clocks.

A browser visits them, and collectors are killed, behind nginx.
"""

import http.client
import json
import random
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from threading import Event, Thread
from urllib.parse import urlencode

import pytest
from attrs import define, field, frozen
from playwright.sync_api import Browser, sync_playwright
from support.browser.chromium import launch, usual_browser
from support.browser.example_site import served
from support.certificates import Authority
from support.clickhouse.daemon import Collectors, command, durations
from support.clickhouse.servers import Server
from support.collector_proxies import COMMANDS
from support.daemon import HIT, PATIENCE_S, Client, Daemon, free_port, until

from medamad.query.reports import STATISTICS

pytestmark = pytest.mark.daemon

HOST = "example.com"
TRUSTING = '[server]\ntrusted_proxies = ["127.0.0.1"]\n'
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Gecko/20100101 Firefox/143.0"


WITH_WRONG_CLOCK = """import sys, time
true_time = time.time
time.time = lambda: true_time() + {}
from medamad.cli import main
sys.exit(main())"""


@frozen
class Proxy:
    """A proxy, which takes the address of a client from before a connection.

    Caddy takes that of the connection itself. nginx has a second port for a browser.
    """

    name: str
    port: int
    plain_port: int
    tls: ssl.SSLContext

    def post(self, body: object, address: str) -> int:
        """Send a hit as from an address; return the status, 0 if there was no answer."""
        headers = {"User-Agent": AGENT, "Content-Type": "application/json"}
        with suppress(OSError, http.client.HTTPException):
            return self._ask("POST", "/api/event/hit", json.dumps(body), headers, address)[0]
        return 0

    def get(self, path: str, cookie: str) -> tuple[int, bytes]:
        return self._ask("GET", path, None, {"Cookie": cookie}, "127.0.0.2")

    def _ask(
        self, method: str, path: str, body: str | None, headers: dict[str, str], address: str
    ) -> tuple[int, bytes]:
        is_caddy = self.name == "caddy"
        source = (address, 0) if is_caddy else None
        connection = http.client.HTTPConnection("localhost", self.port)
        with closing(connection):
            plain = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S, source)
            if not is_caddy:
                plain.sendall(f"PROXY TCP4 {address} 127.0.0.1 50000 443\r\n".encode())
            connection.sock = self.tls.wrap_socket(plain, server_hostname="localhost")
            connection.request(method, path, body, headers | {"X-Address": address})
            answer = connection.getresponse()
            return answer.status, answer.read()


@contextmanager
def proxied(name: str, folder: Path, three: Collectors) -> Iterator[Proxy]:
    port, plain_port = free_port(), free_port()
    authority = Authority(folder)
    ports = [daemon.port for daemon in three.daemons.values()]
    arguments = COMMANDS[name](folder, port, ports)
    if name == "nginx":
        file = folder / "nginx.conf"
        with_address = f"listen 127.0.0.1:{port} ssl proxy_protocol;"
        text = file.read_text("utf-8")
        assert with_address in text
        file.write_text(
            text.replace(with_address, f"listen 127.0.0.1:{plain_port} ssl; {with_address}")
        )
    with (folder / "proxy.txt").open("wb") as output:
        process = subprocess.Popen(arguments, stdout=output, stderr=subprocess.STDOUT)
    proxy = Proxy(name, port, plain_port, authority.context())
    try:
        until(lambda: proxy.post({}, "127.0.0.2") == 400 or process.poll() is not None)
        assert process.poll() is None, (folder / "proxy.txt").read_text("utf-8")
        yield proxy
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture
def three(
    shards: tuple[Server, Server], tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Collectors]:
    seed = request.node.callspec.params.get("seed", "") if hasattr(request.node, "callspec") else ""
    found = Collectors.of(shards, f"b_{request.node.originalname}_{seed}", tmp_path, TRUSTING)
    for number, ahead_s in getattr(request, "param", {}).items():
        found[number].command = (sys.executable, "-c", WITH_WRONG_CLOCK.format(ahead_s), "run")
    found.start()
    yield found
    found.stop()


@pytest.fixture
def proxy(three: Collectors, tmp_path: Path) -> Iterator[Proxy]:
    with proxied("nginx", tmp_path / "nginx", three) as started:
        yield started


@pytest.fixture
def proxies(three: Collectors, tmp_path: Path) -> Iterator[list[Proxy]]:
    with ExitStack() as running:
        yield [running.enter_context(proxied(name, tmp_path / name, three)) for name in COMMANDS]


def registered(three: Collectors, *hostnames: str) -> Client:
    client = three[1].client()
    for hostname in hostnames:
        client.add_website(hostname)
    others = [Client(three[number].port, client.cookie) for number in (2, 3)]
    expected = client.get("/api/websites")
    until(lambda: all(each.request("GET", "/api/websites").json == expected for each in others))
    until(lambda: all(command(daemon, "status")[0] == 0 for daemon in three.daemons.values()))
    return client


def hits(host: str) -> Iterator[tuple[dict[str, object], str]]:
    """Return the hits of twelve visitors, with the address of each."""
    for visitor in range(12):
        address = f"127.0.1.{visitor + 1}"
        for page in range(1 + visitor % 4):
            beacon = f"{host}{visitor}p{page}"
            path = (visitor + page) % 5
            yield HIT | {"b": beacon, "u": f"https://{host}/{path}", "p": page == 0}, address
            if page == 1:
                sent = {"e": "custom", "b": beacon, "g": host, "d": {"plan": f"p{visitor % 2}"}}
                yield sent, address
            # Some have another address when they leave: another collector gets that.
            left = address if visitor % 3 else f"127.0.2.{visitor + 1}"
            yield {"e": "unload", "b": beacon, "m": 1_000 * visitor + page + 1}, left


PARAMETERS: tuple[dict[str, str], ...] = ({"visits": "true"}, {"views": "true"})


def test_the_figures_are_those_of_one_daemon(
    three: Collectors, proxies: list[Proxy], tmp_path: Path
) -> None:
    alone = Daemon(tmp_path / "alone", configuration=TRUSTING)
    alone.start()
    single = alone.client()
    hosts = {proxy.name: f"{proxy.name}.example" for proxy in proxies}
    for hostname in (*hosts.values(), "page.localhost"):
        single.add_website(hostname)
    client = registered(three, *hosts.values(), "page.localhost")
    for proxy in proxies:
        for body, address in hits(hosts[proxy.name]):
            assert proxy.post(body, address) == 204
            headers = {"User-Agent": AGENT, "X-Forwarded-For": address}
            answer = single.request("POST", "/api/event/hit", body, headers)
            assert answer.status == 204
    names = ("summary", *(statistic.name for statistic in STATISTICS))

    def figures(proxy: Proxy, name: str, parameters: dict[str, str]) -> tuple[object, object]:
        path = f"/api/website/{hosts[proxy.name]}/{name}?{urlencode(parameters)}"
        status, body = proxy.get(path, client.cookie or "")
        assert status == 200, (name, status, body)
        return json.loads(body), single.get(path)

    asked = [
        *product(proxies[:1], names, PARAMETERS),
        *product(proxies[1:], names, PARAMETERS[:1]),
    ]
    for each in asked:
        until(lambda each=each: len({json.dumps(found) for found in figures(*each)}) == 1)
    stored = three.client()
    found = stored.query(
        "SELECT website, uniqExact(bitShiftRight(view, 48)) AS collectors"
        f" FROM {stored.table('views')} GROUP BY website"
    )
    assert len(found["website"]) == len(proxies)
    assert min(found["collectors"]) > 1
    proxy, host = proxies[0], hosts["nginx"]
    bases = f"https://localhost:{proxy.plain_port}", alone.base
    cookies = client.cookie or "", single.cookie or ""
    with sync_playwright() as playwright, closing(launch(playwright, usual_browser())) as browser:
        for base in bases:
            visit(browser, base, "page.localhost")
        seen = "/api/website/page.localhost/pages?views=true"
        until(lambda: paths(proxy.get(seen, cookies[0])[1]) == ["/", "/about"])
        assert paths(single.request("GET", seen).body) == ["/", "/about"]
        now = datetime.now(UTC)
        shown = [
            shown_on(browser, base, cookie, f"/dashboard/websites/{host}", now)
            for base, cookie in zip(bases, cookies, strict=True)
        ]
        assert shown[0] == shown[1]
        assert "/4" in shown[0]
    alone.stop()


def paths(body: bytes) -> list[str]:
    return sorted(row["path"] for row in json.loads(body))


def visit(browser: Browser, base: str, hostname: str) -> None:
    """Visit two pages that have the tracker of a daemon."""
    context = browser.new_context(ignore_https_errors=True)
    page = context.new_page()
    with served(f'<script defer src="{base}/script.js"></script>') as site:
        for path in ("/", "/about"):
            with page.expect_response(lambda answer: answer.url.endswith("/hit")) as answer:
                page.goto(site.address(hostname, path))
            assert answer.value.status == 204
    context.close()


def shown_on(browser: Browser, base: str, cookie: str, path: str, now: datetime) -> str:
    """Return what a website's page of the dashboard shows at a time, once it has the figures."""
    context = browser.new_context(ignore_https_errors=True, locale="en-GB")
    name, _, value = cookie.partition("=")
    context.add_cookies([{"name": name, "value": value, "url": base}])
    page = context.new_page()
    # The page says until which minute its figures go.
    page.clock.set_fixed_time(now)
    page.goto(f"{base}{path}")
    page.get_by_text("/4", exact=True).first.wait_for(timeout=PATIENCE_S * 1000)
    # The table of the chart comes with the chart, which is loaded later than the rest.
    page.locator("th", has_text="Views per visit").first.wait_for(state="attached")
    page.wait_for_load_state("networkidle")
    found = page.locator("main").inner_text()
    context.close()
    return found


@define(eq=False)
class Play:
    """Hits that arrive while collectors are killed and promoted.

    What is acknowledged counts once. Of the rest, nobody knows.
    """

    three: Collectors
    proxy: Proxy
    chance: random.Random
    loaded: set[str] = field(factory=set)
    """The paths of the views that were acknowledged."""
    left: dict[str, int] = field(factory=dict)
    """The longest duration that was acknowledged, by path."""
    unknown: dict[str, int] = field(factory=dict)
    """The longest duration that was not, by path, at least 0 for a view."""
    count: int = 0

    def disturb(self) -> None:
        """Kill a collector, or start the one that is down; and promote one, or not."""
        three, down = self.three, self.down()
        if down:
            three[down[0]].start()
        else:
            three[self.chance.choice((1, 2, 3))].kill()
        if self.chance.random() < 0.5:
            running = [number for number in (1, 2, 3) if three[number].is_running]
            command(three[self.chance.choice(running)], "promote")

    def down(self) -> list[int]:
        return [number for number, each in self.three.daemons.items() if not each.is_running]

    def load(self) -> None:
        self.count += 1
        path = f"/{self.count}"
        if self._post(HIT | {"b": f"b{self.count}", "u": f"https://{HOST}{path}"}):
            self.loaded.add(path)
        else:
            self.unknown[path] = 0

    def leave(self) -> None:
        number, duration_ms = self.chance.randrange(self.count) + 1, self.chance.randrange(1, 9_000)
        body = {"e": "unload", "b": f"b{number}", "m": duration_ms}
        known = self.left if self._post(body) else self.unknown
        known[f"/{number}"] = max(known.get(f"/{number}", 0), duration_ms)

    def _post(self, body: object) -> bool:
        return self.proxy.post(body, f"203.0.113.{self.chance.randrange(250)}") == 204

    def is_in(self, found: dict[str, int]) -> bool:
        """Return whether these are the durations by path. Each path is there once."""
        assert found.keys() <= self.loaded | self.unknown.keys()
        return self.loaded <= found.keys() and all(
            self.left.get(path, 0)
            <= duration_ms
            <= max(self.left.get(path, 0), self.unknown.get(path, 0))
            for path, duration_ms in found.items()
        )


def play(three: Collectors, proxy: Proxy, rounds: int, seed: int) -> None:
    registered(three, HOST)
    played = Play(three, proxy, random.Random(seed))  # noqa: S311
    for _ in range(rounds):
        played.disturb()
        for _ in range(played.chance.randrange(10, 40)):
            played.load()
        for _ in range(played.chance.randrange(10, 30)):
            played.leave()
    for number in played.down():
        three[number].start()
    stored = three.client()
    until(lambda: played.is_in(durations(stored)))
    until(lambda: all(command(daemon, "status")[0] == 0 for daemon in three.daemons.values()))
    reports = [command(daemon, "status", "--json")[1] for daemon in three.daemons.values()]
    assert len({json.loads(report)["primary"] for report in reports}) == 1
    assert [daemon.log for daemon in three.daemons.values() if "Traceback" in daemon.log] == []


WRONG_CLOCKS = {2: 240, 3: -240}
"""By how many seconds the clocks of collectors are wrong."""


@pytest.mark.parametrize("three", [WRONG_CLOCKS], indirect=True, ids=["wrong clocks"])
def test_every_acknowledged_hit_counts_once(three: Collectors, proxy: Proxy) -> None:
    play(three, proxy, 10, 1)


EARLIER = """from functools import partial
import msgspec
from medamad.cluster import peers
from medamad.daemon import collectors
from medamad.storage import migrations, startup
from medamad.storage.compaction import job, planner
from medamad.storage.environment import environment, meta
for module in (meta, environment, migrations):
    module.FORMAT = 12
migrations._STEPS = ()
job.encode_segment = partial(job.encode_segment, with_visits=False)
startup.start_store.__defaults__ = (planner.Sizes(chunk_views=20), None)
collectors._MESSAGES = msgspec.msgpack.Decoder(peers.Greeting | peers.PassedHits)
"""
"""Makes of a process one of an earlier build.

Its store has the format before, with segments that lack what they have now, and it does not know
what collectors have asked each other since.
"""


@pytest.fixture
def earlier(shards: tuple[Server, Server], tmp_path: Path) -> Iterator[Collectors]:
    found = Collectors.of(shards, "b_earlier", tmp_path, TRUSTING)
    for daemon in found.daemons.values():
        daemon.before = EARLIER
    found.start()
    yield found
    found.stop()


def test_collectors_are_updated_one_after_the_other(earlier: Collectors, tmp_path: Path) -> None:
    three, hits = earlier, 0
    with proxied("haproxy", tmp_path / "proxy", three) as proxy:
        client = registered(three, HOST)
        played = Play(three, proxy, random.Random(1))  # noqa: S311
        is_over = Event()

        def visit_pages() -> None:
            while not is_over.is_set():
                played.load()
                played.leave()

        visitors = Thread(target=visit_pages)
        visitors.start()
        try:
            for number in (2, 3, 1):
                until(lambda least=hits + 100: played.count > least)
                three[number].stop()
                hits = played.count
                path = f"/api/website/{HOST}/summary"
                assert proxy.get(path, client.cookie or "")[0] == 200
                until(lambda least=hits + 20: played.count > least)
                three[number].before = ""
                three[number].start()
                assert "the store has format 13 now" in three[number].log
                until(lambda number=number: command(three[number], "status")[0] == 0)
                # Those of an earlier build do not know this question.
                usage = Client(three[number].port, client.cookie).get("/api/user/usage")
                assert usage["collectors"]["silent"] == {2: [1, 3], 3: [1], 1: []}[number]
        finally:
            is_over.set()
            visitors.join()
    assert len(played.loaded) > 300
    until(lambda: played.is_in(durations(three.client())))
    assert [daemon.log for daemon in three.daemons.values() if "Traceback" in daemon.log] == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("three", [WRONG_CLOCKS], indirect=True, ids=["wrong clocks"])
def test_every_acknowledged_hit_counts_once_in_many_rounds(
    three: Collectors, proxy: Proxy, seed: int
) -> None:
    play(three, proxy, 10, seed)
