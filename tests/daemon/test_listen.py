from pathlib import Path

import pytest
from attrs import define, evolve, frozen
from support.certificates import Authority
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.defer import Deferred, succeed
from twisted.internet.error import CannotListenError
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactor

from medamad.config.schema import Config, ConfigError, ServerSection
from medamad.config.values import Endpoints
from medamad.daemon.listen import (
    CannotListen,
    ListenEndpoint,
    Port,
    configured_endpoints,
    renew,
    systemd_first,
)
from medamad.daemon.systemd import Inherited
from medamad.web.server.endpoints import BACKLOG, Certificate, ListenAddress

ANY = ListenAddress("", 443)


@frozen
class At:
    """A port that is where it says, and a endpoint that never opens."""

    where: IPv4Address | IPv6Address | UNIXAddress

    def getHost(self) -> IPv4Address | IPv6Address | UNIXAddress:
        return self.where

    def stopListening(self) -> None:
        raise AssertionError

    def listen(self, _factory: object) -> Deferred[Port]:
        raise CannotListenError("127.0.0.1", 80, PermissionError(13, "Permission denied"))


@pytest.mark.parametrize(
    ("text", "where", "url"),
    [
        ("tcp:8080:interface=127.0.0.1", IPv4Address("TCP", "127.0.0.1", 8080), "localhost:8080"),
        ("tcp:80", IPv4Address("TCP", "0.0.0.0", 80), "localhost:80"),  # noqa: S104
        ("tcp6:80", IPv6Address("TCP", "::", 80), "localhost:80"),
        ("tcp:80:interface=192.0.2.1", IPv4Address("TCP", "192.0.2.1", 80), "192.0.2.1:80"),
        ("tcp6:80", IPv6Address("TCP", "2001:db8::1", 80), "[2001:db8::1]:80"),
        ("127.0.0.1:80 (from systemd)", IPv4Address("TCP", "127.0.0.1", 80), "localhost:80"),
    ],
)
def test_the_address_for_a_browser(text: str, where: IPv4Address | IPv6Address, url: str) -> None:
    assert ListenEndpoint(text, At(where), ANY).url(At(where)) == f"http://{url}"


def test_the_address_for_a_browser_over_tls() -> None:
    at = At(IPv4Address("TCP", "127.0.0.1", 443))
    endpoint = ListenEndpoint("[::1]:443 (from systemd)", at, ANY, Certificate(None, ""))
    assert endpoint.url(at) == "https://localhost:443"


@define
class Ear:
    """An endpoint that keeps the factory of its connections."""

    factory: Factory | None = None

    def listen(self, factory: Factory) -> Deferred[Port]:
        self.factory = factory
        return succeed(At(UNIXAddress("")))


@define
class Full(Factory):
    """Accepts a number of connections."""

    room: int

    def buildProtocol(self, _address: object) -> Protocol | None:
        self.room -= 1
        return Protocol() if self.room >= 0 else None


@pytest.mark.parametrize("certificate", [None, Certificate(None, "")])
def test_a_rejected_connection_is_closed_over_tls_too(
    certificate: Certificate | None,
) -> None:
    ear, full = Ear(), Full(room=1)
    with pytest.raises(StopIteration):
        ListenEndpoint("tcp:443", ear, ANY, certificate).listen(full).send(None)
    address = IPv4Address("TCP", "192.0.2.1", 50_000)
    assert ear.factory.buildProtocol(address) is not None
    # A port closes what it gets no protocol for.
    assert ear.factory.buildProtocol(address) is None


def test_a_unix_socket_is_not_for_browsers() -> None:
    at = At(UNIXAddress("/run/s"))
    assert ListenEndpoint("unix:/run/s", at, ANY).url(at) == ""


def test_a_privileged_port_is_explained() -> None:
    endpoint = ListenEndpoint("tcp:80", At(UNIXAddress("")), ANY)
    with pytest.raises(CannotListen, match=r"^cannot listen on tcp:80: Permission denied$"):
        endpoint.listen(None).send(None)


