"""Listening sockets, from systemd or on the configured endpoints.

A socket from systemd replaces the endpoints that cannot be opened beside it; all others are opened.
It speaks TLS if the endpoint with its address does; if there is none, if an endpoint that it
replaces does, or else one with its port. An IPv6 endpoint also accepts IPv4 connections, unless an
IPv4 endpoint or socket has its port.
"""

import errno
import socket
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from attrs import evolve, frozen
from twisted.internet import tcp
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.defer import Deferred, execute
from twisted.internet.endpoints import TCP4ServerEndpoint
from twisted.internet.error import CannotListenError

from medamad.config.schema import Config, ConfigError, ServerSection, raise_all
from medamad.daemon.messages import reason_of
from medamad.daemon.systemd import Inherited, inherited_sockets
from medamad.web.server.endpoints import (
    OF_TCP,
    Bound,
    Certificate,
    ListenAddress,
    ports_of_both,
    read_bound,
    read_endpoint,
)

ACCEPTED_AT_ONCE: Final = 16


def accept_few(port: tcp.Port) -> None:
    """Limit one of Twisted's ports to ACCEPTED_AT_ONCE connections per reactor turn.

    Otherwise it accepts twenty more in each turn than in the previous one while more arrive, so
    that clients that only connect could make a turn arbitrarily long.
    """
    accept: Callable[[], None] = port.doRead

    def accept_some() -> None:
        port.numberAccepts = min(port.numberAccepts, ACCEPTED_AT_ONCE)
        accept()

    port.doRead = accept_some  # type: ignore[method-assign] # what the reactor calls


def keep_addresses_out_of_the_log(port: tcp.Port) -> None:
    """Keep client addresses out of what Twisted logs about a connection, such as an error."""
    connect: Callable[..., tcp.Server] = port.transport

    def connect_nameless(*arguments: object) -> tcp.Server:
        connection = connect(*arguments)
        connection.logstr = type(connection.protocol).__name__
        return connection

    port.transport = connect_nameless  # type: ignore[assignment] # what the port calls


KEY: Final = "server.listen"
_MAX_PORT: Final = 65_535
_ANY_HOST: Final = ("", "0.0.0.0", "::", "127.0.0.1", "::1")  # noqa: S104 - compared, not bound


class CannotListen(Exception):
    """An address is in use or not ours. `str(error)` is for the operator."""


class Port(Protocol):
    """A listening port (Twisted's IListeningPort)."""

    def getHost(self) -> IPv4Address | IPv6Address | UNIXAddress:
        """Return the local address."""

    def stopListening(self) -> Deferred[None] | None:
        """Accept no further connections."""


class Endpoint(Protocol):
    """Where a port can be opened (Twisted's IStreamServerEndpoint)."""

    def listen(self, factory: Any, /) -> Deferred[Port]:
        """Begin to listen."""


@frozen
class ListenEndpoint:
    """An endpoint to listen at; `text` describes it to the operator."""

    text: str
    opener: Endpoint
    address: ListenAddress
    """As configured; for a socket, that of the endpoint whose settings it uses, if any."""
    certificate: Certificate | None = None
    """For TLS; None for plain HTTP."""

    async def listen(self, factory: Any) -> Port:
        """Begin to listen. Raises CannotListen."""
        if self.certificate is not None:
            from medamad.web.server.tls import TLSFactory  # noqa: PLC0415 - imports OpenSSL

            creator: Any = self.certificate
            factory = TLSFactory(creator, isClient=False, wrappedFactory=factory)
        try:
            port = await self.opener.listen(factory)
        except (CannotListenError, OSError) as error:
            reason = error.socketError if isinstance(error, CannotListenError) else error
            why = getattr(reason, "strerror", None) or str(reason)
            if getattr(reason, "errno", None) == errno.EADDRINUSE and self.address.port:
                why += f"; choose another port: --listen {self.address.port + 1}, or {KEY}"
            raise CannotListen(f"cannot listen on {self.text}: {why}") from error
        if isinstance(port, tcp.Port):
            accept_few(port)
            keep_addresses_out_of_the_log(port)
        return port

    def url(self, port: Port) -> str:
        """Return the address for a browser on this machine, "" for a unix socket."""
        where = port.getHost()
        if isinstance(where, UNIXAddress):
            return ""
        scheme = "http" if self.certificate is None else "https"
        name = f"[{where.host}]" if ":" in where.host else where.host
        return f"{scheme}://{'localhost' if where.host in _ANY_HOST else name}:{where.port}"


@frozen
class _OnlyIPv6:
    """An endpoint that leaves IPv4 connections to another one."""

    _reactor: Any
    _port: int
    _backlog: int
    _interface: str

    def listen(self, factory: Any) -> Deferred[Port]:
        """Begin to listen, as the reactor's listenTCP does."""
        return execute(self._listen, factory)

    def _listen(self, factory: Any) -> Port:
        port = _PortOfIPv6(self._port, factory, self._backlog, self._interface, self._reactor)
        port.startListening()
        return port


class _PortOfIPv6(tcp.Port):
    def createInternetSocket(self) -> socket.socket:
        made: socket.socket = super().createInternetSocket()
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        return made


