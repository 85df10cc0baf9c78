"""Whatever is malformed gets a 400 that names the field, from the real daemon."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from daemon import Answer

pytestmark = pytest.mark.daemon

LOAD: dict[str, Any] = {"e": "load", "b": "x1", "u": "https://example.com/", "p": True, "q": True}
UNLOAD: dict[str, Any] = {"e": "unload", "b": "x1", "m": 5}
CUSTOM: dict[str, Any] = {"e": "custom", "g": "example.com", "d": {"a": "b"}}
HUGE = 10**400
LONG_HOSTNAME = ".".join(["a" * 61] * 4) + ".abcdef"
BAD_HOSTNAMES = {
    "empty": "",
    "254 characters": LONG_HOSTNAME,
    "100,000 characters": "a." * 5_000 + "com",
    "long label": "a" * 64 + ".com",
    "empty label": "a..com",
    "hyphen first": "-a.com",
    "hyphen last": "a-.com",
    "underscore": "a_b.com",
    "space": "a b.com",
    "port": "example.com:80",
    "scheme": "https://example.com",
    "IPv4 address": "192.0.2.1",
    "NUL": "a\x00b.com",
    "newline": "example.com\n",
    "joiner": "a\u200db.com",
    "bad punycode": "xn--\u00fc.com",
    "two dots at the end": "example.com..",
    "one dot": ".",
    "8,000 letters not of ASCII": "\u00fc" * 2_000,
}
DEEP = b"[" * 16_000
SURROGATE = rb"\ud800"
BROKEN = {
    "nothing": b"",
    "open brace": b"{",
    "word": b"nonsense",
    "trailing": b"{} x",
    "not UTF-8": b'{"e":"\xff"}',
    "UTF-16": '{"e":"load"}'.encode("utf-16"),
    "control": b'{"e":"\n"}',
    "deep": DEEP,
    "deep objects": b'{"a":' * 3_000,
    "deep and whole": b"[" * 8_000 + b"]" * 8_000,
    "null": b"null",
    "list": b"[]",
    "number": b"1",
    "huge number": b"1" * 5_000,
    "text": b'"x"',
    "NaN": b"NaN",
    "half a pair": b'"' + SURROGATE + b'"',
}


def refused(answer: Answer, *fields: str) -> None:
    """Hold an answer to be a 400 that names the field, or one of the fields, that is wrong."""
    assert answer.status == 400, answer
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-api-commit"]
    assert answer.json.keys() == {"error"}
    assert answer.json["error"].keys() == {"code", "message"}
    assert answer.json["error"]["code"] == 400
    message = answer.json["error"]["message"]
    assert isinstance(message, str)
    assert message.startswith(tuple(field + end for field in fields for end in ":.")), message
    assert len(message) < 400


def cases(table: dict[str, Any]) -> Any:
    return pytest.mark.parametrize("value", list(table.values()), ids=list(table))


# Hits


@cases(BROKEN)
def test_hits_that_are_no_json_object(sender: Any, value: bytes) -> None:
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
def test_hits_with_a_field_that_is_wrong(
    sender: Any, whole: dict[str, Any], change: dict[str, Any], field: str
) -> None:
    refused(sender.send("POST", "/api/event/hit", json.dumps(whole | change).encode()), field)


@pytest.mark.parametrize("whole", [LOAD, UNLOAD, CUSTOM], ids=["load", "unload", "custom"])
def test_hits_with_a_field_that_is_missing(sender: Any, whole: dict[str, Any]) -> None:
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
def test_loads_of_what_is_no_page(sender: Any, url: str) -> None:
    refused(sender.send("POST", "/event/hit", json.dumps(LOAD | {"u": url}).encode()), "u")


@pytest.mark.parametrize("bad", [rb"\u0000", SURROGATE, rb"\udc00x", rb"x\ud83d"])
@pytest.mark.parametrize(
    ("whole", "field"),
    [*((LOAD, field) for field in "eburtd"), (UNLOAD, "b"), *((CUSTOM, field) for field in "gbd")],
)
def test_hits_with_nul_or_half_a_pair(
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
def test_huge_numbers_are_refused_or_counted_as_the_most(
    sender: Any, place: str, number: str
) -> None:
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


# Other bodies


@cases(BROKEN)
@pytest.mark.parametrize(
    ("method", "path", "fields"),
    [
        ("POST", "/api/auth/login", ("username", "password")),
        ("PATCH", "/api/user", ()),
        ("POST", "/api/websites", ("hostname",)),
        ("PATCH", "/api/websites/example.com", ("hostname",)),
    ],
)
def test_bodies_that_are_no_json_object(
    sender: Any, method: str, path: str, fields: tuple[str, ...], value: bytes
) -> None:
    refused(sender.send(method, path, value), "body", *fields)
    for field in fields:
        body = json.dumps({name: "abcde" for name in fields if name != field}).encode()
        refused(sender.send(method, path, body), field)


@pytest.mark.parametrize("kind", [None, "", "text/plain", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/api/auth/login"), ("PATCH", "/api/user"), ("POST", "/api/websites")],
)
def test_bodies_that_are_not_said_to_be_json(
    sender: Any, method: str, path: str, kind: str | None
) -> None:
    refused(sender.send(method, path, b"{}", content_type=kind), "Content-Type")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("username", value) for value in (1, None, True, [], {}, HUGE, "x" * 1_025, "a\x00b")),
        *(("password", value) for value in (1, None, True, [], {}, HUGE, "x" * 1_025, "a\x00b")),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_logins(sender: Any, field: str, value: object) -> None:
    body = {"username": "ada", "password": "x", field: value}
    refused(sender.send("POST", "/api/auth/login", json.dumps(body).encode()), field)


@pytest.mark.parametrize("field", ["username", "password"])
def test_logins_with_half_a_pair(sender: Any, field: str) -> None:
    text = json.dumps({"username": "ada", "password": "x", field: "@"})
    body = text.encode().replace(b"@", SURROGATE)
    refused(sender.send("POST", "/api/auth/login", body), field)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        *(
            ({"username": v}, "username")
            for v in ("", "ab", "x" * 49, 1, None, [], "abc\x00", HUGE)
        ),
        *(({"password": v}, "password") for v in ("", "abcd", "x" * 129, 1, None, "abcde\x00")),
        *(({"settings": v}, "settings") for v in (1, None, [], "x", HUGE)),
        *(({"settings": {"language": v}}, "settings.language") for v in ("xx", "EN", 1, None, [])),
        *(
            ({"settings": {"script_type": v}}, "settings.script_type")
            for v in ("default", 1, None, {}, ["x"], [1], [None], [[]], ["default", "default"])
        ),
    ],
    ids=lambda value: ascii(value)[:60],
)
def test_changes_of_the_account(sender: Any, change: dict[str, Any], field: str) -> None:
    before = sender.send("GET", "/api/user").body
    body = {"username": "eve", "password": "abcdef", **change}
    refused(sender.send("PATCH", "/api/user", json.dumps(body).encode()), field)
    assert sender.send("GET", "/api/user").body == before


@cases(BAD_HOSTNAMES | {"a number": 1, "null": None, "a list": [], "huge": HUGE})
def test_hostnames_in_bodies(sender: Any, value: object) -> None:
    body = json.dumps({"hostname": value}).encode()
    refused(sender.send("POST", "/api/websites", body), "hostname")
    refused(sender.send("PATCH", "/api/websites/example.com", body), "hostname")


def test_half_a_pair_in_a_hostname(sender: Any) -> None:
    refused(
        sender.send("POST", "/api/websites", b'{"hostname":"' + SURROGATE + b'.com"}'), "hostname"
    )


def test_the_hostname_of_another_website(sender: Any) -> None:
    body = json.dumps({"hostname": "Taken.example.com."}).encode()
    refused(sender.send("PATCH", "/api/websites/example.com", body), "hostname")


# Addresses


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/websites/{}"),
        ("PATCH", "/websites/{}"),
        ("DELETE", "/websites/{}"),
        ("GET", "/website/{}/summary"),
        ("GET", "/website/{}/pages"),
        ("GET", "/website/{}/live"),
        ("GET", "/website/{}/ignored"),
    ],
)
@cases({name: text for name, text in BAD_HOSTNAMES.items() if text and len(text) < 4_000})
def test_hostnames_in_paths(sender: Any, method: str, path: str, value: str) -> None:
    target = path.format(quote(value, safe=""))
    if value in (".", "example.com.."):
        target = target.replace(".", "%2E")
    body = b'{"hostname":"x.com"}' if method == "PATCH" else None
    for prefix in ("", "/api"):
        answer = sender.send(method, prefix + target, body)
        refused(answer, "hostname")


@pytest.mark.parametrize("bad", ["%", "%zz", "%f", "%ff", "%c3", "%ed%a0%80", "a%", "%%", "%u0041"])
@pytest.mark.parametrize(
    "path", ["/api/{}", "/api/website/{}/pages", "/website/example.com/{}", "/websites/{}", "/{}"]
)
def test_invalid_escapes_in_paths(sender: Any, path: str, bad: str) -> None:
    refused(sender.send("GET", path.format(bad)), "path")


@pytest.mark.parametrize(
    "bad", ["%", "%zz", "%f", "%ff", "%c3", "%ed%a0%80", "a%", "%u0041", "%00"]
)
@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/api/event/ping", "u"),
        ("/api/websites", "summary"),
        ("/api/websites", "unknown"),
        ("/api/website/example.com/summary", "timezone"),
        ("/api/website/example.com/pages", "limit"),
        ("/api/website/example.com/pages", "path"),
        ("/api/website/example.com/pages", "path[in]"),
    ],
)
def test_invalid_escapes_in_queries(sender: Any, path: str, name: str, bad: str) -> None:
    refused(sender.send("GET", f"{path}?{name}={bad}"), name)
    refused(sender.send("GET", f"{path}?{bad}=x"), "query")


# Parameters

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


@pytest.mark.parametrize(
    ("path", "name", "texts"),
    [
        ("websites", "summary", BAD_BOOLEANS),
        ("website/example.com/pages", "summary", BAD_BOOLEANS),
        ("website/example.com/summary", "previous", BAD_BOOLEANS),
        ("website/example.com/referrers", "grouped", BAD_BOOLEANS),
        ("website/example.com/languages", "locale", BAD_BOOLEANS),
        ("website/example.com/pages", "limit", (*BAD_INTEGERS, "0")),
        ("website/example.com/os", "offset", BAD_INTEGERS),
        ("website/example.com/time", "start", BAD_DATES),
        ("website/example.com/properties", "end", BAD_DATES),
        ("website/example.com/summary", "start", BAD_DATES),
        ("website/example.com/summary", "interval", (*BAD_TEXTS, "year", "Day", "day ")),
        ("website/example.com/summary", "timezone", BAD_ZONES),
    ],
)
def test_parameters(sender: Any, path: str, name: str, texts: tuple[str, ...]) -> None:
    for text in texts:
        refused(sender.send("GET", f"/api/{path}?{name}={quote(text)}"), name)


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
def test_parameters_that_do_not_go_together(sender: Any, query: str, field: str) -> None:
    refused(sender.send("GET", f"/api/website/example.com/summary?{query}"), field)
