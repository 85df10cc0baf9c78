from zoneinfo import available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.lookup.countries import country_name, country_of_code, country_of_zone


@pytest.mark.parametrize(
    ("zone", "country"),
    [
        ("Europe/Berlin", "DE"),
        ("America/New_York", "US"),
        ("Asia/Kathmandu", "NP"),
        ("Antarctica/McMurdo", "AQ"),
        # Joined by the zone database to a neighbour whose clock agrees.
        ("Atlantic/Reykjavik", "IS"),
        ("Africa/Accra", "GH"),
        ("Europe/Oslo", "NO"),
        ("Europe/Amsterdam", "NL"),
        ("Europe/Jersey", "JE"),
        # Names that are no longer in use, which browsers send all the same.
        ("Asia/Calcutta", "IN"),
        ("Asia/Saigon", "VN"),
        ("Asia/Katmandu", "NP"),
        ("Europe/Kiev", "UA"),
        ("America/Buenos_Aires", "AR"),
        ("America/Montreal", "CA"),
        ("US/Eastern", "US"),
        ("Iceland", "IS"),
        ("Singapore", "SG"),
        ("GB", "GB"),
        ("europe/berlin", "DE"),
        # Places that are no place.
        ("UTC", ""),
        ("Etc/UTC", ""),
        ("Etc/GMT+3", ""),
        ("GMT", ""),
        ("CET", ""),
        ("EST", ""),
        ("PST8PDT", ""),
        ("", ""),
        ("Mars/Olympus_Mons", ""),
        ("../etc/passwd", ""),
        ("+05:30", ""),
    ],
)
def test_a_time_zone_maps_to_its_country(zone: str, country: str) -> None:
    assert country_of_zone(zone) == country


def test_every_zone_of_a_place_has_a_country() -> None:
    placed = {
        zone
        for zone in available_timezones()
        if "/" in zone and not zone.startswith(("Etc/", "SystemV/"))
    }
    assert {zone for zone in placed if not country_of_zone(zone)} == set()


@given(st.text())
def test_any_zone_name_can_be_looked_up(zone: str) -> None:
    assert len(country_of_zone(zone)) in {0, 2}


@pytest.mark.parametrize(
    ("code", "country"),
    [
        ("DE", "DE"),
        ("jp", "JP"),
        ("ZZ", ""),
        ("zz", ""),
        ("XX", ""),
        ("XK", "XK"),
        ("", ""),
        ("uk", "GB"),
        ("EL", "GR"),
    ],
)
def test_country_codes(code: str, country: str) -> None:
    assert country_of_code(code) == country


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("DE", "Germany"),
        ("GB", "United Kingdom"),
        ("CI", "Côte d\u2019Ivoire"),
        ("", "Unknown"),
        ("(other)", "(other)"),
        ("XQ", "XQ"),
    ],
)
def test_a_country_has_its_english_name(code: str, name: str) -> None:
    assert country_name(code) == name
