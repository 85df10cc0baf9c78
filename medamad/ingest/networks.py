"""Addresses and networks, and the sender of a hit."""

import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from socket import AF_INET, inet_pton
from typing import Final, TypeAlias

import msgspec

Address: TypeAlias = bytes
"""The 4 octets of an IPv4 address, or the 16 of an IPv6 one. One that is mapped is of IPv4."""

_WITH_PORT: Final = re.compile(
    r"(?:\[(?P<six>[^\]]+)\]|(?P<four>[0-9.]+))(?::(?:[0-9]{1,5}|_[\w.-]+))?\Z"
)


class Sender(msgspec.Struct, frozen=True):
    """What the request of a hit reveals about its sender. Never stored or logged.

    `address` is None if the connection has none (a Unix socket without a trusted proxy); missing
    headers are "".
    """

    address: Address | None
    user_agent: str = ""
    accept_language: str = ""
    origin: str = ""
    """The origin of the page."""
    gpc: bool = False
    """Whether the browser sends Global Privacy Control."""
    sent_bytes: int = 0
    """The size of the request."""
    network: bytes = b""
    """The /24 or /48 of the address, for limits; b"" if there is no address or a local one.

    It is set from the address. Behind a proxy that is not trusted, all visitors have a local one.
    """

    def __post_init__(self) -> None:
        address = self.address
        network = b"" if address is None or is_local(address) else prefix_of(address)
        msgspec.structs.force_setattr(self, "network", network)


def address_of(text: str) -> Address | None:
    """Return the address in a text, with or without a port; a mapped IPv4 address as IPv4."""
    try:
        # Most are IPv4, and `ip_address` takes many times as long.
        return inet_pton(AF_INET, text)
    except (OSError, ValueError):
        return _other_address_of(text)


def _other_address_of(text: str) -> Address | None:
    with_port = _WITH_PORT.match(text)
    if with_port:
        text = with_port["six"] or with_port["four"]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).packed


Network: TypeAlias = IPv4Network | IPv6Network

_MAPPED: Final = IPv6Network("::ffff:0:0/96")
_V4_OCTETS: Final = 4
_V4_PREFIX_OCTETS: Final = 3
_V6_PREFIX_OCTETS: Final = 6
"""The first octets of an address, which make its /24 or /48."""
_V6_HOST_OCTETS: Final = 8


class Networks:
    """A set of networks; `address in networks` takes one look-up for each prefix length.

    Networks of mapped IPv4 addresses (`::ffff:192.0.2.0/120`) count as those of IPv4.
    """

    def __init__(self, networks: Iterable[Network] = ()) -> None:
        self._v4: Final[dict[int, set[int]]] = {}
        self._v6: Final[dict[int, set[int]]] = {}
        """The first addresses of networks, without the bits in which a network's addresses differ,
        by the number of these."""
        for network in map(_unmapped_network, networks):
            drop = network.max_prefixlen - network.prefixlen
            starts = self._v4 if isinstance(network, IPv4Network) else self._v6
            starts.setdefault(drop, set()).add(int(network.network_address) >> drop)

    def __contains__(self, address: Address) -> bool:
        # Every hit is looked up several times. A generator would take most of that.
        starts = self._v4 if len(address) == _V4_OCTETS else self._v6
        if starts:
            number = int.from_bytes(address, "big")
            for drop, of_size in starts.items():
                if number >> drop in of_size:
                    return True
        return False

    def __len__(self) -> int:
        return sum(map(len, (*self._v4.values(), *self._v6.values())))


def read_networks(text: str) -> Iterator[Network]:
    """Yield the addresses and networks of a text, one per line; a # begins a comment.

    They are yielded one by one, so that the garbage collector never has many objects to scan.
    Raises ValueError naming the line that is neither.
    """
    for number, line in enumerate(text.splitlines(), start=1):
        if entry := line.partition("#")[0].strip():
            try:
                yield ip_network(entry)
            except ValueError as error:
                reason = f"line {number}: expected an address or a network: {error}"
                raise ValueError(reason) from None


def prefix_of(address: Address) -> bytes:
    """Return the /24 (3 octets) or /48 (6 octets) of an address."""
    is_v4 = len(address) == _V4_OCTETS
    return address[: _V4_PREFIX_OCTETS if is_v4 else _V6_PREFIX_OCTETS]


def host_prefix_of(address: Address) -> bytes:
    """Return an IPv4 address (4 octets), or the /64 (8 octets) of an IPv6 one.

    Browsers change the rest of an IPv6 address every day or with each connection.
    """
    return address[:_V6_HOST_OCTETS]


def is_loopback(address: Address) -> bool:
    """Return whether an address is that of the machine itself."""
    return ip_address(address).is_loopback


def is_local(address: Address) -> bool:
    """Return whether an address is loopback, private (RFC 1918, RFC 4193) or link-local."""
    return address in _LOCAL


def _unmapped_network(network: Network) -> Network:
    if isinstance(network, IPv4Network) or not network.subnet_of(_MAPPED):
        return network
    start = network.network_address.packed[-_V4_OCTETS:]
    return IPv4Network((start, network.prefixlen - _MAPPED.prefixlen))


_LOCAL: Final = Networks(
    map(
        ip_network,
        [
            "10.0.0.0/8",
            "127.0.0.0/8",
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "::1/128",
            "fc00::/7",
            "fe80::/10",
        ],
    )
)


_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z", re.ASCII | re.IGNORECASE)


def is_address(host: str) -> bool:
    """Return whether the host of a URL is an IP address, with or without brackets.

    As browsers read it (WHATWG URL, "ends in a number"): a host whose last label is a number,
    decimal, octal or hexadecimal, is an IPv4 address, or a failed one.
    """
    text = host.removeprefix("[").removesuffix("]")
    if ":" in text:
        return _is_v6(text)
    return _NUMBER.match(text.removesuffix(".").rpartition(".")[2]) is not None


def _is_v6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
