"""The example proxy configurations, run with real nginx and Caddy."""

import http.client
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from attrs import frozen
from support.certificates import Authority
from support.daemon import (
    PASSWORD,
    PATIENCE_S,
    USERNAME,
    Answer,
    Daemon,
    first_headers,
    free_port,
    running,
    until,
)

pytestmark = pytest.mark.daemon

EXAMPLES = Path(__file__).parents[2] / "etc" / "proxies"
CONFIGURATION = """
[server]
trusted_proxies = ["127.0.0.1"]
hostnames = ["localhost"]
"""
VISITOR = "127.0.0.2"
"""The address of a visitor, not of a proxy."""


def nginx_of(folder: Path, port: int, daemon: Daemon) -> Sequence[str]:
    """Write nginx's configuration around the example and return the command."""
    example = (EXAMPLES / "nginx.conf").read_text("utf-8")
    changes = {
        "127.0.0.1:8080": f"127.0.0.1:{daemon.port}",
        "listen 80;": f"listen 127.0.0.1:{free_port()};",
        "    listen [::]:80;\n": "",
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "    listen [::]:443 ssl;\n": "",
        "stats.example.com;": "localhost;",
        "/etc/letsencrypt/live/stats.example.com": str(folder),
    }
    kept = f"access_log {folder}/access.log; " + " ".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{ {kept}\n{changed(example, changes)}\n}}\n",
        "utf-8",
    )
    return ("nginx", "-e", f"{folder}/error.log", "-p", str(folder), "-c", f"{folder}/nginx.conf")


def caddy_of(folder: Path, port: int, daemon: Daemon) -> Sequence[str]:
    """Write Caddy's configuration around the example and return the command."""
    example = (EXAMPLES / "Caddyfile").read_text("utf-8")
    site = f"https://localhost:{port} {{\n\ttls {folder}/fullchain.pem {folder}/privkey.pem"
    changes = {
        "127.0.0.1:8080": f"127.0.0.1:{daemon.port}",
        "stats.example.com {": site,
    }
    (folder / "Caddyfile").write_text(
        "{\n\tadmin off\n\tauto_https off\n}\n" + changed(example, changes), "utf-8"
    )
    home = ("env", f"XDG_DATA_HOME={folder}/caddy", f"XDG_CONFIG_HOME={folder}/caddy")
    return (*home, "caddy", "run", "--adapter", "caddyfile", "--config", f"{folder}/Caddyfile")


def changed(text: str, changes: dict[str, str]) -> str:
    """Return the text with each passage replaced; every passage must occur."""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return text


@frozen
class Proxied:
    """A daemon behind a proxy."""

    daemon: Daemon
    authority: Authority
    port: int

    def request(
        self, method: str, path: str, body: object = None, source: str = "", **headers: str
    ) -> Answer:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection = self.authority.connection(self.port, source=source)
        try:
            if body is not None:
                sent["Content-Type"] = "application/json"
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            return Answer(answer.status, first_headers(answer), answer.read())
        finally:
            connection.close()

    @property
    def origin(self) -> str:
        return f"https://localhost:{self.port}"

    def answers(self) -> bool:
        try:
            return self.request("GET", "/api/event/ping").status == http.client.OK
        except OSError:
            return False


Command = Callable[[Path, int, Daemon], Sequence[str]]


@contextmanager
def proxied(folder: Path, command_of: Command) -> Iterator[Proxied]:
    authority = Authority(folder)
    port = free_port()
    with running(folder / "medamad", configuration=CONFIGURATION) as daemon:
        with (folder / "proxy.txt").open("wb") as output:
            command = command_of(folder, port, daemon)
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            proxy = Proxied(daemon, authority, port)
            until(lambda: proxy.answers() or process.poll() is not None)
            assert process.poll() is None, (folder / "proxy.txt").read_text("utf-8")
            yield proxy
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


COMMANDS: Mapping[str, Command] = {"nginx": nginx_of, "caddy": caddy_of}


@pytest.fixture(scope="module", params=COMMANDS)
def proxy(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxied]:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    folder = tmp_path_factory.mktemp(request.param)
    with proxied(folder, COMMANDS[request.param]) as ready:
        yield ready


def load(beacon: str, hostname: str = "example.com") -> dict[str, object]:
    return {"e": "load", "b": beacon, "u": f"https://{hostname}/", "p": True, "q": True}


def test_the_owner_logs_in_and_visitors_are_counted(proxy: Proxied) -> None:
    login = {"username": USERNAME, "password": PASSWORD}
    # nginx leaves out the port, which is the usual one for others than a test; browsers say so too.
    same = {"Origin": proxy.origin, "Sec-Fetch-Site": "same-origin"}
    answer = proxy.request("POST", "/api/auth/login", login, **same)
    assert answer.status == 200
    cookie = answer.headers["set-cookie"].partition(";")[0]
    website = {"hostname": "example.com"}
    elsewhere = {"Cookie": cookie, "Origin": "https://elsewhere.example"}
    assert proxy.request("POST", "/api/websites", website, **elsewhere).status == 403
    ours = {"Cookie": cookie, **same}
    assert proxy.request("POST", "/api/websites", website, **ours).status == 201
    assert proxy.request("POST", "/api/event/hit", load("a")).status == 204
    shown = proxy.request("GET", "/api/website/example.com/summary", Cookie=cookie).json
    assert shown["current"]["pageviews"] == 1
    assert "script" in proxy.request("GET", "/dashboard/").body.decode()


