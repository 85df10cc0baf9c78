"""Parsing the lines of web servers' access logs.

The common and combined formats are Apache's (mod_log_config, "Common Log Format" and "Combined Log
Format", with the escapes in its "Security Considerations"), optionally after a virtual host as in
Debian's vhost_combined; nginx's `combined` (module ngx_http_log_module) is the same. JSON is
Caddy's (directive `log`, fields of the access log), or what nginx writes with a `log_format` with
`escape=json` whose keys are the names of its variables.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final

import msgspec
from attrs import frozen

_QUOTED: Final = rb'"((?:[^"\\]|\\.)*+)"'
_VIRTUAL_HOST: Final = (
    rb"(?:((?:~\S+|[^\s:\[\]]*|\[[^\s\]]+\]):\d{1,5}"
    rb"|(?:-|~\S+|[^\s:\[\]A-Za-z_]*[A-Za-z_][^\s:\[\]]*)(?= [0-9A-Fa-f:.]{3,45} - )) )?"
)
"""Apache's %v:%p (vhost_combined), or %v alone before an address; no address matches it.

Also nginx's $server_name, which may be empty and is any text after a `~`, and its $http_host, which
is `-` if the client sent none.
"""
LINE: Final = re.compile(
    _VIRTUAL_HOST
    + rb"(\S+) \S+ .+?\[([^\[\]]{20,40})\] "
    + _QUOTED
    + rb" (\d{3}) (?:\d+|-)(?: "
    + _QUOTED
    + rb" "
    + _QUOTED
    + rb")?(?: |$)"
)
"""A user name may contain anything but quotation marks, which are escaped: nginx checks nothing."""
_ESCAPE: Final = re.compile(rb"\\(?:x([0-9A-Fa-f]{2})|(.))")
_TIME: Final = re.compile(
    r"(\d\d)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d) ([+-])(\d\d)(\d\d)", re.ASCII
)
_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)
_PORT: Final = re.compile(r":\d{1,5}\Z")
_ANY_HOST: Final = re.compile(r"_\Z|[*~.]|.*\.\*\Z")
"""nginx's names for a server of several hosts, or of any ("Server names"): no particular host."""
_TARGETS: Final = ("request", "request_uri", "uri")
"""Keys of nginx's JSON that have the request's target."""
_WALL: Final = re.compile(r"\A(\d{4})/(\d\d)/(\d\d)(?= )", re.ASCII)
"""The date in Caddy's formats `wall`, `wall_milli` and `wall_nano`."""
_UNITS_PER_S: Final = (1, 10**3, 10**6, 10**9)
"""Caddy may write Unix time in units smaller than a second."""
_MAX_S: Final = 10**11
"""In seconds, the year 5138; in milliseconds, 1973."""
_EXPECTED_TIME: Final = "expected Unix time or a date and time"
_ZEROS: Final = re.compile(r'("(?:[^"\\]|\\.)*+"?)|(?<=[:,\[\s])0+(?=\d)')
"""A JSON string, or leading zeros of a number: nginx writes a status with three digits, as 000."""
_ESCAPED: Final = MappingProxyType({b"n": b"\n", b"t": b"\t", b"r": b"\r"})


class LogLineError(ValueError):
    """A line is not a valid line of an access log; `field` names what is wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


@frozen(kw_only=True)
class LoggedRequest:
    """A request with its response's status. Texts are "" if the log does not have them."""

    time_ms: int
    address: str
    method: str
    target: str
    status: int
    host: str = ""
    referrer: str = ""
    user_agent: str | None = None
    """None if the log does not have it, "" if the client sent none."""
    accept_language: str = ""
    content_type: str = ""


def is_log_line(line: bytes) -> bool:
    """Return whether a line looks like one of an access log, even if parts of it are invalid."""
    if not line.startswith(b"{"):
        return LINE.match(line) is not None
    try:
        record = _decode_json(line)
    except LogLineError:
        return False
    return _is_from_caddy(record) or ("status" in record and _has_target(record))


def parse_log_line(line: bytes) -> LoggedRequest | None:
    """Return the request of a line, or None if it is JSON about something else.

    Raises LogLineError if the line is invalid.
    """
    if line.startswith(b"{"):
        return _parse_json(line)
    match = LINE.match(line)
    if match is None:
        raise LogLineError("line", "not a line of an access log in the common or combined format")
    host, address, time, request, status, referrer, agent = match.groups()
    method, target = _split_request(_unescape(request))
    return LoggedRequest(
        time_ms=_parse_clf_time(time.decode("ascii", "replace")),
        address=_unescape(address),
        method=method,
        target=target,
        status=int(status),
        host=_known_host(_without_dash(_PORT.sub("", _unescape(host or b"")))),
        referrer=_without_dash(_unescape(referrer or b"")),
        user_agent=None if agent is None else _without_dash(_unescape(agent)),
    )


def _unescape(quoted: bytes) -> str:
    if b"\\" in quoted:
        quoted = _ESCAPE.sub(_unescaped, quoted)
    return quoted.decode("utf-8", "replace")


def _unescaped(match: re.Match[bytes]) -> bytes:
    code, character = match.groups()
    if code is not None:
        return bytes.fromhex(code.decode("ascii"))
    return _ESCAPED.get(character, character)


def _without_dash(text: str) -> str:
    return "" if text == "-" else text


