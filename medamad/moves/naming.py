"""What other programs call browsers, systems and devices, by the names that are kept here."""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from medamad.model.dimensions import UNKNOWN

_RECENT: Final = 4_096
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
_NAMELESS: Final = frozenset({"", "(unknown)", "(not set)", "unknown", "other"})
_WINDOWS: Final = re.compile(r"Windows (XP|Vista|ME|CE)\Z")
"""Its versions without a number, as they are kept of hits."""
_VERSIONED: Final = re.compile(r"(.+?) v?(\d[0-9.]*)\Z")
_VERSION: Final = re.compile(r"(\d{1,6})(?:\.(\d{1,6}))?")


@lru_cache(_RECENT)
def browser_named(text: str, version: str = "") -> tuple[str, str]:
    """Give name and version of a browser; the version may stand behind the name."""
    return _named(text, version, _BROWSERS)


@lru_cache(_RECENT)
def system_named(text: str, version: str = "") -> tuple[str, str]:
    """Give name and version of an operating system; the version may stand behind the name."""
    if text.startswith("Linux"):  # what follows is a distribution
        return "Linux", ""
    if found := _WINDOWS.match(f"{text} {version}".strip()):
        return "Windows", found[1]
    return _named(text, version, _SYSTEMS)


@lru_cache(_RECENT)
def device_named(text: str) -> str:
    """Give the kind of a device, Unknown for none that is known."""
    return _DEVICES.get(text.strip().lower(), UNKNOWN)


def _named(text: str, version: str, names: Mapping[str, str]) -> tuple[str, str]:
    name = text.strip()
    if not version and name.lower() not in names and (found := _VERSIONED.match(name)):
        name, version = found.groups()
    if name.lower() in _NAMELESS:
        return UNKNOWN, ""
    return names.get(name.lower(), name), _short(version)


def _short(version: str) -> str:
    """Give "major.minor", or "major" where minor is none or zero; "" for what is no version."""
    found = _VERSION.match(version.strip())
    if found is None:
        return ""
    major, minor = found.groups()
    return f"{major}.{minor}" if minor and int(minor) else major
