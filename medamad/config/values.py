"""The types of values that the configuration adds to TOML's own, and how each is read."""

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address, ip_network
from typing import Final, TypeVar
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from medamad.domain.errors import BadRequest
from medamad.domain.websites import canonical_hostname
from medamad.mail.settings import checked_address

_UNITS: Final = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_SIZE: Final = re.compile(r"(?P<number>[0-9]{1,15})\s*(?P<unit>[KMGT]iB|B)\Z")
_MOST_BYTES: Final = 1 << 60
_MAP_SIZES: Final = (16 << 20, 64 << 40)
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}\Z")
_BASE_PATH: Final = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}){1,8}\Z")
_DATABASE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")
_CLUSTER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
_LABEL: Final = r"[A-Za-z0-9]([A-Za-z0-9-]{,61}[A-Za-z0-9])?"
_MAIL_HOST: Final = re.compile(rf"(?=.{{,253}}\Z)({_LABEL}(\.{_LABEL})*\.?)?\Z")
_PORT: Final = re.compile(
    r"((?P<ipv4>[0-9]+(\.[0-9]+){3}):|localhost:|\[(?P<ipv6>[0-9A-Fa-f:.]+)\]:)?(?P<port>[0-9]{1,5})\Z"
)
_OWN_NAMES: Final = frozenset(
    (
        *("api", "auth", "cluster", "dashboard", "event", "health", "mail", "metrics"),
        *("openapi.yaml", "script.js", "scripts", "share", "shared", "user", "website", "websites"),
    )
)

T = TypeVar("T")


class Size(int):
    """Bytes, up to 1 EiB; written as a whole number or as a text such as "64 GiB"."""


class MapSize(Size):
    """A size that the store's file may grow to: 16 MiB to 64 TiB."""


class Endpoints(tuple[str, ...]):
    """Where to listen: endpoint texts of Twisted, at least one; written as a text or a list.

    A port may stand for one of this machine alone, and an address with a port for an endpoint.
    """

    __slots__ = ()


class Origin(str):
    """An origin as browsers write it: scheme and host, with the port if not the default."""

    __slots__ = ()


class PublicUrl(Origin):
    """The origin at which the service is reached; "" where it is not known."""

    __slots__ = ()


class MailAddress(str):
    """An address of a mailbox; "" where none is named."""

    __slots__ = ()


class MailHost(str):
    """A hostname, or an IP address; "" where none is named."""

    __slots__ = ()


class ServerUrl(str):
    """The address of a server: scheme, host and port."""

    __slots__ = ()


class DatabaseName(str):
    """The name of a database, which becomes a part of statements and paths."""

    __slots__ = ()


class ClusterName(str):
    """The name of a cluster, that of an element in the servers' files; "" where none is named."""

    __slots__ = ()


class UserName(str):
    """A name of one line; "" where none is named."""

    __slots__ = ()


class Hostname(str):
    """A name without scheme and port, in lower case and ASCII."""

    __slots__ = ()


class Proxy(str):
    """An address or a network, or "unix" for clients of a unix socket."""

    __slots__ = ()


class Network(str):
    """An address or a network."""

    __slots__ = ()


class ScriptName(str):
    """A path of one segment that is not one of the service's own."""

    __slots__ = ()


class EventName(str):
    """A path of one segment, as for a script: "event", or one that is not the service's own."""

    __slots__ = ()


class BasePath(str):
    """The path below which a proxy serves everything, such as "/stats"; "" for the root."""

    __slots__ = ()


class PathText(str):
    """A path as the file names it; "" where none is named."""

    __slots__ = ()


def read_value(kind: type[T], value: object) -> T:
    """Read a value of one of our own types, for msgspec."""
    return _READERS[kind](value)  # type: ignore[return-value]


def _read_size(value: object) -> Size:
    size = _bytes(value)
    if size > _MOST_BYTES:
        raise ValueError(f"expected at most {_MOST_BYTES >> 40} TiB")
    return Size(size)


def _read_map_size(value: object) -> MapSize:
    size = _bytes(value)
    least, most = _MAP_SIZES
    if not least <= size <= most:
        raise ValueError("expected 16 MiB to 64 TiB")
    return MapSize(size)


