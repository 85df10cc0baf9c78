from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from attrs import evolve
from support.daemon import free_port
from support.mail_server import (
    PASSWORD,
    USER,
    MailServer,
    accept,
    answer,
    delay,
    disappear,
    mail_server,
    stall,
)
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import Factory
from twisted.internet.task import deferLater
from twisted.protocols.basic import LineReceiver

from medamad.domain.errors import BadRequest
from medamad.mail.message import make_mail
from medamad.mail.settings import (
    USUAL_PATIENCE,
    MailFailed,
    MailSettings,
    Patience,
    Tls,
    checked_address,
)
from medamad.mail.smtp import send_mail

TO = "owner@example.com"
SENDER = "stats@example.org"
SHORT = Patience(connection_s=60, response_s=2, delivery_s=2)
"""Long enough for what is answered, and short enough to wait for what is not."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with mail_server(tmp_path / "mail") as running:
        monkeypatch.setenv("SSL_CERT_FILE", str(running.trusted))
        yield running


def settings_for(port: int, **changes: Any) -> MailSettings:
    given: dict[str, Any] = {"host": "localhost", "sender": SENDER, "port": port}
    return MailSettings(**given | {"user": USER, "password": PASSWORD} | changes)


def mail_of(settings: MailSettings, text: str = "Hello.\n") -> bytes:
    return make_mail(settings, TO, "Grüße", text, sent_s=1_790_000_000, number="n1")


async def send(
    settings: MailSettings, patience: Patience = USUAL_PATIENCE, text: str = "Hello.\n"
) -> None:
    await send_mail(mail_of(settings, text), TO, settings, reactor, patience)


async def failure_of(settings: MailSettings, patience: Patience = USUAL_PATIENCE) -> MailFailed:
    with pytest.raises(MailFailed) as failed:
        await send(settings, patience)
    assert PASSWORD not in str(failed.value)
    assert str(failed.value).startswith(f"localhost:{settings.port}: ")
    return failed.value


@pytest_twisted.ensureDeferred
async def test_a_mail_arrives_as_it_is(server: MailServer) -> None:
    # A dot begins a line wherever a piece of the mail may begin.
    text = "".join(f".{number:05}\n..\n" for number in range(8_000))
    await send(settings_for(server.port), text=text)
    (mail,) = server.received.parsed
    assert server.received.senders == [SENDER]
    assert server.received.recipients == [TO]
    assert mail["Subject"] == "Grüße"
    assert mail["From"] == f"medamad <{SENDER}>"
    assert mail["Message-ID"] == "<n1@example.org>"
    assert mail["Date"].datetime.timestamp() == 1_790_000_000
    assert mail["Auto-Submitted"] == "auto-generated"
    assert mail.get_content().replace("\r\n", "\n") == text


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
@pytest.mark.parametrize(("tls", "user"), [("implicit", USER), ("off", "")])
@pytest_twisted.ensureDeferred
async def test_other_ways_to_connect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: Any, user: str
) -> None:
    with mail_server(tmp_path, tls, with_login=bool(user)) as running:
        monkeypatch.setenv("SSL_CERT_FILE", str(running.trusted))
        await send(settings_for(running.port, tls=tls, user=user))
        assert running.received.recipients == [TO]


@pytest.mark.parametrize(
    ("at", "said", "is_final"),
    [
        ("on_sender", "550 5.1.0 unknown sender", True),
        ("on_sender", "451 4.3.0 try later", False),
        ("on_recipient", "550 5.1.1 no such user", True),
        ("on_recipient", "450 4.2.1 mailbox busy", False),
        ("on_mail", "554 5.7.1 looks like spam", True),
        ("on_mail", "452 4.2.2 mailbox full", False),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_rejection_has_the_servers_own_words(
    server: MailServer, at: str, said: str, *, is_final: bool
) -> None:
    setattr(server.received, at, answer(said))
    failed = await failure_of(settings_for(server.port))
    assert str(failed) == f"localhost:{server.port}: {said}"
    assert (failed.is_final, failed.may_have_arrived) == (is_final, False)
    setattr(server.received, at, accept)
    await send(settings_for(server.port))
    assert len(server.received.mails) == 1


@pytest_twisted.ensureDeferred
async def test_a_wrong_password_is_no_final_error(server: MailServer) -> None:
    settings = evolve(settings_for(server.port), password="other")
    failed = await failure_of(settings)
    assert "535" in str(failed)
    assert not failed.is_final
    assert not server.received.senders


@pytest.mark.parametrize(
    ("at", "may_have_arrived"),
    [("on_sender", False), ("on_recipient", False), ("on_mail", True)],
)
@pytest.mark.parametrize(
    ("fault", "reason"), [(disappear, "connection lost: "), (stall, "no response")]
)
@pytest_twisted.ensureDeferred
async def test_what_a_lost_response_means_depends_on_when(
    server: MailServer,
    at: str,
    fault: Callable[[Any], Awaitable[str]],
    reason: str,
    *,
    may_have_arrived: bool,
) -> None:
    setattr(server.received, at, fault)
    failed = await failure_of(settings_for(server.port), SHORT)
    assert reason in str(failed)
    assert (failed.is_final, failed.may_have_arrived) == (False, may_have_arrived)


@pytest_twisted.ensureDeferred
async def test_slow_responses_are_waited_for(server: MailServer) -> None:
    received = server.received
    received.on_sender = received.on_recipient = received.on_mail = delay
    await send(settings_for(server.port))
    assert received.recipients == [TO]


@pytest_twisted.ensureDeferred
async def test_without_tls_nothing_is_sent(tmp_path: Path) -> None:
    with mail_server(tmp_path, "none", with_login=False) as running:
        failed = await failure_of(settings_for(running.port))
        assert "TLS" in str(failed)
        assert not running.received.senders


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
@pytest.mark.parametrize("tls", ["starttls", "implicit"])
@pytest.mark.parametrize(
    ("names", "is_trusted"), [(("other.example",), True), (("localhost",), False)]
)
@pytest_twisted.ensureDeferred
async def test_a_certificate_that_proves_nothing_is_refused(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tls: Any,
    names: tuple[str, ...],
    *,
    is_trusted: bool,
) -> None:
    with mail_server(tmp_path, tls, names=names) as running:
        if is_trusted:
            monkeypatch.setenv("SSL_CERT_FILE", str(running.trusted))
        failed = await failure_of(settings_for(running.port, tls=tls))
        assert "certificate" in str(failed)
        assert not running.received.senders


class Scripted(LineReceiver):
    """Says a line for each that it receives, whatever that is; the first one at once."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines = list(lines)
        self.received: list[bytes] = []
        self.lost: Deferred[None] = Deferred()

    def connectionMade(self) -> None:
        self._say()

    def lineReceived(self, line: bytes) -> None:
        self.received.append(line)
        self._say()

    def _say(self) -> None:
        if self.lines:
            self.transport.write(self.lines.pop(0))

    def connectionLost(self, _reason: object = None) -> None:
        self.lost.callback(None)


