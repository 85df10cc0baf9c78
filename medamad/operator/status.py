"""What `medamad status` asks, and what it is told."""

from msgspec import Struct

from medamad.operator.wire import Request


class Status(Request, frozen=True):
    """Asks what state the daemon is in."""


class State(Struct, frozen=True, kw_only=True):
    """The state of a running daemon. Times are whole Unix seconds."""

    version: str
    pid: int
    started: int
    listening: tuple[str, ...]
    """Where it takes requests, as the configuration or systemd named it."""
    websites: int
