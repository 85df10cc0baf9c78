"""The buffers of a connection: what is read at once, was not read yet, and was not received."""

from fcntl import ioctl
from socket import SO_SNDBUF, SOL_SOCKET
from struct import Struct
from termios import FIONREAD, TIOCOUTQ
from typing import Any, Final

from twisted.internet.tcp import Connection as TcpConnection

SEND_BUFFER_BYTES: Final = 65_536
"""The kernel's send buffer for a connection (Linux doubles it). By default it grows to megabytes
for each client that requests much and receives nothing."""
READ_BYTES: Final = 2_048
"""How much is read from a connection in a reactor turn, enough for most hits. By default it is 64
kB, which may be hundreds of requests or thousands of TLS records of one byte."""
_INT: Final = Struct("@i")


def limit_buffers(transport: Any) -> None:
    """Set how much is read from a connection at once, and its send buffer, if it has a socket."""
    socket = getattr(transport, "socket", None)
    if socket is not None:
        # TLS reads by the transport below it.
        getattr(transport, "transport", transport).bufferSize = READ_BYTES
        socket.setsockopt(SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES)


def send_at_once(transport: Any, data: bytes) -> int:
    """Send what the kernel takes now, if this is TCP without TLS; return how many bytes that was.

    Nothing may be in the transport's buffer. Its `write` would wait for a reactor turn, which costs
    more than all else about a short response.
    """
    # The transport of TLS passes on attributes of TCP's, which would send what is not encrypted.
    is_plain = isinstance(transport, TcpConnection) and transport.connected
    sent = transport.writeSomeData(data) if is_plain else 0
    # The transport finds out about an error when it writes.
    return sent if isinstance(sent, int) else 0


def unread_bytes(transport: Any) -> int:
    """Return how many bytes have arrived at the socket and were not read."""
    return _bytes(transport, FIONREAD)


def unsent_bytes(transport: Any) -> int:
    """Return how many bytes the other end has not acknowledged.

    What the transport itself still buffers comes on top, but only if the kernel's buffer is full.
    """
    return _bytes(transport, TIOCOUTQ)


def _bytes(transport: Any, request: int) -> int:
    socket = getattr(transport, "socket", None)
    if socket is None or socket.fileno() < 0:
        return 0
    count: int
    (count,) = _INT.unpack(ioctl(socket.fileno(), request, _INT.pack(0)))
    return count
