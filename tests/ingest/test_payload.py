import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from medamad.domain.errors import BadRequest
from medamad.ingest.payload import (
    CustomPayload,
    LoadPayload,
    UnloadPayload,
    decode_payload,
    decode_server_hit,
)

LOAD = {"e": "load", "b": "1", "u": "https://a.test/", "p": True, "q": False}
UNLOAD = {"e": "unload", "b": "1", "m": 1000}
CUSTOM = {"e": "custom", "g": "a.test", "d": {"a": "b"}}


def sent(base: dict[str, Any], **fields: Any) -> bytes:
    return json.dumps(base | fields).encode()


def test_a_load_with_all_its_fields() -> None:
    body = sent(LOAD, r="https://b.test/", t="Asia/Tokyo", d={"plan": "pro"}, n=3, w=1280, x=[1])
    assert decode_payload(body) == LoadPayload(
        beacon="1",
        url="https://a.test/",
        first_today=True,
        first_of_page=False,
        referrer="https://b.test/",
        zone="Asia/Tokyo",
        properties=(("plan", "pro"),),
        number_today=3,
        width_px=1280,
    )


def test_a_load_with_only_the_required_fields() -> None:
    assert decode_payload(sent(LOAD)) == LoadPayload("1", "https://a.test/", True, False)


@pytest.mark.parametrize(
    ("fields", "number_today", "width_px"),
    [
        ({"n": 1, "w": 0}, 1, 0),
        ({"n": 2.0, "w": 805.0}, 2, 805),
        ({"n": 65_535, "w": 65_535}, 65_535, 65_535),
        ({"n": 65_536, "w": 10**30}, 65_535, 65_535),
    ],
)
def test_large_counts_are_capped(fields: dict[str, int], number_today: int, width_px: int) -> None:
    load = decode_payload(sent(LOAD, **fields))
    assert isinstance(load, LoadPayload)
    assert (load.number_today, load.width_px) == (number_today, width_px)


@pytest.mark.parametrize(
    ("milliseconds", "duration_ms"),
    [
        ("1", 1),
        ("1234", 1234),
        ("1234.9", 1234),
        ("0.25", 1),
        ("1e3", 1000),
        ("86400000", 86_400_000),
        ("86400001", 86_400_000),
        ("1e300", 86_400_000),
        ("9" * 300, 86_400_000),
    ],
)
def test_a_duration_is_whole_milliseconds_up_to_a_day(milliseconds: str, duration_ms: int) -> None:
    body = f'{{"m": {milliseconds}, "b": "x", "e": "unload"}}'.encode()
    assert decode_payload(body) == UnloadPayload("x", duration_ms)


def test_the_hostname_of_an_event_is_normalised() -> None:
    assert decode_payload(sent(CUSTOM, g="Www.BÜCHER.test.")) == CustomPayload(
        "www.xn--bcher-kva.test", (("a", "b"),)
    )
    assert decode_payload(sent(CUSTOM, b="7")) == CustomPayload("a.test", (("a", "b"),), "7")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('"text"', "text"),
        ('""', ""),
        ("7", "7"),
        ("-7", "-7"),
        ("true", "true"),
        ("false", "false"),
        ("1.5", "1.5"),
        ("2.0", "2"),
        ("0.1", "0.1"),
        ("1e22", "1e+22"),
        ("12345678901234567890123", "12345678901234567890123"),
        ('"' + "ä" * 300 + '"', "ä" * 256),
        ("9" * 4000, "9" * 256),
        ('"\\\\u0000"', "\\u0000"),
        ('"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
    ],
)
def test_property_values_become_text(value: str, text: str) -> None:
    body = f'{{"e": "custom", "g": "a.test", "d": {{"name": {value}}}}}'.encode()
    assert decode_payload(body) == CustomPayload("a.test", (("name", text),))


def test_properties_are_stripped_of_whitespace() -> None:
    properties = {" plan ": " pro\n", " ": "lost", "author": "Ada  L. ", "plan": "free"}
    kept = (("plan", "free"), ("author", "Ada  L."))
    assert decode_payload(sent(CUSTOM, d=properties)) == CustomPayload("a.test", kept)


