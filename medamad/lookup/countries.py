"""Countries: which one a time zone lies in, and what a country is called."""

from functools import cache
from importlib import resources
from typing import Final

from babel.core import Locale, get_global

from medamad.domain.dimensions import OTHER, UNKNOWN

_CLOCKS_ALONE: Final = frozenset(
    ["CET", "CST6CDT", "EET", "EST", "EST5EDT", "HST", "MET", "MST", "MST7MDT", "PST8PDT", "WET"]
)
"""Names of a clock, not of a place; the zone database ties each to one arbitrary country."""

_NOWHERE: Final = "ZZ"
"""CLDR's territory of zones such as Etc/UTC, and of what is not known."""
_UNKNOWN: Final = frozenset([_NOWHERE, "XX"])
"""What stands for no country: CLDR's code, and the one that services in front of websites give."""

_OTHER_CODES: Final = {"UK": "GB", "EL": "GR"}
"""What the European Union, and others after it, writes in the place of a code of ISO 3166."""


def country_of_zone(zone: str) -> str:
    """Return the ISO 3166 alpha-2 code of the country that an IANA zone lies in, "" if unknown.

    Old names are known (Asia/Calcutta); case matters not.
    """
    return _countries().get(zone.lower(), "")


def country_of_code(code: str) -> str:
    """Return an ISO 3166 alpha-2 code in capitals, "" for one that says that none is known."""
    capitals = code.upper()
    return "" if capitals in _UNKNOWN else _OTHER_CODES.get(capitals, capitals)


def country_name(code: str) -> str:
    """Return the English name of a country by its code; a code without a name stands for itself."""
    if not code:
        return UNKNOWN
    return code if code == OTHER else _names().get(code, code)


@cache
def _names() -> dict[str, str]:
    return dict(Locale("en").territories)


@cache
def _countries() -> dict[str, str]:
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
    """Read zone.tab: lines of country, coordinates, zone and comment, parted by tabs."""
    lines = [line.split("\t") for line in _lines("zone.tab")]
    return {zone: country for country, _, zone, *_ in lines}


def _links() -> dict[str, str]:
    """Read the links out of tzdata.zi: lines of L, zone and other name, parted by spaces."""
    lines = [line.split() for line in _lines("tzdata.zi") if line.startswith("L ")]
    return {old: new for _, new, old in lines}


def _lines(name: str) -> list[str]:
    text = (resources.files("tzdata") / "zoneinfo" / name).read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]