@pytest.mark.parametrize("path", ["/health", "/health/live", "/metrics"])
def test_internal_endpoints_are_not_proxied(proxy: Proxied, path: str) -> None:
    assert proxy.daemon.client().request("GET", path).status == 200
    answer = proxy.request("GET", path)
    assert answer.status == 404
    # It is the proxy that says so, not medamad.
    assert "x-api-commit" not in answer.headers


def test_the_visitors_address_comes_from_the_proxy(proxy: Proxied) -> None:
    client = proxy.daemon.client()
    client.add_website("blocked.example")
    (proxy.daemon.folder / "blocked.txt").write_text(f"{VISITOR}\n", "utf-8")
    os.kill(proxy.daemon.pid, signal.SIGHUP)
    until(lambda: "the configuration was reloaded" in proxy.daemon.log)
    answer = proxy.request("POST", "/api/event/hit", load("a", "blocked.example"))
    assert "x-medamad-ignored" not in answer.headers
    for claimed in ({}, {"X_Forwarded_For": "192.0.2.1"}, {"Forwarded": "for=192.0.2.1"}):
        hit = load("b", "blocked.example")
        answer = proxy.request("POST", "/api/event/hit", hit, source=VISITOR, **claimed)
        assert answer.headers["x-medamad-ignored"] == "blocked"


def test_the_host_is_the_one_requested_from_the_proxy(proxy: Proxied) -> None:
    claimed = {"X_Forwarded_Host": "evil.example", "Forwarded": "host=evil.example"}
    assert proxy.request("GET", "/dashboard/", **claimed).status == 200
    for claimed in ({}, {"X_Forwarded_Host": "localhost"}, {"Forwarded": "host=localhost"}):
        answer = proxy.request("GET", "/dashboard/", Host="evil.example", **claimed)
        # Caddy has no such site, and answers by itself.
        assert answer.status == 400 or "x-api-commit" not in answer.headers


@pytest.mark.parametrize("name", ["nginx", "caddy"])
def test_no_proxy_logs_a_visitor_while_the_daemon_is_down(tmp_path: Path, name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    page = "https://example.com/private/page"
    visit = {"Referer": page, "User_Agent": "Visitor/1.0", "Accept_Language": "rm"}
    with proxied(tmp_path, COMMANDS[name]) as proxy:
        proxy.request("POST", "/api/event/hit", load("a"), source=VISITOR, **visit)
        too_large = load("b" * 3_000_000)
        with suppress(OSError):
            proxy.request("POST", "/api/event/hit", too_large, source=VISITOR, **visit)
        gone = proxy.authority.connection(proxy.port, source=VISITOR)
        gone.request("GET", "/api/event/ping?n=example.com/private/page", headers={"Referer": page})
        gone.close()
        proxy.daemon.stop()
        for method, path, body in (
            ("POST", "/api/event/hit", load("c")),
            ("GET", "/api/event/ping?n=example.com/private/page", None),
            ("GET", "/api/event/pixel.gif?u=" + page, None),
        ):
            answer = proxy.request(method, path, body, source=VISITOR, **visit)
            assert answer.status >= 500
        proxy.daemon.start()
    kept = {
        file.name: file.read_text("utf-8", "replace")
        for file in tmp_path.rglob("*")
        if file.is_file() and (tmp_path / "medamad") not in file.parents
    }
    assert {"proxy.txt"} <= kept.keys()
    for text in (VISITOR, "private/page", "Visitor/1.0"):
        assert [file for file, content in kept.items() if text in content] == []


@pytest.mark.skipif(shutil.which("nginx") is None, reason="nginx is not installed")
def test_nginx_logs_no_visitor(tmp_path: Path) -> None:
    with proxied(tmp_path, nginx_of) as proxy:
        assert proxy.request("GET", "/api/event/ping", source=VISITOR).status == 200
        plain = re.search(
            r"listen 127\.0\.0\.1:(\d+);", (tmp_path / "nginx.conf").read_text("utf-8")
        )
        assert plain is not None
        visit = http.client.HTTPConnection(
            "127.0.0.1", int(plain[1]), timeout=PATIENCE_S, source_address=(VISITOR, 0)
        )
        visit.request("GET", "/share/abc", headers={"Host": "localhost"})
        assert visit.getresponse().status == 301
        visit.close()
    assert (tmp_path / "access.log").read_text("utf-8") == ""


def test_the_nginx_example_works_in_every_supported_release() -> None:
    for name in ("nginx.conf", "nginx-subpath.conf"):
        lines = (EXAMPLES / name).read_text("utf-8").splitlines()
        assert not [line for line in lines if "http2" in line.partition("#")[0]]
