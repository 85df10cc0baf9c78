"""The invented visitors: their countries, languages and browsers, drawn by weight."""

from bisect import bisect
from collections.abc import Mapping
from itertools import accumulate
from random import Random
from typing import Final, Generic, TypeVar

from attrs import frozen

T = TypeVar("T")


class Weighted(Generic[T]):
    """Values with weights: how often each is drawn relative to the others."""

    def __init__(self, weights: Mapping[T, float]) -> None:
        self._values = tuple(weights)
        self._sums = tuple(accumulate(weights.values()))

    def draw(self, random: Random) -> T:
        """Draw one value."""
        sums = self._sums
        return self._values[bisect(sums, random.random() * sums[-1], 0, len(sums) - 1)]


def skewed(values: tuple[T, ...], steepness: float = 1.0) -> Weighted[T]:
    """Return values, each drawn less often than the one before it (Zipf's law)."""
    return Weighted({value: (n + 1) ** -steepness for n, value in enumerate(values)})


@frozen
class Browser:
    """A browser on a device, with the widths that its window may have."""

    name: str
    version: str
    os: str
    os_version: str
    device: str
    widths_px: tuple[int, ...]


@frozen
class Country:
    """A country, its offset from UTC, and the locales used there."""

    country: str
    hours_ahead: float
    locales: Weighted[str]


@frozen
class Person:
    """A visitor on one day."""

    place: Country
    locale: str
    browser: Browser
    width_px: int


_WIDE: Final = (1280, 1366, 1440, 1536, 1680, 1920, 2560)
_NARROW: Final = (360, 375, 390, 393, 412, 430)
_MIDDLE: Final = (768, 810, 820, 1024)

BROWSERS: Final = Weighted(
    {
        Browser("Chrome", "131.0", "Windows", "10", "Desktop", _WIDE): 22.0,
        Browser("Chrome", "130.0", "Windows", "10", "Desktop", _WIDE): 4.0,
        Browser("Edge", "131.0", "Windows", "10", "Desktop", _WIDE): 7.0,
        Browser("Firefox", "133.0", "Windows", "10", "Desktop", _WIDE): 4.0,
        Browser("Firefox", "133.0", "Linux", "", "Desktop", _WIDE): 4.0,
        Browser("Firefox", "128.0", "Linux", "", "Desktop", _WIDE): 1.5,
        Browser("Chrome", "131.0", "Linux", "", "Desktop", _WIDE): 1.5,
        Browser("Safari", "18.1", "macOS", "10.15", "Desktop", _WIDE): 8.0,
        Browser("Chrome", "131.0", "macOS", "10.15", "Desktop", _WIDE): 6.0,
        Browser("Chrome", "131.0", "Chrome OS", "14541.0", "Desktop", _WIDE): 0.8,
        Browser("Opera", "114.0", "Windows", "10", "Desktop", _WIDE): 1.0,
        Browser("Safari", "18.1", "iOS", "18.1", "Mobile", _NARROW): 17.0,
        Browser("Safari", "17.6", "iOS", "17.6", "Mobile", _NARROW): 5.0,
        Browser("Chrome", "131.0", "iOS", "18.1", "Mobile", _NARROW): 2.0,
        Browser("Chrome", "131.0", "Android", "10", "Mobile", _NARROW): 18.0,
        Browser("Firefox", "133.0", "Android", "14", "Mobile", _NARROW): 1.5,
        Browser("Samsung Internet", "26.0", "Android", "10", "Mobile", _NARROW): 3.0,
        Browser("Safari", "17.6", "iOS", "17.6", "Tablet", _MIDDLE): 2.5,
        Browser("Chrome", "131.0", "Android", "13", "Tablet", _MIDDLE): 1.5,
        Browser("Chrome", "94.0", "Tizen", "6.5", "TV", (1920,)): 0.3,
        Browser("Edge", "44.18363", "Xbox", "", "Console", (1920,)): 0.1,
        Browser("Unknown", "", "Unknown", "", "Desktop", (0,)): 0.3,
    }
)

PLACES: Final = Weighted(
    {
        Country("US", -6, Weighted({"en-US": 90, "es-US": 7, "zh-CN": 2, "": 1})): 27.0,
        Country("DE", 1, Weighted({"de-DE": 85, "de": 5, "en-US": 8, "tr-TR": 2})): 16.0,
        Country("GB", 0, Weighted({"en-GB": 92, "en-US": 6, "pl-PL": 2})): 11.0,
        Country("FR", 1, Weighted({"fr-FR": 95, "en-US": 5})): 8.0,
        Country("IN", 5.5, Weighted({"en-IN": 70, "hi-IN": 20, "en-GB": 10})): 7.0,
        Country("CA", -5, Weighted({"en-CA": 75, "fr-CA": 25})): 5.0,
        Country("NL", 1, Weighted({"nl-NL": 80, "en-US": 20})): 4.0,
        Country("JP", 9, Weighted({"ja-JP": 100})): 4.0,
        Country("BR", -3, Weighted({"pt-BR": 96, "en-US": 4})): 4.0,
        Country("ES", 1, Weighted({"es-ES": 90, "ca-ES": 10})): 3.0,
        Country("AU", 10, Weighted({"en-AU": 100})): 3.0,
        Country("IT", 1, Weighted({"it-IT": 100})): 2.0,
        Country("PL", 1, Weighted({"pl-PL": 100})): 2.0,
        Country("AT", 1, Weighted({"de-AT": 100})): 1.5,
        Country("CH", 1, Weighted({"de-CH": 70, "fr-CH": 24, "it-CH": 6})): 1.5,
        Country("SE", 1, Weighted({"sv-SE": 90, "en-US": 10})): 1.0,
        Country("MX", -6, Weighted({"es-MX": 100})): 1.0,
        Country("NP", 5.75, Weighted({"ne-NP": 60, "en-US": 40})): 0.4,
        Country("", 0, Weighted({"en-US": 60, "": 40})): 1.0,
    }
)


def draw_person(random: Random) -> Person:
    """Draw a visitor."""
    place = PLACES.draw(random)
    browser = BROWSERS.draw(random)
    return Person(place, place.locales.draw(random), browser, random.choice(browser.widths_px))