def listening_on(*texts: str) -> Config:
    return evolve(Config(), server=ServerSection(listen=Endpoints(texts)))


def test_the_configured_endpoints() -> None:
    texts = ["tcp:8080", "unix:/run/medamad"]
    endpoints = configured_endpoints(listening_on(*texts), MemoryReactor())
    assert [endpoint.text for endpoint in endpoints] == texts


@pytest.mark.parametrize("text", ["tcp:high", "tcp:", "x:", "ssl:443:privateKey=/absent.pem"])
def test_an_invalid_endpoint_is_named(text: str) -> None:
    config = evolve(listening_on(text), file=Path("/etc/medamad/medamad.toml"))
    with pytest.raises(ConfigError) as raised:
        configured_endpoints(config, MemoryReactor())
    assert raised.value.key == "server.listen"
    assert raised.value.reason.startswith(f"{text}: ")


of_twisted = pytest.mark.filterwarnings("ignore:Passing pyOpenSSL:DeprecationWarning")


@of_twisted
def test_an_openssl_error_is_reported(tmp_path: Path) -> None:
    text = f"{Authority(tmp_path).endpoint(443)}:dhParameters={tmp_path / 'cert.pem'}"
    with pytest.raises(ConfigError, match="no start line"):
        configured_endpoints(listening_on(text), MemoryReactor())


@pytest.mark.parametrize("text", ["tcp:99999", "tcp6:65536:interface=::1", "tcp:-5", "ssl:x"])
def test_an_invalid_port_is_rejected(text: str) -> None:
    config = evolve(Config(), server=ServerSection(listen=Endpoints((text,))))
    with pytest.raises(ConfigError, match=r"server\.listen: .*expected a port from 0 to 65535"):
        configured_endpoints(config, MemoryReactor())


@pytest.mark.parametrize(
    ("text", "backlog"),
    [
        ("tcp:8080", BACKLOG),
        ("tcp6:8080", BACKLOG),
        ("tcp:8080:backlog=7", 7),
        ("tcp6:8080:backlog=2000:interface=\\:\\:1", 2_000),
        ("unix:/run/medamad/http.sock", BACKLOG),
        ("unix:/run/medamad/http.sock:mode=660:lockfile=0", BACKLOG),
        ("unix:/run/medamad/http.sock:backlog=7", 7),
        # Twisted's own defaults are made explicit.
        ("tcp:8080:backlog=50", 50),
        ("tcp:8080:127.0.0.1:50", 50),
        ("tcp6:8080:50", 50),
        ("unix:/run/medamad/http.sock:660:50", 50),
    ],
)
def test_the_backlog_is_set(text: str, backlog: int) -> None:
    reactor = MemoryReactor()
    (endpoint,) = configured_endpoints(listening_on(text), reactor)
    Deferred.fromCoroutine(endpoint.listen(Full(room=1)))
    ((_, _, used_backlog, *_),) = reactor.tcpServers + reactor.unixServers
    assert used_backlog == backlog


PLAIN, TLS = "127.0.0.1", "127.0.0.2"


def configured(*hosts: str, port: int = 443) -> list[ListenEndpoint]:
    """Return endpoints of one port, of which the one at TLS speaks it."""
    return [
        ListenEndpoint(
            host, Ear(), ListenAddress(host, port), Certificate(None, "") if host == TLS else None
        )
        for host in hosts
    ]


def of_systemd(*hosts: str, is_of_both: bool = False) -> list[Inherited]:
    return [Inherited(ListenAddress(host, 443), Ear(), is_of_both) for host in hosts]


