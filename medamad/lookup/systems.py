"""Networks of autonomous systems: the numbers of these, and an ASN file in MaxMind's format."""

import re
from collections.abc import Iterator
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Final

import maxminddb
from maxminddb import InvalidDatabaseError

_SYSTEM: Final = re.compile(r"(?:AS)?([0-9]{1,10})\Z", re.ASCII | re.IGNORECASE)
_NUMBER: Final = "autonomous_system_number"


def read_systems(text: str) -> frozenset[int]:
    """Return the AS numbers in a text, one per line, with AS or without; a # begins a comment.

    Raises ValueError naming the line that is none.
    """
    systems = set()
    for number, line in enumerate(text.splitlines(), start=1):
        if entry := line.partition("#")[0].strip():
            match = _SYSTEM.match(entry)
            if match is None:
                raise ValueError(f"line {number}: expected an AS number, such as AS64496")
            systems.add(int(match[1]))
    return frozenset(systems)


def networks_of_systems(file: Path, systems: frozenset[int]) -> Iterator[IPv4Network | IPv6Network]:
    """Yield the networks that an ASN file has for some systems.

    Raises OSError, and ValueError if the file is damaged or none of its records has an AS number.
    """
    has_numbers = False
    try:
        with maxminddb.open_database(file) as database:
            for network, record in database:
                system = record.get(_NUMBER) if isinstance(record, dict) else None
                has_numbers |= system is not None
                if system in systems:
                    yield network
    except InvalidDatabaseError as error:
        raise ValueError(f"expected an ASN file in MaxMind's format: {error}") from None
    if not has_numbers:
        raise ValueError(f"expected an ASN file: no record has an {_NUMBER}")
