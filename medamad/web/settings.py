"""The configuration of the HTTP side."""

from pathlib import Path
from typing import Final, Literal, TypeAlias

from attrs import field, frozen

from medamad.ingest.networks import Networks
from medamad.lookup.referrers import Sources

ProxyHeader: TypeAlias = Literal["X-Forwarded-For", "Forwarded"]
"""The header by which proxies tell whose request they pass on."""

EVENTS: Final = "event"
"""The first segment of the paths that events are sent to."""


@frozen(kw_only=True)
class WebSettings:
    """The settings of one moment; a new value takes the place of the old one as a whole."""

    sources: Sources
    """What referrers are called."""
    data_dir: Path
    """The folder on the volume whose use is reported."""
    commit: str
    """What `X-Api-Commit` says."""
    demo: bool = False
    """Whether every change but login and logout is refused."""
    hostnames: frozenset[str] = frozenset()
    """The names that the service is asked by; none for any."""
    cors_origins: frozenset[str] = frozenset()
    """Origins, as browsers write them, whose pages may use the interface with the cookie."""
    trusted_proxies: Networks = field(factory=lambda: Networks(()))
    """Where a peer has to be for its forwarding headers to be believed."""
    trust_unix: bool = False
    """Whether the peers on a unix socket are trusted proxies too."""
    proxy_header: ProxyHeader = "X-Forwarded-For"
    """Which header they write; what stands in the other one anybody may have sent."""
    metrics_from: Networks = field(factory=lambda: Networks(()))
    """Where a sender has to be to see health and metrics."""
    metrics_from_unix: bool = False
    """Whether whoever connects over a unix socket sees them too."""
    script_name: str = "script.js"
    """The further name at which the tracker is served, at the root."""
    event_name: str = EVENTS
    """The further name of the path of events, which the tracker uses."""
    max_body_bytes: int = 16_384
    max_connections: int = 10_000
    max_connections_per_network: int = 1_000
    """How many of a /24 or /48, trusted proxies and local networks aside."""
    idle_seconds: float = 75.0
    """How long a connection may be silent between requests."""
    request_seconds: float = 12.0
    """How long a request may take to arrive, from its first byte to its last."""
    answer_seconds: float = 120.0
    """How long an answer may take to be found."""
    reading_seconds: float = 12.0
    """How long a client may take to receive an answer, or the next piece of a long one."""
    stream_seconds: float = 3_600.0
    """How long an answer that is sent piece by piece may take in all."""
