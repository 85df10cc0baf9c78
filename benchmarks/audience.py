"""The visitors of the benchmarks: their places, browsers and subscription plans.

Those of the demonstration, with more countries and more versions of their browsers.
"""

from random import Random
from typing import Final, Self

import numpy as np
from attrs import evolve, frozen
from numpy.typing import NDArray
from weighted_draws import coded

from medamad.demo.people import Country, Person, Weighted, draw_person, skewed
from medamad.domain.dimensions import Dimension, WidthClass, major_version

PLANS: Final = ("free", "reader", "supporter", "school", "business")

_KINDS_BITS: Final = 14
_FURTHER_COUNTRIES: Final = 0.14
_HAS_PLAN: Final = 0.08
_BARE_HOST: Final = 0.85
_RELEASES: Final = (0.55, 0.2, 0.1, 0.07, 0.05, 0.03)
"""The shares of a browser's users on its newest release, the one before, and so on."""
_RELEASED_MONTHLY: Final = ("Chrome", "Edge", "Firefox")
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)

_FURTHER: Final = """
    BE 1 nl-BE fr-BE | DK 1 da-DK en-US | NO 1 nb-NO | FI 2 fi-FI sv-FI | IE 0 en-IE | PT 0 pt-PT
    CZ 1 cs-CZ | SK 1 sk-SK | HU 1 hu-HU | RO 2 ro-RO | BG 2 bg-BG | GR 2 el-GR | HR 1 hr-HR
    SI 1 sl-SI | RS 1 sr-RS | UA 2 uk-UA ru-UA | TR 3 tr-TR | IL 2 he-IL en-US | LT 2 lt-LT
    LV 2 lv-LV ru-RU | EE 2 et-EE | LU 1 fr-LU de-LU | IS 0 is-IS | ZA 2 en-ZA | EG 2 ar-EG
    MA 1 fr-MA ar-MA | NG 1 en-NG | KE 3 en-KE | AE 4 en-AE ar-AE | SA 3 ar-SA | PK 5 en-PK ur-PK
    BD 6 bn-BD | LK 5.5 si-LK en-GB | TH 7 th-TH | VN 7 vi-VN | ID 7 id-ID | MY 8 ms-MY en-MY
    SG 8 en-SG zh-SG | PH 8 en-PH fil-PH | HK 8 zh-HK en-HK | TW 8 zh-TW | CN 8 zh-CN | KR 9 ko-KR
    NZ 12 en-NZ | AR -3 es-AR | CL -4 es-CL | CO -5 es-CO | PE -5 es-PE | EC -5 es-EC | UY -3 es-UY
    CR -6 es-CR | DO -4 es-DO | CY 2 el-CY | MT 1 en-MT mt-MT | GE 4 ka-GE | KZ 5 ru-KZ kk-KZ
"""


def _place(line: str) -> Country:
    country, hours_ahead, *locales = line.split()
    return Country(country, float(hours_ahead), skewed(tuple(locales)))


_LINES: Final = [line for line in _FURTHER.replace("\n", "|").split("|") if line.strip()]
_PLACES: Final[Weighted[Country]] = skewed(tuple(map(_place, _LINES)), 0.7)


@frozen(eq=False)
class Audience:
    """A fixed number of kinds of visitors. Each visitor is always of the same kind.

    The arrays have one entry for each kind: `codes[dimension]` is an index into
    `texts[dimension]`, `plan` an index into PLANS, -1 for none.
    """

    texts: dict[Dimension, tuple[str, ...]]
    codes: dict[Dimension, NDArray[np.unsignedinteger]]
    hours_ahead: NDArray[np.float64]
    width_class: NDArray[np.uint8]
    plan: NDArray[np.int8]

    @classmethod
    def of(cls, seed: int, hostname: str) -> Self:
        """Draw the kinds, the same for the same seed."""
        random = Random(seed)
        people = [_draw_visitor(random) for _ in range(1 << _KINDS_BITS)]
        columns = {
            Dimension.BROWSER: [person.browser.name for person in people],
            Dimension.BROWSER_VERSION: [major_version(person.browser.version) for person in people],
            Dimension.OS: [person.browser.os for person in people],
            Dimension.OS_VERSION: [major_version(person.browser.os_version) for person in people],
            Dimension.DEVICE: [person.browser.device for person in people],
            Dimension.COUNTRY: [person.place.country for person in people],
            Dimension.LOCALE: [person.locale for person in people],
            Dimension.HOST: [
                hostname if random.random() < _BARE_HOST else f"www.{hostname}" for _ in people
            ],
        }
        texts, codes = {}, {}
        for dimension, values in columns.items():
            texts[dimension], codes[dimension] = coded(values)
        plans = [
            random.randrange(len(PLANS)) if random.random() < _HAS_PLAN else -1 for _ in people
        ]
        return cls(
            texts=texts,
            codes=codes,
            hours_ahead=np.array([person.place.hours_ahead for person in people]),
            width_class=np.array([WidthClass.of(person.width_px) for person in people], np.uint8),
            plan=np.array(plans, np.int8),
        )

    @staticmethod
    def kind(visitor: NDArray[np.uint64]) -> NDArray[np.uint16]:
        """Return the kind of each visitor, by the visitor's number."""
        return (visitor * _SPREAD >> np.uint64(64 - _KINDS_BITS)).astype(np.uint16)


def _draw_visitor(random: Random) -> Person:
    person = draw_person(random)
    browser = person.browser
    if browser.name in _RELEASED_MONTHLY and browser.device not in ("TV", "Console"):
        newest = int(browser.version.partition(".")[0])
        (behind,) = random.choices(range(len(_RELEASES)), _RELEASES)
        browser = evolve(browser, version=f"{newest - behind}.0")
    if random.random() < _FURTHER_COUNTRIES:
        place = _PLACES.draw(random)
        person = evolve(person, place=place, locale=place.locales.draw(random))
    return evolve(person, browser=browser)
