"""Countries: that of a time zone, and their names."""

from functools import cache
from importlib import resources
from typing import Final

from babel.core import Locale, get_global

from medamad.domain.dimensions import OTHER, UNKNOWN

_CLOCKS_ALONE: Final = frozenset(
    ["CET", "CST6CDT", "EET", "EST", "EST5EDT", "HST", "MET", "MST", "MST7MDT", "PST8PDT", "WET"]
)
"""Zones of a clock, not of a place; the zone database links each to an arbitrary country."""

_NOWHERE: Final = "ZZ"
"""CLDR's territory of zones such as Etc/UTC, and of unknown ones."""
_UNKNOWN: Final = frozenset([_NOWHERE, "XX"])
"""Codes for an unknown country: CLDR's, and that of content delivery networks."""

_OTHER_CODES: Final = {"UK": "GB", "EL": "GR"}
"""Codes that the European Union uses instead of those of ISO 3166."""


def country_of_zone(zone: str) -> str:
    """Return the ISO 3166 alpha-2 code of the country that an IANA zone lies in, "" if unknown.

    Old names are known (Asia/Calcutta); case is ignored.
    """
    return countries_by_zone().get(zone.lower(), "")


def country_of_code(code: str) -> str:
    """Return an ISO 3166 alpha-2 code in capitals, "" for an unknown country."""
    capitals = code.upper()
    return "" if capitals in _UNKNOWN else _OTHER_CODES.get(capitals, capitals)


def country_name(code: str) -> str:
    """Return the English name of a country by its code, or the code if it has no name."""
    if not code:
        return UNKNOWN
    return code if code == OTHER else _names().get(code, code)


@cache
def _names() -> dict[str, str]:
    return dict(Locale("en").territories)


@cache
def countries_by_zone() -> dict[str, str]:
    """Return every known zone in lower case with its country.

    zone.tab, the database's own list by country, decides; then CLDR's territories and its other
    names of zones; the database's links come last, since they join countries whose clocks agree.
    """
    known = _listed()
    for zone, country in get_global("zone_territories").items():
        known.setdefault(zone, country)
    for names in (get_global("zone_aliases"), _links()):
        for old, new in names.items():
            if country := known.get(new):
                known.setdefault(old, country)
    return {
        zone.lower(): country
        for zone, country in known.items()
        if country != _NOWHERE and zone not in _CLOCKS_ALONE
    }


def _listed() -> dict[str, str]:
    """Return the country of each zone in zone.tab: tab-separated country, coordinates, zone."""
    lines = [line.split("\t") for line in _lines("zone.tab")]
    return {zone: country for country, _, zone, *_ in lines}


def _links() -> dict[str, str]:
    """Return the zone of each link in tzdata.zi: lines of L, zone and other name."""
    lines = [line.split() for line in _lines("tzdata.zi") if line.startswith("L ")]
    return {old: new for _, new, old in lines}


def _lines(name: str) -> list[str]:
    text = (resources.files("tzdata") / "zoneinfo" / name).read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]
