"""Clients that post loads as fast as they are answered, and note which were acknowledged."""

import json
import socket
from threading import Event

from attrs import define, field

HOSTNAME = "example.com"


@define
class Sent:
    """What one client has sent, by path; each hit has a path and a beacon of its own."""

    acknowledged: list[str] = field(factory=list)
    """Noted as soon as the answer was read."""
    unanswered: list[str] = field(factory=list)


class Connection:
    """A keep-alive connection that posts loads as fast as they are answered."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)

    def close(self) -> None:
        self._socket.close()

    def load(self, path: str) -> bytes:
        """Post a load; returns the head of the answer, whole or cut off. Raises OSError."""
        body = json.dumps(
            {
                "e": "load",
                "b": beacon_of(path),
                "u": f"https://{HOSTNAME}{path}",
                "p": True,
                "q": True,
            }
        )
        self._socket.sendall(
            b"POST /api/event/hit HTTP/1.1\r\nHost: stats.example\r\n"
            b"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Firefox/133.0\r\n"
            b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body.encode())
        )
        head = b""
        while b"\r\n\r\n" not in head:
            received = self._socket.recv(4096)
            if not received:
                raise ConnectionResetError
            head += received
        return head


def beacon_of(path: str) -> str:
    """Give the beacon of the load of a path."""
    return path.replace("/", "-")


def press(port: int, prefix: str, stop: Event, sent: Sent) -> None:
    """Post loads until the daemon dies, or until told to stop, and note what came of them."""
    connection = Connection(port)
    try:
        while not stop.is_set():
            path = f"{prefix}{len(sent.acknowledged)}"
            try:
                head = connection.load(path)
            except OSError:
                sent.unanswered.append(path)
                break
            assert head.startswith(b"HTTP/1.1 204 "), head
            sent.acknowledged.append(path)
    finally:
        connection.close()
