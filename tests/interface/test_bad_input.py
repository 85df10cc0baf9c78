"""A malformed body or address gets a 400 that names the field, from the real daemon."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from support.bad_input import BAD_HOSTNAMES, BROKEN, HUGE, SURROGATE, cases, refused

pytestmark = pytest.mark.daemon


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
def test_bodies_that_are_not_json_objects(
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
def test_bodies_without_the_json_content_type(
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
def test_logins_with_a_lone_surrogate(sender: Any, field: str) -> None:
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


def test_a_lone_surrogate_in_a_hostname(sender: Any) -> None:
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
        ("GET", "/website/{}/robots"),
        ("GET", "/website/{}/blind-spot"),
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
