"""Who sends a hit."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final, TypeAlias

from attrs import frozen

Address: TypeAlias = IPv4Address | IPv6Address

_WITH_PORT: Final = re.compile(
    r"(?:\[(?P<six>[^\]]+)\]|(?P<four>[0-9.]+))(?::(?:[0-9]{1,5}|_[\w.-]+))?\Z"
)


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
    sent_bytes: int = 0
    """How much is sent in all."""


def address_of(text: str) -> Address | None:
    """Read an address with or without a port; one of IPv4 mapped into IPv6 is one of IPv4."""
    with_port = _WITH_PORT.match(text)
    if with_port:
        text = with_port["six"] or with_port["four"]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address