def _bytes(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    written = _SIZE.match(value) if isinstance(value, str) else None
    if written is None:
        raise ValueError('expected bytes as a whole number, or a text such as "64 GiB"')
    return int(written["number"]) * _UNITS[written["unit"]]


def _read_endpoints(value: object) -> Endpoints:
    given = value if isinstance(value, list | tuple) else [value]
    texts = [endpoint_text(str(one)) for one in given if type(one) in (str, int)]
    texts = [text for text in texts if ":" in text and "\0" not in text]
    if not texts or len(texts) < len(given):
        raise ValueError('expected a port, an endpoint such as "tcp:8080", or a list of them')
    return Endpoints(texts)


def endpoint_text(text: str) -> str:
    """Return the endpoint that a port, or an address with a port, stands for; others as they are.

    A port alone is one of this machine: to listen on all addresses has to be written out.
    """
    short = _PORT.match(text)
    if short is None:
        return text
    if short["ipv6"]:
        host = short["ipv6"].replace(":", "\\:")
        return f"tcp6:{short['port']}:interface={host}"
    return f"tcp:{short['port']}:interface={short['ipv4'] or '127.0.0.1'}"


def _read_origin(value: object) -> Origin:
    if isinstance(value, str):
        parts = urlsplit(value)
        plain = f"{parts.scheme}://{parts.netloc}"
        if parts.scheme in ("http", "https") and parts.hostname and plain == value == value.lower():
            return Origin(value)
    raise ValueError('expected an origin such as "https://app.example.com"')


def _read_public_url(value: object) -> PublicUrl:
    return PublicUrl(_read_origin(value) if value else "")


def _read_mail_address(value: object) -> MailAddress:
    try:
        if isinstance(value, str):
            return MailAddress(value and checked_address(value))
    except BadRequest:
        pass
    raise ValueError('expected an address such as "stats@example.com"')


def _read_mail_host(value: object) -> MailHost:
    try:
        if isinstance(value, str) and (_MAIL_HOST.match(value) or ip_address(value)):
            return MailHost(value)
    except ValueError:
        pass
    raise ValueError('expected a hostname such as "mail.example.com", without a port')


def _read_user_name(value: object) -> UserName:
    if isinstance(value, str) and value.isprintable():
        return UserName(value)
    raise ValueError("expected a name of one line")


def _read_hostname(value: object) -> Hostname:
    try:
        if isinstance(value, str):
            return Hostname(canonical_hostname(value))
    except BadRequest:
        pass
    raise ValueError('expected a hostname such as "stats.example.com"')


def _read_proxy(value: object) -> Proxy:
    try:
        if isinstance(value, str) and (value == "unix" or ip_network(value)):
            return Proxy(value)
    except ValueError as error:
        raise ValueError(f'expected an address, a network or "unix": {error}') from None
    raise ValueError('expected an address, a network or "unix"')


def _read_network(value: object) -> Network:
    try:
        if isinstance(value, str) and ip_network(value):
            return Network(value)
    except ValueError as error:
        raise ValueError(f"expected an address or a network: {error}") from None
    raise ValueError("expected an address or a network")


def _read_server_url(value: object) -> ServerUrl:
    try:
        if isinstance(value, str) and value.isascii():
            parts = urlsplit(value)
            rest = (parts.path.rstrip("/"), parts.query, parts.fragment, parts.username)
            is_whole = parts.scheme in {"http", "https"} and parts.hostname and parts.port
            if is_whole and not any(rest):
                return ServerUrl(value.rstrip("/"))
    except ValueError:  # a port that is no number
        pass
    raise ValueError('expected an address such as "https://clickhouse.example.com:8443"')


def _read_database_name(value: object) -> DatabaseName:
    if isinstance(value, str) and _DATABASE.match(value):
        return DatabaseName(value)
    raise ValueError("expected a name of letters, digits and underscores")


def _read_cluster_name(value: object) -> ClusterName:
    if value == "" or (isinstance(value, str) and _CLUSTER.match(value)):
        return ClusterName(value)
    raise ValueError("expected a name of letters, digits, hyphens and underscores")


def _read_script_name(value: object) -> ScriptName:
    return ScriptName(_read_segment(value, "script.js"))


def _read_event_name(value: object) -> EventName:
    return EventName(_read_segment(value, "event"))


def _read_segment(value: object, usual: str) -> str:
    if not isinstance(value, str) or not _SEGMENT.match(value):
        raise ValueError("expected a name of letters, digits, dots, hyphens and underscores")
    if value in _OWN_NAMES and value != usual:
        raise ValueError(f"{value} is a path of the interface")
    return value


def _read_base_path(value: object) -> BasePath:
    if value == "":
        return BasePath()
    if not isinstance(value, str) or not _BASE_PATH.match(value):
        raise ValueError('expected a path such as "/stats", without a slash at its end')
    first = value.split("/")[1]
    if first in _OWN_NAMES:
        raise ValueError(f"{first} is a path of the interface")
    return BasePath(value)


def _read_path(value: object) -> PathText:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("expected a path as text without NUL")
    return PathText(value)


def _read_zone(value: object) -> ZoneInfo:
    try:
        if isinstance(value, str):
            return ZoneInfo(value)
    except (KeyError, OSError, ValueError):  # unknown, a folder of zones, a path upwards
        pass
    raise ValueError('expected a time zone such as "UTC" or "Europe/Berlin"')


_READERS: Final[Mapping[type, Callable[[object], object]]] = {
    Size: _read_size,
    MapSize: _read_map_size,
    Endpoints: _read_endpoints,
    Origin: _read_origin,
    MailAddress: _read_mail_address,
    MailHost: _read_mail_host,
    UserName: _read_user_name,
    ServerUrl: _read_server_url,
    DatabaseName: _read_database_name,
    ClusterName: _read_cluster_name,
    PublicUrl: _read_public_url,
    Hostname: _read_hostname,
    Proxy: _read_proxy,
    Network: _read_network,
    BasePath: _read_base_path,
    PathText: _read_path,
    EventName: _read_event_name,
    ScriptName: _read_script_name,
    ZoneInfo: _read_zone,
}
