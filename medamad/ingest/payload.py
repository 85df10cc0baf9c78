"""The body of POST /event/hit, decoded and checked."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, NoReturn, TypeAlias

import msgspec

from medamad.domain.dimensions import MAX_PROPERTY_NAME, MAX_PROPERTY_VALUE, Since
from medamad.domain.errors import BadRequest, Unauthorised
from medamad.domain.hits import Properties
from medamad.domain.texts import UNFIT
from medamad.domain.websites import canonical_hostname
from medamad.ingest.networks import address_of
from medamad.lookup.countries import country_of_code

MAX_DURATION_MS: Final = 86_400_000
"""The longest time on a page that counts: a day."""
MAX_PROPERTIES: Final = 30
"""Properties of a hit that are kept. The rest is cut off rather than rejected, as are long names
and values, so as not to lose the view."""
_UNSET: Final = msgspec.UNSET
_LATEST_MS: Final = 1 << 48
MAX_UINT16: Final = 65_535
"""The largest `n` and `w`; larger ones are capped."""


class LoadPayload(msgspec.Struct, frozen=True):
    """A page was shown. `number_today` and `width_px` are 0 if unknown, `since` is "".

    Only the class of the width is stored; `number_today` only helps to find the visit.
    """

    beacon: str
    url: str
    first_today: bool
    first_of_page: bool
    referrer: str = ""
    zone: str = ""
    properties: Properties = ()
    number_today: int = 0
    width_px: int = 0
    since: str = ""


class UnloadPayload(msgspec.Struct, frozen=True):
    """A page was left or hidden, after `duration_ms` (1 to MAX_DURATION_MS) of being seen."""

    beacon: str
    duration_ms: int


class CustomPayload(msgspec.Struct, frozen=True):
    """Something happened on the website at `hostname` (canonical)."""

    hostname: str
    properties: Properties
    beacon: str = ""


class ServerFields(msgspec.Struct, frozen=True):
    """The members of a hit that only a server with a token may send; None if not sent.

    `time_ms` is in Unix milliseconds; `visitor` is the server's id of the visitor, "" for none;
    `has_flags` says whether the hit itself has `p` and `q`; `country` is an ISO
    3166 alpha-2 code, "" if unknown.
    """

    time_ms: int | None = None
    visitor: str = ""
    has_flags: bool = False
    user_agent: str | None = None
    language: str | None = None
    country: str | None = None


Payload: TypeAlias = LoadPayload | UnloadPayload | CustomPayload


def decode_payload(body: bytes) -> Payload:
    """Return the decoded body of a tracker. Raises BadRequest naming the JSON member that is wrong.

    Raises Unauthorised for members that need a token.
    """
    wire = _decode_wire(body)
    if not (_UNSET is wire.time is wire.visitor is wire.userAgent is wire.language is wire.country):
        for name in _ServerFields.__struct_fields__:
            if getattr(wire, name) is not _UNSET:
                raise Unauthorised(f"{name}: may only be sent with a token")
    return _payload(wire, by_visitor=False)


def decode_server_hit(body: bytes) -> tuple[Payload, ServerFields]:
    """Return the decoded body of a server. Raises BadRequest.

    A load with a visitor may omit `p` and `q`.
    """
    wire = _decode_wire(body)
    visitor = _sent(wire.visitor) or ""
    # Proxies write several addresses, separated by commas.
    if any(address_of(each.strip()) for each in visitor.split(",")):
        raise BadRequest(f"visitor: {_NO_ADDRESS}")
    has_flags = isinstance(wire, _Load) and msgspec.UNSET not in (wire.p, wire.q)
    country = _sent(wire.country)
    fields = ServerFields(
        time_ms=_milliseconds(wire.time),
        visitor=visitor,
        has_flags=has_flags,
        user_agent=_sent(wire.userAgent),
        language=_sent(wire.language),
        country=None if country is None else country_of_code(country),
    )
    return _payload(wire, by_visitor=bool(visitor)), fields


def _payload(wire: "_Load | _Unload | _Custom", *, by_visitor: bool) -> Payload:
    if isinstance(wire, _Load):
        first_today, first_of_page = wire.p, wire.q
        if first_today is _UNSET or first_of_page is _UNSET:
            if not by_visitor:
                missing = "p" if first_today is _UNSET else "q"
                raise BadRequest(f"{missing}: required, {_EXPECTED[missing]}")
            first_today = first_of_page = False
        return LoadPayload(
            wire.b,
            wire.u,
            first_today,
            first_of_page,
            wire.r,
            wire.t,
            _properties(wire.d) if wire.d else (),
            _whole("n", wire.n),
            _whole("w", wire.w),
            "" if wire.since is _UNSET else wire.since.value,
        )
    if isinstance(wire, _Unload):
        return UnloadPayload(wire.b, max(1, int(min(wire.m, MAX_DURATION_MS))))
    if not wire.d:
        raise BadRequest(f"d: {_EXPECTED['d']}, at least one")
    return CustomPayload(canonical_hostname(wire.g, "g"), _properties(wire.d), wire.b)


_Beacon = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class _ServerFields(msgspec.Struct, frozen=True, kw_only=True):
    time: Annotated[datetime, msgspec.Meta(tz=True)] | float | msgspec.UnsetType = msgspec.UNSET
    visitor: Annotated[str, msgspec.Meta(min_length=1, max_length=128)] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    userAgent: Annotated[str, msgspec.Meta(max_length=1_024)] | msgspec.UnsetType = msgspec.UNSET
    language: Annotated[str, msgspec.Meta(max_length=256)] | msgspec.UnsetType = msgspec.UNSET
    country: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z]{2}\Z")] | msgspec.UnsetType = (
        msgspec.UNSET
    )


class _Load(_ServerFields, tag_field="e", tag="load", frozen=True):
    b: _Beacon
    u: str
    p: bool | msgspec.UnsetType = msgspec.UNSET
    q: bool | msgspec.UnsetType = msgspec.UNSET
    r: str = ""
    t: str = ""
    d: dict[str, Any] = {}
    n: Annotated[float, msgspec.Meta(ge=1)] = 0.0
    w: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    since: Since | msgspec.UnsetType = msgspec.UNSET


class _Unload(_ServerFields, tag_field="e", tag="unload", frozen=True):
    b: _Beacon
    m: Annotated[float, msgspec.Meta(gt=0)]


class _Custom(_ServerFields, tag_field="e", tag="custom", frozen=True):
    g: str
    d: dict[str, Any]
    b: _Beacon = ""


_decoder: Final = msgspec.json.Decoder(_Load | _Unload | _Custom)

_EXPECTED: Final = {
    "b": "expected a text of 1 to 64 characters",
    "d": "expected an object of names to texts, numbers or booleans",
    "e": 'expected "load", "unload" or "custom"',
    "g": "expected a hostname",
    "m": "expected a number of milliseconds above 0",
    "n": "expected a whole number above 0",
    "p": "expected true or false",
    "q": "expected true or false",
    "r": "expected a URL as text",
    "t": "expected an IANA time zone as text",
    "u": "expected an http or https URL",
    "w": "expected a whole number of pixels",
    "since": f"expected one of {', '.join(Since)}",
    "time": "expected an RFC 3339 date-time or Unix milliseconds",
    "visitor": "expected a text of 1 to 128 characters",
    "userAgent": "expected a text of at most 1024 characters",
    "language": "expected a text of at most 256 characters, as Accept-Language has it",
    "country": "expected a country's code of two letters",
}

_NO_ADDRESS: Final = "expected an id that is not an address, such as a keyed hash of one"

_FIT: Final = "expected text without NUL and without half a surrogate pair"

_NUL: Final = b"\\u0000"
"""NUL as JSON writes it; the decoder rejects the plain octet."""

_MISSING: Final = "Object missing required field `"
_AT: Final = " - at `$."
"""What precedes the name of the field in msgspec's messages. The last one counts, since a message
may quote a value before it."""


def _decode_wire(body: bytes) -> _Load | _Unload | _Custom:
    """Return the members of a body as sent, each of the right type and with valid text."""
    try:
        wire: _Load | _Unload | _Custom = _decoder.decode(body)
    except msgspec.ValidationError as error:
        _raise_for(str(error))
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Versions of msgspec differ in which of the two they raise for invalid UTF-8.
        _check_utf8(body)
        _check_fit(_loosely_decoded(body))
        raise BadRequest("body: expected JSON") from None
    except RecursionError:
        raise BadRequest("body: nested too deeply") from None
    if _NUL in body:
        _check_fit(msgspec.structs.asdict(wire))
    return wire


def _whole(field: str, number: float) -> int:
    """Return a whole number. 1.0 and 1 are the same number in JSON."""
    if number.is_integer():
        return int(min(number, MAX_UINT16))
    raise BadRequest(f"{field}: {_EXPECTED[field]}")


def _sent(value: str | msgspec.UnsetType) -> str | None:
    return None if value is msgspec.UNSET else value


def _milliseconds(time: datetime | float | msgspec.UnsetType) -> int | None:
    """Return a time in Unix milliseconds."""
    if time is msgspec.UNSET:
        return None
    ms = time if isinstance(time, float) else time.timestamp() * 1000
    return int(min(max(ms, 0), _LATEST_MS))


def _properties(sent: dict[str, Any]) -> Properties:
    """Return the first properties as texts; of equal names, the last counts. Raises BadRequest."""
    named = ((name, value) for name, value in sent.items() if not name.isspace())
    texts = {_name(name): _text(name, value) for name, value in named}
    return tuple(texts.items())[:MAX_PROPERTIES]


def _name(name: str) -> str:
    """Return a name without surrounding white space, cut to MAX_PROPERTY_NAME."""
    if name:
        return name.strip()[:MAX_PROPERTY_NAME]
    raise BadRequest("d: expected names of at least one character")


def _text(name: str, value: Any) -> str:
    """Return the value of a property as text, cut to MAX_PROPERTY_VALUE."""
    match value:
        case str():
            return value.strip()[:MAX_PROPERTY_VALUE]
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)[:MAX_PROPERTY_VALUE]
        case float():
            return repr(value).removesuffix(".0")
        case _:
            raise BadRequest(f"d.{name}: expected a text, a number or a boolean")


def _raise_for(message: str) -> NoReturn:
    """Raise BadRequest for the message of a msgspec error."""
    if message.startswith(_MISSING):
        field = message.removeprefix(_MISSING).rstrip("`")
        raise BadRequest(f"{field}: required, {_EXPECTED[field]}")
    _, at, place = message.rpartition(_AT)
    if not at:
        raise BadRequest("body: expected a JSON object")
    field = place.rstrip("`").partition("[")[0]
    raise BadRequest(f"{field}: {_EXPECTED[field]}")


def _check_utf8(body: bytes) -> None:
    """Raise BadRequest for a body that is not in UTF-8."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        raise BadRequest("body: expected JSON in UTF-8") from None


def _check_fit(fields: Mapping[str, Any]) -> None:
    """Raise BadRequest for a field with a NUL or half a surrogate pair in a text.

    Neither can be stored: NUL separates texts in the store, half a pair has no UTF-8.
    """
    for field, value in fields.items():
        if not _is_fit(value):
            raise BadRequest(f"{field}: {_FIT}")


def _loosely_decoded(body: bytes) -> Mapping[str, Any]:
    """Return the fields of an invalid body, as far as they can be read."""
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return sent if isinstance(sent, dict) else {}


def _is_fit(value: Any) -> bool:
    texts = [*value, *value.values()] if isinstance(value, dict) else [value]
    return not any(isinstance(text, str) and UNFIT.search(text) for text in texts)
