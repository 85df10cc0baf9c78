"""The settings of the HTTP side."""

from pathlib import Path
from typing import Final, Literal, TypeAlias

from attrs import field, frozen

from medamad.ingest.networks import Networks
from medamad.lookup.referrers import Sources
from medamad.lookup.robots import Robots

ProxyHeader: TypeAlias = Literal["X-Forwarded-For", "Forwarded"]
"""The header in which proxies name the client of a request that they forward."""

API_PREFIX: Final = "api"
"""The first segment of a path under which the API is served, besides the root."""
EVENT_NAME: Final = "event"
"""The first segment of the paths that the tracker uses."""


@frozen(kw_only=True)
class WebSettings:
    """The current settings; a reload replaces the whole value."""

    sources: Sources
    """The names of the sources of referrers."""
    data_dir: Path
    """The folder whose volume the usage report describes."""
    commit: str
    """The value of `X-Api-Commit`."""
    robots: Robots = field(factory=Robots)
    """Who runs robots, and what for."""
    demo: bool = False
    """Whether every change except login and logout is refused."""
    base_path: str = ""
    """The path below which a proxy serves everything, such as "/stats"; "" for the root."""
    public_url: str = ""
    """The origin at which browsers reach the service; "" where it is not known."""
    webhook_networks: Networks = field(factory=lambda: Networks(()))
    """The networks that webhooks may reach besides public addresses."""
    hostnames: frozenset[str] = frozenset()
    """The host names that requests may use; empty for any."""
    cors_origins: frozenset[str] = frozenset()
    """Origins, as browsers write them, whose pages may use the interface with the cookie."""
    trusted_proxies: Networks = field(factory=lambda: Networks(()))
    """The networks of the proxies whose forwarding headers are trusted."""
    trust_unix: bool = False
    """Whether peers on a unix socket are also trusted proxies."""
    proxy_header: ProxyHeader = "X-Forwarded-For"
    """The header that they set; anyone may have sent the other one."""
    metrics_from: Networks = field(factory=lambda: Networks(()))
    """The networks that may see health and metrics."""
    metrics_from_unix: bool = False
    """Whether clients on a unix socket may also see them."""
    script_name: str = "script.js"
    """A second name of the tracker, at the root."""
    event_name: str = EVENT_NAME
    """Another first segment for these paths, which the shipped tracker then uses."""
    max_body_bytes: int = 16_384
    max_connections: int = 10_000
    max_connections_per_network: int = 1_000
    """For each /24 or /48 except trusted proxies and local networks."""
    idle_seconds: float = 75.0
    """How long a connection may be silent between requests."""
    request_seconds: float = 12.0
    """How long a request may take to arrive, from its first byte to its last."""
    answer_seconds: float = 120.0
    """How long a response, or the next piece of one, may take to be made."""
    receive_seconds: float = 12.0
    """How long a client may take to receive a response, or the next piece of a long one."""
    stream_seconds: float = 3_600.0
    """How long a response that is sent piece by piece may take in total."""
