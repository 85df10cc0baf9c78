"""What is malformed, and how it is to be refused."""

from typing import Any

import pytest
from support.daemon import Answer

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
    """Check that a response is a 400 that names an invalid field."""
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
