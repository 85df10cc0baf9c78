"""A real SMTP server, which can also reject, delay, stall and disappear."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from pathlib import Path
from typing import Any, Final

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from attrs import define, field
from support.certificates import Authority
from support.daemon import free_port

USER, PASSWORD = "stats", "correct horse battery"
ACCEPTED: Final = "250 OK"


async def accept(_server: SMTP) -> str:
    """Answer that a mail is accepted."""
    return ACCEPTED


async def disappear(server: SMTP) -> str:
    """Close the connection instead of an answer."""
    server.transport.abort()
    return ACCEPTED


async def stall(_server: SMTP) -> str:
    """Do not answer until the server stops."""
    await asyncio.Event().wait()
    return ACCEPTED


async def delay(_server: SMTP) -> str:
    """Answer a moment later."""
    await asyncio.sleep(0.1)
    return ACCEPTED


def answer(text: str) -> Callable[[SMTP], Awaitable[str]]:
    """Return what answers with a text."""

    async def respond(_server: SMTP) -> str:
        return text

    return respond


@define
class Received:
    """The mails that arrived, and what is answered at the steps of the next ones."""

    mails: list[bytes] = field(factory=list)
    recipients: list[str] = field(factory=list)
    senders: list[str] = field(factory=list)
    on_sender: Callable[[SMTP], Awaitable[str]] = accept
    on_recipient: Callable[[SMTP], Awaitable[str]] = accept
    on_mail: Callable[[SMTP], Awaitable[str]] = accept
    on_reset: Callable[[SMTP], Awaitable[str]] = accept
    loses_answers: int = 0
    """How many of the next mails are accepted, but nobody learns of it."""

    async def handle_MAIL(
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        envelope.mail_from = address
        self.senders.append(address)
        return await self.on_sender(server)

    async def handle_RCPT(
        self, server: SMTP, _session: Session, envelope: Envelope, address: str, _options: list[str]
    ) -> str:
        said = await self.on_recipient(server)
        if said == ACCEPTED:
            envelope.rcpt_tos.append(address)
        return said

    async def handle_DATA(self, server: SMTP, _session: Session, envelope: Envelope) -> str:
        content = envelope.original_content
        assert content is not None
        if self.loses_answers:
            self.loses_answers -= 1
            self._keep(content, envelope)
            return await disappear(server)
        said = await self.on_mail(server)
        if said == ACCEPTED:
            self._keep(content, envelope)
        return said

    def _keep(self, content: bytes, envelope: Envelope) -> None:
        self.mails.append(content)
        self.recipients += envelope.rcpt_tos

    @property
    def parsed(self) -> list[EmailMessage]:
        """The mails that arrived."""
        return [message_from_bytes(mail, policy=SMTP_POLICY) for mail in self.mails]  # type: ignore[misc]


@define(eq=False)
class MailServer:
    """A running server: where it is, what trusts its certificate, and what it received."""

    port: int
    authority: Authority
    received: Received

    @property
    def trusted(self) -> Path:
        """The file with the certificate of its authority."""
        return self.authority.folder / "chain.pem"


@contextmanager
def mail_server(
    folder: Path,
    tls: str = "starttls",
    *,
    names: tuple[str, ...] = ("localhost",),
    with_login: bool = True,
    port: int | None = None,
) -> Iterator[MailServer]:
    """Run a server, of which the certificate is that of `names`."""
    authority = Authority(folder, *names)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "fullchain.pem", folder / "privkey.pem")
    received = Received()
    options: dict[str, Any] = {}
    if tls == "starttls":
        options |= {"tls_context": context, "require_starttls": True}
    if with_login:
        options |= {
            "authenticator": _authenticate,
            "auth_required": True,
            "auth_require_tls": tls == "starttls",
        }
    controller = _Controller(
        received,
        hostname="127.0.0.1",
        port=port or free_port(),
        ssl_context=context if tls == "implicit" else None,
        **options,
    )
    controller.start()
    try:
        yield MailServer(controller.port, authority, received)
    finally:
        controller.close_connections()
        controller.stop()


class _Controller(Controller):
    """Remembers its connections, to close those that a client has left open."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.connections: list[SMTP] = []
        self.transports: list[asyncio.Transport] = []
        super().__init__(*arguments, **options)

    def factory(self) -> SMTP:
        transports = self.transports

        class Connection(SMTP):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                transports.append(transport)  # type: ignore[arg-type]
                super().connection_made(transport)

        self.connections.append(made := Connection(self.handler, **self.SMTP_kwargs))
        return made

    def close_connections(self) -> None:
        """Close all connections, and wait until they are."""

        async def close() -> None:
            for transport in reversed(self.transports):
                transport.abort()
            while any(each.transport for each in self.connections):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.01)

        asyncio.run_coroutine_threadsafe(close(), self.loop).result()


def _authenticate(
    _server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, login: object
) -> AuthResult:
    given = isinstance(login, LoginPassword) and (login.login, login.password)
    is_right = given == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=is_right, handled=False)
