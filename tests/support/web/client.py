"""Requests to a site in memory: bytes in, bytes out, no socket."""

import socket
from collections.abc import Iterable, Mapping
from http import HTTPStatus

import msgspec
from attrs import Factory, define, field, frozen
from support.daemon import PATIENCE_S
from twisted.internet import reactor
from twisted.internet.address import IPv4Address, UNIXAddress
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import INegotiated
from twisted.internet.task import Clock
from twisted.internet.tcp import Connection as TcpConnection
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from zope.interface import directlyProvides

from medamad.web.server.parser import RequestHeaders
from medamad.web.server.site import Site

HOST = "stats.example.com"
NO_BODY = (204, 304)


@frozen
class Answer:
    """An answer, taken apart. Names of headers are in lower case; each value is kept."""

    status: int
    headers: dict[str, list[str]]
    body: bytes

    def header(self, name: str) -> str | None:
        values = self.headers.get(name.lower())
        return None if values is None else ", ".join(values)

    @property
    def json(self) -> object:
        assert self.header("Content-Type") == "application/json"
        return msgspec.json.decode(self.body)

    @property
    def error(self) -> str:
        """The message of an error object, which has to be one in every respect."""
        content = self.json
        assert isinstance(content, dict)
        assert list(content) == ["error"]
        assert sorted(content["error"]) == ["code", "message"]
        assert content["error"]["code"] == self.status
        assert self.header("X-Api-Commit") == "c0ffee1"
        assert self.header("Cache-Control") == "no-store"
        assert self.header("X-Content-Type-Options") == "nosniff"
        return content["error"]["message"]


