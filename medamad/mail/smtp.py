"""Send one mail over SMTP, and learn what became of it."""

from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.error import ConnectError, ConnectingCancelledError, DNSLookupError
from twisted.internet.protocol import Factory, connectionDone
from twisted.internet.ssl import VerificationError, optionsForClientTLS
from twisted.mail.smtp import (
    DNSNAME,
    CramMD5ClientAuthenticator,
    ESMTPClient,
    LOGINAuthenticator,
    PLAINAuthenticator,
    SMTPClientError,
)
from twisted.protocols.tls import TLSMemoryBIOFactory, TLSMemoryBIOProtocol
from twisted.python.failure import Failure

from medamad.mail.settings import USUAL_PATIENCE, MailFailed, MailSettings, Patience

_ACCEPTED: Final = 250
_PERMANENT: Final = range(500, 600)


async def send_mail(
    content: bytes,
    to: str,
    settings: MailSettings,
    reactor: Any,
    patience: Patience = USUAL_PATIENCE,
) -> None:
    """Send a mail, whose lines end with CRLF, to one address; return once it was accepted.

    Raises MailFailed. If this is cancelled, the connection is closed.
    """
    settings.check()
    where = f"{settings.host}:{settings.port}"
    try:
        context: Any = None if settings.tls == "off" else optionsForClientTLS(settings.host)
    except UnicodeError as error:  # a label that begins with xn-- and is none
        raise MailFailed(f"{where}: {_words_of(error)}") from error
    endpoint: Any = HostnameEndpoint(
        reactor, settings.host.encode("ascii"), settings.port, patience.connection_s
    )
    client = _Client(content, to, settings, context, patience)
    factory: Any = Factory.forProtocol(lambda: client)
    if settings.tls == "implicit":
        # Not by Twisted's endpoints, which know no TLS where they were imported without it.
        factory = TLSMemoryBIOFactory(context, True, factory)
    try:
        await endpoint.connect(factory)
    except ConnectingCancelledError:
        raise CancelledError from None
    except (ConnectError, DNSLookupError, ValueError) as error:
        raise MailFailed(f"{where}: {_words_of(error)}") from error
    try:
        await client.done
    except MailFailed as error:
        raise MailFailed(
            f"{where}: {error}",
            is_final=error.is_final,
            is_refusal=error.is_refusal,
            may_have_arrived=error.may_have_arrived,
        ) from error


class _Client(ESMTPClient):
    """Sends one mail, then closes. `done` fires with None or MailFailed."""

    debug = False  # it would log the password
    heloFallback = False
    timeout: Any
    transport: Any

    def __init__(
        self, content: bytes, to: str, settings: MailSettings, context: Any, patience: Patience
    ) -> None:
        starttls = context if settings.tls == "starttls" else None
        super().__init__(settings.password.encode("utf-8"), starttls, DNSNAME)
        user = settings.user.encode("utf-8")
        for kind in (PLAINAuthenticator, LOGINAuthenticator, CramMD5ClientAuthenticator):
            self.registerAuthenticator(kind(user))
        self.requireTransportSecurity = settings.tls != "off"
        self.requireAuthentication = bool(user)
        self.timeout = patience.response_s
        self.done: Deferred[None] = Deferred(lambda _: self._cancel())
        self._context = context
        self._mail = content
        self._sender: str | None = settings.sender
        self._to = to
        self._patience = patience
        self._is_sent = False
        self._is_cancelled = False

    def getMailFrom(self) -> str | None:
        """Return the sender of the only mail, then None."""
        sender, self._sender = self._sender, None
        return sender

    def getMailTo(self) -> list[str]:
        """Return the recipient."""
        return [self._to]

    def getMailData(self) -> BytesIO:
        """Return the mail, in which a dot at the beginning of a line is doubled."""
        return BytesIO(self._mail.replace(b"\r\n.", b"\r\n.."))

    def transformChunk(self, chunk: bytes) -> bytes:
        """Return a piece as it is: Twisted's own method misses dots at the edges of pieces."""
        self.resetTimeout()
        return chunk

    def finishedFileTransfer(self, lastsent: bytes) -> None:
        """End the mail; from now on, it may have arrived."""
        super().finishedFileTransfer(lastsent)
        self._is_sent = True
        self.setTimeout(self._patience.delivery_s)

    def esmtpState_starttls(self, code: int, resp: bytes) -> None:
        """Start TLS, unless there are further responses, which nobody has signed."""
        if self.clearLineBuffer():
            self._end(MailFailed("it sent more than a response to STARTTLS"))
            self.transport.abortConnection()
            return
        # As Twisted's sockets do it, which know no TLS where they were imported without it.
        connection, nothing = self.transport, Factory()  # no further protocol is built
        factory = TLSMemoryBIOFactory(self._context, True, nothing)  # type: ignore[arg-type]
        tls = TLSMemoryBIOProtocol(factory, self, False)
        connection.protocol = self.transport = tls
        tls.makeConnection(connection)
        self._tlsMode = True
        self.esmtpState_ehlo(code, resp)

    def sendError(self, exc: SMTPClientError) -> None:
        """End with an error, in the server's words if these are its."""
        words = _text(exc.resp)
        reason = words if exc.code < 0 else f"{exc.code} {words}"
        self._end(MailFailed(reason, may_have_arrived=self._is_sent))
        self.transport.loseConnection()

    def sentMail(
        self,
        code: int,
        resp: bytes | str,
        numOk: int,  # noqa: N803 - Twisted's name
        addresses: Sequence[tuple[Any, int, bytes]],
        log: Any,  # noqa: ARG002 - Twisted passes it
    ) -> None:
        """End with what became of the mail."""
        if numOk and code == _ACCEPTED:
            self._end(None)
        else:
            words = resp if numOk or not addresses else addresses[0][2]
            reason = f"{code} {_text(words)}"
            self._end(MailFailed(reason, is_final=code in _PERMANENT, is_refusal=True))
        # Nothing that the server still says would matter.
        self.sendLine(b"QUIT")
        self.transport.loseConnection()

    def timeoutConnection(self) -> None:
        """End with an error if the mail is not accepted yet; close the connection at once."""
        self._end(MailFailed("no response", may_have_arrived=self._is_sent))
        self.transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """End with an error unless it has ended."""
        super().connectionLost(reason)
        words = _words_of(reason.value)
        self._end(MailFailed(f"connection lost: {words}", may_have_arrived=self._is_sent))

    def _cancel(self) -> None:
        # The loss of the connection, which may be reported at once, is then no error of its own.
        self._is_cancelled = True
        self.transport.abortConnection()

    def _end(self, error: MailFailed | None) -> None:
        if self.done.called or self._is_cancelled:
            return
        if error is None:
            self.done.callback(None)
        else:
            self.done.errback(error)


def _text(words: bytes | str) -> str:
    text = words if isinstance(words, str) else words.decode("utf-8", "replace")
    return " ".join(text.split())


def _words_of(error: BaseException | None) -> str:
    """Return why a connection failed."""
    if isinstance(error, VerificationError):
        return "its certificate is not one of the host"
    return " ".join(str(error).split()).removesuffix(".")
