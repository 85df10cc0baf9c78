"""The lines of web servers' access logs, taken apart.

Common and combined are Apache's (mod_log_config, "Common Log Format" and "Combined Log Format",
with the escapes of its "Security considerations"), also after a virtual host, as in Debian's
vhost_combined; nginx's `combined` (module ngx_http_log_module) is the same. JSON is Caddy's
(directive `log`, the access log's fields) and what nginx writes by a `log_format` with
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
"""Apache's %v:%p (vhost_combined), or %v alone before an address; no address reads as it.

So with nginx's $server_name, which may be empty, and is any text after a `~`, and its $http_host,
which is `-` where none was sent.
"""
_LINE: Final = re.compile(
    _VIRTUAL_HOST
    + rb"(\S+) \S+ .+?\[([^\[\]]{20,40})\] "
    + _QUOTED
    + rb" (\d{3}) (?:\d+|-)(?: "
    + _QUOTED
    + rb" "
    + _QUOTED
    + rb")?(?: |$)"
)
"""A user's name may be of any characters but quotes, which are escaped: nginx checks none."""
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
"""How nginx names a server of several hosts, or of any ("Server names"): it tells of no host."""
_TARGETS: Final = ("request", "request_uri", "uri")
"""Keys of nginx's JSON that tell what was asked for."""
_WALL: Final = re.compile(r"\A(\d{4})/(\d\d)/(\d\d)(?= )", re.ASCII)
"""The date of Caddy's formats `wall`, `wall_milli` and `wall_nano`."""
_UNITS: Final = (1, 10**3, 10**6, 10**9)
"""Of Unix time, in a second: Caddy may write it in smaller ones."""
_MOST_S: Final = 10**11
"""Seconds until the year 5138; as many milliseconds end in 1973."""
_EXPECTED_TIME: Final = "expected Unix time or a date and time"
_ZEROS: Final = re.compile(r'("(?:[^"\\]|\\.)*+"?)|(?<=[:,\[\s])0+(?=\d)')
"""A text of JSON, or zeros before a number: nginx writes a status of three digits, as 000."""
_SHORT: Final = MappingProxyType({b"n": b"\n", b"t": b"\t", b"r": b"\r"})


class NoLine(ValueError):
    """It is no line of an access log; `field` names what is wrong."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


@frozen(kw_only=True)
class Request:
    """A request that was answered. Texts are "" where the log does not say."""

    time_ms: int
    address: str
    method: str
    target: str
    status: int
    host: str = ""
    referrer: str = ""
    user_agent: str | None = None
    """None where the log does not say, "" where nothing was sent."""
    accept_language: str = ""
    content_type: str = ""


def is_log(line: bytes) -> bool:
    """Return whether a line looks like one of an access log, even if not all of it can be read."""
    if not line.startswith(b"{"):
        return _LINE.match(line) is not None
    try:
        record = _record(line)
    except NoLine:
        return False
    return _is_of_caddy(record) or ("status" in record and _tells_target(record))


def request_of(line: bytes) -> Request | None:
    """Take a line apart; None for one of JSON that tells of something else. Raises NoLine."""
    if line.startswith(b"{"):
        return _of_json(line)
    match = _LINE.match(line)
    if match is None:
        raise NoLine("line", "not a line of an access log in common or combined form")
    host, address, time, request, status, referrer, agent = match.groups()
    method, target = _asked(_text(request))
    return Request(
        time_ms=_local_ms(time.decode("ascii", "replace")),
        address=_text(address),
        method=method,
        target=target,
        status=int(status),
        host=_told_host(_said(_PORT.sub("", _text(host or b"")))),
        referrer=_said(_text(referrer or b"")),
        user_agent=None if agent is None else _said(_text(agent)),
    )


def _text(quoted: bytes) -> str:
    if b"\\" in quoted:
        quoted = _ESCAPE.sub(_unescaped, quoted)
    return _decoded(quoted)


def _decoded(sent: bytes) -> str:
    return sent.decode("utf-8", "replace")


def _unescaped(match: re.Match[bytes]) -> bytes:
    code, character = match.groups()
    if code is not None:
        return bytes.fromhex(code.decode("ascii"))
    return _SHORT.get(character, character)


def _said(text: str) -> str:
    return "" if text == "-" else text


def _told_host(name: str) -> str:
    return "" if _ANY_HOST.match(name) else name


def _asked(request: str) -> tuple[str, str]:
    """Return method and target of a request line; empty for what was no request of HTTP."""
    parts = request.split(" ")
    return (parts[0], parts[1]) if len(parts) == 3 else ("", "")  # noqa: PLR2004 - and its protocol


@lru_cache(1_024)
def _local_ms(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None or match[2] not in _MONTHS:
        raise NoLine("time", "expected one such as 10/Oct/2000:13:55:36 -0700")
    day, _, year, hour, minute, second, sign, hours, minutes = match.groups()
    offset = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
    month = _MONTHS.index(match[2]) + 1
    try:
        moment = datetime(
            *(int(year), month, int(day), int(hour), int(minute), min(int(second), 59)),
            tzinfo=timezone(offset),
        )
    except ValueError as error:
        raise NoLine("time", str(error)) from None
    return _checked(moment.timestamp())


def _checked(time_s: float) -> int:
    if not 0 <= time_s < 253_402_300_800:  # noqa: PLR2004 - the year 10000
        raise NoLine("time", "expected a time of the years 1970 to 9999")
    return round(time_s * 1000)


def _of_json(line: bytes) -> Request | None:
    record = _record(line)
    return _of_caddy(record) if _is_of_caddy(record) else _of_nginx(record)


def _record(line: bytes) -> dict[str, Any]:
    """Read an object. nginx writes bytes of a request that are no UTF-8 as they are."""
    text = _decoded(line)
    try:
        return _object(text)
    except NoLine:
        return _object(_ZEROS.sub(r"\1", text))


def _object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError) as error:
        raise NoLine("line", f"not a JSON object: {error}") from None


def _is_of_caddy(record: Mapping[str, Any]) -> bool:
    """Return whether it may be of Caddy's log, in which there is more than accesses."""
    is_told = "logger" in record or ("level" in record and "msg" in record)
    return is_told or isinstance(record.get("request"), dict)


