"""Hits that arrive whole, as nearly all do: from their bytes to the pipeline in one step.

Making a request object and parsing its head would take longer than everything else about a hit. So
heads are remembered, without the fields that differ from visitor to visitor; most hits of a busy
website repeat one of them. What is not taken here is left to the connection's parser: what arrives
in other parts than head and body or with more behind it, heads with any other field, and all that
is malformed.
"""

import re
from collections.abc import Callable
from typing import Final

from attrs import define, field, frozen
from twisted.python.failure import Failure

from medamad.domain.errors import ApiError, BadRequest
from medamad.ingest.networks import Sender
from medamad.web import cors
from medamad.web.backend import Backend
from medamad.web.responses import failure_response
from medamad.web.routes.hits import HIT_ROUTE, first_text, response_to
from medamad.web.server.channel import Channel
from medamad.web.server.clients import is_trusted, nearest_client
from medamad.web.server.parser import REPEATED, read_head, wants_close
from medamad.web.server.site import Site
from medamad.web.settings import WebSettings

_MAX_KNOWN: Final = 2_048
"""How many heads are remembered. Each takes about a kilobyte and a half."""
_FIELDS: Final = REPEATED - {b"content-length"}
"""The fields of heads that are remembered."""
_LINE_END: Final = b"\r\n"
_HEAD_END: Final = b"\r\n\r\n"
_POST: Final = b"POST "
_LENGTH: Final = b"\r\nContent-Length: "
_REFERER: Final = b"\r\nReferer: "
_SHORT_LENGTH: Final = re.compile(rb"[1-9][0-9]{0,3}\Z")
_VALUE: Final = re.compile(rb"[^\r\n\0]*\Z")
"""What the values of fields may have in them."""


@frozen
class _KnownHead:
    """What the fields of a head say about a browser and its page."""

    user_agent: str
    accept_language: str
    origin: str
    has_gpc: bool


@define(eq=False)
class WholeHits:
    """Takes hits, and responds to them."""

    _backend: Backend
    _site: Site
    _is_hit: Callable[[bytes, bytes], bool]
    """Whether a method and a target are those of hits."""
    _settings: WebSettings | None = field(default=None, init=False)
    _forwarded: bytes = field(default=b"", init=False)
    """What precedes the addresses that a proxy writes."""
    _known: dict[bytes, _KnownHead] = field(factory=dict, init=False)
    """By head, without the fields that are cut out."""

    def take(self, channel: Channel, arrived: bytes) -> bool:
        """Take a hit and respond to it later; return whether what arrived is one, and no more."""
        if not arrived.startswith(_POST) or self._site.is_closing:
            return False
        head, end, body = arrived.partition(_HEAD_END)
        if not end:
            return False
        settings = self._apply_settings()
        head, length = _cut(head, _LENGTH)
        if length != b"%d" % len(body) or len(body) > settings.max_body_bytes:
            return False
        known, forwarded = self._read(head)
        if known is None:
            return False
        address = channel.peer
        if forwarded and is_trusted(address, settings):
            address = nearest_client(address, forwarded, settings)
        sender = Sender(
            address,
            known.user_agent,
            known.accept_language,
            known.origin,
            known.has_gpc,
            len(arrived),
        )
        self._receive(channel, arrived, body, sender)
        return True

    def forget(self) -> None:
        """Forget the heads."""
        self._known.clear()

    def is_head(self, arrived: bytes) -> bool:
        """Return whether what arrived is the head of a hit that `take` may take with its body."""
        if not arrived.startswith(_POST) or not arrived.endswith(_HEAD_END):
            return False
        settings = self._apply_settings()
        head, length = _cut(arrived.removesuffix(_HEAD_END), _LENGTH)
        if not _SHORT_LENGTH.match(length) or int(length) > settings.max_body_bytes:
            return False
        return self._read(head)[0] is not None

    def _apply_settings(self) -> WebSettings:
        """Return the settings, and forget the heads if they have changed."""
        settings = self._backend.settings
        if settings is not self._settings:
            # They determine which heads are those of hits.
            self._known.clear()
            self._settings = settings
            self._forwarded = b"\r\n%b: " % settings.proxy_header.encode("ascii")
        return settings

    def _read(self, head: bytes) -> tuple[_KnownHead | None, bytes]:
        """Return what a head without its length says, None if it is not taken here.

        And what a proxy says about the client.
        """
        head, forwarded = _cut(head, self._forwarded)
        head, referer = _cut(head, _REFERER)
        known = self._known.get(head) or self._learn(head)
        if not _VALUE.match(forwarded + referer):
            return None, b""
        return known, forwarded

    def _receive(self, channel: Channel, arrived: bytes, body: bytes, sender: Sender) -> None:
        channel.begin_hit()
        backend = self._backend
        begun_s = backend.seconds()

        def received(result: str | Exception | None) -> None:
            backend.response_times.hits.add(backend.seconds() - begun_s)
            if result is None and channel.keep_alive:
                channel.end_hit(self._site.encoded_no_content())
            else:
                self._respond(channel, arrived, result)

        try:
            backend.pipeline.receive(body, sender, received)
        except ApiError as error:
            received(error)
        except Exception as error:  # noqa: BLE001 - any error is logged and answered
            self._respond(channel, arrived, error)

    def _respond(self, channel: Channel, arrived: bytes, result: str | Exception | None) -> None:
        """Send any other response than the usual one, as a request does."""
        if not channel.is_in_hit:
            return
        if isinstance(result, Exception):
            response = failure_response(Failure(result), HIT_ROUTE)
        else:
            response = response_to(result)
        head = read_head(arrived.partition(_HEAD_END)[0] + _LINE_END)
        self._site.make_request(channel, head).respond(response, cors.ANY_EXPOSED)

    def _learn(self, head: bytes) -> _KnownHead | None:
        """Return a head that is remembered from now on; None for one of what is not taken here."""
        try:
            parsed = read_head(head + _LINE_END)
        except BadRequest:
            return None
        headers = parsed.headers
        is_plain = headers.names <= _FIELDS and len(headers.names) == head.count(_LINE_END)
        if not is_plain or parsed.version != b"HTTP/1.1" or wants_close(headers):
            return None
        if not self._is_hit(parsed.method, parsed.target):
            return None
        known = _KnownHead(
            first_text(headers, b"User-Agent"),
            first_text(headers, b"Accept-Language"),
            first_text(headers, b"Origin"),
            headers.joined(b"Sec-GPC") == b"1",
        )
        if len(self._known) >= _MAX_KNOWN:
            self._known.clear()
        self._known[head] = known
        return known


def _cut(head: bytes, name: bytes) -> tuple[bytes, bytes]:
    """Return a head without its first field of a name, and the value of that, "" if not sent.

    Some proxies write names in lower case.
    """
    before, found, rest = head.partition(name)
    if not found:
        before, found, rest = head.partition(name.lower())
    if not found:
        return head, b""
    value, end, after = rest.partition(_LINE_END)
    return before + end + after, value
