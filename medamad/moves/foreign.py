"""What the readers of other programs' files share: cells that most of them have, and the rows."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from attrs import evolve

from medamad.collect.agents import Agent
from medamad.collect.pages import MAX_PATH, MAX_UTM, Page
from medamad.collect.payload import MAX_NAME, MAX_PROPERTIES, MAX_VALUE
from medamad.model.dimensions import PROPERTY_SEPARATOR
from medamad.moves.rows import MAX_MS, EventRow, ViewRow
from medamad.vocabulary.countries import country_of_code

_MAX_WIDTH: Final = 65_535
_MAX_AGENT: Final = 64
"""Characters of the name of a browser or system, of which the longest have half as many."""
_WIDTH: Final = re.compile(r"(\d{1,5})(?!\d)")
_COUNTRY: Final = re.compile(r"([A-Z]{2})(?:-[A-Z0-9]{1,3})?\Z")


def time_ms_of(text: str) -> int:
    """Read an ISO 8601 date-time, in UTC where it names no zone: Unix milliseconds.

    Raises ValueError.
    """
    moment = datetime.fromisoformat(text.strip())
    time_ms = round(moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000)
    if not 0 <= time_ms <= MAX_MS:
        raise ValueError(text)
    return time_ms


def country_of(text: str) -> str:
    """Give the ISO 3166 code of a country, also out of that of a region of it; "" for neither."""
    found = _COUNTRY.match(text.strip().upper())
    return country_of_code(found[1]) if found else ""


def width_of(screen: str) -> int:
    """Give the pixels of a screen's width, with which its size begins; 0 if there are none."""
    found = _WIDTH.match(screen)
    return min(int(found[1]), _MAX_WIDTH) if found else 0


def with_campaign(page: Page, **campaign: str) -> Page:
    """Give a page with the UTM fields that are known otherwise than by its query."""
    return evolve(page, **{name: text[:MAX_UTM] for name, text in campaign.items() if text})


def view_row(
    time_ms: int,
    page: Page,
    agent: Agent,
    *,
    firsts: tuple[bool, bool],
    referrer: str,
    number: int = 0,
    identity: int = 0,
    host: str = "",
    country: str = "",
    locale: str = "",
    width_px: int = 0,
    duration_ms: int = 0,
) -> ViewRow:
    """Give a view, its texts cut as those of hits are.

    `firsts` tells whether it is the visitor's first of the day, and first of its page.
    """
    return ViewRow(
        number=number,
        identity=identity,
        time_ms=time_ms,
        path=page.path,
        first_today=firsts[0],
        first_of_page=firsts[1],
        width_px=width_px,
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
    view: int = 0,
    identity: int = 0,
) -> Iterator[EventRow]:
    """Give the properties of an event, each once, cut as those of hits are."""
    kept = [
        (name.replace(PROPERTY_SEPARATOR, "").strip()[:MAX_NAME], value.strip()[:MAX_VALUE])
        for name, value in pairs
    ]
    for name, value in list(dict.fromkeys(kept))[:MAX_PROPERTIES]:
        if name:
            yield EventRow(
                number=number,
                time_ms=time_ms,
                name=name,
                value=value,
                view=view,
                identity=identity,
            )
