"""Where the daemon listens: on sockets from systemd, or on the configured endpoints."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from attrs import frozen
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.error import CannotListenError

from medamad.config import Config, ConfigError
from medamad.systemd import inherited_endpoints

KEY: Final = "server.listen"
_OF_TLS: Final = ("ssl", "tls")
_OF_TCP: Final = ("tcp", "tcp6", "ssl")
_MAX_PORT: Final = 65_535
_ANY_HOST: Final = ("", "0.0.0.0", "::", "127.0.0.1", "::1")  # noqa: S104 - told apart, not bound


class CannotListenThere(Exception):
    """A place to listen at is taken or not ours. `str(error)` is for the operator."""


class Port(Protocol):
    """A port that is listened on (Twisted's IListeningPort)."""

    def getHost(self) -> IPv4Address | IPv6Address | UNIXAddress:
        """Give the address of this end."""

    def stopListening(self) -> Deferred[None] | None:
        """Take no further connection."""


class Endpoint(Protocol):
    """Where a port can be opened (Twisted's IStreamServerEndpoint)."""

    def listen(self, factory: Any, /) -> Deferred[Port]:
        """Begin to listen."""


@frozen
class Place:
    """A place to listen at. `text` says which, for the operator."""

    text: str
    endpoint: Endpoint

    async def listen(self, factory: Any) -> Port:
        """Begin to listen. Raises CannotListenThere."""
        try:
            return await self.endpoint.listen(factory)
        except (CannotListenError, OSError) as error:
            reason = error.socketError if isinstance(error, CannotListenError) else error
            told = getattr(reason, "strerror", None) or str(reason)
            raise CannotListenThere(f"cannot listen on {self.text}: {told}") from error

    def url(self, port: Port) -> str:
        """Give the address for a browser on this machine, "" for a unix socket."""
        where = port.getHost()
        if isinstance(where, UNIXAddress):
            return ""
        scheme = "https" if self.text.partition(":")[0] in _OF_TLS else "http"
        name = f"[{where.host}]" if ":" in where.host else where.host
        return f"{scheme}://{'localhost' if where.host in _ANY_HOST else name}:{where.port}"


def configured_places(config: Config, reactor: Any) -> list[Place]:
    """Give the places that the configuration names. Raises ConfigError."""
    return [Place(text, _endpoint(config, text, reactor)) for text in config.server.listen]


def places(config: Config, reactor: Any) -> Sequence[Place]:
    """Give the places to listen at: systemd's sockets, if it opened any, else the configured."""
    inherited = inherited_endpoints(reactor)
    if inherited:
        return [Place(f"socket {n} of systemd", one) for n, one in enumerate(inherited)]
    return configured_places(config, reactor)


def _endpoint(config: Config, text: str, reactor: Any) -> Endpoint:
    try:
        _check_port(text)
        endpoint: Endpoint = serverFromString(reactor, text)
    except Exception as error:  # whatever an endpoint's plugin raises on its text
        reason = f"{text}: {error or type(error).__name__}"
        raise ConfigError(config.file or Path("the command line"), KEY, reason) from error
    return endpoint


def _check_port(text: str) -> None:
    """Raise ValueError for a port that there is not; Twisted finds out when it listens."""
    kind, _, rest = text.partition(":")
    port = rest.partition(":")[0].removeprefix("port=")
    if kind in _OF_TCP and not (port.isdecimal() and int(port) <= _MAX_PORT):
        raise ValueError(f"expected a port from 0 to {_MAX_PORT}")
