"""The protocol with systemd: readiness, the watchdog, inherited sockets (sd_notify(3))."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import Any, Final, Self

from attrs import frozen
from twisted.internet.endpoints import AdoptedStreamServerEndpoint, serverFromString
from twisted.logger import Logger

from medamad.web.server.endpoints import EVERYWHERE, EVERYWHERE_IPV6, ListenAddress

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
RELOADING: Final = "RELOADING=1"
ALIVE: Final = "WATCHDOG=1"
BUSY: Final = "EXTEND_TIMEOUT_USEC=600000000"
"""The start may take another ten minutes before systemd ends it."""

_BEATS_PER_PERIOD: Final = 3


@frozen
class Supervisor:
    """The supervisor of this process, if any. `beat_s` is None without a watchdog."""

    _log = Logger()

    address: str = ""
    """The datagram socket that it reads; "" without a supervisor."""
    beat_s: float | None = None
    """The interval of watchdog messages in seconds."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str], pid: int) -> Self:
        """Read NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID."""
        address = environ.get("NOTIFY_SOCKET", "")
        period_us = environ.get("WATCHDOG_USEC", "")
        is_for_us = environ.get("WATCHDOG_PID", str(pid)) == str(pid)
        if not address or not is_for_us or not period_us.isdecimal() or not int(period_us):
            return cls(address)
        return cls(address, int(period_us) / 1_000_000 / _BEATS_PER_PERIOD)

    def notify(self, *assignments: str) -> None:
        """Send assignments such as READY; only log a failure to send."""
        if not self.address:
            return
        address = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(assignments).encode(), address)
        except OSError as error:
            self._log.warn("the supervisor could not be notified: {error}", error=error)


@frozen
class Inherited:
    """A socket that systemd opened for the daemon."""

    address: ListenAddress
    """The address that the socket is bound to."""
    endpoint: AdoptedStreamServerEndpoint
    is_of_both: bool = False
    """Whether it accepts IPv4 too, as an IPv6 socket bound to no address does."""

    def keeps_out(self, other: ListenAddress) -> bool:
        """Return whether nothing can listen on another address beside it."""
        by_ipv4 = self.is_of_both and ListenAddress(EVERYWHERE, self.address.port).keeps_out(other)
        return by_ipv4 or self.address.keeps_out(other)


def inherited_sockets(reactor: Any) -> list[Inherited]:
    """Return the sockets that systemd opened for the daemon (sd_listen_fds(3)).

    Twisted reads and removes LISTEN_FDS when it is imported, and hands out the sockets by index. It
    needs their names too, which it leaves in the environment.
    """
    found: list[Inherited] = []
    if "LISTEN_FDNAMES" not in os.environ:
        # To look for sockets would import all plugins of Twisted, and its test framework.
        return found
    with suppress(IndexError):
        for index in count():
            endpoint = serverFromString(reactor, f"systemd:domain=INET:index={index}")
            found.append(_inherited(endpoint.fileno, reactor))
    return found


def _inherited(descriptor: int, reactor: Any) -> Inherited:
    opened = socket.socket(fileno=descriptor)
    try:
        family = socket.AddressFamily(opened.family)
        endpoint = AdoptedStreamServerEndpoint(reactor, descriptor, family)
        bound = opened.getsockname()
        if family == socket.AF_UNIX:
            # The address of an abstract socket begins with a null byte and is bytes.
            return Inherited(ListenAddress(os.fsdecode(bound)), endpoint)
        address = ListenAddress(*bound[:2])
        is_of_both = address.host == EVERYWHERE_IPV6 and not opened.getsockopt(
            socket.IPPROTO_IPV6, socket.IPV6_V6ONLY
        )
        return Inherited(address, endpoint, is_of_both)
    finally:
        opened.detach()
