"""What `medamad status` and others ask of the daemon itself, and what they are told."""

from msgspec import Struct

from medamad.operator.wire import Request


class Status(Request, frozen=True):
    """Asks what state the daemon is in."""


class State(Struct, frozen=True, kw_only=True):
    """The state of a running daemon. Times are whole Unix seconds, sizes bytes."""

    version: str
    commit: str
    pid: int
    started: int
    listening: tuple[str, ...]
    """Where it takes requests, as the configuration or systemd named it."""
    connections: int
    websites: int
    visitors: int
    """Of all websites, at the moment."""
    accepted: int
    """Hits of the last 24 hours, as far as the daemon has run."""
    refused: dict[str, int]
    """The same of those that were not stored, by reason."""
    last_minute: int
    """Hits accepted in the last full minute."""
    waiting: int
    """Hits that wait to be written."""
    commits: int
    commit_seconds: float
    """How long all of these took together."""
    store_bytes: int
    store_max_bytes: int
    disk_free_bytes: int
    last_backup: int | None
    """When the newest was made of those that the daemon makes by itself."""
    lacks: tuple[str, ...]
    """Why no hits are taken; none when they are."""
    warnings: tuple[str, ...]


class AskConfiguration(Request, frozen=True):
    """Asks by which configuration the daemon goes."""


class Configuration(Struct, frozen=True, kw_only=True):
    """By what a running daemon goes."""

    file: str | None
    """None where it goes by the defaults."""
    timezone: str
    """In which days end, as it was when the file was read last."""
    min_free_disk: int | None = None
    """Bytes that stay free, likewise; an earlier version does not tell."""
