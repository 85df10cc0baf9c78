import pytest

from medamad.ingest.networks import is_address


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
def test_an_address_is_told_from_a_name(host: str, is_one: bool) -> None:
    assert is_address(host) is is_one
