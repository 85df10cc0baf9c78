"""Telling an IP address from a name, in whatever way a URL may write it."""

import re
from ipaddress import IPv6Address
from typing import Final

_NUMBER: Final = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)\Z", re.ASCII | re.IGNORECASE)


def is_address(host: str) -> bool:
    """Tell whether the host of a URL is an IP address, with or without brackets.

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
