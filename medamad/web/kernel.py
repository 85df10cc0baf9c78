"""What the kernel holds of a connection."""

from fcntl import ioctl
from socket import SO_SNDBUF, SOL_SOCKET
from struct import Struct
from termios import FIONREAD, TIOCOUTQ
from typing import Any, Final

SEND_BUFFER_BYTES: Final = 65_536
"""How much of its answers the kernel holds for a connection (Linux takes it twice): by itself it
would take megabytes for each that asks for much and receives nothing."""

_INT: Final = Struct("@i")


def bound_send_buffer(transport: Any) -> None:
    """Have the kernel hold no more than a little of what is sent, where there is a socket."""
    socket = getattr(transport, "socket", None)
    if socket is not None:
        socket.setsockopt(SOL_SOCKET, SO_SNDBUF, SEND_BUFFER_BYTES)


def unread_bytes(transport: Any) -> int:
    """Give how much has arrived that was not looked at yet, as far as that is known."""
    return _bytes_by(FIONREAD, transport)


def unreceived_bytes(transport: Any) -> int:
    """Give how much of what was sent has not arrived at the other end, as far as that is known.

    What a transport itself still holds comes only on top of that: it goes to the kernel first.
    """
    return _bytes_by(TIOCOUTQ, transport)


def _bytes_by(question: int, transport: Any) -> int:
    """Ask the kernel for a number of bytes; 0 where there is no socket."""
    socket = getattr(transport, "socket", None)
    if socket is None or socket.fileno() < 0:
        return 0
    found: int
    (found,) = _INT.unpack(ioctl(socket.fileno(), question, _INT.pack(0)))
    return found