def _known_host(name: str) -> str:
    return "" if _ANY_HOST.match(name) else name


def _split_request(request: str) -> tuple[str, str]:
    """Return the method and target of a request line; empty if it is not HTTP."""
    parts = request.split(" ")
    return (parts[0], parts[1]) if len(parts) == 3 else ("", "")  # noqa: PLR2004 - and the protocol


@lru_cache(1_024)
def _parse_clf_time(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None or match[2] not in _MONTHS:
        raise LogLineError("time", "expected a time such as 10/Oct/2000:13:55:36 -0700")
    day, _, year, hour, minute, second, sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
    month = _MONTHS.index(match[2]) + 1
    try:
        moment = datetime(
            *(int(year), month, int(day), int(hour), int(minute), min(int(second), 59)),
            tzinfo=timezone(offset),
        )
    except ValueError as error:
        raise LogLineError("time", str(error)) from None
    return _to_ms(moment.timestamp())


def _to_ms(time_s: float) -> int:
    if not 0 <= time_s < 253_402_300_800:  # noqa: PLR2004 - the year 10000
        raise LogLineError("time", "expected a time of the years 1970 to 9999")
    return round(time_s * 1000)


def _parse_json(line: bytes) -> LoggedRequest | None:
    record = _decode_json(line)
    return _from_caddy(record) if _is_from_caddy(record) else _from_nginx(record)


def _decode_json(line: bytes) -> dict[str, Any]:
    """Return an object. nginx writes a request's bytes unchanged, even if they are not UTF-8."""
    text = line.decode("utf-8", "replace")
    try:
        return _decode_object(text)
    except LogLineError:
        return _decode_object(_ZEROS.sub(r"\1", text))


def _decode_object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise LogLineError("line", f"not a JSON object: {error}") from None


def _is_from_caddy(record: Mapping[str, Any]) -> bool:
    """Return whether a record may be from Caddy's log, which has more than requests."""
    is_log_record = "logger" in record or ("level" in record and "msg" in record)
    return is_log_record or isinstance(record.get("request"), dict)


def _from_caddy(record: Mapping[str, Any]) -> LoggedRequest | None:
    request = record.get("request")
    if not isinstance(request, dict) or "status" not in record:
        return None
    headers = _headers(request.get("headers"))
    response_headers = _headers(record.get("resp_headers"))
    return LoggedRequest(
        time_ms=_parse_json_time(record.get("ts"), "ts"),
        address=str(request.get("client_ip") or request.get("remote_ip") or ""),
        method=str(request.get("method", "")),
        target=str(request.get("uri", "")),
        status=_parse_status(record["status"]),
        host=str(request.get("host", "")),
        referrer=headers.get("referer", ""),
        user_agent=None if request.get("headers") is None else headers.get("user-agent", ""),
        accept_language=headers.get("accept-language", ""),
        content_type=response_headers.get("content-type", ""),
    )


def _headers(headers: Any) -> dict[str, str]:
    """Return the first value of each header, by its lower-case name."""
    items = headers.items() if isinstance(headers, dict) else ()
    return {
        name.lower(): str(values[0])
        for name, values in items
        if isinstance(values, list) and values
    }


def _has_target(record: Mapping[str, Any]) -> bool:
    """Return whether a record has the request's target, which is empty if it is not HTTP."""
    return any(name in record for name in _TARGETS)


def _from_nginx(record: Mapping[str, Any]) -> LoggedRequest:
    def text(*names: str) -> str:
        return next((_without_dash(str(record[name])) for name in names if record.get(name)), "")

    method, target = _split_request(text("request"))
    time_key = next(
        (name for name in ("msec", "time_iso8601", "time_local", "time") if name in record), ""
    )
    if not time_key:
        raise LogLineError("time_iso8601", "missing, and so are msec and time_local")
    if "status" not in record:
        raise LogLineError("status", "missing")
    if not _has_target(record):
        raise LogLineError("request_uri", "missing, and so is request")
    return LoggedRequest(
        time_ms=_parse_json_time(record[time_key], time_key),
        address=text("remote_addr"),
        method=text("request_method") or method,
        target=text("request_uri") or target or text("uri"),
        status=_parse_status(record["status"]),
        host=_known_host(text("http_host", "host", "server_name")),
        referrer=text("http_referer"),
        user_agent=text("http_user_agent") if "http_user_agent" in record else None,
        accept_language=text("http_accept_language"),
        content_type=text("sent_http_content_type"),
    )


def _parse_status(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise LogLineError("status", "expected a number") from None


def _parse_json_time(value: Any, field: str) -> int:
    """Return a time in Unix milliseconds.

    It may be Unix time, ISO 8601 (in UTC if it names no zone), or as in the combined format.
    """
    if isinstance(value, str) and _TIME.fullmatch(value):
        return _parse_clf_time(value)
    try:
        if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
            moment = datetime.fromisoformat(_WALL.sub(r"\1-\2-\3", value))
            return _to_ms((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        if isinstance(value, bool):
            raise LogLineError(field, f"{_EXPECTED_TIME}, not true or false")
        time = float(value)
        return _to_ms(time / next((unit for unit in _UNITS_PER_S if time < _MAX_S * unit), 1))
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LogLineError):
            raise
        raise LogLineError(field, _EXPECTED_TIME) from None
