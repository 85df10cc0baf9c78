"""The comparison with other servers, against servers that speak their protocols.

Medama's is this program's own, so that a second daemon stands for it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from support.daemon import PASSWORD, USERNAME, Daemon, running

pytestmark = pytest.mark.daemon

PEERS = Path(__file__).parents[2] / "benchmarks/peers.py"
HOSTNAME = "gardenpost.example"
GIF = b"GIF89a"


class GoatCounter(ThreadingHTTPServer):
    """Counts hits at /count and has statistics under /api/v0, with a token."""

    daemon_threads = True
    token = "a-token"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), GoatCounterRequest)
        self.lock = Lock()
        self.hits: list[dict[str, str]] = []
        self.asked: list[str] = []


class GoatCounterRequest(BaseHTTPRequestHandler):
    """Closes the connection after a hit, as newer versions do; JSON comes in chunks."""

    protocol_version = "HTTP/1.1"
    server: GoatCounter

    def do_POST(self) -> None:
        address = urlsplit(self.path)
        assert address.path == "/count", self.path
        assert self.headers["User-Agent"].startswith("Mozilla/5.0 ")
        named = {name: texts[0] for name, texts in parse_qs(address.query).items()}
        with self.server.lock:
            self.server.hits.append(named | {"from": self.headers["X-Forwarded-For"]})
        self.send_response(200)
        self.send_header("Content-Type", "image/gif")
        self.send_header("Content-Length", str(len(GIF)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(GIF)

    def do_GET(self) -> None:
        assert self.headers["Authorization"] == f"Bearer {self.server.token}"
        assert self.headers["Content-Type"] == "application/json"
        address = urlsplit(self.path)
        assert {"start", "end"} <= parse_qs(address.query).keys()
        with self.server.lock:
            self.server.asked.append(address.path)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (b'{"total": ', b"1}", b""):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def goatcounter() -> Iterator[GoatCounter]:
    with GoatCounter() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def medama(tmp_path: Path) -> Iterator[Daemon]:
    configuration = '[server]\ntrusted_proxies = ["127.0.0.1"]'
    with running(tmp_path / "medama", configuration=configuration) as daemon:
        yield daemon


def measured(folder: Path, *arguments: str) -> dict[str, Any]:
    """Return the results of a small comparison."""
    environ = os.environ | {
        "MEDAMA_LOGIN": f"{USERNAME}:{PASSWORD}",
        "GOATCOUNTER_TOKEN": GoatCounter.token,
    }
    small = ("--views=60", "--turns=2", "--connections=4", "--repeat=1", f"--out={folder}")
    subprocess.run(
        [sys.executable, PEERS, "--goatcounter-store-every=0", *small, *arguments],
        check=True,
        env=environ,
        stdout=subprocess.DEVNULL,
    )
    found: dict[str, Any] = json.loads((folder / "peers.json").read_bytes())
    return found


def test_every_server_gets_the_same_views_and_queries(
    tmp_path: Path, medama: Daemon, goatcounter: GoatCounter
) -> None:
    result = measured(
        tmp_path, f"--medama={medama.port}", f"--goatcounter={goatcounter.server_port}"
    )
    names = {"medamad", "Medama", "GoatCounter"}
    assert {name: len(rates) for name, rates in result["hits"].items()} == dict.fromkeys(names, 2)
    queries = {query["name"]: query.keys() & names for query in result["queries"]}
    assert len(queries) == 39
    assert queries["pages, short, first 100, 30 days"] == names
    assert queries["time, short, first 100, all time"] == {"medamad", "Medama"}
    assert queries["browsers, short, first 100, one browser"] == {"medamad", "Medama"}

    pages = medama.client().get(f"/api/website/{HOSTNAME}/pages")
    views = {row["path"]: row["pageviews"] for row in pages}
    paths = [hit["p"] for hit in goatcounter.hits]
    assert views == {path: paths.count(path) for path in paths}
    assert len(paths) == 60
    assert {path.rpartition("/")[2] for path in goatcounter.asked} == {
        *("hits", "toprefs", "browsers", "systems", "sizes"),
        *("locations", "languages", "campaigns", "total"),
    }


def test_one_server_is_enough(tmp_path: Path, goatcounter: GoatCounter) -> None:
    result = measured(tmp_path, f"--goatcounter={goatcounter.server_port}")
    assert result["hits"].keys() == {"medamad", "GoatCounter"}
    assert "GoatCounter ms" in (tmp_path / "peers.md").read_text("utf-8")