@pytest.mark.parametrize(
    ("hosts", "sockets", "replaced", "left"),
    [
        ([PLAIN, TLS], [PLAIN, TLS], [PLAIN, TLS], []),
        ([TLS, PLAIN], [PLAIN, TLS], [PLAIN, TLS], []),
        ([""], ["0.0.0.0"], [""], []),  # noqa: S104
        (["localhost", TLS], [TLS, "127.0.0.1"], [TLS, "localhost"], []),
        (["0:0::1", "::"], ["::", "::1"], ["::", "0:0::1"], []),
        # An IPv4 socket next to an IPv6-only one.
        (["::1", "::"], ["::1", "::", "0.0.0.0"], ["::1", "::", "::"], []),  # noqa: S104
        # The unit is older than the configuration.
        ([PLAIN, ""], ["192.0.2.1"], [""], [PLAIN]),
        ([PLAIN, TLS], ["192.0.2.1", PLAIN], [TLS, PLAIN], [TLS]),
        ([PLAIN, TLS], [PLAIN], [PLAIN], [TLS]),
        ([PLAIN, TLS], ["0.0.0.0"], [TLS], []),  # noqa: S104
        ([PLAIN, "::"], [PLAIN], [PLAIN], ["::"]),
        ([PLAIN, "::"], ["0.0.0.0"], [PLAIN], ["::"]),  # noqa: S104
        (["::1"], [PLAIN], ["::1"], ["::1"]),
        (["::1", "fd00::1"], [PLAIN], ["::1"], ["::1", "fd00::1"]),
        # A name that does not resolve now.
        (["a.invalid"], [PLAIN], ["a.invalid"], []),
        (["a.invalid", TLS], ["0.0.0.0"], [TLS], []),  # noqa: S104
        (["a.invalid", PLAIN], [PLAIN], [PLAIN], ["a.invalid"]),
    ],
)
def test_a_systemd_socket_replaces_the_endpoint_with_its_address(
    hosts: list[str], sockets: list[str], replaced: list[str], left: list[str]
) -> None:
    endpoints = configured(*hosts)
    found = systemd_first(endpoints, of_systemd(*sockets), by_default=False)
    assert [endpoint.address.host for endpoint in found] == replaced + left
    of_host = {endpoint.address.host: endpoint.certificate for endpoint in endpoints}
    assert all(endpoint.certificate is of_host[endpoint.address.host] for endpoint in found)


@pytest.mark.parametrize(
    ("hosts", "used_host"),
    [
        ([TLS, "::1"], TLS),
        (["::1", TLS, PLAIN], TLS),
        ([PLAIN, "::1", ""], ""),
        (["", "::"], "::"),
    ],
)
def test_a_dual_stack_socket_matches_an_endpoint_of_either_family(
    hosts: list[str], used_host: str
) -> None:
    endpoints, sockets = configured(*hosts), of_systemd("::", is_of_both=True)
    (found,) = systemd_first(endpoints, sockets, by_default=False)
    (wanted,) = [endpoint for endpoint in endpoints if endpoint.address.host == used_host]
    assert (found.address, found.certificate) == (wanted.address, wanted.certificate)


def test_other_endpoints_are_opened_beside_systemd_sockets() -> None:
    unix = ListenEndpoint("unix:/run/s", Ear(), ListenAddress("/run/s"))
    other = configured(PLAIN, port=80)
    found = systemd_first([unix, *other, *configured(PLAIN)], of_systemd(PLAIN), by_default=False)
    assert found[1:] == [unix, *other]
    (socket,) = systemd_first([unix], [Inherited(unix.address, Ear())], by_default=False)
    assert (socket.text, socket.address) == ("/run/s (from systemd)", unix.address)
    (socket,) = systemd_first(configured(PLAIN, port=80), of_systemd(PLAIN), by_default=True)
    assert (socket.address, socket.certificate) == (ListenAddress(PLAIN, 443), None)


def serial_of(endpoint: ListenEndpoint) -> int:
    """Return the number of a endpoint's certificate, 0 where it has none."""
    if endpoint.certificate is None:
        return 0
    number: int = endpoint.certificate.options.certificate.get_serial_number()
    return number


