"""Other programs' values in our form: times, countries, names of browsers and systems; rows."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from medamad.domain.dimensions import (
    MAX_PROPERTY_NAME,
    MAX_PROPERTY_VALUE,
    PROPERTY_SEPARATOR,
    UNKNOWN,
    WidthClass,
)
from medamad.domain.paths import MAX_PATH
from medamad.domain.redaction import Redaction
from medamad.ingest.page import Page
from medamad.ingest.payload import MAX_PROPERTIES
from medamad.ingest.user_agent import Agent
from medamad.lookup.countries import country_of_code
from medamad.transfer.import_context import ViewPlace
from medamad.transfer.rows import MAX_MS, EventRow, ViewRow

_SCREENS: Final = ((600, "Mobile"), (1_025, "Tablet"))
"""The type of the devices whose screens are less than so many pixels wide."""
_MAX_WIDTH: Final = 65_535
_MAX_AGENT: Final = 64
"""Characters of the name of a browser or system; the longest real ones have half as many."""
_WIDTH: Final = re.compile(r"(\d{1,5})(?!\d)")
_COUNTRY: Final = re.compile(r"([A-Z]{2})(?:-[A-Z0-9]{1,3})?\Z")


def parse_time_ms(text: str) -> int:
    """Return an ISO 8601 date-time in Unix milliseconds; it is in UTC if it names no zone.

    Raises ValueError for anything else.
    """
    moment = datetime.fromisoformat(text.strip())
    time_ms = round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)
    if not 0 <= time_ms <= MAX_MS:
        raise ValueError(text)
    return time_ms


def country_code(text: str) -> str:
    """Return the ISO 3166 code of a country or of one of its regions' country; "" for neither."""
    match = _COUNTRY.match(text.strip().upper())
    return country_of_code(match[1]) if match else ""


def screen_width(screen: str) -> int:
    """Return the width in pixels from a screen size such as 1920x1080; 0 if it has none."""
    match = _WIDTH.match(screen)
    return min(int(match[1]), _MAX_WIDTH) if match else 0


def device_of_width(width_px: int) -> str:
    """Return the type of a device with a screen of that width; Unknown for 0."""
    if not width_px:
        return UNKNOWN
    return next((device for below, device in _SCREENS if width_px < below), "Desktop")


def view_row(
    time_ms: int,
    page: Page,
    agent: Agent,
    *,
    place: ViewPlace,
    referrer: str,
    number: int = 0,
    identity: int = 0,
    host: str = "",
    country: str = "",
    locale: str = "",
    width_px: int = 0,
    duration_ms: int = 0,
    hosting: bool = False,
) -> ViewRow:
    """Return a view, with its texts truncated like those of hits."""
    return ViewRow(
        number=number,
        identity=identity,
        time_ms=time_ms,
        path=page.path,
        visit=place.visit,
        first_today=place.first_today,
        first_of_page=place.first_of_page,
        hosting=hosting,
        width_class=WidthClass.of(width_px),
        duration_ms=duration_ms,
        referrer=referrer[:MAX_PATH],
        utm_source=page.utm_source,
        utm_medium=page.utm_medium,
        utm_campaign=page.utm_campaign,
        utm_term=page.utm_term,
        utm_content=page.utm_content,
        browser=agent.browser[:_MAX_AGENT],
        browser_version=agent.browser_version,
        os=agent.os[:_MAX_AGENT],
        os_version=agent.os_version,
        device=agent.device,
        country=country,
        locale=locale,
        host=host,
    )


def event_rows(
    number: int,
    time_ms: int,
    pairs: Iterable[tuple[str, str]],
    *,
    redaction: Redaction,
    view: int = 0,
    identity: int = 0,
) -> Iterator[EventRow]:
    """Yield each property of an event once, truncated and redacted like those of hits."""
    truncated = [
        (
            name.replace(PROPERTY_SEPARATOR, "").strip()[:MAX_PROPERTY_NAME],
            value.strip()[:MAX_PROPERTY_VALUE],
        )
        for name, value in pairs
    ]
    for name, value in list(dict.fromkeys(redaction.properties(truncated)))[:MAX_PROPERTIES]:
        if name:
            yield EventRow(
                number=number,
                time_ms=time_ms,
                name=name,
                value=value,
                view=view,
                identity=identity,
            )


