"""A small website of ours, served from memory under any hostname that ends in .localhost."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{path}</title>
<link rel="icon" href="data:,">
<h1>{path}</h1>
<nav><a href="/">Home</a> <a href="/about">About</a> <a href="/blank">Away</a></nav>
{tag}
</html>
"""


class Site(ThreadingHTTPServer):
    """Answers every path with a page that carries `tag`, but /blank with one that does not."""

    daemon_threads = True

    def __init__(self, tag: str) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        self.tag = tag

    def address(self, hostname: str, path: str = "/") -> str:
        return f"http://{hostname}:{self.server_port}{path}"


class _Request(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        tag = "" if path == "/blank" else self.server.tag
        body = PAGE.format(path=path, tag=tag).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@contextmanager
def served(tag: str) -> Iterator[Site]:
    """Serve the website while the context lasts."""
    site = Site(tag)
    thread = Thread(target=site.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        thread.join()
        site.server_close()