@of_twisted
def test_endpoints_of_one_port_keep_their_own_certificates(tmp_path: Path) -> None:
    authorities = {host: Authority(tmp_path / host, host) for host in ("192.0.2.1", "192.0.2.2")}
    texts = [each.endpoint(443, host) for host, each in authorities.items()]
    config = listening_on(*texts, "tcp:443:interface=127.0.0.1")

    def read() -> list[ListenEndpoint]:
        return configured_endpoints(config, MemoryReactor())

    def shown(endpoints: list[ListenEndpoint]) -> list[int]:
        return [serial_of(endpoint) for endpoint in endpoints]

    listening, sockets = read(), of_systemd("192.0.2.2", PLAIN, "192.0.2.1")
    inherited = systemd_first(read(), sockets, by_default=False)
    for each in authorities.values():
        each.renew()
    for endpoints in (listening, inherited):
        assert renew(endpoints, config) == []
    one, other, none = shown(read())
    assert one != other
    assert (shown(listening), shown(inherited)) == ([one, other, none], [other, none, one])


@of_twisted
def test_certificates_are_renewed_independently(tmp_path: Path) -> None:
    first, second = (Authority(tmp_path / name) for name in ("first", "second"))
    config = listening_on(second.endpoint(444), first.endpoint(443), "unix:/run/medamad/s")
    listening = configured_endpoints(config, MemoryReactor())
    before = [endpoint.certificate and endpoint.certificate.options for endpoint in listening]
    first.renew()
    (second.folder / "cert.pem").write_text("no certificate", "utf-8")
    (refused,) = renew(listening, config)
    assert refused.reason.startswith(f"{second.endpoint(444)}: ")
    after = [endpoint.certificate and endpoint.certificate.options for endpoint in listening]
    assert [new is old for new, old in zip(after, before, strict=True)] == [True, False, True]


@of_twisted
def test_the_certificate_of_a_removed_endpoint_is_renewed(tmp_path: Path) -> None:
    first, second = (Authority(tmp_path / name) for name in ("first", "second"))
    (endpoint,) = configured_endpoints(listening_on(first.endpoint(443)), MemoryReactor())
    replaced = listening_on(second.endpoint(443))
    elsewhere = listening_on(first.endpoint(8443), "tcp:443:interface=127.0.0.1")

    def after(config: Config) -> int:
        assert renew([endpoint], config) == []
        return serial_of(endpoint)

    before = serial_of(endpoint)
    first.renew()
    assert after(elsewhere) != before
    before = after(replaced)
    assert after(elsewhere) == before, "it goes on by what it went by last"
    first.renew()
    assert after(elsewhere) == before
    second.renew()
    assert after(elsewhere) != before
    (second.folder / "cert.pem").write_text("no certificate", "utf-8")
    (refused,) = renew([endpoint], elsewhere)
    assert refused.reason.startswith(f"{second.endpoint(443)}: ")


@pytest.mark.parametrize(
    ("host", "text"),
    [
        ("0.0.0.0", "0.0.0.0:443"),  # noqa: S104
        ("::", "[::]:443"),
        ("stats.example.com", "stats.example.com:443"),
    ],
)
def test_a_socket_of_systemd_is_named_by_its_address_and_port(host: str, text: str) -> None:
    (found,) = systemd_first([], of_systemd(host), by_default=True)
    assert found.text == f"{text} (from systemd)"


@of_twisted
def test_tls_has_no_ciphers_with_cbc(tmp_path: Path) -> None:
    listening = listening_on(Authority(tmp_path).endpoint(443))
    (endpoint,) = configured_endpoints(listening, MemoryReactor())
    assert endpoint.certificate is not None
    ciphers = endpoint.certificate.serverConnectionForTLS(None).get_cipher_list()
    assert "ECDHE-RSA-AES128-GCM-SHA256" in ciphers
    assert all("GCM" in cipher or "CHACHA20" in cipher for cipher in ciphers), ciphers
