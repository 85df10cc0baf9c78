from typing import Annotated, Literal

import msgspec
import pytest
from support.web.client import headers_of

from medamad.domain.errors import BadRequest
from medamad.web.parameters import check_type, read_body


class Inner(msgspec.Struct, frozen=True):
    language: str = ""
    flags: tuple[str, ...] = ()


class Thing(msgspec.Struct):
    name: str
    inner: Inner = Inner()
    size: Annotated[int, msgspec.Meta(ge=1)] = 1
    open: bool | None = None
    code: Annotated[str, msgspec.Meta(max_length=3)] = ""
    kind: Literal["a", "b"] = "a"


DECODER = msgspec.json.Decoder(Thing)


@pytest.mark.parametrize(
    "content_type",
    [
        b"application/json",
        b"Application/JSON",
        b"application/json; charset=utf-8",
        b"application/json;charset=UTF-8",
        b"application/merge-patch+json",
    ],
)
def test_json_is_taken_by_its_type(content_type: bytes) -> None:
    check_type(headers_of({b"Content-Type": [content_type]}), b"{}")


@pytest.mark.parametrize(
    "content_types",
    [
        [],
        [b""],
        [b"text/plain"],
        [b"text/json"],
        [b"application/jsonp"],
        [b"application/x-www-form-urlencoded"],
        [b"multipart/form-data; boundary=application/json"],
        [b"application/json", b"text/plain"],
    ],
)
def test_another_type_is_refused(content_types: list[bytes]) -> None:
    headers = headers_of({b"Content-Type": content_types} if content_types else {})
    with pytest.raises(BadRequest, match=r"^Content-Type: expected application/json$"):
        check_type(headers, b"{}")
    check_type(headers, b"")


def test_unknown_fields_are_ignored() -> None:
    thing = read_body(b'{"name": "x", "other": [1, {"a": null}]}', DECODER)
    assert thing == Thing("x")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "body: expected a JSON object, got nothing"),
        (b"[]", "body: expected an object, got a list"),
        (b'"x"', "body: expected an object, got text"),
        (b"null", "body: expected an object, got null"),
        (b"{}", "name: required"),
        (b'{"name": 1}', "name: expected text, got a whole number"),
        (b'{"name": null}', "name: expected text, got null"),
        (b'{"name": true}', "name: expected text, got true or false"),
        (b'{"name": 1.5}', "name: expected text, got a number"),
        (b'{"name": "x", "inner": []}', "inner: expected an object, got a list"),
        (
            b'{"name": "x", "inner": {"language": 1}}',
            "inner.language: expected text, got a whole number",
        ),
        (b'{"name": "x", "inner": {"flags": "a"}}', "inner.flags: expected a list, got text"),
        (
            b'{"name": "x", "inner": {"flags": ["a", 2]}}',
            "inner.flags[1]: expected text, got a whole number",
        ),
        (b'{"name": "x", "size": "1"}', "size: expected a whole number, got text"),
        (b'{"name": "x", "size": 0}', "size: expected a whole number of at least 1"),
        (b'{"name": "x", "open": 1}', "open: expected true or false or null, got a whole number"),
        (b'{"name": "x", "code": "long"}', "code: expected another value"),
        (b'{"name": "x", "kind": "c"}', "kind: expected another value"),
        (b"{", "body: expected valid JSON in UTF-8"),
        (b'{"name": "x"} x', "body: expected valid JSON in UTF-8"),
        (b'{"name": "\xff"}', "body: expected valid JSON in UTF-8"),
        (b'{"name": "x", "other": "\xff"}', "body: expected valid JSON in UTF-8"),
        (b'{"name": "\\ud800"}', "name: expected text without half a surrogate pair"),
        (
            b'{"name": "x", "inner": {"language": "\\udc00"}}',
            "inner: expected text without half a surrogate pair",
        ),
        (
            b'{"name": "x", "a": ' + b"[" * 5000 + b"]" * 5000 + b"}",
            "body: expected valid JSON in UTF-8",
        ),
        (b'{"name": NaN}', "body: expected valid JSON in UTF-8"),
    ],
)
def test_what_is_wrong_is_named(body: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        read_body(body, DECODER)
    assert str(refusal.value) == message
