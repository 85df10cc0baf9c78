from ipaddress import ip_network
from pathlib import Path

import pytest
from attrs import evolve
from support.web.client import headers_of
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress

from medamad.ingest.networks import Networks, address_of
from medamad.lookup.referrers import Sources
from medamad.web.server.clients import (
    peer_address,
    requested_host,
    sender_address,
)
from medamad.web.settings import WebSettings

SETTINGS = WebSettings(
    sources=Sources({}),
    data_dir=Path(),
    commit="",
    trusted_proxies=Networks([ip_network("10.0.0.0/8"), ip_network("fd00::/8")]),
)
FORWARDED = evolve(SETTINGS, proxy_header="Forwarded")
"""Where proxies write the header of RFC 7239."""
PROXY = address_of("10.0.0.1")
CLIENT = address_of("203.0.113.9")


def test_the_address_is_that_of_the_socket() -> None:
    assert peer_address(IPv4Address("TCP", "192.0.2.1", 1)) == address_of("192.0.2.1")
    assert peer_address(IPv6Address("TCP", "::ffff:192.0.2.1", 1)) == address_of("192.0.2.1")
    assert peer_address(UNIXAddress("/run/x")) is None


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({}, "10.0.0.1"),
        ({"X-Forwarded-For": ["198.51.100.7"]}, "198.51.100.7"),
        ({"X-Forwarded-For": ["198.51.100.7:4711"]}, "198.51.100.7"),
        # Anything left of the right-most untrusted address may be forged.
        ({"X-Forwarded-For": ["1.2.3.4, 198.51.100.7"]}, "198.51.100.7"),
        ({"X-Forwarded-For": ["1.2.3.4", "198.51.100.7"]}, "198.51.100.7"),
        ({"X-Forwarded-For": ["198.51.100.7, 10.9.9.9 ,fd00::1"]}, "198.51.100.7"),
        ({"X-Forwarded-For": ["10.2.2.2, 10.3.3.3"]}, "10.2.2.2"),
        ({"X-Forwarded-For": ["198.51.100.7, unknown"]}, "10.0.0.1"),
        ({"X-Forwarded-For": ["198.51.100.7, unknown, 10.3.3.3"]}, "10.3.3.3"),
        ({"X-Forwarded-For": [""]}, "10.0.0.1"),
        ({"X-Forwarded-For": ["1.2.3.4, " * 5_000 + "198.51.100.7"]}, "198.51.100.7"),
        ({"X-Forwarded-For": ["198.51.100.7" + ", 10.2.2.2" * 64]}, "198.51.100.7"),
        ({"X-Forwarded-For": ["1.2.3.4, 198.51.100.7" + ", 10.2.2.2" * 64]}, "10.2.2.2"),
        # The header that the proxy does not write comes from the client.
        ({"Forwarded": ["for=198.51.100.7"]}, "10.0.0.1"),
        ({"Forwarded": ["for=1.2.3.4"], "X-Forwarded-For": ["198.51.100.7"]}, "198.51.100.7"),
    ],
)
def test_a_trusted_proxy_names_the_client(headers: dict[str, list[str]], address: str) -> None:
    assert sender_address(PROXY, headers_of(headers), SETTINGS) == address_of(address)


@pytest.mark.parametrize(
    ("headers", "address"),
    [
        ({}, "10.0.0.1"),
        ({"Forwarded": ["for=198.51.100.7;proto=https"]}, "198.51.100.7"),
        ({"Forwarded": ["for=1.2.3.4, For=198.51.100.7 ;by=10.0.0.1"]}, "198.51.100.7"),
        ({"Forwarded": ['for="[2001:db8::1]:4711"']}, "2001:db8::1"),
        ({"Forwarded": ["for=198.51.100.7", "for=10.3.3.3"]}, "198.51.100.7"),
        ({"Forwarded": ["for=_hidden"]}, "10.0.0.1"),
        ({"Forwarded": ["proto=https"]}, "10.0.0.1"),
        ({"Forwarded": ['for="198.51.100.7']}, "10.0.0.1"),
        # Nothing that a client sent hides what the proxy appended.
        ({"Forwarded": ['for="1.2.3.4, for=198.51.100.7']}, "198.51.100.7"),
        ({"Forwarded": ['for="1.2.3.4', 'for="198.51.100.7:80"']}, "198.51.100.7"),
        ({"Forwarded": ["=,;;,for=198.51.100.7;proto=https"]}, "198.51.100.7"),
        ({"Forwarded": ['a="\\",' * 2_000 + "for=198.51.100.7"]}, "198.51.100.7"),
        ({"Forwarded": ["for=1.2.3.4, for=198.51.100.7 x"]}, "10.0.0.1"),
        ({"X-Forwarded-For": ["198.51.100.7"]}, "10.0.0.1"),
        ({"Forwarded": ["for=198.51.100.7"], "X-Forwarded-For": ["1.2.3.4"]}, "198.51.100.7"),
    ],
)
def test_a_trusted_proxy_may_use_forwarded(headers: dict[str, list[str]], address: str) -> None:
    assert sender_address(PROXY, headers_of(headers), FORWARDED) == address_of(address)


def test_headers_of_an_untrusted_proxy_are_ignored() -> None:
    headers = headers_of({"X-Forwarded-For": ["1.2.3.4"], "Forwarded": ["for=1.2.3.4"]})
    assert sender_address(CLIENT, headers, SETTINGS) == CLIENT


def test_a_unix_socket_is_trusted_if_configured() -> None:
    headers = headers_of({"X-Forwarded-For": ["198.51.100.7"]})
    assert sender_address(None, headers, SETTINGS) is None
    trusting = WebSettings(sources=Sources({}), data_dir=Path(), commit="", trust_unix=True)
    assert sender_address(None, headers, trusting) == address_of("198.51.100.7")


@pytest.mark.parametrize(
    ("headers", "host"),
    [
        ({}, ""),
        ({"Host": ["inner:8080"]}, "inner:8080"),
        ({"Host": ["inner"], "X-Forwarded-Host": ["stats.example.com"]}, "stats.example.com"),
        ({"Host": ["inner"], "X-Forwarded-Host": ["evil.example, a.example"]}, "a.example"),
        ({"Host": ["inner"], "Forwarded": ["host=evil.example"]}, "inner"),
    ],
)
def test_a_trusted_proxy_names_the_requested_host(headers: dict[str, list[str]], host: str) -> None:
    assert requested_host(PROXY, headers_of(headers), SETTINGS) == host
    own = headers.get("Host", [""])[0]
    assert requested_host(CLIENT, headers_of(headers), SETTINGS) == own


@pytest.mark.parametrize(
    ("headers", "host"),
    [
        ({"Host": ["inner"], "Forwarded": ['host="a.example:81"; for=1.2.3.4']}, "a.example:81"),
        ({"Host": ["inner"], "Forwarded": ["for=1.2.3.4"]}, "inner"),
        ({"Host": ["inner"], "X-Forwarded-Host": ["evil.example"]}, "inner"),
    ],
)
def test_a_trusted_proxy_may_name_the_host_in_forwarded(
    headers: dict[str, list[str]], host: str
) -> None:
    assert requested_host(PROXY, headers_of(headers), FORWARDED) == host