def _of_caddy(record: Mapping[str, Any]) -> Request | None:
    request = record.get("request")
    if not isinstance(request, dict) or "status" not in record:
        return None
    headers, sent = _headers(request.get("headers")), _headers(record.get("resp_headers"))
    return Request(
        time_ms=_json_ms(record.get("ts"), "ts"),
        address=str(request.get("client_ip") or request.get("remote_ip") or ""),
        method=str(request.get("method", "")),
        target=str(request.get("uri", "")),
        status=_status(record["status"]),
        host=str(request.get("host", "")),
        referrer=headers.get("referer", ""),
        user_agent=None if request.get("headers") is None else headers.get("user-agent", ""),
        accept_language=headers.get("accept-language", ""),
        content_type=sent.get("content-type", ""),
    )


def _headers(headers: Any) -> dict[str, str]:
    """Return the first value of each header, by its name in lower case."""
    found = headers.items() if isinstance(headers, dict) else ()
    return {
        name.lower(): str(values[0])
        for name, values in found
        if isinstance(values, list) and values
    }


def _tells_target(record: Mapping[str, Any]) -> bool:
    """Return whether a line says what was asked for; that is empty where it was no HTTP."""
    return any(name in record for name in _TARGETS)


def _of_nginx(record: Mapping[str, Any]) -> Request:
    def text(*names: str) -> str:
        return next((_said(str(record[name])) for name in names if record.get(name)), "")

    method, target = _asked(text("request"))
    moment = next(
        (name for name in ("msec", "time_iso8601", "time_local", "time") if name in record), ""
    )
    if not moment:
        raise NoLine("time_iso8601", "it is missing, and so are msec and time_local")
    if "status" not in record:
        raise NoLine("status", "it is missing")
    if not _tells_target(record):
        raise NoLine("request_uri", "it is missing, and so is request")
    return Request(
        time_ms=_json_ms(record[moment], moment),
        address=text("remote_addr"),
        method=text("request_method") or method,
        target=text("request_uri") or target or text("uri"),
        status=_status(record["status"]),
        host=_told_host(text("http_host", "host", "server_name")),
        referrer=text("http_referer"),
        user_agent=text("http_user_agent") if "http_user_agent" in record else None,
        accept_language=text("http_accept_language"),
        content_type=text("sent_http_content_type"),
    )


def _status(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise NoLine("status", "expected a number") from None


def _json_ms(value: Any, field: str) -> int:
    """Return a time: Unix time, ISO 8601, in UTC where it names no zone, or as in combined form."""
    if isinstance(value, str) and _TIME.fullmatch(value):
        return _local_ms(value)
    try:
        if isinstance(value, str) and not value.replace(".", "", 1).isdigit():
            moment = datetime.fromisoformat(_WALL.sub(r"\1-\2-\3", value))
            return _checked((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
        if isinstance(value, bool):
            raise NoLine(field, f"{_EXPECTED_TIME}, not true or false")
        time = float(value)
        return _checked(time / next((unit for unit in _UNITS if time < _MOST_S * unit), 1))
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, NoLine):
            raise
        raise NoLine(field, _EXPECTED_TIME) from None
