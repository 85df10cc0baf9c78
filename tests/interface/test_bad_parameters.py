"""A malformed parameter gets a 400 that names it, from the real daemon."""

from typing import Any
from urllib.parse import quote

import pytest
from support.bad_input import HUGE, refused

pytestmark = pytest.mark.daemon

BAD_TEXTS = ("", "x", " ", "null", "0x1", "\u0661", "1" * 400, "a" * 5_000)
BAD_BOOLEANS = (*BAD_TEXTS, "yes", "on", "2", "-1", "truefalse", "1.0")
BAD_INTEGERS = (*BAD_TEXTS, "-1", "5001", "1.5", "1e3", "+1 ", "1_0", "true", str(-HUGE))
BAD_DATES = (
    *BAD_TEXTS,
    "2025-06-02",
    "2025-06-02T00:00:00",
    "2025-6-2T00:00:00Z",
    "2025-02-29T00:00:00Z",
    "2025-06-31T00:00:00Z",
    "2025-13-01T00:00:00Z",
    "2025-00-01T00:00:00Z",
    "2025-06-00T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "10000-01-01T00:00:00Z",
    "2025-06-02T24:00:00Z",
    "2025-06-02T00:60:00Z",
    "2025-06-02T00:00:61Z",
    "2025-06-02T00:00:00.Z",
    "2025-06-02T00:00:00+24:00",
    "2025-06-02T00:00:00+0100",
    "2025-06-02T00:00:00 Z",
    "2025-06-02T00:00:00ZZ",
    "2025-06-02T00:00:00Z\n",
    "\u0662025-06-02T00:00:00Z",
    "-2025-06-02T00:00:00Z",
    "now",
    "1748822400",
)
BAD_ZONES = (
    "",
    "x",
    "Europe/Nowhere",
    "Europe/",
    "/etc/localtime",
    "../../../etc/passwd",
    "Europe/../Europe/Berlin",
    "\u00fc",
    "+02:00",
    "a" * 5_000,
    "tzdata.zi",
)

CHANGES = "website/example.com/changes?start=2025-06-02T00:00:00Z&end=2025-06-08T23:59:59Z"


@pytest.mark.parametrize(
    ("path", "name", "texts"),
    [
        ("websites", "summary", BAD_BOOLEANS),
        ("website/example.com/pages", "summary", BAD_BOOLEANS),
        ("website/example.com/summary", "previous", BAD_BOOLEANS),
        ("website/example.com/referrers", "grouped", BAD_BOOLEANS),
        ("website/example.com/live", "lists", BAD_BOOLEANS),
        ("website/example.com/languages", "locale", BAD_BOOLEANS),
        ("website/example.com/pages", "limit", (*BAD_INTEGERS, "0")),
        ("website/example.com/os", "offset", BAD_INTEGERS),
        ("website/example.com/time", "start", BAD_DATES),
        ("website/example.com/properties", "end", BAD_DATES),
        ("website/example.com/summary", "start", BAD_DATES),
        ("website/example.com/summary", "interval", (*BAD_TEXTS, "year", "Day", "day ")),
        ("website/example.com/summary", "timezone", BAD_ZONES),
        ("website/example.com/next", "of", ("",)),
        (CHANGES, "metric", (*BAD_TEXTS, "bounce_percentage", "visit_duration", "Visits")),
        (CHANGES, "compare_start", BAD_DATES),
        (CHANGES, "compare_end", BAD_DATES),
        (CHANGES, "limit", (*BAD_INTEGERS, "0")),
    ],
)
def test_parameters(sender: Any, path: str, name: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        query = f"{'&' if '?' in path else '?'}{name}={quote(text)}"
        refused(sender.send("GET", f"/api/{path}{query}"), name)


@pytest.mark.parametrize(
    "name",
    [
        *("path[]", "path[", "path[x]", "path[eq", "path[eq]x", "path[eq][in]", "path[EQ]"),
        *("referrer[is]", "utm_term[like]", "prop_value[gt]", "country[regex]"),
    ],
)
def test_operators(sender: Any, name: str) -> None:
    answer = sender.send("GET", f"/api/website/example.com/pages?{quote(name)}=x")
    refused(answer, name)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("start=2025-06-02T00:00:01Z&end=2025-06-02T00:00:00Z", "start"),
        ("start=2025-06-02T00:00:00-01:00&end=2025-06-02T00:00:00Z", "start"),
        ("previous=true", "previous"),
        ("previous=true&start=2025-06-02T00:00:00Z", "previous"),
        ("previous=true&end=2025-06-02T00:00:00Z", "previous"),
        ("interval=minute&start=2025-01-01T00:00:00Z&end=2025-12-31T00:00:00Z", "interval"),
        ("interval=day&start=0001-01-01T00:00:00Z&end=9999-12-31T23:59:59Z", "interval"),
    ],
)
def test_incompatible_parameters(sender: Any, query: str, field: str) -> None:
    refused(sender.send("GET", f"/api/website/example.com/summary?{query}"), field)
