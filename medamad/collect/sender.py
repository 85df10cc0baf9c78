"""Who sends a hit."""

from ipaddress import IPv4Address, IPv6Address
from typing import TypeAlias

from attrs import frozen

Address: TypeAlias = IPv4Address | IPv6Address


@frozen
class Sender:
    """What a request tells about its sender. Never stored or logged.

    `address` is None where the connection has none (a Unix socket without a trusted proxy); the
    headers are "" when absent.
    """

    address: Address | None
    user_agent: str = ""
    accept_language: str = ""
    origin: str = ""
    """The origin of the page that sends."""
    gpc: bool = False
    """Whether the browser objects to being followed (Global Privacy Control); told where rules
    ask for it."""
