"""A small website of ours, served from memory under any hostname that ends in .localhost."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import MappingProxyType
from typing import Final

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{path}</title>
<link rel="icon" href="data:,">
<h1>{path}</h1>
<nav><a href="/">Home</a> <a href="/about">About</a> <a href="/blank">Away</a></nav>
{content}
{tag}
</html>
"""
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class Site(ThreadingHTTPServer):
    """Answers every request with a page that carries `tag`, but for /blank with one that does not.

    `contents` is what else a page has, by its path. What is below /missing is not found.
    """

    daemon_threads = True

    def __init__(self, tag: str, contents: Mapping[str, str], headers: Mapping[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.tag = tag
        self.contents = contents
        self.headers = headers

    def address(self, hostname: str, path: str = "/") -> str:
        return f"http://{hostname}:{self.server_port}{path}"


class _Request(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        tag = "" if path == "/blank" else self.server.tag
        content = self.server.contents.get(path, "")
        body = PAGE.format(path=path, tag=tag, content=content).encode()
        self.send_response(404 if path.startswith("/missing") else 200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        # What is left unread when the connection is closed may take the answer with it.
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""


@contextmanager
def served(
    tag: str, contents: Mapping[str, str] = NOTHING, headers: Mapping[str, str] = NOTHING
) -> Iterator[Site]:
    """Serve the website while the context lasts; `headers` come with every page."""
    site = Site(tag, contents, headers)
    thread = Thread(target=site.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        thread.join()
        site.server_close()
