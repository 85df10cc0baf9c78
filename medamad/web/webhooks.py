"""Requests to webhooks: sent to addresses that were checked, and to no others.

A webhook must not reach what only this machine can reach. So the host's addresses are looked up
once, those of this machine and its networks are left out unless the configuration allows them, and
the connection is made to one of the others: what the name service says later has no effect.
Redirects are not followed.
"""

import socket
from collections.abc import Callable, Iterator, Sequence
from io import BytesIO
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from threading import Thread
from typing import Any, Final, TypeAlias

import psutil
from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred, fail
from twisted.internet.endpoints import TCP4ClientEndpoint, TCP6ClientEndpoint
from twisted.internet.error import ConnectError
from twisted.internet.interfaces import IStreamClientEndpoint
from twisted.internet.protocol import Protocol
from twisted.internet.ssl import optionsForClientTLS
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.web.client import (
    URI,
    Agent,
    FileBodyProducer,
    RequestTransmissionFailed,
    ResponseFailed,
)
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgentEndpointFactory
from zope.interface import implementer

from medamad.build import VERSION
from medamad.domain.alerts import NotDelivered
from medamad.ingest.networks import Networks

ALLOWED_S: Final = 20.0
"""How long a request may take, from the look-up of the name to the end of the response."""
_CONNECT_S: Final = 6.0
_MAX_LOOKUPS: Final = 20
"""How many names are looked up at a time: one that is not answered waits half a minute."""
_SHOWN: Final = 200
"""So many bytes of a response that is no success are shown."""
_MAX_RESPONSE: Final = 65_536

IpAddress: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[[str], Sequence[str]]
"""Return the addresses of a host name. May block; raises OSError."""

