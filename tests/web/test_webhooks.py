"""Webhooks to real servers on this machine, which do what servers do when they are in trouble."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from ipaddress import ip_network
from pathlib import Path
from threading import Event

import pytest
import pytest_twisted
from attrs import define, field
from support.certificates import Authority
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import serverFromString
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.ssl import Certificate, trustRootFromCertificates

from medamad.domain.alerts import NotDelivered
from medamad.ingest.networks import Networks
from medamad.web.webhooks import Webhooks, addresses_of, is_public, own_networks

HERE = Networks([ip_network("127.0.0.1")])
"""What the configuration allows in these tests."""
NOWHERE = Networks(())
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


@define(eq=False)
class Scripted(Factory):
    """A server that answers each request with the next answer; None ends the connection."""

    answers: list[bytes | None]
    received: list[bytes] = field(factory=list)
    connections: int = 0
    lost: "Deferred[None]" = field(factory=Deferred)

    def buildProtocol(self, _address: object) -> Protocol:
        self.connections += 1
        return Answering(self)

    @property
    def bodies(self) -> list[bytes]:
        return [request.partition(b"\r\n\r\n")[2] for request in self.received]


@define(eq=False)
class Answering(Protocol):
    script: Scripted
    buffer: bytes = b""

    def dataReceived(self, data: bytes) -> None:
        self.buffer += data
        head, end, body = self.buffer.partition(b"\r\n\r\n")
        length = next(
            int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")
        )
        if end and len(body) >= length:
            self.script.received.append(self.buffer)
            self.buffer = b""
            answer = self.script.answers.pop(0)
            if answer is None:
                self.transport.loseConnection()
            else:
                self.transport.write(answer)

    def connectionLost(self, _reason: object = None) -> None:
        if not self.script.lost.called:
            self.script.lost.callback(None)


Serve = Callable[..., Awaitable[tuple[Scripted, int]]]


@pytest.fixture
def serve() -> Iterator[Serve]:
    ports = []

    async def begin(
        *answers: bytes | None, endpoint: str = "tcp:0:interface=127.0.0.1"
    ) -> tuple[Scripted, int]:
        script = Scripted(list(answers))
        port = await serverFromString(reactor, endpoint).listen(script)
        ports.append(port)
        return script, port.getHost().port

    yield begin
    for port in ports:
        pytest_twisted.blockon(Deferred.fromCoroutine(_stop(port)))


async def _stop(port: object) -> None:
    await port.stopListening()


async def post(
    url: str,
    webhooks: Webhooks | None = None,
    *,
    allowed: Networks = HERE,
    within_s: float = 20,
) -> None:
    sender = webhooks or Webhooks(reactor)
    await sender.post(url, b'{"a":1}', (("X-Test", "yes"),), allowed, within_s)


async def refused(
    url: str, webhooks: Webhooks | None = None, *, allowed: Networks = HERE, within_s: float = 20
) -> NotDelivered:
    with pytest.raises(NotDelivered) as error:
        await post(url, webhooks, allowed=allowed, within_s=within_s)
    return error.value


def named(*addresses: str) -> Callable[[str], Sequence[str]]:
    """Return a name service that knows one answer for each question, in order."""
    answers = iter([[address] for address in addresses])
    return lambda _host: next(answers)


@pytest_twisted.ensureDeferred
async def test_a_request_arrives_whole(serve: Serve) -> None:
    server, port = await serve(OK)
    await post(f"http://127.0.0.1:{port}/hook?key=a%20b")
    (request,) = server.received
    head, _, body = request.partition(b"\r\n\r\n")
    first, *fields = head.split(b"\r\n")
    assert first == b"POST /hook?key=a%20b HTTP/1.1"
    assert {b"X-Test: yes", b"Content-Length: 7", b"Host: 127.0.0.1:%d" % port} < set(fields)
    assert any(each.startswith(b"User-Agent: medamad/") for each in fields)
    assert body == b'{"a":1}'


@pytest.mark.parametrize(
    ("answer", "reason", "response"),
    [
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "500 Oops", ""),
        (
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 16\r\n\r\nno\x1b_service\nmore",
            "404 Not Found",
            "no_service",
        ),
        (b"HTTP/1.1 429 Slow Down\r\n\r\nbusy", "429 Slow Down", "busy"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_status_that_is_no_success(
    serve: Serve, answer: bytes, reason: str, response: str
) -> None:
    _, port = await serve(answer)
    url = f"http://127.0.0.1:{port}/"
    error = await refused(url, within_s=20 if b"Length" in answer else 0.3)
    if b"Length" in answer:
        assert (str(error), error.response) == (reason, response)
    else:
        # Its body has no end.
        assert str(error) == "no response within 0.3 seconds"


@pytest_twisted.ensureDeferred
async def test_a_success_is_one_whatever_its_body(serve: Serve) -> None:
    """A body without an end keeps nobody waiting."""
    server, port = await serve(b"HTTP/1.1 200 OK\r\n\r\nok")
    await post(f"http://127.0.0.1:{port}/")
    await server.lost


@pytest_twisted.ensureDeferred
async def test_a_long_response_is_not_received(serve: Serve) -> None:
    endless = b"HTTP/1.1 500 Oops\r\n\r\n" + b"a" * 1_000_000
    server, port = await serve(endless)
    error = await refused(f"http://127.0.0.1:{port}/")
    assert (str(error), error.response) == ("500 Oops", "a" * 200)
    await server.lost


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (None, "Connection was closed cleanly."),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "the response is not HTTP"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_what_is_no_answer(serve: Serve, answer: bytes | None, reason: str) -> None:
    _, port = await serve(answer)
    assert reason in str(await refused(f"http://127.0.0.1:{port}/"))


@pytest_twisted.ensureDeferred
async def test_a_server_that_stalls_is_left(serve: Serve) -> None:
    server, port = await serve(b"HTTP/1.1 200")
    error = await refused(f"http://127.0.0.1:{port}/", within_s=0.3)
    assert str(error) == "no response within 0.3 seconds"
    await server.lost


@pytest_twisted.ensureDeferred
async def test_nobody_listens(serve: Serve) -> None:
    _, port = await serve()
    assert "refused" in str(
        await refused(f"http://127.0.0.2:{port}/", allowed=Networks([ip_network("127.0.0.2")]))
    )


@pytest.mark.filterwarnings("ignore:Passing pyOpenSSL:DeprecationWarning")
@pytest_twisted.ensureDeferred
async def test_a_certificate_is_verified(serve: Serve, tmp_path: Path) -> None:
    authority = Authority(tmp_path / "good", "hooks.example.com")
    server, port = await serve(OK, OK, OK, endpoint=authority.endpoint(0))
    pem = authority.authority.cert_pem.bytes()
    trusted = trustRootFromCertificates([Certificate.loadPEM(pem)])
    knows = Webhooks(reactor, lambda _host: ["127.0.0.1"], trust_root=trusted)
    await post(f"https://hooks.example.com:{port}/", knows)
    assert server.bodies == [b'{"a":1}']
    assert "name" in str(await refused(f"https://other.example.com:{port}/", knows)).lower()
    stranger = Webhooks(reactor, lambda _host: ["127.0.0.1"])
    assert "certificate verify failed" in str(
        await refused(f"https://hooks.example.com:{port}/", stranger)
    )
    assert len(server.received) == 1


NOT_PUBLIC = (
    "is an address of this machine or of its networks: [alerts] webhook_networks in the"
    " configuration can allow it"
)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]"])
@pytest_twisted.ensureDeferred
async def test_this_machine_is_not_reached(serve: Serve, host: str) -> None:
    server, port = await serve(OK)
    url = f"http://{host}:{port}/"
    assert NOT_PUBLIC in str(await refused(url, allowed=NOWHERE))
    assert server.connections == 0


@pytest_twisted.ensureDeferred
async def test_a_redirect_is_not_followed(serve: Serve) -> None:
    inside, port = await serve(OK)
    for status in (301, 302, 303, 307, 308):
        target = f"http://127.0.0.1:{port}/"
        answer = f"HTTP/1.1 {status} Elsewhere\r\nLocation: {target}\r\nContent-Length: 0\r\n\r\n"
        _, outside = await serve(answer.encode())
        error = await refused(f"http://127.0.0.1:{outside}/")
        assert str(error) == f"{status} Elsewhere: redirects are not followed"
    assert inside.connections == 0


@pytest_twisted.ensureDeferred
async def test_a_name_is_looked_up_once(serve: Serve) -> None:
    """The name service gives another answer after the check: nobody asks it again."""
    outside, port = await serve(OK, endpoint="tcp:0:interface=127.0.0.2")
    inside, _ = await serve(OK, endpoint=f"tcp:{port}:interface=127.0.0.1")
    sender = Webhooks(reactor, named("127.0.0.2", "127.0.0.1"))
    allowed = Networks([ip_network("127.0.0.2")])
    await post(f"http://hooks.example.com:{port}/", sender, allowed=allowed)
    assert (outside.connections, inside.connections) == (1, 0)
    # The next request looks it up anew, and is refused.
    error = await refused(f"http://hooks.example.com:{port}/", sender, allowed=allowed)
    assert str(error) == f"hooks.example.com {NOT_PUBLIC}"
    assert inside.connections == 0


@pytest_twisted.ensureDeferred
async def test_of_several_addresses_only_those_allowed_are_tried(serve: Serve) -> None:
    outside, port = await serve(OK, endpoint="tcp:0:interface=127.0.0.3")
    inside, _ = await serve(OK, endpoint=f"tcp:{port}:interface=127.0.0.1")
    # Nobody listens on the second.
    sender = Webhooks(reactor, lambda _host: ["127.0.0.1", "127.0.0.2", "127.0.0.3"])
    allowed = Networks([ip_network("127.0.0.2/31")])
    await post(f"http://hooks.example.com:{port}/", sender, allowed=allowed)
    assert (outside.connections, inside.connections) == (1, 0)


@pytest_twisted.ensureDeferred
async def test_a_name_that_does_not_exist() -> None:
    def unknown(_host: str) -> list[str]:
        raise OSError(-2, "Name or service not known")

    error = await refused("http://hooks.example.com/", Webhooks(reactor, unknown))
    assert str(error) == "hooks.example.com: Name or service not known"


@pytest_twisted.ensureDeferred
async def test_a_name_service_that_does_not_answer_is_asked_by_few() -> None:
    answered, asked = Event(), []

    def stalls(host: str) -> list[str]:
        asked.append(host)
        answered.wait()
        return ["127.0.0.1"]

    sender = Webhooks(reactor, stalls)
    url = "http://hooks.example.com:9/"
    waiting = [Deferred.fromCoroutine(refused(url, sender, within_s=0.3)) for _ in range(21)]
    reasons = [str(await each) for each in waiting]
    answered.set()
    assert reasons == ["no response within 0.3 seconds"] * 20 + [
        "the name service is not responding"
    ]
    assert len(asked) == 20


@pytest_twisted.ensureDeferred
async def test_what_is_cancelled_ends_its_connection(serve: Serve) -> None:
    server, port = await serve(b"HTTP/1.1 200")
    sending = Deferred.fromCoroutine(post(f"http://127.0.0.1:{port}/"))
    while not server.received:
        await _a_moment()
    sending.cancel()
    with pytest.raises(CancelledError):
        await sending
    await server.lost


async def _a_moment() -> None:
    moment: Deferred[None] = Deferred()
    reactor.callLater(0.01, moment.callback, None)
    await moment


OWN = Networks(map(ip_network, ["198.51.101.0/24", "2a00:1:2:3::/64"]))


@pytest.mark.parametrize(
    ("address", "may_be_reached"),
    [
        ("93.184.215.14", True),
        ("2606:2800:21f:cb07::1", True),
        ("198.51.101.77", False),
        ("2a00:1:2:3:ffff::1", False),
        ("2a00:1:2:4::1", True),
        *(
            (address, False)
            for address in (
                *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
                *("100.64.0.1", "0.0.0.1", "255.255.255.255", "224.0.0.1", "198.18.0.1"),
                *("::1", "::", "fe80::1", "fe80::1%eth0", "fd00::1", "fc00::1", "ff02::1"),
                # That lead to addresses of IPv4.
                *("::ffff:127.0.0.1", "::ffff:198.51.101.77", "::127.0.0.1", "64:ff9b::7f00:1"),
                *("2002:7f00:1::", "2002:c633:654d::1", "64:ff9b::c633:654d"),
                *("::ffff:0:7f00:1", "64:ff9b:1::7f00:1", "fec0::1"),
                *("localhost", ""),
            )
        ),
        ("::ffff:93.184.215.14", True),
        ("64:ff9b::5db8:d70e", True),
    ],
)
def test_which_addresses_are_public(address: str, may_be_reached: bool) -> None:
    assert is_public(address, OWN, NOWHERE) is may_be_reached


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3", "fd00::1"])
def test_the_configuration_can_allow_networks(address: str) -> None:
    allowed = Networks(map(ip_network, ["10.1.0.0/16", "fd00::/8"]))
    assert is_public(address, OWN, allowed)
    assert not is_public("10.2.0.1", OWN, allowed)


def test_the_networks_of_this_machine_are_known() -> None:
    assert bytes((127, 9, 9, 9)) in own_networks()
    assert "127.0.0.1" in addresses_of("localhost")
