"""The protocol of the admin socket: frames, requests and responses."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct

from medamad.domain.exported_settings import ExportedSettings

SOCKET_NAME: Final = "operator.sock"
"""The socket's name in the data directory."""
MAX_FRAME_BYTES: Final = 4 << 20
_MAX_ADDRESS_BYTES: Final = 107
"""The size of sun_path (unix(7)), less the null byte."""


class AdminRequest(Struct, frozen=True, tag=True):
    """A request of a command. The name of its class is its tag."""


class Progress(Struct, frozen=True, tag=True):
    """The progress of a request."""

    text: str
    """What is being done, for the operator."""
    done: int = 0
    total: int = 0
    """The amount of work, 0 if unknown."""


class Done(Struct, frozen=True, tag=True):
    """A request succeeded."""

    result: msgspec.Raw


class Refused(Struct, frozen=True, tag=True):
    """A request was refused or failed; `reason` is for the operator."""

    reason: str


AdminResponse: TypeAlias = Progress | Done | Refused


@contextmanager
def reachable(data_dir: Path) -> Iterator[str]:
    """Return a path of the socket that is short enough for an address, valid inside the context.

    Raises OSError if the directory cannot be opened.
    """
    path = str(data_dir / SOCKET_NAME)
    if len(os.fsencode(path)) <= _MAX_ADDRESS_BYTES:
        yield path
        return
    folder = os.open(data_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{SOCKET_NAME}"
    finally:
        os.close(folder)


class Status(AdminRequest, frozen=True):
    """Request the state of the daemon."""


class ClusterReport(Struct, frozen=True, kw_only=True):
    """How far the cluster has the hits of this collector."""

    collector: int
    waiting: int
    """How many rows of the log wait to be sent."""
    lag_s: float
    """How long the first of them has been stored."""
    unsafe: int
    """How many rows of the log are on too few replicas."""
    degraded: str
    """What needs attention, "" for nothing."""
    rows: int
    """How many rows of views and events were sent since the start."""
    failures: int
    """How often sending has failed since the start."""
    has_earlier: bool
    """Whether there are hits from before there was a cluster, which are not sent."""
    primary: int = 0
    """Which collector is the primary."""
    others: dict[int, str] = {}
    """Why each of the other collectors cannot be reached, "" if it can."""
    passed_on: int = 0
    """How many hits other collectors have taken from this one since the start."""
    to_pass_on: int = 0
    """How many hits wait for other collectors, counted once for each of these."""
    is_scattered: bool = False
    """Whether too many unloads and events reach another collector than their view."""


class DaemonState(Struct, frozen=True, kw_only=True):
    """The state of a running daemon. Times are whole Unix seconds, sizes bytes."""

    version: str
    commit: str
    pid: int
    started: int
    listening: tuple[str, ...]
    """The endpoints, as named by the configuration or systemd."""
    connections: int
    websites: int
    visitors: int
    """The pages open now of all websites."""
    accepted: int
    """Hits stored in the last 24 hours, or since the start."""
    refused: dict[str, int]
    """Hits that were not stored in that time, by reason."""
    last_minute: int
    """Hits stored in the last full minute."""
    waiting: int
    """Hits waiting to be written."""
    commits: int
    commit_seconds: float
    """The total duration of the commits."""
    store_bytes: int
    store_max_bytes: int
    disk_free_bytes: int
    last_backup: int | None
    """When the newest backup in the configured folder was made."""
    compaction: str | None = None
    """Why the last start could not compact the store, as the next one will try; "" if it did not
    try, None if the next start will not."""
    backup_failure: str = ""
    """Why the backups need attention; "" if they are fine."""
    damage: str = ""
    """What is damaged in the store and what to do about it; "" for nothing."""
    unavailable_reasons: tuple[str, ...] = msgspec.field(name="lacks")
    """Why no hits are accepted; empty if they are."""
    warnings: tuple[str, ...]
    cluster: ClusterReport | None = None
    """None without a cluster."""


class ReportDamage(AdminRequest, frozen=True):
    """Report damaged values that a command has found, at most some hundreds."""

    values: tuple[tuple[str, bytes], ...]
    """Database and key of each."""


class SendTestMail(AdminRequest, frozen=True):
    """Request a mail to an address, which says that mails arrive."""

    address: str


class ImportSettings(AdminRequest, frozen=True):
    """Request that settings are added to those of a website; the result is an `Imported`."""

    hostname: str
    settings: ExportedSettings


class ResendHits(AdminRequest, frozen=True):
    """Request that all hits since a time, in Unix seconds, are sent to the cluster again.

    The result is how many rows these were.
    """

    since: int


class LoadHits(AdminRequest, frozen=True):
    """Request that the cluster gets all hits from before there was one.

    The result is how many rows of views and events were sent.
    """


class Promote(AdminRequest, frozen=True):
    """Request that this collector becomes the primary of its cluster.

    The result is the warning that the former primary could not be asked for its last settings, ""
    if it could.
    """


class GetConfiguration(AdminRequest, frozen=True):
    """Request what commands need to know of the configuration."""


class Configuration(Struct, frozen=True, kw_only=True):
    """What commands need to know of the running daemon's configuration."""

    file: str | None
    """None if the daemon uses the defaults."""
    timezone: str
    """The time zone of days, as last read from the file."""
    min_free_disk: int | None = None
    """Bytes of disk to leave free; None from an earlier version."""
    url: str = ""
    """Where a browser on this machine reaches the daemon; "" for none, or an earlier version."""
