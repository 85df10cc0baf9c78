"""Clients that post loads as fast as they are answered, and note which were acknowledged."""

import json
import socket
from collections.abc import Callable
from threading import Event

from attrs import define, field
from support.daemon import PATIENCE_S

HOSTNAME = "example.com"


@define
class Sent:
    """What one client has sent, by path; each hit has a path and a beacon of its own."""

    acknowledged: list[str] = field(factory=list)
    """Noted as soon as the answer was read."""
    unanswered: list[str] = field(factory=list)
    left: dict[str, int] = field(factory=dict)
    """After how many milliseconds the pages were left whose unload was acknowledged."""
    events: list[str] = field(factory=list)
    """The pages on which an event was acknowledged, one on each."""

    def add(self, other: "Sent") -> None:
        self.acknowledged += other.acknowledged
        self.unanswered += other.unanswered
        self.left |= other.left
        self.events += other.events


class Connection:
    """A keep-alive connection that posts hits as fast as they are answered."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)

    def close(self) -> None:
        self._socket.close()

    def load(self, path: str) -> bytes:
        """Post a load; returns the head of the answer, whole or cut off. Raises OSError."""
        return self.post(
            {
                "e": "load",
                "b": beacon_of(path),
                "u": f"https://{HOSTNAME}{path}",
                "p": True,
                "q": True,
            }
        )

    def unload(self, path: str, after_ms: int) -> bytes:
        """Post the unload of a page; returns what `load` does."""
        return self.post({"e": "unload", "b": beacon_of(path), "m": after_ms})

    def event(self, path: str) -> bytes:
        """Post an event on a page, with the path as its property `on`; returns what `load` does."""
        return self.post({"e": "custom", "b": beacon_of(path), "g": HOSTNAME, "d": {"on": path}})

    def post(self, hit: dict[str, object]) -> bytes:
        """Post a hit; returns the head of the answer, whole or cut off. Raises OSError."""
        body = json.dumps(hit)
        self._socket.sendall(
            b"POST /api/event/hit HTTP/1.1\r\nHost: stats.example\r\n"
            b"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Firefox/133.0\r\n"
            b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body.encode())
        )
        header = b""
        while b"\r\n\r\n" not in header:
            received = self._socket.recv(4096)
            if not received:
                raise ConnectionResetError
            header += received
        return header


def beacon_of(path: str) -> str:
    """Return the beacon of the load of a path."""
    return path.replace("/", "-")


def press(
    port: int,
    prefix: str,
    stop: Event,
    sent: Sent,
    *,
    whole: bool = False,
    pause_s: float = 0,
) -> None:
    """Post loads until the daemon dies, or until asked to stop, and count the results.

    It may be dead before this client connects. With `whole`, each page is left, with an event on
    every third.
    """
    try:
        connection = Connection(port)
    except OSError:
        return

    def is_acknowledged(post: Callable[..., bytes], path: str, *more: int) -> bool:
        try:
            header = post(path, *more)
        except OSError:
            return False
        assert header.startswith(b"HTTP/1.1 204 "), header
        return True

    try:
        while not stop.wait(pause_s):
            number = len(sent.acknowledged)
            path = f"{prefix}{number}"
            if not is_acknowledged(connection.load, path):
                sent.unanswered.append(path)
                break
            sent.acknowledged.append(path)
            if whole:
                if not is_acknowledged(connection.unload, path, number + 1):
                    break
                sent.left[path] = number + 1
                if number % 3 == 0:
                    if not is_acknowledged(connection.event, path):
                        break
                    sent.events.append(path)
    finally:
        connection.close()
