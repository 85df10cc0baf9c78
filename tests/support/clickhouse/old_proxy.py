"""A proxy in front of a ClickHouse 18.16, for programs that speak to a current one.

It leaves out the settings and the parts of tables that the old one does not know, and writes
parameters into statements. It can also cut connections, in a request or in an answer.
"""

import re
import socket
from collections.abc import Iterator
from email import message_from_bytes
from http.client import HTTPConnection, HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from threading import Thread
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from attrs import define, field

_KNOWN: Final = frozenset(
    {
        "distributed_ddl_task_timeout",
        "distributed_product_mode",
        "insert_deduplicate",
        "insert_distributed_sync",
        "insert_quorum",
        "insert_quorum_timeout",
        "max_execution_time",
        "max_memory_usage",
        "query",
        "readonly",
        "skip_unavailable_shards",
        "wait_end_of_query",
    }
)
_LOGIN: Final = ("X-ClickHouse-User", "X-ClickHouse-Key")
_PATIENCE_S: Final = 60.0


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: connections end at any time here."""


@define(eq=False)
class OldProxy:
    """Passes statements on to a port of this machine. `cuts` says what share of them is cut."""

    target: int
    chance: Random = field(factory=Random)
    cuts: float = 0.0
    cut: int = 0
    """How many connections have been cut."""
    _server: _Server = field(init=False)

    def __attrs_post_init__(self) -> None:
        passes_on = type("PassesOn", (_Handler,), {"proxy": self})
        self._server = _Server(("127.0.0.1", 0), passes_on)
        Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def chosen_cut(self) -> str:
        """Return where the next statement is cut: "request", "answer", or "" if it is not."""
        if self.chance.random() >= self.cuts:
            return ""
        self.cut += 1
        return self.chance.choice(["request", "answer", "answer"])


class _Handler(BaseHTTPRequestHandler):
    proxy: OldProxy
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE_S

    def do_POST(self) -> None:
        """Pass a statement on, and its answer back."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.close_connection = True
        cut = self.proxy.chosen_cut()
        try:
            if cut == "request":
                self._pass_beginning(body)
                return
            status, answer = self._answer(body)
        except (OSError, HTTPException):
            return
        head = f"HTTP/1.1 {status} .\r\nContent-Length: {len(answer)}\r\nConnection: close\r\n\r\n"
        whole = head.encode() + answer
        if cut == "answer":
            whole = whole[: self.proxy.chance.randrange(len(whole))]
        self.wfile.write(whole)

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def _pass_beginning(self, body: bytes) -> None:
        head = f"POST {self._target()} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}"
        with socket.create_connection(("127.0.0.1", self.proxy.target), _PATIENCE_S) as server:
            server.sendall(f"{head}\r\n\r\n".encode())
            server.sendall(body[: self.proxy.chance.randrange(len(body) + 1)])

    def _answer(self, body: bytes) -> tuple[int, bytes]:
        server = HTTPConnection("127.0.0.1", self.proxy.target, timeout=_PATIENCE_S)
        try:
            kind = self.headers.get("Content-Type", "")
            if kind.startswith("multipart/"):
                body = _with_parameters(f"Content-Type: {kind}\r\n\r\n".encode() + body)
            elif body.startswith(b"CREATE "):
                body = _without_news(body.decode()).encode()
            login = {name: self.headers[name] for name in _LOGIN}
            server.request("POST", self._target(), body, login)
            response = server.getresponse()
            return response.status, response.read()
        finally:
            server.close()

    def _target(self) -> str:
        settings = parse_qsl(urlsplit(self.path).query, keep_blank_values=True)
        return "/?" + urlencode([each for each in settings if each[0] in _KNOWN])


def _without_news(statement: str) -> str:
    """Return a CREATE statement without what is newer than 18.16.

    Texts of low cardinality are only an experiment there, and cannot be inserted as plain ones.
    """
    statement = statement.replace("LowCardinality(String)", "String")
    return re.sub(r" CODEC\([^)]*\)|, INDEX \w+ \w+ TYPE minmax GRANULARITY 1", "", statement)


def _with_parameters(form: bytes) -> bytes:
    """Return the statement in a form, with its parameters: numbers, and plain names."""
    fields = dict(_fields(form))
    statement = fields.pop("query")
    for name, text in fields.items():
        parameter = re.escape(name.removeprefix("param_"))
        value = text if text.isdecimal() else f"'{text}'"
        statement = re.sub(rf"\{{{parameter}:\w+\}}", value, statement)
    return statement.encode()


def _fields(form: bytes) -> Iterator[tuple[str, str]]:
    for part in message_from_bytes(form).get_payload():
        name = part.get_param("name", header="content-disposition")
        yield str(name), part.get_payload(decode=True).decode()