def test_thirty_properties_keep_their_order() -> None:
    properties = {"n" * 64: "0"} | {f"name{number}": str(number) for number in range(29)}
    assert decode_payload(sent(CUSTOM, d=properties)) == CustomPayload(
        "a.test", tuple(properties.items())
    )


def test_excess_and_overlong_properties_are_dropped_not_the_hit() -> None:
    properties = {"n" * 65: "0"} | {f"name{number}": str(number) for number in range(30)}
    load = decode_payload(sent(LOAD, d=properties))
    assert isinstance(load, LoadPayload)
    kept = tuple((f"name{number}", str(number)) for number in range(29))
    assert load.properties == (("n" * 64, "0"), *kept)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "body: expected JSON"),
        (b"{", "body: expected JSON"),
        (b"nonsense", "body: expected JSON"),
        (sent(LOAD) + b"x", "body: expected JSON"),
        (b"[]", "body: expected a JSON object"),
        (b"1", "body: expected a JSON object"),
        (b"null", "body: expected a JSON object"),
        (b"[" * 100_000, "body: expected a JSON object"),
        (b'{"e":"load","x":' + b"[" * 100_000, "body: nested too deeply"),
        (b'{"e":"custom","g":"a","d":' + b'{"a":' * 100_000, "body: nested too deeply"),
        (b'{"e":"load","b":"\xff"}', "body: expected JSON in UTF-8"),
        (b'{"e":"load","b":"\x00"}', "body: expected JSON"),
        (b"{}", 'e: required, expected "load", "unload" or "custom"'),
        (b'{"e":1}', 'e: expected "load", "unload" or "custom"'),
        (b'{"e":"hit"}', 'e: expected "load", "unload" or "custom"'),
        (sent(LOAD, e="at `$.b`"), 'e: expected "load", "unload" or "custom"'),
        (sent(LOAD, e="' - at `$.zzz`"), 'e: expected "load", "unload" or "custom"'),
        (
            sent(LOAD, e="Object missing required field `q1`"),
            'e: expected "load", "unload" or "custom"',
        ),
        (b'{"e":"load"}', "b: required, expected a text of 1 to 64 characters"),
        (sent(LOAD, b=1), "b: expected a text of 1 to 64 characters"),
        (sent(LOAD, b=""), "b: expected a text of 1 to 64 characters"),
        (sent(LOAD, b="x" * 65), "b: expected a text of 1 to 64 characters"),
        (sent(LOAD, u=None), "u: expected an http or https URL"),
        (sent(LOAD, p=1), "p: expected true or false"),
        (sent(LOAD, q="true"), "q: expected true or false"),
        (sent(LOAD, r=5), "r: expected a URL as text"),
        (sent(LOAD, t=[]), "t: expected an IANA time zone as text"),
        (sent(LOAD, n=0), "n: expected a whole number above 0"),
        (sent(LOAD, n=1.5), "n: expected a whole number above 0"),
        (sent(LOAD, w=-1), "w: expected a whole number of pixels"),
        (sent(LOAD, w=True), "w: expected a whole number of pixels"),
        (sent(LOAD, since="never"), "since: expected one of new, month, midweek, week, day"),
        (sent(LOAD, since=""), "since: expected one of new, month, midweek, week, day"),
        (sent(LOAD, since=None), "since: expected one of new, month, midweek, week, day"),
        (sent(LOAD, since=1), "since: expected one of new, month, midweek, week, day"),
        (sent(UNLOAD, m=0), "m: expected a number of milliseconds above 0"),
        (sent(UNLOAD, m=-5), "m: expected a number of milliseconds above 0"),
        (sent(UNLOAD, m="5"), "m: expected a number of milliseconds above 0"),
        (sent(UNLOAD, m=True), "m: expected a number of milliseconds above 0"),
        (b'{"e":"unload","b":"x","m":1e999}', "m: expected a number of milliseconds above 0"),
        (b'{"e":"unload","b":"x","m":NaN}', "body: expected JSON"),
        (sent(CUSTOM, g=""), "g: expected 1 to 253 characters, got none"),
        (sent(CUSTOM, g="a." * 127 + "a"), "g: expected at most 253 characters"),
        (sent(CUSTOM, g="192.0.2.1"), "g: expected a hostname, not an IP address"),
        (sent(CUSTOM, b=""), "b: expected a text of 1 to 64 characters"),
        (sent(CUSTOM, d=[]), "d: expected an object of names to texts, numbers or booleans"),
        (
            sent(CUSTOM, d={}),
            "d: expected an object of names to texts, numbers or booleans, at least one",
        ),
        (sent(CUSTOM, d={"a": None}), "d.a: expected a text, a number or a boolean"),
        (sent(CUSTOM, d={"a": [1]}), "d.a: expected a text, a number or a boolean"),
        (sent(LOAD, d={"a": {"b": 1}}), "d.a: expected a text, a number or a boolean"),
        (sent(LOAD, d={"": "x"}), "d: expected names of at least one character"),
    ],
)
def test_malformed_fields_are_named(body: bytes, message: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        decode_payload(body)
    assert str(refusal.value) == message


@pytest.mark.parametrize("broken", ["\x00", "a\x00b", "\ud800", "\ude00\ud83d"])
@pytest.mark.parametrize(
    ("base", "fields", "field"),
    [
        (LOAD, {"b": "?"}, "b"),
        (LOAD, {"u": "https://a.test/?"}, "u"),
        (LOAD, {"r": "https://b.test/?"}, "r"),
        (LOAD, {"t": "?"}, "t"),
        (LOAD, {"d": {"a": "?"}}, "d"),
        (LOAD, {"d": {"?": "a"}}, "d"),
        (UNLOAD, {"b": "?"}, "b"),
        (CUSTOM, {"g": "?"}, "g"),
        (CUSTOM, {"d": {"a": 1, "?": 2}}, "d"),
    ],
)
def test_nul_and_lone_surrogates_are_rejected_in_every_text(
    base: dict[str, Any], fields: dict[str, Any], field: str, broken: str
) -> None:
    body = json.dumps(base | fields).replace("?", json.dumps(broken)[1:-1]).encode()
    with pytest.raises(BadRequest, match=f"^{field}: expected text without NUL"):
        decode_payload(body)


@pytest.mark.parametrize("other", [b'"\xff"', b"9" * 5_000, b"[" * 900 + b"]" * 900])
@pytest.mark.parametrize("base", [LOAD | {"b": "\0"}, CUSTOM | {"d": {"\0": "a"}}])
def test_a_nul_is_rejected_whatever_surrounds_it(base: dict[str, Any], other: bytes) -> None:
    body = json.dumps(base | {"x": "?"}).encode().replace(b'"?"', other)
    with pytest.raises(BadRequest, match=r"^[bd]: expected text without NUL"):
        decode_payload(body)


@pytest.mark.parametrize("field", ["visitor", "userAgent", "language"])
def test_fields_of_server_hits_reject_a_nul(field: str) -> None:
    body = json.dumps(LOAD | {field: "a\0", "x": "?"}).encode().replace(b"?", b"\xff")
    with pytest.raises(BadRequest, match=f"^{field}: expected text without NUL"):
        decode_server_hit(body)


@pytest.mark.parametrize("country", ["D", "DEU", "D1", "DE\n", "\nDE"])
def test_a_country_is_two_letters(country: str) -> None:
    with pytest.raises(BadRequest, match=r"^country: expected a country's code of two letters"):
        decode_server_hit(sent(LOAD, country=country))


def test_an_unknown_field_may_contain_a_nul() -> None:
    assert decode_payload(sent(UNLOAD, x="\x00")) == UnloadPayload("1", 1000)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
FIELDS = st.dictionaries(st.sampled_from("ebuprqtdnwmg"), JSON)
ANY_BASE = st.sampled_from([{}, LOAD, UNLOAD, CUSTOM])


@given(st.builds(lambda base, fields: json.dumps(base | fields).encode(), ANY_BASE, FIELDS))
@example(b"\xef\xbb\xbf{}")
def test_any_json_decodes_or_raises_bad_request(body: bytes) -> None:
    try:
        decode_payload(body)
    except BadRequest as refusal:
        assert ": " in str(refusal)  # noqa: PT017 - it need not be refused


@given(st.binary())
def test_any_bytes_decode_or_raise_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest, match=r"^body: "):
        decode_payload(body)
