from ipaddress import ip_address

import pytest

from medamad.ingest.networks import address_of


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
def test_an_address_is_read(text: str, address: str) -> None:
    assert address_of(text) == ip_address(address)


@pytest.mark.parametrize(
    "text", ["", "unknown", "_hidden", "192.0.2.256", "192.0.2.1:", "example.com", "1", "[::1"]
)
def test_what_is_no_address_is_none(text: str) -> None:
    assert address_of(text) is None
