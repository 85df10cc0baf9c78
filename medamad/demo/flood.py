"""An invented flood: a program in a hosting network that reads a website within an hour."""

from collections.abc import Iterator
from random import Random
from typing import Final

from medamad.demo.sites import DemoFlood, DemoWebsite
from medamad.domain.dimensions import WidthClass
from medamad.domain.goals import Exclusion
from medamad.domain.hits import View
from medamad.domain.instants import second_as_text
from medamad.domain.zones import DAY_MS
from medamad.lookup.countries import country_name

_HOUR_MS: Final = 3_600_000
_MAX_VISIT_VIEWS: Final = 5
_PAUSE_MS: Final = (900, 4_000)
"""How long the program waits between two pages."""
_WIDTH_PX: Final = 1366


def flood_views(
    site: DemoWebsite, website: int, until_ms: int, days: int, views: int
) -> Iterator[View]:
    """Yield the views of a website's flood by time, if it has one in so many days before a moment.

    `views` are those of all invented people in these days.
    """
    flood = site.flood
    if flood is None or flood.days_ago >= days:
        return
    random = Random(site.hostname)  # noqa: S311 - not used for security
    begin_ms, last_ms = _begin_ms(flood, until_ms), _HOUR_MS - _MAX_VISIT_VIEWS * _PAUSE_MS[1]
    found: list[View] = []
    while len(found) < views * flood.share:
        time_ms = begin_ms + random.randrange(last_ms)
        identity, pages = random.randbytes(16), list[str]()
        for number in range(random.randint(1, _MAX_VISIT_VIEWS)):
            path = site.pages.draw(random)
            found.append(
                View(
                    website=website,
                    time_ms=time_ms,
                    beacon=f"{random.getrandbits(80):x}",
                    first_today=number == 0,
                    first_of_page=path not in pages,
                    path=path,
                    browser="Chrome",
                    browser_version="131",
                    os="Windows",
                    os_version="10",
                    device="Desktop",
                    country=flood.country,
                    locale="en-US",
                    host=site.hostname,
                    hosting=True,
                    width_class=WidthClass.of(_WIDTH_PX),
                    identity=identity,
                    number_today=number + 1,
                    width_px=_WIDTH_PX,
                    from_page=pages[-1] if pages else None,
                )
            )
            pages.append(path)
            time_ms += random.randrange(*_PAUSE_MS)
    yield from sorted(found, key=lambda view: view.time_ms)


def exclusions_of(site: DemoWebsite, until_ms: int, days: int) -> tuple[Exclusion, ...]:
    """Return what leaves the flood out of all figures, if there is one."""
    flood = site.flood
    if flood is None or flood.days_ago >= days:
        return ()
    begin_s = _begin_ms(flood, until_ms) // 1000
    end_s = begin_s + _HOUR_MS // 1000
    exclusion = Exclusion(
        id="flood",
        name=flood.name,
        filters=(("country[eq]", country_name(flood.country)), ("hosting[eq]", "true")),
        start=second_as_text(begin_s),
        end=second_as_text(end_s - 1),
        created=end_s,
    )
    return (exclusion,)


def _begin_ms(flood: DemoFlood, until_ms: int) -> int:
    """Return when a flood begins, at a full hour."""
    return (until_ms - flood.days_ago * DAY_MS) // _HOUR_MS * _HOUR_MS