_CACHED: Final = 4_096
_BROWSERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "android": "Android Browser",
        "chrome": "Chrome",
        "chrome webview": "Chrome",
        "chromium": "Chromium",
        "chromium-webview": "Chrome",
        "crios": "Chrome",
        "edge": "Edge",
        "edge-chromium": "Edge",
        "edge-ios": "Edge",
        "facebook": "Facebook",
        "firefox": "Firefox",
        "fxios": "Firefox",
        "ie": "Internet Explorer",
        "instagram": "Instagram",
        "internet explorer": "Internet Explorer",
        "ios": "Safari",
        "ios-webview": "Safari",
        "microsoft edge": "Edge",
        "mobile safari": "Safari",
        "miui": "Mi Browser",
        "opera": "Opera",
        "opera-mini": "Opera Mini",
        "safari": "Safari",
        "samsung": "Samsung Internet",
        "samsung browser": "Samsung Internet",
        "silk": "Silk",
        "yandex": "Yandex Browser",
        "yandexbrowser": "Yandex Browser",
    }
)
_SYSTEMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "amazon os": "Fire OS",
        "android os": "Android",
        "blackberry": "BlackBerry OS",
        "chromeos": "Chrome OS",
        "gnu/linux": "Linux",
        "ios": "iOS",
        "ipados": "iPadOS",
        "mac": "macOS",
        "mac os": "macOS",
        "mac os x": "macOS",
        "macos": "macOS",
        "open bsd": "OpenBSD",
        "ubuntu": "Linux",
        "windows mobile": "Windows Phone",
        "windows server": "Windows",
    }
)
_DEVICES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "console": "Console",
        "desktop": "Desktop",
        "laptop": "Desktop",
        "mobile": "Mobile",
        "phone": "Mobile",
        "smartphone": "Mobile",
        "tablet": "Tablet",
        "tv": "TV",
        "ultra-wide": "Desktop",
    }
)
_NO_NAME: Final = frozenset({"", "(unknown)", "(not set)", "unknown", "other"})
_WINDOWS: Final = re.compile(r"Windows (XP|Vista|ME|CE)\Z")
"""The versions without a number, as `describe` names them."""
_VERSIONED: Final = re.compile(r"(.+?) v?(\d[0-9.]*)\Z")
_VERSION: Final = re.compile(r"\d{1,6}")


@lru_cache(_CACHED)
def normalize_browser(text: str, version: str = "") -> tuple[str, str]:
    """Return the name and major version of a browser; the version may follow the name."""
    return _name_and_version(text, version, _BROWSERS)


@lru_cache(_CACHED)
def normalize_system(text: str, version: str = "") -> tuple[str, str]:
    """Return the name and major version of an operating system; the version may follow the name."""
    if text.startswith("Linux"):  # A distribution follows.
        return "Linux", ""
    if match := _WINDOWS.match(f"{text} {version}".strip()):
        return "Windows", match[1]
    return _name_and_version(text, version, _SYSTEMS)


@lru_cache(_CACHED)
def normalize_device(text: str) -> str:
    """Return the type of a device; Unknown if it is none that we have."""
    return _DEVICES.get(text.strip().lower(), UNKNOWN)


def _name_and_version(text: str, version: str, names: Mapping[str, str]) -> tuple[str, str]:
    name = text.strip()
    if not version and name.lower() not in names and (match := _VERSIONED.match(name)):
        name, version = match.groups()
    if name.lower() in _NO_NAME:
        return UNKNOWN, ""
    return names.get(name.lower(), name), _major_version(version)


def _major_version(version: str) -> str:
    """Return the major version, "" if it is no version."""
    match = _VERSION.match(version.strip())
    return "" if match is None else match[0]