@asynccontextmanager
async def scripted(*lines: bytes) -> AsyncIterator[tuple[int, Scripted]]:
    protocol = Scripted(list(lines))
    port = reactor.listenTCP(0, Factory.forProtocol(lambda: protocol), interface="127.0.0.1")
    try:
        yield port.getHost().port, protocol
        await protocol.lost
    finally:
        await port.stopListening()


@pytest_twisted.ensureDeferred
async def test_what_comes_before_tls_is_no_response_within_it() -> None:
    """Anyone on the way could have added it."""
    forged = b"220 go\r\n250 AUTH PLAIN\r\n235 ok\r\n250 ok\r\n250 ok\r\n354 go\r\n250 ok\r\n"
    async with scripted(b"220 hi\r\n", b"250-hi\r\n250 STARTTLS\r\n", forged) as (port, protocol):
        failed = await failure_of(settings_for(port))
        assert "it sent more than a response to STARTTLS" in str(failed)
    assert [line.split()[0] for line in protocol.received] == [b"EHLO", b"STARTTLS"]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([b"421 too busy\r\n"], "421 too busy"),
        ([b"hello\r\n"], "Invalid response"),
        ([b"220 hi\r\n", b"500 what\r\n"], "does not support"),
        ([b"220 hi\r\n"], "no response"),
        ([], "no response"),
    ],
)
@pytest_twisted.ensureDeferred
async def test_what_is_no_mail_server_is_an_error(lines: list[bytes], reason: str) -> None:
    async with scripted(*lines) as (port, _):
        failed = await failure_of(settings_for(port), SHORT)
        assert reason in str(failed)
        assert not failed.is_final