_EMBEDDING: Final = tuple(map(IPv6Network, ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96")))
"""Networks (NAT64, SIIT, and addresses once compatible) that end in an IPv4 address."""
_LOCAL: Final = tuple(map(IPv6Network, ("64:ff9b:1::/48", "fec0::/10")))
"""Networks (local NAT64, and site-local addresses) that `ipaddress` takes for global ones."""


def addresses_of(host: str) -> list[str]:
    """Return the addresses of a host name. Blocks. Raises OSError."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def own_networks() -> Networks:
    """Return the networks that this machine is part of."""
    return Networks(
        ip_network(text, strict=False)
        for addresses in psutil.net_if_addrs().values()
        for each in addresses
        if each.family in (socket.AF_INET, socket.AF_INET6)
        for text in (_with_prefix(each.address.partition("%")[0], each.netmask),)
    )


def _with_prefix(address: str, netmask: str | None) -> str:
    """Return the network of an interface; of one that takes everything, the address alone."""
    prefix = int(ip_address(netmask)).bit_count() if netmask else 0
    return f"{address}/{prefix}" if prefix else address


def is_public(text: str, own: Networks, allowed: Networks) -> bool:
    """Return whether webhooks may reach an address: it is public, or allowed by `allowed`."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if address.packed in allowed:
        return True
    if any(address in network for network in _LOCAL):
        return False
    return all(
        each.is_global and not each.is_multicast and each.packed not in own
        for each in (address, *_embedded(address))
    )


def _embedded(address: IpAddress) -> Iterator[IPv4Address]:
    """Return the IPv4 addresses that an address of IPv6 leads to."""
    if isinstance(address, IPv4Address):
        return
    if any(address in network for network in _EMBEDDING):
        yield IPv4Address(address.packed[-4:])
    if address.sixtofour:
        yield address.sixtofour
    if address.teredo:
        yield from address.teredo


@define(eq=False)
class Webhooks:
    """Sends requests to webhooks. Used in the reactor's thread."""

    _reactor: Any
    _resolve: Resolve = addresses_of
    _own_networks: Callable[[], Networks] = own_networks
    _trust_root: Any = None
    """The certificates that are trusted; None for those of the system."""
    _lookups: int = 0

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Sequence[tuple[str, str]],
        allowed: Networks,
        within_s: float = ALLOWED_S,
    ) -> None:
        """Post a body; return once the response is a success (2xx). Raises NotDelivered.

        `allowed` are the networks that webhooks may reach besides public ones.
        """
        sending = Deferred.fromCoroutine(self._post(url, body, headers, allowed))
        is_late = False

        def give_up() -> None:
            nonlocal is_late
            is_late = True
            sending.cancel()

        deadline = self._reactor.callLater(within_s, give_up)
        try:
            await sending
        except CancelledError:
            if is_late:
                raise NotDelivered(f"no response within {within_s:g} seconds") from None
            raise
        finally:
            if deadline.active():
                deadline.cancel()

    async def _post(
        self, url: str, body: bytes, headers: Sequence[tuple[str, str]], allowed: Networks
    ) -> None:
        connections: list[Any] = []
        try:
            await self._request(url, body, headers, _Checked(self, allowed, connections))
        finally:
            # A server that does not end them by itself is not waited for.
            for protocol in connections:
                protocol.transport.abortConnection()

    async def _request(
        self, url: str, body: bytes, headers: Sequence[tuple[str, str]], checked: "_Checked"
    ) -> None:
        agent = Agent.usingEndpointFactory(self._reactor, checked)
        fields = Headers({"User-Agent": [f"medamad/{VERSION}"]})
        for name, value in headers:
            fields.addRawHeader(name, value)
        try:
            response = await agent.request(
                b"POST", url.encode("ascii"), fields, FileBodyProducer(BytesIO(body))
            )
        except CancelledError:
            raise
        except (RequestTransmissionFailed, ResponseFailed) as error:
            if any(each.check(CancelledError) for each in error.reasons):
                raise CancelledError from error
            raise NotDelivered(_reasons(error)) from error
        except NotDelivered:
            raise
        except Exception as error:
            raise NotDelivered(str(error) or type(error).__name__) from error
        status = f"{response.code} {response.phrase.decode('latin-1')}".strip()
        if 200 <= response.code < 300:  # noqa: PLR2004 - the statuses of success
            return
        if 300 <= response.code < 400:  # noqa: PLR2004 - those of redirects
            raise NotDelivered(f"{status}: redirects are not followed")
        raise NotDelivered(status, await _beginning(response))

    def addresses(self, host: str, allowed: Networks) -> "Deferred[list[str]]":
        """Return the addresses of a host that may be reached. Fails with NotDelivered."""
        if self._lookups >= _MAX_LOOKUPS:
            return fail(NotDelivered("the name service is not responding"))
        self._lookups += 1
        done: Deferred[list[str]] = Deferred()

        def finish(found: Sequence[str], failure: str) -> None:
            self._lookups -= 1
            if done.called:
                return
            own = self._own_networks()
            public = [each for each in found if is_public(each, own, allowed)]
            if public:
                done.callback(public)
            else:
                done.errback(NotDelivered(failure or f"{host} {_NOT_PUBLIC}"))

        def look_up() -> None:
            try:
                found, failure = self._resolve(host), ""
            except (OSError, UnicodeError) as error:
                found, failure = [], f"{host}: {getattr(error, 'strerror', '') or error}"
            self._reactor.callFromThread(finish, found, failure)

        # A thread of its own: the stop of the daemon does not wait for a name service.
        Thread(target=look_up, name="webhook address", daemon=True).start()
        return done

    def options_of(self, host: str) -> Any:
        """Return how a host's certificate is verified."""
        return optionsForClientTLS(host, trustRoot=self._trust_root)

    async def connect(self, host: str, port: int, allowed: Networks, factory: Any) -> Any:
        """Connect to the first address of a host that may be reached and takes the connection.

        Raises NotDelivered, ConnectError.
        """
        addresses = await self.addresses(host, allowed)
        for number, address in enumerate(addresses, 1):
            kind = TCP6ClientEndpoint if ":" in address else TCP4ClientEndpoint
            try:
                return await kind(self._reactor, address, port, timeout=_CONNECT_S).connect(factory)
            except ConnectError:
                if number == len(addresses):
                    raise
        return None


_NOT_PUBLIC: Final = (
    "is an address of this machine or of its networks: [alerts] webhook_networks in the"
    " configuration can allow it"
)


@implementer(IAgentEndpointFactory)
@frozen(eq=False)
class _Checked:
    """Makes endpoints that only connect to addresses which may be reached."""

    _webhooks: Webhooks
    _allowed: Networks
    _connections: list[Any]
    """The protocols of the connections that were made."""

    def endpointForURI(self, uri: URI) -> Any:
        host = uri.host.decode("ascii").removeprefix("[").removesuffix("]")
        return _CheckedEndpoint(self, host, uri.port, uri.scheme == b"https")

    async def connect(self, host: str, port: int, factory: Any, *, with_tls: bool) -> Any:
        """Connect to a host; return the protocol that the factory has built."""
        if with_tls:
            # Not by Twisted's endpoints, which know no TLS where they were imported without it.
            factory = TLSMemoryBIOFactory(self._webhooks.options_of(host), True, factory)
        protocol = await self._webhooks.connect(host, port, self._allowed, factory)
        self._connections.append(protocol)
        return protocol.wrappedProtocol if with_tls else protocol


@implementer(IStreamClientEndpoint)
@frozen(eq=False)
class _CheckedEndpoint:
    _checked: _Checked
    _host: str
    _port: int
    _with_tls: bool

    def connect(self, protocolFactory: Any) -> "Deferred[Any]":  # noqa: N803 - Twisted's name
        return Deferred.fromCoroutine(
            self._checked.connect(self._host, self._port, protocolFactory, with_tls=self._with_tls)
        )


def _reasons(error: RequestTransmissionFailed | ResponseFailed) -> str:
    """Return why there was no whole response."""
    # An error of Twisted's parser has the line that it failed at, which is not for the log.
    reasons = [
        each.getErrorMessage() if len(each.value.args) < 2 else "the response is not HTTP"  # noqa: PLR2004
        for each in error.reasons
    ]
    return "; ".join(dict.fromkeys(filter(None, reasons))) or "the connection was lost"


@define(eq=False)
class _Beginning(Protocol):
    """Keeps the beginning of a body."""

    done: "Deferred[bytes]" = field(factory=Deferred)
    _kept: bytes = b""
    _received: int = 0

    def dataReceived(self, data: bytes) -> None:
        self._received += len(data)
        self._kept = (self._kept + data)[:_SHOWN]
        if self._received > _MAX_RESPONSE:
            self._finish()

    def connectionLost(self, _reason: object = None) -> None:
        self._finish()

    def _finish(self) -> None:
        if not self.done.called:
            self.done.callback(self._kept)


async def _beginning(response: Any) -> str:
    """Return the first line of a response's body, without what cannot be shown."""
    protocol = _Beginning()
    response.deliverBody(protocol)
    text = (await protocol.done).decode("utf-8", "replace")
    first = next(iter(text.strip().splitlines()), "")
    return "".join(each for each in first if each.isprintable())
