"""A malformed hit or ping gets a 400 that names the field, from the real daemon."""

import json
from typing import Any

import pytest
from support.bad_input import (
    BAD_HOSTNAMES,
    BROKEN,
    HUGE,
    LONG_HOSTNAME,
    SURROGATE,
    cases,
    refused,
)

pytestmark = pytest.mark.daemon

LOAD: dict[str, Any] = {"e": "load", "b": "x1", "u": "https://example.com/", "p": True, "q": True}
UNLOAD: dict[str, Any] = {"e": "unload", "b": "x1", "m": 5}
CUSTOM: dict[str, Any] = {"e": "custom", "g": "example.com", "d": {"a": "b"}}


@cases(BROKEN)
def test_hits_that_are_not_json_objects(sender: Any, value: bytes) -> None:
    refused(sender.send("POST", "/api/event/hit", value), "body", "e")


@pytest.mark.parametrize(
    ("whole", "change", "field"),
    [
        *((LOAD, {"e": value}, "e") for value in ("", "x", "Load", 1, None, True, [], {}, HUGE)),
        *((LOAD, {"b": value}, "b") for value in ("", "x" * 65, 1, None, True, [], {}, HUGE)),
        *((LOAD, {"u": value}, "u") for value in (1, None, True, [], {}, HUGE)),
        *((LOAD, {"p": value}, "p") for value in (1, 0, "true", None, [], {}, HUGE)),
        *((LOAD, {"q": value}, "q") for value in (1, 0, "true", None, [], {}, HUGE)),
        *((LOAD, {"r": value}, "r") for value in (1, True, [], {}, HUGE)),
        *((LOAD, {"t": value}, "t") for value in (1, True, [], {}, HUGE)),
        *((LOAD, {"n": value}, "n") for value in ("1", True, 0, -1, 1.5, [], {}, -HUGE)),
        *((LOAD, {"since": value}, "since") for value in ("", "never", 1, None, [], {})),
        *((LOAD, {"w": value}, "w") for value in ("1", True, -1, 1.5, [], {}, -HUGE)),
        *((LOAD, {"d": value}, "d") for value in (1, "x", True, [], [1], HUGE)),
        *((LOAD, {"d": {"a": value}}, "d") for value in (None, [], {}, [1], {"b": 1})),
        (LOAD, {"d": {"": 1}}, "d"),
        *((UNLOAD, {"b": value}, "b") for value in ("", "x" * 65, 1, None, HUGE)),
        *((UNLOAD, {"m": value}, "m") for value in (0, -1, "5", None, True, [], {}, -HUGE)),
        *((CUSTOM, {"g": value}, "g") for value in (*BAD_HOSTNAMES.values(), 1, None, [], HUGE)),
        *((CUSTOM, {"d": value}, "d") for value in ({}, None, [], "x", {"a": None}, {"": 1})),
        *((CUSTOM, {"b": value}, "b") for value in ("x" * 65, 1, [], HUGE)),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_hits_with_an_invalid_field(
    sender: Any, whole: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    refused(sender.send("POST", "/api/event/hit", json.dumps(whole | change).encode()), field)


@pytest.mark.parametrize("whole", [LOAD, UNLOAD, CUSTOM], ids=["load", "unload", "custom"])
def test_hits_with_a_missing_field(sender: Any, whole: dict[str, Any]) -> None:
    for field in whole:
        body = {name: value for name, value in whole.items() if name != field}
        refused(sender.send("POST", "/api/event/hit", json.dumps(body).encode()), field)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "/path",
        "example.com/",
        "//example.com/",
        "ftp://example.com/",
        "javascript:alert(1)",
        "http:",
        "http://",
        "https:///path",
        "https://?x",
        "https://exa mple.com/",
        "https://[::1/",
        "https://[example.com]/",
        "https://-a.com/",
        f"https://{LONG_HOSTNAME}/",
        "https://example.com:port/",
        "https://example.com:99999/",
        "https://\u200d.com/",
        "https://example\u2100.com/",
    ],
)
def test_loads_with_an_invalid_url(sender: Any, url: str) -> None:
    refused(sender.send("POST", "/event/hit", json.dumps(LOAD | {"u": url}).encode()), "u")


@pytest.mark.parametrize("bad", [rb"\u0000", SURROGATE, rb"\udc00x", rb"x\ud83d"])
@pytest.mark.parametrize(
    ("whole", "field"),
    [*((LOAD, field) for field in "eburtd"), (UNLOAD, "b"), *((CUSTOM, field) for field in "gbd")],
)
def test_hits_with_nul_or_a_lone_surrogate(
    sender: Any, whole: dict[str, Any], field: str, bad: bytes
) -> None:
    mark = {"a": "@"} if field == "d" else "https://example.com/@" if field == "u" else "@"
    body = json.dumps(whole | {field: mark}).encode().replace(b"@", bad)
    refused(sender.send("POST", "/api/event/hit", body), field)
    if field == "d":
        body = json.dumps(whole | {"d": {"@": "a"}}).encode().replace(b"@", bad)
        refused(sender.send("POST", "/api/event/hit", body), "d")


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1" * 400, "1" * 5_000, "1.5e400"])
@pytest.mark.parametrize("place", ["n", "w", "m", "d"])
def test_huge_numbers_are_rejected_or_capped(sender: Any, place: str, number: str) -> None:
    whole = UNLOAD if place == "m" else LOAD
    text = json.dumps(whole | {place: {"a": "@"} if place == "d" else "@"})
    answer = sender.send("POST", "/api/event/hit", text.replace('"@"', number).encode())
    if answer.status != 204:
        refused(answer, place)


@pytest.mark.parametrize(
    "date",
    [
        "",
        "x",
        "0",
        "2025-06-02T00:00:00Z",
        "Mon, 02 Jun 2025 00:00:00",
        "Mon, 02 Jun 2025 00:00:00 CET",
        "Mon, 31 Jun 2025 00:00:00 GMT",
        "Mon, 02 Jun 2025 24:00:00 GMT",
        "Mon, 02 Jun 99999 00:00:00 GMT",
        "Mon, 02 Jun 0000 00:00:00 GMT",
        "Mon, 02 Jun 2025 00:00:00 GMT, x",
        "9" * 5_000,
    ],
)
def test_pings_with_an_invalid_date(sender: Any, date: str) -> None:
    answer = sender.send("GET", "/api/event/ping", headers={"If-Modified-Since": date})
    refused(answer, "If-Modified-Since")