@pytest.mark.parametrize("after", [b"", b"451 what\r\n"])
@pytest_twisted.ensureDeferred
async def test_after_a_250_nothing_matters_and_the_connection_is_closed(after: bytes) -> None:
    lines = [b"220 hi\r\n", b"250 hi\r\n", b"250 ok\r\n", b"250 ok\r\n", b"354 go\r\n"]
    async with scripted(*lines) as (port, protocol):
        settings = settings_for(port, tls="off", user="")
        sending = Deferred.fromCoroutine(send(settings))
        while b"." not in protocol.received:
            await deferLater(reactor, 0.01, lambda: None)
        protocol.transport.write(b"250 taken\r\n" + after)
        assert await sending is None


@pytest_twisted.ensureDeferred
async def test_nobody_listens() -> None:
    failed = await failure_of(settings_for(free_port()))
    assert "refused" in str(failed)
    assert not failed.may_have_arrived


@pytest_twisted.ensureDeferred
async def test_a_host_that_is_unknown() -> None:
    settings = evolve(settings_for(25), host="mail.invalid")
    with pytest.raises(MailFailed, match=r"^mail\.invalid:25: "):
        await send(settings)


@pytest.mark.parametrize("tls", ["starttls", "implicit", "off"])
@pytest_twisted.ensureDeferred
async def test_a_host_that_is_none(tls: Tls) -> None:
    settings = evolve(settings_for(25), host="xn--0.example", tls=tls, user="")
    with pytest.raises(MailFailed, match=r"^xn--0\.example:25: "):
        await send(settings)


@pytest_twisted.ensureDeferred
async def test_cancelling_closes_the_connection() -> None:
    async with scripted(b"220 hi\r\n") as (port, protocol):
        sending = Deferred.fromCoroutine(send(settings_for(port)))
        while not protocol.received:
            await deferLater(reactor, 0.01, lambda: None)
        sending.cancel()
        with pytest.raises(CancelledError):
            await sending


@pytest_twisted.ensureDeferred
async def test_without_a_server_the_error_says_what_to_set() -> None:
    with pytest.raises(MailFailed, match=r"set host and from in the section"):
        await send_mail(b"", TO, MailSettings(), reactor)


@pytest.mark.parametrize("address", ["ada@example.com", "a.b+c@localhost", "x_y'z@a-b.example"])
def test_addresses(address: str) -> None:
    assert checked_address(address) == address


@pytest.mark.parametrize(
    "address",
    [
        *("", "ada", "@example.com", "ada@", "a b@example.com", "<ada@example.com>"),
        *("ada@example.com\n", "ada@example.com\r\nRCPT TO:<b@c>", "a@-b", "a..b@c", "ä@b"),
        *("a@b, c@d", "a@" + "b" * 253, '"a b"@c'),
    ],
)
def test_no_addresses(address: str) -> None:
    with pytest.raises(BadRequest) as failed:
        checked_address(address)
    assert str(failed.value) == "address: expected an address such as ada@example.com"
