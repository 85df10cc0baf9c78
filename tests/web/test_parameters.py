from typing import Annotated, Literal
from urllib.parse import unquote_to_bytes

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.web.client import headers_of

from medamad.domain.errors import BadRequest
from medamad.web.parameters import (
    MAX_PARAMETERS,
    QueryParameters,
    check_type,
    parse_query_string,
    percent_decode,
    read_body,
)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"a+b", "a+b"),
        (b"%41%2f%2F", "A//"),
        (b"gr%C3%BCn", "grün"),
        ("grün".encode(), "grün"),
        (b"%00", "\0"),
    ],
)
def test_text_is_percent_decoded(raw: bytes, text: str) -> None:
    assert percent_decode(raw, "path") == text


@pytest.mark.parametrize("raw", [b"%", b"100%", b"%4", b"%zz", b"a%4gb", b"%%41"])
def test_an_invalid_escape_is_rejected(raw: bytes) -> None:
    with pytest.raises(BadRequest, match=r"^path: an invalid percent-escape$"):
        percent_decode(raw, "path")


@pytest.mark.parametrize("raw", [b"%ff", b"\xff", b"%C3", b"%ED%A0%80", b"%C0%80"])
def test_invalid_utf8_is_rejected(raw: bytes) -> None:
    with pytest.raises(BadRequest, match=r"^path: not valid UTF-8$"):
        percent_decode(raw, "path")


@pytest.mark.parametrize(
    ("raw", "pairs"),
    [
        (b"", ()),
        (b"&&", ()),
        (b"a", (("a", ""),)),
        (b"a=1&b=2&a=3", (("a", "1"), ("b", "2"), ("a", "3"))),
        (b"path%5Beq%5D=/x&os[in]=a,b", (("path[eq]", "/x"), ("os[in]", "a,b"))),
        (b"start=2025-01-01T00:00:00+02:00", (("start", "2025-01-01T00:00:00 02:00"),)),
        (b"start=%2B02", (("start", "+02"),)),
        (b"q=a=b", (("q", "a=b"),)),
    ],
)
def test_a_query_string_is_parsed(raw: bytes, pairs: tuple[tuple[str, str], ...]) -> None:
    assert parse_query_string(raw).pairs == pairs


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"path=%zz", "path: an invalid percent-escape"),
        (b"path[eq]=%ff", "path[eq]: not valid UTF-8"),
        (b"%zz=1", "query: an invalid percent-escape"),
        (b"=%f", "query: an invalid percent-escape"),
        (b"path=a%00", "path: expected text without NUL"),
        (b"%00=a", "query: expected text without NUL"),
    ],
)
def test_a_badly_encoded_parameter_is_named(raw: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        parse_query_string(raw)
    assert str(refusal.value) == message


def test_the_last_of_a_repeated_parameter_counts() -> None:
    query = parse_query_string(b"limit=1&limit=2")
    assert query.integer("limit", 1, 10) == 2
    assert query.text("offset") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("TRUE", True), ("1", True), ("false", False), ("False", False), ("0", False)],
)
def test_booleans_are_parsed(text: str, value: bool) -> None:
    query = QueryParameters((("summary", text),))
    assert query.boolean("summary", default=not value) is value


def test_an_absent_parameter_has_its_default() -> None:
    assert QueryParameters().boolean("grouped", default=True) is True
    assert QueryParameters().boolean("grouped", default=False) is False
    assert QueryParameters().integer("limit", 1, 5000) is None
    assert QueryParameters().choice("interval", ("day",)) is None


@pytest.mark.parametrize("text", ["", "yes", "2", "on", " true", "tru", "null"])
def test_an_invalid_boolean_is_rejected(text: str) -> None:
    with pytest.raises(BadRequest, match=r"^summary: expected true, false, 1 or 0$"):
        QueryParameters((("summary", text),)).boolean("summary", default=False)


@pytest.mark.parametrize("text", ["1", "5000", "0001", "42"])
def test_numbers_within_bounds_are_parsed(text: str) -> None:
    assert QueryParameters((("limit", text),)).integer("limit", 1, 5000) == int(text)


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "5001", "1.0", "1e2", " 1", "1 ", "+1", "0x1", "٣", "9" * 5000, "one"]
)
def test_other_numbers_are_rejected(text: str) -> None:
    with pytest.raises(BadRequest, match=r"^limit: expected a whole number from 1 to 5000$"):
        QueryParameters((("limit", text),)).integer("limit", 1, 5000)


def test_a_choice_is_one_of_its_words() -> None:
    query = QueryParameters((("interval", "day"),))
    assert query.choice("interval", ("hour", "day")) == "day"
    with pytest.raises(BadRequest, match=r"^interval: expected one of hour, week$"):
        query.choice("interval", iter(("hour", "week")))


def test_too_many_parameters_are_rejected() -> None:
    assert len(parse_query_string(b"&".join([b"a"] * MAX_PARAMETERS)).pairs) == MAX_PARAMETERS
    # None is looked at.
    for text in (b"&" * MAX_PARAMETERS, b"%zz&" * MAX_PARAMETERS):
        with pytest.raises(BadRequest, match=r"^query: expected at most 256 parameters$"):
            parse_query_string(text)


@given(st.binary(max_size=80), st.sets(st.integers(0, 255)))
def test_decoding_agrees_with_urllib(data: bytes, escaped: set[int]) -> None:
    raw = b"".join(
        b"%%%02x" % byte if byte in escaped or byte == ord("%") else bytes([byte]) for byte in data
    )
    try:
        text = unquote_to_bytes(raw).decode("utf-8")
    except UnicodeDecodeError:
        with pytest.raises(BadRequest):
            percent_decode(raw, "path")
    else:
        assert percent_decode(raw, "path") == text


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


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""


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
def test_json_is_accepted_by_its_content_type(content_type: bytes) -> None:
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
def test_another_content_type_is_rejected(content_types: list[bytes]) -> None:
    headers = headers_of({b"Content-Type": content_types} if content_types else {})
    with pytest.raises(BadRequest, match=r"^Content-Type: expected application/json$"):
        check_type(headers, b"{}")
    check_type(headers, b"")


def test_unknown_members_are_ignored_unless_the_body_forbids_them() -> None:
    sent = b'{"name": "x", "other": [1, {"a": null}]}'
    assert read_body(sent, DECODER) == Thing("x")
    with pytest.raises(BadRequest, match=r"^other: no such member$"):
        read_body(sent, msgspec.json.Decoder(Strict))
    with pytest.raises(BadRequest, match=r"^na`me: no such member of \[0\]$"):
        read_body(b'[{"na`me": 1}]', msgspec.json.Decoder(list[Strict]))


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
        (b'{"name": "x", "kind": "c"}', "kind: expected one of a, b"),
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
def test_the_invalid_field_is_named(body: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        read_body(body, DECODER)
    assert str(refusal.value) == message
