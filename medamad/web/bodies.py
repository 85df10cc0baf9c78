"""Bodies of requests: JSON decoded into typed values, with errors that name the field."""

import json
import re
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec
from twisted.web.http_headers import Headers

from medamad.model.errors import BadRequest

T = TypeVar("T")

_JSON_TYPE: Final = re.compile(rb"\s*application/(?:[\w.-]+\+)?json\s*(?:;.*)?\Z", re.IGNORECASE)
_PLACE: Final = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<where>.*)`)?$", re.DOTALL)
_HALF_A_PAIR: Final = re.compile("[\ud800-\udfff]")
_MISMATCH: Final = re.compile(
    r"Expected `(?P<wanted>[^`]*)`(?: (?P<bound>[<>]=) (?P<limit>\S+))?(?:, got `(?P<got>[^`]*)`)?"
)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>[^`]*)`")

_WORDS: Final = MappingProxyType(
    {
        "array": "a list",
        "bool": "true or false",
        "float": "a number",
        "int": "a whole number",
        "null": "null",
        "object": "an object",
        "str": "text",
    }
)
"""What the decoder's types are called."""
_BOUNDS: Final = MappingProxyType({">=": "of at least", "<=": "of at most"})


def check_type(headers: Headers, body: bytes) -> None:
    """Raise BadRequest when there is a body that is not said to be JSON."""
    if not body:
        return
    types = headers.getRawHeaders(b"Content-Type") or ()
    if len(types) != 1 or not _JSON_TYPE.match(types[0]):
        raise BadRequest("Content-Type: expected application/json")


def read_body(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode a required body, or raise BadRequest naming the field that is wrong."""
    if not body:
        raise BadRequest("body: expected a JSON object, got nothing")
    try:
        return decoder.decode(body.decode("utf-8"))
    except msgspec.ValidationError as error:
        raise BadRequest(_problem(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise BadRequest(_unreadable(body)) from None


def _unreadable(body: bytes) -> str:
    """Say why a body is no JSON. Half a surrogate pair is JSON to many, so its field is named."""
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        sent = None
    if isinstance(sent, dict):
        for name, value in sent.items():
            if _HALF_A_PAIR.search(json.dumps(value, ensure_ascii=False)):
                return f"{name}: expected text without half a surrogate pair"
    return "body: expected valid JSON in UTF-8"


def _problem(text: str) -> str:
    """Say in our words what the decoder found, the field first."""
    place = _PLACE.match(text)
    what, where = (place["what"], place["where"]) if place else (text, None)
    missing = _MISSING.match(what)
    if missing:
        where = f"{where}.{missing['name']}" if where else missing["name"]
        return f"{where}: required"
    mismatch = _MISMATCH.fullmatch(what)
    if mismatch is None:
        return f"{where or 'body'}: expected another value"
    wanted = " or ".join(map(_in_words, mismatch["wanted"].split(" | ")))
    if mismatch["bound"]:
        wanted += f" {_BOUNDS[mismatch['bound']]} {mismatch['limit']}"
    got = f", got {_in_words(mismatch['got'])}" if mismatch["got"] else ""
    return f"{where or 'body'}: expected {wanted}{got}"


def _in_words(type_: str) -> str:
    return _WORDS.get(type_, "another value")
