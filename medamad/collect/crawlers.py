"""Programs that say in their user agent that they are none of a person's browsers."""

from functools import cache
from typing import Any, Final

import re2
from crawleruseragents import CRAWLER_USER_AGENTS_DATA

MAX_LENGTH: Final = 512
"""Characters of a User-Agent that are looked at; browsers send half of that, apps of Meta's up to
all of it."""

_LIBRARY: Final = "http-library"
"""The public list's tag of plain HTTP clients, which run what their user has them do."""

_OTHERS: Final = (r"\+https?://", r"(?i)compatible; ?[^;)]*(?:bot|crawler|spider)\b")
"""How a crawler that the public list does not know declares itself all the same."""

_MAX_MEMORY: Final = 64 << 20
"""Bytes that matching may use; with too few, re2 finds nothing at all."""


def is_crawler(user_agent: str) -> bool:
    """Tell whether a crawler, previewer, monitor or headless browser declares itself."""
    return any(number not in _libraries() for number in _matches(user_agent))


def is_library(user_agent: str) -> bool:
    """Tell whether a plain HTTP client declares itself."""
    return any(number in _libraries() for number in _matches(user_agent))


def _matches(user_agent: str) -> list[int]:
    """Give the numbers of the entries of the public list that match."""
    return _patterns().Match(user_agent[:MAX_LENGTH].encode("utf-8", "replace")) or []


@cache
def _patterns() -> Any:
    options = re2.Options()
    options.max_mem = _MAX_MEMORY
    options.log_errors = False
    patterns = re2.Set.SearchSet(options)
    for entry in CRAWLER_USER_AGENTS_DATA:
        patterns.Add(entry["pattern"])
    for pattern in _OTHERS:
        patterns.Add(pattern)
    patterns.Compile()
    return patterns


@cache
def _libraries() -> frozenset[int]:
    return frozenset(
        number
        for number, entry in enumerate(CRAWLER_USER_AGENTS_DATA)
        if _LIBRARY in entry.get("tags", ())
    )