def configured_endpoints(
    config: Config, reactor: Any, sockets: Sequence[Inherited] = ()
) -> list[ListenEndpoint]:
    """Return the endpoints that the configuration names, to be opened beside sockets of systemd.

    Raises ConfigError, for one of the endpoints that are refused, with the others.
    """
    texts = config.server.listen
    bounds: dict[str, Bound] = {}
    others: dict[str, ListenEndpoint] = {}
    refused: list[ConfigError] = []
    of_tcp = _of_tcp(config)
    for text in texts:
        try:
            if text in of_tcp:
                bounds[text] = _bound(config, text)
            else:
                others[text] = _other_endpoint(config, text, reactor)
        except ConfigError as error:
            refused.append(error)
    raise_all(refused)
    addresses = [bound.address for bound in bounds.values()] + [one.address for one in sockets]
    of_both = ports_of_both(addresses)
    found = []
    for text in texts:
        if text in others:
            found.append(others[text])
            continue
        bound = bounds[text]
        kind = _OnlyIPv6 if bound.address.is_ipv6 and bound.port in of_both else TCP4ServerEndpoint
        endpoint = kind(reactor, bound.port, bound.backlog, bound.interface)
        found.append(ListenEndpoint(text, endpoint, bound.address, bound.certificate))
    return found


def listen_endpoints(config: Config, reactor: Any) -> list[ListenEndpoint]:
    """Return the endpoints to listen at: systemd's sockets, and what else the configuration names.

    The default endpoint is for a daemon that was given no socket.
    """
    inherited = inherited_sockets(reactor)
    configured = configured_endpoints(config, reactor, inherited)
    if not inherited:
        return configured
    return systemd_first(
        configured, inherited, by_default=config.server.listen == ServerSection().listen
    )


def systemd_first(
    configured: Sequence[ListenEndpoint], inherited: Sequence[Inherited], *, by_default: bool
) -> list[ListenEndpoint]:
    """Return systemd's sockets, and the endpoints that can be opened beside them."""
    meant = [(endpoint, _numeric(endpoint)) for endpoint in configured]
    found = []
    for one in inherited:
        endpoint = ListenEndpoint(f"{one.address} (from systemd)", one.endpoint, one.address)
        if (settings := _nearest(meant, one)) is not None:
            endpoint = evolve(endpoint, address=settings.address, certificate=settings.certificate)
        found.append(endpoint)
    if by_default:
        return found
    known = {at for _, at in meant}

    def is_kept_out(at: ListenAddress) -> bool:
        # A name that does not resolve yet may be that of a socket without an endpoint.
        return any(one.keeps_out(at) for one in inherited if at.host or one.address not in known)

    return found + [endpoint for endpoint, at in meant if not is_kept_out(at)]


def _nearest(
    meant: Sequence[tuple[ListenEndpoint, ListenAddress]], one: Inherited
) -> ListenEndpoint | None:
    """Return the endpoint whose settings a socket uses, if any.

    Several may have its port: if the unit is older than the configuration, if the socket covers
    several endpoints, or if it is the IPv4 twin of an IPv6 one.
    """

    def rank(candidate: tuple[ListenEndpoint, ListenAddress]) -> tuple[bool, ...]:
        endpoint, at = candidate
        speaks_tls = endpoint.certificate is not None
        return (at == one.address, one.keeps_out(at), speaks_tls, at.is_everywhere)

    candidates = [
        (endpoint, at)
        for endpoint, at in meant
        if at.port == one.address.port and (at.port or one.keeps_out(at))
    ]
    return max(candidates, key=rank)[0] if candidates else None


def _numeric(endpoint: ListenEndpoint) -> ListenAddress:
    try:
        return endpoint.address.numeric()
    except OSError:
        # A name that does not resolve yet may be any IPv4 address.
        return evolve(endpoint.address, host="")
    except ValueError:
        return endpoint.address  # listening will report that it is invalid


def renew(listening: Sequence[ListenEndpoint], config: Config) -> list[ConfigError]:
    """Use the current certificate files for new connections.

    This includes endpoints that are no longer configured: the daemon listens there until the next
    start. Return the errors of unreadable certificates, which are not replaced.
    """
    refused: dict[str, ConfigError] = {}
    read: dict[ListenAddress, Certificate] = {}

    def read_one(text: str) -> None:
        try:
            bound = _bound(config, text)
        except ConfigError as error:
            refused[text] = error
        else:
            if bound.certificate is not None:
                read[bound.address] = bound.certificate

    for text in _of_tcp(config):
        read_one(text)
    for endpoint in listening:
        if (used := endpoint.certificate) is None:
            continue
        if endpoint.address not in read and used.text not in refused:
            read_one(used.text)
        if (now := read.get(endpoint.address)) is not None:
            used.options, used.text = now.options, now.text
    return list(refused.values())


def _of_tcp(config: Config) -> list[str]:
    return [text for text in config.server.listen if text.partition(":")[0] in OF_TCP]


def _bound(config: Config, text: str) -> Bound:
    port = text.partition(":")[2].partition(":")[0]
    try:
        _check_port(port.removeprefix("port="))
        return read_bound(text)
    except Exception as error:  # whatever an endpoint's plugin raises on its text
        raise _refusal(config, text, error) from error


def _other_endpoint(config: Config, text: str, reactor: Any) -> ListenEndpoint:
    path = text.partition(":")[2].partition(":")[0]
    try:
        endpoint = read_endpoint(text, reactor)
        return ListenEndpoint(text, endpoint, ListenAddress(path.removeprefix("address=")))
    except Exception as error:  # whatever an endpoint's plugin raises on its text
        raise _refusal(config, text, error) from error


def _refusal(config: Config, text: str, error: Exception) -> ConfigError:
    why = reason_of(error) if isinstance(error, OSError) else str(error)
    reason = f"{text}: {why or type(error).__name__}"
    return ConfigError(config.file or Path("the command line"), KEY, reason)


def _check_port(port: str) -> None:
    """Raise ValueError for an invalid port, which Twisted would only report when it listens."""
    if not (port.isdecimal() and int(port) <= _MAX_PORT):
        raise ValueError(f"expected a port from 0 to {_MAX_PORT}")
