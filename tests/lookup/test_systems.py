"""AS numbers, and the networks that an ASN file has for them."""

from ipaddress import ip_network
from pathlib import Path

import pytest
from mmdb_writer import MMDBWriter
from netaddr import IPSet

from medamad.lookup.systems import networks_of_systems, read_systems

RECORDS = {
    "198.51.100.0/24": {"autonomous_system_number": 64496, "autonomous_system_organization": "A"},
    "203.0.113.0/25": {"autonomous_system_number": 64497},
    "2001:db8::/32": {"autonomous_system_number": 64496},
    "192.0.2.0/24": {"country": "DE"},
}


def asn_file(file: Path, *networks: str) -> Path:
    writer = MMDBWriter(6, "Test-ASN", ipv4_compatible=True)
    for network in networks or RECORDS:
        writer.insert_network(IPSet([network]), RECORDS[network])
    writer.to_db_file(str(file))
    return file


def test_as_numbers_are_read_with_and_without_as() -> None:
    assert read_systems("AS64496 # cloud\n\n64497\r\n# none\nas4200000000") == {
        *(64496, 64497, 4_200_000_000)
    }


@pytest.mark.parametrize("line", ["AS", "ASN1", "64496.1", "-1", "1 2", "٣"])
def test_other_lines_are_refused_by_number(line: str) -> None:
    with pytest.raises(ValueError, match=r"\Aline 2: expected an AS number, such as AS64496\Z"):
        read_systems(f"1\n{line}")


def test_the_networks_of_some_systems_are_found(tmp_path: Path) -> None:
    file = asn_file(tmp_path / "asn.mmdb")
    found = {*networks_of_systems(file, frozenset({64496}))}
    assert found == {ip_network("198.51.100.0/24"), ip_network("2001:db8::/32")}
    assert {*networks_of_systems(file, frozenset({1}))} == set()


def test_a_file_without_as_numbers_is_refused(tmp_path: Path) -> None:
    file = asn_file(tmp_path / "country.mmdb", "192.0.2.0/24")
    with pytest.raises(ValueError, match="expected an ASN file: no record has an autonomous_sy"):
        list(networks_of_systems(file, frozenset({64496})))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    file = asn_file(tmp_path / "asn.mmdb")
    for damaged in (b"", file.read_bytes()[:-40]):
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match="expected an ASN file in MaxMind's format: "):
            list(networks_of_systems(file, frozenset({64496})))
