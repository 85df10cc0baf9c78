"""Browsers of three engines as people run them, each with a profile that stays on disk.

They are started with an address, follow a page's links to others, and are ended; what they do is
seen by what they send to the daemon, through a proxy that notes it.
"""

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final
from urllib.parse import urlsplit

from attrs import define, field, frozen
from support.browser.chromium import CHROMIUM, HEADLESS_FLAGS
from support.browser.visitors import DESKTOP
from support.daemon import until

ENGINES: Final = ("chromium", "firefox", "webkit")
_FIREFOX: Final = "firefox-esr"
_WEBKIT: Final = (*Path("/usr/lib").glob("*/webkit2gtk-4.*/MiniBrowser"),)
_PREFERENCES: Final = """
user_pref("app.update.enabled", false);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("toolkit.startup.max_resumed_crashes", -1);
"""
_FOLLOW: Final = """<script>
{{
    let isAsking = false;
    const follow = async () => {{
        if (isAsking || document.hidden) return;
        isAsking = true;
        const link = document.createElement("a");
        link.href = await (await fetch("{base}/next")).text();
        link.rel = "noreferrer";
        document.body.append(link);
        link.click();
    }};
    document.addEventListener("visibilitychange", follow);
    follow();
}}
</script>"""
"""Follow a link to the next address, which the test says later.

The next page learns nothing of this one, as if the address had been typed in. A page that Firefox
opens again in a second tab stays where it is, since nothing of a hidden page is counted.
"""
_UNTIL_WRITTEN_S: Final = 1.5
"""In which browsers write their caches to the disk."""
_UNTIL_ENDED_S: Final = 20


def is_installed(engine: str) -> bool:
    """Return whether a browser of an engine is installed, with what it needs."""
    if engine == "chromium":
        return Path(CHROMIUM).exists()
    if engine == "firefox":
        return shutil.which(_FIREFOX) is not None
    return bool(_WEBKIT) and shutil.which("xvfb-run") is not None


@frozen
class Profile:
    """A browser that keeps its cache between its runs."""

    engine: str
    folder: Path

    @contextmanager
    def opened(self, address: str) -> Iterator[None]:
        """Run the browser with an address; what its cache has is on disk in the end."""
        command, environ = self._command()
        with (self.folder / "output").open("ab") as output:
            process = subprocess.Popen(
                [*command, address],
                env=os.environ | environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            yield
            time.sleep(_UNTIL_WRITTEN_S)
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(_UNTIL_ENDED_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _command(self) -> tuple[tuple[str, ...], Mapping[str, str]]:
        folder = self.folder / "profile"
        folder.mkdir(exist_ok=True)
        if self.engine == "chromium":
            flags = (*HEADLESS_FLAGS, f"--user-agent={DESKTOP}", "--remote-debugging-port=0")
            return (CHROMIUM, *flags, f"--user-data-dir={folder}"), {}
        if self.engine == "firefox":
            (folder / "user.js").write_text(_PREFERENCES)
            command = (_FIREFOX, "--headless", "--no-remote", "--profile", str(folder))
            return command, {"HOME": str(folder), "MOZ_CRASHREPORTER_DISABLE": "1"}
        homes = {f"XDG_{name}_HOME": str(folder / name) for name in ("CACHE", "CONFIG", "DATA")}
        # Its sandbox needs what containers forbid.
        software = {"WEBKIT_DISABLE_COMPOSITING_MODE": "1", "LIBGL_ALWAYS_SOFTWARE": "1"}
        unsandboxed = {"WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1"}
        return ("xvfb-run", "-a", str(_WEBKIT[0])), homes | software | unsandboxed


@frozen
class Ping:
    """A ping as it arrived."""

    query: str
    since: str | None
    tag: str | None


@define(slots=False)
class Proxy(ThreadingHTTPServer):
    """Passes requests on to a daemon and notes pings, hits and what pages report to it.

    It tells pages with its `follow` where to go next.
    """

    port: int
    """The daemon's."""
    pings: list[Ping]
    hits: list[dict[str, Any]]
    reports: list[Any]
    next: SimpleQueue[str]

    daemon_threads = True

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def follow(self) -> str:
        """What a page has so that its browser can be led on."""
        return _FOLLOW.format(base=self.base)

    def clear(self) -> None:
        """Forget what has been noted."""
        for noted in (self.pings, self.hits, self.reports):
            noted.clear()

    def leave(self) -> None:
        """Let go what a page of a browser that has ended asked for last."""
        last, self.next = self.next, SimpleQueue()
        last.put("")

    def wait_for_load(self) -> dict[str, Any]:
        """Return the load that is sent."""
        until(lambda: any(hit["e"] == "load" for hit in self.hits))
        return next(hit for hit in self.hits if hit["e"] == "load")

    def wait_for_report(self) -> Any:
        """Return what a page has reported."""
        until(lambda: bool(self.reports))
        return self.reports[0]


@define
class Browsing:
    """A browser that opens one address after another, in as few runs as the test wants."""

    profile: Profile
    proxy: Proxy
    run: ExitStack = field(factory=ExitStack)
    is_running: bool = False

    def open(self, address: str) -> None:
        """Start the browser with an address, or lead it there from a page with `follow`."""
        if self.is_running:
            self.proxy.next.put(address)
        else:
            self.run.enter_context(self.profile.opened(address))
            self.is_running = True

    def end(self) -> None:
        """End the browser; the next address starts it anew."""
        self.is_running = False
        self.run.close()
        self.proxy.leave()


@contextmanager
def browsing(profile: Profile, proxy: Proxy) -> Iterator[Browsing]:
    """Return a browser that is not started yet, and is ended at the exit."""
    browser = Browsing(profile, proxy)
    try:
        yield browser
    finally:
        browser.end()


@contextmanager
def noting_proxy(base: str) -> Iterator[Proxy]:
    """Run a proxy in front of a daemon."""
    proxy = Proxy(urlsplit(base).port or 80, [], [], [], SimpleQueue())
    ThreadingHTTPServer.__init__(proxy, ("127.0.0.1", 0), _Passing)
    thread = Thread(target=proxy.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()


class _Passing(BaseHTTPRequestHandler):
    server: Proxy
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        if path == "/next":
            if address := self.server.next.get():
                self._respond(200, [("Access-Control-Allow-Origin", "*")], address.encode())
            return
        if path.endswith("/event/ping"):
            headers = self.headers
            ping = Ping(query, headers["If-Modified-Since"], headers["If-None-Match"])
            self.server.pings.append(ping)
        self._pass_on(None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/report":
            self.server.reports.append(json.loads(body))
            self._respond(204, [("Access-Control-Allow-Origin", "*")], b"")
            return
        self._pass_on(body)
        if self.path.endswith("/event/hit"):
            self.server.hits.append(json.loads(body))

    def _pass_on(self, body: bytes | None) -> None:
        connection = HTTPConnection("127.0.0.1", self.server.port)
        headers = {name: value for name, value in self.headers.items() if name != "Connection"}
        connection.request(self.command, self.path, body, headers)
        response = connection.getresponse()
        self._respond(response.status, response.getheaders(), response.read())
        connection.close()

    def _respond(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in {"connection", "content-length", "transfer-encoding"}:
                self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""
