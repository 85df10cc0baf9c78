from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.build import shipped_file
from medamad.ingest.networks import (
    Address,
    Networks,
    Sender,
    address_of,
    is_address,
    is_local,
    prefix_of,
    read_networks,
)

NETWORKS = Networks(
    map(
        ip_network,
        [
            "192.0.2.7",
            "198.51.100.0/24",
            "2001:db8:12::/48",
            "::ffff:203.0.113.0/120",
        ],
    )
)


def octets(text: str) -> Address:
    address = address_of(text)
    assert address is not None
    return address


@pytest.mark.parametrize(
    ("address", "is_in"),
    [
        ("192.0.2.7", True),
        ("192.0.2.8", False),
        ("198.51.100.255", True),
        ("198.51.101.0", False),
        ("::ffff:198.51.100.1", True),
        ("203.0.113.9", True),
        ("::ffff:203.0.113.9", True),
        ("2001:db8:12:ffff::1", True),
        ("2001:db8:13::", False),
        ("::c000:207", False),
    ],
)
def test_an_address_is_in_a_network(address: str, is_in: bool) -> None:
    assert (octets(address) in NETWORKS) is is_in


def test_a_set_may_have_no_address_or_all() -> None:
    assert octets("192.0.2.7") not in Networks()
    assert octets("2001:db8::1") in Networks([IPv6Network("::/0")])
    assert octets("192.0.2.7") not in Networks([IPv6Network("::/0")])
    assert octets("192.0.2.7") in Networks([IPv4Network("0.0.0.0/0")])
    assert len(NETWORKS) == 4


ADDRESSES = st.ip_addresses(network="192.0.2.0/26") | st.ip_addresses(network="2001:db8::/120")
SOME = st.lists(st.builds(lambda a, n: ip_network((a, a.max_prefixlen - n), strict=False),
                          ADDRESSES, st.integers(0, 8)), max_size=6)  # fmt: skip


@given(SOME, ADDRESSES)
def test_a_network_set_contains_the_addresses_of_all_its_networks(networks, address) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
    assert (address.packed in Networks(networks)) == any(address in network for network in networks)


@pytest.mark.parametrize(
    ("address", "prefix"),
    [
        ("192.0.2.7", b"\xc0\x00\x02"),
        ("::ffff:192.0.2.200", b"\xc0\x00\x02"),
        ("2001:db8:12:34::5", b"\x20\x01\x0d\xb8\x00\x12"),
    ],
)
def test_rate_limits_group_addresses_by_24_or_48_bit_prefix(address: str, prefix: bytes) -> None:
    assert prefix_of(octets(address)) == prefix


@pytest.mark.parametrize(
    ("address", "is_one"),
    [
        ("127.0.0.1", True),
        ("10.1.2.3", True),
        ("172.31.0.1", True),
        ("172.32.0.1", False),
        ("192.168.1.1", True),
        ("169.254.1.1", True),
        ("::1", True),
        ("fd00::1", True),
        ("fe80::1", True),
        ("::ffff:10.0.0.1", True),
        ("192.0.2.1", False),
        ("203.0.113.1", False),
        ("2001:db8::1", False),
    ],
)
def test_local_addresses_are_recognised(address: str, is_one: bool) -> None:
    assert is_local(octets(address)) is is_one


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.7", b"\xc0\x00\x02"),
        ("2001:db8:12:34::5", b"\x20\x01\x0d\xb8\x00\x12"),
        ("10.0.0.1", b""),
        ("fd00::1", b""),
        (None, b""),
    ],
)
def test_no_limit_of_networks_applies_to_local_senders(address: str | None, network: bytes) -> None:
    assert Sender(None if address is None else octets(address)).network == network


def test_networks_are_read_one_per_line() -> None:
    text = "# office\n192.0.2.7 # me\n\n198.51.100.0/24\n2001:db8::/32\n"
    assert list(map(str, read_networks(text))) == [
        "192.0.2.7/32",
        "198.51.100.0/24",
        "2001:db8::/32",
    ]


@pytest.mark.parametrize(
    "line", ["example.com", "192.0.2.0/33", "192.0.2", "198.51.100.0/2", "2001:db8:12::/4"]
)
def test_an_invalid_line_is_reported_by_number(line: str) -> None:
    with pytest.raises(ValueError, match="line 2: expected an address or a network"):
        list(read_networks(f"192.0.2.7\n{line}\n"))


def test_the_shipped_file_blocks_nothing() -> None:
    assert list(read_networks(shipped_file("blocked.txt").read_text("utf-8"))) == []


@pytest.mark.parametrize(
    ("host", "is_one"),
    [
        ("192.0.2.1", True),
        ("192.0.2.1.", True),
        ("2130706433", True),
        ("0x7f.1", True),
        ("0x7f000001", True),
        ("127.1", True),
        ("010.0.0.1", True),
        ("::1", True),
        ("[2001:db8::1]", True),
        ("::ffff:192.0.2.1", True),
        ("fe80::1%eth0", True),
        ("example.com", False),
        ("1.example.com", False),
        ("0xabc.example", False),
        ("example.c0m", False),
        ("a:b", False),
        ("", False),
    ],
)
def test_ip_addresses_are_distinguished_from_hostnames(host: str, is_one: bool) -> None:
    assert is_address(host) is is_one


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:8080", "192.0.2.1"),
        ("192.0.2.1:_port", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:8080", "2001:db8::1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
    ],
)
def test_an_address_is_parsed(text: str, address: str) -> None:
    assert address_of(text) == ip_address(address).packed


@pytest.mark.parametrize(
    "text", ["", "unknown", "_hidden", "192.0.2.256", "192.0.2.1:", "example.com", "1", "[::1"]
)
def test_an_invalid_address_parses_to_none(text: str) -> None:
    assert address_of(text) is None