def parse(data: bytes, method: str) -> tuple[Answer, bytes] | None:
    """Parse one response; return None while it is incomplete."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None
    status_line, *lines = head.decode("latin-1").split("\r\n")
    _, code, phrase = status_line.split(" ", 2)
    status = int(code)
    assert phrase == HTTPStatus(status).phrase
    headers: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        headers.setdefault(name.lower(), []).append(value)
    if status == 100:
        return parse(rest, method)
    if "transfer-encoding" in headers:
        assert headers["transfer-encoding"] == ["chunked"]
        assert "content-length" not in headers
        return _of_chunks(status, headers, rest)
    length = 0
    if status not in NO_BODY and method != "HEAD":
        (text,) = headers["content-length"]
        length = int(text)
    if len(rest) < length:
        return None
    return Answer(status, headers, rest[:length]), rest[length:]


def _of_chunks(
    status: int, headers: dict[str, list[str]], rest: bytes
) -> tuple[Answer, bytes] | None:
    body = b""
    while True:
        size, end, rest = rest.partition(b"\r\n")
        if not end or len(rest) < int(size, 16) + 2:
            return None
        length = int(size, 16)
        body += rest[:length]
        assert rest[length : length + 2] == b"\r\n"
        rest = rest[length + 2 :]
        if not length:
            return Answer(status, headers, body), rest


class Wire(StringTransport):
    """A transport that tells of what is written, and of its own end."""

    def __init__(self, peer: str | None) -> None:
        address = UNIXAddress(None) if peer is None else IPv4Address("TCP", peer, 50_000)
        super().__init__(hostAddress=IPv4Address("TCP", "127.0.0.1", 8080), peerAddress=address)
        self.written: Deferred[None] | None = None
        self.aborted = False
        self.half_closed = False

    def write(self, data: bytes) -> None:
        super().write(data)
        if self.written is not None:
            written, self.written = self.written, None
            # A real transport tells nobody in the middle of a write.
            reactor.callLater(0, written.callback, None)

    def writeSequence(self, data: Iterable[bytes]) -> None:
        self.write(b"".join(data))

    def loseWriteConnection(self) -> None:
        self.half_closed = True

    def abortConnection(self) -> None:
        self.aborted = True

    def setTcpNoDelay(self, _enabled: bool) -> None:
        pass


class Unread(Wire):
    """A transport of which the kernel holds what nobody receives."""

    def __init__(self) -> None:
        super().__init__("203.0.113.9")
        self.socket, self.other_end = socket.socketpair()
        self.socket.setblocking(False)

    def write(self, data: bytes) -> None:
        super().write(data)
        self.socket.send(data)


class Kernel(Wire, TcpConnection):
    """A transport whose kernel takes a number of bytes at once, and no more for now."""

    def __init__(self, room: int) -> None:
        super().__init__("203.0.113.9")
        self.room = room
        self.waits = b""

    def writeSomeData(self, data: bytes) -> int | Exception:
        if self.room < 0:
            return ConnectionLost()
        assert not self.waits, "what is written now would overtake what waits"
        taken, self.room = data[: self.room], max(0, self.room - len(data))
        super().write(taken)
        return len(taken)

    def write(self, data: bytes) -> None:
        self.waits += data


@define(eq=False)
class Connection:
    """One connection to a site."""

    site: Site
    peer: str | None = "203.0.113.9"
    wire: Wire = field(default=Factory(lambda self: Wire(self.peer), takes_self=True))
    channel: object = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.channel = self.site.buildProtocol(self.wire.getPeer())
        if self.channel is not None:
            self.channel.makeConnection(self.wire)

    def push(self, data: bytes) -> None:
        self.channel.dataReceived(data)

    def close(self) -> None:
        self.channel.connectionLost(Failure(ConnectionDone()))

    async def answer(self, method: str = "GET") -> Answer:
        """Return the next answer, and take it off what was received."""
        if isinstance(self.site.reactor, Clock):
            # A request that is laborious comes in a later turn.
            self.site.reactor.advance(0)
        while (found := parse(self.wire.value(), method)) is None:
            self.wire.written = Deferred()
            self.wire.written.addTimeout(PATIENCE_S, reactor)
            await self.wire.written
        answer, rest = found
        self.wire.clear()
        StringTransport.write(self.wire, rest)
        return answer

    async def talk(self, data: bytes, method: str = "GET") -> Answer:
        self.push(data)
        return await self.answer(method)


def headers_of(headers: Mapping[str | bytes, Iterable[str | bytes]]) -> RequestHeaders:
    """Return headers as they are read of a request."""

    def as_bytes(text: str | bytes) -> bytes:
        return text.encode("latin-1") if isinstance(text, str) else text

    return RequestHeaders(
        [(as_bytes(name).lower(), tuple(map(as_bytes, values))) for name, values in headers.items()]
    )


def encoded(
    method: str,
    target: str,
    headers: dict[str, str],
    body: bytes = b"",
) -> bytes:
    """Return a request as it goes over the wire."""
    fields = {"Host": HOST} | headers
    if body:
        fields.setdefault("Content-Length", str(len(body)))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


@define(eq=False)
class Browser:
    """Sends requests, each on a connection of its own, and keeps the session cookie."""

    site: Site
    cookie: str | None = None
    peer: str | None = "203.0.113.9"
    host: str = HOST

    async def ask(
        self,
        method: str,
        target: str,
        json: object = None,
        *,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        sent = {"Host": self.host} | (headers or {})
        if json is not None:
            body = msgspec.json.encode(json)
            sent.setdefault("Content-Type", "application/json")
        if self.cookie is not None:
            sent.setdefault("Cookie", f"_me_sess={self.cookie}")
        connection = Connection(self.site, self.peer)
        answer = await connection.talk(encoded(method, target, sent, body), method)
        connection.close()
        return answer

    async def log_in(self, username: str, password: str) -> Answer:
        answer = await self.ask(
            "POST", "/api/auth/login", {"username": username, "password": password}
        )
        cookie, _ = answer.headers["set-cookie"]
        self.cookie = cookie.partition(";")[0].removeprefix("_me_sess=")
        return answer


def over_tls(site: Site, wire: Wire | None = None) -> Connection:
    """Return a connection whose wire says that it is TLS, on one of its own."""
    wire = wire or Wire("203.0.113.9")
    wire.transport = Wire("203.0.113.9")
    directlyProvides(wire, INegotiated)
    connection = Connection(site, wire=wire)
    connection.channel.handshakeCompleted()
    return connection


def answers(*connections: Connection) -> int:
    return sum(one.wire.value().count(b"HTTP/1.1 ") for one in connections)
